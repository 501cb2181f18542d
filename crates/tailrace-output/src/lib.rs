//! Ways out: requests, over pooled clients, until they are delivered.
//!
//! Takes [`Request`]s from a queue, resolves each with what became of it: delivered, rejected, or given
//! up where the configuration says so. [`drive`] never gives up by itself: it repeats with backoff what
//! the other side may accept later, cuts what is too large, and holds (probes slowly, telling the
//! [`Observer`]) while everything is refused, so that nothing is skipped. A record is rejected only on
//! evidence that it is at fault itself: see `gate`.
//!
//! It never knows about files read, checkpoints or columns, and never compresses or cuts: where another
//! encoding or a part is needed it asks the request.
//!
//! Connections go straight to the endpoint: no proxy is used, whatever the environment says, and no
//! redirect is followed.

mod backoff;
mod dead_letter;
mod deliver;
mod error;
mod gate;
mod local;
mod observer;
mod otlp;
mod outcome;
mod output;
mod payload;
mod request;
mod search;
mod text;

pub use dead_letter::{
    CrashedRecord, DeadLetter, DeadLetterError, DeadLetters, read_dead_letters, write_dead_letters,
};
pub use deliver::{Delivered, DriveConfig, OnRefused, drive};
pub use error::Error;
pub use local::{DiscardOutput, FileOutput, StdoutOutput};
pub use observer::Observer;
pub use otlp::{Compression, Origin, Otlp, OtlpConfig, Protocol, RetryConfig, Setting, TlsConfig};
pub use outcome::{Outcome, RetryCause};
pub use output::Output;
pub use payload::{Encoding, Payload};
pub use request::Request;
