//! What is known of a file while it is closed: whether it was written to since it was looked at.
//!
//! Takes changes by their numbers, for those that come late may be of what was read before. How much was written is not
//! known: only a look at the open file shows that.

/// A file that is closed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closed {
    /// Changes of its name from this number on came after it was closed.
    since: u64,
    is_written: bool,
    /// The caller was told that it is gone with what was written.
    is_told: bool,
}

impl Closed {
    /// It is closed before the change of this number, and may have grown since it was looked at.
    pub(crate) fn new(since: u64, is_grown: bool) -> Self {
        Self {
            since,
            is_written: is_grown,
            is_told: false,
        }
    }

    /// Bytes were written to it or cut, as the change of this number says.
    pub(crate) fn was_changed(&mut self, number: u64) {
        self.is_written |= number >= self.since;
    }

    /// It was seen to have grown.
    pub(crate) fn was_written_to(&mut self) {
        self.is_written = true;
    }

    pub(crate) fn is_written(&self) -> bool {
        self.is_written
    }

    /// The caller is told whether it is gone with what was written to it. False if it was told so before.
    pub(crate) fn tell(&mut self, is_unseen: bool) -> bool {
        self.is_written |= is_unseen;
        std::mem::replace(&mut self.is_told, is_unseen) != is_unseen
    }
}
