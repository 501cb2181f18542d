//! The keys a scanner knows: which of them are wanted, and where their values go.
//!
//! Looks up keys as they are met, and says what is to be done with their values. Keys of `SELECT *` that found no
//! column are remembered too, but only a bounded number of them: when it is reached they are all forgotten. Never
//! remembers unboundedly many keys.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use crate::config::Unwanted;
use crate::template::KeyUse;
use crate::unwanted::UnwantedKeys;

/// No known key.
pub(crate) const NONE: u32 = u32::MAX;

/// Longest key that becomes a column of its own in `SELECT *`; members with longer ones overflow.
pub(crate) const KEY_BYTES_MAX: usize = 1024;
/// How many keys that have no column are remembered.
const FORGETTABLE_MAX: usize = 1024;
/// The longest of them.
const FORGETTABLE_BYTES_MAX: usize = 256;

/// What `SELECT *` does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Star {
    /// Nothing: not all keys are wanted, or not this one.
    Out,
    /// Wanted, and not met yet.
    Unmet,
    /// Its own column, by number in order of first appearance.
    Column(u32),
    /// The overflow column.
    Overflow,
}

/// The keys a scanner knows.
#[derive(Debug)]
pub(crate) struct Keys {
    names: Interner,
    /// Parallel to `names`. The first `kept` stay, the others can be forgotten.
    entries: Vec<Entry>,
    kept: usize,
    /// The keys of `SELECT *` that have a column, in order of first appearance.
    columns: Vec<Arc<str>>,
    /// Of each of them whether it is one that always has a column.
    are_placed: Vec<bool>,
    /// How many of them there may be, not counting keys that always have one; `None` if not all keys are wanted.
    columns_max: Option<usize>,
    /// How many of `columns` are those of keys that always have one.
    placed: usize,
    /// Those that no column wants, if they are to be noted.
    unwanted: Option<UnwantedKeys>,
}

/// One known key.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The last record that had this key, by number.
    pub(crate) seen: u64,
    /// The targets of its value, in the plan's list.
    pub(crate) targets: Range<usize>,
    pub(crate) star: Star,
    /// It has a column whatever others have one.
    has_place: bool,
}

impl Keys {
    /// `wanted` are the keys wanted by name, with their targets. If `columns_max` is given, `SELECT *` wants all keys
    /// but those in `except`; those in `kept` have a column in any case.
    pub(crate) fn new<'a>(
        wanted: impl IntoIterator<Item = (&'a str, Range<usize>)>,
        except: &[String],
        kept: &[String],
        columns_max: Option<usize>,
    ) -> Keys {
        let mut keys = Keys {
            names: Interner::default(),
            entries: Vec::new(),
            kept: 0,
            columns: Vec::new(),
            are_placed: Vec::new(),
            columns_max,
            placed: 0,
            unwanted: None,
        };
        let unmet = if columns_max.is_some() {
            Star::Unmet
        } else {
            Star::Out
        };
        for (name, targets) in wanted {
            keys.insert(name, targets, unmet);
        }
        for name in kept {
            let id = keys.names.find(name);
            let id = id.unwrap_or_else(|| keys.insert(name, 0..0, unmet));
            keys.entries[id as usize].has_place = true;
        }
        for name in except {
            match keys.names.find(name) {
                Some(id) => keys.entries[id as usize].star = Star::Out,
                None => _ = keys.insert(name, 0..0, Star::Out),
            }
        }
        keys.kept = keys.entries.len();
        keys
    }

    /// The same keys, which note others that are met.
    pub(crate) fn noting(self, unwanted: Option<&Unwanted>) -> Keys {
        Keys {
            unwanted: unwanted.map(UnwantedKeys::new),
            ..self
        }
    }

    /// Whether keys that no column wants are still to be noted.
    #[inline]
    pub(crate) fn notes_unwanted(&self) -> bool {
        self.unwanted.as_ref().is_some_and(|keys| !keys.is_full())
    }

    /// Notes a key that is not known, if such keys are to be noted.
    pub(crate) fn note_unwanted(&mut self, name: &str) {
        if let Some(unwanted) = &mut self.unwanted {
            unwanted.note(name);
        }
    }

    /// The keys that were noted.
    pub(crate) fn unwanted(&self) -> impl Iterator<Item = &str> {
        self.unwanted.iter().flat_map(UnwantedKeys::names)
    }

    /// Whether all keys are wanted.
    #[inline]
    pub(crate) fn wants_all(&self) -> bool {
        self.columns_max.is_some()
    }

    /// The keys of `SELECT *` that have a column, in order of first appearance.
    pub(crate) fn star_columns(&self) -> &[Arc<str>] {
        &self.columns
    }

    /// Whether the key of the column with this number always has one.
    pub(crate) fn has_place(&self, column: u32) -> bool {
        self.are_placed[column as usize]
    }

    /// A known key's name.
    pub(crate) fn name(&self, id: u32) -> &str {
        self.names.get(id)
    }

    /// A known key.
    #[inline]
    pub(crate) fn entry(&mut self, id: u32) -> &mut Entry {
        &mut self.entries[id as usize]
    }

    /// The number of a key, if it is known.
    pub(crate) fn find(&self, name: &str) -> Option<u32> {
        self.names.find(name)
    }

    /// Where the values of a known key go.
    pub(crate) fn wanted(&self, id: u32) -> (Range<usize>, Star) {
        let entry = &self.entries[id as usize];
        (entry.targets.clone(), entry.star)
    }

    /// What a member with this key would be in a template.
    pub(crate) fn key_use(&self, name: &str) -> KeyUse {
        let entry = self.names.find(name).map(|id| &self.entries[id as usize]);
        let star = match entry {
            Some(entry) => entry.star,
            None if self.wants_all() => Star::Unmet,
            None => Star::Out,
        };
        let has_place = entry.is_some_and(|entry| entry.has_place);
        match star {
            Star::Overflow => KeyUse::NoColumn,
            Star::Unmet if !has_place && !self.has_column_for(name) => KeyUse::NoColumn,
            _ => KeyUse::Supported,
        }
    }

    /// The number of a key that was met; [`NONE`] if it is not remembered, which means that it is wanted for nothing but
    /// the overflow of `SELECT *`.
    pub(crate) fn meet(&mut self, name: &str) -> u32 {
        match self.names.find(name) {
            Some(id) => {
                if self.entries[id as usize].star == Star::Unmet {
                    let has_place = self.entries[id as usize].has_place;
                    self.entries[id as usize].star = self.new_star(name, has_place);
                }
                id
            }
            None => self.learn(name),
        }
    }

    fn learn(&mut self, name: &str) -> u32 {
        if !self.wants_all() {
            self.note_unwanted(name);
            return NONE;
        }
        let star = self.new_star(name, false);
        if let Star::Column(_) = star {
            // It stays, so it has to stand before all that can be forgotten.
            self.forget();
            self.kept += 1;
        } else if name.len() > FORGETTABLE_BYTES_MAX {
            return NONE;
        } else if self.entries.len() - self.kept >= FORGETTABLE_MAX {
            self.forget();
        }
        self.insert(name, 0..0, star)
    }

    fn new_star(&mut self, name: &str, has_place: bool) -> Star {
        if !has_place && !self.has_column_for(name) {
            return Star::Overflow;
        }
        self.placed += usize::from(has_place);
        self.columns.push(name.into());
        self.are_placed.push(has_place);
        Star::Column(self.columns.len() as u32 - 1)
    }

    /// Whether a key of `SELECT *` that was not met yet, and has no place kept for it, would get a column.
    fn has_column_for(&self, name: &str) -> bool {
        let count = self.columns.len() - self.placed;
        name.len() <= KEY_BYTES_MAX && self.columns_max.is_some_and(|max| count < max)
    }

    fn forget(&mut self) {
        if self.entries.len() > self.kept {
            self.entries.truncate(self.kept);
            self.names.truncate(self.kept);
        }
    }

    fn insert(&mut self, name: &str, targets: Range<usize>, star: Star) -> u32 {
        self.entries.push(Entry::new(targets, star));
        self.names.insert(name)
    }
}

impl Entry {
    fn new(targets: Range<usize>, star: Star) -> Entry {
        Entry {
            seen: 0,
            targets,
            star,
            has_place: false,
        }
    }

    /// Whether the value is wanted for anything.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        !self.targets.is_empty() || self.star != Star::Out
    }
}

/// A set of texts, numbered in order of insertion. One allocation each for text, ends and table.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    text: String,
    ends: Vec<u32>,
    /// Open addressing, a power of two long and at most half full: a number plus 1, or 0 for free.
    table: Vec<u32>,
    hasher: RandomState,
}

impl Interner {
    /// How many texts there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The text with this number.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> &str {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.text[start as usize..self.ends[id] as usize]
    }

    /// The number of a text, if it is in the set.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        let mut slot = self.hasher.hash_one(text) as usize;
        while let Some(id) = self
            .table
            .get(slot & self.table.len().wrapping_sub(1))?
            .checked_sub(1)
        {
            if self.get(id) == text {
                return Some(id);
            }
            slot = slot.wrapping_add(1);
        }
        None
    }

    /// Adds a text that is not in the set.
    pub(crate) fn insert(&mut self, text: &str) -> u32 {
        let id = self.ends.len() as u32;
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
        if self.ends.len() * 2 > self.table.len() {
            self.rebuild((self.table.len() * 2).max(TABLE_MIN));
        } else {
            self.place(id);
        }
        id
    }

    /// Leaves the first `len` texts. Costs what they cost, and the memory of many more is given back.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.ends.len() {
            return;
        }
        self.ends.truncate(len);
        let text_len = self.ends.last().map_or(0, |&end| end as usize);
        self.text.truncate(text_len);
        let table_len = (len * 2).next_power_of_two().max(TABLE_MIN);
        if self.table.len() > 16 * table_len {
            self.table = Vec::new();
            self.text.shrink_to(text_len.max(TABLE_MIN));
        }
        self.rebuild(self.table.len().max(table_len));
    }

    fn rebuild(&mut self, table_len: usize) {
        self.table.clear();
        self.table.resize(table_len, 0);
        for id in 0..self.ends.len() as u32 {
            self.place(id);
        }
    }

    fn place(&mut self, id: u32) {
        let mask = self.table.len() - 1;
        let mut slot = self.hasher.hash_one(self.get(id)) as usize & mask;
        while self.table[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.table[slot] = id + 1;
    }
}

const TABLE_MIN: usize = 64;

#[cfg(test)]
mod tests;
