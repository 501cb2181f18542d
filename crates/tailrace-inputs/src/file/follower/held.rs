//! What deleted files keep on the disk, and its limit.
//!
//! Takes the files that are open and have no name any more. Beyond `held_bytes_max` the path that holds most
//! gives up its oldest file, with every unread byte of it reported as lost; the others stay. Never touches a
//! file that still has a name.

use std::collections::HashMap;
use std::path::Path;

use super::Follower;
use crate::event::{FileEvent, LossReason, ProblemKind};

impl Follower {
    /// A file has lost its last name.
    pub(super) fn hold_deleted(&mut self, slot: u32) {
        if !self.held.contains(&slot) {
            self.held.push(slot);
        }
        self.unacked_lost_name(slot);
    }

    /// Bytes on disk that only this follower's descriptors keep there, as last seen.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let files = self.held.iter();
        let files = files.filter_map(|&slot| self.files[slot as usize].as_ref());
        let held = files.filter(|file| file.is_deleted() && file.is_open());
        held.map(|file| file.size).sum()
    }

    /// Gives up deleted files until the rest is within the limit.
    pub(super) fn limit_held(&mut self) {
        let files = &mut self.files;
        self.held.retain(|&slot| {
            let file = files[slot as usize].as_mut();
            file.is_some_and(|file| {
                file.refresh_size();
                file.is_deleted() && file.is_open()
            })
        });
        if self.held_bytes() + self.unacked_bytes() > self.config.held_bytes_max {
            self.let_unacked_go();
        }
        while self.held_bytes() > self.config.held_bytes_max {
            let Some(slot) = self.noisiest() else { break };
            self.held.retain(|&held| held != slot);
            let mut events = std::mem::take(&mut self.pending);
            self.report_given_up(slot, &mut events);
            self.end(slot, LossReason::Held, &mut events);
            self.pending = events;
        }
    }

    /// The oldest held file of the path that holds most.
    fn noisiest(&self) -> Option<u32> {
        let mut paths: HashMap<&Path, (u64, u64, u32)> = HashMap::new();
        for &slot in &self.held {
            let Some(file) = &self.files[slot as usize] else {
                continue;
            };
            let path = paths.entry(&file.origin).or_insert((0, u64::MAX, slot));
            path.0 += file.size;
            if file.created_at < path.1 {
                (path.1, path.2) = (file.created_at, slot);
            }
        }
        let most = paths.into_values().max_by_key(|path| path.0)?;
        Some(most.2)
    }

    fn report_given_up(&self, slot: u32, events: &mut Vec<FileEvent>) {
        // What is read of it may still be in flight, which is nobody's loss yet.
        let file = self.files[slot as usize].as_ref();
        let Some(file) = file.filter(|file| file.unread() > 0) else {
            return;
        };
        let message = format!(
            "was deleted and given up with {} of its {} bytes unread: deleted files would hold more than \
             limits.held_bytes, {}, and this path held most of it",
            file.unread(),
            file.size,
            self.config.held_bytes_max
        );
        let path = file.path.to_path_buf();
        events.push(FileEvent::Problem {
            kind: ProblemKind::Notice,
            path,
            message,
        });
    }
}
