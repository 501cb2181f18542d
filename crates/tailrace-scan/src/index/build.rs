//! Building the index: records are taken one after the other, their bytes in blocks of 64.
//!
//! The loop is generic over the instruction set, which compiles it once more for itself. Never reads past the buffer's
//! end, never carries anything from one record to the next.

use super::block::{BLOCK_BYTES, BlockMasks, Masks};
use crate::text::Span;

/// The index of any number of records. Reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Offsets in the record's buffer. The first `count` count; what follows is left over.
    pub(super) structurals: Vec<u32>,
    pub(super) count: usize,
    pub(super) outlines: Vec<Outline>,
}

/// What the index tells of one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// The record's first structural character, by its place in the list, and how many it has.
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// Braces and brackets outside strings.
    pub(crate) brackets: u32,
    /// It ends inside a string.
    pub(crate) is_unclosed: bool,
}

impl Index {
    /// Forgets all records, and gives back memory that only an extraordinary batch needed.
    pub(crate) fn clear(&mut self) {
        const KEPT: usize = 512 * 1024;
        // Of the batch before this one: a large one after a large one keeps what it needs.
        if self.structurals.len() > KEPT && self.count < KEPT / 2 {
            self.structurals.truncate(KEPT);
            self.structurals.shrink_to_fit();
        }
        self.count = 0;
        self.outlines.clear();
    }

    /// Forgets all records, and keeps at most so many bytes of memory.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.count = 0;
        self.structurals.truncate(bytes / size_of::<u32>());
        self.structurals.shrink_to_fit();
        self.outlines.clear();
        self.outlines.shrink_to(bytes / size_of::<Outline>());
    }

    /// The outline and the structural characters of one record, to be thinned out.
    #[inline]
    pub(crate) fn record_mut(&mut self, record: usize) -> (&mut Outline, &mut [u32]) {
        let outline = &mut self.outlines[record];
        let first = outline.first as usize;
        let own = &mut self.structurals[first..first + outline.count as usize];
        (outline, own)
    }

    /// The structural characters of one record.
    #[inline]
    pub(crate) fn record(&self, record: usize) -> &[u32] {
        let Outline { first, count, .. } = self.outlines[record];
        &self.structurals[first as usize..][..count as usize]
    }

    /// Makes room for the structural characters of so many bytes, and a block more.
    fn reserve(&mut self, bytes: usize) {
        let len = self.count + bytes + 2 * BLOCK_BYTES;
        if self.structurals.len() < len {
            self.structurals.resize(len.next_power_of_two(), 0);
        }
    }
}

/// Adds records whose spans ascend and do not overlap; all of them lie in `buffer`.
#[inline(always)]
pub(super) fn build<M: BlockMasks>(isa: M, buffer: &[u8], spans: &[Span], index: &mut Index) {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return;
    };
    let mut at = first.start();
    let end = last.end();
    index.reserve(end - at);
    let mut offsets = Offsets {
        slots: &mut index.structurals,
        count: index.count,
    };
    let mut spans = spans;
    let mut record = Open::new(&offsets);
    while at < end {
        // The first record that is not finished; there is one, as the block starts before the last one's end.
        let span = spans[0];
        // What lies between two records is nobody's.
        at = at.max(span.start());
        // The blocks that lie in the record with at least a byte of it after them.
        let blocks = span.end().saturating_sub(at + 1) / BLOCK_BYTES;
        let bytes = &buffer[at..at + blocks * BLOCK_BYTES];
        for block in bytes.as_chunks::<BLOCK_BYTES>().0 {
            record.part(isa, &isa.masks(block), !0, at, &mut offsets);
            at += BLOCK_BYTES;
        }
        let masks = match buffer[at..].first_chunk::<BLOCK_BYTES>() {
            Some(block) => isa.masks(block),
            None => isa.masks(&padded(&buffer[at..])),
        };
        let behind = at + BLOCK_BYTES;
        // The records that have a part in this block.
        while let Some((span, rest)) = spans.split_first()
            && span.start() < behind
        {
            let (low, high) = (span.start().max(at) - at, span.end().min(behind));
            let high = high.saturating_sub(at);
            if low < high {
                let valid = (!0 << low) & (!0 >> (BLOCK_BYTES - high));
                let in_string = record.part(isa, &masks, valid, at, &mut offsets);
                record.in_string = ((in_string << (BLOCK_BYTES - high)) as i64 >> 63) as u64;
            }
            if span.end() > behind {
                break;
            }
            index.outlines.push(record.finish(&offsets));
            spans = rest;
        }
        at = behind;
    }
    for _ in spans {
        index.outlines.push(record.finish(&offsets));
    }
    index.count = offsets.count;
}

/// The list of structural characters as it grows; there is a slot for every byte, and a block more.
struct Offsets<'i> {
    slots: &'i mut [u32],
    count: usize,
}

/// The record that is being indexed.
struct Open {
    first: usize,
    brackets: u32,
    /// 1 if the last byte is a backslash that escapes the next byte.
    escapes_next: u64,
    /// All ones inside a string, else 0.
    in_string: u64,
}

impl Open {
    #[inline(always)]
    fn new(offsets: &Offsets<'_>) -> Open {
        Open {
            first: offsets.count,
            brackets: 0,
            escapes_next: 0,
            in_string: 0,
        }
    }

    /// The bytes of a block that `valid` says; gives which of them are in strings.
    #[inline(always)]
    fn part<M: BlockMasks>(
        &mut self,
        isa: M,
        masks: &Masks,
        valid: u64,
        at: usize,
        offsets: &mut Offsets<'_>,
    ) -> u64 {
        let backslash = masks.backslash & valid;
        let quotes = masks.quote & valid & !escaped(backslash, &mut self.escapes_next);
        let in_string = isa.prefix_xor(quotes) ^ self.in_string;
        self.in_string = ((in_string as i64) >> 63) as u64;

        let structurals = masks.structural & valid & !in_string;
        self.brackets += (masks.bracket & structurals).count_ones();

        let slots = offsets.slots[offsets.count..].first_chunk_mut();
        isa.write_offsets(
            slots.expect("a slot for every byte"),
            at as u32,
            structurals,
        );
        offsets.count += structurals.count_ones() as usize;
        in_string
    }

    /// Ends the record and starts the next one.
    #[inline(always)]
    fn finish(&mut self, offsets: &Offsets<'_>) -> Outline {
        let outline = Outline {
            first: self.first as u32,
            count: (offsets.count - self.first) as u32,
            brackets: self.brackets,
            is_unclosed: self.in_string != 0,
        };
        *self = Open::new(offsets);
        outline
    }
}

/// Which bytes an odd run of backslashes stands before.
#[inline(always)]
pub(crate) fn escaped(backslash: u64, escapes_next: &mut u64) -> u64 {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    if backslash == 0 {
        return std::mem::take(escapes_next);
    }
    let unescaped = backslash & !*escapes_next;
    let follows = (unescaped << 1) | *escapes_next;
    let odd_starts = unescaped & !EVEN & !follows;
    let (even_ends, overflow) = odd_starts.overflowing_add(unescaped);
    *escapes_next = u64::from(overflow);
    (EVEN ^ (even_ends << 1)) & follows
}

#[cold]
fn padded(tail: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut block = [b' '; BLOCK_BYTES];
    block[..tail.len()].copy_from_slice(tail);
    block
}
