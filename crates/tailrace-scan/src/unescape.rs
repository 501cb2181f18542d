//! The text of a string with escapes.
//!
//! Undoes escapes 64 bytes at a time: a mask tells where backslashes are, and between two escapes bytes are copied 64 at once,
//! however few of them count. Where the buffer ends sooner, `tailrace_model::json` undoes them. Never writes beyond the room that
//! it asks for.

use tailrace_model::json;

use crate::index::{Indexer, Probe, STRING_BYTES, Task};

/// What an escape may start in, and what is copied from there on.
const SOURCE_BYTES: usize = 2 * STRING_BYTES;

/// What stands between the quotes of a string.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawText<'a> {
    raw: &'a str,
    /// The same, and what stands after it in its buffer.
    reach: &'a [u8],
}

impl<'a> RawText<'a> {
    /// Of which nothing else is known.
    pub(crate) fn new(raw: &'a str) -> RawText<'a> {
        RawText {
            raw,
            reach: raw.as_bytes(),
        }
    }

    /// Which stands at the start of `reach`.
    ///
    /// # Panics
    /// If `reach` is shorter.
    pub(crate) fn in_buffer(raw: &'a str, reach: &'a [u8]) -> RawText<'a> {
        debug_assert!(reach.starts_with(raw.as_bytes()));
        assert!(raw.len() <= reach.len(), "it stands there");
        RawText { raw, reach }
    }

    /// How many bytes it takes to undo the escapes: no escape means more than it has.
    pub(crate) fn room(&self) -> usize {
        self.raw.len() + SOURCE_BYTES
    }

    /// Writes what it means. Gives how many bytes that is, and how many lone surrogates became U+FFFD; `None` if an escape is
    /// bad.
    pub(crate) fn unescape(self, indexer: Indexer, out: &mut [u8]) -> Option<(usize, u32)> {
        indexer.run(Unescape { raw: self, out })
    }
}

struct Unescape<'a, 'o> {
    raw: RawText<'a>,
    out: &'o mut [u8],
}

impl Task for Unescape<'_, '_> {
    type Output = Option<(usize, u32)>;

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) -> Self::Output {
        let Unescape { raw, out } = self;
        let (bytes, reach) = (raw.raw.as_bytes(), raw.reach);
        let (mut at, mut written, mut replaced) = (0, 0, 0);
        while at < bytes.len() {
            let source = reach.get(at..).and_then(<[u8]>::first_chunk);
            let Some::<&[u8; SOURCE_BYTES]>(source) = source else {
                let rest = json::unescape_into(&bytes[at..], out.get_mut(written..)?);
                let (count, others) = rest?;
                return Some((written + count, replaced + others));
            };
            let len = (bytes.len() - at).min(STRING_BYTES);
            let valid = u64::MAX >> (STRING_BYTES - len);
            let mut backslashes = probe.equal(source.first_chunk()?, b'\\') & valid;
            let mut from = 0;
            while backslashes != 0 {
                let place = backslashes.trailing_zeros() as usize % STRING_BYTES;
                copy(source, from, out, written)?;
                written += place - from;
                if at + place + 1 >= bytes.len() {
                    return None;
                }
                from = place + 2;
                if let Some(byte) = json::short_escape(source[place + 1]) {
                    *out.get_mut(written)? = byte;
                    written += 1;
                } else {
                    let (decoded, length) = json::escape(&bytes[at + place..])?;
                    replaced += u32::from(decoded.is_none());
                    let decoded = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
                    written += decoded
                        .encode_utf8(out.get_mut(written..written + 4)?)
                        .len();
                    from = place + length;
                }
                backslashes &= u64::MAX.checked_shl(from as u32).unwrap_or(0);
            }
            if from < len {
                copy(source, from, out, written)?;
                written += len - from;
            }
            at += from.max(len);
        }
        Some((written, replaced))
    }
}

/// Copies 64 bytes, of which the first ones count.
#[inline(always)]
fn copy(source: &[u8; SOURCE_BYTES], from: usize, out: &mut [u8], to: usize) -> Option<()> {
    let bytes: &[u8; STRING_BYTES] = source.get(from..from + STRING_BYTES)?.first_chunk()?;
    let out: &mut [u8; STRING_BYTES] = out.get_mut(to..to + STRING_BYTES)?.first_chunk_mut()?;
    *out = *bytes;
    Some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;
    use tailrace_model::json::Unescaped;

    use super::*;
    use crate::config::Isa;

    fn check(raw: &str, behind: &[u8]) {
        let mut expect = Vec::new();
        let expect = match json::unescape(raw, &mut expect) {
            Unescaped::Done { replaced } => Some((expect, replaced)),
            Unescaped::Invalid => None,
        };
        let buffer = [raw.as_bytes(), behind].concat();
        for raw in [RawText::new(raw), RawText::in_buffer(raw, &buffer)] {
            for isa in [Isa::Scalar, Isa::Auto] {
                let mut out = vec![b'x'; raw.room()];
                let found = raw.unescape(Indexer::new(isa), &mut out);
                let found = found.map(|(len, replaced)| (out[..len].to_vec(), replaced));
                assert_eq!(found, expect, "{raw:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 3000 }, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn escapes_are_undone_as_by_the_reference(
            parts in proptest::collection::vec(
                prop_oneof![
                    3 => select(&[r"\n", r"\\", r#"\""#, r"\/", r"\u00e9", r"\ud83d\ude00", r"\ud83d", r"\u0000"][..]).prop_map(str::to_owned),
                    3 => "[a-z\u{e9}\u{1f600}]{0,80}",
                    1 => select(&["x", "\u{e9}", "\\", r"\u12", r"\x"][..]).prop_map(str::to_owned),
                ],
                0..12,
            ),
            behind in 0..200_usize,
        ) {
            check(&parts.concat(), &vec![b'\\'; behind]);
        }
    }

    #[test]
    fn an_escape_stands_at_every_place_of_a_block() {
        for before in 0..if cfg!(miri) { 3 } else { 140 } {
            for escape in [
                r"\t",
                r"\\",
                r"\u20ac",
                r"\ud83d\ude00",
                r"\ud83d",
                r"\q",
                r"\u00",
                "\\",
            ] {
                let before = "x".repeat(before);
                check(&format!("{before}{escape}"), &[b'n'; 130]);
                check(&format!("{before}{escape}yz"), &[b'n'; 130]);
            }
        }
    }
}
