//! Parses values as severity numbers, ids and flags. A value that is not valid gives `None`; nothing is guessed.

use tailrace_model::json::{self, Kind};

use crate::cell::Cell;

/// 1 to 24, however the number is written (`9`, `9.0`, `"9"`), as in SQL.
pub(super) fn severity_number(cell: Cell<'_>) -> Option<u8> {
    let number = match cell {
        Cell::Int(number) => number,
        Cell::Uint(number) => i64::try_from(number).ok()?,
        Cell::Float(number) if number.fract() == 0.0 => number as i64,
        Cell::Integer(text) | Cell::Number(text) => json::exact_integer(text)?,
        Cell::Str(text) => match json::parse_value(text)? {
            json::Value {
                kind: Kind::Integer | Kind::Float,
                text: number,
                ..
            } if number == text => json::exact_integer(text)?,
            _ => return None,
        },
        _ => return None,
    };
    u8::try_from(number)
        .ok()
        .filter(|number| (1..=24).contains(number))
}

/// An id as hex digits in any case, or as bytes; not all zero.
pub(super) fn id<const N: usize>(cell: Cell<'_>) -> Option<[u8; N]> {
    match cell {
        Cell::Str(text) => id_of_text(text.as_bytes()),
        Cell::Bytes(bytes) => bytes.try_into().ok().filter(|id| *id != [0; N]),
        _ => None,
    }
}

pub(super) fn id_of_text<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let (groups, rest) = text.as_chunks::<8>();
    if groups.len() != N / 4 || !rest.is_empty() {
        return None;
    }
    let mut id = [0; N];
    let mut are_digits = u64::MAX;
    for (bytes, digits) in id.as_chunks_mut::<4>().0.iter_mut().zip(groups) {
        let (four, valid) = eight_hex_digits(u64::from_le_bytes(*digits));
        *bytes = four;
        are_digits &= valid;
    }
    (are_digits == HIGHS && id != [0; N]).then_some(id)
}

/// W3C trace flags: two hex digits (or one), or a number up to 255.
pub(super) fn trace_flags(cell: Cell<'_>) -> Option<u8> {
    match cell {
        Cell::Str(text) => match *text.as_bytes() {
            [high, low] => Some(hex(high)? << 4 | hex(low)?),
            [low] => hex(low),
            _ => None,
        },
        Cell::Integer(text) => text.parse().ok(),
        Cell::Int(flags) => flags.try_into().ok(),
        Cell::Uint(flags) => flags.try_into().ok(),
        _ => None,
    }
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
/// The highest bit of each byte.
const HIGHS: u64 = ONES << 7;

/// The bytes that eight hex digits in any case are, the first of them in the lowest byte; and the highest bit of each
/// byte that is a digit, if all before it are ASCII.
#[inline]
fn eight_hex_digits(text: u64) -> ([u8; 4], u64) {
    // The highest bit of each byte says whether it is at least so much.
    let at_least = |text: u64, bound: u8| text.wrapping_add(ONES * u64::from(0x80 - bound));
    let small = text | (ONES * 0x20);
    let letters = at_least(small, b'a') & !at_least(small, b'g') & HIGHS;
    let digits = at_least(text, b'0') & !at_least(text, b':') & HIGHS;
    let values = (text & (ONES * 0x0f)).wrapping_add((letters >> 7).wrapping_mul(9));
    let pairs = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    let bytes = (fours | fours >> 16) as u32;
    (bytes.to_le_bytes(), (letters | digits) & !text)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_of_an_id() {
        for at in 0..16 {
            for byte in 0..=u8::MAX {
                let mut text = *b"0123456789abCDEF";
                text[at] = byte;
                let bytes = text
                    .chunks(2)
                    .map(|pair| Some(hex(pair[0])? << 4 | hex(pair[1])?));
                let expected: Option<Vec<u8>> = bytes.collect();
                let id = id_of_text::<8>(&text);
                assert_eq!(id.map(Vec::from), expected, "{byte} at {at}");
            }
        }
        assert_eq!(id_of_text::<8>(&[b'0'; 16]), None);
        for len in (0..40).filter(|len| *len != 32) {
            assert_eq!(id_of_text::<16>(&vec![b'1'; len]), None);
        }
    }
}
