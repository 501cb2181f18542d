//! One step of following a record: a literal, and the value after it.
//!
//! What following along one template and through the tree of all of them have in common. Never decides which literal comes
//! next.

use tailrace_model::json::Kind;

use super::value::{self, VALUE_BYTES};
use super::value_span::ValueSpan;
use crate::index::Probe;
use crate::template::{Literal, Template, WINDOW_BYTES};
use crate::text::Span;
use crate::token::is_whitespace;

/// The value after the literal at `at`, and the place after it.
#[inline(always)]
pub(super) fn step<P: Probe>(
    probe: P,
    bytes: &[u8],
    literal: &Literal,
    at: u32,
) -> Option<(ValueSpan, u32)> {
    let window: &[u8; WINDOW_BYTES] = window(bytes, at)?;
    if !literal.starts(probe, window) {
        return None;
    }
    let start = at + literal.len;
    let block = match window.get(literal.len as usize..literal.len as usize + VALUE_BYTES) {
        Some(block) => block,
        None if literal.goes_on(bytes, at) => {
            bytes.get(start as usize..start as usize + VALUE_BYTES)?
        }
        None => return None,
    };
    let is_long = literal.is_before_long;
    value::read(probe, bytes, block.first_chunk()?, start, is_long)
}

/// The bytes up to the record's end, and what a last look at them may take: a record that does not end is not followed
/// through its neighbours.
#[inline(always)]
pub(super) fn near<'a>(bytes: &'a [u8], span: &Span) -> &'a [u8] {
    &bytes[..bytes.len().min(span.end() + WINDOW_BYTES)]
}

#[inline(always)]
pub(super) fn window(bytes: &[u8], at: u32) -> Option<&[u8; WINDOW_BYTES]> {
    bytes
        .get(at as usize..at as usize + WINDOW_BYTES)?
        .first_chunk()
}

/// Whether the brace that ends a record stands at `at`, with nothing but whitespace after it.
#[inline(always)]
pub(super) fn ends_at(bytes: &[u8], at: usize, end: usize) -> bool {
    at < end && bytes[at] == b'}' && (at + 1 == end || is_blank(&bytes[at + 1..end]))
}

#[cold]
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| is_whitespace(byte))
}

/// Puts the value spans of objects after those of the values that they are made of.
#[inline(always)]
pub(super) fn put_objects(template: &Template, value_spans: &mut [ValueSpan]) {
    let values = template.literals.len();
    for (object, place) in template.objects.iter().zip(values..) {
        let start = value_spans[object.first as usize].outer_start() - object.before;
        let end = value_spans[object.last as usize].outer_end() + object.behind;
        value_spans[place] = ValueSpan::new(Kind::Object, false, start, end);
    }
}
