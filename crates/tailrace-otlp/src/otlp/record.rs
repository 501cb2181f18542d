//! Encodes one LogRecord: its fields in the order of their numbers, except for the attributes, which are between body and
//! flags. Which columns are lifted was decided before (`lift.rs`).

use arrow::array::Array;
use tailrace_model::json::Members;
use tailrace_zstd::Column;

use super::drafts::Finished;
use super::extras::{Extra, IOSTREAM, UID_DIGITS};
use super::{ORIGINAL, OtlpEncoder, RECORD_UID};
use crate::any::Values;
use crate::cell::Cell;
use crate::lift::{Lift, Rare};
use crate::open::Place;
use crate::part::Envelope;
use crate::plan::{ColumnPlan, PartPlan, Prefixes};
use crate::value::{LOG_RECORD_ATTRIBUTES, SourceFacts};
use crate::wire::{
    Open, bytes_tag, fixed32_tag, fixed64_tag, varint_len, varint_tag, write_varint,
};

// Fields of LogRecord.
pub(super) const TIME: u8 = 1;
pub(super) const SEVERITY_NUMBER: u8 = 2;
pub(super) const SEVERITY_TEXT: u8 = 3;
pub(super) const BODY: u8 = 5;
const ATTRIBUTES: u8 = bytes_tag(LOG_RECORD_ATTRIBUTES);
const FLAGS: u8 = 8;
const TRACE_ID: u8 = 9;
const SPAN_ID: u8 = 10;
const OBSERVED_TIME: u8 = 11;
const EVENT_NAME: u8 = 12;
/// How many bytes of a draft are copied at a time.
const STEP: usize = 64;
/// So many attributes no key of the record hides: its uid, and what is wrong with it.
const MARKS_MAX: usize = 5;
/// `log_records` of ScopeLogs.
const LOG_RECORDS: u8 = bytes_tag(2);

/// One output row.
#[derive(Clone, Copy)]
pub(super) struct Row<'r> {
    pub(super) plan: &'r PartPlan<'r>,
    pub(super) lift: &'r Lift,
    pub(super) row: usize,
    pub(super) record: usize,
    /// A value of it could not be computed.
    pub(super) has_failed: bool,
}

impl<'r> Row<'r> {
    fn cell(&self, column: usize) -> Cell<'r> {
        self.plan.cell(column, self.row, self.record)
    }

    /// The raw text of a malformed record that has another body.
    fn original(&self, envelope: &Envelope<'r>) -> Option<&'r str> {
        let body = self.lift.row(self.row).body?;
        self.plan.original(envelope, body, self.row, self.record)
    }

    /// Where the text of a lifted column is, if it is a string in a simple column.
    #[inline(always)]
    fn string(&self, column: usize) -> Option<Place<'r>> {
        let simple = self.plan.columns[column].simple.as_ref()?;
        simple.string(self.record)
    }
}

/// What is said of a row beside its columns.
#[derive(Clone, Copy)]
pub(super) struct Beside<'r> {
    pub(super) envelope: &'r Envelope<'r>,
    pub(super) facts: &'r SourceFacts,
    /// A column may have the name of an attribute that we or the source add.
    pub(super) may_clash: bool,
    pub(super) prefixes: &'r Prefixes,
}

impl OtlpEncoder {
    /// Appends one LogRecord to the open group.
    pub(super) fn log_record(&mut self, row: &Row<'_>, beside: &Beside<'_>) {
        let envelope = beside.envelope;
        self.values.stats.log_records += 1;
        if self.config.record_uid {
            self.extras.set_uid(envelope, row.record);
        }
        let first_mark = self.values.marks.len();
        let open = self.values.fields_before(row, envelope, self.record_guess);
        self.attributes(row, beside);
        self.values.fields_behind(row, envelope);
        self.record_guess = self.values.out.content_len(open);
        let shift = self.values.out.close(open);
        if shift != 0 {
            self.values.marks.shift(first_mark, shift);
        }
        self.values.marks.end(self.values.out.len());
    }

    #[inline]
    fn attributes(&mut self, row: &Row<'_>, beside: &Beside<'_>) {
        let overflow = row.plan.overflow;
        let overflow = overflow.filter(|overflow| overflow.is_valid(row.record));
        if overflow.is_some() || beside.may_clash {
            return self.distinct_attributes(row, beside, overflow.map(|it| it.value(row.record)));
        }
        self.values.columns(row, beside.prefixes, |_| false);
        if !beside.facts.attributes.is_empty() {
            self.values.out.bytes(&beside.facts.attributes);
        }
        if self.has_extras {
            let extras = self.extras.of(beside.envelope, row, self.config.iostream);
            for Extra { name, encoded } in extras {
                self.values.out.bytes(encoded);
                if name == RECORD_UID {
                    self.values.mark(Column::SPAN_ID, UID_DIGITS);
                }
            }
            if let Some(raw) = row.original(beside.envelope) {
                self.original(raw);
            }
        }
    }

    fn original(&mut self, raw: &str) {
        let prefix = &self.extras.original;
        let out = &mut self.values.out;
        out.string_attribute(ATTRIBUTES, prefix, raw.as_bytes());
        self.values.mark(Column::OTHER, raw.len());
    }

    /// The columns, the members of the overflow, and what the source and we add, of each name one. No key of the record
    /// hides its uid or what is wrong with it; a column that the query computes does.
    #[inline(never)]
    fn distinct_attributes(&mut self, row: &Row<'_>, beside: &Beside<'_>, overflow: Option<&str>) {
        let (plan, facts) = (row.plan, beside.facts);
        let original = row.original(beside.envelope);
        let ours = self.extras.of(beside.envelope, row, self.config.iostream);
        let names = ours.map(|extra| extra.name);
        let names = names.filter(|name| *name != IOSTREAM);
        let names = names.chain(original.map(|_| ORIGINAL));
        let mut marks = [None; MARKS_MAX];
        for (mark, name) in marks.iter_mut().zip(names) {
            *mark = Some(name);
        }
        let is_mark = |name: &str| marks.contains(&Some(name));
        let is_hidden = |column: &ColumnPlan<'_>| !column.by_row && is_mark(column.name);
        self.values.columns(row, beside.prefixes, is_hidden);
        let object = self.values.keys.open();
        if let Some(overflow) = overflow {
            let is_new = |key: &[u8]| {
                let name = std::str::from_utf8(key).unwrap_or_default();
                !plan.has_column(name, row.row, row.record) && !is_mark(name)
            };
            let members = Members::new(overflow).filter(|(key, _)| !plan.excepts(key));
            self.values.members(ATTRIBUTES, members, object, is_new);
        }
        let is_attribute = |column: usize| {
            let cell = row.lift.attribute(plan, column, row.row, row.record);
            !cell.is_absent() && !is_hidden(&plan.columns[column])
        };
        let is_free = |values: &mut Values, name: &str| {
            !plan.columns_named(name).any(is_attribute)
                && values.keys.insert_text(object, name.as_bytes()).is_some()
        };
        let mut start = 0;
        let sources = facts.names.iter().map(|(name, end)| {
            let encoded = &facts.attributes[start..*end];
            start = *end;
            Extra { name, encoded }
        });
        let ours = self.extras.of(beside.envelope, row, self.config.iostream);
        for Extra { name, encoded } in sources.chain(ours) {
            if is_free(&mut self.values, name) {
                self.values.out.bytes(encoded);
            }
        }
        if let Some(raw) = original
            && is_free(&mut self.values, ORIGINAL)
        {
            self.original(raw);
        }
        self.values.keys.close(object);
    }
}

impl Values {
    /// Marks the last `len` bytes as a value.
    #[inline(always)]
    fn mark(&mut self, column: Column, len: usize) {
        self.marks.value(column, self.out.len(), len);
    }

    /// Starts a LogRecord of about `guess` bytes: time, severity and body.
    #[inline]
    fn fields_before(&mut self, row: &Row<'_>, envelope: &Envelope<'_>, guess: usize) -> Open {
        let lifted = row.lift.row(row.row);
        self.out.byte(LOG_RECORDS);
        let open = self.out.open(guess);
        let start = self.out.len();
        let room = self.out.ahead();
        let mut at = 0;
        if lifted.time_ns > 0 {
            room[0] = fixed64_tag(TIME);
            room[1..9].copy_from_slice(&lifted.time_ns.to_le_bytes());
            at = 9;
            self.marks.value(Column::TIME, start + at, 8);
        }
        if lifted.severity_number > 0 {
            room[at..at + 2]
                .copy_from_slice(&[varint_tag(SEVERITY_NUMBER), lifted.severity_number]);
            at += 2;
        }
        match lifted.severity.map(|column| (column, row.string(column))) {
            None => self.out.advance(at),
            Some((_, Some(Place::Inline(text, len)))) if len > 0 => {
                room[at..at + 2].copy_from_slice(&[bytes_tag(SEVERITY_TEXT), len as u8]);
                room[at + 2..at + 18].copy_from_slice(&text.to_le_bytes());
                self.out.advance(at + 2 + len);
                self.mark(Column::SEVERITY, len);
            }
            Some((column, _)) => {
                self.out.advance(at);
                self.text_field(SEVERITY_TEXT, row.cell(column));
            }
        }
        if let Some(column) = lifted.body {
            let len = match row.string(column) {
                Some(place) => self.out.text_any_field(bytes_tag(BODY), place),
                None => self.body(row.cell(column)),
            };
            self.mark(Column::BODY, len);
        } else if let Some(raw) = row.plan.raw(envelope, row.record) {
            let len = self.body(Cell::Str(raw));
            self.mark(Column::BODY, len);
        }
        open
    }

    /// A body. Gives the length of the value's bytes, which are the last ones.
    pub(super) fn body(&mut self, cell: Cell<'_>) -> usize {
        let start = self.out.len();
        self.any_field(bytes_tag(BODY), cell);
        match cell {
            Cell::Str(text) => text.len(),
            // Behind two tags and two lengths, or more: nearly right is good enough.
            _ => (self.out.len() - start).saturating_sub(4),
        }
    }

    /// The columns that are neither lifted nor hidden.
    #[inline]
    fn columns(
        &mut self,
        row: &Row<'_>,
        prefixes: &Prefixes,
        is_hidden: impl Fn(&ColumnPlan<'_>) -> bool,
    ) {
        for (at, column) in row.plan.columns.iter().enumerate() {
            if !row.lift.may_be_attribute(at, row.row) || is_hidden(column) {
                continue;
            }
            match &column.simple {
                Some(simple) => {
                    let len = self.open_attribute(&simple.head, &simple.column, row.record);
                    self.mark(column.mark, len);
                }
                None => {
                    if let Some(len) = self.other_column(row, at, prefixes) {
                        self.mark(column.mark, len);
                    }
                }
            }
        }
    }

    /// A column that is not a simple column, if the row has a value in it. Gives the length of the value's bytes, which
    /// are the last ones.
    #[inline(never)]
    pub(super) fn other_column(
        &mut self,
        row: &Row<'_>,
        at: usize,
        prefixes: &Prefixes,
    ) -> Option<usize> {
        let plan = row.plan;
        if plan.is_shadowed(at, row.row, row.record) {
            return None;
        }
        let cell = row.cell(at);
        if cell.is_absent() {
            return None;
        }
        let (start, prefix) = (self.out.len(), plan.prefix(at, prefixes));
        self.attribute(ATTRIBUTES, prefix, cell);
        Some(match cell {
            Cell::Str(text) => text.len(),
            // Behind a tag, the key, two lengths and the value's tag, or more.
            _ => (self.out.len() - start).saturating_sub(prefix.len() + 4),
        })
    }

    /// A LogRecord that was drafted.
    #[inline(always)]
    pub(super) fn drafted(&mut self, record: &Finished<'_>, observed_ns: u64) {
        let len = drafted_len(record.len);
        let room = self.out.room(len + STEP);
        room[0] = LOG_RECORDS;
        let mut at = match record.len {
            len @ ..0x80 => {
                room[1] = len as u8;
                2
            }
            len @ 0x80..0x4000 => {
                room[1..3].copy_from_slice(&[len as u8 | 0x80, (len >> 7) as u8]);
                3
            }
            len => 1 + write_varint(&mut room[1..], len as u64),
        };
        // In steps of fixed size, whose excess is overwritten: musl copies short texts slowly.
        let (places, _) = room[at..].as_chunks_mut::<STEP>();
        let (steps, _) = record.memory.as_chunks::<STEP>();
        for (place, step) in places.iter_mut().zip(&steps[..record.draft.div_ceil(STEP)]) {
            *place = *step;
        }
        at += record.draft;
        if !record.tail.is_empty() {
            room[at..at + record.tail.len()].copy_from_slice(record.tail);
            at += record.tail.len();
        }
        write_behind(&mut room[at..], record.rare, observed_ns);
        self.out.take_room(len);
        self.marks.extend(record.marks, self.out.len() - record.len);
    }

    /// Flags, ids, observed time and event name.
    #[inline]
    fn fields_behind(&mut self, row: &Row<'_>, envelope: &Envelope<'_>) {
        let rare = row.lift.rare(row.row);
        let start = self.out.len();
        let observed_ns = u64::try_from(envelope.observed_ns).unwrap_or(0);
        let (len, ids) = write_behind(self.out.ahead(), rare, observed_ns);
        self.out.advance(len);
        if ids[0] > 0 {
            self.marks.value(Column::TRACE_ID, start + ids[0], 16);
        }
        if ids[1] > 0 {
            self.marks.value(Column::SPAN_ID, start + ids[1], 8);
        }
        self.mark(Column::CONSTANT, 8);
        if let Some(column) = rare.and_then(|rare| rare.event_name) {
            self.text_field(EVENT_NAME, row.cell(column as usize));
        }
    }
}

/// The length of a LogRecord with so much content, tag and length included.
#[inline(always)]
pub(super) fn drafted_len(content: usize) -> usize {
    1 + varint_len(content as u64) + content
}

/// Flags, ids and observed time. Gives their length, and where the ids end.
#[inline(always)]
fn write_behind(room: &mut [u8], rare: Option<&Rare>, observed_ns: u64) -> (usize, [usize; 2]) {
    let (mut at, mut ids) = (0, [0; 2]);
    if let Some(rare) = rare {
        if rare.flags > 0 {
            room[0] = fixed32_tag(FLAGS);
            room[1..5].copy_from_slice(&u32::from(rare.flags).to_le_bytes());
            at = 5;
        }
        if let Some(id) = &rare.trace_id {
            room[at..at + 2].copy_from_slice(&[bytes_tag(TRACE_ID), 16]);
            room[at + 2..at + 18].copy_from_slice(id);
            at += 18;
            ids[0] = at;
        }
        if let Some(id) = &rare.span_id {
            room[at..at + 2].copy_from_slice(&[bytes_tag(SPAN_ID), 8]);
            room[at + 2..at + 10].copy_from_slice(id);
            at += 10;
            ids[1] = at;
        }
    }
    room[at] = fixed64_tag(OBSERVED_TIME);
    room[at + 1..at + 9].copy_from_slice(&observed_ns.to_le_bytes());
    (at + 9, ids)
}
