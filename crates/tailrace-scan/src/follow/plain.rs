//! Strings, numbers and literals: where they end.
//!
//! For the place where one starts, finds its kind and the byte after it. Never undoes an escape, but finds the bad
//! ones; never looks at what follows a value, except that a number takes all bytes that belong to it.

use tailrace_model::json::{self, Kind};

use crate::index::{self, PROBE_BYTES, Probe, STRING_BYTES, StringMasks};
use crate::token;

/// What a value is, and the place after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value {
    pub(super) kind: Kind,
    pub(super) escaped: bool,
    pub(super) behind: u32,
}

/// The kind and the length of a short number or a literal.
#[inline(always)]
pub(super) fn short<P: Probe>(probe: P, block: &[u8; PROBE_BYTES]) -> Option<(Kind, u32)> {
    if !block[0].is_ascii_digit() {
        return match block[0] {
            b't' if block.starts_with(b"true") => Some((Kind::Bool, 4)),
            b'f' if block.starts_with(b"false") => Some((Kind::Bool, 5)),
            b'n' if block.starts_with(b"null") => Some((Kind::Null, 4)),
            _ => None,
        };
    }
    let others = probe.not_digits(block);
    let whole = others.trailing_zeros();
    if block[0] == b'0' && whole != 1 {
        return None;
    }
    let behind = *block.get(whole as usize)?;
    if is_end(behind) {
        return Some((Kind::Integer, whole));
    }
    let len = (others & others.wrapping_sub(1)).trailing_zeros();
    let is_float = behind == b'.' && len > whole + 1 && is_end(*block.get(len as usize)?);
    is_float.then_some((Kind::Float, len))
}

/// Whether the byte stands after a value. Where another one of them is right, nothing follows that is expected there.
#[inline(always)]
fn is_end(byte: u8) -> bool {
    matches!(byte, b',' | b'}' | b']')
}

/// The quote that ends the string whose text starts at `at`, and whether there is a backslash before it; `None` if one of
/// its escapes is none that JSON has.
#[inline(always)]
pub(super) fn string_end<P: Probe>(probe: P, bytes: &[u8], at: usize) -> Option<(usize, bool)> {
    let (mut at, mut escapes_next, mut seen) = (at, 0, 0);
    loop {
        let block = bytes.get(at..at + STRING_BYTES)?.first_chunk()?;
        let StringMasks {
            quotes,
            backslashes,
            controls,
        } = probe.string_masks(block);
        let escaped = index::escaped(backslashes, &mut escapes_next);
        let ends = quotes & !escaped | controls;
        // All of them if there is no end.
        let inside = ends.wrapping_sub(1) & !ends;
        seen |= backslashes & inside;
        if escaped & inside != 0 && !are_good(probe, bytes, at, block, escaped & inside) {
            return None;
        }
        if ends != 0 {
            let end = ends.trailing_zeros();
            return (controls >> end & 1 == 0).then_some((at + end as usize, seen != 0));
        }
        at += STRING_BYTES;
    }
}

/// Whether these bytes of the block at `at`, each after a backslash, make escapes that JSON has.
#[inline(always)]
pub(super) fn are_good<P: Probe>(
    probe: P,
    bytes: &[u8],
    at: usize,
    block: &[u8; STRING_BYTES],
    escaped: u64,
) -> bool {
    let [letters, us] = probe.escape_letters(block);
    let mut us = us & escaped;
    while us != 0 {
        let at = at + us.trailing_zeros() as usize;
        us &= us - 1;
        let digits = bytes.get(at + 1..at + 5);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return false;
        }
    }
    escaped & !letters == 0
}

/// The place after the number or literal inside an object or array that starts at `at`.
#[inline(always)]
pub(super) fn behind_scalar<P: Probe>(probe: P, bytes: &[u8], at: usize) -> Option<usize> {
    let block = bytes.get(at..at + PROBE_BYTES)?.first_chunk()?;
    match short(probe, block) {
        Some((_, len)) => Some(at + len as usize),
        None => Some(any_number(bytes, at)?.behind as usize),
    }
}

/// Any number at all, a byte at a time.
#[inline(never)]
pub(super) fn any_number(bytes: &[u8], start: usize) -> Option<Value> {
    let rest = bytes.get(start..)?;
    let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let len = rest.iter().take_while(is_part).count();
    let number = token::number_kind(&rest[..len]).map(|kind| (kind, len));
    let not_finite = || json::not_finite(rest).map(|(_, len)| (Kind::Float, len));
    let (kind, len) = number.or_else(not_finite)?;
    Some(Value {
        kind,
        escaped: false,
        behind: u32::try_from(start + len).ok()?,
    })
}
