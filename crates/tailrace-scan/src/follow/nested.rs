//! Where an object or array inside a record ends.
//!
//! Finds the byte after the closing bracket, provided that everything between is JSON, escapes included. Never
//! recurses: what is open is a bit for each level, of which there may be 64; what is nested deeper is left to the walk.

use super::plain::{behind_scalar, string_end};
use crate::index::{PROBE_BYTES, Probe};
use crate::token::skip_whitespace;

const DEPTH_MAX: u32 = u64::BITS;

/// After the object or array that starts at `at`.
#[inline(always)]
pub(super) fn end<P: Probe>(probe: P, bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at;
    // Of what is open, the innermost at bit 0: 1 for an object.
    let (mut open, mut depth) = (0_u64, 0);
    loop {
        // At a value.
        let byte = *bytes.get(at)?;
        let mut is_closed = true;
        if let b'{' | b'[' = byte {
            if depth == DEPTH_MAX {
                return None;
            }
            depth += 1;
            open = open << 1 | u64::from(byte == b'{');
            at = skip_whitespace(bytes, at + 1);
            // The closing bracket is two characters on from the opening one.
            is_closed = *bytes.get(at)? == byte + 2;
            if !is_closed && byte == b'{' {
                at = behind_key(probe, bytes, at)?;
            }
        } else {
            at = behind_plain(probe, bytes, at)?;
            at = skip_whitespace(bytes, at);
        }
        // After a value, or at the bracket that closes one.
        while is_closed {
            let is_object = open & 1 == 1;
            match *bytes.get(at)? {
                b',' => {
                    at = skip_whitespace(bytes, at + 1);
                    if is_object {
                        at = behind_key(probe, bytes, at)?;
                    }
                    is_closed = false;
                }
                byte @ (b'}' | b']') if is_object == (byte == b'}') => {
                    depth -= 1;
                    open >>= 1;
                    if depth == 0 {
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
