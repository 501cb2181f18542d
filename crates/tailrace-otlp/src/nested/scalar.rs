//! Writes scalars as members of objects and elements of arrays.
//!
//! Short ones are written with stores of fixed size, whose excess the next write overwrites. Others use the general
//! functions, with the same bytes as result.

use tailrace_model::json::{self, Unescaped};

use crate::any::{BOOL, DOUBLE, Flat, INT, KEY, STRING, VALUE, VALUES};
use crate::wire::{Buffer, Open, ROOM, spread_varint, varint_len, write_varint};

/// A value that holds no others.
#[derive(Clone, Copy)]
pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// The first so many bytes.
    Text(&'t [u8], usize),
}

/// No longer keys and texts are short.
const KEY_MAX: usize = 32;
const TEXT_MAX: usize = 64;
/// The longest AnyValue of a number.
const NUMBER_MAX: usize = 11;

const _: () = assert!(4 + KEY_MAX + 4 + TEXT_MAX <= 127 && 4 + KEY_MAX + 4 + TEXT_MAX <= ROOM);

/// Unescapes what stands between two quotes.
#[inline(never)]
pub(super) fn unescape<'o>(quoted: &[u8], out: &'o mut Vec<u8>) -> Scalar<'o> {
    out.clear();
    if json::unescape_bytes(quoted, out) == Unescaped::Invalid {
        out.extend_from_slice(quoted);
    }
    let len = out.len();
    // So that the text can be copied by fixed size.
    out.resize(len + TEXT_MAX, 0);
    Scalar::Text(out, len)
}

impl Scalar<'_> {
    pub(super) fn flat(&self) -> Flat<'_> {
        match *self {
            Scalar::Null => Flat::Null,
            Scalar::Bool(value) => Flat::Bool(value),
            Scalar::Int(value) => Flat::Int(value),
            Scalar::Double(value) => Flat::Double(value),
            Scalar::Text(text, len) => Flat::String(&text[..len]),
        }
    }

    /// All of it, to be compared.
    #[cfg(test)]
    pub(super) fn bits(&self) -> Vec<u8> {
        let mut out = Buffer::default();
        self.flat().write(&mut out);
        out.take()
    }

    /// Writes a short AnyValue and its length, gives both lengths together; `None` if it is not short.
    #[inline(always)]
    pub(super) fn write_short(&self, out: &mut [u8; 2 + 1 + TEXT_MAX]) -> Option<usize> {
        let any = match *self {
            Scalar::Null => 0,
            Scalar::Bool(value) => {
                out[1..3].copy_from_slice(&[BOOL, u8::from(value)]);
                2
            }
            Scalar::Int(value) => {
                out[1] = INT;
                match spread_varint(value as u64) {
                    Some((bytes, len)) => {
                        out[2..10].copy_from_slice(&bytes);
                        1 + len
                    }
                    None => 1 + write_varint(&mut out[2..2 + NUMBER_MAX], value as u64),
                }
            }
            Scalar::Double(value) => {
                out[1] = DOUBLE;
                out[2..10].copy_from_slice(&value.to_bits().to_le_bytes());
                9
            }
            Scalar::Text(text, len) => {
                let text = text.first_chunk::<TEXT_MAX>().filter(|_| len <= TEXT_MAX)?;
                out[1..3].copy_from_slice(&[STRING, len as u8]);
                out[3..].copy_from_slice(text);
                2 + len
            }
        };
        out[0] = any as u8;
        Some(1 + any)
    }
}

impl Buffer {
    /// An element of an array.
    #[inline(always)]
    pub(super) fn element(&mut self, scalar: Scalar<'_>) {
        let room = self.ahead();
        room[0] = VALUES;
        let value = room[1..].first_chunk_mut().expect("it is shorter");
        match scalar.write_short(value) {
            Some(len) => self.advance(1 + len),
            None => {
                let flat = scalar.flat();
                self.byte(VALUES);
                self.varint(flat.len() as u64);
                flat.write(self);
            }
        }
    }

    /// A member of an object; its key is the first `len` bytes of `key`.
    #[inline(always)]
    pub(super) fn member(&mut self, key: &[u8], len: usize, scalar: Scalar<'_>) {
        let room = self.ahead();
        if let Some(chunk) = key.first_chunk::<KEY_MAX>()
            && (1..=KEY_MAX).contains(&len)
        {
            room[4..4 + KEY_MAX].copy_from_slice(chunk);
            room[4 + len] = VALUE;
            let value = room[5 + len..].first_chunk_mut();
            if let Some(value) = scalar.write_short(value.expect("there is room for both")) {
                // The key with its tag and length, the value with its tag.
                let key_value = 2 + len + 1 + value;
                room[..4].copy_from_slice(&[VALUES, key_value as u8, KEY, len as u8]);
                return self.advance(2 + key_value);
            }
        }
        self.any_member(&key[..len], scalar.flat());
    }

    #[inline(never)]
    fn any_member(&mut self, key: &[u8], flat: Flat<'_>) {
        let any = flat.len();
        let key_len = match key.len() {
            0 => 0,
            len => 1 + varint_len(len as u64) + len,
        };
        self.byte(VALUES);
        self.varint((key_len + 1 + varint_len(any as u64) + any) as u64);
        self.text_field(KEY >> 3, key);
        self.byte(VALUE);
        self.varint(any as u64);
        flat.write(self);
    }

    /// The start of a member that holds others, up to the AnyValue.
    #[inline]
    pub(super) fn open_member(&mut self, key: &[u8], len: usize) -> Open {
        self.byte(VALUES);
        let key_value = self.open(0);
        match key.first_chunk::<KEY_MAX>() {
            Some(key) if (1..=KEY_MAX).contains(&len) => {
                let room = self.ahead();
                room[..2].copy_from_slice(&[KEY, len as u8]);
                room[2..2 + KEY_MAX].copy_from_slice(key);
                room[2 + len] = VALUE;
                self.advance(3 + len);
            }
            _ => {
                self.text_field(KEY >> 3, &key[..len]);
                self.byte(VALUE);
            }
        }
        key_value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a scalar as a member and as an element, the quick way where there is one.
    fn check(key: &[u8], len: usize, scalar: Scalar<'_>) {
        let (mut quick, mut general) = (Buffer::default(), Buffer::default());
        quick.member(key, len, scalar);
        quick.element(scalar);
        general.any_member(&key[..len], scalar.flat());
        general.byte(VALUES);
        general.varint(scalar.flat().len() as u64);
        scalar.flat().write(&mut general);
        assert_eq!(quick.from(0), general.from(0), "key of {len}");
    }

    #[test]
    fn short_ones_are_written_as_any_are() {
        let memory = [b'x'; 256];
        for len in 0..=40 {
            // With much behind the key, and with nothing.
            for key in [&memory[..], &memory[..len]] {
                for text in 0..=70 {
                    check(key, len, Scalar::Text(&memory, text));
                    check(key, len, Scalar::Text(&memory[..text], text));
                }
                for bit in 0..64 {
                    check(key, len, Scalar::Int(1 << bit));
                    check(key, len, Scalar::Int(!(-1 << bit)));
                }
                check(key, len, Scalar::Double(-1.5e300));
                check(key, len, Scalar::Bool(true));
                check(key, len, Scalar::Bool(false));
                check(key, len, Scalar::Null);
            }
        }
    }

    #[test]
    fn lists_of_every_length_are_closed() {
        for len in [
            0, 1, 124, 125, 126, 127, 128, 16379, 16380, 16381, 16384, 70_000,
        ] {
            let content = vec![b'x'; len];
            let mut buffer = Buffer::default();
            let start = buffer.open_list(BOOL);
            buffer.bytes(&content);
            buffer.close_list(start);
            buffer.byte(0x7f);
            let mut list = vec![BOOL];
            crate::wire::push_varint(&mut list, len as u64);
            list.extend(content);
            let mut expected = Vec::new();
            crate::wire::push_varint(&mut expected, list.len() as u64);
            expected.extend(list);
            expected.push(0x7f);
            assert_eq!(buffer.take(), expected, "{len}");
        }
    }
}
