//! Opens, at a first start, what `start_at` and `ignore_older` leave out.
//!
//! Gives the events of these files and reads none of their records: a caller that writes down that it has started writes down with
//! it where each of them goes on. Files that are read from their first byte wait for their turn as ever.

use std::collections::VecDeque;

use super::Follower;
use crate::event::FileEvent;
use crate::file::tracked::Turn;

/// How many files one call opens, so that a caller with many gets to act on their events.
const TURNS_MAX: usize = 1024;

impl Follower {
    /// Opens some of the files that are left out, up to their end. False if there are no more. A file that cannot be
    /// opened is tried again when its time comes.
    pub fn open_skipped(&mut self, events: &mut Vec<FileEvent>) -> bool {
        self.await_older();
        let (mut turns, mut others) = (Vec::new(), VecDeque::new());
        for slot in std::mem::take(&mut self.ready) {
            if turns.len() < TURNS_MAX && self.is_skipped(slot) {
                turns.push(slot);
            } else {
                others.push_back(slot);
            }
        }
        self.ready = others;
        for &slot in &turns {
            // One before it may have taken it along.
            if self.is_skipped(slot) {
                self.look_at_older(slot, events);
                self.open_one_skipped(slot, events);
            }
        }
        events.append(&mut self.pending);
        !turns.is_empty()
    }

    fn is_skipped(&self, slot: u32) -> bool {
        let file = self.files[slot as usize].as_ref();
        file.is_some_and(|file| file.skip.is_some())
    }

    /// A file is known before those that had its path after it.
    fn look_at_older(&mut self, slot: u32, events: &mut Vec<FileEvent>) {
        let mut before = None;
        while let Some(older) = self.unreported_before(slot) {
            if before.replace(older) == Some(older) {
                break;
            }
            if self.is_skipped(older) {
                self.open_one_skipped(older, events);
            } else if !self.look_at(older, events) {
                break;
            }
        }
    }

    fn open_one_skipped(&mut self, slot: u32, events: &mut Vec<FileEvent>) {
        if let Some(file) = &mut self.files[slot as usize] {
            file.turn = Turn::None;
        }
        events.append(&mut self.pending);
        let again = match self.serve_nothing(slot, events) {
            Ok(again) => {
                self.recovered(slot);
                self.close_if_read(slot);
                again
            }
            Err(error) => self.failed(slot, &error),
        };
        if again {
            self.mark_ready(slot);
        }
    }

    /// There may be more files than can be open, and the checkpoint is not written yet, which needs a descriptor too.
    fn close_if_read(&mut self, slot: u32) {
        let file = self.files[slot as usize].as_ref();
        if file.is_some_and(|file| file.unread() == 0) {
            self.close_for_idleness(slot);
        }
    }
}
