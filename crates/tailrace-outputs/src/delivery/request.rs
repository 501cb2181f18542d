//! The trait of what an output delivers: a request that can be recompressed, cut and resolved in one of three ways. The
//! pipeline implements it for records that were read; tests have their own implementations.

use tailrace_otlp::Compression;

use super::outcome::Delivered;
use super::payload::Payload;

/// A request in flight. It is resolved by exactly one of [`Request::deliver`], [`Request::reject`]
/// and [`Request::give_up`], or by them for its parts; dropping it resolves nothing.
pub trait Request: Send + Sized + 'static {
    /// The bytes to send.
    fn payload(&self) -> &Payload;

    /// The same request in this compression.
    fn recompress(&self, compression: Compression) -> Payload;

    /// Cuts the request in two: the first half of its records, and the second. Each has at least one record. Called only
    /// for requests of two records or more.
    fn halves(self) -> (Self, Self);

    /// Resolves the request as delivered.
    fn deliver(self, delivered: &Delivered);

    /// Dead-letters the one record of the request, which the other side rejects while it accepts others.
    ///
    /// # Errors
    ///
    /// Why that is not possible now. It is tried again later.
    fn reject(&mut self, reason: &str) -> Result<(), String>;

    /// Resolves the request as dropped: the other side refuses everything, and the configuration says not to wait.
    fn give_up(self, reason: &str);
}
