//! Decimal digits, eight at a time.
//!
//! Converts eight bytes of text, or reports that they are not digits. Never reads a sign.

/// The number that eight digits are, the first of them in the lowest byte.
#[inline]
pub const fn eight_digits(text: u64) -> Option<u64> {
    const HIGH_HALVES: u64 = u64::from_ne_bytes([0xf0; 8]);
    const SIXES: u64 = u64::from_ne_bytes([6; 8]);
    const THREES: u64 = u64::from_ne_bytes([0x33; 8]);
    // A digit is 0x30 to 0x39: its high half is 3, and still is when 6 is added.
    let halves = (text & HIGH_HALVES) | ((text.wrapping_add(SIXES) & HIGH_HALVES) >> 4);
    if halves != THREES {
        return None;
    }
    let ones = text & 0x0f0f_0f0f_0f0f_0f0f;
    let pairs = (ones.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(1 + (10_000 << 32)) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place() {
        for at in 0..8 {
            for byte in 0..=u8::MAX {
                let mut text = *b"12345678";
                text[at] = byte;
                let digits = text.iter().all(u8::is_ascii_digit);
                let number = text
                    .iter()
                    .fold(0, |sum, digit| sum * 10 + u64::from(digit & 15));
                assert_eq!(
                    eight_digits(u64::from_le_bytes(text)),
                    digits.then_some(number),
                    "{text:?}"
                );
            }
        }
    }
}
