//! The index in plain Rust: for machines without the vector instructions, and as the one that Miri runs.
//!
//! The masks of 64 bytes come from arithmetic on words of eight bytes. Never anything else.

use super::block::{BLOCK_BYTES, BlockMasks, Masks};

/// Plain Rust: every machine has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scalar;

impl BlockMasks for Scalar {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks {
        let mut masks = Masks {
            quote: 0,
            backslash: 0,
            structural: 0,
            bracket: 0,
        };
        for (i, bytes) in block.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*bytes);
            let braces = word | splat(0x20);
            let at = 8 * i;
            masks.quote |= gather(equal(word, b'"')) << at;
            masks.backslash |= gather(equal(word, b'\\')) << at;
            let bracket = equal(braces, b'{') | equal(braces, b'}');
            masks.bracket |= gather(bracket) << at;
            masks.structural |= gather(bracket | equal(word, b':') | equal(word, b',')) << at;
        }
        masks
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        prefix_xor(bits)
    }
}

/// Bit `i` of the result is the xor of bits `0..=i`.
#[inline(always)]
pub(super) fn prefix_xor(bits: u64) -> u64 {
    [1, 2, 4, 8, 16, 32]
        .into_iter()
        .fold(bits, |bits, shift| bits ^ (bits << shift))
}

/// The bytes that are this one.
#[inline(always)]
pub(super) fn equal_bytes(block: &[u8; BLOCK_BYTES], byte: u8) -> u64 {
    let words = block.as_chunks::<8>().0.iter().enumerate();
    words.fold(0, |mask, (i, bytes)| {
        mask | gather(equal(u64::from_le_bytes(*bytes), byte)) << (8 * i)
    })
}

/// A word of eight times this byte.
const fn splat(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The high bit of each byte that is `byte`.
#[inline(always)]
fn equal(word: u64, byte: u8) -> u64 {
    zeros(word ^ splat(byte))
}

/// The high bit of each byte that is zero: of any other byte the lower seven bits carry into the high one when 0x7f is
/// added, or it is set already. No carry leaves a byte.
#[inline(always)]
fn zeros(word: u64) -> u64 {
    let low = splat(0x7f);
    !(((word & low) + low) | word | low)
}

/// The high bits of the eight bytes, the first byte's lowest: the product brings each to a place of its own in the
/// highest byte.
#[inline(always)]
fn gather(high_bits: u64) -> u64 {
    (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}
