//! What becomes of records, one by one: which the query keeps and what leaves for them, which it filters and by which
//! condition, which are malformed, truncated, or make an expression fail.
//!
//! Pure: takes a plan, bytes and what is known of their source; gives one [`Traced`] for each record, in order. Records are
//! framed, scanned, evaluated and encoded by the code of the workers, so that what is said here is what an agent does. A
//! [`Tracer`] takes bytes cut anywhere and keeps no more than the framer does, and a batch. It reads no file, no clock
//! and no metadata.

mod batch;
mod failures;
mod lines;
mod malformed;
mod piece;
mod reasons;
mod rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tailrace_frame::{Framer, Frames, Stats};
use tailrace_otlp::{OtlpEncoding, Value};
use tailrace_outputs::FileAttributes;
use tailrace_sql::{Outcome, Type};

pub(crate) use self::batch::BatchTracer;
use self::lines::Lines;
use crate::delivery::encoding::EncodingPlan;
use crate::input::facts::{Facts, FactsConfig};
use crate::input::frame_config::frame_config;
use crate::input::input_queue::{Framed, SourceRun};
use crate::plan::PipelinePlan;

/// What to say of records besides what leaves for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceOptions {
    /// Also encode each row as OTLP.
    pub otlp: bool,
    /// Also say which conditions a record does not meet, and which expressions fail for it.
    pub reasons: bool,
    /// How many rows of one record are kept.
    pub rows: RowBounds,
}

/// How much of the rows of one record is kept: the others are only counted. One row is kept in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowBounds {
    /// So many rows.
    pub rows: usize,
    /// So many bytes, of all encodings together, but for the last row.
    pub bytes: usize,
}

impl RowBounds {
    /// As many as fit memory, for a command that shows all of them.
    pub const MOST: Self = Self {
        rows: usize::MAX,
        bytes: 64 * 1024 * 1024,
    };
}

/// A few, for an agent that has other things to do.
impl Default for RowBounds {
    fn default() -> Self {
        Self {
            rows: 100,
            bytes: 1024 * 1024,
        }
    }
}

/// What is known of the source of traced bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceSource {
    /// The path of the file, if it is one: `log.file.path` and `log.file.name`.
    pub path: Option<PathBuf>,
    /// What is known of its pod, by name: `k8s.pod.name` and the like.
    pub pod: Vec<(String, String)>,
}

/// What became of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// The number of its first line, from 1.
    pub line: u64,
    /// How many lines it is made of.
    pub lines: u64,
    /// The record as the query reads it: without line end and envelope, several lines joined.
    pub raw: Bytes,
    /// Whether it is kept.
    pub verdict: Verdict,
    /// How many further rows there are, that [`RowBounds`] left out.
    pub more_rows: u64,
    /// Why it is malformed; `None` if it is not, as far as the query reads it.
    pub malformed: Option<String>,
    /// It was longer than `max_record_bytes`, or its beginning or end is missing.
    pub is_truncated: bool,
    /// It is not UTF-8: what is not became U+FFFD.
    pub is_repaired: bool,
    /// Expressions that fail for it. Only with [`TraceOptions::reasons`].
    pub failed: Vec<FailedExpression>,
}

/// What the query makes of a record.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// These rows, at least one.
    Kept(Vec<Row>),
    /// Nothing. With [`TraceOptions::reasons`] there is one for each SELECT.
    Filtered(Vec<Unmet>),
    /// It cannot be processed, for this reason: an agent puts it into the dead-letter file.
    Crashed(String),
}

/// A row that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// As an output of JSON lines has it, without the newline.
    pub json: String,
    /// A protobuf `ExportLogsServiceRequest` of its LogRecord alone. Only with [`TraceOptions::otlp`].
    pub otlp: Option<Vec<u8>>,
}

/// Why a SELECT makes no row of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// Which SELECT of the query, from 0.
    pub branch: usize,
    /// The first condition that is not true, as it is written in the query; the whole WHERE if it has no outcome.
    pub condition: String,
    /// What the condition is. `None` if each condition is true by itself: `unnest` made no row, or the condition is another
    /// one each time, such as `random() < 0.1`.
    pub outcome: Option<Outcome>,
    /// What the condition reads.
    pub reads: Vec<ReadValue>,
}

/// A value that a condition reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadValue {
    /// The key or reserved column, as the query writes it.
    pub name: String,
    /// The value as JSON; `None` if there is none.
    pub json: Option<String>,
    /// The type as which it is read and that it does not have, so that it is NULL there.
    pub misfit: Option<Type>,
}

/// An expression that fails for a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedExpression {
    /// Which SELECT of the query, from 0.
    pub branch: usize,
    /// The output column that is empty. `None` is a condition, or any expression where the reason is
    /// [`NOT_EXACT`](tailrace_sql::NOT_EXACT).
    pub column: Option<String>,
    /// Why. It may quote values of the record.
    pub reason: String,
}

/// All records of some bytes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// One entry for each record, in the order in which they were completed.
    pub records: Vec<Traced>,
    /// What was framed: also what is in no record, such as blank lines.
    pub stats: Stats,
}

/// Traces `bytes` as an input of the plan, by its number, would read them from a source's first byte to its end.
/// `observed_ns` is what `now()` gives, in nanoseconds since the Unix epoch.
///
/// # Panics
///
/// If the plan has no such input.
pub fn trace(
    plan: &PipelinePlan,
    input: usize,
    bytes: &[u8],
    source: &TraceSource,
    observed_ns: i64,
    options: TraceOptions,
) -> Trace {
    let mut tracer = Tracer::new(plan, input, source, options);
    let mut records = Vec::new();
    tracer.push(bytes, observed_ns, &mut |traced| records.push(traced));
    tracer.finish(observed_ns, &mut |traced| records.push(traced));
    Trace {
        records,
        stats: tracer.stats(),
    }
}

/// Traces the bytes of one source, which may come in any pieces.
pub struct Tracer<'p> {
    plan: &'p PipelinePlan,
    facts: Arc<Facts>,
    framer: Framer,
    frames: Frames,
    lines: Lines,
    batches: BatchTracer,
    records_max: usize,
    stats: Stats,
}

/// What is framed at once.
const CHUNK_BYTES: usize = 1024 * 1024;
/// Records of a batch that is encoded as OTLP: each is cut out of a request.
const OTLP_RECORDS_MAX: usize = 256;

impl<'p> Tracer<'p> {
    /// A tracer of a source from its first byte, as an input of the plan, by its number, reads it.
    ///
    /// # Panics
    ///
    /// If the plan has no such input.
    pub fn new(
        plan: &'p PipelinePlan,
        input: usize,
        source: &TraceSource,
        options: TraceOptions,
    ) -> Self {
        let config = frame_config(&plan.config.inputs[input], plan.config.limits.replay);
        let pod = source.pod.iter();
        let pod = pod.map(|(name, value)| (name.clone(), Value::Str(value.clone())));
        let records_max = plan.records_max();
        Self {
            plan,
            facts: facts(plan, source.path.as_deref(), pod.collect()),
            framer: Framer::new(&config, 0, false),
            frames: Frames::default(),
            lines: Lines::default(),
            batches: BatchTracer::new(plan, input, options),
            records_max: match options.otlp {
                true => records_max.min(OTLP_RECORDS_MAX),
                false => records_max,
            },
            stats: Stats::default(),
        }
    }

    /// Traces the next bytes: calls `each` for every record that they complete.
    pub fn push(&mut self, bytes: &[u8], observed_ns: i64, each: &mut dyn FnMut(Traced)) {
        for chunk in bytes.chunks(CHUNK_BYTES) {
            self.lines.note(chunk);
            let buffer = Bytes::copy_from_slice(chunk);
            let mut at = 0;
            while at < chunk.len() {
                let rest = &chunk[at..];
                let newlines = (0..).zip(rest).filter(|(_, byte)| **byte == b'\n');
                let newlines = newlines.map(|(place, _)| place);
                let (base, max) = (at as u32, self.records_max);
                at += self
                    .framer
                    .push_lines(rest, newlines, 0, base, max, &mut self.frames);
                self.give(&buffer, observed_ns, each);
            }
            let held = self.framer.unacked_from();
            self.lines.forget(held.unwrap_or(self.framer.offset()));
        }
    }

    /// Traces what is left when the source has ended: an unfinished line or record becomes one.
    pub fn finish(&mut self, observed_ns: i64, each: &mut dyn FnMut(Traced)) {
        self.framer.finish(&mut self.frames);
        self.give(&Bytes::new(), observed_ns, each);
    }

    /// What was framed so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Traces what was framed.
    fn give(&mut self, buffer: &Bytes, observed_ns: i64, each: &mut dyn FnMut(Traced)) {
        let frames = std::mem::take(&mut self.frames);
        self.stats += frames.stats;
        let records = frames.records.len();
        let lines: Vec<(u64, u64)> = (0..records)
            .map(|record| self.lines.of(frames.pieces_of(record)))
            .collect();
        let mut framed = framed(frames, buffer.clone(), &self.facts, observed_ns);
        if records > 0 {
            let (plan, batches) = (self.plan, &mut self.batches);
            batches.trace(plan, &framed, &mut |at, traced| {
                let (line, lines) = lines[at];
                each(Traced {
                    line,
                    lines,
                    ..traced
                });
            });
        }
        self.frames = framed.take_memory();
    }
}

/// Records of one source as a batch.
pub(crate) fn framed(
    mut frames: Frames,
    buffer: Bytes,
    facts: &Arc<Facts>,
    observed_ns: i64,
) -> Framed {
    let side = Bytes::from(std::mem::take(&mut frames.side));
    let records = u32::try_from(frames.records.len()).expect("records of a batch fit u32");
    Framed {
        frames,
        buffers: vec![buffer, side],
        runs: vec![SourceRun {
            records: 0..records,
            facts: Arc::clone(facts),
        }],
        observed_ns,
        ..Framed::default()
    }
}

/// What is known of a source, as rows of OTLP have it.
pub(crate) fn facts(
    plan: &PipelinePlan,
    path: Option<&Path>,
    pod: Vec<(String, Value)>,
) -> Arc<Facts> {
    let config = FactsConfig {
        resource: plan.resource.clone(),
        encodings: vec![otlp_encoding(plan).1],
        files: path.is_some(),
        framing: None,
        pods: None,
    };
    config.described(path.unwrap_or("".as_ref()), pod)
}

/// How rows are shown as OTLP: as for the first output that gets it, or as an output without options would get it.
fn otlp_encoding(plan: &PipelinePlan) -> (Arc<dyn tailrace_otlp::Encoding>, FileAttributes) {
    let outputs = plan.config.outputs.iter().zip(&plan.encoding_of);
    let encodings = outputs.map(|(output, &at)| (output, &plan.encodings[at]));
    let mut otlp = encodings.filter(|(_, plan)| plan.encoding.name() == "otlp");
    match otlp.next() {
        Some((output, EncodingPlan { encoding, .. })) => {
            (Arc::clone(encoding), output.kind.file_attributes())
        }
        None => {
            let (name, path) = (true, false);
            let encoding = Arc::new(OtlpEncoding::default());
            (encoding, FileAttributes { name, path })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
