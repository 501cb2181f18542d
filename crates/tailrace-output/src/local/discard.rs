//! The output that accepts everything and keeps nothing: for measuring and for trying a query.

use super::WRITTEN;
use crate::outcome::Answered;

/// Accepts everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscardOutput;

impl DiscardOutput {
    /// Accepted at once.
    pub(crate) fn attempt(self) -> Answered {
        WRITTEN.into()
    }
}
