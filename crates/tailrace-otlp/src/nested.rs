//! Writing JSON text as `AnyValue`, in one walk.
//!
//! Takes the text of a value, appends bytes while it reads: what is read is checked on the way, and lengths are closed
//! behind what they count. Text that turns out not to be JSON is taken back and sent as a string. Keys that an object
//! has already are left out; values nested deeper than [`NESTING_MAX`] are sent as text. Never reads a byte twice, but
//! for those that were taken back.

use tailrace_model::json::{self, DEPTH_MAX, Kind, Members, Value};

use crate::any::{ARRAY, Flat, KEY, KVLIST, NESTING_MAX, VALUE, VALUES, Values};
use crate::keys::{Object, Span};
use crate::number::integer;
use crate::wire::{Open, varint_len};

/// JSON text, and where in it the walk is.
#[derive(Clone, Copy)]
struct Walk<'t> {
    text: &'t str,
    at: usize,
    /// How many levels more may be opened.
    levels: usize,
    /// How many values hold this one.
    depth: usize,
}

impl<'t> Walk<'t> {
    /// The first byte that is not whitespace; the walk is then before it.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        self.at = json::skip_whitespace(self.text, self.at);
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over this byte, if it is next.
    #[inline]
    fn take(&mut self, byte: u8) -> Option<()> {
        let is_next = self.peek()? == byte;
        self.at += usize::from(is_next);
        is_next.then_some(())
    }

    /// Passes over a value.
    #[inline]
    fn value(&mut self) -> Option<Value<'t>> {
        let (value, end) = json::first_value_within(self.text, self.at, self.levels)?;
        self.at = end;
        Some(value)
    }

    /// Passes over what stands between two values, and says whether there is another one.
    #[inline]
    fn goes_on(&mut self, close: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            _ if byte == close => Some(false),
            _ => None,
        }
    }

    /// The walk within the value that opens here.
    #[inline]
    fn inside(self) -> Walk<'t> {
        Walk {
            at: self.at + 1,
            levels: self.levels - 1,
            depth: self.depth + 1,
            ..self
        }
    }
}

impl Values {
    /// An AnyValue with its length of an object or array by its text.
    pub(crate) fn json(&mut self, text: &str, depth: usize) {
        if depth >= NESTING_MAX {
            self.stats.too_deep += 1;
            return self.flat(Flat::String(text.as_bytes()));
        }
        let (start, stats) = (self.out.len(), self.stats);
        let mut walk = Walk {
            text,
            at: 0,
            levels: DEPTH_MAX,
            depth,
        };
        let is_whole = match walk.peek() {
            Some(b'{' | b'[') => {
                let end = self.container(walk);
                end.is_some_and(|end| json::skip_whitespace(text, end) == text.len())
            }
            // A scalar that was said to be an object has no members.
            _ => json::parse_value(text).is_some_and(|_| {
                self.out.bytes(&[2, KVLIST, 0]);
                true
            }),
        };
        if !is_whole {
            self.out.truncate(start);
            self.stats = stats;
            self.stats.invalid_json += 1;
            self.flat(Flat::String(text.as_bytes()));
        }
    }

    /// The members of the JSON object that `text` is, as attributes with field `tag`, as far as
    /// `is_new` lets their keys through and none occurs twice. The keys stay open in `object`. Where
    /// the text is not JSON the members end.
    pub(crate) fn members(
        &mut self,
        tag: u8,
        text: &str,
        object: Object,
        is_new: impl Fn(&[u8]) -> bool,
    ) {
        for (key, value) in Members::new(text) {
            let Some(key) = self.keys.insert(object, &key, &is_new) else {
                self.stats.duplicate_keys += 1;
                continue;
            };
            if let Kind::Object | Kind::Array = value.kind {
                let key_value = self.open_member(tag, key, value.text.len());
                self.json(value.text, 0);
                self.out.close(key_value);
            } else {
                self.scalar_member(tag, key, value);
            }
        }
    }

    /// An AnyValue with its length, of the object or array that starts here; gives where it ends.
    fn container(&mut self, outer: Walk<'_>) -> Option<usize> {
        let guess = self.guesses[outer.depth];
        let any = self.out.open(guess as usize);
        let is_array = outer.text.as_bytes()[outer.at] == b'[';
        self.out.byte(if is_array { ARRAY } else { KVLIST });
        let list = self.out.open(guess as usize);
        let end = if is_array {
            self.elements(outer.inside())
        } else {
            let object = self.keys.open();
            let end = self.object(outer.inside(), object);
            self.keys.close(object);
            end
        };
        // A text is below 4 GiB.
        self.guesses[outer.depth] = self.out.content_len(list) as u32;
        self.out.close(list);
        self.out.close(any);
        end
    }

    fn elements(&mut self, mut walk: Walk<'_>) -> Option<usize> {
        if walk.peek()? == b']' {
            return Some(walk.at + 1);
        }
        loop {
            self.out.byte(VALUES);
            self.element(&mut walk)?;
            if !walk.goes_on(b']')? {
                return Some(walk.at);
            }
        }
    }

    /// An AnyValue with its length of any value.
    fn element(&mut self, walk: &mut Walk<'_>) -> Option<()> {
        if let b'{' | b'[' = walk.peek()? {
            return self.child(walk);
        }
        let value = walk.value()?;
        self.with_scalar(value, |values, flat| values.flat(flat));
        Some(())
    }

    fn object(&mut self, mut walk: Walk<'_>, object: Object) -> Option<usize> {
        if walk.peek()? == b'}' {
            return Some(walk.at + 1);
        }
        loop {
            self.member(&mut walk, object)?;
            if !walk.goes_on(b'}')? {
                return Some(walk.at);
            }
        }
    }

    /// One member of an object, unless its key is not new.
    fn member(&mut self, walk: &mut Walk<'_>, object: Object) -> Option<()> {
        if walk.peek()? != b'"' {
            return None;
        }
        let key = walk.value()?;
        walk.take(b':')?;
        let first = walk.peek()?;
        let Some(key) = self.keys.insert(object, &key, |_| true) else {
            self.stats.duplicate_keys += 1;
            return walk.value().map(|_| ());
        };
        if let b'{' | b'[' = first {
            let guess = self.guesses.get(walk.depth).map_or(0, |len| *len as usize);
            let key_value = self.open_member(VALUES, key, guess);
            self.child(walk)?;
            self.out.close(key_value);
        } else {
            let value = walk.value()?;
            self.scalar_member(VALUES, key, value);
        }
        Some(())
    }

    /// The start of a member whose value will take about `guess` bytes.
    fn open_member(&mut self, tag: u8, key: Span, guess: usize) -> Open {
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

    /// An AnyValue with its length, of the object or array that starts here.
    fn child(&mut self, walk: &mut Walk<'_>) -> Option<()> {
        if walk.depth >= NESTING_MAX {
            let value = walk.value()?;
            self.stats.too_deep += 1;
            self.flat(Flat::String(value.text.as_bytes()));
        } else if walk.levels > 0 {
            walk.at = self.container(*walk)?;
        } else {
            return None;
        }
        Some(())
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
