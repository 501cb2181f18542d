//! Walking the members of one record whose template is not known.
//!
//! The record has the shape of an object, and the places of its outermost braces and of the colons and commas directly
//! inside them are known. Each wanted member's key and the span of its value go to a [`Sink`], once per key: of
//! duplicates the first counts. Where all keys are wanted, every other value is given to be judged. Never reads a
//! value.
//!
//! A member is what stands between two commas of the top level. Its key is exactly one string with a colon after it,
//! else the member is bad: it may be any that is wanted and was not met. A key with escapes is unescaped before it is
//! looked up.

use crate::keys::{Keys, NONE, Star};
use crate::shape::NESTED;
use crate::text::RecordText;
use crate::token;

/// Where the walk delivers what it finds.
pub(crate) trait Sink {
    /// A wanted member: the number of its key and the span of its value. False if no more members are wanted.
    fn known(&mut self, keys: &mut Keys, id: u32, value: (usize, usize)) -> bool;

    /// A member whose key is not remembered, where all keys are wanted.
    fn unknown(&mut self, name: &str, value: (usize, usize));

    /// A member whose value is wanted for nothing, where all keys are wanted: a duplicate, or one that is left out.
    fn unread(&mut self, value: (usize, usize));

    /// A member without a proper key.
    fn bad_member(&mut self);
}

/// Walks the members of `record`, the scanner's record number `number` (from 1). `structurals` count from the start of
/// its buffer.
pub(crate) fn walk(
    record: &RecordText<'_>,
    structurals: &[u32],
    number: u64,
    keys: &mut Keys,
    unescaped: &mut Vec<u8>,
    sink: &mut impl Sink,
) {
    let first = structurals[0] as usize - record.base() + 1;
    let mut start = first;
    for &end in &structurals[1..] {
        if end == NESTED || record.bytes()[end as usize - record.base()] == b':' {
            continue;
        }
        let end = end as usize - record.base();
        let start_of_member = std::mem::replace(&mut start, end + 1);
        let member = &record.text()[start_of_member..end];
        if let Some((name, len)) = token::read_key(member, unescaped) {
            let id = keys.meet(name);
            let value = (start_of_member + len, end);
            if id != NONE {
                if !deliver(keys, id, number, value, sink) {
                    return;
                }
            } else if keys.wants_all() {
                sink.unknown(name, value);
            }
            continue;
        }
        let is_blank = token::skip_whitespace(member.as_bytes(), 0) == member.len();
        let is_empty_object = is_blank && start_of_member == first && record.bytes()[end] == b'}';
        if !is_empty_object {
            sink.bad_member();
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
        if keys.wants_all() {
            sink.unread(value);
        }
        return true;
    }
    entry.seen = number;
    debug_assert_ne!(entry.star, Star::Unmet);
    sink.known(keys, id, value)
}
