//! The plan of a part, made before its first row: for each column how it is read and how its attributes begin, and for
//! each field of a LogRecord the columns that may become it.

use std::collections::HashMap;

use tailrace_model::json::{self, Kind};
use tailrace_model::reserved::BODY;

use crate::any::push_prefix;
use crate::attribute::Head;
use crate::cell::{Cell, Reader};
use crate::field::{FIELDS, Field, Mapping};
use crate::open::{OpenColumn, Place};
use crate::part::{Column, Envelope, Index, Part};
use crate::value::LOG_RECORD_ATTRIBUTES;
use crate::wire::bytes_tag;

/// No column.
pub(crate) const NONE: u32 = u32::MAX;

/// The prefixes of all columns' attributes, one behind the other; memory that is kept between
/// calls.
pub(crate) type Prefixes = Vec<u8>;

/// A part with everything decided that does not depend on the row.
pub(crate) struct PartPlan<'a> {
    pub(crate) columns: Vec<ColumnPlan<'a>>,
    /// For each field the columns that may become it, in order of precedence.
    pub(crate) candidates: [Vec<u32>; FIELDS],
    /// An event's name, or the ids or flags of a trace, may be lifted.
    pub(crate) has_rare: bool,
    /// The query computes `body`, or what the output's `fields:` make the body: whatever comes of it, the raw record does
    /// not take its place.
    pub(crate) computes_body: bool,
    /// The first column of each name.
    first: HashMap<&'a str, u32>,
    pub(crate) overflow: Option<&'a arrow::array::StringViewArray>,
    overflow_except: Vec<&'a str>,
}

pub(crate) struct ColumnPlan<'a> {
    pub(crate) name: &'a str,
    reader: Reader<'a>,
    /// How nearly all columns are read.
    pub(crate) simple: Option<SimpleColumn<'a>>,
    /// Whether the query computed it.
    pub(crate) by_row: bool,
    /// The column in the marks of requests.
    pub(crate) mark: tailrace_zstd::Column,
    /// The column of the same name before this one, or [`NONE`].
    before: u32,
    /// Where the attribute's prefix lies in [`Prefixes`].
    prefix: (u32, u32),
}

/// An open column with a value per record, a name that is not long, and no other column of it before.
/// [`Block`](crate::lift::Block) says in which rows it has a value.
pub(crate) struct SimpleColumn<'a> {
    pub(crate) column: OpenColumn<'a>,
    /// What its attributes start with.
    pub(crate) head: Head,
}

impl<'a> SimpleColumn<'a> {
    /// Where the text of a value that is present is, if it is a string.
    #[inline(always)]
    pub(crate) fn string(&self, at: usize) -> Option<Place<'a>> {
        (self.column.kind(at) == Kind::String as u8).then(|| self.column.place(at))
    }
}

impl<'a> PartPlan<'a> {
    pub(crate) fn new(part: &Part<'a>, mapping: &Mapping, prefixes: &mut Prefixes) -> PartPlan<'a> {
        let body = mapping.body.as_deref().unwrap_or(BODY);
        let is_computed_body =
            |column: &Column<'_>| column.index == Index::Row && column.name == body;
        let mut plan = PartPlan {
            columns: Vec::with_capacity(part.columns.len()),
            candidates: Default::default(),
            has_rare: false,
            computes_body: part.columns.iter().any(is_computed_body),
            first: HashMap::with_capacity(part.columns.len()),
            overflow: part.overflow,
            overflow_except: part.overflow_except.clone(),
        };
        let mut last: HashMap<&str, u32> = HashMap::new();
        for (at, column) in part.columns.iter().enumerate() {
            let at = at as u32;
            plan.first.entry(column.name).or_insert(at);
            let before = last.insert(column.name, at).unwrap_or(NONE);
            let failed = part.failed.iter().filter(|failed| failed.column == at);
            let failed = failed.map(|failed| failed.row).collect();
            plan.columns
                .push(ColumnPlan::new(column, failed, before, prefixes));
        }
        for (field, candidates) in Field::ALL.into_iter().zip(&mut plan.candidates) {
            let decides = |name: &str| field != Field::Body || !plan.computes_body || name == body;
            let ranked = |(at, column): (usize, &Column<'_>)| {
                let rank = mapping.rank(field, column.name)?;
                decides(column.name).then_some((rank, at as u32))
            };
            let mut ranks: Vec<_> = part.columns.iter().enumerate().filter_map(ranked).collect();
            ranks.sort_unstable();
            candidates.extend(ranks.into_iter().map(|(_, at)| at));
        }
        plan.has_rare = [
            Field::EventName,
            Field::TraceId,
            Field::SpanId,
            Field::TraceFlags,
        ]
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

    /// The value of a column that decides for its name: absent where an earlier column of the name is present.
    #[inline]
    pub(crate) fn deciding_cell(&self, column: usize, row: usize, record: usize) -> Cell<'_> {
        if self.is_shadowed(column, row, record) {
            return Cell::Absent;
        }
        self.cell(column, row, record)
    }

    /// The raw text of a record that is text or malformed, for rows without another body.
    #[inline]
    pub(crate) fn raw<'e>(&self, envelope: &Envelope<'e>, record: usize) -> Option<&'e str> {
        if self.computes_body {
            return None;
        }
        envelope.raw(record)
    }

    /// The raw text of a malformed record with another body, which column `body` holds. Where the query computed the
    /// body there is none: what a query masks stays masked.
    pub(crate) fn original<'e>(
        &self,
        envelope: &Envelope<'e>,
        body: usize,
        row: usize,
        record: usize,
    ) -> Option<&'e str> {
        if !envelope.is_malformed(record) || self.columns[body].by_row {
            return None;
        }
        let raw = self.raw(envelope, record)?;
        let is_body = matches!(self.cell(body, row, record), Cell::Str(text) if text == raw);
        (!is_body).then_some(raw)
    }

    /// The columns of a name.
    pub(crate) fn columns_named(&self, name: &str) -> impl Iterator<Item = usize> {
        // Columns of one name are rare, and so are calls.
        let first = self.first.get(name).map(|first| *first as usize);
        let columns = first.map(|first| first..self.columns.len());
        let columns = columns.into_iter().flatten();
        columns.filter(move |column| self.columns[*column].name == name)
    }

    /// Whether a column of this name is present in the row, lifted or not.
    pub(crate) fn has_column(&self, name: &str, row: usize, record: usize) -> bool {
        self.columns_named(name)
            .any(|column| !self.cell(column, row, record).is_absent())
    }

    /// Whether the query computed a column of this name, which is present in the row.
    pub(crate) fn computes(&self, name: &str, row: usize, record: usize) -> bool {
        let mut columns = self.columns_named(name);
        columns
            .any(|at| self.columns[at].by_row && !self.deciding_cell(at, row, record).is_absent())
    }

    /// Whether the query decides about this key of the overflow: it is not written.
    pub(crate) fn excepts(&self, key: &json::Value<'_>) -> bool {
        let is = |name: &str| self.overflow_except.contains(&name);
        !self.overflow_except.is_empty() && json::unescaped(key).is_some_and(|name| is(&name))
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
}

impl<'a> ColumnPlan<'a> {
    fn new(
        column: &Column<'a>,
        failed: Vec<u32>,
        before: u32,
        prefixes: &mut Prefixes,
    ) -> ColumnPlan<'a> {
        let start = prefixes.len() as u32;
        push_prefix(prefixes, column.name);
        let prefix = &prefixes[start as usize..];
        let mut reader = Reader::new(column.values, column.kinds);
        if !failed.is_empty() {
            reader = Reader::Failed(failed, Box::new(reader));
        }
        let by_row = column.index == Index::Row;
        let head = Head::new(bytes_tag(LOG_RECORD_ATTRIBUTES), prefix);
        let simple = match (&reader, head) {
            (Reader::Open(open), Some(head)) if !by_row && before == NONE => {
                let column = *open;
                Some(SimpleColumn { column, head })
            }
            _ => None,
        };
        ColumnPlan {
            name: column.name,
            reader,
            simple,
            by_row,
            mark: tailrace_zstd::Column::OTHER,
            before,
            prefix: (start, prefixes.len() as u32),
        }
    }

    /// The column, if it is a simple column that may have no value in some record.
    pub(crate) fn sparse(&self) -> Option<&OpenColumn<'a>> {
        let column = &self.simple.as_ref()?.column;
        column.is_sparse().then_some(column)
    }

    /// Where the value of a row is.
    #[inline]
    pub(crate) fn at(&self, row: usize, record: usize) -> usize {
        if self.by_row { row } else { record }
    }
}
