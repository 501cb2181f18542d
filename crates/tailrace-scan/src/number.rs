//! Short numbers, sixteen bytes at once.
//!
//! Takes the 16 bytes that start with a value's first byte and the value's length, gives its kind or its digits' value.
//! Only what is short and plain: everything else is left to the grammar in `token`. Arithmetic on words as in Hacker's
//! Delight, chapter 6; the digits are joined pair by pair as in Langdale and Lemire, "Parsing gigabytes of JSON per
//! second" (2019), appendix B.

use tailrace_model::json::Kind;

/// Longest text that is looked at.
pub(crate) const BYTES_MAX: usize = 16;

/// Integer or Float if the first `len` bytes (1 to 16) are digits with at most one point among them, as JSON writes
/// them. `None` for other numbers, and for what is none.
#[inline(always)]
pub(crate) fn short_kind(block: &[u8; 16], len: usize) -> Option<Kind> {
    if len > 8 {
        let used = u128::MAX >> (8 * (BYTES_MAX - len));
        let others = not_digits(u128::from_le_bytes(*block)) & used;
        let is_alone = others & others.wrapping_sub(1) == 0;
        return kind(block, len, others != 0, is_alone, others.trailing_zeros());
    }
    let text = block
        .first_chunk()
        .map_or(0, |text| u64::from_le_bytes(*text));
    let others = not_eight_digits(text) & (u64::MAX >> (8 * (8 - len)));
    let is_alone = others & others.wrapping_sub(1) == 0;
    kind(block, len, others != 0, is_alone, others.trailing_zeros())
}

/// The kind of a text of digits, and perhaps others, the first of which is told by the number of its highest bit.
#[inline(always)]
fn kind(block: &[u8; 16], len: usize, others: bool, is_alone: bool, bit: u32) -> Option<Kind> {
    if !others {
        return (len == 1 || block[0] != b'0').then_some(Kind::Integer);
    }
    let at = bit as usize / 8 % BYTES_MAX;
    let stands_well = at > 0 && at + 1 < len && (at == 1 || block[0] != b'0');
    (is_alone && stands_well && block[at] == b'.').then_some(Kind::Float)
}

/// The value of the first `len` bytes (1 to 16), which are digits.
#[inline(always)]
pub(crate) fn digits(block: &[u8; 16], len: usize) -> u64 {
    // The digits to the end, zeros before them.
    let text = u128::from_le_bytes(*block) ^ ZEROS;
    let text = text << (8 * (BYTES_MAX - len));
    eight_digits(text as u64) * 100_000_000 + eight_digits((text >> 64) as u64)
}

const ZEROS: u128 = u128::from_le_bytes([b'0'; 16]);

/// The value of eight digits, each 0 to 9, the first in the lowest byte.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10) + (digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

/// The high bit of each byte that is no digit.
#[inline(always)]
fn not_eight_digits(text: u64) -> u64 {
    const LOW: u64 = u64::from_le_bytes([0x7f; 8]);
    // A digit is 0 to 9 now; from 10 on the sum reaches the high bit.
    let text = text ^ u64::from_le_bytes([b'0'; 8]);
    (((text & LOW) + u64::from_le_bytes([0x76; 8])) | text) & !LOW
}

/// The same of sixteen.
#[inline(always)]
fn not_digits(text: u128) -> u128 {
    const LOW: u128 = u128::from_le_bytes([0x7f; 16]);
    const HIGH: u128 = !LOW;
    let text = text ^ ZEROS;
    (((text & LOW) + u128::from_le_bytes([0x76; 16])) | text) & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::token::number_kind;

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 4096 }, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn kinds_are_those_of_the_grammar(
            text in prop_oneof!["[0-9]{1,16}", "[0-9]{1,8}\\.[0-9]{1,7}", "[-+.eE0-9a:/\u{e9}]{1,8}"],
            behind in any::<[u8; 16]>(),
        ) {
            let bytes = [text.as_bytes(), &behind].concat();
            let block = bytes.first_chunk::<16>().unwrap();
            let kind = short_kind(block, text.len().min(16));
            if kind.is_some() {
                prop_assert_eq!(kind, number_kind(&bytes[..text.len().min(16)]));
            }
            let is_plain = !text.contains(['-', 'e', 'E']);
            if is_plain && text.len() <= 16 {
                prop_assert_eq!(kind, number_kind(text.as_bytes()));
            }
        }

        #[test]
        fn digits_are_the_number(text in "[0-9]{1,16}", behind in any::<[u8; 16]>()) {
            let bytes = [text.as_bytes(), &behind].concat();
            let block = bytes.first_chunk::<16>().unwrap();
            prop_assert_eq!(digits(block, text.len()), text.parse::<u64>().unwrap());
        }
    }
}
