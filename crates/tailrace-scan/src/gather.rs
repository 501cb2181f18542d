//! One member of many records of one layout.
//!
//! Takes the records and the member's place in them, sets its columns. The commonest values (strings without escapes,
//! short numbers, literals) are read here, by what the index already proved about their record; all others go through
//! `token`, which assumes nothing. Never gives another value than `token` would.

use tailrace_model::json::{self, Kind};

use crate::columns::{Cell, state};
use crate::config::Type;
use crate::even::Even;
use crate::extract::{Indexed, Pick, Picks};
use crate::keys::Star;
use crate::layout::Member;
use crate::number;
use crate::plan::Target;
use crate::rows::{Place, Rows};
use crate::shape::NESTED;
use crate::text::Views;
use crate::token::{self, Token};

/// Sets all columns of one member.
pub(crate) fn gather(
    indexed: &Indexed<'_>,
    member: &Member,
    picks: &Picks,
    even: Option<&Even<'_>>,
    rows: &mut Rows<'_>,
) {
    let mut values = Values {
        indexed,
        member,
        even,
        is_first: true,
    };
    let plan = rows.plan;
    for target in &plan.targets[member.targets.clone()] {
        match target {
            Target::Column(number) => {
                values.column(rows, picks, Place::Column(*number));
            }
            Target::Path(number, path) => {
                values.path(rows, picks, *number, path);
            }
            // Only reserved columns have candidates, and with them records are taken one by one.
            Target::Candidate(..) => {}
        }
        values.is_first = false;
    }
    if let Star::Column(number) = member.star {
        values.column(rows, picks, Place::Star(number));
    }
}

/// The values of one member.
struct Values<'v, 'a> {
    indexed: &'v Indexed<'a>,
    member: &'v Member,
    /// The records whose index is plain, if they lie evenly.
    even: Option<&'v Even<'a>>,
    /// The first of all who want the values: what is counted once is counted now.
    is_first: bool,
}

impl Values<'_, '_> {
    fn column(&self, rows: &mut Rows<'_>, picks: &Picks, place: Place) {
        match rows.column(place).ty() {
            Type::Open | Type::Text => self.texts(rows, picks, place),
            Type::Float64 => self.floats(rows, picks, place),
            _ => self.others(rows, picks, place),
        }
    }

    /// A column of text.
    fn texts(&self, rows: &mut Rows<'_>, picks: &Picks, place: Place) {
        match self.even {
            Some(even) => self.even_texts(rows, even, &picks.plain, place),
            None => self.common_texts::<false>(rows, &picks.plain, place),
        }
        self.common_texts::<true>(rows, &picks.others, place);
    }

    /// The same of records that lie evenly.
    fn even_texts(&self, rows: &mut Rows<'_>, even: &Even<'_>, picks: &[Pick], place: Place) {
        let mut from = 0;
        while from < picks.len() {
            let slots = rows.column(place).text_slots().expect("a column of text");
            from = even.find_uncommon(self.member, from, slots);
            if let Some(pick) = picks.get(from) {
                self.text(rows, pick, place);
                from += 1;
            }
        }
    }

    /// Values of a column of text, quickly where they are common.
    fn common_texts<const ODD: bool>(&self, rows: &mut Rows<'_>, picks: &[Pick], place: Place) {
        let mut rest = picks.iter();
        while !rest.as_slice().is_empty() {
            let slots = rows.column(place).text_slots().expect("a column of text");
            if let Some(pick) = self.find_uncommon::<ODD>(&mut rest, slots) {
                self.text(rows, pick, place);
            }
        }
    }

    /// One value of a column of text.
    fn text(&self, rows: &mut Rows<'_>, pick: &Pick, place: Place) {
        match self.read(pick) {
            Some(token) => self.other(rows, pick, token, place),
            None => self.bad(rows),
        }
    }

    /// Sets values of a column of text up to one that is uncommon, which is given. The records' index is plain, unless
    /// they may be `ODD`.
    #[inline(always)]
    fn find_uncommon<'p, const ODD: bool>(
        &self,
        picks: &mut std::slice::Iter<'p, Pick>,
        (views, states): (&mut Views, &mut [u8]),
    ) -> Option<&'p Pick> {
        let lot = self.indexed.lot;
        let structurals = self.indexed.structurals;
        let (place, skip) = (self.member.place, self.member.skip);
        picks.find(|pick| {
            let at = pick.first as usize + place as usize;
            let Some(&[at, colon, end]) =
                structurals.get(at..at + 3).and_then(<[u32]>::first_chunk)
            else {
                return true;
            };
            let (start, end) = (at as usize + skip as usize, end as usize);
            let Some(&first) = lot.bytes().get(start) else {
                return true;
            };
            let row = pick.row as usize;
            if first == b'"' {
                if colon != NESTED
                    && (!ODD || self.is_without_escapes(pick, start, end))
                    && let Some(view) = lot.view_in_quotes(pick.at as usize, start, end)
                {
                    views.set(row, view);
                    states[row] = state(Kind::String);
                    return false;
                }
                return true;
            }
            if let Some(block) = lot.block(start)
                && let Some(kind) = short_kind(block, end.wrapping_sub(start))
                && let Some(view) = lot.view_of_ascii(pick.at as usize, start, end)
            {
                views.set(row, view);
                states[row] = state(kind);
                return false;
            }
            true
        })
    }

    /// Whether the string between the quotes at `start` and before `end` is all there is there, and holds no escape.
    #[inline]
    fn is_without_escapes(&self, pick: &Pick, start: usize, end: usize) -> bool {
        let string = self.indexed.lot.bytes().get(start..end);
        self.indexed.outlines[pick.at as usize].is_plain_but_escaped()
            && string.is_some_and(|string| memchr::memchr(b'\\', string).is_none())
    }

    /// A column of floats.
    fn floats(&self, rows: &mut Rows<'_>, picks: &Picks, place: Place) {
        for pick in picks.iter() {
            let Some(token) = self.read(pick) else {
                self.bad(rows);
                continue;
            };
            let len = token.end - token.start;
            // Up to 15 digits an integer is a float exactly.
            if token.kind == Kind::Integer
                && len < number::BYTES_MAX
                && let Some(block) = self.indexed.lot.block(token.start)
                && block[0] != b'-'
            {
                let value = number::digits(block, len) as f64;
                rows.column(place).set_float(pick.row as usize, value);
            } else {
                self.other(rows, pick, token, place);
            }
        }
    }

    /// A column of any type.
    fn others(&self, rows: &mut Rows<'_>, picks: &Picks, place: Place) {
        for pick in picks.iter() {
            match self.read(pick) {
                Some(token) => self.other(rows, pick, token, place),
                None => self.bad(rows),
            }
        }
    }

    /// What stands at the end of a path inside the values.
    fn path(&self, rows: &mut Rows<'_>, picks: &Picks, column: usize, path: &[json::Step]) {
        for pick in picks.iter() {
            let Some(token) = self.read(pick) else {
                self.bad(rows);
                continue;
            };
            let outer = json::Value {
                kind: token.kind,
                text: self.str(pick, token),
                escaped: token.escaped,
            };
            let is_nested = matches!(token.kind, Kind::Object | Kind::Array);
            let Some(inner) = json::get_path(outer, path).filter(|_| is_nested) else {
                continue;
            };
            let start = token.start + (inner.text.as_ptr() as usize - outer.text.as_ptr() as usize);
            let token = Token {
                kind: inner.kind,
                start,
                end: start + inner.text.len(),
                escaped: inner.escaped,
            };
            self.other(rows, pick, token, Place::Column(column));
        }
    }

    /// One value for a column of any type.
    fn other(&self, rows: &mut Rows<'_>, pick: &Pick, token: Token, place: Place) {
        let (row, text) = (pick.row as usize, self.str(pick, token));
        if token.escaped {
            if !rows.set_escaped(place, row, text, self.is_first) {
                self.bad(rows);
            }
            return;
        }
        let lot = &self.indexed.lot;
        let cell = Cell {
            kind: token.kind,
            text,
            view: lot.view(pick.at as usize, token.start, token.end),
        };
        let offset_s = rows.plan.offset_s;
        if !rows.column(place).set(row, &cell, offset_s) {
            rows.stats.type_mismatches += 1;
        }
    }

    #[cold]
    fn bad(&self, rows: &mut Rows<'_>) {
        rows.stats.bad_values += u64::from(self.is_first);
    }

    fn str(&self, pick: &Pick, token: Token) -> &str {
        self.indexed
            .lot
            .text(pick.at as usize, token.start, token.end)
    }

    /// The member's value in one record.
    #[inline(always)]
    fn read(&self, pick: &Pick) -> Option<Token> {
        let at = pick.at as usize;
        let outline = &self.indexed.outlines[at];
        let place = pick.first as usize + self.member.place as usize;
        let ends = self.indexed.structurals[place..].first_chunk::<3>();
        let &[start, colon, end] = ends.expect("a member lies between structural characters");
        let (start, end) = (start as usize + self.member.skip as usize, end as usize);
        let bytes = self.indexed.lot.bytes();
        let Some(block) = self.indexed.lot.block(start).filter(|_| start < end) else {
            return self.any(at, start, end);
        };
        let token = |kind, start, end, escaped| {
            Some(Token {
                kind,
                start,
                end,
                escaped,
            })
        };
        if block[0] == b'"' && outline.is_plain_but_escaped() && colon != NESTED {
            let (start, end) = (start + 1, end - 1);
            debug_assert_eq!((start <= end, bytes[end]), (true, b'"'));
            let escaped =
                outline.has_backslash() && memchr::memchr(b'\\', &bytes[start..end]).is_some();
            return token(Kind::String, start, end, escaped);
        }
        match short_kind(block, end - start) {
            Some(kind) => token(kind, start, end, false),
            None => self.any(at, start, end),
        }
    }

    /// Any value at all.
    #[cold]
    fn any(&self, at: usize, start: usize, end: usize) -> Option<Token> {
        let text = self.indexed.lot.text(at, start, end);
        let token = token::read(text)?;
        Some(Token {
            start: start + token.start,
            end: start + token.end,
            ..token
        })
    }
}

/// The kind of a short number or a literal of `len` bytes, the first of which are `block`; `None` for all others.
#[inline(always)]
pub(crate) fn short_kind(block: &[u8; 16], len: usize) -> Option<Kind> {
    match block[0] {
        b'0'..=b'9' if len <= number::BYTES_MAX => number::short_kind(block, len),
        b't' if len == 4 && block.starts_with(b"true") => Some(Kind::Bool),
        b'f' if len == 5 && block.starts_with(b"false") => Some(Kind::Bool),
        b'n' if len == 4 && block.starts_with(b"null") => Some(Kind::Null),
        _ => None,
    }
}
