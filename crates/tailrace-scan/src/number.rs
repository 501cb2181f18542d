//! Short numbers, sixteen bytes at once.
//!
//! Converts the first bytes of a 16-byte block, given how many of them are digits. The digits are joined pair by pair
//! as in Langdale and Lemire, "Parsing gigabytes of JSON per second" (2019), appendix B. Never looks whether they are
//! digits.

/// Longest text that is looked at.
pub(crate) const BYTES_MAX: usize = 16;

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
    }
}
