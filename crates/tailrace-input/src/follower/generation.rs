//! Which generation a file begins with, so that no two files are ever known by one inode and generation.
//!
//! An inode is free again as soon as its file is gone, but whoever was told of that file may still speak of it: it
//! is not settled, or is read on from its compressed twin. The next file of the inode begins behind it.

use super::Follower;
use crate::identity::Inode;

impl Follower {
    /// The first generation of an inode that nobody can mistake for another one.
    pub(super) fn next_generation(&self, inode: Inode) -> u32 {
        // One that is gone may be listed under its inode still.
        let listed = self.by_inode.get(&inode);
        let listed = listed.and_then(|&slot| self.files[slot as usize].as_ref());
        let after = listed.map_or(0, |file| file.generation + 1);
        self.floors
            .get(&inode)
            .map_or(after, |&floor| floor.max(after))
    }

    /// A generation is spoken of though the inode may be another file's.
    pub(super) fn reserve_generation(&mut self, inode: Inode, generation: u32) {
        let floor = self.floors.entry(inode).or_default();
        *floor = (*floor).max(generation + 1);
    }

    /// Begins at 0 again if nobody speaks of an inode any more.
    pub(super) fn free_generations(&mut self, inode: Inode) {
        if !self.floors.contains_key(&inode) {
            return;
        }
        let read_and_gone = self.read_and_gone.iter().map(|entry| Inode::from(entry.id));
        let ended = self.ended.values().map(|ended| ended.0);
        let twins = self
            .files
            .iter()
            .flatten()
            .filter(|file| file.twin.is_some());
        let mut spoken_of = ended
            .chain(read_and_gone)
            .chain(twins.map(|file| file.inode));
        if !spoken_of.any(|known| known == inode) {
            self.floors.remove(&inode);
        }
    }
}
