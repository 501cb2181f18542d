//! Writing values as protobuf `AnyValue` and `KeyValue` messages.
//!
//! The bytes of cells are appended to a [`Buffer`]. The length of a scalar is computed
//! first; that of an object or array is written after its content. Nesting stops at [`NESTING_MAX`], and
//! no key occurs twice in one object. Writing cannot fail: a value that cannot be written as it is becomes text
//! and is counted.

use tailrace_zstd::Marks;

use crate::cell::{Cell, Range32, Reader, StructReader};
use crate::keys::Keys;
use crate::nested::{Places, Shapes};
use crate::number::{float, integer};
use crate::open::Place;
use crate::part::Stats;
use crate::wire::{Buffer, bytes_tag, fixed64_tag, varint_len, varint_tag};

/// Objects and arrays deeper than this are sent as JSON text. Protobuf decoders commonly stop at
/// 100 nested messages; a level of JSON costs up to three, the way to a LogRecord's attribute six.
pub const NESTING_MAX: usize = 24;

/// Writes values; holds the memory that is needed in between.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub(crate) out: Buffer,
    pub(crate) keys: Keys,
    /// The text of a value that had to be made.
    pub(crate) text: Vec<u8>,
    /// Where the keys of JSON objects are that are being written.
    pub(crate) names: Places,
    /// What JSON texts looked like.
    pub(crate) shapes: Shapes,
    pub(crate) stats: Stats,
    /// Where values are, for the compressor.
    pub(crate) marks: Marks,
}

// Fields of AnyValue.
pub(crate) const STRING: u8 = bytes_tag(1);
pub(crate) const BOOL: u8 = varint_tag(2);
pub(crate) const INT: u8 = varint_tag(3);
pub(crate) const DOUBLE: u8 = fixed64_tag(4);
pub(crate) const ARRAY: u8 = bytes_tag(5);
pub(crate) const KVLIST: u8 = bytes_tag(6);
const BYTES: u8 = bytes_tag(7);
/// `values` of ArrayValue and of KeyValueList.
pub(crate) const VALUES: u8 = bytes_tag(1);
/// Fields of KeyValue.
pub(crate) const KEY: u8 = bytes_tag(1);
pub(crate) const VALUE: u8 = bytes_tag(2);

/// Appends what a KeyValue holds before its AnyValue's length: the key, and the value's tag.
pub(crate) fn push_prefix(out: &mut Vec<u8>, key: &str) {
    if !key.is_empty() {
        crate::wire::push_bytes(out, 1, key.as_bytes());
    }
    out.push(VALUE);
}

/// An AnyValue of known length.
#[derive(Clone, Copy)]
pub(crate) enum Flat<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    String(&'v [u8]),
    Bytes(&'v [u8]),
}

/// A value that holds others.
#[derive(Clone, Copy)]
enum Nested<'v> {
    List(&'v Reader<'v>, Range32),
    Struct(&'v StructReader<'v>, usize),
    Map(&'v (Reader<'v>, Reader<'v>), Range32),
}

impl<'v> Flat<'v> {
    /// A JSON number with fraction or exponent, or one that is not finite; beyond f64 as text: never rounded.
    #[inline]
    pub(crate) fn of_number(text: &'v str) -> Flat<'v> {
        float(text).map_or(Flat::String(text.as_bytes()), Flat::Double)
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            Flat::Null => 0,
            Flat::Bool(_) => 2,
            Flat::Int(value) => 1 + varint_len(value as u64),
            Flat::Double(_) => 9,
            Flat::String(bytes) | Flat::Bytes(bytes) => {
                1 + varint_len(bytes.len() as u64) + bytes.len()
            }
        }
    }

    #[inline]
    pub(crate) fn write(self, out: &mut Buffer) {
        match self {
            Flat::Null => {}
            Flat::Bool(value) => out.bytes(&[BOOL, u8::from(value)]),
            Flat::Int(value) => {
                out.byte(INT);
                out.varint(value as u64);
            }
            Flat::Double(value) => out.fixed64(DOUBLE >> 3, value.to_bits()),
            Flat::String(bytes) => out.field(STRING >> 3, bytes),
            Flat::Bytes(bytes) => out.field(BYTES >> 3, bytes),
        }
    }
}

impl Nested<'_> {
    /// About how many bytes the AnyValue will have.
    fn guess(self) -> usize {
        const PER_ITEM: usize = 16;
        match self {
            Nested::List(_, range) | Nested::Map(_, range) => PER_ITEM * (range.iter().len() + 1),
            Nested::Struct(reader, _) => PER_ITEM * (reader.fields.len() + 1),
        }
    }
}

impl Values {
    /// A field `tag` that is a KeyValue with `prefix` ([`push_prefix`]) and the cell's value. An
    /// absent cell is written as an empty value: leaving it out is the caller's.
    #[inline]
    pub(crate) fn attribute(&mut self, tag: u8, prefix: &[u8], cell: Cell<'_>) {
        if let Cell::Str(text) = cell {
            return self.out.string_attribute(tag, prefix, text.as_bytes());
        }
        self.other_attribute(tag, prefix, cell, 0);
    }

    /// A field `tag` that is an AnyValue.
    pub(crate) fn any_field(&mut self, tag: u8, cell: Cell<'_>) {
        if let Cell::Str(text) = cell {
            return self.out.string_any_field(tag, text.as_bytes());
        }
        self.out.byte(tag);
        self.any(cell, 0);
    }

    /// A field that is a string, the text of a scalar; nothing if that is empty.
    pub(crate) fn text_field(&mut self, field: u8, cell: Cell<'_>) {
        if let Cell::Str(text) = cell {
            return self.out.text_field(field, text.as_bytes());
        }
        self.text.clear();
        cell.write_text(&mut self.text);
        self.out.text_field(field, &self.text);
    }

    fn other_attribute(&mut self, tag: u8, prefix: &[u8], cell: Cell<'_>, depth: usize) {
        if let Cell::Json(text) = cell {
            let place = Place::Buffer(text.as_bytes(), text.len());
            return self.json_attribute(tag, prefix, place, depth);
        }
        self.with_shape(cell, |values, shape| match shape {
            Ok(flat) => {
                let any = flat.len();
                values.out.byte(tag);
                values
                    .out
                    .varint((prefix.len() + varint_len(any as u64) + any) as u64);
                values.out.bytes(prefix);
                values.out.varint(any as u64);
                flat.write(&mut values.out);
            }
            Err(nested) => {
                values.out.byte(tag);
                let key_value = values.out.open(prefix.len() + nested.guess());
                values.out.bytes(prefix);
                values.nested(nested, depth);
                values.out.close(key_value);
            }
        });
    }

    /// An AnyValue with its length.
    fn any(&mut self, cell: Cell<'_>, depth: usize) {
        if let Cell::Json(text) = cell {
            return self.json(text.as_bytes(), text.len(), depth);
        }
        self.with_shape(cell, |values, shape| match shape {
            Ok(flat) => values.flat(flat),
            Err(nested) => values.nested(nested, depth),
        });
    }

    /// An AnyValue with its length.
    #[inline]
    pub(crate) fn flat(&mut self, flat: Flat<'_>) {
        self.out.varint(flat.len() as u64);
        flat.write(&mut self.out);
    }

    /// Decides how a cell is written, and makes its text where it has none.
    fn with_shape(
        &mut self,
        cell: Cell<'_>,
        write: impl FnOnce(&mut Values, Result<Flat<'_>, Nested<'_>>),
    ) {
        let shape = match cell {
            Cell::Absent | Cell::Null | Cell::Failed => Ok(Flat::Null),
            Cell::Bool(value) => Ok(Flat::Bool(value)),
            Cell::Int(value) => Ok(Flat::Int(value)),
            Cell::Float(value) => Ok(Flat::Double(value)),
            // The callers take JSON apart before.
            Cell::Str(text) | Cell::Json(text) => Ok(Flat::String(text.as_bytes())),
            Cell::Bytes(bytes) => Ok(Flat::Bytes(bytes)),
            // Beyond i64 as text: never rounded.
            Cell::Integer(text) => {
                Ok(integer(text).map_or(Flat::String(text.as_bytes()), Flat::Int))
            }
            Cell::Number(text) => Ok(Flat::of_number(text)),
            Cell::Uint(value) if i64::try_from(value).is_ok() => Ok(Flat::Int(value as i64)),
            Cell::List(reader, range) => Err(Nested::List(reader, range)),
            Cell::Struct(reader, at) => Err(Nested::Struct(reader, at)),
            Cell::Map(entries, range) => Err(Nested::Map(entries, range)),
            Cell::Uint(_)
            | Cell::Time(_)
            | Cell::Day(_)
            | Cell::FarTime(..)
            | Cell::FarDay(..)
            | Cell::Display(..) => {
                let mut text = std::mem::take(&mut self.text);
                text.clear();
                cell.write_text(&mut text);
                write(self, Ok(Flat::String(&text)));
                self.text = text;
                return;
            }
        };
        write(self, shape);
    }

    /// An AnyValue with its length that holds others.
    fn nested(&mut self, nested: Nested<'_>, depth: usize) {
        let guess = nested.guess();
        let any = self.out.open(guess);
        let is_array = matches!(nested, Nested::List(..));
        self.out.byte(if is_array { ARRAY } else { KVLIST });
        let list = self.out.open(guess);
        match nested {
            Nested::List(reader, range) => {
                for at in range.iter() {
                    self.out.byte(VALUES);
                    self.any(reader.cell(at), depth + 1);
                }
            }
            Nested::Struct(reader, at) => self.fields(reader, at, depth + 1),
            Nested::Map(entries, range) => self.entries(entries, range, depth + 1),
        }
        self.out.close(list);
        self.out.close(any);
    }

    /// The fields of a struct that are not NULL.
    fn fields(&mut self, reader: &StructReader<'_>, at: usize, depth: usize) {
        let object = self.keys.open();
        for (name, field) in &reader.fields {
            let cell = field.cell(at);
            if !cell.is_absent() {
                self.entry(object, name.as_bytes(), cell, depth);
            }
        }
        self.keys.close(object);
    }

    /// The entries of a map. A key that has no text is left out.
    fn entries(&mut self, (keys, values): &(Reader<'_>, Reader<'_>), range: Range32, depth: usize) {
        let object = self.keys.open();
        for at in range.iter() {
            let mut key = std::mem::take(&mut self.text);
            key.clear();
            let has_text = keys.cell(at).write_text(&mut key);
            if has_text {
                self.entry(object, &key, values.cell(at), depth);
            }
            self.text = key;
        }
        self.keys.close(object);
    }

    fn entry(&mut self, object: crate::keys::Object, key: &[u8], cell: Cell<'_>, depth: usize) {
        let Some(key) = self.keys.insert_text(object, key) else {
            self.stats.duplicate_keys += 1;
            return;
        };
        let key = self.keys.key(key);
        self.out.byte(VALUES);
        let key_value = self.out.open(key.len() + 16);
        self.out.text_field(KEY >> 3, key);
        self.out.byte(VALUE);
        self.any(cell, depth);
        self.out.close(key_value);
    }
}
