//! The index of well-formed neighbours: one pass over all blocks, whatever records they belong to.
//!
//! Takes the records of a run, gives the same as [`super::build_by_record`], or says that it cannot. Bytes between two
//! records are masked off; as long as there is one, and no record ends inside a string, nothing that a record leaves
//! reaches its neighbour (a last backslash escapes what is between them), and no block needs to be done in parts. Which
//! characters are whose is told afterwards, from the number of characters before each block. Never looks at a record twice.

use super::{BACKSLASH, BLOCK_BYTES, BlockMasks, Index, ODD, Outline, escaped, padded};
use crate::text::Span;

/// What is remembered of the blocks of a run. Used again for the next run.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Bits of bytes that lie in a record; a word more than there are blocks.
    valid: Vec<u64>,
    /// One more than there are.
    blocks: Vec<Block>,
}

/// One block: bit `i` is byte `i`.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    structural: u64,
    bracket: u64,
    backslash: u64,
    odd: u64,
    /// How many structural characters and brackets there are before it in the index.
    structurals: u32,
    brackets: u32,
}

impl Block {
    /// How many structural characters and brackets stand before byte `at`.
    #[inline(always)]
    fn before(&self, at: usize) -> (u32, u32) {
        let below = (1_u64 << (at % BLOCK_BYTES)) - 1;
        (
            self.structurals + (self.structural & below).count_ones(),
            self.brackets + (self.bracket & below).count_ones(),
        )
    }
}

/// What was met anywhere in a run.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    /// Backslashes, and what makes a record odd.
    flagged: u64,
    /// A string goes on where no record is.
    astray: u64,
}

/// How many bytes between two records are looked at in vain rather than jumped over.
const GAP_MAX: usize = BLOCK_BYTES;

/// How many of the records, which ascend and do not overlap, are one run: between two of them there is something, and not
/// much.
#[inline(always)]
pub(super) fn run_len(spans: &[Span]) -> usize {
    let is_next =
        |pair: &&[Span; 2]| (1..=GAP_MAX).contains(&pair[1].start().wrapping_sub(pair[0].end()));
    1 + spans.array_windows().take_while(is_next).count()
}

/// Adds the records of one run, which lie in `buffer`. False, and nothing is added, if one of them ends inside a string.
#[inline(always)]
pub(super) fn build<M: BlockMasks>(
    isa: M,
    buffer: &[u8],
    spans: &[Span],
    index: &mut Index,
) -> bool {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return true;
    };
    let (start, end) = (first.start(), last.end());
    index.blocks.find_valid(spans, start, end);
    index.reserve(end - start);
    let mut blocks = std::mem::take(&mut index.blocks);
    let (met, count) = blocks.fill(
        isa,
        &buffer[start..],
        &mut index.structurals,
        index.count,
        start,
    );
    if met.astray == 0 {
        index.count = count;
        let all = spans.iter().map(|span| blocks.outline(span, start, met));
        index.outlines.extend(all);
    }
    index.blocks = blocks;
    met.astray == 0
}

impl Blocks {
    /// Which bytes from `start` to `end` lie in a record.
    #[inline(always)]
    fn find_valid(&mut self, spans: &[Span], start: usize, end: usize) {
        let count = (end - start).div_ceil(BLOCK_BYTES);
        self.valid.clear();
        self.valid.resize(count + 1, !0);
        for pair in spans.array_windows::<2>() {
            self.clear(pair[0].end() - start, pair[1].start() - start);
        }
        self.clear(end - start, count * BLOCK_BYTES);
        self.valid[count] = 0;
    }

    /// The bytes `from..to`, at most 64, lie in no record.
    #[inline(always)]
    fn clear(&mut self, from: usize, to: usize) {
        let (word, bit) = (from / BLOCK_BYTES, from % BLOCK_BYTES);
        let bits = u128::from(u64::MAX) & ((1 << (to - from)) - 1);
        let bits = bits << bit;
        self.valid[word] &= !(bits as u64);
        self.valid[word + usize::from(bit > 0)] &= !((bits >> BLOCK_BYTES) as u64);
    }

    /// Finds what there is in each block of `bytes`, which start at offset `start` of the buffer; offsets go into `slots`
    /// from number `count` on. Gives what was met, and how many offsets there are now.
    #[inline(always)]
    fn fill<M: BlockMasks>(
        &mut self,
        isa: M,
        bytes: &[u8],
        slots: &mut [u32],
        count: usize,
        start: usize,
    ) -> (Met, usize) {
        let count_blocks = self.valid.len() - 1;
        self.blocks.resize(count_blocks + 1, Block::default());
        let whole = bytes.as_chunks::<BLOCK_BYTES>().0;
        let whole = &whole[..whole.len().min(count_blocks)];
        let mut run = Run::new(start, count);
        for ((block, &valid), found) in whole.iter().zip(&self.valid).zip(&mut self.blocks) {
            run.block(isa, block, valid, slots, found);
        }
        if whole.len() < count_blocks {
            let tail = padded(&bytes[whole.len() * BLOCK_BYTES..]);
            let number = whole.len();
            run.block(
                isa,
                &tail,
                self.valid[number],
                slots,
                &mut self.blocks[number],
            );
        }
        self.blocks[count_blocks] = Block {
            structurals: run.count as u32,
            brackets: run.brackets,
            ..Block::default()
        };
        run.met.astray |= run.in_string;
        (run.met, run.count)
    }

    /// What is known of one record of the run that starts at `start`.
    #[inline(always)]
    fn outline(&self, span: &Span, start: usize, met: Met) -> Outline {
        let (from, to) = (span.start() - start, span.end() - start);
        let (first, brackets) = self.blocks[from / BLOCK_BYTES].before(from);
        let (behind, brackets_behind) = self.blocks[to / BLOCK_BYTES].before(to);
        let flags = if met.flagged == 0 {
            0
        } else {
            self.flags(from, to)
        };
        Outline {
            first,
            count: behind - first,
            brackets: brackets_behind - brackets,
            flags,
        }
    }

    /// The flags of the record at these bytes of the run.
    fn flags(&self, from: usize, to: usize) -> u8 {
        if from == to {
            return 0;
        }
        let (first, last) = (from / BLOCK_BYTES, (to - 1) / BLOCK_BYTES);
        let (mut backslash, mut odd) = (0, 0);
        for (number, block) in (first..).zip(&self.blocks[first..=last]) {
            let mut own = !0;
            if number == first {
                own &= !0 << (from % BLOCK_BYTES);
            }
            if number == last {
                own &= !0 >> (BLOCK_BYTES - 1 - (to - 1) % BLOCK_BYTES);
            }
            backslash |= block.backslash & own;
            odd |= block.odd & own;
        }
        (u8::from(odd != 0) * ODD) | (u8::from(backslash != 0) * BACKSLASH)
    }
}

/// What one block leaves to the next.
#[derive(Debug)]
struct Run {
    /// Offset of the block in the buffer.
    at: u32,
    /// Offsets written so far.
    count: usize,
    brackets: u32,
    /// 1 if the last byte is a backslash that escapes the next byte.
    escapes_next: u64,
    /// All ones inside a string, else 0.
    in_string: u64,
    /// 1 if the last byte closed a string.
    closed: u64,
    met: Met,
}

impl Run {
    fn new(start: usize, count: usize) -> Run {
        Run {
            at: start as u32,
            count,
            brackets: 0,
            escapes_next: 0,
            in_string: 0,
            closed: 0,
            met: Met::default(),
        }
    }

    /// What there is in a block of which the bytes in `valid` lie in records.
    #[inline(always)]
    fn block<M: BlockMasks>(
        &mut self,
        isa: M,
        block: &[u8; BLOCK_BYTES],
        valid: u64,
        slots: &mut [u32],
        found: &mut Block,
    ) {
        let masks = isa.masks(block);
        let backslash = masks.backslash & valid;
        let mut quotes = masks.quote & valid;
        if backslash | self.escapes_next != 0 {
            quotes &= !escaped(backslash, &mut self.escapes_next);
        }
        let in_string = isa.prefix_xor(quotes) ^ self.in_string;
        self.in_string = ((in_string as i64) >> 63) as u64;

        let outside = valid & !in_string;
        let structural = masks.structural & outside;
        let bracket = masks.bracket & structural;
        let closing = quotes & outside;
        let closed = (closing << 1) | self.closed;
        self.closed = closing >> 63;
        let odd = ((masks.control & in_string) | (closed & !structural)) & valid;
        *found = Block {
            structural,
            bracket,
            backslash,
            odd,
            structurals: self.count as u32,
            brackets: self.brackets,
        };
        self.met.flagged |= backslash | odd;
        self.met.astray |= in_string & !valid;

        let place = slots[self.count..].first_chunk_mut();
        isa.write_offsets(place.expect("a slot for every byte"), self.at, structural);
        self.count += structural.count_ones() as usize;
        self.brackets += bracket.count_ones();
        self.at = self.at.wrapping_add(BLOCK_BYTES as u32);
    }
}
