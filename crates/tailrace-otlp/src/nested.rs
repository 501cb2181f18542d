//! Writing JSON text as `AnyValue`, in one walk.
//!
//! Bytes are appended while the text of a value is read and checked, and lengths are written after the content that they
//! count. If the text turns out not to be JSON, the bytes are removed and it is sent as a string. Keys that an object
//! already has are left out; values nested deeper than [`NESTING_MAX`] are sent as text. Apart from removed values, hardly a
//! byte is read twice.

mod learn;
mod names;
mod scalar;
mod shapes;
mod walk;

use tailrace_model::json::{self, Kind, Value};

use crate::any::{ARRAY, Flat, KEY, KVLIST, NESTING_MAX, VALUE, VALUES, Values};
use crate::keys::{Object, Span};
use crate::number::integer;
use crate::open::Place;
use crate::wire::{Open, ROOM, varint_len, write_varint};
use names::Names;
pub(crate) use names::Places;
use scalar::{Scalar, unescape};
pub(crate) use shapes::Shapes;
use walk::Walk;

/// No longer texts are compared with earlier ones.
const KNOWN_MAX: usize = 16 * 1024;
/// A text that a view holds itself is walked with so many bytes behind it.
const INLINE_ROOM: usize = 64;

impl Values {
    /// A field `tag` that is a KeyValue with `prefix` and an object or array by its text.
    pub(crate) fn json_attribute(
        &mut self,
        tag: u8,
        prefix: &[u8],
        place: Place<'_>,
        depth: usize,
    ) {
        let mut inline = [0; INLINE_ROOM];
        let (text, len) = wide(place, &mut inline);
        self.out.byte(tag);
        let key_value = self.out.open(prefix.len() + len + 16);
        self.out.bytes(prefix);
        let is_known = depth == 0 && len <= KNOWN_MAX && {
            let room = self.out.room(4 * len + 2 * ROOM);
            let (walk, root) = (Walk::new(text, len), root_of(prefix));
            let written = self.shapes.write(walk, root, &mut self.text, room);
            written.map(|len| self.out.take_room(len)).is_some()
        };
        if !is_known {
            let stats = self.stats;
            self.json(text, len, depth);
            if depth == 0 && self.stats == stats {
                self.shapes.learn(&text[..len], root_of(prefix));
            }
        }
        self.out.close(key_value);
    }

    /// As [`Self::json_attribute`], to the front of `room`, if the text looks like an earlier one and there is enough
    /// room. Gives the length.
    pub(crate) fn known_json_attribute(
        &mut self,
        tag: u8,
        prefix: &[u8],
        place: Place<'_>,
        room: &mut [u8],
    ) -> Option<usize> {
        let mut inline = [0; INLINE_ROOM];
        let (text, len) = wide(place, &mut inline);
        let width = varint_len((prefix.len() + len + 16) as u64);
        let start = 1 + width + prefix.len();
        let content = room.get_mut(start..)?;
        let root = root_of(prefix);
        let any = self
            .shapes
            .write(Walk::new(text, len), root, &mut self.text, content)?;
        let key_value = prefix.len() + any;
        let needed = varint_len(key_value as u64);
        if needed != width {
            room.get(start + any..start + any + needed)?;
            room.copy_within(start..start + any, 1 + needed + prefix.len());
        }
        room[0] = tag;
        let at = 1 + write_varint(&mut room[1..], key_value as u64);
        room[at..at + prefix.len()].copy_from_slice(prefix);
        Some(at + key_value)
    }

    /// An AnyValue with its length of an object or array by its text: the first `len` bytes of `text`.
    pub(crate) fn json(&mut self, text: &[u8], len: usize, depth: usize) {
        if depth >= NESTING_MAX {
            self.stats.too_deep += 1;
            return self.flat(Flat::String(&text[..len]));
        }
        let (start, stats) = (self.out.len(), self.stats);
        let mut walk = Walk::new(text, len);
        let is_whole = match walk.peek() {
            Some(b'{' | b'[') => {
                let end = self.container(&mut walk, depth);
                end.is_some() && walk.peek().is_none()
            }
            // A scalar that was said to be an object has no members.
            _ => std::str::from_utf8(&text[..len]).is_ok_and(|text| {
                let is_scalar = json::parse_value(text).is_some();
                if is_scalar {
                    self.out.bytes(&[2, KVLIST, 0]);
                }
                is_scalar
            }),
        };
        if !is_whole {
            self.out.truncate(start);
            self.stats = stats;
            self.stats.invalid_json += 1;
            self.flat(Flat::String(&text[..len]));
        }
    }

    /// Members of a JSON object as attributes with field `tag`, as far as `is_new` lets their keys through and none occurs
    /// twice. The keys stay open in `object`.
    pub(crate) fn members<'t>(
        &mut self,
        tag: u8,
        members: impl Iterator<Item = (Value<'t>, Value<'t>)>,
        object: Object,
        is_new: impl Fn(&[u8]) -> bool,
    ) {
        for (key, value) in members {
            let Some(key) = self.keys.insert(object, &key, &is_new) else {
                self.stats.duplicate_keys += 1;
                continue;
            };
            if let Kind::Object | Kind::Array = value.kind {
                let key_value = self.open_attribute_of(tag, key, value.text.len());
                self.json(value.text.as_bytes(), value.text.len(), 0);
                self.out.close(key_value);
            } else {
                self.scalar_member(tag, key, value);
            }
        }
    }

    /// An AnyValue with its length, of the object or array that starts here.
    fn container(&mut self, walk: &mut Walk<'_>, depth: usize) -> Option<()> {
        let (start, whole);
        if walk.next() == b'[' {
            start = self.out.open_list(ARRAY);
            whole = self.elements(walk, depth + 1);
        } else {
            start = self.out.open_list(KVLIST);
            let mut names = Names::start(&self.names);
            whole = self.object(walk, depth + 1, &mut names);
            names.end(&mut self.names, &mut self.keys);
        }
        self.out.close_list(start);
        whole
    }

    fn elements(&mut self, walk: &mut Walk<'_>, depth: usize) -> Option<()> {
        if walk.peek()? == b']' {
            walk.next();
            return Some(());
        }
        loop {
            match walk.peek()? {
                b'{' | b'[' => {
                    self.out.byte(VALUES);
                    self.child(walk, depth)?;
                }
                b'"' => {
                    let text = walk.string()?;
                    if text.escaped {
                        let text = unescape(walk.between(text.start, text.end), &mut self.text);
                        self.out.element(text);
                    } else {
                        let len = text.end - text.start;
                        self.out.element(Scalar::Text(walk.from(text.start), len));
                    }
                }
                first => self.out.element(walk.plain(first)?),
            }
            if !walk.goes_on(b']')? {
                return Some(());
            }
        }
    }

    fn object(&mut self, walk: &mut Walk<'_>, depth: usize, names: &mut Names) -> Option<()> {
        if walk.peek()? == b'}' {
            walk.next();
            return Some(());
        }
        loop {
            self.member(walk, depth, names)?;
            if !walk.goes_on(b'}')? {
                return Some(());
            }
        }
    }

    /// One member of an object, unless its key is not new.
    fn member(&mut self, walk: &mut Walk<'_>, depth: usize, names: &mut Names) -> Option<()> {
        if walk.peek()? != b'"' {
            return None;
        }
        let key = walk.string()?;
        walk.take(b':')?;
        let first = walk.peek()?;
        let Some(name) = names.insert(walk, key, &mut self.names, &mut self.keys) else {
            self.stats.duplicate_keys += 1;
            return walk.value().map(|_| ());
        };
        let (key, len) = name.of(walk, &self.keys);
        match first {
            b'{' | b'[' => {
                let key_value = self.out.open_member(key, len);
                self.child(walk, depth)?;
                self.out.close(key_value);
            }
            b'"' => {
                let text = walk.string()?;
                if text.escaped {
                    let text = unescape(walk.between(text.start, text.end), &mut self.text);
                    self.out.member(key, len, text);
                } else {
                    let text = Scalar::Text(walk.from(text.start), text.end - text.start);
                    self.out.member(key, len, text);
                }
            }
            _ => self.out.member(key, len, walk.plain(first)?),
        }
        Some(())
    }

    /// An AnyValue with its length, of the object or array that starts here.
    #[inline]
    fn child(&mut self, walk: &mut Walk<'_>, depth: usize) -> Option<()> {
        if depth < NESTING_MAX {
            return self.container(walk, depth);
        }
        let text = walk.value()?;
        self.stats.too_deep += 1;
        self.flat(Flat::String(text));
        Some(())
    }

    /// The start of an attribute whose value will take about `guess` bytes.
    fn open_attribute_of(&mut self, tag: u8, key: Span, guess: usize) -> Open {
        let key = self.keys.key(key);
        self.out.byte(tag);
        let key_value = self.out.open(key.len() + guess + 8);
        self.out.text_field(KEY >> 3, key);
        self.out.byte(VALUE);
        key_value
    }

    #[inline]
    fn scalar_member(&mut self, tag: u8, key: Span, value: Value<'_>) {
        self.with_scalar(value, |values, flat| {
            values.key_value(tag, key, flat);
        });
    }

    /// A member with a value of known length.
    #[inline]
    fn key_value(&mut self, tag: u8, key: Span, flat: Flat<'_>) {
        let key = self.keys.key(key);
        let any = flat.len();
        let key_len = match key.len() {
            0 => 0,
            len => 1 + varint_len(len as u64) + len,
        };
        self.out.byte(tag);
        self.out
            .varint((key_len + 1 + varint_len(any as u64) + any) as u64);
        self.out.text_field(KEY >> 3, key);
        self.out.byte(VALUE);
        self.out.varint(any as u64);
        flat.write(&mut self.out);
    }

    /// Hands over how a scalar is written.
    #[inline]
    fn with_scalar(&mut self, value: Value<'_>, write: impl FnOnce(&mut Values, Flat<'_>)) {
        let text = value.text;
        let flat = match value.kind {
            Kind::String if value.escaped => {
                let mut unescaped = std::mem::take(&mut self.text);
                unescaped.clear();
                if json::unescape(text, &mut unescaped) == json::Unescaped::Invalid {
                    unescaped.extend_from_slice(text.as_bytes());
                }
                write(self, Flat::String(&unescaped));
                self.text = unescaped;
                return;
            }
            // Beyond i64 (or f64) as text: never rounded.
            Kind::Integer => integer(text).map_or(Flat::String(text.as_bytes()), Flat::Int),
            Kind::Float => Flat::of_number(text),
            Kind::Bool => Flat::Bool(text == "true"),
            Kind::Null => Flat::Null,
            Kind::String | Kind::Object | Kind::Array => Flat::String(text.as_bytes()),
        };
        write(self, flat);
    }
}

/// A text with what is behind it, and its length.
#[inline(always)]
fn wide<'t>(place: Place<'t>, inline: &'t mut [u8; INLINE_ROOM]) -> (&'t [u8], usize) {
    match place {
        Place::Inline(text, len) => {
            inline[..16].copy_from_slice(&text.to_le_bytes());
            (&inline[..], len)
        }
        Place::Buffer(text, len) => (text, len),
    }
}

/// What stands for the texts of a column when it is looked for known ones.
fn root_of(prefix: &[u8]) -> usize {
    let at = |at: usize| usize::from(prefix.get(at).copied().unwrap_or(0));
    at(2) + 3 * at(prefix.len().saturating_sub(2)) + 8 * prefix.len()
}
