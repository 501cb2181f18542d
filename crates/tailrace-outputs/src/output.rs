//! The interface of outputs to the rest of the agent.

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tailrace_otlp::{Compression, Encoding, Mapping};
use tailrace_schema::DynEq;
use tailrace_schema::section::Tag;

use crate::Error;
use crate::delivery::{DriveConfig, OnRefused, Transport};

/// A type of output: its name in the configuration, its options, how they are read, and an example of its use. Every
/// type is one module and one line of [`OUTPUTS`](crate::OUTPUTS).
pub type OutputType = Tag<Arc<dyn Output>>;

/// The checked options of one output. They determine the encoding of requests, and open the [`Transport`] that sends
/// them.
pub trait Output: Any + DynEq + fmt::Debug + Send + Sync {
    /// The word after `type:`.
    fn type_name(&self) -> &'static str;

    /// Where it sends to, for people: a URL or a path. `None` where there is only one such place.
    fn endpoint(&self) -> Option<String> {
        None
    }

    /// How records are encoded for it.
    fn encoding(&self) -> Arc<dyn Encoding>;

    /// How the first requests are compressed.
    fn compression(&self) -> Compression {
        Compression::None
    }

    /// Opens the output: reads its certificates, but does not connect.
    ///
    /// # Errors
    ///
    /// An option or a file that it names cannot be used.
    fn open(&self) -> Result<Opened, Error>;

    /// Whether requests must be sent in the order in which their records were read.
    fn is_ordered(&self) -> bool {
        false
    }

    /// The maximum size of a request before compression, if the pipeline must know it.
    fn max_request_bytes(&self) -> Option<u64> {
        None
    }

    /// The certificates and keys that it reads.
    fn files(&self) -> Vec<&PathBuf> {
        Vec::new()
    }

    /// The file that it writes to.
    fn writes(&self) -> Option<&Path> {
        None
    }

    /// Where it sends a signal of the agent's own.
    fn signal_url(&self, signal: Signal) -> SignalUrl {
        let _ = signal;
        SignalUrl::Unsupported
    }

    /// Opens a transport of its own for a signal of the agent's own: with the same headers, certificates and limits, to
    /// this URL.
    ///
    /// # Errors
    ///
    /// An option or a file that it names cannot be used, or the type of output takes no signals.
    fn open_signal(&self, signal: Signal, url: &str) -> Result<Arc<dyn Transport>, Error> {
        let _ = (signal, url);
        let message = format!("`{}` takes records alone", self.type_name());
        Err(Error::value("type", message))
    }

    /// Which columns become fields of a LogRecord.
    fn mapping(&self) -> Mapping {
        Mapping::default()
    }

    /// Which facts about their file records carry.
    fn file_attributes(&self) -> FileAttributes {
        FileAttributes::default()
    }

    /// Describes what a column of this name becomes, for people. `None` stands for columns that the query does not name.
    fn becomes(&self, column: Option<&str>) -> String {
        let _ = column;
        "a key of the line".to_owned()
    }
}

impl PartialEq for dyn Output {
    fn eq(&self, other: &dyn Output) -> bool {
        self.is_equal(other as &dyn Any)
    }
}

/// An output that was opened, and how it is driven.
pub struct Opened {
    /// Sends requests.
    pub transport: Arc<dyn Transport>,
    /// The number of requests in flight, and what happens while all are refused.
    pub drive: DriveConfig,
}

impl Opened {
    /// One request at a time, held until it is accepted.
    pub fn in_order(transport: impl Transport + 'static) -> Opened {
        Opened {
            transport: Arc::new(transport),
            drive: DriveConfig {
                concurrency: 1,
                on_refused: OnRefused::Hold,
            },
        }
    }
}

/// What the agent sends about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Lines of its own log.
    Logs,
    /// Its own metrics.
    Metrics,
}

impl Signal {
    /// Its name in URLs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Signal::Logs => "logs",
            Signal::Metrics => "metrics",
        }
    }
}

/// Where an output sends a signal of the agent's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalUrl {
    /// To this URL.
    Known(String),
    /// The options name the URL of another signal alone.
    Unknown,
    /// Nowhere: this type of output takes records alone.
    Unsupported,
}

/// Which facts about their file records carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAttributes {
    /// `log.file.name`.
    pub name: bool,
    /// `log.file.path`.
    pub path: bool,
}
