//! What an instruction set computes of a block: 64 bytes, one bit each in a `u64`.
//!
//! The trait [`BlockMasks`] is all that the index needs of an instruction set; `scalar`, `avx2`, `avx512` and `neon`
//! implement it. Never knows which bytes belong to which record.

/// Bytes per block: one bit each in a `u64`.
pub(super) const BLOCK_BYTES: usize = 64;

/// What an instruction set tells about 64 bytes: bit `i` is byte `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Masks {
    /// `"`
    pub(super) quote: u64,
    /// `\`
    pub(super) backslash: u64,
    /// `{ } [ ] : ,`
    pub(super) structural: u64,
    /// Of those, `{ } [ ]`; what it says of other bytes does not matter.
    pub(super) bracket: u64,
}

/// One instruction set. A value of the type proves that the machine has it.
pub(super) trait BlockMasks: Copy {
    /// Classifies the bytes of a block.
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks;

    /// Bit `i` of the result is the xor of bits `0..=i`.
    fn prefix_xor(self, bits: u64) -> u64;

    /// Writes `base` plus the number of each set bit, ascending, into the first slots, and something into others.
    #[inline(always)]
    fn write_offsets(self, slots: &mut [u32; BLOCK_BYTES], base: u32, mut bits: u64) {
        for (i, slot) in slots.iter_mut().enumerate() {
            // Rarely more than one character in eight is structural.
            if i >= 8 && bits == 0 {
                break;
            }
            *slot = base.wrapping_add(bits.trailing_zeros());
            bits &= bits.wrapping_sub(1);
        }
    }
}
