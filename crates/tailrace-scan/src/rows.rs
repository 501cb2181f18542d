//! The rows of one batch under construction.
//!
//! Records are added one by one, each with what the scanner made of it (object, text or malformed) and the members that
//! the walk finds. Values are read and converted here, each once however many columns want it, and one that is not JSON
//! makes its record malformed. Never looks for members.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatchOptions, StringViewArray};
use arrow::record_batch::RecordBatch;
use tailrace_model::json::{self, Kind, Step};

use crate::columns::{Cell, Column};
use crate::config::Type;
use crate::follow::ValueSpan;
use crate::groups::Member;
use crate::index::Indexer;
use crate::keys::{Keys, Star};
use crate::overflow::Overflow;
use crate::plan::{KEY_LISTS, Plan, Target};
use crate::scanned::{Scanned, StarColumn, Stats};
use crate::star_columns::StarColumns;
use crate::text::{Buffers, RecordText, Side, SideText};
use crate::token;
use crate::unescape::RawText;
use crate::walker::Sink;

/// The columns of one batch.
#[derive(Debug)]
pub(crate) struct Rows<'p> {
    pub(crate) plan: &'p Plan,
    pub(crate) rows: usize,
    pub(crate) columns: Vec<Column>,
    /// By number of the key's column, made when the key is first met in the batch.
    star: StarColumns,
    overflow: Option<Column>,
    raw: Option<Column>,
    malformed: Option<Vec<bool>>,
    truncated: Option<Vec<bool>>,
    pub(crate) side: Side,
    pub(crate) stats: Stats,
    indexer: Indexer,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Text,
    Malformed,
}

impl<'p> Rows<'p> {
    /// For this many records.
    pub(crate) fn new(plan: &'p Plan, rows: usize, side: Side, indexer: Indexer) -> Rows<'p> {
        Rows {
            plan,
            rows,
            columns: plan.types.iter().map(|&ty| Column::new(ty, rows)).collect(),
            star: StarColumns::new(rows, plan.star_cells_max),
            overflow: None,
            raw: None,
            malformed: None,
            truncated: None,
            side,
            stats: Stats {
                records: rows as u64,
                ..Stats::default()
            },
            indexer,
        }
    }

    /// Keeps a record that is text or malformed as it is, whatever else is set of it.
    pub(crate) fn keep_raw(&mut self, row: usize, record: &RecordText<'_>, is_malformed: bool) {
        if is_malformed {
            self.stats.malformed += 1;
            self.malformed.get_or_insert_with(|| vec![false; self.rows])[row] = true;
        } else {
            self.stats.text += 1;
        }
        let raw = self
            .raw
            .get_or_insert_with(|| Column::new(Type::Text, self.rows));
        raw.set(row, &raw_cell(record), 0);
    }

    /// Marks a record as cut at the size limit.
    pub(crate) fn mark_truncated(&mut self, row: usize) {
        self.stats.truncated += 1;
        self.truncated.get_or_insert_with(|| vec![false; self.rows])[row] = true;
    }

    /// Sets a column's row, and counts what does not fit.
    #[inline]
    pub(crate) fn set(&mut self, column: usize, row: usize, cell: &Cell<'_>) {
        if !self.columns[column].set(row, cell, self.plan.offset_s) {
            self.stats.type_mismatches += 1;
        }
    }

    /// A column of either sort.
    #[inline]
    pub(crate) fn column(&mut self, place: ColumnId) -> &mut Column {
        match place {
            ColumnId::Column(number) => &mut self.columns[number],
            ColumnId::Star(number) => self.star.get_mut(number),
        }
    }

    /// Sets a row of a column to a string whose raw text holds escapes. False if one of them is bad.
    #[cold]
    pub(crate) fn set_escaped(
        &mut self,
        place: ColumnId,
        row: usize,
        raw: RawText<'_>,
        is_first: bool,
    ) -> bool {
        let replaced = self.stats.replaced_surrogates;
        let Some(text) = self.unescape(raw) else {
            return false;
        };
        if !is_first {
            self.stats.replaced_surrogates = replaced;
        }
        let view = self.side.view(text);
        let offset_s = self.plan.offset_s;
        let column = match place {
            ColumnId::Column(number) => &mut self.columns[number],
            ColumnId::Star(number) => self.star.get_mut(number),
        };
        let cell = Cell {
            kind: Kind::String,
            text: self.side.text(text),
            view,
        };
        if !column.set(row, &cell, offset_s) {
            self.stats.type_mismatches += 1;
        }
        true
    }

    /// What the text between the quotes of a string means, in the side buffer; `None` if an escape is bad.
    pub(crate) fn unescape(&mut self, raw: RawText<'_>) -> Option<SideText> {
        let indexer = self.indexer;
        let (text, replaced) = self
            .side
            .append_within(raw.room(), |out| raw.unescape(indexer, out))?;
        self.stats.replaced_surrogates += u64::from(replaced);
        Some(text)
    }

    /// Ends an object's row: its overflow.
    pub(crate) fn finish_object(&mut self, row: usize, overflow: &mut Overflow) {
        if !overflow.is_empty() {
            overflow.finish(|object| self.set_overflow(row, object));
        }
    }

    fn set_overflow(&mut self, row: usize, object: &[u8]) {
        let written = self.side.append(|out| {
            out.extend_from_slice(object);
            Some(())
        });
        if let Some((text, ())) = written {
            let cell = Cell {
                kind: Kind::String,
                text: self.side.text(text),
                view: self.side.view(text),
            };
            self.overflow
                .get_or_insert_with(|| Column::new(Type::Text, self.rows))
                .set(row, &cell, 0);
        }
    }

    /// Moves the values of sparse columns into the overflow of their rows.
    fn spill(&mut self, buffers: &Buffers, keys: &Keys) {
        let mut cells = self.star.take_sparse(|number| keys.has_place(number));
        cells.sort_unstable_by_key(|(number, cell)| (cell.row, *number));
        let mut object = Vec::new();
        for of_row in cells.chunk_by(|(_, a), (_, b)| a.row == b.row) {
            object.clear();
            for (number, cell) in of_row {
                object.push(if object.is_empty() { b'{' } else { b',' });
                json::write_string(&keys.star_columns()[*number as usize], &mut object);
                object.push(b':');
                let write = |text: &str| match cell.kind {
                    Kind::String => json::write_string(text, &mut object),
                    Kind::Null => object.extend_from_slice(b"null"),
                    _ => object.extend_from_slice(text.as_bytes()),
                };
                buffers.with_text(cell.view, &self.side, write);
            }
            let row = of_row[0].1.row as usize;
            match self
                .overflow
                .as_ref()
                .and_then(|overflow| overflow.view(row))
            {
                Some(rest) => buffers.with_text(rest, &self.side, |rest| {
                    object.push(b',');
                    object.extend_from_slice(&rest.as_bytes()[1..]);
                }),
                None => object.push(b'}'),
            }
            self.set_overflow(row, &object);
        }
    }

    /// The batch.
    pub(crate) fn finish(mut self, buffers: &Buffers, keys: &Keys) -> Scanned {
        let stats = self.stats;
        self.spill(buffers, keys);
        let buffers = buffers.finish(self.side);
        let (columns, kinds): (Vec<ArrayRef>, _) = self
            .columns
            .into_iter()
            .map(|column| column.finish(&buffers))
            .unzip();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let batch = RecordBatch::try_new_with_options(
            Arc::clone(&self.plan.schema),
            columns,
            &options,
        )
        .expect("every column has one slot per record and the type that the schema was made from");
        let star = self.star.into_columns().zip(keys.star_columns());
        let star = star.filter_map(|(column, key)| {
            let (values, kinds) = column.filter(Column::has_values)?.finish_open(&buffers)?;
            Some(StarColumn {
                key: Arc::clone(key),
                values,
                kinds,
            })
        });
        let text = |column: Option<Column>| -> Option<StringViewArray> {
            column.and_then(|it| it.finish_text(&buffers))
        };
        Scanned {
            batch,
            kinds,
            star: star.collect(),
            overflow: text(self.overflow),
            raw: text(self.raw),
            malformed: self.malformed.map(BooleanArray::from),
            truncated: self.truncated.map(BooleanArray::from),
            stats,
        }
    }
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ColumnId {
    /// Of those asked for, by number.
    Column(usize),
    /// Of `SELECT *`, by number.
    Star(u32),
}

/// The whole record as a string.
pub(crate) fn raw_cell<'a>(record: &RecordText<'a>) -> Cell<'a> {
    Cell {
        kind: Kind::String,
        text: record.text(),
        view: record.view(0, record.text().len()),
    }
}

/// A value that was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    kind: Kind,
    origin: Origin,
}

#[derive(Clone, Copy, Debug)]
enum Origin {
    Record { start: usize, end: usize },
    Side(SideText),
}

impl Value {
    fn side(text: SideText) -> Value {
        Value {
            kind: Kind::String,
            origin: Origin::Side(text),
        }
    }

    /// What it is, and its text.
    #[inline]
    pub(crate) fn text<'a>(&self, record: &RecordText<'a>, side: &'a Side) -> (Kind, &'a str) {
        let text = match self.origin {
            Origin::Record { start, end } => &record.text()[start..end],
            Origin::Side(text) => side.text(text),
        };
        (self.kind, text)
    }

    /// The value, ready for columns.
    #[inline]
    pub(crate) fn cell<'a>(&self, record: &RecordText<'a>, side: &'a Side) -> Cell<'a> {
        let (text, view) = match self.origin {
            Origin::Record { start, end } => (&record.text()[start..end], record.view(start, end)),
            Origin::Side(text) => (side.text(text), side.view(text)),
        };
        Cell {
            kind: self.kind,
            text,
            view,
        }
    }
}

/// Of one list of keys the best of which the record has a value: its place in the list, and that value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    rank: u8,
    pub(crate) value: Value,
}

/// One record's row: where the walk delivers its members.
#[derive(Debug)]
pub(crate) struct Row<'r, 'p> {
    pub(crate) rows: &'r mut Rows<'p>,
    pub(crate) row: usize,
    pub(crate) record: RecordText<'r>,
    overflow: &'r mut Overflow,
    /// Keys wanted by name that the record had not so far.
    missing: usize,
    /// Nothing more is read of the record: what follows does not decide about it.
    is_read: bool,
    /// Something of what was read is not JSON.
    pub(crate) is_bad: bool,
    pub(crate) candidates: [Option<Candidate>; KEY_LISTS],
}

impl<'r, 'p> Row<'r, 'p> {
    /// A row before its first member.
    pub(crate) fn new(
        rows: &'r mut Rows<'p>,
        row: usize,
        record: RecordText<'r>,
        overflow: &'r mut Overflow,
    ) -> Row<'r, 'p> {
        let missing = rows.plan.keys.len();
        Row {
            rows,
            row,
            record,
            overflow,
            missing,
            is_read: false,
            is_bad: false,
            candidates: [None; KEY_LISTS],
        }
    }

    /// Gives the value of a member to the lists of keys of which it is one. It is counted here unless it has columns too.
    pub(crate) fn take_candidate(&mut self, member: &Member, value_span: ValueSpan) {
        let start = value_span.start() - self.record.base();
        let end = start + value_span.len();
        let replaced = self.rows.stats.replaced_surrogates;
        let value = if value_span.is_escaped() {
            let raw = self.record.raw(start, end);
            self.rows.unescape(raw).map(Value::side)
        } else {
            let (kind, origin) = (value_span.kind(), Origin::Record { start, end });
            Some(Value { kind, origin })
        };
        if member.has_columns {
            self.rows.stats.replaced_surrogates = replaced;
        } else {
            self.rows.stats.bad_values += u64::from(value.is_none());
        }
        let plan = self.rows.plan;
        for target in &plan.targets[member.targets.clone()] {
            if matches!(target, Target::Candidate(..)) {
                self.deliver(target, value);
            }
        }
    }

    /// Gives a value to all who want it.
    fn give(&mut self, targets: Range<usize>, star: Star, value: Option<Value>) {
        let plan = self.rows.plan;
        for target in &plan.targets[targets] {
            self.deliver(target, value);
        }
        if let (Star::Column(number), Some(value)) = (star, value) {
            let cell = value.cell(&self.record, &self.rows.side);
            self.rows.star.get_mut(number).set(self.row, &cell, 0);
        }
    }

    /// Reads the value in a span of the record; `None`, counted, if it is none.
    #[inline]
    fn read(&mut self, (start, end): (usize, usize)) -> Option<Value> {
        let text = &self.record.text()[start..end];
        let value = token::read(text).and_then(|token| {
            if token.escaped {
                let raw = self.record.raw(start + token.start, start + token.end);
                return self.rows.unescape(raw).map(Value::side);
            }
            Some(Value {
                kind: token.kind,
                origin: Origin::Record {
                    start: start + token.start,
                    end: start + token.end,
                },
            })
        });
        if value.is_none() {
            self.bad_value();
        }
        value
    }

    #[cold]
    fn bad_value(&mut self) {
        self.rows.stats.bad_values += 1;
        self.is_bad = true;
    }

    #[inline]
    fn deliver(&mut self, target: &Target, value: Option<Value>) {
        match target {
            Target::Column(column) => {
                if let Some(value) = value {
                    let cell = value.cell(&self.record, &self.rows.side);
                    if !self.rows.columns[*column].set(self.row, &cell, self.rows.plan.offset_s) {
                        self.rows.stats.type_mismatches += 1;
                    }
                }
            }
            Target::Path(column, path) => {
                if let Some(inner) = value.and_then(|value| self.follow(value, path)) {
                    self.deliver(&Target::Column(*column), Some(inner));
                }
            }
            Target::Candidate(list, rank) => {
                let best = &mut self.candidates[*list as usize];
                if let Some(value) = value.filter(|value| value.kind != Kind::Null)
                    && best.is_none_or(|best| *rank < best.rank)
                {
                    *best = Some(Candidate { rank: *rank, value });
                }
            }
            Target::Judged => {}
        }
    }

    /// What stands at the end of a path inside an object or array.
    fn follow(&mut self, value: Value, path: &[Step]) -> Option<Value> {
        let Origin::Record { start, end } = value.origin else {
            return None;
        };
        let outer = json::Value {
            kind: value.kind,
            text: &self.record.text()[start..end],
            escaped: false,
        };
        let inner = json::get_path(outer, path)?;
        if inner.escaped {
            return self
                .rows
                .unescape(RawText::new(inner.text))
                .map(Value::side);
        }
        let start = inner.text.as_ptr() as usize - self.record.text().as_ptr() as usize;
        Some(Value {
            kind: inner.kind,
            origin: Origin::Record {
                start,
                end: start + inner.text.len(),
            },
        })
    }

    /// Adds a member to the overflow unless it is a duplicate or its value is bad, which is counted unless it already
    /// `was_read`.
    fn overflow(&mut self, name: &str, (start, end): (usize, usize), was_read: bool) {
        if self.overflow.is_duplicate(name) {
            return self.unread((start, end));
        }
        let (start, end) = token::trim(self.record.bytes(), start, end);
        let text = &self.record.text()[start..end];
        if json::parse_value(text).is_some() {
            self.overflow.push(name, text);
            self.rows.stats.overflow_members += 1;
        } else if !was_read {
            self.bad_value();
        }
    }
}

impl Sink for Row<'_, '_> {
    fn known(&mut self, keys: &mut Keys, id: u32, span: (usize, usize)) -> bool {
        let (targets, star) = keys.wanted(id);
        let is_targeted = !targets.is_empty();
        if is_targeted || star != Star::Overflow {
            let value = self.read(span);
            self.give(targets, star, value);
        }
        if star == Star::Overflow {
            self.overflow(keys.name(id), span, is_targeted);
        }
        self.missing -= usize::from(is_targeted);
        self.is_read = self.missing == 0 && !keys.wants_all();
        !self.is_read || keys.notes_unwanted()
    }

    fn unknown(&mut self, name: &str, span: (usize, usize)) {
        self.overflow(name, span, false);
    }

    fn unread(&mut self, (start, end): (usize, usize)) {
        if json::parse_value(&self.record.text()[start..end]).is_none() {
            self.bad_value();
        }
    }

    fn bad_member(&mut self) {
        if self.is_read {
            return;
        }
        self.rows.stats.bad_members += 1;
        self.is_bad = true;
    }
}
