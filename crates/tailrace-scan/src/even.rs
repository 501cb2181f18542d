//! One member of records that lie evenly: of one program, one behind the other.
//!
//! Takes records of one layout whose structural characters follow each other at one distance in the index, as do their
//! rows; sets their columns of text as `gather` does, with nothing to look up for a record. Leaves every value that is not
//! common to `gather`.

use crate::columns::state;
use crate::extract::{Indexed, Pick};
use crate::gather::short_kind;
use crate::layout::Member;
use crate::shape::NESTED;
use crate::text::{ValidText, View, Views};

use tailrace_model::json::Kind;

/// Records that lie evenly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Even<'a> {
    text: ValidText<'a>,
    /// From the first record's first structural character on.
    structurals: &'a [u32],
    /// Structural characters from one record's first to the next one's.
    distance: usize,
    /// The first record's row.
    row: usize,
    count: usize,
}

impl<'a> Even<'a> {
    /// These records, whose index is plain; `None` if they do not lie evenly.
    pub(crate) fn new(indexed: &Indexed<'a>, picks: &[Pick]) -> Option<Even<'a>> {
        let [first, second, ..] = picks else {
            return None;
        };
        let distance = second.first.checked_sub(first.first).filter(|&n| n >= 3)?;
        let is_next = |pair: &[Pick; 2]| {
            pair[1].first.wrapping_sub(pair[0].first) == distance && pair[1].row == pair[0].row + 1
        };
        picks.array_windows().all(is_next).then_some(())?;
        Some(Even {
            text: indexed.lot.valid_text()?,
            structurals: indexed.structurals.get(first.first as usize..)?,
            distance: distance as usize,
            row: first.row as usize,
            count: picks.len(),
        })
    }

    /// Sets values of a column of text from record `from` on, up to one that is uncommon; gives its number, or how many
    /// records there are. Which values are strings and which are not is tried run by run.
    pub(crate) fn find_uncommon(
        &self,
        member: &Member,
        from: usize,
        (views, states): (&mut Views, &mut [u8]),
    ) -> usize {
        let mut at = from;
        loop {
            let behind_strings = self.set_strings(member, at, views, states);
            let behind = self.set_plain(member, behind_strings, views, states);
            if behind == at {
                return at;
            }
            at = behind;
        }
    }

    /// Sets the strings without escapes from record `from` on; gives the number of the first record that has none.
    #[inline(never)]
    fn set_strings(
        &self,
        member: &Member,
        from: usize,
        views: &mut Views,
        states: &mut [u8],
    ) -> usize {
        let (text, skip) = (self.text, member.skip as usize);
        self.set(member, from, views, states, |at, colon, end| {
            let view = text.view_in_quotes(at + skip, end)?;
            (colon != NESTED).then_some((view, state(Kind::String)))
        })
    }

    /// Sets the short numbers and literals from record `from` on; gives the number of the first record that has none.
    #[inline(never)]
    fn set_plain(
        &self,
        member: &Member,
        from: usize,
        views: &mut Views,
        states: &mut [u8],
    ) -> usize {
        let (text, skip) = (self.text, member.skip as usize);
        self.set(member, from, views, states, |at, _, end| {
            let start = at + skip;
            let block = text.block(start)?;
            let kind = short_kind(block, end.wrapping_sub(start))?;
            Some((text.view_of_block(block, start, end)?, state(kind)))
        })
    }

    #[inline(always)]
    fn set(
        &self,
        member: &Member,
        from: usize,
        views: &mut Views,
        states: &mut [u8],
        read: impl Fn(usize, u32, usize) -> Option<(View, u8)>,
    ) -> usize {
        assert!(self.distance >= 3, "braces, and a colon between them");
        let left = self.count - from;
        let row = self.row + from;
        let slots = views.slots(row, left);
        let states = &mut states[row..row + left];
        let at = from * self.distance + member.place as usize;
        // The last record may lack what is behind its last member: it is read as any other.
        let members = self.structurals.get(at..).unwrap_or(&[]);
        let members = members.chunks_exact(self.distance);
        let mut done = from;
        for ((member, slot), state) in members.zip(slots).zip(states) {
            let &[at, colon, end] = member.first_chunk().expect("three at least");
            let Some((view, kind)) = read(at as usize, colon, end as usize) else {
                break;
            };
            slot.set(view);
            *state = kind;
            done += 1;
        }
        done
    }
}
