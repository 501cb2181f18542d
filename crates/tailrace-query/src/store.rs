//! Object stores: what a URL names, and how its bytes come.

mod environment;
pub(crate) mod list;
mod local;
pub(crate) mod object;

use std::fmt;
use std::path::Path as FilePath;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, bail};
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::SpawnedReqwestConnector;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use self::local::LocalFiles;

/// How long an answer is waited for, all retries included.
const RETRY_TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES_MAX: usize = 5;

/// A place that holds objects.
#[derive(Clone)]
pub(crate) struct Store {
    /// `s3://bucket/`, by which DataFusion knows it.
    pub(crate) url: ObjectStoreUrl,
    pub(crate) objects: Arc<dyn ObjectStore>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.url).finish()
    }
}

impl Store {
    /// The files of this machine.
    pub(crate) fn local() -> Store {
        Store {
            url: ObjectStoreUrl::local_filesystem(),
            objects: Arc::new(LocalFiles::default()),
        }
    }

    /// The store of a URL, and what follows the bucket: a key, a prefix or a glob. Credentials come from the environment, by
    /// the names that the clouds' own tools use.
    ///
    /// # Errors
    ///
    /// The URL is not one of a store that is known, or the environment lacks something.
    pub(crate) fn of_url(url: &str) -> anyhow::Result<(Store, String)> {
        let (scheme, rest) = url
            .split_once("://")
            .with_context(|| format!("{url}: is no URL"))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            bail!("{url}: the URL names no bucket, as {scheme}://bucket/key does");
        }
        let base = format!("{scheme}://{bucket}");
        environment::check(scheme, |name| std::env::var(name).ok())
            .with_context(|| format!("{base}: cannot be used"))?;
        let connector = SpawnedReqwestConnector::new(threads()?.handle().clone());
        let retry = RetryConfig {
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        };
        // The builders have these methods alike, and no trait of them.
        macro_rules! opened {
            ($builder:ident) => {
                $builder::from_env()
                    .with_url(&base)
                    .with_retry(retry)
                    .with_http_connector(connector)
                    .build()
                    .map(|store| -> Arc<dyn ObjectStore> { Arc::new(store) })
            };
        }
        let objects = match scheme {
            "s3" | "s3a" => opened!(AmazonS3Builder),
            "gs" => opened!(GoogleCloudStorageBuilder),
            "az" | "azure" | "abfs" | "abfss" => opened!(MicrosoftAzureBuilder),
            _ => bail!("{url}: no store is known by `{scheme}://`: s3, gs, az, abfss and file are"),
        };
        let objects = objects.with_context(|| format!("{base}: cannot be used"))?;
        let url = ObjectStoreUrl::parse(&base)
            .with_context(|| format!("{base}: is no URL of a store"))?;
        Ok((Store { url, objects }, key.to_owned()))
    }

    pub(crate) fn is_local(&self) -> bool {
        self.url.as_str() == "file:///"
    }

    /// What an object is called in messages and in `log.file.path`.
    pub(crate) fn name(&self, location: &Path) -> String {
        match self.is_local() {
            true => format!("/{location}"),
            false => format!("{}{location}", self.url.as_str()),
        }
    }
}

/// What a store said, in one line: its own code and message where it sent a document, which the text of the error repeats.
pub(crate) fn said(error: &object_store::Error) -> String {
    let text = error.to_string();
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once('<')?.0.to_owned())
    };
    match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ if text.contains("builder error") => {
            format!("{text}; an endpoint without TLS needs AWS_ALLOW_HTTP=true")
        }
        _ => text,
    }
}

/// Whether a word names objects by a URL, and not a file of this machine.
pub(crate) fn is_url(word: &str) -> bool {
    word.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || matches!(it, '+' | '-' | '.'))
    })
}

/// A file of this machine as an object.
pub(crate) fn of_file(path: &FilePath) -> anyhow::Result<ObjectMeta> {
    let name = || path.display().to_string();
    let meta = std::fs::metadata(path).with_context(|| format!("{}: cannot be read", name()))?;
    let path = std::path::absolute(path).with_context(name)?;
    Ok(ObjectMeta {
        location: Path::from_absolute_path(&path).with_context(name)?,
        last_modified: meta.modified().with_context(name)?.into(),
        size: meta.len(),
        e_tag: None,
        version: None,
    })
}

/// The threads that talk to object stores. They are others than those of a query, which may wait for them.
fn threads() -> anyhow::Result<&'static Runtime> {
    static THREADS: OnceLock<Runtime> = OnceLock::new();
    if let Some(threads) = THREADS.get() {
        return Ok(threads);
    }
    let made = Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("objects")
        .enable_all()
        .build()
        .context("the threads of the object stores cannot be started")?;
    Ok(THREADS.get_or_init(|| made))
}

/// Waits on this thread for what a store answers.
pub(crate) fn wait<T: Send + 'static>(
    answer: impl Future<Output = T> + Send + 'static,
) -> anyhow::Result<T> {
    let (sender, answers) = std::sync::mpsc::sync_channel(1);
    threads()?.spawn(async move {
        // The one who asked may be gone.
        let _ = sender.send(answer.await);
    });
    answers.recv().context(
        "the client of the object store gave up: an address, a region or a key in the environment may be wrong",
    )
}
