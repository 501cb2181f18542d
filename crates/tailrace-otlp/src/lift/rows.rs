//! Finds the column that decides about a field in each row of a part: the first of the candidates with a value that is not
//! null. What the value means is decided elsewhere.

use tailrace_model::json::Kind;

use super::ids::{id, id_of_text};
use crate::cell::Cell;
use crate::field::Field;
use crate::open::Place;
use crate::part::Envelope;
use crate::plan::{Candidates, PartPlan};
use crate::presence::Presence;

/// Some rows of a part, one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Rows<'r> {
    pub(super) plan: &'r PartPlan<'r>,
    pub(super) presence: &'r Presence,
    pub(super) envelope: &'r Envelope<'r>,
    /// The record of each of the part's rows; `None` is every record once.
    pub(super) records: Option<&'r [u32]>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A column that may become a field of a row.
#[derive(Clone, Copy)]
pub(super) struct Found<'r> {
    pub(super) row: usize,
    pub(super) record: usize,
    pub(super) column: usize,
    /// Where its text is, if it is a string in a simple column.
    pub(super) text: Option<Place<'r>>,
}

/// [`Kind::Null`] and [`Kind::String`] as an open column has them.
const NULL: u8 = Kind::Null as u8;
const STRING: u8 = Kind::String as u8;

impl<'r> Rows<'r> {
    #[inline]
    pub(super) fn record(&self, row: usize) -> usize {
        self.records.map_or(row, |records| records[row] as usize)
    }

    pub(super) fn cell(&self, found: &Found<'_>) -> Cell<'r> {
        self.plan.cell(found.column, found.row, found.record)
    }

    pub(super) fn id<const N: usize>(&self, found: &Found<'_>) -> Option<[u8; N]> {
        match found.text {
            Some(Place::Buffer(text, len)) => id_of_text(&text[..len]),
            _ => id(self.cell(found)),
        }
    }

    /// Looks at each column's views, so that they come from memory together: a record of few among many columns would
    /// wait for each on its own.
    pub(super) fn touch(&self) {
        let (first, last) = (self.record(self.start), self.record(self.end - 1));
        if last - first >= 2 * (self.end - self.start) {
            return; // Few of the records are wanted.
        }
        let simple_bits = self.plan.columns.iter().filter_map(|it| it.simple.as_ref());
        let sum = simple_bits.fold(0, |sum, simple| sum ^ simple.column.touch(first, last));
        std::hint::black_box(sum);
    }

    /// Calls `each` with the column that decides about a field in each row that has one.
    #[inline(always)]
    pub(super) fn for_each_found(&self, field: Field, mut each: impl FnMut(Found<'r>)) {
        let candidates = &self.plan.candidates[field as usize];
        if candidates.columns.is_empty() {
            return;
        }
        // Where all records have the same columns, one answer is for all.
        let sole = self.presence.of_all().and_then(|bits| {
            let present = candidates.simple_bits? & bits[0];
            (present.count_ones() == 1).then(|| present.trailing_zeros() as usize)
        });
        for row in self.start..self.end {
            let record = self.record(row);
            let column = sole.or_else(|| self.candidate(candidates, row, record));
            let Some(column) = column else {
                continue;
            };
            let text = match &self.plan.columns[column].simple {
                Some(simple) => match simple.column.kind(record) {
                    NULL => continue,
                    STRING => Some(simple.column.place(record)),
                    _ => None,
                },
                None => None,
            };
            each(Found {
                row,
                record,
                column,
                text,
            });
        }
    }

    /// The first candidate with a value; a JSON null if there is only that.
    #[inline]
    fn candidate(&self, candidates: &Candidates, row: usize, record: usize) -> Option<usize> {
        if let Some(simple_bits) = candidates.simple_bits {
            let present = simple_bits & self.presence.of(record)[0];
            if present == 0 {
                return None;
            }
            if present & (present - 1) == 0 {
                return Some(present.trailing_zeros() as usize);
            }
        }
        self.any_candidate(candidates, row, record)
    }

    #[inline(never)]
    fn any_candidate(&self, candidates: &Candidates, row: usize, record: usize) -> Option<usize> {
        let has_value = |column: &usize| match &self.plan.columns[*column].simple {
            Some(simple) => {
                self.presence.has(record, *column) && simple.column.kind(record) != NULL
            }
            None => self.plan.deciding_cell(*column, row, record).has_value(),
        };
        let mut columns = candidates.columns.iter().map(|column| *column as usize);
        columns.find(has_value)
    }
}
