//! A part of an object or array, up to 64 bytes at once.
//!
//! A part starts at a bracket or comma outside strings and reaches to the last one in the block. All that JSON demands of it
//! is said of which tokens may follow each other, in words of one bit per byte; only brackets, and numbers that are not
//! plain integers, are looked at one by one. Never decides that something is not JSON: whatever it cannot read is left to
//! whoever reads value by value.
//!
//! Three operations on words do the work. Bit `i` is byte `i`; a token is told by its first byte.
//!
//! * What stands after the tokens that end at some bits: the bits one higher, moved over whitespace by a carry (see `Block`).
//! * Where some strings end: their opening quotes, added to the runs of bytes inside strings, carry to the closing ones.
//! * Which strings are keys: those before a colon.

use tailrace_model::json;

use super::Open;
use crate::follow::plain::are_good;
use crate::index::{self, Probe, STRING_BYTES, TokenMasks};
use crate::token;

/// What a part ends with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// The place of its last bracket or comma.
    pub(super) at: usize,
    /// What is open after that.
    pub(super) open: Open,
}

/// The tokens of a block.
struct Tokens {
    masks: TokenMasks,
    /// Opening quotes, closing ones, and the opening ones with what follows them in their strings.
    strings: u64,
    closing: u64,
    inside: u64,
    /// Bytes inside strings after a backslash.
    escaped: u64,
    /// Numbers, `true` and its like, and what is no token: all of their bytes.
    scalars: u64,
    /// Outside strings, as are all marks of `masks` but the first three kinds and digits.
    opens: u64,
}

/// What stands after what: tokens that follow others in the block.
struct Order {
    after_brace: u64,
    after_square: u64,
    after_comma: u64,
    after_colon: u64,
    /// The tokens after strings that stand directly after a brace, after a comma, and after others.
    after_first_key: u64,
    after_comma_text: u64,
    after_value_text: u64,
}

impl Block {
    /// Reads from the bracket or comma at `at`, which is done: `open` is what is open after it. `None` if that is not to be
    /// read at once.
    #[inline(always)]
    pub(super) fn read<P: Probe>(probe: P, bytes: &[u8], at: usize, open: Open) -> Option<Block> {
        let block = bytes.get(at..at + STRING_BYTES)?.first_chunk()?;
        let tokens = Tokens::new(probe, block);
        let order = Order::new(&tokens);
        let (reach, open) = tokens.match_brackets(&order, block, open)?;
        let are_scalars_good =
            tokens.scalars & reach == 0 || tokens.are_scalars_good(probe, block, reach);
        let escaped = tokens.escaped & reach;
        let are_escapes_good = escaped == 0 || are_good(probe, bytes, at, block, escaped);
        let is_good = order.faults(&tokens) & reach == 0 && are_scalars_good && are_escapes_good;
        let last = reach.count_ones() as usize - 1;
        is_good.then_some(Block {
            at: at + last,
            open,
        })
    }
}

impl Tokens {
    #[inline(always)]
    fn new<P: Probe>(probe: P, block: &[u8; STRING_BYTES]) -> Tokens {
        let mut masks = probe.token_masks(block);
        // No string is open before the block.
        let escaped = match masks.backslashes {
            0 => 0,
            backslashes => index::escaped(backslashes, &mut 0),
        };
        let quotes = masks.quotes & !escaped;
        let inside = probe.xor_before(quotes);
        let outside = !(inside | quotes);
        for kind in [
            &mut masks.colons,
            &mut masks.commas,
            &mut masks.braces,
            &mut masks.squares,
            &mut masks.closes,
            &mut masks.whitespace,
        ] {
            *kind &= outside;
        }
        let opens = masks.braces | masks.squares;
        let punctuation = masks.colons | masks.commas | opens | masks.closes;
        Tokens {
            strings: quotes & inside,
            closing: quotes & !inside,
            inside,
            escaped: escaped & inside,
            scalars: outside & !punctuation & !masks.whitespace,
            opens,
            masks,
        }
    }

    /// The first bytes after these that are no whitespace.
    #[inline(always)]
    fn after(&self, ends: u64) -> u64 {
        let (next, whitespace) = (ends << 1, self.masks.whitespace);
        let moved = (next & whitespace).wrapping_add(whitespace);
        (next | moved) & !whitespace
    }

    /// What stands after those of these tokens that are strings.
    #[inline(always)]
    fn after_strings(&self, tokens: u64) -> u64 {
        let ends = self.inside.wrapping_add(tokens & self.strings) & self.closing;
        self.after(ends)
    }

    /// The bytes up to the one to be read last, and what is open after that. `None` if brackets or commas are not to be read.
    #[inline(always)]
    fn match_brackets(
        &self,
        order: &Order,
        block: &[u8; STRING_BYTES],
        open: Open,
    ) -> Option<(u64, Open)> {
        let keys = order.after_comma_text & self.masks.colons;
        let values =
            order.after_comma_text & !self.masks.colons | order.after_comma & !self.strings;
        // The first byte is done.
        let mut brackets = (self.opens | self.masks.closes) & !1;
        let ends = brackets | self.masks.commas & !1;
        let (mut open, mut done) = (open, 0);
        loop {
            // Up to the next bracket or, after the last one, the last comma.
            let upto = match brackets {
                0 => u64::MAX.checked_shr(ends.leading_zeros())?,
                _ => brackets ^ (brackets - 1),
            };
            let wrong = if open.is_object() { values } else { keys };
            if wrong & upto & !done != 0 {
                return None;
            }
            if brackets == 0 {
                return Some((upto, open));
            }
            let place = brackets.trailing_zeros() as usize % STRING_BYTES;
            open = match block[place] {
                bracket @ (b'{' | b'[') => open.open(bracket)?,
                bracket => open.close(bracket)?,
            };
            if open.depth == 0 {
                return Some((upto, open));
            }
            brackets &= brackets - 1;
            done = upto;
        }
    }

    /// Whether what stands outside strings and is no punctuation is numbers, `true` and its like, up to `reach`.
    #[inline(always)]
    fn are_scalars_good<P: Probe>(&self, probe: P, block: &[u8; STRING_BYTES], reach: u64) -> bool {
        let scalars = self.scalars;
        let starts = scalars & !(scalars << 1);
        // Digits alone are a number unless the first of several is a zero.
        let zeros = probe.equal(block, b'0') & starts & scalars >> 1;
        let mut others = scalars & (zeros | !self.masks.digits) & reach;
        while others != 0 {
            let upto = others ^ (others - 1);
            let start = (starts & upto).ilog2();
            let rest = !scalars & (u64::MAX << start);
            let end = rest.trailing_zeros();
            let text = &block[start as usize..end as usize];
            if !is_scalar(text) {
                return false;
            }
            others &= u64::MAX.checked_shl(end).unwrap_or(0);
        }
        true
    }
}

impl Order {
    #[inline(always)]
    fn new(tokens: &Tokens) -> Order {
        let masks = &tokens.masks;
        let after_brace = tokens.after(masks.braces);
        let after_square = tokens.after(masks.squares);
        let after_comma = tokens.after(masks.commas);
        let after_colon = tokens.after(masks.colons);
        Order {
            after_brace,
            after_square,
            after_comma,
            after_colon,
            after_first_key: tokens.after_strings(after_brace),
            after_comma_text: tokens.after_strings(after_comma),
            after_value_text: tokens.after_strings(after_square | after_colon),
        }
    }

    /// Tokens that may not stand where they do. Whether a key stands after a comma is told elsewhere.
    #[inline(always)]
    fn faults(&self, tokens: &Tokens) -> u64 {
        let masks = &tokens.masks;
        let scalar_starts = tokens.scalars & !(tokens.scalars << 1);
        let scalar_ends = tokens.scalars & !(tokens.scalars >> 1);
        let after_open = self.after_brace | self.after_square;
        let after_value = tokens.after(tokens.closing | masks.closes | scalar_ends);
        let starts = tokens.strings | scalar_starts | tokens.opens;
        let unexpected_start = starts & !(after_open | self.after_comma | self.after_colon);
        let unexpected_end =
            (masks.commas | masks.closes) & !after_value & !(masks.closes & after_open);
        let keys = self.after_first_key | self.after_comma_text;
        let unexpected_colon = masks.colons & !keys | masks.colons & self.after_value_text;
        let no_key = self.after_brace & !(tokens.strings | masks.closes);
        let no_colon = self.after_first_key & !masks.colons;
        // The first byte was looked at before.
        (unexpected_start | unexpected_end | unexpected_colon | no_key | no_colon) & !1
            | tokens.inside & masks.controls
    }
}

/// A number, `true`, `false` or `null`.
#[inline(always)]
fn is_scalar(text: &[u8]) -> bool {
    match text {
        b"true" | b"false" | b"null" => true,
        _ => {
            let is_not_finite = || json::not_finite(text).is_some_and(|(_, len)| len == text.len());
            token::number_kind(text).is_some() || is_not_finite()
        }
    }
}
