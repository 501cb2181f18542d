//! Huffman codes of literals (RFC 8878, section 4.2): their lengths, their description, and the streams.
//!
//! Codes have at most 11 bits and are the best ones of this length (package-merge).

use crate::bits::Bits;
use crate::fse;

/// The longest code.
pub(crate) const BITS_MAX: usize = 11;

/// Codes of all bytes, as both ends know them.
pub(crate) struct Codes {
    /// Of each byte: the code in the high bits, its length in the low ones.
    entries: [u64; 256],
    lens: [u8; 256],
    /// What tells a decoder the lengths.
    pub(crate) description: Vec<u8>,
}

impl Codes {
    /// The best codes for bytes that occur so often; `None` if there are fewer than two, or no description fits.
    pub(crate) fn of(counts: &[u32; 256]) -> Option<Codes> {
        let lens = lengths(counts)?;
        let longest = usize::from(*lens.iter().max()?);
        let mut description = Vec::new();
        describe(&lens, longest, &mut description)?;
        // Of codes of one length the first follows the last longer one, without the bit that it has more.
        let mut next = [0u64; BITS_MAX + 2];
        for len in (1..=longest).rev() {
            let longer = lens.iter().filter(|&&other| usize::from(other) == len + 1);
            next[len] = (next[len + 1] + longer.count() as u64) >> 1;
        }
        let mut entries = [0; 256];
        let mut codes = next;
        for (entry, &len) in entries.iter_mut().zip(&lens) {
            if len > 0 {
                let code = &mut codes[usize::from(len)];
                *entry = *code << (64 - u32::from(len)) | u64::from(len);
                *code += 1;
            }
        }
        Some(Codes {
            entries,
            lens,
            description,
        })
    }

    /// How many bits bytes take that occur so often; all of them must have a code.
    pub(crate) fn cost(&self, counts: &[u32; 256]) -> u64 {
        let cost = |(&count, &len): (&u32, &u8)| u64::from(count) * u64::from(len);
        counts.iter().zip(&self.lens).map(cost).sum()
    }

    /// Writes `bytes` as two streams, the first of them of the first `middle` bytes, and gives their lengths. Both are
    /// made at a time, because each is a chain of operations that wait for each other.
    ///
    /// # Panics
    ///
    /// If `out` or `out_2` is not 16 bytes longer than the stream may become, 11 bits a byte.
    pub(crate) fn pair(
        &self,
        bytes: &[u8],
        middle: usize,
        out: &mut [u8],
        out_2: &mut [u8],
    ) -> (usize, usize) {
        let (first, second) = bytes.split_at(middle);
        let (mut one, mut two) = (Stream::new(out), Stream::new(out_2));
        let (head, fives) = first.as_rchunks::<FLUSH_EVERY>();
        let (head_2, fives_2) = second.as_rchunks::<FLUSH_EVERY>();
        let common = fives.len().min(fives_2.len());
        let (rest, fives) = fives.split_at(fives.len() - common);
        let (rest_2, fives_2) = fives_2.split_at(fives_2.len() - common);
        // The last symbol is written first, so that it is read last.
        for (five, five_2) in fives.iter().rev().zip(fives_2.iter().rev()) {
            for at in (1..FLUSH_EVERY).rev() {
                one.add(self.entries[usize::from(five[at])]);
                two.add(self.entries[usize::from(five_2[at])]);
            }
            one.add_clean(self.entries[usize::from(five[0])]);
            two.add_clean(self.entries[usize::from(five_2[0])]);
            one.flush();
            two.flush();
        }
        let tail = |stream: &mut Stream<'_>, rest: &[[u8; FLUSH_EVERY]], head: &[u8]| {
            for five in rest.iter().rev() {
                stream.few(five, &self.entries);
            }
            stream.few(head, &self.entries);
        };
        tail(&mut one, rest, head);
        tail(&mut two, rest_2, head_2);
        (one.finish(), two.finish())
    }
}

/// So many codes and what the last flush left fit in 64 bits.
const FLUSH_EVERY: usize = 5;
const _: () = assert!(FLUSH_EVERY * BITS_MAX + 7 < 64);

/// Bits on their way into a stream: the newest are the highest of the word, so that a code is added by a shift and an
/// or. A code's length is in its low bits, which the next code shifts out.
struct Stream<'a> {
    out: &'a mut [u8],
    at: usize,
    bits: u64,
    /// Number of bits; only the low byte counts.
    count: u64,
}

impl<'a> Stream<'a> {
    fn new(out: &'a mut [u8]) -> Stream<'a> {
        Stream {
            out,
            at: 0,
            bits: 0,
            count: 0,
        }
    }

    /// Adds a code and leaves its length in the low bits, for the codes that follow.
    #[inline(always)]
    fn add(&mut self, entry: u64) {
        self.bits = self.bits >> (entry & 63) | entry;
        self.count = self.count.wrapping_add(entry);
    }

    /// Adds a code that is the last one before a flush.
    #[inline(always)]
    fn add_clean(&mut self, entry: u64) {
        self.bits = self.bits >> (entry & 63) | entry & !0xff;
        self.count = self.count.wrapping_add(entry);
    }

    #[inline(always)]
    fn flush(&mut self) {
        let count = self.count & 0xff;
        // There is a code, so the shift is below 64.
        let bits = self.bits >> (64u64.wrapping_sub(count) & 63);
        let room = self.out[self.at..].first_chunk_mut();
        *room.expect("there is room for eight bytes") = bits.to_le_bytes();
        self.at += (count >> 3) as usize;
        self.count = count & 7;
    }

    fn few(&mut self, bytes: &[u8], entries: &[u64; 256]) {
        for &byte in bytes.iter().rev() {
            self.add_clean(entries[usize::from(byte)]);
        }
        if !bytes.is_empty() {
            self.flush();
        }
    }

    fn finish(mut self) -> usize {
        self.bits = self.bits >> 1 | 1 << 63;
        self.count += 1;
        let is_partial = self.count & 7 != 0;
        self.flush();
        self.at + usize::from(is_partial)
    }
}

/// The lengths of the best codes of at most [`BITS_MAX`] bits; `None` if there are fewer than two bytes.
///
/// Package-merge: a code of a length costs its byte's count once for each bit. Level by level, the leaves and the pairs
/// of the level before are merged by cost; the cheapest items of the last level are chosen, and with a pair what it
/// is made of.
fn lengths(counts: &[u32; 256]) -> Option<[u8; 256]> {
    let mut leaves: Vec<(u64, u8)> = counts
        .iter()
        .zip(0..=255)
        .filter(|&(&count, _)| count > 0)
        .map(|(&count, byte)| (u64::from(count), byte))
        .collect();
    if leaves.len() < 2 {
        return None;
    }
    leaves.sort_unstable();
    // Of each level, which of its items are leaves.
    let mut levels: Vec<Vec<bool>> = Vec::with_capacity(BITS_MAX);
    let mut pairs: Vec<u64> = Vec::new();
    for _ in 0..BITS_MAX {
        let (mut costs, mut are_leaves) = (Vec::with_capacity(512), Vec::with_capacity(512));
        let (mut leaf, mut pair) = (0, 0);
        while leaf < leaves.len() || pair < pairs.len() {
            let is_leaf = match (leaves.get(leaf), pairs.get(pair)) {
                (Some((cost, _)), Some(of_pair)) => cost <= of_pair,
                (leaf, _) => leaf.is_some(),
            };
            if is_leaf {
                costs.push(leaves[leaf].0);
                leaf += 1;
            } else {
                costs.push(pairs[pair]);
                pair += 1;
            }
            are_leaves.push(is_leaf);
        }
        pairs = costs
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[a, b]| a + b)
            .collect();
        levels.push(are_leaves);
    }
    let mut lens = [0; 256];
    let mut chosen = 2 * leaves.len() - 2;
    for are_leaves in levels.iter().rev() {
        let of_leaves = are_leaves[..chosen].iter().filter(|&&is_leaf| is_leaf);
        let of_leaves = of_leaves.count();
        for (_, byte) in &leaves[..of_leaves] {
            lens[usize::from(*byte)] += 1;
        }
        chosen = 2 * (chosen - of_leaves);
    }
    Some(lens)
}

/// Appends the description of code lengths (section 4.2.1): weights of all bytes but the last one, compressed where
/// that is shorter. `None` if they cannot be compressed and are too many to be listed.
fn describe(lens: &[u8; 256], longest: usize, out: &mut Vec<u8>) -> Option<()> {
    /// More weights than this cannot be listed.
    const LISTED_MAX: usize = 128;
    let last = lens.iter().rposition(|&len| len > 0)?;
    let weight = |&len: &u8| match len {
        0 => 0,
        _ => (longest + 1 - usize::from(len)) as u8,
    };
    let weights: Vec<u8> = lens[..last].iter().map(weight).collect();
    let listed = weights.len().div_ceil(2);
    match compress_weights(&weights) {
        Some(compressed) if weights.len() > LISTED_MAX || compressed.len() < listed => {
            out.push(compressed.len() as u8);
            out.extend(compressed);
        }
        _ if weights.len() <= LISTED_MAX => {
            out.push((127 + weights.len()) as u8);
            let halves = weights.chunks(2);
            out.extend(halves.map(|two| two[0] << 4 | two.get(1).copied().unwrap_or(0)));
        }
        _ => return None,
    }
    Some(())
}

/// Weights as FSE makes them shorter (section 4.2.1.2); `None` if it cannot, or if they are too long.
fn compress_weights(weights: &[u8]) -> Option<Vec<u8>> {
    const WEIGHTS_LOG: u32 = 6;
    const COMPRESSED_MAX: usize = 127;
    if weights.len() < 2 {
        return None;
    }
    let mut counts = [0; fse::SYMBOLS];
    for &weight in weights {
        counts[usize::from(weight)] += 1;
    }
    let distribution = fse::Distribution::of(&counts, WEIGHTS_LOG)?;
    let table = fse::Table::new(&distribution);
    let mut compressed = Vec::new();
    distribution.describe(&mut compressed);
    let mut stream = [0; 256 + 16];
    let mut bits = Bits::new(&mut stream);
    // Two states take turns: the even places are the first one's.
    let mut states: [Option<u32>; 2] = [None; 2];
    for (at, &weight) in weights.iter().enumerate().rev() {
        let (state, symbol) = (&mut states[at % 2], u32::from(weight));
        *state = Some(match *state {
            None => table.first_state(symbol),
            Some(state) => table.encode(state, symbol, &mut bits),
        });
        bits.flush();
    }
    table.finish(states[1]?, &mut bits);
    table.finish(states[0]?, &mut bits);
    let len = bits.finish_marked();
    compressed.extend_from_slice(&stream[..len]);
    (compressed.len() <= COMPRESSED_MAX).then_some(compressed)
}

#[cfg(test)]
mod tests;
