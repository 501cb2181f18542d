//! Sequences (RFC 8878, section 3.1.1.3.2): codes of lengths and offsets, and the bit stream made of them.
//!
//! A sequence becomes codes and extra bits as soon as it is found, so that the stream is written in one pass.

use crate::bits::Bits;
use crate::fse::{Distribution, SYMBOLS, Table};

/// No match is shorter.
pub(crate) const MATCH_MIN: usize = 3;
/// Literal length codes.
pub(crate) const LITERALS: usize = 0;
/// Offset codes.
pub(crate) const OFFSETS: usize = 1;
/// Match length codes.
pub(crate) const MATCHES: usize = 2;
/// Codes of each kind that a block may need, in the order of the constants above: offsets are below 16 MiB.
pub(crate) const CODES: [usize; 3] = [36, 24, 53];
/// Accuracy logs of our tables.
pub(crate) const LOGS: [u32; 3] = [9, 8, 9];

/// A sequence, ready to be written.
#[derive(Clone, Copy, Default)]
pub(crate) struct Packed {
    /// The extra bits of literal length, match length and offset, the first one lowest.
    extra: u64,
    /// From the low byte: codes of literal length, match length and offset; number of extra bits.
    codes: u32,
}

impl Packed {
    /// `literals` bytes that are copied as they are, then a match of `len`. `offset` is an Offset_Value: of a repeated
    /// offset 1 to 3, else 3 more than the distance.
    #[inline(always)]
    pub(crate) fn new(literals: usize, len: usize, offset: u32) -> Packed {
        let match_base = len - MATCH_MIN;
        let offset_code = 31 - offset.leading_zeros();
        let (literal, matched) = if literals < SHORT_LITERALS && match_base < SHORT_MATCH {
            (SHORT.0[literals], SHORT.1[match_base])
        } else {
            long(literals, match_base)
        };
        let offset_extra = u64::from(offset ^ 1 << offset_code);
        let extra = offset_extra << matched.bits | u64::from(matched.extra);
        Packed {
            extra: extra << literal.bits | u64::from(literal.extra),
            codes: u32::from(literal.code)
                | u32::from(matched.code) << 8
                | offset_code << 16
                | (u32::from(literal.bits) + u32::from(matched.bits) + offset_code) << 24,
        }
    }

    /// Its codes, in the order of the constants.
    #[inline(always)]
    pub(crate) fn codes(self) -> [u32; 3] {
        [
            self.codes & 0xff,
            self.codes >> 16 & 0xff,
            self.codes >> 8 & 0xff,
        ]
    }

    #[inline(always)]
    fn bits(self) -> u32 {
        self.codes >> 24
    }
}

/// A length as the stream has it.
#[derive(Clone, Copy)]
struct Length {
    extra: u16,
    code: u8,
    bits: u8,
}

/// Literal lengths below this, and match lengths less 3, are looked up.
const SHORT_LITERALS: usize = 64;
const SHORT_MATCH: usize = 128;
/// Codes from here on are one for each power of two.
const LONG_LITERALS_CODE: u32 = 19;
const LONG_MATCH_CODE: u32 = 36;

static SHORT: ([Length; SHORT_LITERALS], [Length; SHORT_MATCH]) = (
    short_lengths(16, &[1, 1, 1, 1, 2, 2, 3, 3, 4]),
    short_lengths(32, &[1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5]),
);

/// Lengths whose codes are themselves below `plain`; then each code has so many extra bits.
const fn short_lengths<const N: usize>(plain: usize, bits: &[u8]) -> [Length; N] {
    let zero = Length {
        extra: 0,
        code: 0,
        bits: 0,
    };
    let mut lengths = [zero; N];
    let mut at = 0;
    while at < plain {
        lengths[at].code = at as u8;
        at += 1;
    }
    let mut nth = 0;
    while nth < bits.len() {
        let base = at;
        while at < N && at < base + (1 << bits[nth]) {
            lengths[at] = Length {
                extra: (at - base) as u16,
                code: (plain + nth) as u8,
                bits: bits[nth],
            };
            at += 1;
        }
        nth += 1;
    }
    assert!(at == N, "the table is full");
    lengths
}

#[cold]
#[inline(never)]
fn long(literals: usize, match_base: usize) -> (Length, Length) {
    let of_power = |length: usize, first_code: u32| {
        let bits = usize::BITS - 1 - length.leading_zeros();
        Length {
            extra: (length ^ 1 << bits) as u16,
            code: (first_code + bits) as u8,
            bits: bits as u8,
        }
    };
    let literal = match SHORT.0.get(literals) {
        Some(short) => *short,
        None => of_power(literals, LONG_LITERALS_CODE),
    };
    let matched = match SHORT.1.get(match_base) {
        Some(short) => *short,
        None => of_power(match_base, LONG_MATCH_CODE),
    };
    (literal, matched)
}

/// Counts the codes of `sequences`.
pub(crate) fn count(sequences: &[Packed]) -> [[u32; SYMBOLS]; 3] {
    let mut counts = [[0; SYMBOLS]; 3];
    for sequence in sequences {
        for (counts, code) in counts.iter_mut().zip(sequence.codes()) {
            counts[code as usize % SYMBOLS] += 1;
        }
    }
    counts
}

/// Writes the bit stream of sequences, of which there is one at least, and gives its length. `out` has 16 bytes for
/// each, and 32 more.
pub(crate) fn write(sequences: &[Packed], tables: [&Table; 3], out: &mut [u8]) -> usize {
    let [literals, offsets, matches] = tables;
    let Some((last, before)) = sequences.split_last() else {
        return 0;
    };
    let mut bits = Bits::new(out);
    let [code, offset_code, match_code] = last.codes();
    let mut literal_state = literals.first_state(code);
    let mut offset_state = offsets.first_state(offset_code);
    let mut match_state = matches.first_state(match_code);
    bits.add(last.extra, last.bits());
    bits.flush();
    for sequence in before.iter().rev() {
        let [code, offset_code, match_code] = sequence.codes();
        offset_state = offsets.encode(offset_state, offset_code, &mut bits);
        match_state = matches.encode(match_state, match_code, &mut bits);
        literal_state = literals.encode(literal_state, code, &mut bits);
        // Seven bits that waited, 26 of the states.
        if bits.waiting() + sequence.bits() > 56 {
            bits.flush();
        }
        bits.add(sequence.extra, sequence.bits());
        bits.flush();
    }
    matches.finish(match_state, &mut bits);
    offsets.finish(offset_state, &mut bits);
    literals.finish(literal_state, &mut bits);
    bits.finish_marked()
}

/// The tables that every decoder has (section 3.1.1.3.2.2).
pub(crate) fn predefined() -> [Table; 3] {
    const LITERALS: [i16; 36] = [
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ];
    const OFFSETS: [i16; 29] = [
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ];
    const MATCHES: [i16; 53] = [
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ];
    [(&LITERALS[..], 6), (&OFFSETS, 5), (&MATCHES, 6)]
        .map(|(states, log)| Table::new(&Distribution::predefined(states, log)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths as section 3.1.1.3.2.1.1 lists them: the first of each code behind the plain ones, and its bits.
    #[test]
    fn lengths_have_the_codes_of_the_tables() {
        let literals = [
            (16, 1),
            (18, 1),
            (20, 1),
            (22, 1),
            (24, 2),
            (28, 2),
            (32, 3),
            (40, 3),
            (48, 4),
            (64, 6),
            (128, 7),
            (256, 8),
            (512, 9),
            (1024, 10),
            (2048, 11),
            (4096, 12),
            (8192, 13),
            (16384, 14),
            (32768, 15),
            (65536, 16),
        ];
        for (nth, (base, bits)) in literals.into_iter().enumerate() {
            for extra in [0, (1usize << bits) - 1] {
                let packed = Packed::new(base + extra, 3, 1);
                assert_eq!(packed.codes & 0xff, 16 + nth as u32);
                assert_eq!((packed.extra, packed.bits()), (extra as u64, bits));
            }
        }
        let matches = [
            (35, 1),
            (37, 1),
            (39, 1),
            (41, 1),
            (43, 2),
            (47, 2),
            (51, 3),
            (59, 3),
            (67, 4),
            (83, 4),
            (99, 5),
            (131, 7),
            (259, 8),
            (515, 9),
            (1027, 10),
            (2051, 11),
            (4099, 12),
            (8195, 13),
            (16387, 14),
            (32771, 15),
            (65539, 16),
        ];
        for (nth, (base, bits)) in matches.into_iter().enumerate() {
            for extra in [0, (1usize << bits) - 1] {
                let packed = Packed::new(5, base + extra, 1);
                assert_eq!(packed.codes(), [5, 0, 32 + nth as u32]);
                assert_eq!((packed.extra, packed.bits()), (extra as u64, bits));
            }
        }
    }

    #[test]
    fn extra_bits_are_packed_in_order() {
        // 0b11 beyond 24, 0b1 beyond 35, 0b101 beyond 8.
        let packed = Packed::new(27, 36, 0b1101);
        assert_eq!(packed.codes(), [20, 3, 32]);
        assert_eq!((packed.extra, packed.bits()), (0b10_1111, 6));
    }
}
