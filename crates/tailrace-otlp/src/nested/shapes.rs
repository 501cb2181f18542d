//! JSON texts that look like earlier ones.
//!
//! The objects and arrays of one column mostly differ in their strings and numbers only. What is between those (brackets,
//! commas, keys) is kept in pieces, each with the bytes that it becomes: after one piece and the value behind it a few
//! others are known. A text is written by comparing it with pieces, and reading the values between. As the pieces are those
//! of a whole text that was read before, a text that consists of them is JSON, and no object of it has a key twice. Any
//! other text is left to the general way, with the same bytes as result. What is known decides about the time only.

use super::learn::Learner;
use super::scalar::Scalar;
use super::walk::Walk;
use crate::wire::{
    LIST_HEAD, ROOM, VARINT_LEN_MAX, close_long_list, move_up, varint_len, write_string,
    write_varint,
};

/// The known pieces.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    /// The first [`ROOTS`] stand for the starts of texts.
    pieces: Vec<Piece>,
    /// By root: how often a text was known, lately.
    credits: Vec<i8>,
}

/// A piece of text between two values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The text in words; what is behind it is zero.
    pub(super) text: [u64; WORDS],
    /// Ones where the text is.
    pub(super) mask: [u64; WORDS],
    pub(super) text_len: u8,
    /// What it becomes. Lengths of what starts here are zero.
    pub(super) out: [u8; OUT_MAX],
    pub(super) out_len: u8,
    /// So many lengths are known before it.
    pub(super) closes: u8,
    /// Where in `out` lengths are that are not known yet, times two, plus one where an AnyValue starts; the first in the
    /// lowest byte.
    pub(super) opens: u64,
    pub(super) open_count: u8,
    /// Where the length of the KeyValue is whose value is next, or [`ELEMENT`].
    pub(super) member: u8,
    pub(super) next: Next,
    /// The first of the pieces that may follow.
    child: u32,
    /// Another one that may be in its place, of a text that is not longer.
    other: u32,
}

/// What is behind a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// A string, whose first quote is the piece's.
    String,
    /// Any other value that holds no others.
    Plain,
    Piece,
    End,
}

const WORDS: usize = 4;
/// No piece has a longer text.
pub(super) const TEXT_MAX: usize = 8 * WORDS;
/// Each piece becomes less.
pub(super) const OUT_MAX: usize = 64;
pub(super) const OPENS_MAX: usize = 8;
/// Of a value that is no member.
pub(super) const ELEMENT: u8 = u8::MAX;
/// Lengths that are not known at the same time.
const OPEN_MAX: usize = 32;
/// Objects and arrays that are open at the same time: each has two lengths, its own and that of the member whose value it is.
pub(super) const DEPTH_MAX: usize = OPEN_MAX / 2;

const ROOTS: usize = 64;
/// So many pieces are known, which take 200 KB.
const PIECES_MAX: usize = 1024;
/// So many are known to follow one.
const OTHERS_MAX: usize = 8;
const NONE: u32 = u32::MAX;
/// Texts of a root with no more credit than this are not compared.
const CREDIT_MIN: i8 = -96;
/// What a text that was known earns, and what it costs to have compared another: one in 32 is, where none is known.
const EARNED: i8 = 16;
const COST: i8 = -32;

impl Piece {
    pub(super) const EMPTY: Piece = Piece {
        text: [0; WORDS],
        mask: [0; WORDS],
        text_len: 0,
        out: [0; OUT_MAX],
        out_len: 0,
        closes: 0,
        opens: 0,
        open_count: 0,
        member: ELEMENT,
        next: Next::Piece,
        child: NONE,
        other: NONE,
    };

    #[inline(always)]
    fn is_at(&self, text: &[u8; TEXT_MAX]) -> bool {
        let (words, _) = text.as_chunks::<8>();
        let differs = |at: usize| (u64::from_le_bytes(words[at]) ^ self.text[at]) & self.mask[at];
        differs(0) | differs(1) | differs(2) | differs(3) == 0
    }
}

impl Shapes {
    /// Writes the AnyValue of a text with its length to the front of `room` if all its pieces are known and it fits there.
    /// Gives how much it wrote. `root` stands for what the texts have in common; `unescaped` is memory.
    pub(super) fn write(
        &mut self,
        walk: Walk<'_>,
        root: usize,
        unescaped: &mut Vec<u8>,
        room: &mut [u8],
    ) -> Option<usize> {
        let root = root % ROOTS;
        let credit = self.credits.get_mut(root)?;
        if *credit <= CREDIT_MIN {
            *credit += 1;
            return None;
        }
        let written = write(&self.pieces, walk, root, unescaped, room);
        let change = if written.is_some() { EARNED } else { COST };
        self.credits[root] = self.credits[root].saturating_add(change);
        written
    }

    /// Remembers a text that is JSON and no object of which has a key twice.
    #[inline(never)]
    pub(super) fn learn(&mut self, text: &[u8], root: usize) {
        if self.pieces.is_empty() {
            self.pieces.resize(ROOTS, Piece::EMPTY);
            self.credits.resize(ROOTS, i8::MAX);
        }
        let root = root % ROOTS;
        if self.credits[root] <= CREDIT_MIN || self.pieces.len() >= PIECES_MAX {
            return;
        }
        let mut before = root;
        let mut learner = Learner::new(text);
        while let Some(piece) = learner.next_piece() {
            let Some(id) = self.add(before, &piece) else {
                return;
            };
            before = id;
        }
    }

    /// Adds a piece after another one, if it is new. Gives its number, or nothing if too many are known.
    fn add(&mut self, before: usize, piece: &Piece) -> Option<usize> {
        let (mut last, mut count) = (None, 0);
        let mut id = self.pieces[before].child;
        while let Some(known) = self.pieces.get(id as usize) {
            if known.text == piece.text
                && known.text_len == piece.text_len
                && known.next == piece.next
            {
                return Some(id as usize);
            }
            if known.text_len >= piece.text_len {
                last = Some(id as usize);
            }
            count += 1;
            id = known.other;
        }
        if count >= OTHERS_MAX || self.pieces.len() >= PIECES_MAX {
            return None;
        }
        let new = self.pieces.len();
        let mut piece = *piece;
        let place = match last {
            Some(last) => &mut self.pieces[last].other,
            None => &mut self.pieces[before].child,
        };
        piece.other = std::mem::replace(place, new as u32);
        self.pieces.push(piece);
        Some(new)
    }

    /// Before a batch: forgets everything if no more could be learned.
    pub(crate) fn start(&mut self) {
        if self.pieces.len() >= PIECES_MAX {
            self.pieces.clear();
            self.credits.clear();
        }
    }
}

/// Writes what a walk is before, as far as pieces are known and it fits; gives nothing if that is not all.
fn write(
    pieces: &[Piece],
    mut walk: Walk<'_>,
    root: usize,
    unescaped: &mut Vec<u8>,
    out: &mut [u8],
) -> Option<usize> {
    let mut opened = [0u32; OPEN_MAX];
    let (mut open_count, mut at) = (0, 0);
    let mut child = pieces[root].child;
    loop {
        let text = walk.ahead()?;
        let mut piece = pieces.get(child as usize)?;
        while !piece.is_at(text) {
            piece = pieces.get(piece.other as usize)?;
        }
        child = piece.child;
        walk.skip(usize::from(piece.text_len))?;
        for _ in 0..piece.closes {
            open_count -= 1;
            at = close(out, opened[open_count % OPEN_MAX], at)?;
        }
        let room = out.get_mut(at..)?.first_chunk_mut::<ROOM>()?;
        let (low, high) = piece.out.split_at(OUT_MAX / 2);
        room[..OUT_MAX / 2].copy_from_slice(low);
        let len = usize::from(piece.out_len) % OUT_MAX;
        if len > OUT_MAX / 2 {
            room[OUT_MAX / 2..OUT_MAX].copy_from_slice(high);
        }
        let mut opens = piece.opens;
        for _ in 0..piece.open_count {
            // Twice the place.
            opened[open_count % OPEN_MAX] = 2 * at as u32 + (opens & 0xff) as u32;
            open_count += 1;
            opens >>= 8;
        }
        let scalar = match piece.next {
            Next::String => match walk.plain_text() {
                Some(text) => text,
                None => walk.any_text(unescaped)?,
            },
            Next::Plain => walk.plain_value()?,
            Next::Piece => {
                at += len;
                continue;
            }
            Next::End => return (walk.left() == 0).then_some(at + len),
        };
        let value = room[len..].first_chunk_mut();
        let Some(value) = scalar.write_short(value.expect("there is room for both")) else {
            at = write_long(out, at, piece, scalar)?;
            continue;
        };
        if piece.member != ELEMENT {
            let member = usize::from(piece.member) % OUT_MAX;
            room[member] = (len - member - 1 + value) as u8;
        }
        at += len + value;
    }
}

/// Writes the lengths of what was opened and ends at `at`. Gives where it ends then.
#[inline(always)]
fn close(out: &mut [u8], opened: u32, at: usize) -> Option<usize> {
    let start = (opened >> 1) as usize;
    if opened & 1 == 0 {
        let len = at - start - 1;
        if len >= 0x80 {
            return close_long_member(out, start, at);
        }
        *out.get_mut(start)? = len as u8;
        return Some(at);
    }
    let len = at - start - LIST_HEAD;
    if len > 125 {
        out.get(at..at + 2 * VARINT_LEN_MAX)?;
        return Some(close_long_list(out, start, at));
    }
    let head = out.get_mut(start..start + LIST_HEAD)?;
    head[0] = 2 + len as u8;
    head[2] = len as u8;
    Some(at)
}

#[inline(never)]
fn close_long_member(out: &mut [u8], start: usize, at: usize) -> Option<usize> {
    out.get(at..at + VARINT_LEN_MAX)?;
    let len = at - start - 1;
    let more = varint_len(len as u64) - 1;
    move_up(out, start + 1, len, more);
    write_varint(&mut out[start..], len as u64);
    Some(at + more)
}

/// Writes what a piece becomes and the text behind it, which is not short. Gives where it ends.
#[inline(never)]
fn write_long(out: &mut [u8], at: usize, piece: &Piece, scalar: Scalar<'_>) -> Option<usize> {
    let Scalar::Text(text, text_len) = scalar else {
        return None;
    };
    let any = scalar.flat().len();
    let piece_out = &piece.out[..usize::from(piece.out_len)];
    let room = out.get_mut(at..at + OUT_MAX + any + 3 * VARINT_LEN_MAX)?;
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        room[len..len + bytes.len()].copy_from_slice(bytes);
        len += bytes.len();
    };
    if piece.member == ELEMENT {
        put(piece_out);
    } else {
        let (before, key) = piece_out.split_at(usize::from(piece.member));
        put(before);
        let key_value = key.len() - 1 + varint_len(any as u64) + any;
        len += write_varint(&mut room[len..], key_value as u64);
        let key = &key[1..];
        room[len..len + key.len()].copy_from_slice(key);
        len += key.len();
    }
    len += write_varint(&mut room[len..], any as u64);
    len += write_string(&mut room[len..], &text[..text_len]);
    Some(at + len)
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    use crate::any::{Values, push_prefix};
    use crate::open::Place;

    /// A text is known if it differs from one that was learned in its values only.
    fn is_known(shapes: &mut Shapes, text: &str) -> bool {
        let wide = format!("{text}{}", " ".repeat(64));
        let walk = Walk::new(wide.as_bytes(), text.len());
        shapes
            .write(walk, 0, &mut Vec::new(), &mut [0; 2048])
            .is_some()
    }

    #[test]
    fn texts_with_other_values_are_known() {
        let mut shapes = Shapes::default();
        let learned = r#"{"a":1,"b":["x",{"c":{"d":null}},[]],"e":"y"}"#;
        assert!(!is_known(&mut shapes, learned));
        shapes.learn(learned.as_bytes(), 0);
        let long = "z".repeat(300);
        for known in [
            learned,
            r#"{"a":-1.5e3,"b":["",{"c":{"d":true}},[]],"e":"a \" and \u00fc"}"#,
            &learned.replace('y', &long),
            &learned.replace('x', &long),
        ] {
            assert!(is_known(&mut shapes, known), "{known}");
        }
        let last_byte_differs = [
            r#"{"a key of twenty five by":1}"#,
            r#"{"a key of twenty five bx":1}"#,
        ];
        shapes.learn(last_byte_differs[0].as_bytes(), 0);
        assert!(is_known(&mut shapes, last_byte_differs[0]));
        for other in [
            last_byte_differs[1],
            "",
            "{}",
            r#"{"a":1,"b":["x",{"c":{"d":null}},[]],"e":"y"} "#,
            r#"{"a":1,"b":["x",{"c":{"d":null}},[]],"e":"y""#,
            r#"{"a":01,"b":["x",{"c":{"d":null}},[]],"e":"y"}"#,
            r#"{"a":"1","b":["x",{"c":{"d":null}},[]],"e":"y"}"#,
            r#"{"a":1,"b":["x",{"c":{"d":{}}},[]],"e":"y"}"#,
            r#"{"a":1,"b":["x",{"c":{"d":null}},[]],"a":"y"}"#,
            "{\"a\":1,\"b\":[\"\n\",{\"c\":{\"d\":null}},[]],\"e\":\"y\"}",
        ] {
            shapes.credits[0] = i8::MAX;
            assert!(!is_known(&mut shapes, other), "{other}");
        }
    }

    #[test]
    fn texts_of_every_depth() {
        for depth in 1..40 {
            for (open, close) in [(r#"{"a":"#, "}"), ("[", "]"), (r#"[{"a":"#, "}]")] {
                let text = |value: &str| open.repeat(depth) + value + &close.repeat(depth);
                check_known(&[text("1"), text("22"), text(r#""x""#)], "");
            }
        }
    }

    #[test]
    fn texts_that_never_look_alike_are_hardly_compared() {
        let mut shapes = Shapes::default();
        for n in 0..20 {
            let text = format!(r#"{{"k{n}":1}}"#);
            assert!(!is_known(&mut shapes, &text));
            shapes.learn(text.as_bytes(), 0);
        }
        let known = shapes.pieces.len();
        for n in 20..40 {
            assert!(!is_known(&mut shapes, r#"{"k0":2}"#), "it is not looked at");
            shapes.learn(format!(r#"{{"k{n}":1}}"#).as_bytes(), 0);
        }
        assert_eq!(shapes.pieces.len(), known);
    }

    #[test]
    fn no_more_is_known_than_there_is_memory_for() {
        let mut shapes = Shapes::default();
        for n in 0..3 * PIECES_MAX {
            shapes.learn(
                format!(r#"{{"k{n}":1,"b":2,"c":{{"d{n}":3}}}}"#).as_bytes(),
                n,
            );
        }
        assert_eq!(shapes.pieces.len(), PIECES_MAX);
        shapes.start();
        assert!(shapes.pieces.is_empty());
    }

    fn json() -> impl Strategy<Value = String> {
        let scalar = r#"-?[0-9]{1,12}([.][0-9]{1,3})?|true|false|null|"[a-z ]{0,70}"|"[a-z]{0,9}\\n"|NaN|1e400"#;
        let leaf = prop_oneof![4 => scalar, 1 => Just("x".to_owned())];
        leaf.prop_recursive(5, 40, 4, |inner| {
            let key = r#""(a|b|c|dd|a key that is longer than a piece can be|\\u0061)?""#;
            let separator = "[:]|: ";
            let member = (key, separator, inner.clone())
                .prop_map(|(key, colon, value)| key + &colon + &value);
            let comma = prop::sample::select(&[",", ", ", " ,"][..]);
            prop_oneof![
                (prop::collection::vec(member, 0..4), comma.clone())
                    .prop_map(|(members, comma)| format!("{{{}}}", members.join(comma))),
                (prop::collection::vec(inner, 0..4), comma)
                    .prop_map(|(elements, comma)| format!("[{}]", elements.join(comma))),
            ]
        })
        .prop_filter("an object or array", |text| text.starts_with(['{', '[']))
    }

    proptest! {
        #[test]
        fn what_is_known_changes_nothing(texts in prop::collection::vec(json(), 1..6), behind in r#"[0-9"}\]]{0,60}"#) {
            let twice = [texts.clone(), texts].concat();
            check_known(&twice, &behind);
        }
    }

    /// Writes texts one after the other, and each on its own.
    fn check_known(texts: &[String], behind: &str) {
        const TAG: u8 = 50;
        let mut prefix = Vec::new();
        push_prefix(&mut prefix, "key");
        let mut learning = Values::default();
        for text in texts {
            let all = format!("{text}{behind}");
            let place = Place::Buffer(all.as_bytes(), text.len());
            let (start, before) = (learning.out.len(), learning.stats);
            let mut room = vec![0; 8 * text.len() + 1024];
            let known = learning.known_json_attribute(TAG, &prefix, place, &mut room);
            assert!(known.is_none() || learning.stats == before);
            learning.json_attribute(TAG, &prefix, place, 0);
            let mut alone = Values::default();
            alone.json_attribute(TAG, &prefix, place, 0);
            assert_eq!(learning.out.from(start), alone.out.from(0), "{text}");
            if let Some(len) = known {
                assert_eq!(&room[..len], alone.out.from(0), "{text}");
            }
            let counted = learning.stats.duplicate_keys - before.duplicate_keys;
            assert_eq!(counted, alone.stats.duplicate_keys);
        }
    }
}
