//! Walking the members of one record.
//!
//! Takes a record whose shape is that of an object, and its index; gives each wanted member's key and the span of its
//! value, once per key: of duplicates the first counts. Never reads a value, never judges what is not wanted.
//!
//! A member is what stands between two commas of the top level. Its first colon parts key and value. The key is exactly
//! one string, else the member is bad: it has no name by which it could be wanted. A key with escapes is unescaped
//! before it is looked up.

use tailrace_model::json::{self, Unescaped};

use crate::index::Index;
use crate::keys::{Keys, NONE, START, Star};
use crate::text::RecordText;
use crate::token;

/// Where the walk delivers what it finds.
pub(crate) trait Sink {
    /// A wanted member: the number of its key and the span of its value. False if no more members are wanted.
    fn known(&mut self, keys: &mut Keys, id: u32, value: (usize, usize)) -> bool;

    /// A member whose key is not remembered, where all keys are wanted.
    fn unknown(&mut self, name: &str, value: (usize, usize));

    /// A member without a proper key, where all keys are wanted.
    fn bad_member(&mut self);
}

/// Walks the members of `record`, the scanner's record number `number` (from 1).
pub(crate) fn walk(
    record: &RecordText<'_>,
    index: &Index,
    number: u64,
    keys: &mut Keys,
    unescaped: &mut Vec<u8>,
    sink: &mut impl Sink,
) {
    let bytes = record.bytes();
    let structurals = index.structurals();
    let mut previous = START;
    // The next structural character, and the byte behind the last one.
    let mut next = 1;
    let mut start = structurals[0] as usize + 1;
    loop {
        start = token::skip_whitespace(bytes, start);
        let colon = structurals[next] as usize;
        let predicted = keys
            .predict(previous, &record.reach()[start..])
            .filter(|&(_, len)| start + len == colon && bytes[colon] == b':');
        if let Some((id, _)) = predicted {
            let end = member_end(bytes, structurals, next + 1);
            previous = id;
            next = end;
            start = structurals[end] as usize;
            if !deliver(keys, id, number, (colon + 1, start), sink) {
                return;
            }
        } else {
            let end = member_end(bytes, structurals, next);
            let value_end = structurals[end] as usize;
            let key = if bytes[colon] == b':' {
                read_key(record, index, start, colon, unescaped)
            } else {
                None
            };
            if let Some(name) = key {
                let id = keys.meet(previous, name);
                previous = id;
                let value = (colon + 1, value_end);
                if id != NONE {
                    if !deliver(keys, id, number, value, sink) {
                        return;
                    }
                } else if keys.wants_all() {
                    sink.unknown(name, value);
                }
            } else if token::skip_whitespace(bytes, start) != value_end {
                if keys.wants_all() {
                    sink.bad_member();
                }
                previous = NONE;
            }
            next = end;
            start = value_end;
        }
        // At a comma, or at the brace that ends the record.
        next += 1;
        start += 1;
        if next == structurals.len() {
            return;
        }
    }
}

#[inline]
fn deliver(
    keys: &mut Keys,
    id: u32,
    number: u64,
    value: (usize, usize),
    sink: &mut impl Sink,
) -> bool {
    let entry = keys.entry(id);
    if !entry.is_wanted() || entry.seen == number {
        return true;
    }
    entry.seen = number;
    debug_assert_ne!(entry.star, Star::Unmet);
    sink.known(keys, id, value)
}

/// The place among the structural characters of the comma or brace that ends the member, looking from place `at` on,
/// which lies in the member.
#[inline]
fn member_end(bytes: &[u8], structurals: &[u32], at: usize) -> usize {
    let mut at = at;
    let mut depth = 0_u32;
    loop {
        match bytes[structurals[at] as usize] {
            b',' if depth == 0 => return at,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// The key in bytes `start..end`, unescaped, if it is exactly one string.
fn read_key<'a>(
    record: &RecordText<'a>,
    index: &Index,
    start: usize,
    end: usize,
    unescaped: &'a mut Vec<u8>,
) -> Option<&'a str> {
    let (start, end) = token::trim(record.bytes(), start, end);
    let key = token::string(record.bytes(), index, start, end)?;
    let raw = &record.text()[key.start..key.end];
    if !key.escaped {
        return Some(raw);
    }
    unescaped.clear();
    match json::unescape(raw, unescaped) {
        Unescaped::Done { .. } => std::str::from_utf8(unescaped).ok(),
        Unescaped::Invalid => None,
    }
}
