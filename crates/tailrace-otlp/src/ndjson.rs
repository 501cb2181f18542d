//! Columns to lines of JSON: one object per output row.
//!
//! The encoder emits lines in requests of bounded size. Columns are in output order under their own names (nothing is
//! lifted, and source facts are not added), and values keep their kind. A record that is text or malformed has its raw text
//! as `body`, or as `log.record.original` if a JSON member is its body. There is never a newline within a line.

use std::ops::Range;

use arrow::array::Array;
use tailrace_model::json::{self, Kind, Members};
use tailrace_model::reserved::{BODY, BODY_KEYS};

use crate::cell::Cell;
use crate::cut::{Cut, cut_lines};
use crate::encoding::{Encoder, Encoding};
use crate::field::Mapping;
use crate::keys::Keys;
use crate::otlp::ORIGINAL;
use crate::part::{Envelope, Part, Request, Stats, merge_rows};
use crate::plan::{PartPlan, Prefixes};

/// Lines of JSON: how columns become them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NdjsonEncoding {
    /// No request is longer than this, unless a single line is.
    pub request_bytes_max: usize,
}

impl Default for NdjsonEncoding {
    fn default() -> NdjsonEncoding {
        NdjsonEncoding {
            request_bytes_max: 1024 * 1024,
        }
    }
}

/// Encodes query output as newline-delimited JSON.
#[derive(Debug)]
pub struct NdjsonEncoder {
    lines: Lines,
    keys: Keys,
}

impl Encoding for NdjsonEncoding {
    fn name(&self) -> &'static str {
        "ndjson"
    }

    fn encoder(&self, offset_s: i32) -> Box<dyn Encoder> {
        let _ = offset_s;
        Box::new(NdjsonEncoder::new(self.clone()))
    }

    fn cut(&self, request: &[u8], ends: &[u32], records: Range<usize>) -> Cut {
        cut_lines(request, ends, records)
    }
}

impl Encoder for NdjsonEncoder {
    fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        emit: &mut dyn FnMut(&Request),
    ) -> Stats {
        let mapping = Mapping::default();
        let mut prefixes = Prefixes::new();
        let plans: Vec<_> = parts
            .iter()
            .map(|part| PartPlan::new(part, &mapping, &mut prefixes))
            .collect();
        let keys = &mut self.keys;
        merge_rows(parts, envelope.records, |part, row, record| {
            let plan = &plans[part];
            self.lines.line(record, emit, |out, stats| {
                write_row(plan, row, record, envelope, keys, out, stats);
            });
        });
        self.lines.finish(emit)
    }

    fn release(&mut self, bytes: usize) {
        self.lines.release(bytes);
    }
}

impl NdjsonEncoder {
    /// An encoder for one output.
    pub fn new(config: NdjsonEncoding) -> NdjsonEncoder {
        NdjsonEncoder {
            lines: Lines::new(config.request_bytes_max),
            keys: Keys::default(),
        }
    }
}

fn write_row(
    plan: &PartPlan<'_>,
    row: usize,
    record: usize,
    envelope: &Envelope<'_>,
    keys: &mut Keys,
    out: &mut Vec<u8>,
    stats: &mut Stats,
) {
    out.push(b'{');
    let start = out.len();
    let raw = plan.raw(envelope, record);
    let raw = raw.zip(name_of_raw(plan, row, record, envelope));
    if let Some((raw, name)) = raw {
        write_key(name, start, out);
        json::write_string(raw, out);
    }
    // No key of the record hides the raw text.
    let is_hidden = |name: &str| name == ORIGINAL && raw.is_some_and(|(_, of_raw)| of_raw == name);
    for (at, column) in plan.columns.iter().enumerate() {
        let cell = plan.deciding_cell(at, row, record);
        if !cell.is_absent() && !is_hidden(column.name) {
            write_key(column.name, start, out);
            write_value(cell, out, stats);
        }
    }
    if let Some(overflow) = plan.overflow.filter(|overflow| overflow.is_valid(record)) {
        let object = keys.open();
        let members = Members::new(overflow.value(record));
        for (key, value) in members.filter(|(key, _)| !plan.excepts(key)) {
            let is_wanted = |key: &[u8]| {
                let is_new = |name| !plan.has_column(name, row, record) && !is_hidden(name);
                std::str::from_utf8(key).is_ok_and(is_new)
            };
            let key = keys.insert(object, &key, is_wanted);
            let Some(key) = key.and_then(|key| std::str::from_utf8(keys.key(key)).ok()) else {
                stats.duplicate_keys += 1;
                continue;
            };
            write_key(key, start, out);
            write_json(value, out);
        }
        keys.close(object);
    }
    out.push(b'}');
}

/// What the raw text of a record that is text or malformed is called, if it is written. What the query computes is not replaced.
fn name_of_raw(
    plan: &PartPlan<'_>,
    row: usize,
    record: usize,
    envelope: &Envelope<'_>,
) -> Option<&'static str> {
    let columns = BODY_KEYS.iter().flat_map(|name| plan.columns_named(name));
    let mut columns = columns.map(|column| (column, plan.deciding_cell(column, row, record)));
    let name = match columns.find(|(_, cell)| cell.has_value()) {
        None if !plan.has_column(BODY, row, record) => Some(BODY),
        None => Some(ORIGINAL),
        Some((body, _)) => plan.original(envelope, body, row, record).map(|_| ORIGINAL),
    };
    name.filter(|name| *name == BODY || !plan.computes(name, row, record))
}

fn write_key(key: &str, start: usize, out: &mut Vec<u8>) {
    if out.len() > start {
        out.push(b',');
    }
    json::write_string(key, out);
    out.push(b':');
}

/// Appends a value as JSON on one line. Bytes are base64, as in OTLP's JSON; numbers that JSON
/// lacks are strings.
pub(crate) fn write_value(cell: Cell<'_>, out: &mut Vec<u8>, stats: &mut Stats) {
    match cell {
        Cell::Absent | Cell::Null | Cell::Failed => out.extend_from_slice(b"null"),
        Cell::Bool(_) | Cell::Int(_) | Cell::Uint(_) | Cell::Integer(_) => _ = cell.write_text(out),
        Cell::Number(text) => write_finite(text, out),
        Cell::Float(value) if value.is_finite() => {
            out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
        }
        Cell::Str(text) => json::write_string(text, out),
        Cell::Json(text) => match json::parse_value(text) {
            Some(value) => write_json(value, out),
            None => {
                stats.invalid_json += 1;
                json::write_string(text, out);
            }
        },
        // What Arrow and we make of these needs no escaping.
        Cell::Float(_)
        | Cell::Time(_)
        | Cell::Day(_)
        | Cell::FarTime(..)
        | Cell::FarDay(..)
        | Cell::Display(..) => {
            out.push(b'"');
            cell.write_text(out);
            out.push(b'"');
        }
        Cell::Bytes(bytes) => {
            out.push(b'"');
            write_base64(bytes, out);
            out.push(b'"');
        }
        Cell::List(reader, range) => {
            out.push(b'[');
            for (at, element) in range.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_value(reader.cell(element), out, stats);
            }
            out.push(b']');
        }
        Cell::Struct(reader, at) => {
            out.push(b'{');
            let start = out.len();
            for (name, field) in &reader.fields {
                let cell = field.cell(at);
                if !cell.is_absent() {
                    write_key(name, start, out);
                    write_value(cell, out, stats);
                }
            }
            out.push(b'}');
        }
        Cell::Map(entries, range) => {
            out.push(b'{');
            let start = out.len();
            let mut key = Vec::new();
            for at in range.iter() {
                key.clear();
                if entries.0.cell(at).write_text(&mut key) {
                    write_key(&String::from_utf8_lossy(&key), start, out);
                    write_value(entries.1.cell(at), out, stats);
                }
            }
            out.push(b'}');
        }
    }
}

/// Appends JSON text as it is written, but for the numbers that JSON lacks: they become strings.
fn write_finite(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b'N' | b'I')) {
        return out.extend_from_slice(bytes);
    }
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let not_finite = match byte {
            b'N' | b'I' | b'-' => json::not_finite(&bytes[at..]),
            _ => None,
        };
        let end = match byte {
            b'"' => json::string_end(bytes, at).map_or(bytes.len(), |(end, _)| end),
            _ => at + not_finite.map_or(1, |(_, len)| len),
        };
        match not_finite {
            Some((number, _)) => out.extend_from_slice(format!("\"{number}\"").as_bytes()),
            None => out.extend_from_slice(&bytes[at..end]),
        }
        at = end;
    }
}

/// Appends a JSON value as it is written, on one line: a newline can only be whitespace between its
/// tokens.
fn write_json(value: json::Value<'_>, out: &mut Vec<u8>) {
    if value.kind == Kind::String {
        out.push(b'"');
        out.extend_from_slice(value.text.as_bytes());
        out.push(b'"');
        return;
    }
    let start = out.len();
    write_finite(value.text, out);
    for byte in &mut out[start..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let at = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let index = word >> (18 - 6 * digit) & 63;
            out.push(if digit <= chunk.len() {
                DIGITS[index as usize]
            } else {
                b'='
            });
        }
    }
}

/// Lines collected into requests of bounded size.
#[derive(Debug)]
pub(crate) struct Lines {
    request: Request,
    bytes_max: usize,
    carried: Vec<u8>,
    stats: Stats,
}

/// Memory kept for the next line that does not fit.
const CARRIED_BYTES_KEPT: usize = 64 * 1024;

impl Lines {
    pub(crate) fn new(bytes_max: usize) -> Lines {
        Lines {
            request: Request::default(),
            bytes_max,
            carried: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// Adds the line that `write` writes; the newline is added here.
    pub(crate) fn line(
        &mut self,
        record: usize,
        emit: &mut dyn FnMut(&Request),
        write: impl FnOnce(&mut Vec<u8>, &mut Stats),
    ) {
        let start = self.request.bytes.len();
        write(&mut self.request.bytes, &mut self.stats);
        self.request.bytes.push(b'\n');
        self.stats.log_records += 1;
        if self.request.bytes.len() > self.bytes_max && !self.request.ends.is_empty() {
            self.carried.clear();
            self.carried.extend_from_slice(&self.request.bytes[start..]);
            self.request.bytes.truncate(start);
            self.emit(emit);
            self.request.bytes.extend_from_slice(&self.carried);
            self.carried.clear();
            self.carried.shrink_to(CARRIED_BYTES_KEPT);
        }
        // Requests and records are far below 4 GiB.
        self.request.ends.push(self.request.bytes.len() as u32);
        self.request.records.push(record as u32);
    }

    /// Emits what is left.
    pub(crate) fn finish(&mut self, emit: &mut dyn FnMut(&Request)) -> Stats {
        if !self.request.ends.is_empty() {
            self.emit(emit);
        }
        std::mem::take(&mut self.stats)
    }

    fn emit(&mut self, emit: &mut dyn FnMut(&Request)) {
        self.stats.requests += 1;
        self.stats.bytes += self.request.bytes.len() as u64;
        emit(&self.request);
        self.request.bytes.clear();
        // More only a line needed that is longer than a request.
        self.request.bytes.shrink_to(2 * self.bytes_max);
        self.request.ends.clear();
        self.request.records.clear();
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.request.release(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_leaves_no_memory_behind() {
        const REQUEST: usize = 1024 * 1024;
        let mut lines = Lines::new(REQUEST);
        let mut written = 0;
        let mut emit = |request: &Request| written += request.bytes.len();
        for len in [10, 20 * REQUEST, 10] {
            lines.line(0, &mut emit, |out, _| out.resize(out.len() + len, b'x'));
        }
        lines.finish(&mut emit);
        assert!(lines.request.bytes.capacity() <= 2 * REQUEST);
        assert!(lines.carried.capacity() <= CARRIED_BYTES_KEPT);
        lines.release(1024);
        assert!(lines.request.bytes.capacity() <= 1024);
        assert_eq!(written, 20 * REQUEST + 23);
    }
}
