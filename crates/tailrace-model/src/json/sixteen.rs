//! Sixteen bytes of text, looked at together: which of them end or interrupt a string. Bit `i` of a mask is byte `i`.

use wide::u8x16;

/// How many bytes are looked at together.
pub(super) const STEP: usize = 16;

/// Quotes, backslashes and control characters.
#[inline(always)]
pub(super) fn special(text: &[u8; STEP]) -> u32 {
    let bytes = u8x16::new(*text);
    let controls = bytes.min(u8x16::splat(0x1f)).simd_eq(bytes);
    let ends = bytes.simd_eq(u8x16::splat(b'"')) | bytes.simd_eq(u8x16::splat(b'\\'));
    (ends | controls).to_bitmask()
}

/// Backslashes.
#[inline(always)]
pub(super) fn backslashes(text: &[u8; STEP]) -> u32 {
    let bytes = u8x16::new(*text);
    bytes.simd_eq(u8x16::splat(b'\\')).to_bitmask()
}

/// How many bytes are before the first of a mask; [`STEP`] if it has none.
#[inline(always)]
pub(super) fn before(mask: u32) -> usize {
    (mask | 1 << STEP).trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place() {
        for at in 0..STEP {
            for byte in 0..=u8::MAX {
                for others in [b' ', 0xff, b'!', b'#', b'[', b']', 0x9f] {
                    let mut text = [others; STEP];
                    text[at] = byte;
                    let mask = |is: bool| u32::from(is) << at;
                    let expected = mask(matches!(byte, b'"' | b'\\' | 0..0x20));
                    assert_eq!(special(&text), expected, "{byte} at {at}");
                    let expected = mask(byte == b'\\');
                    assert_eq!(backslashes(&text), expected, "{byte} at {at}");
                }
            }
        }
        assert_eq!(special(&[b'"'; STEP]), 0xffff);
        assert_eq!((before(0), before(0b1000)), (STEP, 3));
    }
}
