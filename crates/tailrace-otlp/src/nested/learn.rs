//! Takes a JSON text apart into the pieces between its values.
//!
//! The text is known to be JSON. A piece ends before a value that holds no others, before the end of an object or
//! array that started in it, and where it would become too long. A text with an escaped or long key has no more pieces.

use tailrace_model::json;

use super::shapes::{DEPTH_MAX, ELEMENT, Next, OPENS_MAX, OUT_MAX, Piece, TEXT_MAX};
use crate::any::{ARRAY, KEY, KVLIST, NESTING_MAX, VALUE, VALUES};

const _: () = assert!(DEPTH_MAX < NESTING_MAX);

/// What is left of a text.
pub(super) struct Learner<'t> {
    text: &'t [u8],
    /// Where the next piece starts.
    start: usize,
    at: usize,
    /// The first so many objects and arrays are open: whether it is an object, and whether it is the value of a member.
    open: [(bool, bool); DEPTH_MAX],
    depth: usize,
    /// The value of a member is next.
    is_member: bool,
    is_done: bool,
}

impl<'t> Learner<'t> {
    pub(super) fn new(text: &'t [u8]) -> Learner<'t> {
        Learner {
            text,
            start: 0,
            at: 0,
            open: [(false, false); DEPTH_MAX],
            depth: 0,
            is_member: false,
            is_done: false,
        }
    }

    /// The next piece, if there is one and it is not too long.
    pub(super) fn next_piece(&mut self) -> Option<Piece> {
        if self.is_done {
            return None;
        }
        let mut piece = Piece::EMPTY;
        loop {
            self.at = json_whitespace(self.text, self.at);
            match *self.text.get(self.at)? {
                b',' => self.at += 1,
                b'}' | b']' => {
                    if piece.out_len > 0 {
                        return self.end(piece, self.at, Next::Piece);
                    }
                    let (_, is_member) = self.innermost()?;
                    self.depth -= 1;
                    piece.closes += 1 + u8::from(is_member);
                    self.at += 1;
                    if self.depth == 0 {
                        self.is_done = true;
                        return self.end(piece, self.at, Next::End);
                    }
                }
                open @ (b'{' | b'[') => self.container(&mut piece, open == b'{')?,
                b'"' if !self.is_member && self.innermost()?.0 => {
                    let (end, escaped) = json::string_end(self.text, self.at)?;
                    let colon = json_whitespace(self.text, end);
                    // With what opens the value.
                    let is_long = colon + 3 - self.start > TEXT_MAX;
                    let out = usize::from(piece.out_len) + end - self.at + 3 + 4;
                    if piece.out_len > 0 && (is_long || out >= OUT_MAX) {
                        return self.end(piece, self.at, Next::Piece);
                    }
                    let key = &self.text[self.at + 1..end - 1];
                    if escaped || key.is_empty() || out >= OUT_MAX {
                        return None;
                    }
                    piece.member = piece.out_len + 1;
                    push(&mut piece, &[VALUES, 0, KEY, key.len() as u8])?;
                    push(&mut piece, key)?;
                    push(&mut piece, &[VALUE])?;
                    self.is_member = true;
                    self.at = colon + 1;
                }
                first => return self.value(piece, first),
            }
        }
    }

    /// An object or array that starts here.
    fn container(&mut self, piece: &mut Piece, is_object: bool) -> Option<()> {
        let is_member = std::mem::take(&mut self.is_member);
        let tag = if is_object { KVLIST } else { ARRAY };
        let inner = json_whitespace(self.text, self.at + 1);
        let is_empty = matches!(self.text.get(inner)?, b'}' | b']');
        if !is_member && self.depth > 0 {
            push(piece, &[VALUES])?;
        }
        if is_empty && self.depth > 0 {
            push(piece, &[2, tag, 0])?;
            if is_member {
                piece.out[usize::from(piece.member)] = piece.out_len - piece.member - 1;
            }
            self.at = inner + 1;
        } else {
            if is_member {
                open(piece, 2 * piece.member)?;
            }
            open(piece, 2 * piece.out_len + 1)?;
            push(piece, &[0, tag, 0])?;
            *self.open.get_mut(self.depth)? = (is_object, is_member);
            self.depth += 1;
            self.at += 1;
        }
        piece.member = ELEMENT;
        Some(())
    }

    fn innermost(&self) -> Option<(bool, bool)> {
        self.open.get(self.depth.checked_sub(1)?).copied()
    }

    /// Ends a piece before a value that holds no others, and passes over that.
    fn value(&mut self, mut piece: Piece, first: u8) -> Option<Piece> {
        if !std::mem::take(&mut self.is_member) {
            push(&mut piece, &[VALUES])?;
            piece.member = ELEMENT;
        }
        let start = self.at;
        let end = json::value_end(self.text, start)?;
        let (next, quote) = match first {
            b'"' => (Next::String, 1),
            _ => (Next::Plain, 0),
        };
        let piece = self.end(piece, start + quote, next);
        (self.start, self.at) = (end - quote, end);
        piece
    }

    fn end(&mut self, mut piece: Piece, end: usize, next: Next) -> Option<Piece> {
        let text = &self.text[self.start..end];
        if text.len() > TEXT_MAX {
            return None;
        }
        piece.text_len = text.len() as u8;
        let mut bytes = [[0; 8]; TEXT_MAX / 8];
        let mut mask = bytes;
        bytes.as_flattened_mut()[..text.len()].copy_from_slice(text);
        mask.as_flattened_mut()[..text.len()].fill(u8::MAX);
        piece.text = bytes.map(u64::from_le_bytes);
        piece.mask = mask.map(u64::from_le_bytes);
        piece.next = next;
        self.start = end;
        Some(piece)
    }
}

fn push(piece: &mut Piece, bytes: &[u8]) -> Option<()> {
    let start = usize::from(piece.out_len);
    let place = piece.out[..OUT_MAX - 1].get_mut(start..start + bytes.len())?;
    place.copy_from_slice(bytes);
    piece.out_len += bytes.len() as u8;
    Some(())
}

fn open(piece: &mut Piece, place: u8) -> Option<()> {
    if usize::from(piece.open_count) == OPENS_MAX {
        return None;
    }
    piece.opens |= u64::from(place) << (8 * piece.open_count);
    piece.open_count += 1;
    Some(())
}

fn json_whitespace(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}
