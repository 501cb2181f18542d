//! The index with NEON, which every 64-bit ARM has.
//!
//! The masks of 64 bytes come from four vectors of 16. Never multiplies without carry: that is an extension.

#![allow(
    unsafe_code,
    reason = "vector instructions that every CPU of the architecture has"
)]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8, vpaddq_u8,
    vreinterpretq_u64_u8,
};

use super::block::{BLOCK_BYTES, BlockMasks, Masks};
use super::probe::{Probe, STRING_BYTES};

/// Every CPU of the architecture has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Neon;

impl BlockMasks for Neon {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks {
        let parts = block.as_chunks::<16>().0;
        // SAFETY: NEON is part of the architecture; each load reads a 16-byte array.
        unsafe {
            let load = |i: usize| vld1q_u8(parts[i].as_ptr());
            let bytes = [load(0), load(1), load(2), load(3)];
            let braces = bytes.map(|part| vorrq_u8(part, vdupq_n_u8(0x20)));
            let equal = |parts: [uint8x16_t; 4], byte: u8| {
                bits(parts.map(|part| vceqq_u8(part, vdupq_n_u8(byte))))
            };
            let bracket = equal(braces, b'{') | equal(braces, b'}');
            Masks {
                quote: equal(bytes, b'"'),
                backslash: equal(bytes, b'\\'),
                structural: bracket | equal(bytes, b':') | equal(bytes, b','),
                bracket,
            }
        }
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        [1, 2, 4, 8, 16, 32]
            .into_iter()
            .fold(bits, |bits, shift| bits ^ (bits << shift))
    }
}

impl Probe for Neon {
    #[inline(always)]
    fn equal(self, bytes: &[u8; STRING_BYTES], byte: u8) -> u64 {
        let parts = bytes.as_chunks::<16>().0;
        // SAFETY: NEON is part of the architecture; each load reads a 16-byte array.
        unsafe {
            let equal = |i: usize| vceqq_u8(vld1q_u8(parts[i].as_ptr()), vdupq_n_u8(byte));
            bits([equal(0), equal(1), equal(2), equal(3)])
        }
    }
}

/// One bit for each byte of all ones: each keeps a bit of its own in eight, and pairs are added until eight are one.
#[inline(always)]
fn bits(parts: [uint8x16_t; 4]) -> u64 {
    const PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: NEON is part of the architecture; the load reads a 16-byte array.
    unsafe {
        let places = vld1q_u8(PLACES.as_ptr());
        let [a, b, c, d] = parts.map(|part| vandq_u8(part, places));
        let (low, high) = (vpaddq_u8(a, b), vpaddq_u8(c, d));
        let both = vpaddq_u8(low, high);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(both, both)))
    }
}
