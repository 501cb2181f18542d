//! Looks at files while nothing of them can be read: a file that comes and goes in that time is known, and so is how much of it was
//! not read.
//!
//! Takes the files that wait for their turn, and gives the events of one without chunks. The files go on waiting.

use std::io;

use super::Follower;
use crate::event::FileEvent;
use crate::file::tracked::Turn;

impl Follower {
    /// Gives every file that waits for its turn, and changed since it was looked at, a turn of which nothing is read.
    pub(super) fn look_at_ready(&mut self, events: &mut Vec<FileEvent>) {
        if !std::mem::take(&mut self.has_changed) {
            return;
        }
        for slot in self.ready.clone() {
            self.await_older();
            let mut before = None;
            // A file is known before those that had its path after it.
            while self.may_have_changed(slot) {
                if !self.has_room_for(slot) {
                    self.has_changed = true;
                    break;
                }
                let older = self.unreported_before(slot);
                let turn = older.filter(|older| self.may_have_changed(*older));
                let turn = turn.unwrap_or(slot);
                if before.replace(turn) == Some(turn) || !self.look_at(turn, events) || turn == slot
                {
                    break;
                }
            }
        }
    }

    fn may_have_changed(&self, slot: u32) -> bool {
        let file = self.files[slot as usize].as_ref();
        file.is_some_and(|file| file.turn == Turn::Changed)
    }

    /// Whether the file is open, or can be.
    fn has_room_for(&mut self, slot: u32) -> bool {
        let file = self.files[slot as usize].as_ref();
        let is_open = file.is_none_or(|file| file.is_open() || file.is_copied());
        is_open || self.open_files < self.config.open_files_max || self.close_idle()
    }

    /// False if it had no turn.
    pub(super) fn look_at(&mut self, slot: u32, events: &mut Vec<FileEvent>) -> bool {
        if !self.has_room_for(slot) {
            self.has_changed = true;
            return false;
        }
        let Some(file) = &mut self.files[slot as usize] else {
            return false;
        };
        file.turn = Turn::Known;
        if file.is_copied() {
            // What is compressed stays as it is.
            self.report_unread_copy(slot, events);
            return true;
        }
        let again = match self.serve_nothing(slot, events) {
            Ok(again) => {
                self.recovered(slot);
                again
            }
            Err(error) => self.failed(slot, &error),
        };
        events.append(&mut self.pending);
        if again {
            self.mark_ready(slot);
        }
        true
    }

    /// A turn of which nothing is read. True if the file wants another one at once.
    pub(super) fn serve_nothing(
        &mut self,
        slot: u32,
        events: &mut Vec<FileEvent>,
    ) -> io::Result<bool> {
        match self.arrive(slot, events)? {
            Ok(stat) => self.look(slot, stat, events),
            Err(again) => Ok(again),
        }
    }
}
