//! Short numbers, sixteen bytes at once.
//!
//! Converts the first bytes of a 16-byte block, given how many of them are a number. The digits are joined pair by pair
//! as in Langdale and Lemire, "Parsing gigabytes of JSON per second" (2019), appendix B. Never looks whether it is a
//! number.

/// Longest text that is looked at.
pub(crate) const BYTES_MAX: usize = 16;

/// The value of the first `len` bytes (1 to 16), which are digits.
#[inline(always)]
pub(crate) fn digits(block: &[u8; 16], len: usize) -> u64 {
    let text = u128::from_le_bytes(*block) ^ ZEROS;
    // The digits to the end, zeros before them.
    if len <= 8 {
        return eight_digits((text as u64) << (8 * (8 - len)));
    }
    sixteen_digits(text << (8 * (BYTES_MAX - len)))
}

/// The value of the first `len` bytes (1 to 16), which are a number; `None` unless it is digits, a point and digits.
///
/// That is a whole number below 10^15 and a power of ten up to 10^15, which floats are exactly; so their quotient is the nearest float (Clinger,
/// "How to read floating point numbers accurately", 1990).
#[inline(always)]
pub(crate) fn decimal(block: &[u8; 16], len: usize) -> Option<f64> {
    let text = u128::from_le_bytes(*block) ^ ZEROS;
    let (digits, places) = if len <= 8 {
        let text = (text as u64) << (8 * (8 - len));
        // Of numbers no byte has its high bit, so that nothing is carried.
        let others = ((text & !HIGH as u64) + BEYOND_DIGITS as u64) & HIGH as u64;
        let at = others.trailing_zeros().saturating_sub(7) & 63;
        if !others.is_power_of_two() || (text >> at) as u8 != POINT {
            return None;
        }
        // What is before the point moves into its place.
        let before = text & ((1 << at) - 1);
        let behind = text >> at >> 8 << at << 8;
        (eight_digits(before << 8 | behind), 7 - at / 8)
    } else {
        let text = text << (8 * (BYTES_MAX - len));
        let others = ((text & !HIGH) + BEYOND_DIGITS) & HIGH;
        let at = others.trailing_zeros().saturating_sub(7);
        if !others.is_power_of_two() || (text >> at) as u8 != POINT {
            return None;
        }
        let before = text & ((1 << at) - 1);
        let behind = text >> at >> 8 << at << 8;
        (sixteen_digits(before << 8 | behind), 15 - at / 8)
    };
    Some(digits as f64 / POWERS[places as usize])
}

/// The powers of ten.
const POWERS: [f64; BYTES_MAX] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

const ZEROS: u128 = u128::from_le_bytes([b'0'; 16]);
const HIGH: u128 = u128::from_le_bytes([0x80; 16]);
/// Brings the high bit to bytes that are no digit.
const BEYOND_DIGITS: u128 = u128::from_le_bytes([0x80 - 10; 16]);
const POINT: u8 = b'.' ^ b'0';

/// The value of sixteen digits, each 0 to 9, the first in the lowest byte.
#[inline(always)]
fn sixteen_digits(digits: u128) -> u64 {
    eight_digits(digits as u64) * 100_000_000 + eight_digits((digits >> 64) as u64)
}

/// The value of eight digits, each 0 to 9, the first in the lowest byte.
#[inline(always)]
fn eight_digits(digits: u64) -> u64 {
    let pairs = digits.wrapping_mul(10) + (digits >> 8);
    let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul(100 + (1_000_000 << 32));
    let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul(1 + (10_000 << 32));
    low.wrapping_add(high) >> 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 4096 }, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn digits_are_the_number(text in "[0-9]{1,16}", behind in any::<[u8; 16]>()) {
            let bytes = [text.as_bytes(), &behind].concat();
            let block = bytes.first_chunk::<16>().unwrap();
            prop_assert_eq!(digits(block, text.len()), text.parse::<u64>().unwrap());
        }

        #[test]
        fn decimals_are_the_nearest_float(
            text in "[0-9]{0,15}\\.[0-9]{0,15}|-?[0-9]{1,4}(\\.[0-9]{1,4})?([eE][+-]?[0-9]{1,2})?",
            behind in any::<[u8; 16]>(),
        ) {
            let text = &text[..text.len().min(16)];
            let bytes = [text.as_bytes(), &behind].concat();
            let block = bytes.first_chunk::<16>().unwrap();
            let is_plain = text.contains('.') && !text.contains(['-', 'e', 'E']);
            let expected = text.parse::<f64>().ok().filter(|_| is_plain);
            if expected.is_some() || !is_plain {
                prop_assert_eq!(decimal(block, text.len()), expected);
            }
        }
    }
}
