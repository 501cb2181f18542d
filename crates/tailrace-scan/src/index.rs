//! The structural index of one record: where its structural characters outside strings are.
//!
//! Takes a record's bytes, gives the offsets of `{ } [ ] : ,` outside strings, a bit mask of the quotes, and whether
//! the record holds a backslash, a control character inside a string, or a string that does not close. Never looks at
//! what stands between them, never reads past a buffer's end.
//!
//! What it computes, byte by byte:
//!
//! ```text
//! escaped = in_string = false
//! for (i, byte) in record:
//!     if not escaped and byte == '"': quotes[i] = 1; in_string = !in_string
//!     if in_string and byte < 0x20: has_control = true
//!     if not in_string and byte in "{}[]:,": structurals.push(i)
//!     escaped = not escaped and byte == '\'
//! unclosed = in_string
//! ```
//!
//! A backslash escapes the byte behind it wherever it stands, also outside strings, where it is an error anyway: the
//! rule is the same for every record and every instruction set. How 64 bytes are done at once:
//!
//! 1. *Escaped quotes.* A quote is escaped if an odd run of backslashes ends before it. Runs that start on odd offsets
//!    are added to the backslash mask: the carry ends up behind the run, on an even or odd offset, which tells the
//!    parity of its length. The carry out of the block is carried over.
//! 2. *In-string.* The xor of all quote bits at or below an offset, by one carry-less multiplication with all ones (or
//!    six shifts and xors), and the state the last block ended with.
//! 3. *The tail.* The last block is read whole where the buffer reaches that far, and bits behind the record are masked
//!    off; at a buffer's end it is copied into a block of spaces.
//! 4. *Bits to offsets.* Eight at a time without a branch; what is written beyond the count is overwritten by the next
//!    block.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod dispatch;
mod scalar;

pub(crate) use dispatch::Indexer;

/// Bytes per block: one bit each in a `u64`.
const BLOCK_BYTES: usize = 64;

/// The index of one record. Offsets count from the record's start. Reused from record to record.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// The first `count` are the offsets of structural characters, ascending; what follows is left over.
    structurals: Vec<u32>,
    count: usize,
    /// Bit `i % 64` of word `i / 64`: byte `i` is a quote that is not escaped.
    quotes: Vec<u64>,
    brackets: u32,
    has_backslash: bool,
    has_control: bool,
    unclosed: bool,
}

impl Index {
    /// Offsets of the structural characters outside strings, ascending.
    #[inline]
    pub(crate) fn structurals(&self) -> &[u32] {
        &self.structurals[..self.count]
    }

    /// How many of the structural characters are brackets or braces.
    #[inline]
    pub(crate) fn brackets(&self) -> u32 {
        self.brackets
    }

    /// The record holds a backslash.
    #[inline]
    pub(crate) fn has_backslash(&self) -> bool {
        self.has_backslash
    }

    /// A string of the record holds a byte below 0x20.
    #[inline]
    pub(crate) fn has_control(&self) -> bool {
        self.has_control
    }

    /// The record ends inside a string.
    #[inline]
    pub(crate) fn unclosed(&self) -> bool {
        self.unclosed
    }

    /// The first quote that is not escaped at or behind `at`.
    #[inline]
    pub(crate) fn next_quote(&self, at: usize) -> Option<usize> {
        let mut word = at / BLOCK_BYTES;
        let mut bits = *self.quotes.get(word)? & (!0 << (at % BLOCK_BYTES));
        while bits == 0 {
            word += 1;
            bits = *self.quotes.get(word)?;
        }
        Some(word * BLOCK_BYTES + bits.trailing_zeros() as usize)
    }

    /// Gives back memory that only an extraordinary record needed.
    pub(crate) fn shrink(&mut self) {
        const KEPT: usize = 64 * 1024;
        if self.structurals.len() > KEPT {
            self.structurals.truncate(KEPT);
            self.structurals.shrink_to_fit();
        }
        self.quotes.clear();
        self.quotes.shrink_to(KEPT / BLOCK_BYTES);
        self.count = 0;
    }

    #[inline(always)]
    fn clear(&mut self) {
        self.count = 0;
        self.quotes.clear();
        self.brackets = 0;
        self.has_backslash = false;
        self.has_control = false;
        self.unclosed = false;
    }

    #[inline(always)]
    fn push_structurals(&mut self, base: u32, bits: u64) {
        if self.structurals.len() < self.count + BLOCK_BYTES {
            self.grow();
        }
        let slots = &mut self.structurals[self.count..self.count + BLOCK_BYTES];
        let count = bits.count_ones() as usize;
        let bits = write_eight(&mut slots[..8], base, bits);
        if count > 8 {
            let mut bits = write_eight(&mut slots[8..16], base, bits);
            // Rarely more than one character in four is structural.
            for slot in &mut slots[16..count.max(16)] {
                *slot = base + bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
            }
        }
        self.count += count;
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.structurals.len() * 2).max(16 * BLOCK_BYTES);
        self.structurals.resize(len, 0);
    }
}

/// Writes the offsets of the lowest eight bits, and something where there are fewer; gives the other bits.
#[inline(always)]
fn write_eight(slots: &mut [u32], base: u32, mut bits: u64) -> u64 {
    for slot in slots {
        *slot = base.wrapping_add(bits.trailing_zeros());
        bits &= bits.wrapping_sub(1);
    }
    bits
}

/// What an instruction set tells about 64 bytes: bit `i` is byte `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Masks {
    /// `"`
    quote: u64,
    /// `\`
    backslash: u64,
    /// `{ } [ ]`
    bracket: u64,
    /// `: ,`
    separator: u64,
    /// Bytes below 0x20.
    control: u64,
}

/// One instruction set. A value of the type proves that the machine has it.
trait BlockMasks: Copy {
    /// Classifies the bytes of a block.
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks;

    /// Bit `i` of the result is the xor of bits `0..=i`.
    fn prefix_xor(self, bits: u64) -> u64;
}

/// Indexes the record that is the first `len` bytes of `reach`; `reach` ends where the buffer ends.
#[inline(always)]
fn build<M: BlockMasks>(isa: M, reach: &[u8], len: usize, index: &mut Index) {
    index.clear();
    let mut carry = Carry::default();
    let mut at = 0;
    while at < len {
        let valid = if len - at >= BLOCK_BYTES {
            !0
        } else {
            !(!0 << (len - at))
        };
        match reach[at..].first_chunk::<BLOCK_BYTES>() {
            Some(block) => build_block(isa, block, valid, at, &mut carry, index),
            None => build_block(isa, &padded(&reach[at..]), valid, at, &mut carry, index),
        }
        at += BLOCK_BYTES;
    }
    index.unclosed = carry.in_string != 0;
}

#[inline(always)]
fn build_block<M: BlockMasks>(
    isa: M,
    block: &[u8; BLOCK_BYTES],
    valid: u64,
    at: usize,
    carry: &mut Carry,
    index: &mut Index,
) {
    let masks = isa.masks(block);
    let backslash = masks.backslash & valid;
    let quotes = masks.quote & valid & !escaped(backslash, &mut carry.escapes_next);
    let in_string = isa.prefix_xor(quotes) ^ carry.in_string;
    carry.in_string = ((in_string as i64) >> 63) as u64;

    let outside = valid & !in_string;
    let brackets = masks.bracket & outside;
    index.quotes.push(quotes);
    index.push_structurals(at as u32, brackets | (masks.separator & outside));
    index.brackets += brackets.count_ones();
    index.has_backslash |= backslash != 0;
    index.has_control |= masks.control & in_string & valid != 0;
}

/// What one block leaves to the next.
#[derive(Default)]
struct Carry {
    /// 1 if the last byte is a backslash that escapes the next byte.
    escapes_next: u64,
    /// All ones inside a string, else 0.
    in_string: u64,
}

/// Which bytes an odd run of backslashes stands before.
#[inline(always)]
fn escaped(backslash: u64, escapes_next: &mut u64) -> u64 {
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

#[cfg(test)]
mod tests;
