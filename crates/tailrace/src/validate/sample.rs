//! What a query makes of the lines of a sample: how many records pass, and what probably is not meant. It never prints.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use tailrace_config::Diagnostic;
use tailrace_pipeline::{PipelinePlan, Sampled};

use crate::printed;

/// The most bytes of a sample that are read.
const SAMPLE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What one pipeline makes of a sample.
pub(super) struct Sample {
    pipeline: String,
    sampled: Sampled,
    pub(super) warnings: Vec<Diagnostic>,
    /// How many records pass, in words.
    pub(super) line: String,
}

/// Reads the beginning of a file.
///
/// # Errors
///
/// It cannot be read, or is a pipe.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let is_pipe = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
    anyhow::ensure!(
        !is_pipe,
        "--sample {}: is a pipe, whose end may never come: give a file",
        path.display()
    );
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(SAMPLE_BYTES_MAX).read_to_end(&mut bytes))
        .with_context(|| format!("--sample {}: cannot be read", path.display()))?;
    Ok(bytes)
}

impl Sample {
    /// Runs the query of a pipeline on the lines of the sample at `path`.
    pub(super) fn take(plan: &PipelinePlan, path: &Path, bytes: &[u8]) -> Sample {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now_ns = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let sampled = tailrace_pipeline::sample(plan, bytes.to_vec(), now_ns);
        let name = printed::path(path);
        let warn = |text: String| {
            let message = format!("pipeline {}: {text}", plan.name);
            plan.config.transform.diagnostic(1, 1, 1, message, None)
        };
        let warnings = complaints(plan, &sampled, &name).into_iter().map(warn);
        let (pipeline, records) = (&plan.name, sampled.records);
        let line = match sampled.passed {
            Some(passed) => {
                format!("pipeline {pipeline}: {passed} of {records} records of {name} pass")
            }
            None => format!(
                "pipeline {pipeline}: WHERE asks for the pod or the file, which {name} does not say: not counted"
            ),
        };
        Sample {
            pipeline: plan.name.clone(),
            warnings: warnings.collect(),
            line,
            sampled,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "pipeline": self.pipeline,
            "records": self.sampled.records,
            "passed": self.sampled.passed,
            "malformed": self.sampled.malformed,
            "failed": self.sampled.failed,
            "missing_keys": self.sampled.missing,
        })
    }
}

/// What of a sample is probably not meant, in words.
fn complaints(plan: &PipelinePlan, sampled: &Sampled, name: &str) -> Vec<String> {
    let records = sampled.records;
    if records == 0 {
        return vec![format!("{name} has no record")];
    }
    let mut found: Vec<String> = sampled
        .missing
        .iter()
        .map(|key| {
            format!(
                "no record of {name} has the key `{key}`, or a value of its type: it is NULL in all {records} of them"
            )
        })
        .collect();
    if sampled.failed > 0 {
        let failed = sampled.failed;
        found.push(format!(
            "an expression fails for {failed} of {records} records of {name}: it is NULL there"
        ));
    }
    let branches = plan.query.branches();
    let filters = branches.iter().all(|branch| !branch.predicate.is_empty());
    match sampled.passed {
        Some(0) => found.push(format!(
            "no record of {name} passes: check what WHERE compares, and how the values are written there"
        )),
        Some(passed) if passed == records && filters => found.push(format!(
            "every record of {name} passes: WHERE leaves out none"
        )),
        _ => {}
    }
    if sampled.malformed > 0 {
        let malformed = sampled.malformed;
        found.push(format!(
            "{malformed} of {records} records in {name} are not valid JSON objects: each arrives marked, with the raw record"
        ));
    }
    found
}
