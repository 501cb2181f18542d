//! The shape of a record: whether it is a JSON object as far as strings and brackets go.
//!
//! Checks a record by its index; of an object the index is thinned out to the characters that part its members. The
//! answer depends on nothing but the record's bytes, so that what a query reads never changes which rows there are.
//! Never looks at keys or tokens.

use crate::index::Outline;
use crate::text::Span;
use crate::token::is_whitespace;

/// In the place of a colon: a bracket stands before the next comma.
pub(crate) const NESTED: u32 = u32::MAX;

/// Whether the record in this span of the buffer `bytes` starts with `{`, its strings close, every bracket is closed by
/// its like, and after the brace that closes the first one there is only whitespace (which may also stand before).
/// Then what is left of `structurals` is its outermost braces and the colons and commas directly inside them; of a colon
/// with a bracket after it only that, [`NESTED`].
#[inline]
pub(crate) fn is_object(
    bytes: &[u8],
    span: Span,
    outline: &mut Outline,
    structurals: &mut [u32],
) -> bool {
    let (Some(&first), Some(&last)) = (structurals.first(), structurals.last()) else {
        return false;
    };
    let (first, last) = (first as usize, last as usize);
    let is_blank =
        |start: usize, end: usize| bytes[start..end].iter().all(|&byte| is_whitespace(byte));
    if outline.is_unclosed
        || bytes[first] != b'{'
        || bytes[last] != b'}'
        || !is_blank(span.start(), first)
        || !is_blank(last + 1, span.end())
    {
        return false;
    }
    if outline.brackets == 2 {
        // Nothing nested: these two are the only ones.
        return true;
    }
    match thin_out(bytes, structurals) {
        Some(count) => outline.count = count as u32,
        None => return false,
    }
    true
}

/// Keeps the outermost braces and the colons and commas directly inside them; says how many those are. `None` if brackets do not
/// match, or close before the end.
fn thin_out(bytes: &[u8], structurals: &mut [u32]) -> Option<usize> {
    /// How many levels fit into a word.
    const WORD_DEPTH: u32 = 64;
    // Of the open brackets, the innermost at bit 0: 1 for a brace.
    let mut open = 0_u64;
    let mut depth = 0;
    let mut kept = 0;
    for i in 0..structurals.len() {
        let at = structurals[i];
        let byte = bytes[at as usize];
        let mut is_kept = false;
        if matches!(byte, b',' | b':') {
            is_kept = depth == 1;
        } else if matches!(byte, b'{' | b'[') {
            if depth == WORD_DEPTH {
                return thin_out_deep(bytes, structurals, kept, i, open);
            }
            if depth == 1 {
                mark_nested(bytes, structurals, kept);
            }
            is_kept = depth == 0;
            open = open << 1 | u64::from(byte == b'{');
            depth += 1;
        } else {
            if depth == 0 || open & 1 != u64::from(byte == b'}') {
                return None;
            }
            open >>= 1;
            depth -= 1;
            if depth == 0 {
                structurals[kept] = at;
                return (i + 1 == structurals.len()).then_some(kept + 1);
            }
        }
        structurals[kept] = if is_kept { at } else { structurals[kept] };
        kept += usize::from(is_kept);
    }
    None
}

/// The same from structural `i` on, whatever the depth; so far `kept` are kept and 64 brackets are open.
#[cold]
fn thin_out_deep(
    bytes: &[u8],
    structurals: &mut [u32],
    mut kept: usize,
    from: usize,
    open: u64,
) -> Option<usize> {
    let mut open: Vec<bool> = (0..u64::BITS)
        .rev()
        .map(|bit| open >> bit & 1 == 1)
        .collect();
    for i in from..structurals.len() {
        let at = structurals[i];
        match bytes[at as usize] {
            b',' | b':' if open.len() == 1 => {
                structurals[kept] = at;
                kept += 1;
            }
            b',' | b':' => {}
            byte @ (b'{' | b'[') => {
                if open.len() == 1 {
                    mark_nested(bytes, structurals, kept);
                }
                open.push(byte == b'{');
            }
            byte => {
                if open.pop() != Some(byte == b'}') {
                    return None;
                }
                if open.is_empty() {
                    structurals[kept] = at;
                    return (i + 1 == structurals.len()).then_some(kept + 1);
                }
            }
        }
    }
    None
}

/// A bracket after the last one kept.
#[inline]
fn mark_nested(bytes: &[u8], structurals: &mut [u32], kept: usize) {
    if let Some(last) = kept.checked_sub(1).map(|last| &mut structurals[last])
        && *last != NESTED
        && bytes[*last as usize] == b':'
    {
        *last = NESTED;
    }
}
