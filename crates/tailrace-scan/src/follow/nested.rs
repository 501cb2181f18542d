//! Where an object or array inside a record ends.
//!
//! Finds the byte after the closing bracket, provided that everything between is JSON, escapes included. Most of it is
//! read 64 bytes at a time (`blocks`), what does not fit in there value by value. Never recurses: what is open is a bit for
//! each level, of which there may be 64; what is nested deeper is left to the walk.

mod blocks;

use blocks::Block;

use super::plain::{behind_scalar, string_end};
use crate::index::{PROBE_BYTES, Probe, STRING_BYTES};
use crate::token::skip_whitespace;

const DEPTH_MAX: u32 = u64::BITS;

/// One that closes within so many bytes is read value by value: that is cheaper than what a block takes.
const SHORT: u32 = 32;

/// The objects and arrays that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    /// The innermost at bit 0: 1 for an object.
    kinds: u64,
    depth: u32,
}

impl Open {
    #[inline(always)]
    fn is_object(self) -> bool {
        self.kinds & 1 == 1
    }

    /// With this bracket opened; `None` if that is too deep.
    #[inline(always)]
    fn open(self, bracket: u8) -> Option<Open> {
        (self.depth < DEPTH_MAX).then(|| Open {
            kinds: self.kinds << 1 | u64::from(bracket == b'{'),
            depth: self.depth + 1,
        })
    }

    /// As it was before the innermost one was opened.
    #[inline(always)]
    fn without_innermost(self) -> Open {
        Open {
            kinds: self.kinds >> 1,
            depth: self.depth - 1,
        }
    }

    /// With this bracket closed; `None` if another one is open.
    #[inline(always)]
    fn close(self, bracket: u8) -> Option<Open> {
        (self.is_object() == (bracket == b'}')).then(|| self.without_innermost())
    }
}

/// After the object or array that starts at `at`.
#[inline(always)]
pub(super) fn end<P: Probe>(probe: P, bytes: &[u8], at: usize) -> Option<usize> {
    let none = Open { kinds: 0, depth: 0 };
    let start = bytes.get(at..at + STRING_BYTES)?.first_chunk()?;
    // The closing bracket is two characters on from the opening one.
    let bracket = start[0];
    if probe.equal(start, bracket + 2).trailing_zeros() < SHORT {
        return value_by_value(probe, bytes, at, none, Place::Value);
    }
    in_blocks(probe, bytes, at, none.open(bracket)?)
}

/// After the outermost of what is open, from the bracket at `at` on, which is done.
#[inline(always)]
fn in_blocks<P: Probe>(probe: P, bytes: &[u8], at: usize, open: Open) -> Option<usize> {
    let (mut at, mut open) = (at, open);
    while let Some(block) = Block::read(probe, bytes, at, open) {
        (at, open) = (block.at, block.open);
        if open.depth == 0 {
            return Some(at + 1);
        }
    }
    let (place, open) = match bytes[at] {
        b'{' | b'[' => (Place::Value, open.without_innermost()),
        b',' => (Place::AfterValue, open),
        _ => {
            at = skip_whitespace(bytes, at + 1);
            (Place::AfterValue, open)
        }
    };
    value_by_value(probe, bytes, at, open, place)
}

/// What stands at a place inside an object or array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Value,
    /// A comma, or the bracket that closes the innermost one.
    AfterValue,
}

/// After the outermost of what is open, from `at` on.
#[inline(always)]
fn value_by_value<P: Probe>(
    probe: P,
    bytes: &[u8],
    at: usize,
    open: Open,
    place: Place,
) -> Option<usize> {
    let (mut at, mut open) = (at, open);
    let mut is_closed = place == Place::AfterValue;
    loop {
        if !is_closed {
            let byte = *bytes.get(at)?;
            is_closed = true;
            if let b'{' | b'[' = byte {
                open = open.open(byte)?;
                at = skip_whitespace(bytes, at + 1);
                is_closed = *bytes.get(at)? == byte + 2;
                if !is_closed && byte == b'{' {
                    at = behind_key(probe, bytes, at)?;
                }
            } else {
                at = behind_plain(probe, bytes, at)?;
                at = skip_whitespace(bytes, at);
            }
        }
        while is_closed {
            match *bytes.get(at)? {
                b',' => {
                    at = skip_whitespace(bytes, at + 1);
                    if open.is_object() {
                        at = behind_key(probe, bytes, at)?;
                    }
                    is_closed = false;
                }
                bracket @ (b'}' | b']') => {
                    open = open.close(bracket)?;
                    if open.depth == 0 {
                        return Some(at + 1);
                    }
                    at = skip_whitespace(bytes, at + 1);
                }
                _ => return None,
            }
        }
    }
}

/// At the value of the member whose key starts at `at`.
#[inline(always)]
fn behind_key<P: Probe>(probe: P, bytes: &[u8], at: usize) -> Option<usize> {
    if *bytes.get(at)? != b'"' {
        return None;
    }
    let at = skip_whitespace(bytes, behind_string(probe, bytes, at)?);
    (*bytes.get(at)? == b':').then(|| skip_whitespace(bytes, at + 1))
}

#[inline(always)]
fn behind_plain<P: Probe>(probe: P, bytes: &[u8], at: usize) -> Option<usize> {
    if bytes[at] == b'"' {
        return behind_string(probe, bytes, at);
    }
    behind_scalar(probe, bytes, at)
}

/// After the string that starts at `at`.
#[inline(always)]
fn behind_string<P: Probe>(probe: P, bytes: &[u8], at: usize) -> Option<usize> {
    let at = at + 1;
    // Most are short and have no escapes.
    let ends = probe.string_ends(bytes.get(at..at + PROBE_BYTES)?.first_chunk()?);
    let end = at + ends.trailing_zeros() as usize;
    if ends != 0 && bytes[end] == b'"' {
        return Some(end + 1);
    }
    let (end, _) = string_end(probe, bytes, at)?;
    Some(end + 1)
}

#[cfg(test)]
mod tests;
