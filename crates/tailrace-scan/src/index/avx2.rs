//! The index with AVX2 and carry-less multiplication.
//!
//! The masks of 64 bytes come from comparing two halves of 32 bytes. Never runs on a machine that lacks the
//! instructions: [`Avx2::new`] asks the CPU, and there is no other way to a value of the type.

#![allow(
    unsafe_code,
    reason = "vector instructions, behind a type that proves the CPU has them"
)]

use std::arch::x86_64::{
    __m128i, __m256i, _MM_HINT_T0, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_prefetch,
    _mm_set_epi64x, _mm_set1_epi8, _mm_setr_epi8, _mm256_andnot_si256, _mm256_broadcastsi128_si256,
    _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
    _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_sub_epi8, _mm256_xor_si256,
};

use super::block::{BLOCK_BYTES, BlockMasks, Masks};
use super::build::{Index, build};
use super::probe::{PROBE_BYTES, Probe, STRING_BYTES, StringMasks, Task, TokenMasks};
use crate::text::Span;

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

    /// Adds records of one buffer.
    #[inline]
    pub(super) fn build(self, buffer: &[u8], spans: &[Span], index: &mut Index) {
        // SAFETY: `self` exists, so `new` found every feature that `build_avx2` is compiled for.
        unsafe { build_avx2(self, buffer, spans, index) }
    }

    /// Does the task with these instructions.
    #[inline]
    pub(super) fn run<T: Task>(self, task: T) -> T::Output {
        // SAFETY: `self` exists, so `new` found every feature that `run_avx2` is compiled for.
        unsafe { run_avx2(self, task) }
    }
}

/// The generic loop, compiled with the features that let everything below be inlined into it.
#[target_feature(enable = "avx2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn build_avx2(isa: Avx2, buffer: &[u8], spans: &[Span], index: &mut Index) {
    build(isa, buffer, spans, index);
}

/// A task, compiled with the features that let everything below be inlined into it.
#[target_feature(enable = "avx2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
fn run_avx2<T: Task>(isa: Avx2, task: T) -> T::Output {
    task.run(isa)
}

/// The same, never inlined.
#[target_feature(enable = "avx2,pclmulqdq,bmi1,bmi2,lzcnt,popcnt")]
#[cold]
#[inline(never)]
fn run_apart<T: Task>(isa: Avx2, task: T) -> T::Output {
    task.run(isa)
}

impl Probe for Avx2 {
    #[inline(always)]
    fn string_ends(self, bytes: &[u8; PROBE_BYTES]) -> u32 {
        // SAFETY: `self` proves AVX2.
        unsafe { string_ends(load(bytes)) }
    }

    #[inline(always)]
    fn long_string_ends(self, bytes: &[u8; STRING_BYTES]) -> u64 {
        // SAFETY: `self` proves AVX2.
        unsafe { long_string_ends(bytes) }
    }

    #[inline(always)]
    fn string_masks(self, bytes: &[u8; STRING_BYTES]) -> StringMasks {
        // SAFETY: `self` proves AVX2.
        unsafe { string_masks(bytes) }
    }

    #[inline(always)]
    fn escape_letters(self, bytes: &[u8; STRING_BYTES]) -> [u64; 2] {
        // SAFETY: `self` proves AVX2.
        unsafe { escape_letters(bytes) }
    }

    #[inline(always)]
    fn token_masks(self, bytes: &[u8; STRING_BYTES]) -> TokenMasks {
        // SAFETY: `self` proves AVX2.
        unsafe { token_masks(bytes) }
    }

    #[inline(always)]
    fn xor_before(self, bits: u64) -> u64 {
        // SAFETY: `self` proves PCLMULQDQ.
        unsafe { prefix_xor(bits) }
    }

    #[inline(always)]
    fn equal(self, bytes: &[u8; STRING_BYTES], byte: u8) -> u64 {
        // SAFETY: `self` proves AVX2.
        unsafe { equal_bytes(bytes, byte) }
    }

    #[inline(always)]
    fn not_ascii(self, bytes: &[u8; STRING_BYTES]) -> u64 {
        // SAFETY: `self` proves AVX2.
        unsafe { not_ascii(bytes) }
    }

    #[inline(always)]
    fn equal_both(
        self,
        one: &[u8; STRING_BYTES],
        byte: u8,
        other: &[u8; STRING_BYTES],
        other_byte: u8,
    ) -> u64 {
        // SAFETY: `self` proves AVX2.
        unsafe { equal_both(one, byte, other, other_byte) }
    }

    #[inline(always)]
    fn not_digits(self, bytes: &[u8; PROBE_BYTES]) -> u32 {
        // SAFETY: `self` proves AVX2.
        unsafe { not_digits(load(bytes)) }
    }

    #[inline(always)]
    fn differences(self, bytes: &[u8; PROBE_BYTES], other: &[u8; PROBE_BYTES]) -> u32 {
        // SAFETY: `self` proves AVX2.
        unsafe { !(_mm256_movemask_epi8(_mm256_cmpeq_epi8(load(bytes), load(other))) as u32) }
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8; STRING_BYTES]) {
        // SAFETY: a hint, which reads nothing that the program could see and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().cast()) };
    }

    #[inline(always)]
    fn apart<T: Task>(self, task: T) -> T::Output {
        // SAFETY: `self` exists, so `new` found every feature that `run_apart` is compiled for.
        unsafe { run_apart(self, task) }
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load(bytes: &[u8; PROBE_BYTES]) -> __m256i {
    // SAFETY: an unaligned load of a 32-byte array.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
#[inline]
fn string_ends(bytes: __m256i) -> u32 {
    let ends = _mm256_or_si256(equal(bytes, b'"'), equal(bytes, b'\\'));
    _mm256_movemask_epi8(_mm256_or_si256(ends, controls(bytes))) as u32
}

#[target_feature(enable = "avx2")]
#[inline]
fn long_string_ends(bytes: &[u8; STRING_BYTES]) -> u64 {
    let (low, high) = halves(bytes);
    u64::from(string_ends(low)) | u64::from(string_ends(high)) << 32
}

#[target_feature(enable = "avx2")]
#[inline]
fn string_masks(bytes: &[u8; STRING_BYTES]) -> StringMasks {
    let (low, high) = halves(bytes);
    StringMasks {
        quotes: bits(equal(low, b'"'), equal(high, b'"')),
        backslashes: bits(equal(low, b'\\'), equal(high, b'\\')),
        controls: bits(controls(low), controls(high)),
    }
}

/// A table holds them by their low four bits, of which `"`, `b` and `r` have the same. Entry 0 looks up no letter.
#[target_feature(enable = "avx2")]
#[inline]
fn escape_letters(bytes: &[u8; STRING_BYTES]) -> [u64; 2] {
    let wanted = _mm_setr_epi8(
        1,
        0,
        b'b' as i8,
        0,
        b't' as i8,
        b'u' as i8,
        b'f' as i8,
        0,
        0,
        0,
        0,
        0,
        b'\\' as i8,
        0,
        b'n' as i8,
        b'/' as i8,
    );
    let letters = |bytes| {
        let others = _mm256_or_si256(equal(bytes, b'"'), equal(bytes, b'r'));
        _mm256_or_si256(_mm256_cmpeq_epi8(bytes, lookup(wanted, bytes)), others)
    };
    let (low, high) = halves(bytes);
    let us = bits(equal(low, b'u'), equal(high, b'u'));
    [bits(letters(low), letters(high)), us]
}

#[target_feature(enable = "avx2")]
#[inline]
fn token_masks(bytes: &[u8; STRING_BYTES]) -> TokenMasks {
    let (low, high) = halves(bytes);
    let of = |byte| bits(equal(low, byte), equal(high, byte));
    TokenMasks {
        quotes: of(b'"'),
        backslashes: of(b'\\'),
        controls: bits(controls(low), controls(high)),
        colons: of(b':'),
        commas: of(b','),
        braces: of(b'{'),
        squares: of(b'['),
        closes: bits(closes(low), closes(high)),
        whitespace: bits(whitespace(low), whitespace(high)),
        digits: u64::from(!not_digits(low)) | u64::from(!not_digits(high)) << 32,
    }
}

/// `}` and `]`, which bit 5 makes a `}`.
#[target_feature(enable = "avx2")]
#[inline]
fn closes(bytes: __m256i) -> __m256i {
    equal(_mm256_or_si256(bytes, _mm256_set1_epi8(0x20)), b'}')
}

/// Space, tab, line feed, carriage return: a table holds each of them by its low four bits, and elsewhere what looks up
/// another place.
#[target_feature(enable = "avx2")]
#[inline]
fn whitespace(bytes: __m256i) -> __m256i {
    let wanted = _mm_setr_epi8(b' ' as i8, 0, 0, 0, 0, 0, 0, 0, 0, 9, 10, 0, 0, 13, 0, 0);
    _mm256_cmpeq_epi8(bytes, lookup(wanted, bytes))
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal_bytes(bytes: &[u8; STRING_BYTES], byte: u8) -> u64 {
    let (low, high) = halves(bytes);
    bits(equal(low, byte), equal(high, byte))
}

/// The high bit of each byte of both halves together.
#[target_feature(enable = "avx2")]
#[inline]
fn not_ascii(bytes: &[u8; STRING_BYTES]) -> u64 {
    let (low, high) = halves(bytes);
    u64::from(_mm256_movemask_epi8(_mm256_or_si256(low, high)) as u32)
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal_both(
    one: &[u8; STRING_BYTES],
    byte: u8,
    other: &[u8; STRING_BYTES],
    other_byte: u8,
) -> u64 {
    let ((low, high), (other_low, other_high)) = (halves(one), halves(other));
    bits(
        both_equal(low, byte, other_low, other_byte),
        both_equal(high, byte, other_high, other_byte),
    )
}

/// One compare of what differs: the compiler takes the intersection of two apart into bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn both_equal(one: __m256i, byte: u8, other: __m256i, other_byte: u8) -> __m256i {
    let differs = _mm256_xor_si256(one, _mm256_set1_epi8(byte as i8));
    let other_differs = _mm256_xor_si256(other, _mm256_set1_epi8(other_byte as i8));
    equal(_mm256_or_si256(differs, other_differs), 0)
}

#[target_feature(enable = "avx2")]
#[inline]
fn not_digits(bytes: __m256i) -> u32 {
    // A digit is 0 to 9 now, and its own minimum with 9.
    let values = _mm256_sub_epi8(bytes, _mm256_set1_epi8(b'0' as i8));
    let digits = _mm256_cmpeq_epi8(_mm256_min_epu8(values, _mm256_set1_epi8(9)), values);
    !(_mm256_movemask_epi8(digits) as u32)
}

impl BlockMasks for Avx2 {
    #[inline(always)]
    fn masks(self, block: &[u8; BLOCK_BYTES]) -> Masks {
        // SAFETY: `self` proves AVX2.
        unsafe { masks(block) }
    }

    #[inline(always)]
    fn prefix_xor(self, bits: u64) -> u64 {
        // SAFETY: `self` proves PCLMULQDQ.
        unsafe { prefix_xor(bits) }
    }

    #[inline(always)]
    fn write_offsets(self, slots: &mut [u32; BLOCK_BYTES], base: u32, bits: u64) {
        write_offsets(slots, base, bits);
    }
}

/// Eight offsets without a branch, then the others. Each is written by itself: what is not volatile the compiler gathers
/// into vectors, at two instructions an offset, which costs more than it saves.
#[inline(always)]
fn write_offsets(slots: &mut [u32; BLOCK_BYTES], base: u32, mut bits: u64) {
    let count = bits.count_ones() as usize;
    let mut write_eight = |from: usize| {
        for slot in &mut slots[from..from + 8] {
            // SAFETY: a valid reference to a `u32`.
            unsafe { std::ptr::write_volatile(slot, base.wrapping_add(bits.trailing_zeros())) };
            bits &= bits.wrapping_sub(1);
        }
    };
    write_eight(0);
    if count > 8 {
        write_eight(8);
    }
    if count > 16 {
        (16..count.next_multiple_of(8))
            .step_by(8)
            .for_each(write_eight);
    }
}

// Each function that holds vector instructions is compiled for them: one that is not, and is only inlined into one that
// is, gets optimised for a machine without them first, which takes vectors apart into bytes.

#[target_feature(enable = "avx2")]
#[inline]
fn masks(block: &[u8; BLOCK_BYTES]) -> Masks {
    let (low, high) = halves(block);
    Masks {
        quote: bits(equal(low, b'"'), equal(high, b'"')),
        backslash: bits(equal(low, b'\\'), equal(high, b'\\')),
        structural: bits(structurals(low), structurals(high)),
        // Bit 6, moved to where a mask is taken from.
        bracket: bits(_mm256_slli_epi16::<1>(low), _mm256_slli_epi16::<1>(high)),
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn halves(bytes: &[u8; BLOCK_BYTES]) -> (__m256i, __m256i) {
    // SAFETY: unaligned loads of bytes 0..32 and 32..64 of a 64-byte array.
    unsafe {
        let low = bytes.as_ptr().cast::<__m256i>();
        (_mm256_loadu_si256(low), _mm256_loadu_si256(low.add(1)))
    }
}

#[target_feature(enable = "pclmulqdq")]
#[inline]
pub(super) fn prefix_xor(bits: u64) -> u64 {
    let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product) as u64
}

/// The high bit of each byte of both halves.
#[target_feature(enable = "avx2")]
#[inline]
fn bits(low: __m256i, high: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
}

#[target_feature(enable = "avx2")]
#[inline]
fn equal(bytes: __m256i, byte: u8) -> __m256i {
    _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte as i8))
}

/// `{ [ } ] : ,`, without the control characters that bit 5 makes one of them: a table, by the low four bits of a byte, holds
/// the character that it would have to be, a bracket as the brace that bit 5 makes of it. One compare instead of six,
/// whose union the compiler takes apart into bytes. A byte above 0x7f looks up 0, which is never equal.
#[target_feature(enable = "avx2")]
#[inline]
fn structurals(bytes: __m256i) -> __m256i {
    let braces = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
    let wanted = _mm_setr_epi8(
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b':' as i8, b'{' as i8, b',' as i8, b'}' as i8, 0, 0,
    );
    let found = _mm256_cmpeq_epi8(braces, lookup(wanted, bytes));
    _mm256_andnot_si256(controls(bytes), found)
}

/// For each byte the table's entry by its low four bits; 0 for bytes above 0x7f.
#[target_feature(enable = "avx2")]
#[inline]
fn lookup(table: __m128i, bytes: __m256i) -> __m256i {
    _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), bytes)
}

/// Bytes below 0x20: those that are their own minimum with 0x1f.
#[target_feature(enable = "avx2")]
#[inline]
fn controls(bytes: __m256i) -> __m256i {
    _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, _mm256_set1_epi8(0x1f)), bytes)
}
