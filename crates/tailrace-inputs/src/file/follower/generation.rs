//! Which generation a file begins with, so that no two files of a follower are ever known by one inode and generation.
//!
//! An inode is free again as soon as its file is gone, but somebody may still speak of that file: its source has ended
//! and is not acked, it is read on from its compressed copy, or it may have to be. Each of them holds its generation
//! until it lets go, and the next file of the inode begins behind all that are held.

use std::collections::HashMap;

use super::Follower;
use crate::identity::Inode;

/// The generations that are held.
#[derive(Debug, Default)]
pub(super) struct Generations(HashMap<Inode, Held>);

#[derive(Debug, Default)]
struct Held {
    /// Behind all that were held since there were none.
    next: u32,
    holders: usize,
}

impl Generations {
    /// Somebody speaks of a generation of an inode from now on.
    pub(super) fn hold(&mut self, inode: Inode, generation: u32) {
        let held = self.0.entry(inode).or_default();
        held.next = held.next.max(generation + 1);
        held.holders += 1;
    }

    /// One of those who held a generation of an inode speaks of it no more.
    pub(super) fn let_go(&mut self, inode: Inode) {
        if let Some(held) = self.0.get_mut(&inode) {
            held.holders -= 1;
            if held.holders == 0 {
                self.0.remove(&inode);
            }
        }
    }

    /// The first generation of an inode behind all that are held.
    pub(super) fn next(&self, inode: Inode) -> u32 {
        self.0.get(&inode).map_or(0, |held| held.next)
    }

    #[cfg(test)]
    pub(super) fn are_free(&self) -> bool {
        self.0.is_empty()
    }
}

impl Follower {
    /// The first generation of an inode that nobody can mistake for another one.
    pub(super) fn next_generation(&self, inode: Inode) -> u32 {
        // One that is gone may be listed under its inode still.
        let listed = self.by_inode.get(&inode);
        let listed = listed.and_then(|&slot| self.files[slot as usize].as_ref());
        let after = listed.map_or(0, |file| file.generation + 1);
        self.generations.next(inode).max(after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_rise_as_long_as_one_is_held() {
        let [one, other] = [1, 2].map(|inode| Inode { device: 1, inode });
        let mut generations = Generations::default();
        for (held, next) in [(4, 5), (0, 5), (5, 6)] {
            generations.hold(one, held);
            assert_eq!((generations.next(one), generations.next(other)), (next, 0));
        }
        for next in [6, 6, 0] {
            generations.let_go(one);
            assert_eq!(generations.next(one), next);
        }
        assert!(generations.are_free());
    }
}
