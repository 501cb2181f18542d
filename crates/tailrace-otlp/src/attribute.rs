//! Attributes from open columns: the way nearly all bytes of a request are made.
//!
//! Takes an open column and a row, appends one attribute. What a column's attributes have in common is made once per
//! batch ([`Head`]); a KeyValue shorter than 128 bytes is then a copy of it, three lengths of one byte, and the value,
//! all in stores of fixed size whose excess the next write overwrites. Everything else goes the general way of
//! [`Values::attribute`], to the same bytes.

use tailrace_model::json::Kind;

use crate::any::{BOOL, DOUBLE, INT, STRING, Values};
use crate::cell::Cell;
use crate::open::{ABSENT, OpenColumn, Place};
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
    /// The attribute of one row; nothing where its value is absent.
    #[inline]
    pub(crate) fn open_attribute(&mut self, head: &Head, column: &OpenColumn<'_>, at: usize) {
        const NULL: u8 = Kind::Null as u8;
        const STRING_KIND: u8 = Kind::String as u8;
        const INTEGER: u8 = Kind::Integer as u8;
        const FLOAT: u8 = Kind::Float as u8;
        const BOOL_KIND: u8 = Kind::Bool as u8;
        let state = column.state(at);
        match state {
            STRING_KIND => self.out.text_attribute(head, column.place(at)),
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
            ABSENT => {}
            _ => {
                let cell: Cell<'_> = column.cell(at);
                self.attribute(head.bytes[0], head.prefix(), cell);
            }
        }
    }
}

impl Buffer {
    /// Writes a short attribute up to its AnyValue of `any` bytes, and gives the place for that, which is longer.
    #[inline]
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

    #[inline]
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

    #[inline]
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
