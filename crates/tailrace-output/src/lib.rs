//! Ways out: one request, over pooled clients, until it is delivered.
//!
//! Takes a [`Payload`] (the bytes of one request, encoded and compressed by others), gives
//! [`Delivered`] once somebody has accepted it. `deliver` never gives up: it retries with backoff
//! what the other side may accept later, and holds (probes slowly, telling the [`Observer`]) what it
//! refuses, so that nothing is skipped. Dropping the future is the one way to stop it.
//!
//! It never knows about files read, checkpoints or columns, and never compresses: where another
//! encoding is needed it asks the closure it was given.
//!
//! Connections go straight to the endpoint: no proxy is used, whatever the environment says, and no
//! redirect is followed.

mod backoff;
mod deliver;
mod error;
mod local;
mod observer;
mod otlp;
mod outcome;
mod output;
mod payload;
mod search;
mod text;

pub use deliver::Delivered;
pub use error::Error;
pub use local::{DiscardOutput, FileOutput, StdoutOutput};
pub use observer::Observer;
pub use otlp::{Compression, Origin, Otlp, OtlpConfig, Protocol, RetryConfig, Setting, TlsConfig};
pub use outcome::{Outcome, RetryCause};
pub use output::Output;
pub use payload::{Encoding, Payload, Recode};
