//! Matches from marks: the bytes of a request are looked up a value at a time instead of a byte at a time.
//!
//! Values of repeated columns are matched together with the keys and lengths around them: a *segment* starts behind the
//! last value that is not repeated and ends before the next one. The first candidate is the place before the last value
//! of the same column and length, without a hash; the second comes from a hash of the segment; then each field is
//! looked up by itself. Values of partial columns are looked up by their first bytes, their end and their parts.
//!
//! A candidate is only a place: what it repeats is found by comparing bytes. So a wrong mark, a wrong class or two hashes
//! that are equal cost bytes or time, and never change the content.

use crate::columns::{COMMON_MAX, Class, Columns, KEYS, TRUST, TRUST_AHEAD};
use crate::compare::{equal, equal_before, hash, hash_word, word};
use crate::frame::{BEFORE_MATCH, Writer};
use crate::marks::{Column, Mark, Marks};

/// Bytes at the start of a request in which nothing is looked up.
pub(crate) const FIRST: usize = 40;

const TABLE_LOG: u32 = 13;
/// Matches shorter than this are not worth a sequence, as a rule.
const WORTH: usize = 4;
const WORTH_ALONE: usize = 5;
/// Bytes behind a column's common start that are looked up together with the segment before it.
const AHEAD: usize = 16;

/// Places by hash. They are counted on from request to request, so that nothing is cleared between two: older ones are
/// out of reach.
type Places = Box<[u32; 1 << TABLE_LOG]>;

/// What a worker keeps between requests.
pub(crate) struct Matcher {
    columns: Columns,
    /// Where segments start.
    segments: Places,
    /// Where repeated fields start, tag and key included.
    fields: Places,
    /// Where eight bytes of a value end.
    parts: Places,
    /// The first byte of the request.
    base: u32,
}

impl Matcher {
    pub(crate) fn new() -> Matcher {
        let places = || -> Places {
            let places = vec![0; 1 << TABLE_LOG].into_boxed_slice();
            places.try_into().expect("the length is that of the array")
        };
        Matcher {
            columns: Columns::new(),
            segments: places(),
            fields: places(),
            parts: places(),
            base: 1,
        }
    }

    /// Pushes the matches of a request longer than [`FIRST`].
    pub(crate) fn search(&mut self, bytes: &[u8], marks: &Marks, writer: &mut Writer) {
        self.columns.start(marks);
        let mut search = Search {
            bytes,
            base: self.base,
            start: FIRST,
            columns: &mut self.columns,
            segments: &mut self.segments,
            fields: &mut self.fields,
            parts: &mut self.parts,
            writer,
        };
        search.marks(marks.all());
        self.columns.finish(marks);
        self.base += bytes.len() as u32;
        if self.base > 1 << 31 {
            self.base = 1;
            for places in [&mut self.segments, &mut self.fields, &mut self.parts] {
                places.fill(0);
            }
            self.columns.forget_places();
        }
    }
}

/// One request.
struct Search<'a> {
    bytes: &'a [u8],
    base: u32,
    /// Where the segment starts.
    start: usize,
    columns: &'a mut Columns,
    segments: &'a mut Places,
    fields: &'a mut Places,
    parts: &'a mut Places,
    writer: &'a mut Writer,
}

#[inline(always)]
fn exchange(places: &mut Places, hash: u64, place: u32) -> u32 {
    let at = (hash >> (64 - TABLE_LOG)) as usize;
    std::mem::replace(&mut places[at], place)
}

impl Search<'_> {
    fn marks(&mut self, marks: &[Mark]) {
        const END: u16 = Column::END.0 as u16 * crate::marks::KEYS_PER_COLUMN as u16;
        // The first field of the segment, and whether the record has ended a segment.
        let (mut first, mut has_bound) = (0, false);
        for (at, mark) in marks.iter().enumerate() {
            let class = self.columns.keys[usize::from(mark.key) % KEYS].class;
            if class == Class::Repeated {
                if mark.key != END || std::mem::take(&mut has_bound) {
                    continue;
                }
                // A record of repeated values alone ends one.
            } else {
                has_bound = true;
            }
            let end = mark.end as usize;
            let start = end.wrapping_sub(usize::from(mark.len));
            if start < self.start || start > end || end > self.bytes.len() {
                continue;
            }
            self.bound(*mark, start..end, class, &marks[first..at]);
            self.start = end;
            first = at + 1;
        }
    }

    /// A value that ends a segment, and the segment, whose fields are `fields`.
    #[inline(always)]
    fn bound(&mut self, mark: Mark, value: std::ops::Range<usize>, class: Class, fields: &[Mark]) {
        let key = usize::from(mark.key) % KEYS;
        let is_partial = class == Class::Partial;
        if self.writer.anchor() < value.start && !(is_partial && self.ahead(key, &value)) {
            if fields.is_empty() {
                self.head(key, value.start);
            } else {
                self.segment(key, value.start, fields);
            }
        }
        let place = self.place(value.start);
        let head = std::mem::replace(&mut self.columns.keys[key].head, place);
        if is_partial && self.writer.anchor() + WORTH_ALONE <= value.end {
            self.value(mark.column(), &value, head);
        }
    }

    #[inline(always)]
    fn place(&self, at: usize) -> u32 {
        self.base.wrapping_add(at as u32)
    }

    /// How far `from` is behind a place, if what is so far before `at` may be compared.
    #[inline(always)]
    fn distance(&self, from: usize, place: u32, at: usize) -> Option<usize> {
        let distance = self.place(from).wrapping_sub(place) as usize;
        (distance.wrapping_sub(1) < at - BEFORE_MATCH).then_some(distance)
    }

    #[inline(always)]
    fn equal(&self, distance: usize, at: usize) -> usize {
        equal(self.bytes, at - distance, at)
    }

    #[inline(always)]
    fn push(&mut self, at: usize, distance: usize, len: usize) {
        self.writer.push(self.bytes, at, distance, len);
    }

    /// The segment before a value together with the first bytes of the value that may differ.
    #[inline(always)]
    fn ahead(&mut self, key: usize, value: &std::ops::Range<usize>) -> bool {
        let of_key = self.columns.keys[key];
        let end = value.start + usize::from(of_key.skip) + AHEAD;
        if of_key.ahead == 0 || end > value.end {
            return false;
        }
        let place = self.place(self.start);
        let known = exchange(self.segments, hash(self.bytes, self.start, end), place);
        let at = self.start.max(self.writer.anchor());
        let Some(distance) = self.distance(self.start, known, at) else {
            return false;
        };
        let len = self.equal(distance, at);
        if at + len < end {
            self.columns.keys[key].ahead -= 1;
            return false;
        }
        self.columns.keys[key].ahead = TRUST_AHEAD;
        self.push(at, distance, len);
        let column = key / crate::marks::KEYS_PER_COLUMN;
        self.columns.saved(column, at + len - value.start);
        true
    }

    /// The bytes before a value, as they were before the last one of the same key.
    #[inline(always)]
    fn head(&mut self, key: usize, end: usize) {
        let at = self.start.max(self.writer.anchor());
        let known = self.columns.keys[key].head;
        if at + WORTH > end {
            return;
        }
        if let Some(distance) = self.distance(end, known, at) {
            let len = self.equal(distance, at);
            if at + len >= end {
                self.push(at, distance, len);
            }
        }
    }

    /// Repeated fields, and the bytes before the value that follows them.
    #[inline(always)]
    fn segment(&mut self, key: usize, end: usize, fields: &[Mark]) {
        let at = self.start.max(self.writer.anchor());
        let of_key = self.columns.keys[key];
        if of_key.trust > 0
            && let Some(distance) = self.distance(end, of_key.head, at)
        {
            let len = self.equal(distance, at);
            if at + len >= end {
                self.columns.keys[key].trust = TRUST;
                if len >= WORTH {
                    self.push(at, distance, len);
                }
                return;
            }
            self.columns.keys[key].trust -= 1;
        }
        let place = self.place(self.start);
        let known = exchange(self.segments, hash(self.bytes, self.start, end), place);
        if let Some(distance) = self.distance(self.start, known, at) {
            let len = self.equal(distance, at);
            if at + len >= end {
                if len >= WORTH {
                    self.push(at, distance, len);
                }
                return;
            }
        }
        self.fields(key, end, fields);
    }

    /// A segment that is new: field by field.
    #[inline(never)]
    fn fields(&mut self, key: usize, end: usize, fields: &[Mark]) {
        for field in fields {
            let value_end = field.end as usize;
            let value = value_end.wrapping_sub(usize::from(field.len));
            if value <= self.start || value > value_end || value_end > end {
                continue;
            }
            self.field(*field, value..value_end);
            self.start = value_end;
        }
        if self.writer.anchor() < end {
            self.head(key, end);
        }
    }

    /// A field of a repeated column, its tag, key and lengths included.
    #[inline(always)]
    fn field(&mut self, mark: Mark, value: std::ops::Range<usize>) {
        let start = self.start;
        let mut is_whole = self.writer.anchor() >= value.end;
        let at = self.writer.anchor().max(start);
        if !is_whole {
            let place = self.place(start);
            let known = exchange(self.fields, hash(self.bytes, start, value.end), place);
            if let Some(distance) = self.distance(start, known, at) {
                let len = self.equal(distance, at);
                is_whole = at + len >= value.end;
                if is_whole && len >= WORTH {
                    self.push(at, distance, len);
                }
            }
        }
        let key = usize::from(mark.key) % KEYS;
        if !is_whole {
            self.new_field(key, at, &value);
        }
        self.columns.keys[key].head = self.place(value.start);
        self.columns.saw_repeated(mark.column(), is_whole);
    }

    /// A field that is new as a whole: the bytes before its value, then parts.
    #[inline(always)]
    fn new_field(&mut self, key: usize, at: usize, value: &std::ops::Range<usize>) {
        let mut at = at;
        if at < value.start {
            let known = self.columns.keys[key].head;
            if let Some(distance) = self.distance(value.start, known, at) {
                let len = self.equal(distance, at);
                if len >= WORTH_ALONE {
                    self.push(at, distance, len);
                    at = self.writer.anchor();
                }
            }
        }
        let is_long = value.len() >= 8 || at + LONG_HEAD <= value.start;
        if is_long && at + 8 <= value.end {
            let from = if at + LONG_HEAD <= value.start {
                at
            } else {
                value.start.max(at)
            };
            self.parts(from, value.end);
        }
    }

    /// A value of a partial column: its end, then its parts.
    #[inline(always)]
    fn value(&mut self, column: usize, value: &std::ops::Range<usize>, head: u32) {
        let end = value.end;
        let from = self.writer.anchor().max(value.start);
        // Of short values without what is before them; of empty ones nothing.
        let short = 8 - value.len().min(8) as u32;
        let last = word(self.bytes, end - 8).unbounded_shr(8 * short) ^ u64::from(short) << 60;
        let place = self.place(end);
        let known = exchange(self.parts, hash_word(last), place);
        let tail = self.tail(known, from, end);
        let parts_end = end - tail.map_or(0, |(_, before, _)| before);
        let mut saved = 0;
        if from + 8 <= parts_end {
            saved += self.parts(from, parts_end);
        }
        let mut is_whole = false;
        if let Some((distance, before, behind)) = tail
            && self.writer.anchor() <= end
        {
            let before = before.min(end - self.writer.anchor());
            if before + behind >= WORTH_ALONE {
                saved += before.saturating_sub(3);
                is_whole = end - before <= from;
                self.push(end - before, distance, before + behind);
            }
        }
        if self.columns.wants_common(column)
            && let Some(distance) = self.distance(value.start, head, value.start)
        {
            let len = self.equal(distance, value.start).min(value.len());
            let len = len.min(usize::from(COMMON_MAX));
            self.columns.common(column, len);
        }
        self.columns.saw_partial(column, is_whole, saved);
    }

    /// The end of a value as it was before: how far before, how many bytes before the end, how many behind it.
    #[inline(always)]
    fn tail(&self, known: u32, from: usize, end: usize) -> Option<(usize, usize, usize)> {
        let distance = self.distance(end, known, end)?;
        let old = end - distance;
        let max = (end - from).min(old.saturating_sub(2 * BEFORE_MATCH));
        let before = equal_before(self.bytes, old, end, max);
        if before < WORTH {
            return None;
        }
        let behind = self.equal(distance, end);
        (before + behind > WORTH_ALONE).then_some((distance, before, behind))
    }

    /// Parts of new text: eight bytes at each place, at fewer places the longer nothing is found. Gives about how many
    /// bytes were saved.
    #[inline(never)]
    fn parts(&mut self, from: usize, end: usize) -> usize {
        let (mut at, mut saved, mut misses) = (from, 0, 0);
        while at + 8 <= end {
            let behind = at + 8;
            let place = self.place(behind);
            let known = exchange(self.parts, hash_word(word(self.bytes, at)), place);
            if let Some(distance) = self.distance(behind, known, at) {
                let len = self.equal(distance, at);
                if len >= 8 {
                    self.push(at, distance, len);
                    saved += len - 3;
                    at = self.writer.anchor();
                    misses = 0;
                    continue;
                }
            }
            at += 1 + (misses >> 2);
            misses += 1;
        }
        saved
    }
}

/// More bytes before a value than this are not only its tags and key.
const LONG_HEAD: usize = 64;
