//! The shape of a record: whether it is a JSON object as far as strings and brackets go.
//!
//! Takes a record and its index, gives yes or no. The answer depends on nothing but the record's bytes, so that what a
//! query reads never changes which rows there are. Never looks at keys, commas or tokens.

use crate::index::Index;
use crate::token::{is_whitespace, skip_whitespace};

/// The record's first byte outside whitespace is `{`.
#[inline]
pub(crate) fn starts_as_object(bytes: &[u8]) -> bool {
    bytes.get(skip_whitespace(bytes, 0)) == Some(&b'{')
}

/// Of a record that starts with `{`: its strings close, every bracket is closed by its like, and behind the brace
/// that closes the first one there is only whitespace. `open` is memory to work in.
#[inline]
pub(crate) fn is_object(bytes: &[u8], index: &Index, open: &mut Vec<u8>) -> bool {
    let Some(last) = bytes.iter().rposition(|&byte| !is_whitespace(byte)) else {
        return false;
    };
    let structurals = index.structurals();
    let ends_with_brace =
        bytes[last] == b'}' && structurals.last().is_some_and(|&at| at as usize == last);
    if index.unclosed() || !ends_with_brace {
        return false;
    }
    // Nothing nested: the first and the last bracket are the only ones.
    index.brackets() == 2 || is_nested_object(bytes, structurals, open)
}

fn is_nested_object(bytes: &[u8], structurals: &[u32], open: &mut Vec<u8>) -> bool {
    open.clear();
    for (i, &at) in structurals.iter().enumerate() {
        match bytes[at as usize] {
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            close @ (b'}' | b']') => {
                if open.pop() != Some(close) {
                    return false;
                }
                if open.is_empty() {
                    return i + 1 == structurals.len();
                }
            }
            _ => {}
        }
    }
    false
}
