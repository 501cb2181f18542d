//! What is learned of columns: whether their values repeat, in part or as a whole, and so what is worth looking up.
//!
//! It is learned from 128 values at a time and kept from request to request, by the names of columns.

use std::collections::HashMap;

use crate::marks::{COLUMNS_MAX, Column, KEYS_PER_COLUMN, Marks, UNNAMED};

/// How values of a column are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Class {
    /// Few values, most of them seen before: matched together with what is around them.
    #[default]
    Repeated,
    /// Parts of values were seen before: looked up by their ends and by eight bytes at a time.
    Partial,
    /// Always new: not looked up.
    New,
}

/// What is known of values of one column and of one length, modulo 16.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key {
    /// Where the last one started.
    pub(crate) head: u32,
    pub(crate) class: Class,
    /// How often the bytes before one may differ from those before the last one, until that is not tried any more.
    pub(crate) trust: u8,
    /// How often the first bytes of a value may be new, until they are not looked up any more.
    pub(crate) ahead: u8,
    /// How many bytes the column's values have in common at their start.
    pub(crate) skip: u8,
}

/// What is known of one column.
#[derive(Clone, Copy, Debug)]
struct Learned {
    class: Class,
    /// The class is given.
    is_fixed: bool,
    skip: u8,
    /// The shortest common start of the values seen since the last judgement.
    common: u8,
    /// Values seen since, how many of them were whole matches, and how many bytes were saved.
    values: u16,
    whole: u16,
    saved: u32,
}

impl Learned {
    const fn new(class: Class, is_fixed: bool) -> Learned {
        Learned {
            class,
            is_fixed,
            skip: 0,
            common: COMMON_MAX,
            values: 0,
            whole: 0,
            saved: 0,
        }
    }
}

/// Values that a judgement is made of.
const JUDGED: u16 = 128;
/// Columns whose values were always new are tried again every so many requests.
const EXPLORE_EVERY: u32 = 8;
/// Lookups that may fail before they are given up for the request.
pub(crate) const TRUST: u8 = 3;
pub(crate) const TRUST_AHEAD: u8 = 8;
/// The longest common start that is measured.
pub(crate) const COMMON_MAX: u8 = 100;
/// Columns that are remembered. More names would be a sign that names are data.
const REMEMBERED_MAX: usize = 4096;

pub(crate) const KEYS: usize = COLUMNS_MAX * KEYS_PER_COLUMN;

/// All columns of a worker.
pub(crate) struct Columns {
    pub(crate) keys: Box<[Key; KEYS]>,
    /// Those of the request.
    learned: Box<[Learned; COLUMNS_MAX]>,
    remembered: HashMap<u64, Learned>,
    requests: u32,
}

impl Columns {
    pub(crate) fn new() -> Columns {
        let mut learned = Box::new([Learned::new(Class::Repeated, false); COLUMNS_MAX]);
        for column in [Column::TIME, Column::TRACE_ID, Column::SPAN_ID] {
            learned[usize::from(column.0)] = Learned::new(Class::New, true);
        }
        for column in [Column::CONSTANT, Column::END] {
            learned[usize::from(column.0)] = Learned::new(Class::Repeated, true);
        }
        let keys = vec![Key::default(); KEYS].into_boxed_slice();
        Columns {
            keys: keys.try_into().expect("the length is that of the array"),
            learned,
            remembered: HashMap::new(),
            requests: 0,
        }
    }

    /// Starts a request: loads what is known of its columns.
    pub(crate) fn start(&mut self, marks: &Marks) {
        let explores = self.requests.is_multiple_of(EXPLORE_EVERY);
        self.requests = self.requests.wrapping_add(1);
        for (at, name) in marks.names().iter().enumerate() {
            let known = self.remembered.get(name).copied();
            self.learned[UNNAMED + at] = known.unwrap_or(Learned::new(Class::Repeated, false));
        }
        let used = UNNAMED + marks.names().len();
        for (column, learned) in self.learned[..used].iter_mut().enumerate() {
            if explores && learned.class == Class::New && !learned.is_fixed {
                *learned = Learned::new(Class::Partial, false);
            }
            for key in &mut self.keys[column * KEYS_PER_COLUMN..][..KEYS_PER_COLUMN] {
                key.class = learned.class;
                key.skip = learned.skip;
                key.trust = TRUST;
                key.ahead = TRUST_AHEAD;
            }
        }
    }

    /// Ends a request: remembers what was learned.
    pub(crate) fn finish(&mut self, marks: &Marks) {
        if self.remembered.len() + marks.names().len() > REMEMBERED_MAX {
            self.remembered.clear();
        }
        for (name, learned) in marks.names().iter().zip(&self.learned[UNNAMED..]) {
            self.remembered.insert(*name, *learned);
        }
    }

    /// Positions are counted anew: no value is where it was.
    pub(crate) fn forget_places(&mut self) {
        for key in self.keys.iter_mut() {
            key.head = 0;
        }
    }

    /// Whether the common start of this column's values is wanted now.
    #[inline(always)]
    pub(crate) fn wants_common(&self, column: usize) -> bool {
        self.learned[column % COLUMNS_MAX].values.is_multiple_of(8)
    }

    pub(crate) fn common(&mut self, column: usize, count: usize) {
        let learned = &mut self.learned[column % COLUMNS_MAX];
        learned.common = learned.common.min(count as u8);
    }

    /// A value of a repeated column was found as a whole, or not.
    #[inline(always)]
    pub(crate) fn saw_repeated(&mut self, column: usize, is_whole: bool) {
        let learned = &mut self.learned[column % COLUMNS_MAX];
        learned.values += 1;
        learned.whole += u16::from(is_whole);
        if learned.values >= JUDGED {
            let is_repeated = learned.is_fixed || learned.whole >= JUDGED / 2;
            learned.values = 0;
            learned.whole = 0;
            if !is_repeated {
                self.judge(column, Class::Partial);
            }
        }
    }

    /// The first bytes of a partial column's value saved so many bytes.
    #[inline(always)]
    pub(crate) fn saved(&mut self, column: usize, bytes: usize) {
        let learned = &mut self.learned[column % COLUMNS_MAX];
        learned.saved = learned.saved.saturating_add(bytes as u32);
    }

    /// A value of a partial column was looked up: whether all of it was found, and how many bytes that saved.
    #[inline(always)]
    pub(crate) fn saw_partial(&mut self, column: usize, is_whole: bool, saved: usize) {
        self.saved(column, saved);
        let learned = &mut self.learned[column % COLUMNS_MAX];
        learned.values += 1;
        learned.whole += u16::from(is_whole);
        if learned.values >= JUDGED {
            /// Nearly all.
            const WHOLE_MIN: u16 = JUDGED - 6;
            let class = if learned.whole >= WHOLE_MIN {
                Class::Repeated
            } else if learned.saved < u32::from(JUDGED) {
                Class::New
            } else {
                Class::Partial
            };
            learned.skip = learned.common;
            self.judge(column, class);
        }
    }

    #[cold]
    #[inline(never)]
    fn judge(&mut self, column: usize, class: Class) {
        let learned = &mut self.learned[column % COLUMNS_MAX];
        *learned = Learned {
            skip: learned.skip,
            ..Learned::new(class, learned.is_fixed)
        };
        let skip = learned.skip;
        for key in &mut self.keys[column * KEYS_PER_COLUMN..][..KEYS_PER_COLUMN] {
            key.class = class;
            key.skip = skip;
        }
    }
}
