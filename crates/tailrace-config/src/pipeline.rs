//! One pipeline: inputs, a query, outputs, and limits. The declarations, how they are read, and the checks between them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::input::Input;
use crate::output::Output;
use tailrace_schema::kind::{GIB, Integer, KIB, Key, Kind, List, MIB, Map, SECOND, Size, Time};
use tailrace_schema::node::{Node, Value};
use tailrace_schema::reader::{Reader, nearest};
use tailrace_schema::section::{Section, Shape};
use tailrace_schema::source::Position;
use tailrace_schema::sql::Sql;
use tailrace_schema::units::write_size;

/// One pipeline, checked.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// Where records come from; at least one.
    pub inputs: Vec<Input>,
    /// Types of keys for which the query implies none, or not the right one.
    pub columns: BTreeMap<String, ColumnType>,
    /// The query.
    pub transform: Sql,
    /// Where records go; at least one, with unique names.
    pub outputs: Vec<Output>,
    /// The size of batches.
    pub batch: Batch,
    /// The requests that wait to be sent.
    pub queue: Queue,
    /// Records that no output will ever accept.
    pub dead_letter: DeadLetter,
    /// Bounds.
    pub limits: PipelineLimits,
    /// The position of the pipeline in the configuration.
    pub position: Position,
}

/// Compares the meaning, not the position.
impl PartialEq for Pipeline {
    fn eq(&self, other: &Pipeline) -> bool {
        let Pipeline {
            inputs,
            columns,
            transform,
            outputs,
            batch,
            queue,
            dead_letter,
            limits,
            position: _,
        } = self;
        *inputs == other.inputs
            && *columns == other.columns
            && *transform == other.transform
            && *outputs == other.outputs
            && *batch == other.batch
            && *queue == other.queue
            && *dead_letter == other.dead_letter
            && *limits == other.limits
    }
}

section! {
    /// A pipeline reads records from its inputs, runs one query on them and sends the result to its outputs.
    pub(crate) struct PipelineFile {
        /// The input, if there is only one.
        input: Option<Input> = Input, unset("`inputs` is given", "{type: stdin}");
        /// The inputs. For a single one, use `input`.
        inputs: Option<Vec<Input>> = List<Input, 1>, unset("`input` is given", "[{type: stdin}]");
        /// Types of keys for which the query implies none, or not the one you want.
        columns: BTreeMap<String, ColumnType> = Map<ColumnName, ColumnType>, default("{}", "{status: int64}");
        /// One SELECT over the table `logs`. Names are exact, case included; `"a.b"` is the key `a.b`, and
        /// `a->>'b'` reaches into an object. A computed output needs a name (`AS`).
        transform: Sql = Sql, default("SELECT * FROM logs", "SELECT * FROM logs WHERE level <> 'debug'");
        /// The output, if there is only one.
        output: Option<Output> = Output, unset("`outputs` is given", "{type: stdout}");
        /// The outputs. For a single one, use `output`.
        outputs: Option<Vec<Output>> = List<Output, 1>, unset("`output` is given", "[{type: stdout}]");
        /// The size of batches.
        batch: Batch = Batch, nested();
        /// The requests that wait to be sent.
        queue: Queue = Queue, nested();
        /// Records that a server will never accept, or that the agent cannot process.
        dead_letter: DeadLetter = DeadLetter, nested();
        /// Limits of the pipeline.
        limits: PipelineLimits = PipelineLimits, nested();
    }
}

section! {
    /// Records are read, scanned and encoded in batches. A batch is processed when it is full or its first record has waited
    /// long enough.
    pub struct Batch {
        /// The maximum size of a batch.
        max_bytes: u64 = Size<{ 64 * KIB }, { 64 * MIB }>, default("1MiB");
        /// How long the first record of a batch waits for others.
        max_wait: Duration = Time<1, { 60 * SECOND }>, default("1s");
    }
}

section! {
    /// Encoded requests that wait for an output or are being sent. When the queue is full, reading pauses and the data stays in
    /// the files.
    pub struct Queue {
        /// The maximum number of bytes in flight in one pipeline: encoded requests, compressed as they are sent, and data that
        /// was read and is not encoded yet.
        max_bytes: u64 = Size<{ 64 * KIB }, { 4 * GIB }>, default("8MiB");
    }
}

section! {
    /// Single records that a server refuses while it accepts others are stored in the file
    /// `dead-letter/PIPELINE.ndjson` of the data directory. `tailrace replay` sends them again. Records that make the
    /// agent panic or die are stored there, too.
    pub struct DeadLetter {
        /// The maximum size of the file.
        max_bytes: u64 = Size<{ 64 * KIB }, { 16 * GIB }>, default("64MiB");
        /// What happens to such records when the file is full.
        on_full: OnFull = OnFull, default("hold");
    }
}

section! {
    /// Limits of one pipeline.
    pub struct PipelineLimits {
        /// The maximum number of bytes of one file that are read but not yet delivered. This many are sent again, at most, after a
        /// crash.
        replay: u64 = Size<{ MIB }, { 16 * GIB }>, default("16MiB");
        /// The maximum disk space of deleted files that are kept until they are read. Beyond it, the path with the most such
        /// bytes gives up its oldest file, which is counted as lost (`held`) and named in the log.
        held_bytes: u64 = Size<{ MIB }, { 1024 * GIB }>, default("1GiB");
        /// The maximum number of columns that `*` makes of JSON keys, not counting LogRecord fields. Further keys stay together in one map, and are counted.
        columns: usize = Integer<1, 10_000>, default("512");
    }
}

section_defaults!(Batch, Queue, DeadLetter, PipelineLimits);

choice! {
    /// What happens to records for which the dead-letter file has no space.
    pub enum OnFull {
        /// They wait until there is space; reading pauses at `limits.replay`.
        Hold = "hold",
        /// They are dropped and counted.
        Drop = "drop",
    }
}

choice! {
    /// The type of a column.
    pub enum ColumnType {
        /// Text. Numbers, booleans and nested values stay as they are written.
        String = "string",
        /// A 64-bit integer.
        Int64 = "int64",
        /// A number.
        Float64 = "float64",
        /// `true` or `false`.
        Boolean = "boolean",
        /// A point in time, in nanoseconds.
        Timestamp = "timestamp",
    }
}

/// Names of columns: any key of a JSON object.
pub(crate) struct ColumnName;

impl Key for ColumnName {
    const WHAT: &'static str = "column";

    fn check(key: &str) -> Result<String, (String, Option<String>)> {
        Ok(key.to_owned())
    }
}

impl Kind for Pipeline {
    type Value = Pipeline;

    fn shape() -> Shape {
        Shape::Section(const { &PipelineFile::INFO })
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Pipeline> {
        let file: Option<PipelineFile> = reader.section(node, &[]);
        let ways = [
            (
                "input",
                "inputs",
                "{type: file, include: [/var/log/app/*.log]}",
            ),
            ("output", "outputs", "{type: otlp}"),
        ];
        let mut complete = true;
        for (one, several, example) in ways {
            complete &= one_of_two(node, one, several, example, reader);
        }
        let file = file.filter(|_| complete)?;
        let pipeline = Pipeline {
            inputs: file
                .inputs
                .or_else(|| file.input.map(|input| vec![input]))?,
            columns: file.columns,
            transform: file.transform,
            outputs: file
                .outputs
                .or_else(|| file.output.map(|output| vec![output]))?,
            batch: file.batch,
            queue: file.queue,
            dead_letter: file.dead_letter,
            limits: file.limits,
            position: node.position.clone(),
        };
        let named = check_names(&pipeline, node, reader);
        (check_sizes(&pipeline, node, reader) && named).then_some(pipeline)
    }
}

/// `input` or `inputs`, one of them and only one.
fn one_of_two(
    node: &Node,
    one: &str,
    several: &str,
    example: &str,
    reader: &mut Reader<'_>,
) -> bool {
    if !node.is_null() && !matches!(node.value, Value::Mapping(_)) {
        return false;
    }
    match (node.entry(one), node.entry(several)) {
        (Some(_), Some(entry)) => {
            let message = format!("{}: both `{one}` and `{several}`", reader.path());
            reader.report(
                entry
                    .diagnostic(message)
                    .with_hint(format!("put all of them into `{several}`")),
            );
            false
        }
        (None, None)
            if node.is_null()
                || node
                    .keys()
                    .all(|key| nearest(key, &[one, several]).is_none()) =>
        {
            let message = format!("{} has no {one}", reader.path());
            reader.report(
                node.diagnostic(message)
                    .with_hint(format!("add one, such as `{one}: {example}`")),
            );
            false
        }
        // A misspelt key has been reported.
        (None, None) => false,
        _ => true,
    }
}

/// Outputs of one pipeline need different names.
fn check_names(pipeline: &Pipeline, node: &Node, reader: &mut Reader<'_>) -> bool {
    let outputs = &pipeline.outputs;
    let mut sound = true;
    for (index, output) in outputs.iter().enumerate() {
        let written = node.get("outputs").and_then(|list| list.item(index));
        let Some(written) = written.filter(|_| outputs.len() > 1) else {
            continue;
        };
        if written.get("name").is_none() {
            let message = format!("{}: an output without a name", reader.path_of("outputs"));
            let hint = format!(
                "a pipeline with several outputs names each, such as `name: {}`",
                output.name
            );
            reader.report(written.diagnostic(message).with_hint(hint));
            sound = false;
        } else if let Some(first) = outputs[..index]
            .iter()
            .find(|first| first.name == output.name)
        {
            let message = format!(
                "{}: two outputs are named `{}`",
                reader.path_of("outputs"),
                output.name
            );
            let hint = format!("the first one is at {}", first.position);
            reader.report(
                written
                    .nearest(&["name"])
                    .diagnostic(message)
                    .with_hint(hint),
            );
            sound = false;
        }
    }
    sound
}

/// Sizes that would stop the pipeline for ever.
fn check_sizes(pipeline: &Pipeline, node: &Node, reader: &mut Reader<'_>) -> bool {
    let mut sound = true;
    let longest_record = pipeline
        .inputs
        .iter()
        .map(|input| input.records().max_record_bytes)
        .max()
        .unwrap_or(0);
    let replay = pipeline.limits.replay;
    let needs = [
        (pipeline.batch.max_bytes, "batch.max_bytes"),
        (longest_record, "max_record_bytes of the inputs"),
    ];
    for (bytes, what) in needs {
        if replay < 2 * bytes {
            let path: &[&str] =
                if has_path(node, &["limits", "replay"]) || !what.starts_with("batch") {
                    &["limits", "replay"]
                } else {
                    &["batch", "max_bytes"]
                };
            let message = format!(
                "{}: {} is too small: at least twice {what}, {}, is needed",
                reader.path_of("limits.replay"),
                write_size(replay),
                write_size(2 * bytes)
            );
            let hint = format!("make `limits.replay` larger, or {what} smaller");
            reader.report(node.nearest(path).diagnostic(message).with_hint(hint));
            sound = false;
        }
    }
    for (index, input) in pipeline.inputs.iter().enumerate() {
        let Some(queue_bytes_max) = input.disk_queue_bytes_max() else {
            continue;
        };
        if queue_bytes_max < 2 * replay {
            let message = format!(
                "{}: {} is too small: at least twice limits.replay, {}, is needed",
                reader.path_of("input.queue.max_bytes"),
                write_size(queue_bytes_max),
                write_size(2 * replay)
            );
            let listed = node.get("inputs").and_then(|list| list.item(index));
            let written = node.get("input").or(listed).unwrap_or(node);
            let written = written.nearest(&["queue", "max_bytes"]);
            let hint = "make it larger, or `limits.replay` smaller".to_owned();
            reader.report(written.diagnostic(message).with_hint(hint));
            sound = false;
        }
    }
    for output in &pipeline.outputs {
        let Some(request_bytes_max) = output.kind.max_request_bytes() else {
            continue;
        };
        if pipeline.queue.max_bytes < request_bytes_max {
            let message = format!(
                "{}: {} is too small for a request of output `{}`, which can have {}",
                reader.path_of("queue.max_bytes"),
                write_size(pipeline.queue.max_bytes),
                output.name,
                write_size(request_bytes_max)
            );
            let diagnostic = node.nearest(&["queue", "max_bytes"]).diagnostic(message);
            let hint = "make it larger, or `max_request_bytes` of the output smaller";
            reader.report(diagnostic.with_hint(hint.to_owned()));
            sound = false;
        }
    }
    sound
}

fn has_path(node: &Node, path: &[&str]) -> bool {
    match path.split_first() {
        Some((key, rest)) => node.get(key).is_some_and(|node| has_path(node, rest)),
        None => true,
    }
}
