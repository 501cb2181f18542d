//! Columns to lines for people: `TIME LEVEL body key=value ...`.
//!
//! The encoder emits one line per output row. The time is the record's, else the time at which it was read. The level is the
//! severity as written, or its short name if it was written as a number. Control characters are escaped, so that a log
//! cannot steer the terminal. Source facts are not added.

use std::ops::Range;

use arrow::array::Array;
use tailrace_model::json::Members;
use tailrace_model::severity::short_name;
use tailrace_model::time::write_rfc3339;

use crate::cell::{Cell, of_json};
use crate::cut::{Cut, cut_lines};
use crate::encoding::{Encoder, Encoding};
use crate::field::Mapping;
use crate::lift::{Batch, Lift, Lifts};
use crate::ndjson::{Lines, write_value};
use crate::part::{Envelope, Part, Request, Stats, merge_rows};
use crate::plan::{PartPlan, Prefixes};

/// Lines for people: how columns become them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleEncoding {
    /// Which columns are time, level and body.
    pub mapping: Mapping,
    /// Colours by ANSI escape sequences.
    pub colour: bool,
    /// No request is longer than this, unless a single line is.
    pub request_bytes_max: usize,
}

impl Default for ConsoleEncoding {
    fn default() -> ConsoleEncoding {
        ConsoleEncoding {
            mapping: Mapping::default(),
            colour: false,
            request_bytes_max: 1024 * 1024,
        }
    }
}

/// Encodes query output as lines for people.
#[derive(Debug)]
pub struct ConsoleEncoder {
    config: ConsoleEncoding,
    lines: Lines,
    lifts: Lifts,
    text: Vec<u8>,
}

impl Encoding for ConsoleEncoding {
    fn name(&self) -> &'static str {
        "console"
    }

    fn encoder(&self, offset_s: i32) -> Box<dyn Encoder> {
        let mut config = self.clone();
        config.mapping.offset_s = offset_s;
        Box::new(ConsoleEncoder::new(config))
    }

    fn cut(&self, request: &[u8], ends: &[u32], records: Range<usize>) -> Cut {
        cut_lines(request, ends, records)
    }
}

impl Encoder for ConsoleEncoder {
    fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        emit: &mut dyn FnMut(&Request),
    ) -> Stats {
        let mapping = &self.config.mapping;
        let mut prefixes = Prefixes::new();
        let plans: Vec<_> = parts
            .iter()
            .map(|part| PartPlan::new(part, mapping, &mut prefixes))
            .collect();
        let batch = Batch {
            envelope,
            parts,
            plans: &plans,
            offset_s: mapping.offset_s,
        };
        let (lifts, text, colour) = (&mut self.lifts, &mut self.text, self.config.colour);
        lifts.start(&batch);
        merge_rows(parts, envelope.records, |part, row, record| {
            self.lines.line(record, emit, |out, stats| {
                Line {
                    plan: &plans[part],
                    row,
                    record,
                    has_failed: parts[part].has_failed(row),
                    lift: lifts.at(&batch, part, row, stats),
                    colour,
                    text,
                    out,
                    stats,
                }
                .write(envelope);
            });
        });
        self.lines.finish(emit)
    }

    fn release(&mut self, bytes: usize) {
        self.lines.release(bytes);
        self.text.shrink_to(bytes);
    }
}

impl ConsoleEncoder {
    /// An encoder for one output.
    pub fn new(config: ConsoleEncoding) -> ConsoleEncoder {
        let lines = Lines::new(config.request_bytes_max);
        ConsoleEncoder {
            config,
            lines,
            // Only time, level and body have a place of their own here.
            lifts: Lifts::without_rare(),
            text: Vec::new(),
        }
    }
}

/// One line being written.
struct Line<'l> {
    plan: &'l PartPlan<'l>,
    row: usize,
    record: usize,
    /// A value of the row could not be computed.
    has_failed: bool,
    lift: &'l Lift,
    colour: bool,
    /// Memory for texts that must be made.
    text: &'l mut Vec<u8>,
    out: &'l mut Vec<u8>,
    stats: &'l mut Stats,
}

const DIM: &str = "\x1b[2m";
const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[0m";
/// Width of `ERROR`, `DEBUG`, `FATAL`.
const LEVEL_WIDTH: usize = 5;

impl Line<'_> {
    fn write(&mut self, envelope: &Envelope<'_>) {
        let time_ns = match self.lift.row(self.row).time_ns {
            0 => envelope.observed_ns,
            time_ns => i64::try_from(time_ns).unwrap_or(i64::MAX),
        };
        self.paint(DIM);
        write_rfc3339(time_ns, self.out);
        self.paint(RESET);
        self.out.push(b' ');
        self.level();
        let body_column = self.lift.row(self.row).body;
        let body = body_column.map(|column| self.plan.cell(column, self.row, self.record));
        if let Some(body) = body.or_else(|| self.plan.raw(envelope, self.record).map(Cell::Str)) {
            self.out.push(b' ');
            self.plain(body);
        }
        for (at, column) in self.plan.columns.iter().enumerate() {
            let cell = self.lift.attribute(self.plan, at, self.row, self.record);
            if !cell.is_absent() {
                self.pair(column.name, cell);
            }
        }
        self.overflow();
        for (name, is_set) in [
            (crate::MALFORMED, envelope.is_malformed(self.record)),
            (crate::TRUNCATED, envelope.is_truncated(self.record)),
            (crate::TRANSFORM_FAILED, self.has_failed),
        ] {
            if is_set {
                self.pair(name, Cell::Bool(true));
            }
        }
        let original = |column| self.plan.original(envelope, column, self.row, self.record);
        if let Some(raw) = body_column.and_then(original) {
            self.pair(crate::ORIGINAL, Cell::Str(raw));
        }
    }

    fn overflow(&mut self) {
        let Some(overflow) = self
            .plan
            .overflow
            .filter(|overflow| overflow.is_valid(self.record))
        else {
            return;
        };
        for (key, value) in Members::new(overflow.value(self.record)) {
            // What is escaped stays so: this is shown, not parsed.
            if !self.plan.excepts(&key) && !self.plan.has_column(key.text, self.row, self.record) {
                self.pair(key.text, of_json(value));
            }
        }
    }

    fn level(&mut self) {
        let number = self.lift.row(self.row).severity_number;
        let colour = match number {
            17.. => "\x1b[31m",
            13..17 => "\x1b[33m",
            9..13 => "\x1b[32m",
            5..9 => "\x1b[34m",
            _ => DIM,
        };
        self.text.clear();
        if let Some(column) = self.lift.row(self.row).severity {
            self.plan
                .cell(column, self.row, self.record)
                .write_text(self.text);
        }
        let is_number = self.text.iter().all(u8::is_ascii_digit);
        if is_number && number > 0 {
            self.text.clear();
            self.text.extend_from_slice(short_name(number).as_bytes());
        }
        if self.text.is_empty() {
            self.text.push(b'-');
        }
        self.paint(colour);
        let shown = std::str::from_utf8(self.text).unwrap_or_default();
        let width = shown.chars().count();
        write_shown(shown, false, self.out);
        self.paint(RESET);
        self.out.extend((width..LEVEL_WIDTH).map(|_| b' '));
    }

    fn pair(&mut self, key: &str, cell: Cell<'_>) {
        self.out.push(b' ');
        self.paint(CYAN);
        write_shown(key, false, self.out);
        self.paint(RESET);
        self.out.push(b'=');
        match cell {
            Cell::Str(text) if needs_quotes(text) => {
                self.out.push(b'"');
                write_shown(text, true, self.out);
                self.out.push(b'"');
            }
            _ => self.plain(cell),
        }
    }

    /// A value without quotes around it.
    fn plain(&mut self, cell: Cell<'_>) {
        if let Cell::Str(text) = cell {
            return write_shown(text, false, self.out);
        }
        self.text.clear();
        if !cell.write_text(self.text) {
            write_value(cell, self.text, self.stats);
        }
        let text = std::str::from_utf8(self.text).unwrap_or_default();
        write_shown(text, false, self.out);
    }

    fn paint(&mut self, sequence: &str) {
        if self.colour {
            self.out.extend_from_slice(sequence.as_bytes());
        }
    }
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty()
        || text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '=')
}

/// Whether a character begins a line of its own, or turns the direction in which the rest is shown.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Appends text with control characters escaped, and quotes and backslashes too if `quoted`.
fn write_shown(text: &str, quoted: bool, out: &mut Vec<u8>) {
    for c in text.chars() {
        match c {
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '"' | '\\' if quoted => out.extend([b'\\', c as u8]),
            c if c.is_control() || turns(c) => out.extend(c.escape_unicode().map(|c| c as u8)),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}
