//! Attributes from open columns: the way nearly all bytes of a request are made.
//!
//! Takes an open column and a row, appends one attribute. What a column's attributes have in common is made once per
//! batch ([`Head`]); a KeyValue shorter than 128 bytes is then a copy of it, three lengths of one byte, and the value,
//! all in stores of fixed size whose excess the next write overwrites. Everything else goes the general way of
//! [`Values::attribute`], to the same bytes.

use tailrace_model::json::Kind;

use crate::any::{BOOL, DOUBLE, INT, STRING, Values};
use crate::cell::Cell;
use crate::open::{OpenColumn, Place};
use crate::wire::{Buffer, ROOM, bytes_tag, spread_varint, varint_len};

/// The bytes before the value of a column's attributes, as far as all have them alike.
pub(crate) struct Head {
    /// The attribute's tag, a byte for the length of its KeyValue, the key, and the tag of the AnyValue.
    bytes: [u8; HEAD_MAX],
    len: usize,
}

/// No longer heads.
const HEAD_MAX: usize = 64;
/// Lengths up to this take one byte.
const SHORT_MAX: usize = 127;
/// The longest AnyValue of a number.
const NUMBER_MAX: usize = 11;

const _: () = assert!(HEAD_MAX - 2 + 1 + NUMBER_MAX <= SHORT_MAX);
const _: () = assert!(2 + SHORT_MAX + COPY_MAX <= ROOM && HEAD_MAX + 1 + NUMBER_MAX <= ROOM);

impl Head {
    /// The head of attributes with tag `tag` and a [`push_prefix`](crate::any::push_prefix) prefix, if it is short
    /// enough.
    pub(crate) fn new(tag: u8, prefix: &[u8]) -> Option<Head> {
        let len = 2 + prefix.len();
        let mut bytes = [0; HEAD_MAX];
        bytes.get_mut(2..len)?.copy_from_slice(prefix);
        bytes[0] = tag;
        Some(Head { bytes, len })
    }

    fn prefix(&self) -> &[u8] {
        &self.bytes[2..self.len]
    }

    /// Whether an AnyValue of so many bytes makes a KeyValue of at most [`SHORT_MAX`].
    #[inline]
    fn is_short(&self, any: usize) -> bool {
        self.len - 2 + 1 + any <= SHORT_MAX
    }
}

/// More than a text of a short attribute takes, in copies of fixed size.
const COPY_MAX: usize = 64;

impl Values {
    /// The attribute of one row in which the column has a value.
    #[inline]
    pub(crate) fn open_attribute(&mut self, head: &Head, column: &OpenColumn<'_>, at: usize) {
        const NULL: u8 = Kind::Null as u8;
        const STRING_KIND: u8 = Kind::String as u8;
        const INTEGER: u8 = Kind::Integer as u8;
        const FLOAT: u8 = Kind::Float as u8;
        const BOOL_KIND: u8 = Kind::Bool as u8;
        let state = column.kind(at);
        if state == STRING_KIND {
            return self.out.text_attribute(head, column.place(at));
        }
        match state {
            INTEGER => match column.integer(at) {
                Some(number) => self.out.integer_attribute(head, number),
                // Beyond i64 as text: never rounded.
                None => self.out.text_attribute(head, column.place(at)),
            },
            FLOAT => match column.float(at) {
                Some(number) => {
                    let content = self.out.short_attribute(head, 9);
                    content[0] = DOUBLE;
                    content[1..9].copy_from_slice(&number.to_bits().to_le_bytes());
                }
                None => self.out.text_attribute(head, column.place(at)),
            },
            BOOL_KIND => {
                let content = self.out.short_attribute(head, 2);
                content[..2].copy_from_slice(&[BOOL, u8::from(column.is_true(at))]);
            }
            NULL => _ = self.out.short_attribute(head, 0),
            _ => {
                let cell: Cell<'_> = column.cell(at);
                self.attribute(head.bytes[0], head.prefix(), cell);
            }
        }
    }
}

impl Buffer {
    /// Writes a short attribute up to its AnyValue of `any` bytes, and gives the place for that, which is longer.
    #[inline(always)]
    fn short_attribute(&mut self, head: &Head, any: usize) -> &mut [u8] {
        debug_assert!(head.is_short(any));
        let start = head.len + 1;
        let room = self.advance_in_room(start + any);
        let (low, high) = head.bytes.split_at(HEAD_MAX / 2);
        room[..HEAD_MAX / 2].copy_from_slice(low);
        if head.len > HEAD_MAX / 2 {
            room[HEAD_MAX / 2..HEAD_MAX].copy_from_slice(high);
        }
        room[1] = (head.len - 2 + 1 + any) as u8;
        room[head.len] = any as u8;
        &mut room[start..]
    }

    #[inline(always)]
    fn integer_attribute(&mut self, head: &Head, number: i64) {
        let number = number as u64;
        match spread_varint(number) {
            Some((bytes, len)) => {
                let content = self.short_attribute(head, 1 + len);
                content[0] = INT;
                content[1..9].copy_from_slice(&bytes);
            }
            None => {
                let content = self.short_attribute(head, 1 + varint_len(number));
                content[0] = INT;
                crate::wire::write_varint(&mut content[1..], number);
            }
        }
    }

    #[inline(always)]
    fn text_attribute(&mut self, head: &Head, place: Place<'_>) {
        match place {
            Place::Inline(text, len) => {
                if !head.is_short(2 + len) {
                    let text = &text.to_le_bytes()[..len];
                    return self.string_attribute(head.bytes[0], head.prefix(), text);
                }
                let content = self.short_attribute(head, 2 + len);
                content[..2].copy_from_slice(&[STRING, len as u8]);
                content[2..18].copy_from_slice(&text.to_le_bytes());
            }
            Place::Buffer(text, len) if head.is_short(2 + len) => {
                let content = self.short_attribute(head, 2 + len);
                content[..2].copy_from_slice(&[STRING, len as u8]);
                copy_text(&mut content[2..], text, len);
            }
            Place::Buffer(text, len) => {
                self.string_attribute(head.bytes[0], head.prefix(), &text[..len]);
            }
        }
    }
}

impl Buffer {
    /// A field that is an AnyValue that is this text.
    #[inline]
    pub(crate) fn text_any_field(&mut self, tag: u8, place: Place<'_>) {
        match place {
            Place::Inline(text, len) => {
                let room = self.advance_in_room(4 + len);
                room[..4].copy_from_slice(&[tag, 2 + len as u8, STRING, len as u8]);
                room[4..20].copy_from_slice(&text.to_le_bytes());
            }
            Place::Buffer(text, len) if 2 + len <= SHORT_MAX => {
                let room = self.advance_in_room(4 + len);
                room[..4].copy_from_slice(&[tag, 2 + len as u8, STRING, len as u8]);
                copy_text(&mut room[4..], text, len);
            }
            Place::Buffer(text, len) => self.string_any_field(tag, &text[..len]),
        }
    }

    /// A string field, left out where it is empty, as proto3 has it.
    #[inline]
    pub(crate) fn text_place_field(&mut self, field: u8, place: Place<'_>) {
        match place {
            Place::Inline(_, 0) => {}
            Place::Inline(text, len) => {
                let room = self.advance_in_room(2 + len);
                room[..2].copy_from_slice(&[bytes_tag(field), len as u8]);
                room[2..18].copy_from_slice(&text.to_le_bytes());
            }
            Place::Buffer(text, len) => self.field(field, &text[..len]),
        }
    }
}

/// Copies the first `len` bytes of `text`, and more where that is quicker: `out` has room for it.
#[inline]
fn copy_text(out: &mut [u8], text: &[u8], len: usize) {
    const HALF: usize = COPY_MAX / 2;
    if len <= HALF
        && let Some(text) = text.first_chunk::<HALF>()
    {
        out[..HALF].copy_from_slice(text);
    } else if len <= COPY_MAX
        && let Some(text) = text.first_chunk::<COPY_MAX>()
    {
        out[..COPY_MAX].copy_from_slice(text);
    } else {
        out[..len].copy_from_slice(&text[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{StringViewArray, UInt8Array};

    use crate::any::push_prefix;

    const TAG: u8 = bytes_tag(6);

    /// Writes a column both ways.
    fn check(name_len: usize, texts: &[String], kind: Kind) {
        let mut prefix = Vec::new();
        push_prefix(&mut prefix, &"k".repeat(name_len));
        let text = StringViewArray::from_iter_values(texts);
        let kinds = UInt8Array::from(vec![kind as u8; texts.len()]);
        let column = OpenColumn::new(&text, &kinds);
        let Some(head) = Head::new(TAG, &prefix) else {
            assert!(2 + prefix.len() > HEAD_MAX);
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
