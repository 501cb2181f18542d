//! Attributes from open columns, which are nearly all bytes of a request.
//!
//! An attribute is written from an open column and a row. What a column's attributes have in common is encoded once per
//! batch ([`Head`]); a KeyValue shorter than 128 bytes is then a copy of it, three lengths of one byte, and the value,
//! all in stores of fixed size whose excess the next write overwrites. Everything else is written by
//! [`Values::attribute`], with the same bytes as result.

use tailrace_model::json::Kind;

use crate::any::{BOOL, DOUBLE, INT, STRING, Values};
use crate::number::INLINE_MAX;
use crate::open::{OpenColumn, Place};
use crate::wire::{Buffer, ROOM, spread_varint, varint_len};

/// The bytes before the value of a column's attributes, as far as all have them alike.
pub(crate) struct Head {
    /// The attribute's tag, a byte for the length of its KeyValue, the key, and the tag of the AnyValue.
    bytes: [u8; HEAD_MAX],
    len: u8,
    /// The longest text of a short attribute.
    text_max: u8,
}

/// All heads are shorter.
const HEAD_MAX: usize = 64;
/// Lengths up to this take one byte.
const SHORT_MAX: usize = 127;
/// The longest AnyValue of a number.
const NUMBER_MAX: usize = 11;
/// The longest text of a short attribute.
const TEXT_MAX: usize = 64;
/// More than the value of a short attribute takes, the length of its AnyValue included.
const VALUE_ROOM: usize = 3 + TEXT_MAX;

const _: () = assert!(HEAD_MAX - 1 - 2 + 1 + NUMBER_MAX <= SHORT_MAX && NUMBER_MAX < VALUE_ROOM);
const _: () = assert!(HEAD_MAX - 1 + VALUE_ROOM <= ROOM && 2 + TEXT_MAX <= SHORT_MAX);

impl Head {
    /// The head of attributes with tag `tag` and a [`push_prefix`](crate::any::push_prefix) prefix, if it is short
    /// enough.
    pub(crate) fn new(tag: u8, prefix: &[u8]) -> Option<Head> {
        let len = 2 + prefix.len();
        let mut bytes = [0; HEAD_MAX];
        bytes[..HEAD_MAX - 1]
            .get_mut(2..len)?
            .copy_from_slice(prefix);
        bytes[0] = tag;
        Some(Head {
            bytes,
            len: len as u8,
            // What the prefix, a tag and two lengths leave.
            text_max: TEXT_MAX.min(SHORT_MAX - (len - 2 + 3)) as u8,
        })
    }

    #[inline]
    fn len(&self) -> usize {
        // As it is: this says so where bounds are checked.
        usize::from(self.len) % HEAD_MAX
    }

    #[inline]
    fn prefix(&self) -> &[u8] {
        &self.bytes[2..self.len()]
    }

    /// The length of a KeyValue whose AnyValue has so many bytes, if it takes one byte.
    #[inline]
    fn key_value_len(&self, any: usize) -> usize {
        self.len() - 2 + 1 + any
    }
}

impl Values {
    /// The attribute of a row in which the column has a value. Gives the length of the value's bytes, which are the last
    /// ones.
    #[inline]
    pub(crate) fn open_attribute(
        &mut self,
        head: &Head,
        column: &OpenColumn<'_>,
        at: usize,
    ) -> usize {
        const NULL: u8 = Kind::Null as u8;
        const STRING_KIND: u8 = Kind::String as u8;
        const INTEGER: u8 = Kind::Integer as u8;
        const FLOAT: u8 = Kind::Float as u8;
        const BOOL_KIND: u8 = Kind::Bool as u8;
        const OBJECT: u8 = Kind::Object as u8;
        const ARRAY: u8 = Kind::Array as u8;
        let kind = column.kind(at);
        // Foretold on its own, nearly always rightly.
        if kind == STRING_KIND {
            return self.out.text_attribute(head, column.place(at));
        }
        match kind {
            INTEGER => match column.integer(at) {
                Some(number) => self.out.integer_attribute(head, number),
                // Beyond i64 as text: never rounded.
                None => self.out.text_attribute(head, column.place(at)),
            },
            FLOAT => match column.float(at) {
                Some(number) => {
                    let value = self.out.short_attribute(head, 9);
                    value[1] = DOUBLE;
                    value[2..10].copy_from_slice(&number.to_bits().to_le_bytes());
                    8
                }
                None => self.out.text_attribute(head, column.place(at)),
            },
            BOOL_KIND => {
                let value = self.out.short_attribute(head, 2);
                value[1..3].copy_from_slice(&[BOOL, u8::from(column.is_true(at))]);
                1
            }
            NULL => {
                self.out.short_attribute(head, 0);
                0
            }
            OBJECT | ARRAY => {
                let start = self.out.len();
                self.json_attribute(head.bytes[0], head.prefix(), column.place(at), 0);
                // Behind the head, three lengths and a tag.
                (self.out.len() - start).saturating_sub(head.len() + 3)
            }
            _ => self.out.text_attribute(head, column.place(at)),
        }
    }
}

impl Buffer {
    /// Writes a short attribute up to the length of its AnyValue, `any` bytes; gives the place from that length on,
    /// which is longer than the attribute.
    #[inline(always)]
    fn short_attribute(&mut self, head: &Head, any: usize) -> &mut [u8; VALUE_ROOM] {
        debug_assert!(head.key_value_len(any) <= SHORT_MAX && any < VALUE_ROOM);
        let start = head.len();
        let room = self.advance_in_room(start + 1 + any);
        let (low, high) = head.bytes.split_at(HEAD_MAX / 2);
        room[..HEAD_MAX / 2].copy_from_slice(low);
        if start > HEAD_MAX / 2 {
            room[HEAD_MAX / 2..HEAD_MAX].copy_from_slice(high);
        }
        room[1] = head.key_value_len(any) as u8;
        let value = room[start..].first_chunk_mut();
        let value: &mut [u8; VALUE_ROOM] = value.expect("there is room for a head and a value");
        value[0] = any as u8;
        value
    }

    #[inline(always)]
    fn integer_attribute(&mut self, head: &Head, number: i64) -> usize {
        let number = number as u64;
        let (bytes, len) = match number {
            ..0x4000 => {
                let is_long = u64::from(number >= 0x80);
                let bytes = number & 0x7f | is_long << 7 | number >> 7 << 8;
                (bytes.to_le_bytes(), 1 + is_long as usize)
            }
            _ => match spread_varint(number) {
                Some(spread) => spread,
                None => return self.long_integer_attribute(head, number),
            },
        };
        let value = self.short_attribute(head, 1 + len);
        value[1] = INT;
        value[2..10].copy_from_slice(&bytes);
        len
    }

    #[inline(never)]
    fn long_integer_attribute(&mut self, head: &Head, number: u64) -> usize {
        let value = self.short_attribute(head, 1 + varint_len(number));
        value[1] = INT;
        crate::wire::write_varint(&mut value[2..], number)
    }

    #[inline(always)]
    fn text_attribute(&mut self, head: &Head, place: Place<'_>) -> usize {
        match place {
            Place::Inline(text, len) => {
                // No head is so long that this were too long.
                let value = self.short_attribute(head, 2 + len);
                value[1..3].copy_from_slice(&[STRING, len as u8]);
                value[3..19].copy_from_slice(&text.to_le_bytes());
                len
            }
            Place::Buffer(text, len) => {
                match text.first_chunk::<TEXT_MAX>() {
                    Some(text) if len <= usize::from(head.text_max) => {
                        let value = self.short_attribute(head, 2 + len);
                        value[1..3].copy_from_slice(&[STRING, len as u8]);
                        value[3..].copy_from_slice(text);
                    }
                    _ => self.string_attribute(head.bytes[0], head.prefix(), &text[..len]),
                }
                len
            }
        }
    }
}

const _: () = assert!(HEAD_MAX - 1 - 2 + 1 + 2 + INLINE_MAX <= SHORT_MAX);

impl Buffer {
    /// A field that is an AnyValue that is this text. Gives its length.
    #[inline]
    pub(crate) fn text_any_field(&mut self, tag: u8, place: Place<'_>) -> usize {
        match place {
            Place::Inline(text, len) => {
                let room = self.advance_in_room(4 + len);
                room[..4].copy_from_slice(&[tag, 2 + len as u8, STRING, len as u8]);
                room[4..20].copy_from_slice(&text.to_le_bytes());
                len
            }
            Place::Buffer(text, len) => {
                match text.first_chunk::<TEXT_MAX>() {
                    Some(text) if len <= TEXT_MAX => {
                        let room = self.advance_in_room(4 + len);
                        room[..4].copy_from_slice(&[tag, 2 + len as u8, STRING, len as u8]);
                        room[4..4 + TEXT_MAX].copy_from_slice(text);
                    }
                    _ => self.string_any_field(tag, &text[..len]),
                }
                len
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{StringViewArray, UInt8Array};

    use crate::any::push_prefix;

    const TAG: u8 = crate::wire::bytes_tag(6);

    /// Writes a column both ways.
    fn check(name_len: usize, texts: &[String], kind: Kind) {
        let mut prefix = Vec::new();
        push_prefix(&mut prefix, &"k".repeat(name_len));
        let text = StringViewArray::from_iter_values(texts);
        let kinds = UInt8Array::from(vec![kind as u8; texts.len()]);
        let column = OpenColumn::new(&text, &kinds);
        let Some(head) = Head::new(TAG, &prefix) else {
            assert!(2 + prefix.len() >= HEAD_MAX);
            return;
        };
        let (mut quick, mut general) = (Values::default(), Values::default());
        for (at, text) in texts.iter().enumerate() {
            let start = quick.out.len();
            quick.open_attribute(&head, &column, at);
            general.attribute(TAG, &prefix, column.cell(at));
            assert_eq!(
                quick.out.from(start),
                general.out.from(start),
                "name of {name_len}, {text:?} as {kind:?}"
            );
        }
    }

    #[test]
    fn every_length_is_written_as_the_general_way_does() {
        // The last text has nothing behind it that a wide copy could read.
        let texts: Vec<String> = (0..180)
            .map(|len| "abcdefg".repeat(30)[..len].to_owned())
            .collect();
        for name_len in 0..70 {
            check(name_len, &texts, Kind::String);
            for last in [12, 13, 31, 32, 33, 63, 64, 65] {
                check(name_len, &texts[..=last], Kind::String);
            }
        }
    }

    #[test]
    fn every_kind_is_written_as_the_general_way_does() {
        let mut numbers: Vec<String> = ["0", "-1", "9223372036854775807", "-9223372036854775808"]
            .map(String::from)
            .to_vec();
        numbers.extend(["9223372036854775808", "123456789012345678901"].map(String::from));
        numbers.extend(
            (0..63).flat_map(|bit| [format!("{}", 1i64 << bit), format!("{}", (1i64 << bit) - 1)]),
        );
        let floats = [
            "1.5",
            "-0.0",
            "1e300",
            "1e999",
            "-12345.678",
            "0.30000000000000004",
        ]
        .map(String::from);
        let bools = ["true", "false"].map(String::from);
        let nested =
            [r#"{"a":[1,"x"]}"#, "[]", "no JSON, but longer than a view"].map(String::from);
        for name_len in [0, 1, 27, 28, 29, 30, 58, 59, 60, 61, 62] {
            check(name_len, &numbers, Kind::Integer);
            check(name_len, &floats, Kind::Float);
            check(name_len, &bools, Kind::Bool);
            check(name_len, &bools, Kind::Null);
            check(name_len, &nested, Kind::Object);
        }
    }
}
