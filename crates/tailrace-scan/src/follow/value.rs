//! Where a value ends, and what it is.
//!
//! For the place where a value starts, finds its span and the byte after it. Strings up to 31 bytes, short numbers and
//! literals are told at a glance, all others in a function of their own. Never looks at what follows a value, except
//! that a number takes all bytes that belong to it; never undoes an escape, but finds the bad ones.

use tailrace_model::json::Kind;

use super::nested;
use super::plain::{Value, any_number, short, string_end};
use super::value_span::ValueSpan;
use crate::config::Isa;
use crate::index::{Indexer, PROBE_BYTES, Probe, STRING_BYTES, Task};

/// How many of a value's first bytes are looked at: one that tells what it is, and those after it.
pub(super) const VALUE_BYTES: usize = 1 + PROBE_BYTES;

/// The value that starts at `start`, the first bytes of which are `block`, and the place after it; `None` if it is none,
/// or near the buffer's end. A string that promises to be long is looked at twice as far at once.
#[inline(always)]
pub(super) fn read<P: Probe>(
    probe: P,
    bytes: &[u8],
    block: &[u8; VALUE_BYTES],
    start: u32,
    is_long: bool,
) -> Option<(ValueSpan, u32)> {
    if block[0] == b'"' {
        let at = start + 1;
        let len = if is_long {
            let text = bytes.get(at as usize..at as usize + STRING_BYTES)?;
            let text = text.first_chunk::<STRING_BYTES>()?;
            let ends = probe.long_string_ends(text);
            let len = ends.trailing_zeros();
            (ends != 0 && text[len as usize % STRING_BYTES] == b'"').then_some(len)
        } else {
            let text = block[1..].first_chunk::<PROBE_BYTES>()?;
            let ends = probe.string_ends(text);
            let len = ends.trailing_zeros();
            (ends != 0 && text[len as usize % PROBE_BYTES] == b'"').then_some(len)
        };
        if let Some(len) = len {
            return Some((ValueSpan::of_len(Kind::String, at, len), at + len + 1));
        }
    } else if let Some((kind, len)) = short(probe, block.first_chunk()?) {
        return Some((ValueSpan::of_len(kind, start, len), start + len));
    }
    let value = probe.apart(Any { bytes, start })?;
    let quote = u32::from(value.kind == Kind::String);
    let value_span = ValueSpan::new(
        value.kind,
        value.escaped,
        start + quote,
        value.behind - quote,
    );
    Some((value_span, value.behind))
}

/// Any value at all.
struct Any<'a> {
    bytes: &'a [u8],
    start: u32,
}

impl Task for Any<'_> {
    type Output = Option<Value>;

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) -> Option<Value> {
        let (bytes, start) = (self.bytes, self.start as usize);
        let value = |kind, escaped, behind| {
            Some(Value {
                kind,
                escaped,
                behind: u32::try_from(behind).ok()?,
            })
        };
        match *bytes.get(start)? {
            b'"' => {
                let (end, escaped) = string_end(probe, bytes, start + 1)?;
                value(Kind::String, escaped, end + 1)
            }
            b'{' => value(Kind::Object, false, nested::end(probe, bytes, start)?),
            b'[' => value(Kind::Array, false, nested::end(probe, bytes, start)?),
            b'-' | b'0'..=b'9' | b'N' | b'I' => any_number(bytes, start),
            _ => None,
        }
    }
}

/// The place after the value at `at`, as following finds it.
pub(crate) fn behind(bytes: &[u8], at: usize) -> Option<usize> {
    Indexer::new(Isa::Scalar).run(Behind { bytes, at })
}

struct Behind<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Task for Behind<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) -> Option<usize> {
        let block = self
            .bytes
            .get(self.at..self.at + VALUE_BYTES)?
            .first_chunk()?;
        let at = u32::try_from(self.at).ok()?;
        let (_, behind) = read(probe, self.bytes, block, at, false)?;
        Some(behind as usize)
    }
}
