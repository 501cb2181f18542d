//! The members of one record whose keys found no column: put together as one JSON object.
//!
//! Collects keys and their values' JSON text, and returns the object's text. Of duplicate keys the first counts.
//! Memory is that of the largest record's overflow at most. Never checks the values.

use tailrace_model::json;

use crate::keys::Interner;

/// The object of the record at hand.
#[derive(Debug, Default)]
pub(crate) struct Overflow {
    keys: Interner,
    /// The object so far, without the brace that closes it.
    object: Vec<u8>,
}

impl Overflow {
    /// Whether the record's object has (or had a bad value for) this key; from now on it has.
    pub(crate) fn is_duplicate(&mut self, key: &str) -> bool {
        if self.keys.find(key).is_some() {
            return true;
        }
        self.keys.insert(key);
        false
    }

    /// Adds a member.
    pub(crate) fn push(&mut self, key: &str, value: &str) {
        self.object
            .push(if self.object.is_empty() { b'{' } else { b',' });
        json::write_string(key, &mut self.object);
        self.object.push(b':');
        self.object.extend_from_slice(value.as_bytes());
    }

    /// Whether the record has no overflow.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.len() == 0
    }

    /// Gives the object's text, unless no member was added, to `take` and starts anew.
    pub(crate) fn finish(&mut self, take: impl FnOnce(&[u8])) {
        const KEPT: usize = 64 * 1024;
        if !self.object.is_empty() {
            self.object.push(b'}');
            take(&self.object);
        }
        self.object.clear();
        self.object.shrink_to(KEPT);
        self.keys.truncate(0);
    }
}
