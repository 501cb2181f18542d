//! Lifting columns into the fields of LogRecords, field by field for a block of rows.
//!
//! From a part's plan and the columns that each record has, it computes the content of the fields of each row, and which
//! columns remain attributes. A JSON null is never lifted. Of the candidates for a field, the first with a value decides: if
//! its value is not valid for the field, it stays an attribute and is counted. No output is written here.

mod block;
mod ids;
mod window;

use tailrace_model::time::UsualTimes;
use tailrace_model::{severity, time};

use crate::cell::{Cell, Text};
use crate::field::Field;
use crate::number::integer;
use crate::open::{Place, TextRange};
use crate::part::{Envelope, Part, Stats};
use crate::plan::PartPlan;
pub(crate) use block::{BLOCK_ROWS, Block, RowsOf};
use ids::{id, id_of_text, severity_number, trace_flags};
pub(crate) use window::{Gathered, Window};

/// What a row's fields hold. Texts and bodies are read from the column again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lifted {
    /// Nanoseconds since the epoch, 0 for unknown.
    pub(crate) time_ns: u64,
    pub(crate) severity_number: u8,
    /// The column that is the severity's text.
    pub(crate) severity: Option<usize>,
    /// The column that is the body.
    pub(crate) body: Option<usize>,
}

/// What a row's fields hold that few parts have.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) event_name: Option<u32>,
    pub(crate) trace_id: Option<[u8; 16]>,
    pub(crate) span_id: Option<[u8; 8]>,
    pub(crate) flags: u8,
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

    /// Before the first row of a batch. Rows are asked for in ascending order then.
    pub(crate) fn start(&mut self, batch: &Batch<'_>) {
        self.parts.resize_with(batch.parts.len(), Lift::default);
        for lift in &mut self.parts {
            lift.block = Block::default();
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
        self.advance(batch, part, row, stats);
        self.of(part)
    }

    /// Moves on to a row; says whether its block is a new one.
    #[inline]
    pub(crate) fn advance(
        &mut self,
        batch: &Batch<'_>,
        part: usize,
        row: usize,
        stats: &mut Stats,
    ) -> bool {
        let is_new = row >= self.parts[part].block.end();
        if is_new {
            self.fill(batch, part, row, stats);
        }
        is_new
    }

    /// The block of a part.
    #[inline]
    pub(crate) fn of(&self, part: usize) -> &Lift {
        &self.parts[part]
    }

    #[inline(never)]
    fn fill(&mut self, batch: &Batch<'_>, part: usize, start: usize, stats: &mut Stats) {
        let (lift, plan) = (&mut self.parts[part], &batch.plans[part]);
        let rows = batch.parts[part].rows;
        lift.block = Block::new(rows, batch.envelope.records as usize, start);
        lift.fill(plan, batch, stats);
        if plan.has_rare {
            let kept = self.without_rare.then(|| lift.attributes.clone());
            lift.fill_rare(plan, stats);
            lift.attributes = kept.unwrap_or(std::mem::take(&mut lift.attributes));
        }
    }
}

/// What is lifted from.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'b> {
    pub(crate) envelope: &'b Envelope<'b>,
    pub(crate) parts: &'b [Part<'b>],
    pub(crate) plans: &'b [PartPlan<'b>],
    pub(crate) offset_s: i32,
}

/// What became of the rows of a block.
#[derive(Debug)]
pub(crate) struct Lift {
    pub(crate) block: Block,
    /// By column the rows with a value in it, if it is a [`SimpleColumn`](crate::plan::SimpleColumn); else all rows, which
    /// means nothing.
    present: Vec<u64>,
    /// By column the rows whose attribute it may be.
    pub(crate) attributes: Vec<u64>,
    pub(crate) times_ns: [u64; BLOCK_ROWS],
    pub(crate) severity_numbers: [u8; BLOCK_ROWS],
    /// Columns that are the severity's text, and of which rows.
    pub(crate) severities: Vec<(usize, u64)>,
    /// Columns that are the body, and of which rows.
    pub(crate) bodies: Vec<(usize, u64)>,
    /// Empty, or by row.
    rare: Vec<Rare>,
    times: UsualTimes,
    text: Vec<u8>,
}

impl Default for Lift {
    fn default() -> Lift {
        Lift {
            block: Block::default(),
            present: Vec::new(),
            attributes: Vec::new(),
            times_ns: [0; BLOCK_ROWS],
            severity_numbers: [0; BLOCK_ROWS],
            severities: Vec::new(),
            bodies: Vec::new(),
            rare: Vec::new(),
            times: UsualTimes::default(),
            text: Vec::new(),
        }
    }
}

impl Lift {
    fn fill(&mut self, plan: &PartPlan<'_>, batch: &Batch<'_>, stats: &mut Stats) {
        let block = self.block;
        self.rare.clear();
        self.present.clear();
        self.present
            .extend(plan.columns.iter().map(|column| match column.sparse() {
                Some(column) => block.present(column),
                None => block.all(),
            }));
        self.touch(plan);
        self.attributes.clone_from(&self.present);
        self.times_ns = [0; BLOCK_ROWS];
        if !batch.envelope.times.is_empty() {
            for at in RowsOf(block.all()) {
                let time_ns = batch.envelope.time(block.record(at));
                self.times_ns[at] = u64::try_from(time_ns).unwrap_or(0);
            }
        }
        self.fill_times(plan, batch.offset_s, stats);
        self.fill_severities(plan, stats);
        self.bodies.clear();
        block.for_each_deciding(plan, Field::Body, &self.present, |column, _, found| {
            self.bodies.push((column, found));
            self.attributes[column] &= !found;
        });
    }

    /// Looks at what the block's values consist of: each column's views, so that they come from memory together, and the
    /// texts of the records in their order. Column after column would wait for each line of memory on its own.
    fn touch(&self, plan: &PartPlan<'_>) {
        let Some((first, last)) = self.block.ends_of_run() else {
            return;
        };
        let columns = plan.columns.iter().zip(&self.present);
        let columns = columns.filter(|(_, present)| **present != 0);
        let columns =
            columns.filter_map(|(column, present)| Some((column.simple.as_ref()?, present)));
        let (mut sum, mut texts) = (0, TextRange::default());
        for (simple, present) in columns {
            sum ^= simple.column.touch(first, last);
            let (first_place, last_place) = (present.trailing_zeros(), present.ilog2());
            for at in [first_place, last_place] {
                texts.add(&simple.column, self.block.record(at as usize));
            }
        }
        std::hint::black_box(sum ^ texts.touch());
    }

    #[inline]
    pub(crate) fn row(&self, row: usize) -> Lifted {
        let at = self.block.place(row);
        Lifted {
            time_ns: self.times_ns[at],
            severity_number: self.severity_numbers[at],
            severity: column_of(&self.severities, at),
            body: column_of(&self.bodies, at),
        }
    }

    #[inline]
    pub(crate) fn rare(&self, row: usize) -> Option<&Rare> {
        self.rare_at(self.block.place(row))
    }

    #[inline(always)]
    pub(crate) fn rare_at(&self, at: usize) -> Option<&Rare> {
        self.rare.get(at)
    }

    pub(crate) fn has_rare(&self) -> bool {
        !self.rare.is_empty()
    }

    /// Whether a column may be an attribute of a row.
    #[inline]
    pub(crate) fn may_be_attribute(&self, column: usize, row: usize) -> bool {
        self.attributes[column] >> self.block.place(row) & 1 == 1
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
        if !self.may_be_attribute(column, row) {
            return Cell::Absent;
        }
        plan.deciding_cell(column, row, record)
    }

    fn fill_times(&mut self, plan: &PartPlan<'_>, offset_s: i32, stats: &mut Stats) {
        let present = std::mem::take(&mut self.present);
        let block = self.block;
        block.for_each_deciding(plan, Field::Timestamp, &present, |column, window, found| {
            let mut taken = found;
            for at in RowsOf(found) {
                let usual = match window.as_ref().and_then(|window| window.string(at)) {
                    Some(Place::Buffer(text, len)) => self.times.parse(&text[..len]),
                    _ => None,
                };
                let time_ns = match usual {
                    Some(ns) => after_epoch(ns),
                    None => self.time(block.cell(plan, column, at), offset_s),
                };
                match time_ns {
                    Some(time_ns) => self.times_ns[at] = time_ns,
                    None => {
                        taken &= !(1 << at);
                        stats.unparsable_timestamps += 1;
                    }
                }
            }
            self.attributes[column] &= !taken;
        });
        self.present = present;
    }

    fn fill_severities(&mut self, plan: &PartPlan<'_>, stats: &mut Stats) {
        let present = std::mem::take(&mut self.present);
        let block = self.block;
        self.severity_numbers = [0; BLOCK_ROWS];
        self.severities.clear();
        block.for_each_deciding(plan, Field::Severity, &present, |column, window, found| {
            let mut taken = found;
            for at in RowsOf(found) {
                let short = window.as_ref().and_then(|window| window.short_string(at));
                let usual =
                    short.and_then(|(text, len)| severity::number_of_short(text as u64, len));
                match usual.or_else(|| self.severity_of(block.cell(plan, column, at))) {
                    Some(number) => self.severity_numbers[at] = number,
                    None => taken &= !(1 << at),
                }
            }
            self.attributes[column] &= !taken;
            self.severities.push((column, taken));
        });
        block.for_each_deciding(plan, Field::SeverityNumber, &present, |column, _, found| {
            for at in RowsOf(found) {
                let number = severity_number(block.cell(plan, column, at));
                self.severity_numbers[at] = number.unwrap_or(self.severity_numbers[at]);
                self.take_if(number.is_some(), column, at, stats);
            }
        });
        self.present = present;
    }

    /// The event's name, and the ids and flags of a trace.
    fn fill_rare(&mut self, plan: &PartPlan<'_>, stats: &mut Stats) {
        let present = std::mem::take(&mut self.present);
        let block = self.block;
        self.rare.clear();
        self.rare.resize(BLOCK_ROWS, Rare::default());
        block.for_each_deciding(plan, Field::EventName, &present, |column, _, found| {
            for at in RowsOf(found) {
                if let Cell::Str(text) = block.cell(plan, column, at)
                    && !text.is_empty()
                {
                    self.rare[at].event_name = Some(column as u32);
                    self.attributes[column] &= !(1 << at);
                }
            }
        });
        block.for_each_deciding(plan, Field::TraceId, &present, |column, window, found| {
            for at in RowsOf(found) {
                let id = id_of(&window, at, || block.cell(plan, column, at));
                self.rare[at].trace_id = id;
                self.take_if(id.is_some(), column, at, stats);
            }
        });
        block.for_each_deciding(plan, Field::SpanId, &present, |column, window, found| {
            for at in RowsOf(found) {
                let id = id_of(&window, at, || block.cell(plan, column, at));
                self.rare[at].span_id = id;
                self.take_if(id.is_some(), column, at, stats);
            }
        });
        block.for_each_deciding(plan, Field::TraceFlags, &present, |column, _, found| {
            for at in RowsOf(found) {
                let flags = trace_flags(block.cell(plan, column, at));
                self.rare[at].flags = flags.unwrap_or(0);
                self.take_if(flags.is_some(), column, at, stats);
            }
        });
        self.present = present;
    }

    #[inline]
    fn take_if(&mut self, is_field: bool, column: usize, at: usize, stats: &mut Stats) {
        self.attributes[column] &= !(u64::from(is_field) << at);
        stats.unparsable_fields += u64::from(!is_field);
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

/// The column that has a row among its rows.
fn column_of(columns: &[(usize, u64)], at: usize) -> Option<usize> {
    let of_row = columns.iter().find(|(_, rows)| rows >> at & 1 == 1);
    of_row.map(|(column, _)| *column)
}

fn id_of<'c, const N: usize>(
    window: &Option<Window<'_>>,
    at: usize,
    cell: impl FnOnce() -> Cell<'c>,
) -> Option<[u8; N]> {
    match window.as_ref().and_then(|window| window.string(at)) {
        Some(Place::Buffer(text, len)) => id_of_text(&text[..len]),
        _ => id(cell()),
    }
}

fn after_epoch(ns: i64) -> Option<u64> {
    u64::try_from(ns).ok().filter(|ns| *ns > 0)
}
