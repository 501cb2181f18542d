//! The template of one record.
//!
//! Splits a record that is an object into the literals before its values. Of a literal every byte is read here, so that
//! where it stands again nothing of it has to be: keys are strings that JSON allows, with a colon after them. Where a
//! value ends is told by what follows records: one that it cannot read has no template.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::{
    KeyUse, LITERAL_BYTES_MAX, LONG_BYTES_MIN, Literal, Object, RECORD_BYTES_MAX,
    RECORD_LITERALS_MAX, TEMPLATES_MAX, TRIES_MAX, Template, Templates, VARIANTS_MAX,
};
use crate::follow;
use crate::token::{read_key, skip_whitespace};

/// Objects that lie deeper are values as a whole.
const DEPTH_MAX: usize = 4;

impl Templates {
    /// Learns the template of a record of the buffer `bytes`, if it can be one; its outermost braces, and the colons and
    /// commas directly inside them, are these.
    pub(crate) fn learn(
        &mut self,
        bytes: &[u8],
        structurals: &[u32],
        key_use: impl Fn(&str) -> KeyUse,
    ) {
        // A member takes two structural characters.
        let is_long = structurals.len() / 2 > RECORD_LITERALS_MAX;
        if self.tries >= TRIES_MAX || self.is_full() || is_long {
            return;
        }
        self.tries += 1;
        let Some(record) = record(bytes, structurals) else {
            return;
        };
        let Some(outer) = Learnt::read(&record, 0, &key_use) else {
            return;
        };
        let mut hasher = DefaultHasher::new();
        outer.texts.hash(&mut hasher);
        let outer_members = hasher.finish();
        let variants = self.variants.get(&outer_members).copied().unwrap_or(0);
        let is_split = record.contains_object() && variants < VARIANTS_MAX;
        let split = is_split
            .then(|| Learnt::read(&record, DEPTH_MAX, &key_use))
            .flatten();
        // One that is too long counts too: it would be tried each time.
        if is_split && self.variants.len() < TEMPLATES_MAX {
            *self.variants.entry(outer_members).or_default() += 1;
        }
        match split {
            Some(split) => self.add_learnt(split),
            None => {
                self.have_whole_objects |= record.contains_object();
                self.add_learnt(outer);
            }
        }
    }

    fn add_learnt(&mut self, learnt: Learnt<'_>) {
        let bytes = learnt.texts.iter().map(|text| text.len()).sum();
        self.add(learnt.template, bytes);
    }
}

/// A record, and what follows it in its buffer.
#[derive(Clone, Copy, Debug)]
struct Record<'a> {
    /// Up to the record's last brace.
    text: &'a str,
    reach: &'a [u8],
}

/// The record whose outermost structural characters are these, if it is one that can be followed.
fn record<'a>(bytes: &'a [u8], structurals: &[u32]) -> Option<Record<'a>> {
    let (&first, &last) = (structurals.first()?, structurals.last()?);
    let reach = bytes.get(first as usize..)?;
    let text = bytes.get(first as usize..=last as usize)?;
    if text.len() > follow::RECORD_BYTES_MAX {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    Some(Record { text, reach })
}

impl Record<'_> {
    /// Whether there is another brace in it than its first one.
    fn contains_object(&self) -> bool {
        self.text.get(1..).is_some_and(|text| text.contains('{'))
    }
}

/// What was learnt of a record.
#[derive(Debug, Default)]
struct Learnt<'a> {
    template: Template,
    texts: Vec<&'a [u8]>,
}

impl<'a> Learnt<'a> {
    /// Reads a record, and the objects in it down to a depth of `depth_max`. `None` if it has no template.
    fn read(
        record: &Record<'a>,
        depth_max: usize,
        key_use: &impl Fn(&str) -> KeyUse,
    ) -> Option<Learnt<'a>> {
        let mut reading = Reading {
            record: *record,
            depth_max,
            from: 0,
            bytes: 0,
            learnt: Learnt::default(),
            objects: Vec::new(),
        };
        let mut seen = HashSet::new();
        let is_wanted =
            |name: &str| key_use(name) != KeyUse::NoColumn && seen.insert(name.to_owned());
        let end = reading.members(0, 0, is_wanted)?;
        let Reading {
            from,
            mut learnt,
            objects,
            ..
        } = reading;
        let template = &mut learnt.template;
        let values = template.literals.len() as u32;
        for (number, (member, object)) in (0..).zip(objects) {
            template.members[member].1 = values + number;
            template.objects.push(object);
        }
        template.tail = record.text.as_bytes()[from..end].into();
        let is_whole = end == record.text.len() && values > 0;
        (is_whole && template.tail.len() <= LITERAL_BYTES_MAX).then_some(learnt)
    }
}

struct Reading<'a> {
    record: Record<'a>,
    depth_max: usize,
    /// Where the next literal starts: after the last value.
    from: usize,
    /// Of all literals.
    bytes: usize,
    learnt: Learnt<'a>,
    /// By number of the outer member.
    objects: Vec<(usize, Object)>,
}

impl Reading<'_> {
    /// Reads the members of the object that starts at `at`; gives the place after it.
    fn members(
        &mut self,
        at: usize,
        depth: usize,
        mut is_wanted: impl FnMut(&str) -> bool,
    ) -> Option<usize> {
        let (text, bytes) = (self.record.text, self.record.text.as_bytes());
        let mut at = at;
        let mut unescaped = Vec::new();
        loop {
            // At the brace or the comma before a member.
            let (name, len) = read_key(text.get(at + 1..)?, &mut unescaped)?;
            if !is_wanted(name) {
                return None;
            }
            at = skip_whitespace(bytes, at + 1 + len);
            if depth == 0 {
                let place = self.learnt.template.literals.len() as u32;
                self.learnt.template.members.push((name.into(), place));
            }
            at = if depth < self.depth_max && self.is_object(at) {
                self.object(at, depth)?
            } else {
                self.value(at)?
            };
            at = skip_whitespace(bytes, at);
            match *bytes.get(at)? {
                b',' => {}
                b'}' => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// An object with members starts at `at`.
    fn is_object(&self, at: usize) -> bool {
        let bytes = self.record.text.as_bytes();
        bytes.get(at) == Some(&b'{') && bytes.get(skip_whitespace(bytes, at + 1)) != Some(&b'}')
    }

    fn object(&mut self, at: usize, depth: usize) -> Option<usize> {
        let first = self.learnt.template.literals.len();
        let start_of_literal = self.from;
        let end = self.members(at, depth + 1, |_| true)?;
        if depth == 0 {
            let template = &self.learnt.template;
            let object = Object {
                first: first as u32,
                last: template.literals.len() as u32 - 1,
                before: template.literals[first].len - (at - start_of_literal) as u32,
                behind: (end - self.from) as u32,
            };
            self.objects.push((template.members.len() - 1, object));
        }
        Some(end)
    }

    /// A value that is followed as a whole starts at `at`.
    fn value(&mut self, at: usize) -> Option<usize> {
        let text = &self.record.text.as_bytes()[self.from..at];
        self.bytes += text.len();
        let is_long =
            self.learnt.texts.len() >= RECORD_LITERALS_MAX || self.bytes > RECORD_BYTES_MAX;
        if text.len() > LITERAL_BYTES_MAX || is_long {
            return None;
        }
        self.learnt.texts.push(text);
        self.from = follow::behind(self.record.reach, at)?;
        self.learnt.template.literals.push(Literal {
            is_before_long: self.from - at >= LONG_BYTES_MIN,
            ..Literal::new(text)
        });
        Some(self.from)
    }
}
