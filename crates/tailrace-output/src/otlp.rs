//! The OTLP output: requests to one endpoint over HTTP or gRPC. Takes compressed requests, gives what
//! became of them; it never encodes a record and never decides to skip one.

use std::time::Duration;

use reqwest::Url;

mod answer;
mod classify;
mod client;
mod config;
mod endpoint;
mod env;
mod grpc;
mod headers;
mod http;
mod tls;

pub use config::{Compression, Origin, OtlpConfig, Protocol, RetryConfig, Setting, TlsConfig};

use crate::backoff::Backoff;
use crate::deliver::{Patience, Way};
use crate::outcome::{Answered, Outcome, RetryCause};
use crate::search::Search;
use crate::{Encoding, Error, Payload};

const USER_AGENT: &str = concat!("Tailrace/", env!("CARGO_PKG_VERSION"));

/// Sends requests to one endpoint. Deliveries may run side by side; they share connections and what
/// was learnt about encodings.
pub struct Otlp {
    transport: Transport,
    search: Search,
    patience: Patience,
    timeout: Duration,
    endpoint: Url,
}

enum Transport {
    Http(http::Http),
    Grpc(grpc::Grpc),
}

impl Otlp {
    /// Checks the configuration and reads the TLS files. Nothing is connected, and no runtime is
    /// needed, before the first attempt. The environment is not asked: see [`OtlpConfig::with_env`].
    pub fn new(config: OtlpConfig) -> Result<Otlp, Error> {
        let timeout = config.timeout();
        if timeout.is_zero() {
            return Err(Error::value("timeout", "must not be zero"));
        }
        let retry = &config.retry;
        Backoff::try_new(retry.initial, retry.max)
            .map_err(|message| Error::value("retry", message))?;
        let endpoint = endpoint::resolve(&config)?;
        let transport = match config.protocol() {
            Protocol::HttpProtobuf => Transport::Http(http::Http::new(endpoint.clone(), &config)?),
            Protocol::Grpc => Transport::Grpc(grpc::Grpc::new(endpoint.clone(), &config)?),
        };
        let search = match config.compression.unwrap_or(Compression::Auto) {
            Compression::Auto => Search::auto(),
            Compression::Zstd => Search::fixed(Encoding::Zstd),
            Compression::Gzip => Search::fixed(Encoding::Gzip),
            Compression::None => Search::fixed(Encoding::Identity),
        };
        let patience = Patience {
            min: retry.initial,
            max: retry.max,
            after_max: retry.after_max,
            hold: retry.hold,
        };
        Ok(Otlp {
            transport,
            search,
            patience,
            timeout,
            endpoint,
        })
    }

    /// The URL that requests go to. It holds no credentials.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// The encoding new payloads should have: what the endpoint is known to take, else the first
    /// guess. A payload in another one is recoded before it is sent.
    pub fn encoding(&self) -> Encoding {
        self.search.preferred()
    }

    /// Sends `payload` once, as it is.
    pub async fn attempt(&self, payload: &Payload) -> Outcome {
        Way::attempt(self, payload).await.outcome
    }
}

impl Way for Otlp {
    async fn attempt(&self, payload: &Payload) -> Answered {
        let attempt = async {
            match &self.transport {
                Transport::Http(http) => http.attempt(payload).await,
                Transport::Grpc(grpc) => grpc.attempt(payload).await,
            }
        };
        let answered = match tokio::time::timeout(self.timeout, attempt).await {
            Ok(answered) => answered,
            Err(_) => Outcome::Retry {
                cause: RetryCause::Timeout,
                reason: format!("no complete answer within {:?}", self.timeout),
                after: None,
            }
            .into(),
        };
        if let Outcome::Retry { cause, .. } = &answered.outcome
            && *cause != RetryCause::Throttled
        {
            match &self.transport {
                Transport::Http(http) => http.clients.renew(),
                Transport::Grpc(grpc) => grpc.channels.renew(),
            }
        }
        answered
    }

    fn search(&self) -> &Search {
        &self.search
    }

    fn patience(&self) -> &Patience {
        &self.patience
    }
}
