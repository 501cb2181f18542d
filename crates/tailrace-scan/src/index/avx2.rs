//! The index with AVX2 and carry-less multiplication.
//!
//! Takes 64 bytes, gives their masks by comparing two halves of 32 bytes. Never runs on a machine that lacks the
//! instructions: [`Avx2::new`] asks the CPU, and there is no other way to a value of the type.

#![allow(
    unsafe_code,
    reason = "vector instructions, behind a type that proves the CPU has them"
)]

use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8,
};

use super::{BLOCK_BYTES, BlockMasks, Index, Masks, build};

/// Proof that the CPU has AVX2, PCLMULQDQ, BMI1, BMI2, LZCNT and POPCNT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Asks the CPU.
    pub(super) fn new() -> Option<Avx2> {
        let available = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        available.then_some(Avx2(()))
    }

    /// Indexes the record that is the first `len` bytes of `reach`.
    #[inline]
    pub(super) fn build(self, reach: &[u8], len: usize, index: &mut Index) {
        // SAFETY: `self` exists, so `new` found every feature that `build_avx2` is compiled for.
        unsafe { build_avx2(self, reach, len, index) }
    }
}

/// The generic loop, compiled with the features that let everything below be inlined into it.
#[target_feature(enable = "avx2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn build_avx2(isa: Avx2, reach: &[u8], len: usize, index: &mut Index) {
    build(isa, reach, len, index);
}

impl BlockMasks for Avx2 {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks {
        // SAFETY: `self` proves AVX2. The loads are unaligned ones of bytes 0..32 and 32..64 of a 64-byte array.
        unsafe {
            let low = _mm256_loadu_si256(block.as_ptr().cast::<__m256i>());
            let high = _mm256_loadu_si256(block.as_ptr().add(BLOCK_BYTES / 2).cast::<__m256i>());
            let equal = |byte: u8| {
                let wanted = _mm256_set1_epi8(byte as i8);
                bits(
                    _mm256_cmpeq_epi8(low, wanted),
                    _mm256_cmpeq_epi8(high, wanted),
                )
            };
            Masks {
                quote: equal(b'"'),
                backslash: equal(b'\\'),
                bracket: bits(brackets(low), brackets(high)),
                separator: bits(separators(low), separators(high)),
                control: bits(controls(low), controls(high)),
            }
        }
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        // SAFETY: `self` proves PCLMULQDQ (and SSE2, which every x86-64 has).
        unsafe {
            let product =
                _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
            _mm_cvtsi128_si64(product) as u64
        }
    }
}

/// The high bit of each byte of both halves.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn bits(low: __m256i, high: __m256i) -> u64 {
    // SAFETY: by this function's contract.
    let (low, high) = unsafe { (_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)) };
    u64::from(low as u32) | u64::from(high as u32) << 32
}

/// `{ [ } ]`: bit 5 is all that tells a bracket from a brace.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn brackets(bytes: __m256i) -> __m256i {
    // SAFETY: by this function's contract.
    unsafe {
        let braces = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        _mm256_or_si256(
            _mm256_cmpeq_epi8(braces, _mm256_set1_epi8(b'{' as i8)),
            _mm256_cmpeq_epi8(braces, _mm256_set1_epi8(b'}' as i8)),
        )
    }
}

/// `: ,`
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn separators(bytes: __m256i) -> __m256i {
    // SAFETY: by this function's contract.
    unsafe {
        _mm256_or_si256(
            _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b':' as i8)),
            _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b',' as i8)),
        )
    }
}

/// Bytes below 0x20: those that are their own minimum with 0x1f.
///
/// # Safety
/// The CPU has AVX2.
#[inline(always)]
unsafe fn controls(bytes: __m256i) -> __m256i {
    // SAFETY: by this function's contract.
    unsafe { _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes) }
}
