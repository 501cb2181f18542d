//! Many literals that may stand in one place.
//!
//! Where each record has other keys, hundreds of literals may follow one: to compare all of them takes longer than to walk the
//! record. They are parted by a hash of their beginning, up to the quote that ends the first key, so that few are compared.
//! Never decides which one stands there.

use super::NONE;
use crate::index::PROBE_BYTES;

/// How many lists there are.
const LISTS: usize = 128;

/// The first literal of each list, by number of its node. The tails, which have no key, are a list of their own.
#[derive(Debug)]
pub(crate) struct Crowd {
    lists: Box<[u32; LISTS]>,
    tails: u32,
}

impl Crowd {
    /// None.
    pub(super) fn new() -> Crowd {
        Crowd {
            lists: Box::new([NONE; LISTS]),
            tails: NONE,
        }
    }

    /// The list of literals that begin like this; bytes after the literal do not matter.
    #[inline]
    pub(crate) fn list(&self, beginning: &[u8; PROBE_BYTES], quotes: u32) -> u32 {
        self.lists[hash(beginning, quotes)]
    }

    /// The list of tails.
    #[inline]
    pub(crate) fn tails(&self) -> u32 {
        self.tails
    }

    /// The list to which a literal with this beginning belongs.
    pub(super) fn list_mut(&mut self, beginning: &[u8; PROBE_BYTES], is_tail: bool) -> &mut u32 {
        if is_tail {
            return &mut self.tails;
        }
        let bits = beginning.iter().enumerate();
        let quotes = bits.fold(0, |quotes, (i, &byte)| {
            quotes | u32::from(byte == b'"') << i
        });
        &mut self.lists[hash(beginning, quotes)]
    }
}

/// Of the bytes up to the second quote, or of all of them if there is none; a multiplicative hash.
#[inline]
fn hash(beginning: &[u8; PROBE_BYTES], quotes: u32) -> usize {
    let second = quotes & quotes.wrapping_sub(1);
    // All ones up to the second quote; or else all ones.
    let used = second ^ second.wrapping_sub(1);
    let mut hash = 0_u64;
    for (i, word) in beginning.as_chunks::<8>().0.iter().enumerate() {
        let kept = (used >> (8 * i) & 0xff).count_ones();
        let mask = u64::MAX.checked_shr(u64::BITS - 8 * kept).unwrap_or(0);
        hash = (hash ^ u64::from_le_bytes(*word) & mask).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    hash as usize % LISTS
}
