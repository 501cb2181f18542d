//! Columns to ExportLogsServiceRequests.
//!
//! Takes an envelope and the parts of a query's output, emits requests of bounded size: one pass
//! over the rows, straight into the bytes that are sent. Names, tags and source facts are encoded
//! once; a LogRecord's length is guessed from the one before. Rows of one record stay together;
//! neighbours of one resource share a ResourceLogs. Never allocates per row, never does I/O, never
//! reads a clock.

use arrow::array::Array;

use crate::any::Values;
use crate::field::{Field, Mapping};
use crate::lift::{Lift, Lifted, PartPlan, Prefixes};
use crate::part::{Envelope, Part, Request, Run, Stats, merge_rows};
use crate::presence::Presence;
use crate::value::{
    LOG_RECORD_ATTRIBUTES, SCHEMA_URL, SCHEMA_URL_FIELD, SourceFacts, Value, push_attribute,
};
use crate::wire::{Open, bytes_tag, push_bytes, varint_tag};

/// How an [`Encoder`] encodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which columns become fields.
    pub mapping: Mapping,
    /// No request is longer than this, unless a single LogRecord is.
    pub request_bytes_max: usize,
    /// Version of the scope `tailrace`.
    pub scope_version: String,
    /// Whether records carry `log.iostream`.
    pub iostream: bool,
    /// Whether records carry `log.record.uid`.
    pub record_uid: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            mapping: Mapping::default(),
            // gRPC servers commonly refuse messages above 4 MiB.
            request_bytes_max: 7 * 512 * 1024,
            scope_version: env!("CARGO_PKG_VERSION").to_owned(),
            iostream: true,
            record_uid: false,
        }
    }
}

/// Encodes query output as OTLP. One per worker: its memory is used again from call to call.
#[derive(Debug)]
pub struct Encoder {
    config: Config,
    values: Values,
    lift: Lift,
    prefixes: Prefixes,
    /// By part.
    presences: Vec<Presence>,
    /// The scope and its schema URL, as fields of a ScopeLogs.
    scope: Vec<u8>,
    extras: Extras,
    request: Request,
    /// The open ResourceLogs.
    group: Option<Group>,
    /// A LogRecord on its way to the next request.
    carried: Vec<u8>,
    /// Length of the last LogRecord, group's ScopeLogs and group's ResourceLogs: guesses for the
    /// next.
    record_guess: usize,
    scope_guess: usize,
}

/// A ResourceLogs being written.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Where it starts, tag included.
    start: usize,
    resource_logs: Open,
    scope_logs: Open,
    /// Its first LogRecord in the request's tables.
    first: usize,
}

/// Attributes that we add ourselves, encoded as fields of a LogRecord.
#[derive(Debug)]
struct Extras {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    malformed: Vec<u8>,
    truncated: Vec<u8>,
    /// `log.record.uid`; its last 32 bytes are overwritten for each row.
    uid: Vec<u8>,
    /// Whether the current row has one.
    has_uid: bool,
    /// The record of the row before, and how many rows it has had.
    rows: (usize, u32),
}

/// Attribute that is the same when a record is sent again, and else is not.
pub(crate) const RECORD_UID: &str = "log.record.uid";
/// Attribute that says a record was not the JSON it was expected to be.
pub const MALFORMED: &str = "tailrace.malformed";
/// Attribute that says a record was longer than the limit.
pub const TRUNCATED: &str = "tailrace.truncated";
/// Hexadecimal digits of a uid.
const UID_DIGITS: usize = 32;
const IOSTREAM: &str = tailrace_model::reserved::IOSTREAM;
const SCOPE_NAME: &str = "tailrace";

// Fields of LogRecord.
const TIME: u8 = 1;
const SEVERITY_NUMBER: u8 = 2;
const SEVERITY_TEXT: u8 = 3;
const BODY: u8 = 5;
const FLAGS: u8 = 8;
const TRACE_ID: u8 = 9;
const SPAN_ID: u8 = 10;
const OBSERVED_TIME: u8 = 11;
const EVENT_NAME: u8 = 12;
/// `resource_logs` of the request.
const RESOURCE_LOGS: u8 = bytes_tag(1);
/// `scope_logs` of ResourceLogs.
const SCOPE_LOGS: u8 = bytes_tag(2);
/// `log_records` of ScopeLogs.
const LOG_RECORDS: u8 = bytes_tag(2);
/// Closing the two lengths of a group can make it so much longer.
const CLOSING_MAX: usize = 8;

impl Encoder {
    /// An encoder for one output.
    pub fn new(config: Config) -> Encoder {
        let mut scope = Vec::new();
        push_bytes(&mut scope, 1, SCOPE_NAME.as_bytes());
        if !config.scope_version.is_empty() {
            push_bytes(&mut scope, 2, config.scope_version.as_bytes());
        }
        let mut fields = Vec::new();
        push_bytes(&mut fields, 1, &scope);
        push_bytes(&mut fields, SCHEMA_URL_FIELD, SCHEMA_URL.as_bytes());
        Encoder {
            values: Values::default(),
            lift: Lift::default(),
            prefixes: Prefixes::new(),
            presences: Vec::new(),
            scope: fields,
            extras: Extras::new(),
            request: Request::default(),
            group: None,
            carried: Vec::new(),
            record_guess: 300,
            scope_guess: config.request_bytes_max / 2,
            config,
        }
    }

    /// Encodes all rows of `parts` and emits requests in order, none of them empty. The records of
    /// a request are ascending over all requests; a record's rows may be cut apart only between
    /// requests.
    pub fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        emit: &mut dyn FnMut(&Request),
    ) -> Stats {
        self.values.stats = Stats::default();
        self.extras.rows = (usize::MAX, 0);
        let mut prefixes = std::mem::take(&mut self.prefixes);
        prefixes.clear();
        let plans: Vec<_> = parts
            .iter()
            .map(|part| PartPlan::new(part, &self.config.mapping, &mut prefixes))
            .collect();
        let mut presences = std::mem::take(&mut self.presences);
        presences.resize_with(parts.len(), Presence::default);
        for ((presence, plan), part) in presences.iter_mut().zip(&plans).zip(parts) {
            let records = envelope.records as usize;
            presence.fill(plan, part.rows.map_or(records, <[u32]>::len), records);
        }
        let none = SourceFacts::default();
        let mut sources = Sources {
            runs: envelope.runs,
            none: &none,
            current: None,
            at: 0,
            shadowing: Vec::new(),
        };
        merge_rows(parts, envelope.records, |part, row, record| {
            let is_new_group = sources.advance(record, &plans, &self.config);
            if is_new_group {
                self.close_group();
            }
            let facts = sources.facts();
            if self.group.is_none() {
                self.open_group(facts);
            }
            let start = self.values.out.len();
            let row = Row {
                plan: &plans[part],
                presence: &presences[part],
                row,
                record,
                may_clash: sources.shadowing[part],
            };
            self.log_record(envelope, &row, facts, &prefixes);
            if self.values.out.len() + CLOSING_MAX > self.config.request_bytes_max
                && !self.request.ends.is_empty()
            {
                self.carried.clear();
                self.carried.extend_from_slice(self.values.out.from(start));
                self.values.out.truncate(start);
                self.close_group();
                self.emit(emit);
                self.open_group(facts);
                self.values.out.bytes(&self.carried);
            }
            // Requests and records are far below 4 GiB.
            self.request.ends.push(self.values.out.len() as u32);
            self.request.records.push(record as u32);
        });
        self.close_group();
        if !self.request.ends.is_empty() {
            self.emit(emit);
        }
        self.prefixes = prefixes;
        self.presences = presences;
        self.values.stats
    }

    fn open_group(&mut self, facts: &SourceFacts) {
        let out = &mut self.values.out;
        let start = out.len();
        out.byte(RESOURCE_LOGS);
        let resource_logs = out.open(self.scope_guess + facts.resource.len() + 8);
        out.bytes(&facts.resource);
        out.byte(SCOPE_LOGS);
        let scope_logs = out.open(self.scope_guess);
        out.bytes(&self.scope);
        self.group = Some(Group {
            start,
            resource_logs,
            scope_logs,
            first: self.request.ends.len(),
        });
    }

    /// Ends the open ResourceLogs; one without LogRecords vanishes.
    fn close_group(&mut self) {
        let Some(group) = self.group.take() else {
            return;
        };
        let out = &mut self.values.out;
        let ends = &mut self.request.ends[group.first..];
        if ends.is_empty() {
            return out.truncate(group.start);
        }
        self.scope_guess = out.content_len(group.scope_logs);
        let shift = out.close(group.scope_logs) + out.close(group.resource_logs);
        if shift != 0 {
            for end in ends {
                *end = end.wrapping_add_signed(shift as i32);
            }
        }
    }

    fn emit(&mut self, emit: &mut dyn FnMut(&Request)) {
        self.request.bytes = self.values.out.take();
        self.values.stats.requests += 1;
        self.values.stats.bytes += self.request.bytes.len() as u64;
        emit(&self.request);
        self.values
            .out
            .restore(std::mem::take(&mut self.request.bytes));
        self.request.ends.clear();
        self.request.records.clear();
    }

    /// Appends one LogRecord to the open group.
    fn log_record(
        &mut self,
        envelope: &Envelope<'_>,
        row: &Row<'_>,
        facts: &SourceFacts,
        prefixes: &Prefixes,
    ) {
        let stats = &mut self.values.stats;
        stats.log_records += 1;
        let offset_s = self.config.mapping.offset_s;
        let lifted = self
            .lift
            .row(row.plan, row.row, row.record, envelope, offset_s, stats);
        if self.config.record_uid {
            self.extras.set_uid(envelope, row.record);
        }
        self.values.out.byte(LOG_RECORDS);
        let open = self.values.out.open(self.record_guess);
        self.fields_before(envelope, row, &lifted);
        self.attributes(envelope, row, &lifted, facts, prefixes);
        self.fields_behind(envelope, row, &lifted);
        self.record_guess = self.values.out.content_len(open);
        self.values.out.close(open);
    }

    /// Time, severity and body.
    fn fields_before(&mut self, envelope: &Envelope<'_>, row: &Row<'_>, lifted: &Lifted) {
        let values = &mut self.values;
        if lifted.time_ns > 0 {
            values.out.fixed64(TIME, lifted.time_ns);
        }
        if lifted.severity_number > 0 {
            values
                .out
                .bytes(&[varint_tag(SEVERITY_NUMBER), lifted.severity_number]);
        }
        let string = |column: usize| row.plan.columns[column].string(row.row, row.record);
        if let Some(column) = lifted.column(Field::Severity) {
            match string(column) {
                Some(place) => values.out.text_place_field(SEVERITY_TEXT, place),
                None => {
                    values.text_field(SEVERITY_TEXT, row.plan.cell(column, row.row, row.record))
                }
            }
        }
        if let Some(column) = lifted.column(Field::Body) {
            match string(column) {
                Some(place) => values.out.text_any_field(bytes_tag(BODY), place),
                None => {
                    values.any_field(bytes_tag(BODY), row.plan.cell(column, row.row, row.record))
                }
            }
        } else if let Some(raw) = envelope.raw(row.record) {
            values.any_field(bytes_tag(BODY), crate::cell::Cell::Str(raw));
        }
    }

    /// The columns that are not lifted.
    fn columns(&mut self, row: &Row<'_>, lifted: &Lifted, prefixes: &Prefixes) {
        let plan = row.plan;
        for (word, columns) in plan.columns.chunks(64).enumerate() {
            let mut bits = row.presence.word(row.record, word) & !lifted.bits(word);
            while bits != 0 {
                let column = &columns[bits.trailing_zeros() as usize];
                let at = 64 * word + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if plan.is_shadowed(at, row.row, row.record) {
                    continue;
                }
                if let Some((head, open)) = column.as_open() {
                    self.values
                        .open_attribute(head, open, column.at(row.row, row.record));
                    continue;
                }
                let cell = plan.cell(at, row.row, row.record);
                if !cell.is_absent() {
                    const TAG: u8 = bytes_tag(LOG_RECORD_ATTRIBUTES);
                    self.values.attribute(TAG, plan.prefix(at, prefixes), cell);
                }
            }
        }
    }

    fn attributes(
        &mut self,
        envelope: &Envelope<'_>,
        row: &Row<'_>,
        lifted: &Lifted,
        facts: &SourceFacts,
        prefixes: &Prefixes,
    ) {
        const TAG: u8 = bytes_tag(LOG_RECORD_ATTRIBUTES);
        let plan = row.plan;
        self.columns(row, lifted, prefixes);
        let overflow = plan
            .overflow
            .filter(|overflow| overflow.is_valid(row.record));
        if overflow.is_none() && !row.may_clash {
            self.values.out.bytes(&facts.attributes);
            for encoded in self.extras.of(envelope, row.record, self.config.iostream) {
                self.values.out.bytes(encoded.1);
            }
            return;
        }
        let object = self.values.keys.open();
        if let Some(overflow) = overflow {
            let is_new = |key: &[u8]| {
                let name = std::str::from_utf8(key).unwrap_or_default();
                !plan.has_column(name, row.row, row.record)
            };
            self.values
                .members(TAG, overflow.value(row.record), object, is_new);
        }
        let mut start = 0;
        let sources = facts.names.iter().map(|(name, end)| {
            let encoded = &facts.attributes[start..*end];
            start = *end;
            (name.as_str(), encoded)
        });
        let ours = self.extras.of(envelope, row.record, self.config.iostream);
        for (name, encoded) in sources.chain(ours) {
            let is_known = plan.has_attribute(name, row.row, row.record, lifted)
                || self
                    .values
                    .keys
                    .insert_text(object, name.as_bytes())
                    .is_none();
            if !is_known {
                self.values.out.bytes(encoded);
            }
        }
        self.values.keys.close(object);
    }

    /// Flags, ids, observed time and event name.
    fn fields_behind(&mut self, envelope: &Envelope<'_>, row: &Row<'_>, lifted: &Lifted) {
        let values = &mut self.values;
        if lifted.flags > 0 {
            values.out.fixed32(FLAGS, lifted.flags);
        }
        if lifted.column(Field::TraceId).is_some() {
            values.out.field(TRACE_ID, &lifted.trace_id);
        }
        if lifted.column(Field::SpanId).is_some() {
            values.out.field(SPAN_ID, &lifted.span_id);
        }
        let observed_ns = u64::try_from(envelope.observed_ns).unwrap_or(0);
        values.out.fixed64(OBSERVED_TIME, observed_ns);
        if let Some(column) = lifted.column(Field::EventName) {
            values.text_field(EVENT_NAME, row.plan.cell(column, row.row, row.record));
        }
    }
}

/// One output row.
struct Row<'r> {
    plan: &'r PartPlan<'r>,
    presence: &'r Presence,
    row: usize,
    record: usize,
    /// A column may have the name of an attribute that we or the source add.
    may_clash: bool,
}

impl Extras {
    fn new() -> Extras {
        let encoded = |name: &str, value: Value| {
            let mut out = Vec::new();
            push_attribute(&mut out, LOG_RECORD_ATTRIBUTES, name, &value);
            out
        };
        Extras {
            stdout: encoded(IOSTREAM, Value::from("stdout")),
            stderr: encoded(IOSTREAM, Value::from("stderr")),
            malformed: encoded(MALFORMED, Value::Bool(true)),
            truncated: encoded(TRUNCATED, Value::Bool(true)),
            uid: encoded(RECORD_UID, Value::Str("0".repeat(UID_DIGITS))),
            has_uid: false,
            rows: (usize::MAX, 0),
        }
    }

    /// Makes the attribute of the next row: a record's second row is no duplicate of its first.
    fn set_uid(&mut self, envelope: &Envelope<'_>, record: usize) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let nth = if self.rows.0 == record {
            self.rows.1 + 1
        } else {
            0
        };
        self.rows = (record, nth);
        let uid = envelope.uid(record);
        self.has_uid = uid.is_some();
        let mut rest = uid.unwrap_or(0).wrapping_add(u128::from(nth));
        for digit in self.uid.iter_mut().rev().take(UID_DIGITS) {
            *digit = DIGITS[(rest & 15) as usize];
            rest >>= 4;
        }
    }

    /// What the envelope says of a record: names and encoded attributes.
    #[inline]
    fn of<'e>(
        &'e self,
        envelope: &Envelope<'_>,
        record: usize,
        with_stream: bool,
    ) -> impl Iterator<Item = (&'e str, &'e [u8])> + use<'e> {
        let stream = match envelope.streams.get(record) {
            Some(1) if with_stream => Some((IOSTREAM, &*self.stdout)),
            Some(2) if with_stream => Some((IOSTREAM, &*self.stderr)),
            _ => None,
        };
        let malformed = envelope.is_malformed(record);
        let truncated = envelope.is_truncated(record);
        let uid = self.has_uid.then_some((RECORD_UID, &*self.uid));
        stream
            .into_iter()
            .chain(uid)
            .chain(malformed.then_some((MALFORMED, &*self.malformed)))
            .chain(truncated.then_some((TRUNCATED, &*self.truncated)))
    }
}

/// Which source the current record has.
struct Sources<'a> {
    runs: &'a [Run<'a>],
    /// The facts of records that no run covers.
    none: &'a SourceFacts,
    current: Option<&'a SourceFacts>,
    /// The first run that may hold the next record.
    at: usize,
    /// By part: whether a column has the name of an attribute that we or the current source add.
    shadowing: Vec<bool>,
}

impl<'a> Sources<'a> {
    fn facts(&self) -> &'a SourceFacts {
        self.current.unwrap_or(self.none)
    }

    /// Moves on to a record; says whether it has another resource than the one before.
    fn advance(&mut self, record: usize, plans: &[PartPlan<'_>], config: &Config) -> bool {
        while self
            .runs
            .get(self.at)
            .is_some_and(|run| run.records.end as usize <= record)
        {
            self.at += 1;
        }
        let run = self
            .runs
            .get(self.at)
            .filter(|run| run.records.start as usize <= record);
        let facts = run.map_or(self.none, |run| run.source);
        let before = self.current.replace(facts);
        if before.is_some_and(|before| std::ptr::eq(before, facts)) {
            return false;
        }
        let extras: &[&str] = match (config.iostream, config.record_uid) {
            (true, true) => &[IOSTREAM, RECORD_UID, MALFORMED, TRUNCATED],
            (true, false) => &[IOSTREAM, MALFORMED, TRUNCATED],
            (false, true) => &[RECORD_UID, MALFORMED, TRUNCATED],
            (false, false) => &[MALFORMED, TRUNCATED],
        };
        let facts_clash = facts
            .names
            .iter()
            .any(|(name, _)| extras.contains(&name.as_str()));
        let clashes = |plan: &PartPlan<'_>| {
            facts_clash
                || extras.iter().any(|name| plan.names(name))
                || facts.names.iter().any(|(name, _)| plan.names(name))
        };
        self.shadowing.clear();
        self.shadowing.extend(plans.iter().map(clashes));
        before.is_none_or(|before| before.resource != facts.resource)
    }
}
