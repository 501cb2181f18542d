//! What an output is given: a request that can be encoded anew, cut, and resolved in one of three
//! ways. The pipeline has the one for records of files; tests have their own.

use tailrace_otlp::Compression;

use super::{Delivered, Payload};

/// A request on its way. It is resolved by exactly one of [`Request::deliver`], [`Request::reject`]
/// and [`Request::give_up`], or by them for its parts; dropping it resolves nothing.
pub trait Request: Send + Sized + 'static {
    /// What is sent.
    fn payload(&self) -> &Payload;

    /// The same request in this compression.
    fn recompress(&self, compression: Compression) -> Payload;

    /// Two requests that hold its records, the first ones and the others, each at least one. It is
    /// asked only of a request of two records or more.
    fn halves(self) -> (Self, Self);

    /// The other side has it.
    fn deliver(self, delivered: &Delivered);

    /// Dead-letters the one record of the request, which the other side rejects while it accepts others.
    ///
    /// # Errors
    ///
    /// Why it cannot be now; it is asked again later.
    fn reject(&mut self, reason: &str) -> Result<(), String>;

    /// The other side refuses everything, and the configuration says not to wait.
    fn give_up(self, reason: &str);
}
