//! A frame (RFC 8878, section 3.1.1): its header, and where blocks end.
//!
//! Matches are pushed in order. What is between them becomes literals. A block ends where the last match ended before it
//! would be too long; a block that does not become shorter is stored.

use crate::compare::word;
use crate::entropy::Entropy;
use crate::sequences::{MATCH_MIN, Packed};

/// No block has more content.
pub(crate) const BLOCK_MAX: usize = 128 << 10;
/// There are so many bytes before each match, and before what it repeats.
pub(crate) const BEFORE_MATCH: usize = 8;

const HEADER: usize = 9;
const BLOCK_HEADER: usize = 3;
const STORED: u32 = 0;
const COMPRESSED: u32 = 2;
/// Content that is stored without being tried.
const TINY: usize = 16;
/// Literals are copied in steps of this size where that is possible.
const STEP: usize = 32;
/// The offsets that a frame starts with; the third one is not used.
const REPEATS: [u32; 2] = [1, 4];

/// Writes one frame after the other.
pub(crate) struct Writer {
    /// The content before this is in sequences.
    anchor: usize,
    /// Where the content of the block starts.
    block_start: usize,
    /// The last two offsets, the last one first, and what they were when the block started.
    repeats: [u32; 2],
    repeats_before: [u32; 2],
    literals: Box<[u8]>,
    literal_count: usize,
    sequences: Box<[Packed]>,
    sequence_count: usize,
    entropy: Entropy,
    /// `out[..at]` is written.
    out: Vec<u8>,
    at: usize,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer {
            anchor: 0,
            block_start: 0,
            repeats: REPEATS,
            repeats_before: REPEATS,
            literals: vec![0; BLOCK_MAX + STEP].into(),
            literal_count: 0,
            sequences: vec![Packed::default(); BLOCK_MAX / MATCH_MIN + 1].into(),
            sequence_count: 0,
            entropy: Entropy::new(),
            out: Vec::new(),
            at: 0,
        }
    }

    /// Starts a frame of `len` bytes of content.
    pub(crate) fn start(&mut self, len: u32) {
        const MAGIC: u32 = 0xfd2f_b528;
        /// The window is the content, whose length has four bytes; no checksum.
        const DESCRIPTOR: u8 = 0b1010_0000;
        self.anchor = 0;
        self.block_start = 0;
        self.repeats = REPEATS;
        self.repeats_before = REPEATS;
        self.literal_count = 0;
        self.sequence_count = 0;
        self.entropy.start();
        self.at = 0;
        self.reserve(HEADER);
        self.out[..4].copy_from_slice(&MAGIC.to_le_bytes());
        self.out[4] = DESCRIPTOR;
        self.out[5..HEADER].copy_from_slice(&len.to_le_bytes());
        self.at = HEADER;
    }

    /// Where the last match ended.
    #[inline(always)]
    pub(crate) fn anchor(&self) -> usize {
        self.anchor
    }

    /// Adds a match: the `len` bytes at `at` are those `distance` bytes before. It is made longer towards the front by
    /// up to eight bytes, or shorter if a block cannot hold it; the anchor says where it ends.
    ///
    /// `at` is not before the anchor, `len` is at least [`MATCH_MIN`], and there are [`BEFORE_MATCH`] bytes before
    /// `at - distance`.
    #[inline(always)]
    pub(crate) fn push(&mut self, bytes: &[u8], at: usize, distance: usize, len: usize) {
        let before = at - BEFORE_MATCH;
        let differ = word(bytes, before) ^ word(bytes, before - distance);
        let more = ((differ.leading_zeros() / 8) as usize).min(at - self.anchor);
        let (at, mut len) = (at - more, len + more);
        if at + len - self.block_start > BLOCK_MAX {
            len = self.cut(bytes, at, len);
        }
        let literals = at - self.anchor;
        self.add_literals(&bytes[self.anchor..], literals);
        self.anchor = at + len;
        let offset = self.offset_value(distance as u32, literals);
        self.sequences[self.sequence_count] = Packed::new(literals, len, offset);
        self.sequence_count += 1;
    }

    #[inline(always)]
    fn add_literals(&mut self, from: &[u8], count: usize) {
        let to = &mut self.literals[self.literal_count..];
        match (to.first_chunk_mut::<STEP>(), from.first_chunk::<STEP>()) {
            (Some(to), Some(from)) if count <= STEP => *to = *from,
            _ => to[..count].copy_from_slice(&from[..count]),
        }
        self.literal_count += count;
    }

    /// The Offset_Value of a distance (section 3.1.1.5).
    #[inline(always)]
    fn offset_value(&mut self, distance: u32, literals: usize) -> u32 {
        let [last, one_before] = self.repeats;
        if distance == last && literals > 0 {
            return 1;
        }
        self.repeats = [distance, last];
        if distance == one_before {
            // Without literals the last offset is of no use, and the others move up.
            1 + u32::from(literals > 0)
        } else {
            distance + 3
        }
    }

    /// Ends the block before a match that it cannot hold; gives the length of the match that the next one can.
    #[cold]
    #[inline(never)]
    fn cut(&mut self, bytes: &[u8], at: usize, len: usize) -> usize {
        self.end_at_anchor(bytes);
        // Literals so long that nothing repeats in them.
        while at - self.anchor > BLOCK_MAX / 2 {
            let stored = (at - self.anchor).min(BLOCK_MAX);
            self.store(bytes, stored, false);
            self.anchor = self.block_start;
        }
        len.min(BLOCK_MAX - (at - self.anchor))
    }

    fn end_at_anchor(&mut self, bytes: &[u8]) {
        if self.anchor > self.block_start {
            self.end_block(bytes, self.anchor, false);
        }
    }

    /// Ends the frame.
    pub(crate) fn finish(&mut self, bytes: &[u8]) {
        if bytes.len() - self.block_start > BLOCK_MAX {
            self.end_at_anchor(bytes);
        }
        while bytes.len() - self.block_start > BLOCK_MAX {
            self.store(bytes, BLOCK_MAX, false);
            self.anchor = self.block_start;
        }
        self.add_literals(&bytes[self.anchor..], bytes.len() - self.anchor);
        self.end_block(bytes, bytes.len(), true);
    }

    /// The frame, once it has ended.
    pub(crate) fn frame(&self) -> &[u8] {
        &self.out[..self.at]
    }

    /// Keeps at most so much memory for frames.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.out.truncate(bytes);
        self.out.shrink_to(bytes);
        self.at = 0;
    }

    fn end_block(&mut self, bytes: &[u8], end: usize, is_last: bool) {
        let len = end - self.block_start;
        let literals = &self.literals[..self.literal_count];
        let sequences = &self.sequences[..self.sequence_count];
        let mut compressed = len;
        if len > TINY {
            let room = Entropy::room(literals.len(), sequences.len());
            reserve(&mut self.out, self.at + BLOCK_HEADER + room);
            let out = &mut self.out[self.at + BLOCK_HEADER..];
            compressed = self.entropy.write(literals, sequences, out);
            if compressed >= len {
                self.entropy.forget();
            }
        }
        if compressed >= len {
            self.store(bytes, len, is_last);
            self.repeats = self.repeats_before;
        } else {
            self.block_header(COMPRESSED, compressed, is_last);
            self.at += compressed;
            self.block_start = end;
        }
        self.repeats_before = self.repeats;
        self.literal_count = 0;
        self.sequence_count = 0;
    }

    /// Writes a block of the next `len` bytes as they are.
    fn store(&mut self, bytes: &[u8], len: usize, is_last: bool) {
        self.reserve(BLOCK_HEADER + len);
        self.block_header(STORED, len, is_last);
        let end = self.block_start + len;
        self.out[self.at..self.at + len].copy_from_slice(&bytes[self.block_start..end]);
        self.at += len;
        self.block_start = end;
    }

    fn block_header(&mut self, kind: u32, len: usize, is_last: bool) {
        let word = u32::from(is_last) | kind << 1 | (len as u32) << 3;
        let header = &mut self.out[self.at..self.at + BLOCK_HEADER];
        header.copy_from_slice(&word.to_le_bytes()[..BLOCK_HEADER]);
        self.at += BLOCK_HEADER;
    }

    fn reserve(&mut self, count: usize) {
        reserve(&mut self.out, self.at + count);
    }
}

/// Makes sure that there are `len` bytes, whatever is in them.
fn reserve(out: &mut Vec<u8>, len: usize) {
    if out.len() < len {
        out.resize(len, 0);
    }
}
