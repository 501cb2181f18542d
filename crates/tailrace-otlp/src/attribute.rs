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
use crate::wire::{
    Buffer, ROOM, spread_varint, string_attribute_room, varint_len, write_string_attribute,
};

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

/// What was written to the front of a room: its length, and that of the value, which is its end.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    pub(crate) len: usize,
    pub(crate) value: usize,
}

const NULL: u8 = Kind::Null as u8;
const STRING_KIND: u8 = Kind::String as u8;
const INTEGER: u8 = Kind::Integer as u8;
const FLOAT: u8 = Kind::Float as u8;
const BOOL_KIND: u8 = Kind::Bool as u8;
const OBJECT: u8 = Kind::Object as u8;
const ARRAY: u8 = Kind::Array as u8;

impl Head {
    /// Writes the attribute of a row in which the column has a value, if it is a short one. More of the room may be
    /// overwritten than that.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        column: &OpenColumn<'_>,
        at: usize,
        room: &mut [u8; ROOM],
    ) -> Option<Written> {
        let kind = column.kind(at);
        // Foretold on its own, nearly always rightly.
        if kind == STRING_KIND {
            return self.text(column.place(at), room);
        }
        match kind {
            INTEGER => match column.integer(at) {
                Some(number) => Some(self.integer(number, room)),
                // Beyond i64 as text: never rounded.
                None => self.text(column.place(at), room),
            },
            FLOAT => match column.float(at) {
                Some(number) => Some(self.float(number, room)),
                None => self.text(column.place(at), room),
            },
            BOOL_KIND => {
                let value = self.begin(2, room);
                value[1..3].copy_from_slice(&[BOOL, u8::from(column.is_true(at))]);
                Some(self.written(2, 1))
            }
            NULL => {
                self.begin(0, room);
                Some(self.written(0, 0))
            }
            OBJECT | ARRAY => None,
            _ => self.text(column.place(at), room),
        }
    }

    /// The attribute with an AnyValue of `any` bytes whose last `value` are the value.
    #[inline(always)]
    fn written(&self, any: usize, value: usize) -> Written {
        Written {
            len: self.len() + 1 + any,
            value,
        }
    }

    /// Writes a short attribute up to the length of its AnyValue, `any` bytes; gives the place from that length on,
    /// which is longer than the attribute.
    #[inline(always)]
    fn begin<'r>(&self, any: usize, room: &'r mut [u8; ROOM]) -> &'r mut [u8; VALUE_ROOM] {
        debug_assert!(self.key_value_len(any) <= SHORT_MAX && any < VALUE_ROOM);
        let start = self.len();
        let (low, high) = self.bytes.split_at(HEAD_MAX / 2);
        room[..HEAD_MAX / 2].copy_from_slice(low);
        if start > HEAD_MAX / 2 {
            room[HEAD_MAX / 2..HEAD_MAX].copy_from_slice(high);
        }
        room[1] = self.key_value_len(any) as u8;
        let value = room[start..].first_chunk_mut();
        let value: &mut [u8; VALUE_ROOM] = value.expect("there is room for a head and a value");
        value[0] = any as u8;
        value
    }

    #[inline(always)]
    pub(crate) fn float(&self, number: f64, room: &mut [u8; ROOM]) -> Written {
        let value = self.begin(9, room);
        value[1] = DOUBLE;
        value[2..10].copy_from_slice(&number.to_bits().to_le_bytes());
        self.written(9, 8)
    }

    #[inline(always)]
    pub(crate) fn integer(&self, number: i64, room: &mut [u8; ROOM]) -> Written {
        let number = number as u64;
        let (bytes, len) = match number {
            ..0x4000 => {
                let is_long = u64::from(number >= 0x80);
                let bytes = number & 0x7f | is_long << 7 | number >> 7 << 8;
                (bytes.to_le_bytes(), 1 + is_long as usize)
            }
            _ => match spread_varint(number) {
                Some(spread) => spread,
                None => return self.long_integer(number, room),
            },
        };
        let value = self.begin(1 + len, room);
        value[1] = INT;
        value[2..10].copy_from_slice(&bytes);
        self.written(1 + len, len)
    }

    #[inline(never)]
    fn long_integer(&self, number: u64, room: &mut [u8; ROOM]) -> Written {
        let len = varint_len(number);
        let value = self.begin(1 + len, room);
        value[1] = INT;
        crate::wire::write_varint(&mut value[2..], number);
        self.written(1 + len, len)
    }

    /// The attribute with this JSON text, if that looks like an earlier one and there is room.
    pub(crate) fn known_json(
        &self,
        place: Place<'_>,
        values: &mut Values,
        room: &mut [u8],
    ) -> Option<Written> {
        let len = values.known_json_attribute(self.bytes[0], self.prefix(), place, room)?;
        let value = self.json_value_len(len);
        Some(Written { len, value })
    }

    /// The length of the value in an attribute of `len` bytes: what is behind the head, three lengths and a tag.
    fn json_value_len(&self, len: usize) -> usize {
        len.saturating_sub(self.len() + 3)
    }

    /// Room that suffices for [`Self::long_text`].
    pub(crate) fn long_text_room(&self, text: usize) -> usize {
        string_attribute_room(self.len(), text)
    }

    /// A text of any length.
    pub(crate) fn long_text(&self, text: &[u8], room: &mut [u8]) -> Written {
        Written {
            len: write_string_attribute(room, self.bytes[0], self.prefix(), text),
            value: text.len(),
        }
    }

    #[inline(always)]
    pub(crate) fn text(&self, place: Place<'_>, room: &mut [u8; ROOM]) -> Option<Written> {
        match place {
            Place::Inline(text, len) => {
                // No head is so long that this were too long.
                let value = self.begin(2 + len, room);
                value[1..3].copy_from_slice(&[STRING, len as u8]);
                value[3..19].copy_from_slice(&text.to_le_bytes());
                Some(self.written(2 + len, len))
            }
            Place::Buffer(text, len) => {
                let text = text.first_chunk::<TEXT_MAX>()?;
                if len > usize::from(self.text_max) {
                    return None;
                }
                let value = self.begin(2 + len, room);
                value[1..3].copy_from_slice(&[STRING, len as u8]);
                value[3..].copy_from_slice(text);
                Some(self.written(2 + len, len))
            }
        }
    }
}

const _: () = assert!(HEAD_MAX - 1 - 2 + 1 + 2 + INLINE_MAX <= SHORT_MAX);

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
        match head.write(column, at, self.out.ahead()) {
            Some(written) => {
                self.out.advance(written.len);
                written.value
            }
            None => self.long_attribute(head, column, at),
        }
    }

    /// As [`Self::open_attribute`], of one that is not short.
    #[inline(never)]
    pub(crate) fn long_attribute(
        &mut self,
        head: &Head,
        column: &OpenColumn<'_>,
        at: usize,
    ) -> usize {
        let (tag, prefix) = (head.bytes[0], head.prefix());
        if let OBJECT | ARRAY = column.kind(at) {
            let start = self.out.len();
            self.json_attribute(tag, prefix, column.place(at), 0);
            return head.json_value_len(self.out.len() - start);
        }
        let text = column.text(at).as_bytes();
        self.out.string_attribute(tag, prefix, text);
        text.len()
    }
}

/// The longest text of a short field.
const BODY_MAX: usize = 112;

const _: () = assert!(2 + BODY_MAX <= SHORT_MAX && 4 + BODY_MAX <= ROOM);

/// Writes a field that is an AnyValue that is a short text to the front of a room.
#[inline(always)]
pub(crate) fn write_text_any_field(
    tag: u8,
    place: Place<'_>,
    room: &mut [u8; ROOM],
) -> Option<Written> {
    let (Place::Inline(_, len) | Place::Buffer(_, len)) = place;
    match place {
        Place::Inline(text, _) => room[4..20].copy_from_slice(&text.to_le_bytes()),
        Place::Buffer(text, _) if len <= TEXT_MAX => {
            room[4..4 + TEXT_MAX].copy_from_slice(text.first_chunk::<TEXT_MAX>()?);
        }
        Place::Buffer(text, _) => {
            let text = text.first_chunk::<BODY_MAX>().filter(|_| len <= BODY_MAX)?;
            room[4..4 + BODY_MAX].copy_from_slice(text);
        }
    }
    room[..4].copy_from_slice(&[tag, 2 + len as u8, STRING, len as u8]);
    Some(Written {
        len: 4 + len,
        value: len,
    })
}

impl Buffer {
    /// A field that is an AnyValue that is this text. Gives its length.
    #[inline]
    pub(crate) fn text_any_field(&mut self, tag: u8, place: Place<'_>) -> usize {
        match write_text_any_field(tag, place, self.ahead()) {
            Some(written) => {
                self.advance(written.len);
                written.value
            }
            None => {
                let Place::Buffer(text, len) = place else {
                    unreachable!("a text that a view holds itself is short");
                };
                self.string_any_field(tag, &text[..len]);
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
