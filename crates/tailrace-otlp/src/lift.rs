//! Lifting columns into the fields of a LogRecord, row by row.
//!
//! Takes a part and the mapping, gives per row which columns are lifted and what the fields hold. A
//! JSON null is never lifted. Of the candidates for a field the first with a value decides: if its
//! value cannot be the field's it stays an attribute and is counted. Never writes a byte of output.

use std::collections::HashMap;

use arrow::buffer::NullBuffer;
use tailrace_model::json::Kind;
use tailrace_model::{severity, time};

use crate::any::push_prefix;
use crate::attribute::Head;
use crate::cell::{Cell, Reader, Text};
use crate::field::{FIELDS, Field, Mapping};
use crate::open::{ABSENT, OpenColumn, Place};
use crate::part::{Column, Envelope, Index, Part, Stats};
use crate::value::LOG_RECORD_ATTRIBUTES;
use crate::wire::bytes_tag;

/// A part with everything decided that does not depend on the row.
pub(crate) struct PartPlan<'a> {
    pub(crate) columns: Vec<ColumnPlan<'a>>,
    /// For each field its candidates, in order of precedence.
    candidates: [Vec<u32>; FIELDS],
    /// Some trace id, span id, or flags may be lifted.
    has_ids: bool,
    /// The first column of each name.
    first: HashMap<&'a str, u32>,
    pub(crate) overflow: Option<&'a arrow::array::StringViewArray>,
}

pub(crate) struct ColumnPlan<'a> {
    pub(crate) name: &'a str,
    reader: Reader<'a>,
    /// Of an open column what all its attributes start with.
    head: Option<Head>,
    by_row: bool,
    /// The column of the same name before this one, or [`NONE`].
    before: u32,
    /// Where the attribute's prefix lies in [`Prefixes`].
    prefix: (u32, u32),
}

/// The prefixes of all columns' attributes, one behind the other; memory that is kept between
/// calls.
pub(crate) type Prefixes = Vec<u8>;

/// [`Kind::Null`] as an open column has it.
const NULL: u8 = Kind::Null as u8;

/// No column.
pub(crate) const NONE: u32 = u32::MAX;

/// What a row's fields hold. Texts and bodies are read from the column again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifted {
    /// Of each field the column that was lifted, or [`NONE`].
    columns: [u32; FIELDS],
    /// Nanoseconds since the epoch, 0 for unknown.
    pub(crate) time_ns: u64,
    pub(crate) severity_number: u8,
    pub(crate) flags: u32,
    pub(crate) trace_id: [u8; 16],
    pub(crate) span_id: [u8; 8],
}

impl Lifted {
    /// Nothing is lifted.
    pub(crate) const NOTHING: Lifted = Lifted {
        columns: [NONE; FIELDS],
        time_ns: 0,
        severity_number: 0,
        flags: 0,
        trace_id: [0; 16],
        span_id: [0; 8],
    };

    /// Makes the column of a field an attribute again.
    pub(crate) fn give_back(&mut self, field: Field) {
        self.columns[field as usize] = NONE;
    }

    /// The lifted columns from `64 * word` on, a bit for each.
    #[inline]
    pub(crate) fn bits(&self, word: usize) -> u64 {
        let bit = |column: &u32| u64::from((column >> 6) as usize == word) << (column & 63);
        self.columns.iter().map(bit).fold(0, |all, bit| all | bit)
    }

    /// The column lifted into a field.
    #[inline]
    pub(crate) fn column(&self, field: Field) -> Option<usize> {
        let column = self.columns[field as usize];
        (column != NONE).then_some(column as usize)
    }
}

impl<'a> PartPlan<'a> {
    pub(crate) fn new(part: &Part<'a>, mapping: &Mapping, prefixes: &mut Prefixes) -> PartPlan<'a> {
        let mut plan = PartPlan {
            columns: Vec::with_capacity(part.columns.len()),
            candidates: Default::default(),
            has_ids: false,
            first: HashMap::with_capacity(part.columns.len()),
            overflow: part.overflow,
        };
        let mut last: HashMap<&str, u32> = HashMap::new();
        for (at, column) in part.columns.iter().enumerate() {
            let at = at as u32;
            plan.first.entry(column.name).or_insert(at);
            let before = last.insert(column.name, at).unwrap_or(NONE);
            plan.columns.push(ColumnPlan::new(column, before, prefixes));
        }
        for (field, candidates) in Field::ALL.into_iter().zip(&mut plan.candidates) {
            let ranked = |(at, column): (usize, &Column<'_>)| {
                Some((mapping.rank(field, column.name)?, at as u32))
            };
            let mut ranks: Vec<_> = part.columns.iter().enumerate().filter_map(ranked).collect();
            ranks.sort_unstable();
            candidates.extend(ranks.into_iter().map(|(_, at)| at));
        }
        plan.has_ids = [Field::TraceId, Field::SpanId, Field::TraceFlags]
            .iter()
            .any(|field| !plan.candidates[*field as usize].is_empty());
        plan
    }

    /// The value of a column.
    #[inline]
    pub(crate) fn cell(&self, column: usize, row: usize, record: usize) -> Cell<'_> {
        let column = &self.columns[column];
        column.reader.cell(column.at(row, record))
    }

    /// The value of a column as the row's attribute: absent where an earlier column of the name is
    /// present, or where the column was lifted.
    #[inline]
    pub(crate) fn attribute(
        &self,
        column: usize,
        row: usize,
        record: usize,
        lifted: &Lifted,
    ) -> Cell<'_> {
        let is_lifted = lifted.columns.contains(&(column as u32));
        if is_lifted || self.is_shadowed(column, row, record) {
            return Cell::Absent;
        }
        self.cell(column, row, record)
    }

    /// Whether a column of this name would be an attribute of the row.
    pub(crate) fn has_attribute(
        &self,
        name: &str,
        row: usize,
        record: usize,
        lifted: &Lifted,
    ) -> bool {
        let Some(&first) = self.first.get(name) else {
            return false;
        };
        // Columns of one name are rare; the first present one counts.
        (first as usize..self.columns.len())
            .filter(|column| self.columns[*column].name == name)
            .any(|column| !self.attribute(column, row, record, lifted).is_absent())
    }

    /// Whether a column of this name is present in the row, lifted or not.
    pub(crate) fn has_column(&self, name: &str, row: usize, record: usize) -> bool {
        let Some(&first) = self.first.get(name) else {
            return false;
        };
        (first as usize..self.columns.len()).any(|column| {
            self.columns[column].name == name && !self.cell(column, row, record).is_absent()
        })
    }

    /// Whether any column has this name.
    pub(crate) fn names(&self, name: &str) -> bool {
        self.first.contains_key(name)
    }

    pub(crate) fn prefix<'p>(&self, column: usize, prefixes: &'p Prefixes) -> &'p [u8] {
        let (start, end) = self.columns[column].prefix;
        &prefixes[start as usize..end as usize]
    }

    /// Whether an earlier column of the same name is present.
    #[inline]
    pub(crate) fn is_shadowed(&self, column: usize, row: usize, record: usize) -> bool {
        let mut before = self.columns[column].before;
        while before != NONE {
            if !self.cell(before as usize, row, record).is_absent() {
                return true;
            }
            before = self.columns[before as usize].before;
        }
        false
    }

    /// The first candidate with a value.
    #[inline]
    fn candidate(&self, field: Field, row: usize, record: usize) -> Option<u32> {
        let candidates = self.candidates[field as usize].iter().copied();
        candidates.into_iter().find(|column| {
            self.columns[*column as usize].has_value(row, record)
                && !self.is_shadowed(*column as usize, row, record)
        })
    }

    /// As [`Self::candidate`], with its value.
    #[inline]
    fn candidate_cell(&self, field: Field, row: usize, record: usize) -> Option<(u32, Cell<'_>)> {
        let column = self.candidate(field, row, record)?;
        Some((column, self.cell(column as usize, row, record)))
    }
}

impl<'a> ColumnPlan<'a> {
    fn new(column: &Column<'a>, before: u32, prefixes: &mut Prefixes) -> ColumnPlan<'a> {
        let start = prefixes.len() as u32;
        push_prefix(prefixes, column.name);
        let prefix = &prefixes[start as usize..];
        ColumnPlan {
            name: column.name,
            reader: Reader::new(column.values, column.kinds),
            head: Head::new(bytes_tag(LOG_RECORD_ATTRIBUTES), prefix),
            by_row: column.index == Index::Row,
            before,
            prefix: (start, prefixes.len() as u32),
        }
    }

    /// The column and what its attributes start with, if it is open and its name is not long.
    #[inline]
    pub(crate) fn as_open(&self) -> Option<(&Head, &OpenColumn<'a>)> {
        match (&self.head, &self.reader) {
            (Some(head), Reader::Open(column)) => Some((head, column)),
            _ => None,
        }
    }

    /// The nulls of an open column with a value per record.
    pub(crate) fn nulls_by_record(&self) -> Option<&'a NullBuffer> {
        match &self.reader {
            Reader::Open(column) if !self.by_row => column.nulls(),
            _ => None,
        }
    }

    /// Where the text of a string in an open column is; nothing of other values and columns.
    #[inline]
    pub(crate) fn string(&self, row: usize, record: usize) -> Option<Place<'a>> {
        match &self.reader {
            Reader::Open(column) => column.string(self.at(row, record)),
            _ => None,
        }
    }

    #[inline]
    fn has_value(&self, row: usize, record: usize) -> bool {
        let at = self.at(row, record);
        match &self.reader {
            Reader::Open(column) => !matches!(column.state(at), ABSENT | NULL),
            reader => reader.cell(at).has_value(),
        }
    }

    /// Where the value of a row is.
    #[inline]
    pub(crate) fn at(&self, row: usize, record: usize) -> usize {
        if self.by_row { row } else { record }
    }
}

/// Lifts rows; holds the memory for numbers that must become text first.
#[derive(Debug, Default)]
pub(crate) struct Lift {
    text: Vec<u8>,
}

impl Lift {
    /// Decides the fields of one row.
    pub(crate) fn row(
        &mut self,
        plan: &PartPlan<'_>,
        row: usize,
        record: usize,
        envelope: &Envelope<'_>,
        offset_s: i32,
        stats: &mut Stats,
    ) -> Lifted {
        let mut lifted = Lifted {
            time_ns: u64::try_from(envelope.time(record)).unwrap_or(0),
            ..Lifted::NOTHING
        };
        if let Some(column) = plan.candidate(Field::Timestamp, row, record) {
            let usual = match plan.columns[column as usize].string(row, record) {
                Some(Place::Buffer(text, len)) => time::parse_usual(&text[..len]),
                _ => None,
            };
            let time_ns = match usual {
                Some(ns) => after_epoch(ns),
                None => self.time(plan.cell(column as usize, row, record), offset_s),
            };
            match time_ns {
                Some(time_ns) => {
                    lifted.time_ns = time_ns;
                    lifted.columns[Field::Timestamp as usize] = column;
                }
                None => stats.unparsable_timestamps += 1,
            }
        }
        self.severity(plan, row, record, &mut lifted, stats);
        if let Some(column) = plan.candidate(Field::Body, row, record) {
            lifted.columns[Field::Body as usize] = column;
        }
        if let Some((column, Cell::Str(text))) = plan.candidate_cell(Field::EventName, row, record)
            && !text.is_empty()
        {
            lifted.columns[Field::EventName as usize] = column;
        }
        if plan.has_ids {
            lift_ids(plan, row, record, &mut lifted, stats);
        }
        lifted
    }

    /// The time a value means, if it is one after the epoch.
    fn time(&mut self, cell: Cell<'_>, offset_s: i32) -> Option<u64> {
        let ns = match cell {
            Cell::Str(text) => time::parse(text, offset_s),
            Cell::Integer(text) | Cell::Number(text) => time::parse_epoch(text),
            Cell::Time(ns) | Cell::Day(ns) => Some(ns),
            Cell::Int(_) | Cell::Uint(_) | Cell::Float(_) => time::parse_epoch(self.text_of(cell)?),
            _ => None,
        };
        ns.and_then(after_epoch)
    }

    fn severity(
        &mut self,
        plan: &PartPlan<'_>,
        row: usize,
        record: usize,
        lifted: &mut Lifted,
        stats: &mut Stats,
    ) {
        if let Some(column) = plan.candidate(Field::Severity, row, record) {
            let usual = match plan.columns[column as usize].string(row, record) {
                Some(Place::Inline(text, len)) => {
                    severity::number_of_usual(&text.to_le_bytes()[..len])
                }
                _ => None,
            };
            let number =
                usual.or_else(|| self.severity_of(plan.cell(column as usize, row, record)));
            if let Some(number) = number {
                lifted.severity_number = number;
                lifted.columns[Field::Severity as usize] = column;
            }
        }
        if let Some((column, cell)) = plan.candidate_cell(Field::SeverityNumber, row, record) {
            match severity_number(cell) {
                Some(number) => {
                    lifted.severity_number = number;
                    lifted.columns[Field::SeverityNumber as usize] = column;
                }
                None => stats.unparsable_fields += 1,
            }
        }
    }

    /// The number of a severity by its text; nothing if the value is neither text nor a number.
    fn severity_of(&mut self, cell: Cell<'_>) -> Option<u8> {
        match cell {
            Cell::Str(text) | Cell::Integer(text) | Cell::Number(text) => {
                Some(severity::number_of_text(text))
            }
            Cell::Int(level) => Some(severity::number_of_integer(level)),
            Cell::Uint(_) | Cell::Float(_) => self.text_of(cell).map(severity::number_of_text),
            _ => None,
        }
    }

    fn text_of(&mut self, cell: Cell<'_>) -> Option<&str> {
        self.text.clear();
        match cell {
            // Without an exponent, which a time must not have.
            Cell::Float(value) => {
                use std::fmt::Write;
                write!(Text(&mut self.text), "{value}").ok()?;
            }
            _ => _ = cell.write_text(&mut self.text),
        }
        std::str::from_utf8(&self.text).ok()
    }
}

fn after_epoch(ns: i64) -> Option<u64> {
    u64::try_from(ns).ok().filter(|ns| *ns > 0)
}

fn lift_ids(
    plan: &PartPlan<'_>,
    row: usize,
    record: usize,
    lifted: &mut Lifted,
    stats: &mut Stats,
) {
    if let Some((column, cell)) = plan.candidate_cell(Field::TraceId, row, record) {
        match id(cell) {
            Some(bytes) => {
                lifted.trace_id = bytes;
                lifted.columns[Field::TraceId as usize] = column;
            }
            None => stats.unparsable_fields += 1,
        }
    }
    if let Some((column, cell)) = plan.candidate_cell(Field::SpanId, row, record) {
        match id(cell) {
            Some(bytes) => {
                lifted.span_id = bytes;
                lifted.columns[Field::SpanId as usize] = column;
            }
            None => stats.unparsable_fields += 1,
        }
    }
    if let Some((column, cell)) = plan.candidate_cell(Field::TraceFlags, row, record) {
        match trace_flags(cell) {
            Some(flags) => {
                lifted.flags = flags.into();
                lifted.columns[Field::TraceFlags as usize] = column;
            }
            None => stats.unparsable_fields += 1,
        }
    }
}

/// 1 to 24.
fn severity_number(cell: Cell<'_>) -> Option<u8> {
    let number = match cell {
        Cell::Int(number) => number,
        Cell::Uint(number) => i64::try_from(number).ok()?,
        Cell::Float(number) if number.fract() == 0.0 => number as i64,
        Cell::Integer(text) | Cell::Str(text) => text.parse().ok()?,
        _ => return None,
    };
    u8::try_from(number)
        .ok()
        .filter(|number| (1..=24).contains(number))
}

/// An id as hex digits in any case, or as bytes; not all zero.
fn id<const N: usize>(cell: Cell<'_>) -> Option<[u8; N]> {
    let id = match cell {
        Cell::Str(text) => {
            let mut id = [0; N];
            let digits = text.as_bytes();
            if digits.len() != 2 * N {
                return None;
            }
            for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
                *byte = hex(pair[0])? << 4 | hex(pair[1])?;
            }
            id
        }
        Cell::Bytes(bytes) => bytes.try_into().ok()?,
        _ => return None,
    };
    (id != [0; N]).then_some(id)
}

/// W3C trace flags: two hex digits (or one), or a number up to 255.
fn trace_flags(cell: Cell<'_>) -> Option<u8> {
    match cell {
        Cell::Str(text) => match *text.as_bytes() {
            [high, low] => Some(hex(high)? << 4 | hex(low)?),
            [low] => hex(low),
            _ => None,
        },
        Cell::Integer(text) => text.parse().ok(),
        Cell::Int(flags) => flags.try_into().ok(),
        Cell::Uint(flags) => flags.try_into().ok(),
        _ => None,
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}
