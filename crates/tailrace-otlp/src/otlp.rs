//! Columns to ExportLogsServiceRequests.
//!
//! From an envelope and the parts of a query's output, the encoder emits requests of bounded size. It makes one pass over the
//! rows. Of 64 rows at a time the LogRecords are drafted, column by column (`drafts.rs`), and copied into the bytes that
//! are sent; a record that is unusual is written there on its own (`record.rs`), with its length guessed from the one before.
//! Names, tags and source facts are encoded once. Rows of one record stay together, and neighbours of one resource share a
//! ResourceLogs. It does not allocate per row, does no I/O, and reads no clock.

mod drafts;
mod extras;
mod pass;
mod record;
mod sources;
mod tails;

use std::ops::Range;

use crate::any::Values;
use crate::cut::{Cut, extract};
use crate::encoding::{Encoder, Encoding};
use crate::field::Mapping;
use crate::lift::{Batch, Lifts};
use crate::nested::Shapes;
use crate::part::{Envelope, Part, Request, Stats, merge_rows};
use crate::plan::{PartPlan, Prefixes};
use crate::value::{SCHEMA_URL, SCHEMA_URL_FIELD, SourceFacts};
use crate::wire::{Open, bytes_tag, push_bytes};
use drafts::Drafts;
use extras::Extras;
use pass::Pass;
use sources::Sources;
use tails::Tails;

/// OTLP protobuf: how columns become an ExportLogsServiceRequest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpEncoding {
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

impl Default for OtlpEncoding {
    fn default() -> OtlpEncoding {
        OtlpEncoding {
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
pub struct OtlpEncoder {
    config: OtlpEncoding,
    values: Values,
    lifts: Lifts,
    prefixes: Prefixes,
    /// The scope and its schema URL, as fields of a ScopeLogs.
    scope: Vec<u8>,
    extras: Extras,
    /// Whether a record of this call may have any.
    has_extras: bool,
    /// Of the first parts, as far as they were needed.
    drafts: Vec<Drafts>,
    tails: Tails,
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
    /// Its first mark.
    first_mark: usize,
}

/// Attribute that is the same when a record is sent again, and else is not.
pub(crate) const RECORD_UID: &str = "log.record.uid";
/// Attribute that says a record was not the JSON it was expected to be.
pub const MALFORMED: &str = "tailrace.malformed";
/// Attribute that holds the raw text of a malformed record whose body is one of its own members.
pub const ORIGINAL: &str = "log.record.original";
/// Attribute that says a record was longer than the limit.
pub const TRUNCATED: &str = "tailrace.truncated";
/// Attribute that says a value of the record could not be computed.
pub const TRANSFORM_FAILED: &str = "tailrace.transform_failed";
pub(crate) const SCOPE_NAME: &str = "tailrace";

/// `resource_logs` of the request.
const RESOURCE_LOGS: u8 = bytes_tag(1);
/// `scope_logs` of ResourceLogs.
const SCOPE_LOGS: u8 = bytes_tag(2);
/// Memory kept for the next LogRecord that does not fit.
const CARRIED_BYTES_KEPT: usize = 64 * 1024;
/// Closing the two lengths of a group can make it so much longer.
const CLOSING_MAX: usize = 8;
/// The rows of so many parts are drafted: a part's drafts take 200 KB.
const DRAFTED_PARTS_MAX: usize = 4;

impl Encoding for OtlpEncoding {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn encoder(&self, offset_s: i32) -> Box<dyn Encoder> {
        let mut config = self.clone();
        config.mapping.offset_s = offset_s;
        Box::new(OtlpEncoder::new(config))
    }

    fn cut(&self, request: &[u8], _ends: &[u32], records: Range<usize>) -> Cut {
        extract(request, records).expect("a request that this process encoded")
    }

    fn has_record_uid(&self) -> bool {
        self.record_uid
    }
}

impl Encoder for OtlpEncoder {
    fn encode(
        &mut self,
        envelope: &Envelope<'_>,
        parts: &[Part<'_>],
        emit: &mut dyn FnMut(&Request),
    ) -> Stats {
        self.values.stats = Stats::default();
        self.values.shapes.start();
        self.extras.rows = (usize::MAX, 0);
        let mut prefixes = std::mem::take(&mut self.prefixes);
        prefixes.clear();
        self.values.marks.reset();
        let mut plans: Vec<_> = parts
            .iter()
            .map(|part| PartPlan::new(part, &self.config.mapping, &mut prefixes))
            .collect();
        for column in plans.iter_mut().flat_map(|plan| &mut plan.columns) {
            column.mark = self.values.marks.column(column.name);
        }
        let mut lifts = std::mem::take(&mut self.lifts);
        let batch = Batch {
            envelope,
            parts,
            plans: &plans,
            offset_s: self.config.mapping.offset_s,
        };
        lifts.start(&batch);
        self.has_extras = Extras::are_in(envelope, parts, &self.config);
        let mut tails = std::mem::take(&mut self.tails);
        let (mut drafts, drafted) = self.drafts_of(parts.len());
        let none = SourceFacts::default();
        let mut pass = Pass {
            batch,
            prefixes: &prefixes,
            sources: Sources::new(envelope.runs, &none),
            lifts: &mut lifts,
            drafts: &mut drafts[..drafted],
            tails: &mut tails,
        };
        if let [part] = parts {
            let len = part.rows.map_or(envelope.records as usize, <[u32]>::len);
            let mut row = 0;
            while row < len {
                let record = part.rows.map_or(row, |rows| rows[row] as usize);
                row += self.rows(&mut pass, [0, row, record], true, emit);
            }
        } else {
            merge_rows(parts, envelope.records, |part, row, record| {
                self.rows(&mut pass, [part, row, record], false, emit);
            });
        }
        self.close_group();
        if !self.request.ends.is_empty() {
            self.emit(emit);
        }
        self.prefixes = prefixes;
        self.lifts = lifts;
        self.drafts = drafts;
        self.tails = tails;
        self.values.stats
    }

    fn release(&mut self, bytes: usize) {
        self.drafts = Vec::new();
        self.values.shapes = Shapes::default();
        self.values.out.release(bytes);
        self.values.marks.release(bytes);
        self.request.release(bytes);
    }
}

impl OtlpEncoder {
    /// An encoder for one output.
    pub fn new(config: OtlpEncoding) -> OtlpEncoder {
        let mut scope = Vec::new();
        push_bytes(&mut scope, 1, SCOPE_NAME.as_bytes());
        if !config.scope_version.is_empty() {
            push_bytes(&mut scope, 2, config.scope_version.as_bytes());
        }
        let mut fields = Vec::new();
        push_bytes(&mut fields, 1, &scope);
        push_bytes(&mut fields, SCHEMA_URL_FIELD, SCHEMA_URL.as_bytes());
        OtlpEncoder {
            values: Values::default(),
            lifts: Lifts::default(),
            prefixes: Prefixes::new(),
            scope: fields,
            extras: Extras::new(),
            has_extras: false,
            drafts: Vec::new(),
            tails: Tails::default(),
            request: Request::default(),
            group: None,
            carried: Vec::new(),
            record_guess: 300,
            scope_guess: config.request_bytes_max / 2,
            config,
        }
    }

    /// Memory for the drafts of the first of so many parts, and of how many.
    fn drafts_of(&mut self, parts: usize) -> (Vec<Drafts>, usize) {
        let drafted = match self.config.record_uid {
            // Each record has a uid of its own.
            true => 0,
            false => parts.min(DRAFTED_PARTS_MAX),
        };
        let mut drafts = std::mem::take(&mut self.drafts);
        drafts.resize_with(drafted.max(drafts.len()), Drafts::new);
        (drafts, drafted)
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
            first_mark: self.values.marks.len(),
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
            self.values.marks.shift(group.first_mark, shift);
        }
    }

    fn emit(&mut self, emit: &mut dyn FnMut(&Request)) {
        self.request.bytes = self.values.out.take();
        self.request.marks = std::mem::take(&mut self.values.marks);
        self.values.stats.requests += 1;
        self.values.stats.bytes += self.request.bytes.len() as u64;
        emit(&self.request);
        self.values
            .out
            .restore(std::mem::take(&mut self.request.bytes));
        self.values.marks = std::mem::take(&mut self.request.marks);
        self.values.marks.clear();
        self.request.ends.clear();
        self.request.records.clear();
    }
}
