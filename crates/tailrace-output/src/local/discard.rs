//! The output that accepts everything and keeps nothing: for measuring and for trying a query.

use crate::{Delivered, Encoding, Observer, Payload};

/// Accepts everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscardOutput;

impl DiscardOutput {
    /// Delivered at once.
    pub fn deliver(&self, payload: Payload, observer: &dyn Observer) -> Delivered {
        observer.sending(0, Encoding::Identity);
        let delivered = Delivered {
            rejected: 0,
            message: None,
            attempts: 1,
            encoding: payload.encoding,
            wire_bytes: 0,
        };
        observer.delivered(&delivered);
        delivered
    }
}
