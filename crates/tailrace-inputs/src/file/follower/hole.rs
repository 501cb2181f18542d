//! The hole that a file begins with, where it was cut under a writer that does not append.
//!
//! Such a writer goes on where it was, so that the file has its old size again at the next line, and nothing but NULs
//! before that. They are passed over without being read: each cut leaves a larger hole, and it may be larger than the disk.
//! What is left of it, before and in the first block that was written, is skipped with the line that it stands before.
//! A hole behind what was read is read.

use std::io;

use super::Follower;
use crate::event::{FileEvent, SkipReason};

/// A smaller hole is read: to ask where it ends costs a system call for each new file.
const HOLE_BYTES_MIN: u64 = 256 * 1024;
const HOLE_BYTES_LEFT: u64 = 1024;

impl Follower {
    /// Moves the offset of an open file of which nothing was read, and that has this size, behind its hole. False if the
    /// file is not what it was.
    pub(super) fn pass_hole(
        &mut self,
        slot: u32,
        size: u64,
        events: &mut Vec<FileEvent>,
    ) -> io::Result<bool> {
        let key = self.config.fingerprint_key;
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(true);
        };
        if file.offset > 0 || file.chunked || size < HOLE_BYTES_MIN {
            return Ok(true);
        }
        // A little is left, so that it is known for a hole where it is framed.
        let end = file.hole_end(size)?.saturating_sub(HOLE_BYTES_LEFT);
        if end < HOLE_BYTES_MIN {
            return Ok(true);
        }
        if !file.skip_to(end, key)? {
            return Ok(false);
        }
        let source = file.source;
        self.report_opened_again(slot, size, events);
        events.push(FileEvent::Skipped {
            source,
            bytes: end,
            reason: SkipReason::Nul,
        });
        Ok(true)
    }
}
