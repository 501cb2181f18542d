//! The index in plain Rust: for machines without the vector instructions, and as the one that Miri runs.
//!
//! Takes 64 bytes, gives their masks by a table. Never anything else.

use super::{BLOCK_BYTES, BlockMasks, Masks};

/// Plain Rust: every machine has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scalar;

impl BlockMasks for Scalar {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks {
        let mut masks = Masks {
            quote: 0,
            backslash: 0,
            bracket: 0,
            separator: 0,
            control: 0,
        };
        for (i, &byte) in block.iter().enumerate() {
            let class = u64::from(CLASSES[usize::from(byte)]);
            masks.quote |= (class & 1) << i;
            masks.backslash |= (class >> 1 & 1) << i;
            masks.bracket |= (class >> 2 & 1) << i;
            masks.separator |= (class >> 3 & 1) << i;
            masks.control |= (class >> 4 & 1) << i;
        }
        masks
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        [1, 2, 4, 8, 16, 32]
            .into_iter()
            .fold(bits, |bits, shift| bits ^ (bits << shift))
    }
}

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'"' => 1,
            b'\\' => 1 << 1,
            b'{' | b'}' | b'[' | b']' => 1 << 2,
            b':' | b',' => 1 << 3,
            0..0x20 => 1 << 4,
            _ => 0,
        };
        byte += 1;
    }
    classes
};
