//! What is wrong with the records of a batch: lines that are not what the format says, records that are not JSON, and
//! records that were cut. Gives the reasons with the file of each, and a line of the own log a minute for each kind. Costs
//! nothing for a batch in which all is well, and never logs a record.

use std::sync::{Mutex, PoisonError};

use tailrace_frame::{Flags, SIDE};
use tracing::warn;

use crate::health::Stage;
use crate::input::input_queue::Framed;
use crate::pipeline::Pipeline;
use crate::process::minute::Minute;
use crate::process::transform::Columns;
use crate::reasons::{Met, Reason, ReasonKind};

/// So many files of a batch are named; the others are counted together.
const FILES_MAX: usize = 16;
/// An example is cut here before anybody looks at it; who shows it cuts it further.
const EXAMPLE_BYTES_KEPT: usize = Reason::EXAMPLE_BYTES_MAX + Reason::BEYOND_BYTES;

const BROKEN: &str = "a line without the envelope of its format";
const NO_JSON: &str = "not JSON as far as the query reads it";
const CUT: &str = "truncated: longer than max_record_bytes, or a part or its end is missing";
const OTHERS: &str = "other files";

/// When each kind was last logged.
#[derive(Debug, Default)]
pub(crate) struct ProblemLog(Mutex<[Minute; 3]>);

impl ProblemLog {
    /// How many records to log now.
    fn due(&self, problem: Problem, records: u64, now_ns: i64) -> Option<u64> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log[problem as usize].due(records, now_ns)
    }
}

/// A problem with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    Broken,
    NoJson,
    Cut,
}

impl Problem {
    const fn reason(self) -> (ReasonKind, &'static str) {
        match self {
            Self::Broken => (ReasonKind::Malformed, BROKEN),
            Self::NoJson => (ReasonKind::Malformed, NO_JSON),
            Self::Cut => (ReasonKind::Truncated, CUT),
        }
    }
}

/// Reports the lines of a batch whose envelope is broken, and the records that were cut.
pub(crate) fn report_framed(pipeline: &Pipeline, input: usize, framed: &Framed) {
    let stats = &framed.frames.stats;
    let kinds = [
        (Problem::Broken, Flags::BROKEN, stats.broken),
        (Problem::Cut, Flags::TRUNCATED, stats.truncated),
    ];
    for (problem, flag, count) in kinds {
        if count == 0 {
            continue;
        }
        let records = (0_u32..).zip(&framed.frames.records);
        let records = records.filter(|(_, record)| record.flags.contains(flag));
        let found = Found::of(framed, records.map(|(at, _)| at));
        report(pipeline, input, framed, problem, &found);
    }
}

/// Reports the records of a batch that are not JSON as far as they were read.
pub(crate) fn report_scanned(
    pipeline: &Pipeline,
    input: usize,
    framed: &Framed,
    columns: &Columns,
) {
    let Some(malformed) = &columns.scanned.malformed else {
        return;
    };
    let survivors = columns.survivors.as_deref();
    let record = |row: usize| match survivors {
        Some(records) => records[row],
        // There are fewer than 2^32 records in a batch.
        None => row as u32,
    };
    let records = malformed.values().set_indices().map(record);
    // A broken container line is malformed as a record, too; it was reported as a line.
    let is_whole = |at: &u32| {
        let record = &framed.frames.records[*at as usize];
        !record.flags.contains(Flags::BROKEN)
    };
    let found = Found::of(framed, records.filter(is_whole));
    report(pipeline, input, framed, Problem::NoJson, &found);
}

fn report(pipeline: &Pipeline, input: usize, framed: &Framed, problem: Problem, found: &Found<'_>) {
    let Some(first) = found.files.first() else {
        return;
    };
    let plan = &pipeline.plan;
    let unnamed = plan.config.inputs[input].type_name();
    let (kind, reason) = problem.reason();
    let met = |subject, count| Met {
        pipeline: &plan.name,
        stage: Stage::Input,
        kind,
        subject,
        reason,
        count,
    };
    for file in &found.files {
        let example = || Some(text_of(framed, file.first));
        let met = met(file.path.unwrap_or(unnamed), file.records);
        pipeline.reasons.note_with(met, example);
    }
    if found.others > 0 {
        pipeline.reasons.note(met(OTHERS, found.others));
    }
    let count = found.others + found.files.iter().map(|file| file.records).sum::<u64>();
    if let Some(records) = pipeline.problems.due(problem, count, framed.observed_ns) {
        warn!(
            pipeline = plan.name,
            path = first.path.unwrap_or(unnamed),
            reason,
            records,
            "records are not what the input's format says; they go on all the same, and further ones are reported \
             once a minute"
        );
    }
}

/// Records of a batch, by file.
#[derive(Debug, Default)]
struct Found<'a> {
    files: Vec<OfFile<'a>>,
    /// Records of further files.
    others: u64,
}

#[derive(Debug, PartialEq, Eq)]
struct OfFile<'a> {
    /// `None` where the source is not a file.
    path: Option<&'a str>,
    records: u64,
    /// The first one's number in the batch.
    first: u32,
}

impl<'a> Found<'a> {
    /// These records of a batch, ascending.
    fn of(framed: &'a Framed, records: impl Iterator<Item = u32>) -> Self {
        let mut found = Self::default();
        let mut runs = framed.runs.iter().peekable();
        for record in records {
            while runs.next_if(|run| run.records.end <= record).is_some() {}
            let path = runs.peek().and_then(|run| run.facts.file_path.as_deref());
            found.add(path, record);
        }
        found
    }

    fn add(&mut self, path: Option<&'a str>, record: u32) {
        // Mostly it is the last one.
        let known = self.files.iter_mut().rev().find(|file| file.path == path);
        if let Some(file) = known {
            file.records += 1;
        } else if self.files.len() < FILES_MAX {
            self.files.push(OfFile {
                path,
                records: 1,
                first: record,
            });
        } else {
            self.others += 1;
        }
    }
}

/// The beginning of a record as it was read.
pub(crate) fn text_of(framed: &Framed, record: u32) -> String {
    let Some(record) = framed.frames.records.get(record as usize) else {
        return String::new();
    };
    let buffer = match record.buffer {
        SIDE => framed.buffers.get(1),
        at => framed.buffers.get(at as usize),
    };
    let bytes = buffer.and_then(|bytes| bytes.get(record.start as usize..record.end as usize));
    let bytes = bytes.unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(EXAMPLE_BYTES_KEPT)];
    String::from_utf8_lossy(bytes).into_owned()
}
