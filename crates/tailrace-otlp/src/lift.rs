//! Lifting columns into the fields of LogRecords, field by field for all rows of a part.
//!
//! From a part's plan and the columns that each record has, it computes the content of the fields of each row, and which
//! columns remain attributes. A JSON null is never lifted. Of the candidates for a field, the first with a value decides: if
//! its value is not valid for the field, it stays an attribute and is counted. No output is written here.

mod ids;
mod rows;

use tailrace_model::time::UsualTimes;
use tailrace_model::{severity, time};

use crate::cell::{Cell, Text};
use crate::field::Field;
use crate::number::integer;
use crate::open::Place;
use crate::part::{Envelope, Part, Stats};
use crate::plan::{NONE, PartPlan};
use crate::presence::Presence;
use ids::{severity_number, trace_flags};
use rows::{Found, Rows};

/// What a row's fields hold. Texts and bodies are read from the column again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifted {
    /// Nanoseconds since the epoch, 0 for unknown.
    pub(crate) time_ns: u64,
    /// The column that is the severity's text, or [`NONE`].
    severity: u32,
    /// The column that is the body, or [`NONE`].
    body: u32,
    pub(crate) severity_number: u8,
}

/// What a row's fields hold that few parts have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) event_name: Option<u32>,
    pub(crate) trace_id: Option<[u8; 16]>,
    pub(crate) span_id: Option<[u8; 8]>,
    pub(crate) flags: u8,
}

impl Lifted {
    pub(crate) fn severity(&self) -> Option<usize> {
        (self.severity != NONE).then_some(self.severity as usize)
    }

    pub(crate) fn body(&self) -> Option<usize> {
        (self.body != NONE).then_some(self.body as usize)
    }
}

/// The lifted fields of the rows of all parts. It owns the memory.
#[derive(Debug, Default)]
pub(crate) struct Lifts {
    parts: Vec<Lift>,
    /// What may become one of the rare fields stays an attribute.
    without_rare: bool,
}

impl Lifts {
    pub(crate) fn without_rare() -> Lifts {
        Lifts {
            without_rare: true,
            ..Lifts::default()
        }
    }

    /// Looks at a batch. Rows are asked for in ascending order then.
    pub(crate) fn start(&mut self, batch: &Batch<'_>) {
        self.parts.resize_with(batch.parts.len(), Lift::default);
        for ((lift, plan), part) in self.parts.iter_mut().zip(batch.plans).zip(batch.parts) {
            let records = batch.envelope.records as usize;
            lift.presence.fill(plan, part.rows, records);
            (lift.start, lift.end) = (0, 0);
        }
    }

    /// What became of a row, and of some around it.
    #[inline]
    pub(crate) fn at(
        &mut self,
        batch: &Batch<'_>,
        part: usize,
        row: usize,
        stats: &mut Stats,
    ) -> &Lift {
        if row >= self.parts[part].end {
            self.fill(batch, part, row, stats);
        }
        &self.parts[part]
    }

    #[inline(never)]
    fn fill(&mut self, batch: &Batch<'_>, part: usize, start: usize, stats: &mut Stats) {
        let (lift, plan) = (&mut self.parts[part], &batch.plans[part]);
        let records = batch.parts[part].rows;
        let len = records.map_or(batch.envelope.records as usize, <[u32]>::len);
        let presence = std::mem::take(&mut lift.presence);
        let rows = Rows {
            plan,
            presence: &presence,
            envelope: batch.envelope,
            records,
            start,
            end: len.min(start + BLOCK_ROWS),
        };
        lift.fill(&rows, batch.offset_s, stats);
        if plan.has_rare {
            let kept = self.without_rare.then(|| lift.attributes.clone());
            lift.fill_rare(&rows, stats);
            lift.attributes = kept.unwrap_or(std::mem::take(&mut lift.attributes));
        }
        lift.presence = presence;
    }
}

/// So many rows are lifted at a time: they are still in the cache when they are written.
const BLOCK_ROWS: usize = 32;

/// What is lifted from.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'b> {
    pub(crate) envelope: &'b Envelope<'b>,
    pub(crate) parts: &'b [Part<'b>],
    pub(crate) plans: &'b [PartPlan<'b>],
    pub(crate) offset_s: i32,
}

/// What became of some rows of a part, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Lift {
    /// Of the whole part.
    presence: Presence,
    start: usize,
    end: usize,
    rows: Vec<Lifted>,
    /// Empty, or by row.
    rare: Vec<Rare>,
    /// Per row a bit for each column that may be an attribute.
    attributes: Vec<u64>,
    /// Of these so many for a row.
    words: usize,
    times: UsualTimes,
    text: Vec<u8>,
}

impl Lift {
    fn fill(&mut self, rows: &Rows<'_>, offset_s: i32, stats: &mut Stats) {
        self.clear(rows);
        rows.touch();
        self.fill_times(rows, offset_s, stats);
        self.fill_severities(rows, stats);
        rows.for_each_found(Field::Body, |found| {
            self.rows[found.row - self.start].body = found.column as u32;
            self.take(&found);
        });
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> &Lifted {
        &self.rows[row - self.start]
    }

    #[inline]
    pub(crate) fn rare(&self, row: usize) -> Option<&Rare> {
        self.rare.get(row - self.start)
    }

    /// The bits of the columns that may be attributes of a row, 64 columns a word.
    #[inline]
    pub(crate) fn attributes(&self, row: usize) -> &[u64] {
        &self.attributes[(row - self.start) * self.words..][..self.words]
    }

    /// The value of a column as the row's attribute: absent where it was lifted, or an earlier column of the name is
    /// present.
    pub(crate) fn attribute<'p>(
        &self,
        plan: &'p PartPlan<'_>,
        column: usize,
        row: usize,
        record: usize,
    ) -> Cell<'p> {
        if self.attributes(row)[column / 64] >> (column % 64) & 1 == 0 {
            return Cell::Absent;
        }
        plan.deciding_cell(column, row, record)
    }

    /// Nothing is lifted yet.
    fn clear(&mut self, rows: &Rows<'_>) {
        const NOTHING: Lifted = Lifted {
            time_ns: 0,
            severity: NONE,
            body: NONE,
            severity_number: 0,
        };
        (self.start, self.end) = (rows.start, rows.end);
        let len = rows.end - rows.start;
        self.rows.clear();
        self.rows.resize(len, NOTHING);
        if !rows.envelope.times.is_empty() {
            for (row, lifted) in (rows.start..).zip(&mut self.rows) {
                let time_ns = rows.envelope.time(rows.record(row));
                lifted.time_ns = u64::try_from(time_ns).unwrap_or(0);
            }
        }
        self.rare.clear();
        if rows.plan.has_rare {
            self.rare.resize(len, Rare::default());
        }
        self.words = rows.presence.words();
        self.attributes.clear();
        match (rows.presence.of_all(), self.words) {
            (Some(&[word]), _) => self.attributes.resize(len, word),
            (_, 1) => {
                let records = (rows.start..rows.end).map(|row| rows.record(row));
                let words = records.map(|record| rows.presence.of(record)[0]);
                self.attributes.extend(words);
            }
            _ => {
                for row in rows.start..rows.end {
                    let bits = rows.presence.of(rows.record(row));
                    self.attributes.extend_from_slice(bits);
                }
            }
        }
    }

    /// A column is no attribute of a row.
    #[inline]
    fn take(&mut self, found: &Found<'_>) {
        let word = (found.row - self.start) * self.words + found.column / 64;
        self.attributes[word] &= !(1 << (found.column % 64));
    }

    fn fill_times(&mut self, rows: &Rows<'_>, offset_s: i32, stats: &mut Stats) {
        rows.for_each_found(Field::Timestamp, |found| {
            let usual = match found.text {
                Some(Place::Buffer(text, len)) => self.times.parse(&text[..len]),
                _ => None,
            };
            let time_ns = match usual {
                Some(ns) => after_epoch(ns),
                None => self.time(rows.cell(&found), offset_s),
            };
            match time_ns {
                Some(time_ns) => {
                    self.rows[found.row - self.start].time_ns = time_ns;
                    self.take(&found);
                }
                None => stats.unparsable_timestamps += 1,
            }
        });
    }

    fn fill_severities(&mut self, rows: &Rows<'_>, stats: &mut Stats) {
        rows.for_each_found(Field::Severity, |found| {
            let usual = match found.text {
                Some(Place::Inline(text, len)) => severity::number_of_short(text as u64, len),
                _ => None,
            };
            if let Some(number) = usual.or_else(|| self.severity_of(rows.cell(&found))) {
                self.rows[found.row - self.start].severity_number = number;
                self.rows[found.row - self.start].severity = found.column as u32;
                self.take(&found);
            }
        });
        rows.for_each_found(Field::SeverityNumber, |found| {
            match severity_number(rows.cell(&found)) {
                Some(number) => {
                    self.rows[found.row - self.start].severity_number = number;
                    self.take(&found);
                }
                None => stats.unparsable_fields += 1,
            }
        });
    }

    /// The event's name, and the ids and flags of a trace.
    fn fill_rare(&mut self, rows: &Rows<'_>, stats: &mut Stats) {
        rows.for_each_found(Field::EventName, |found| {
            if let Cell::Str(text) = rows.cell(&found)
                && !text.is_empty()
            {
                self.rare[found.row - self.start].event_name = Some(found.column as u32);
                self.take(&found);
            }
        });
        rows.for_each_found(Field::TraceId, |found| {
            let id = rows.id(&found);
            self.rare[found.row - self.start].trace_id = id;
            self.take_if(id.is_some(), &found, stats);
        });
        rows.for_each_found(Field::SpanId, |found| {
            let id = rows.id(&found);
            self.rare[found.row - self.start].span_id = id;
            self.take_if(id.is_some(), &found, stats);
        });
        rows.for_each_found(Field::TraceFlags, |found| {
            let flags = trace_flags(rows.cell(&found));
            self.rare[found.row - self.start].flags = flags.unwrap_or(0);
            self.take_if(flags.is_some(), &found, stats);
        });
    }

    fn take_if(&mut self, is_field: bool, found: &Found<'_>, stats: &mut Stats) {
        if is_field {
            self.take(found);
        } else {
            stats.unparsable_fields += 1;
        }
    }

    /// The time a value means, if it is one after the epoch.
    fn time(&mut self, cell: Cell<'_>, offset_s: i32) -> Option<u64> {
        let ns = match cell {
            Cell::Str(text) => time::parse(text, offset_s),
            Cell::Integer(text) => match integer(text) {
                Some(number) => time::of_number(number),
                None => time::parse_epoch(text),
            },
            Cell::Number(text) => time::parse_epoch(text),
            Cell::Time(ns) | Cell::Day(ns) => Some(ns),
            Cell::Int(_) | Cell::Uint(_) | Cell::Float(_) => time::parse_epoch(self.text_of(cell)?),
            _ => None,
        };
        ns.and_then(after_epoch)
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
