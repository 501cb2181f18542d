//! Keys seen in an object, so that no key is written twice.
//!
//! It decides for each key of nested objects, in the order of the text, whether it is new. A few keys are compared one
//! by one, many through a hash table; both compare the whole key. Memory is reused between records. The first of equal keys
//! is never dropped.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use tailrace_model::json::{Unescaped, Value, unescape, unescape_bytes};

/// The keys of all objects that are open at the moment, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// The unescaped keys, one behind the other.
    text: Vec<u8>,
    /// Where each of them lies in `text`, with a prefix that distinguishes most keys.
    spans: Vec<(Span, u32)>,
    /// Of objects with many keys: (object, hash) to an index of `spans`.
    index: HashMap<(u32, u64), u32>,
    hasher: RandomState,
    /// Number of objects opened since the index was cleared.
    objects: u32,
}

/// One open object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    first: usize,
    text: usize,
    number: u32,
}

/// Where a key lies; until its object is closed.
pub(crate) type Span = (u32, u32);

/// Up to so many keys are compared one by one.
const COMPARED_MAX: usize = 16;
/// A table grown beyond this by one strange record is given back.
const INDEX_KEPT_MAX: usize = 4096;

impl Keys {
    /// Opens an object within the innermost open one.
    pub(crate) fn open(&mut self) -> Object {
        self.objects += 1;
        Object {
            first: self.spans.len(),
            text: self.text.len(),
            number: self.objects,
        }
    }

    /// Closes the innermost object.
    pub(crate) fn close(&mut self, object: Object) {
        self.spans.truncate(object.first);
        self.text.truncate(object.text);
        if !self.spans.is_empty() || object.first > 0 {
            return;
        }
        self.objects = 0;
        if self.index.capacity() > INDEX_KEPT_MAX {
            self.index = HashMap::default();
        }
        self.index.clear();
    }

    /// Adds a key to the innermost object and gives it unescaped, or nothing if the object has it
    /// already or `is_wanted` refuses it.
    pub(crate) fn insert(
        &mut self,
        object: Object,
        key: &Value<'_>,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Option<Span> {
        let start = self.text.len();
        if !key.escaped || unescape(key.text, &mut self.text) == Unescaped::Invalid {
            self.text.extend_from_slice(key.text.as_bytes());
        }
        if !is_wanted(&self.text[start..]) {
            self.text.truncate(start);
            return None;
        }
        self.insert_written(object, start)
    }

    /// Adds a key with escapes.
    pub(crate) fn insert_escaped(&mut self, object: Object, key: &[u8]) -> Option<Span> {
        let start = self.text.len();
        if unescape_bytes(key, &mut self.text) == Unescaped::Invalid {
            self.text.extend_from_slice(key);
        }
        self.insert_written(object, start)
    }

    /// Adds a key as it is.
    pub(crate) fn insert_text(&mut self, object: Object, key: &[u8]) -> Option<Span> {
        let start = self.text.len();
        self.text.extend_from_slice(key);
        self.insert_written(object, start)
    }

    /// The text of a key.
    #[inline]
    pub(crate) fn key(&self, (start, end): Span) -> &[u8] {
        &self.text[start as usize..end as usize]
    }

    fn insert_written(&mut self, object: Object, start: usize) -> Option<Span> {
        let key = &self.text[start..];
        let glance = glance(key);
        let count = self.spans.len() - object.first;
        let compared = &self.spans[object.first..object.first + count.min(COMPARED_MAX)];
        let is_known = compared
            .iter()
            .any(|(span, other)| *other == glance && self.key(*span) == key);
        if is_known || (count >= COMPARED_MAX && !self.index_new(object, start)) {
            self.text.truncate(start);
            return None;
        }
        // A record's keys are far below 4 GiB.
        let span = (start as u32, self.text.len() as u32);
        self.spans.push((span, glance));
        Some(span)
    }

    /// Enters the key at `start` as the next of `spans` in the index, unless it is there.
    fn index_new(&mut self, object: Object, start: usize) -> bool {
        let key = &self.text[start..];
        let mut hash = self.hasher.hash_one(key);
        let next = self.spans.len() as u32;
        loop {
            let known = *self.index.entry((object.number, hash)).or_insert(next);
            if known == next {
                return true;
            }
            if self.key(self.spans[known as usize].0) == key {
                return false;
            }
            hash = hash.wrapping_add(1);
        }
    }
}

/// Length, first and last byte of a key; equal for equal keys.
#[inline]
fn glance(key: &[u8]) -> u32 {
    match key {
        [] => 0,
        [first, ..] => {
            let last = key[key.len() - 1];
            u32::from_le_bytes([*first, last, key.len() as u8, (key.len() >> 8) as u8])
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::HashSet;

    use proptest::prelude::*;
    use tailrace_model::json::Kind;

    proptest! {
        #[test]
        fn first_keys_are_new_and_later_ones_are_not(keys in prop::collection::vec("[ab]{0,6}", 0..200)) {
            let mut known = Keys::default();
            for _ in 0..2 {
                let object = known.open();
                let mut seen = HashSet::new();
                for key in &keys {
                    let is_new = seen.insert(key.clone());
                    // Every key has an object of its own inside, with keys that must not be mixed
                    // up with these.
                    let span = known.insert_text(object, key.as_bytes());
                    prop_assert_eq!(span.map(|span| known.key(span)), is_new.then_some(key.as_bytes()));
                    let inner = known.open();
                    for other in keys.iter().take(3).collect::<HashSet<_>>() {
                        prop_assert!(known.insert_text(inner, other.as_bytes()).is_some());
                    }
                    known.close(inner);
                }
                known.close(object);
                prop_assert!(known.spans.is_empty() && known.text.is_empty() && known.index.is_empty());
            }
        }
    }

    #[test]
    fn keys_are_compared_unescaped_and_a_refused_key_leaves_nothing() {
        let mut known = Keys::default();
        let object = known.open();
        let escaped = Value {
            kind: Kind::String,
            text: r"\u0061",
            escaped: true,
        };
        let plain = Value {
            kind: Kind::String,
            text: "a",
            escaped: false,
        };
        assert_eq!(known.insert(object, &escaped, |key| key != b"a"), None);
        let span = known.insert(object, &escaped, |key| key == b"a").unwrap();
        assert_eq!(known.key(span), b"a");
        assert_eq!(known.insert(object, &plain, |_| true), None);
    }

    #[test]
    fn an_object_of_many_keys_is_quick_and_leaves_nothing() {
        let mut known = Keys::default();
        let object = known.open();
        for round in 0..2 {
            for key in 0..100_000u32 {
                assert_eq!(
                    known.insert_text(object, &key.to_le_bytes()).is_some(),
                    round == 0
                );
            }
        }
        known.close(object);
        assert!(known.index.capacity() <= INDEX_KEPT_MAX);
    }
}
