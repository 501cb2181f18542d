//! The index with AVX-512: 64 bytes are one vector, a compare is a mask.
//!
//! The masks of 64 bytes come from one vector. Never runs on a machine that lacks the instructions: [`Avx512::new`]
//! asks the CPU, and there is no other way to a value of the type.

#![allow(
    unsafe_code,
    reason = "vector instructions, behind a type that proves the CPU has them"
)]

use std::arch::x86_64::{
    __m512i, _mm_setr_epi8, _mm512_add_epi32, _mm512_broadcast_i32x4, _mm512_cmpeq_epi8_mask,
    _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_maskz_compress_epi32, _mm512_or_si512,
    _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setr_epi32, _mm512_shuffle_epi8,
    _mm512_storeu_si512, _mm512_test_epi8_mask,
};

use super::avx2::prefix_xor;
use super::block::{BLOCK_BYTES, BlockMasks, Masks};
use super::build::{Index, build};
use crate::text::Span;

/// Proof that the CPU has AVX-512 F and BW, PCLMULQDQ, BMI1, BMI2, LZCNT and POPCNT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Asks the CPU.
    pub(super) fn new() -> Option<Avx512> {
        let available = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        available.then_some(Avx512(()))
    }

    /// Adds records of one buffer.
    #[inline]
    pub(super) fn build(self, buffer: &[u8], spans: &[Span], index: &mut Index) {
        // SAFETY: `self` exists, so `new` found every feature that `build_avx512` is compiled for.
        unsafe { build_avx512(self, buffer, spans, index) }
    }
}

/// The generic loop, compiled with the features that let everything below be inlined into it.
#[target_feature(enable = "avx512f,avx512bw,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn build_avx512(isa: Avx512, buffer: &[u8], spans: &[Span], index: &mut Index) {
    build(isa, buffer, spans, index);
}

impl BlockMasks for Avx512 {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks {
        // SAFETY: `self` proves AVX-512 F and BW.
        unsafe { masks(block) }
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        // SAFETY: `self` proves PCLMULQDQ.
        unsafe { prefix_xor(bits) }
    }

    #[inline(always)]
    fn write_offsets(self, slots: &mut [u32; BLOCK_BYTES], base: u32, bits: u64) {
        // SAFETY: `self` proves AVX-512 F and POPCNT.
        unsafe { write_offsets(slots, base, bits) }
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn masks(block: &[u8; BLOCK_BYTES]) -> Masks {
    // SAFETY: an unaligned load of a 64-byte array.
    let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    // By the low four bits of a byte: the structural character it would have to be, a bracket as a brace, which bit 5
    // makes of it. The other bytes that bit 5 makes structural are control characters.
    let wanted = _mm512_broadcast_i32x4(_mm_setr_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b':' as i8, b'{' as i8, b',' as i8, b'}' as i8, 0, 0,
    ));
    let braces = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
    let control = _mm512_cmplt_epu8_mask(bytes, _mm512_set1_epi8(0x20));
    Masks {
        quote: equal(bytes, b'"'),
        backslash: equal(bytes, b'\\'),
        structural: _mm512_cmpeq_epi8_mask(braces, _mm512_shuffle_epi8(wanted, bytes)) & !control,
        bracket: _mm512_test_epi8_mask(bytes, _mm512_set1_epi8(0x40)),
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn equal(bytes: __m512i, byte: u8) -> u64 {
    _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8))
}

/// Sixteen bits at a time: their offsets are compressed to the front of a vector, and all of it is stored.
#[target_feature(enable = "avx512f,popcnt")]
#[inline]
fn write_offsets(slots: &mut [u32; BLOCK_BYTES], base: u32, bits: u64) {
    let places = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let mut offsets = _mm512_add_epi32(places, _mm512_set1_epi32(base as i32));
    let mut count = 0;
    for quarter in 0..4 {
        let mask = (bits >> (16 * quarter)) as u16;
        let found = _mm512_maskz_compress_epi32(mask, offsets);
        // SAFETY: an unaligned store of 16 slots from slot `count` on; `count` is at most 16 per quarter done, 48.
        unsafe { _mm512_storeu_si512(slots.as_mut_ptr().add(count).cast::<__m512i>(), found) };
        count += mask.count_ones() as usize;
        offsets = _mm512_add_epi32(offsets, _mm512_set1_epi32(16));
    }
}
