//! Holes in files: nothing was ever written there, and they read as NULs.
//!
//! A file that is cut under a writer that does not append begins with one: the writer goes on where it was, so that the file
//! has its old size again at the next line. Where another writer has written to it meanwhile, the hole lies behind its lines.
//! They are passed over without being read: each cut leaves a larger hole, and it may be larger than the disk. What is left
//! of it, before and in the first block that was written, is skipped with the line that it stands before.

use std::io;

use super::Follower;
use crate::event::{FileEvent, SkipReason};

/// A smaller hole is read: to ask where it ends costs a system call for each new file.
const HOLE_BYTES_MIN: u64 = 256 * 1024;
const HOLE_BYTES_LEFT: u64 = 1024;

impl Follower {
    /// Moves the offset of an open file that has this size behind the hole that begins there. Where some of it was read, its
    /// source ends, and another one begins. False if the file is not what it was.
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
        let (from, in_line) = (file.offset, file.is_in_line());
        if size - from < HOLE_BYTES_MIN || !file.may_have_hole() {
            return Ok(true);
        }
        // A little is left, so that it is known for a hole where it is framed.
        let end = file.hole_end(size)?.saturating_sub(HOLE_BYTES_LEFT);
        if end < from + HOLE_BYTES_MIN {
            return Ok(true);
        }
        let is_read = file.chunked;
        if is_read {
            self.finish_source(slot, in_line, events);
        }
        let Some(file) = &mut self.files[slot as usize] else {
            return Ok(true);
        };
        if !file.skip_to(end, key)? {
            return Ok(false);
        }
        if is_read {
            self.come_back(slot, size, in_line, events);
        } else {
            self.report_opened_again(slot, size, events);
        }
        let Some(file) = &self.files[slot as usize] else {
            return Ok(true);
        };
        events.push(FileEvent::Skipped {
            source: file.source,
            bytes: end - from,
            reason: SkipReason::Nul,
        });
        Ok(true)
    }
}
