//! What becomes of sampled records, on the thread of whoever reads them: each is traced with the plan of its pipeline, and
//! those that do not meet the reader's condition are left out.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use tailrace_frame::{Flags, Frames};
use tailrace_sql as sql;

use super::{Sample, Subscription, Tap};
use crate::input::input_queue::{Framed, SourceRun};
use crate::pipeline_id::PipelineId;
use crate::pipelines::Pipelines;
use crate::plan::PipelinePlan;
use crate::process::trace::{self, BatchTracer, TraceOptions, Traced, Verdict};

/// What a reader wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TapRequest {
    /// The name of a pipeline; `None` is all, also those that come later.
    pub pipeline: Option<String>,
    /// A condition in SQL over the columns of `logs` that a record has to meet.
    pub condition: Option<String>,
    /// What to find out about each record; `None` is nothing.
    pub trace: Option<TraceOptions>,
}

/// Why nothing can be tapped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TapError {
    /// There is no such pipeline.
    #[error("there is no pipeline `{name}`; the agent has {known}")]
    NoPipeline {
        /// What was asked for.
        name: String,
        /// The names of all pipelines.
        known: String,
    },
    /// A pipeline cannot evaluate the condition.
    #[error("the condition is wrong for pipeline `{pipeline}`")]
    Condition {
        /// The name of the pipeline.
        pipeline: String,
        /// What is wrong, and where in the text of the condition.
        source: sql::Error,
    },
    /// As many readers as may be.
    #[error("too many readers tap this agent; end one of them")]
    TooMany,
}

/// A sampled record.
#[derive(Debug, Clone, PartialEq)]
pub struct Tapped {
    /// The name of its pipeline.
    pub pipeline: String,
    /// The path of its file, or the type of an input that reads no files.
    pub source: String,
    /// When it was read, in nanoseconds since the Unix epoch.
    pub observed_ns: i64,
    /// The record as the query reads it: without line end and envelope, several lines joined.
    pub raw: Bytes,
    /// It was longer than `max_record_bytes`, or its beginning or end is missing.
    pub is_truncated: bool,
    /// What becomes of it; `None` if that was not asked for.
    pub traced: Option<Traced>,
}

/// Traces the samples of one reader.
pub struct TapTracer {
    pipelines: Pipelines,
    condition: Option<String>,
    options: Option<TraceOptions>,
    known: HashMap<PipelineId, OfPipeline>,
}

struct OfPipeline {
    /// The plan of the condition.
    condition: Option<PipelinePlan>,
    inputs: HashMap<usize, OfInput>,
}

struct OfInput {
    condition: Option<BatchTracer>,
    tracer: Option<BatchTracer>,
}

/// A longer condition is refused.
pub const TAP_CONDITION_BYTES_MAX: usize = 16 * 1024;

/// Subscribes to samples.
pub(crate) fn open(
    tap: &Arc<Tap>,
    pipelines: Pipelines,
    request: TapRequest,
) -> Result<(Subscription, TapTracer), TapError> {
    let all = pipelines.all();
    if let Some(name) = &request.pipeline
        && !all.iter().any(|it| it.plan.name == *name)
    {
        let known: Vec<&str> = all.iter().map(|it| it.plan.name.as_str()).collect();
        return Err(TapError::NoPipeline {
            name: name.clone(),
            known: known.join(", "),
        });
    }
    let mut tracer = TapTracer {
        pipelines,
        condition: request.condition,
        options: request.trace,
        known: HashMap::new(),
    };
    for pipeline in &all {
        let wanted = request.pipeline.as_ref();
        if wanted.is_none_or(|name| pipeline.plan.name == *name) {
            let of = tracer.prepared(&pipeline.plan)?;
            tracer.known.insert(pipeline.id, of);
        }
    }
    let subscription = tap.subscribe(request.pipeline);
    Ok((subscription.ok_or(TapError::TooMany)?, tracer))
}

impl TapTracer {
    /// The records of a sample that meet the condition, and what becomes of each. None if the pipeline has ended.
    ///
    /// # Errors
    ///
    /// The pipeline began after a reload, and cannot evaluate the condition.
    pub fn trace(&mut self, sample: &Sample) -> Result<Vec<Tapped>, TapError> {
        let Some(pipeline) = self.pipelines.get(sample.pipeline) else {
            return Ok(Vec::new());
        };
        self.trace_of((pipeline.id, &pipeline.plan), sample)
    }

    fn trace_of(
        &mut self,
        (id, plan): (PipelineId, &PipelinePlan),
        sample: &Sample,
    ) -> Result<Vec<Tapped>, TapError> {
        if !self.known.contains_key(&id) {
            let of = self.prepared(plan)?;
            let pipelines = &self.pipelines;
            self.known.retain(|id, _| pipelines.get(*id).is_some());
            self.known.insert(id, of);
        }
        let Some(OfPipeline { condition, inputs }) = self.known.get_mut(&id) else {
            return Ok(Vec::new());
        };
        let input = inputs.entry(sample.input).or_insert_with(|| OfInput {
            condition: condition
                .as_ref()
                .map(|plan| BatchTracer::new(plan, sample.input, TraceOptions::default())),
            tracer: self
                .options
                .map(|options| BatchTracer::new(plan, sample.input, options)),
        });
        let framed = sample.framed(plan);
        let mut is_wanted = vec![condition.is_none(); sample.records.len()];
        if let (Some(plan), Some(tracer)) = (condition, &mut input.condition) {
            tracer.trace(plan, &framed, &mut |at, traced| {
                is_wanted[at] = matches!(traced.verdict, Verdict::Kept(_));
            });
        }
        let mut tapped = sample.untraced(plan);
        if let Some(tracer) = input.tracer.as_mut().filter(|_| is_wanted.contains(&true)) {
            tracer.trace(plan, &framed, &mut |at, traced| {
                tapped[at].traced = Some(without_secrets(plan, traced));
            });
        }
        let mut is_wanted = is_wanted.into_iter();
        tapped.retain(|_| is_wanted.next().unwrap_or(false));
        Ok(tapped)
    }

    fn prepared(&self, plan: &PipelinePlan) -> Result<OfPipeline, TapError> {
        let condition = self.condition.as_ref().map(|sql| compiled(plan, sql));
        let condition = condition
            .transpose()
            .map_err(|source| TapError::Condition {
                pipeline: plan.name.clone(),
                source,
            })?;
        Ok(OfPipeline {
            condition,
            inputs: HashMap::new(),
        })
    }
}

/// The plan of a query that makes a row of the records that meet a condition.
fn compiled(plan: &PipelinePlan, condition: &str) -> Result<PipelinePlan, sql::Error> {
    let wrong = |message: &str| sql::Error {
        message: message.to_owned(),
        line: 1,
        column: 1,
        length: 1,
        hint: Some("write it as behind WHERE, such as `level = 'ERROR'`".to_owned()),
    };
    if condition.len() > TAP_CONDITION_BYTES_MAX {
        let bytes = condition.len();
        let message =
            format!("the condition is too long ({bytes} bytes, at most {TAP_CONDITION_BYTES_MAX})");
        return Err(wrong(&message));
    }
    if condition.trim().is_empty() {
        return Err(wrong("the condition is empty"));
    }
    // On lines of its own: a comment in it ends there.
    let query = format!("SELECT 1 AS is_wanted FROM logs WHERE\n{condition}\n");
    let planned = plan.with_query(&query).map_err(|error| sql::Error {
        line: error
            .line
            .saturating_sub(1)
            .clamp(1, condition.lines().count()),
        ..error
    })?;
    if planned.query.branches().len() != 1 {
        return Err(wrong("this is more than a condition"));
    }
    Ok(planned)
}

/// Reasons quote the query.
fn without_secrets(plan: &PipelinePlan, mut traced: Traced) -> Traced {
    let redact = |text: &mut String| {
        *text = plan.config.transform.redact(text).into_owned();
    };
    traced
        .failed
        .iter_mut()
        .for_each(|it| redact(&mut it.reason));
    match &mut traced.verdict {
        Verdict::Kept(_) => {}
        Verdict::Filtered(unmet) => {
            for unmet in unmet {
                if let Some(sql::Outcome::Failed(why)) = &mut unmet.outcome {
                    redact(why);
                }
            }
        }
        Verdict::Crashed(reason) => redact(reason),
    }
    traced
}

impl Sample {
    /// The records as a batch.
    fn framed(&self, plan: &PipelinePlan) -> Framed {
        let mut frames = Frames::default();
        frames.records.clone_from(&self.records);
        let runs = self.sources.iter().map(|(records, facts)| {
            let path = facts.file_path.as_deref().map(Path::new);
            SourceRun {
                records: records.clone(),
                facts: trace::facts(plan, path, facts.pod.clone()),
            }
        });
        Framed {
            frames,
            buffers: vec![self.bytes.clone(), Bytes::new()],
            runs: runs.collect(),
            observed_ns: self.observed_ns,
            ..Framed::default()
        }
    }

    /// The records, of which nothing is found out yet.
    fn untraced(&self, plan: &PipelinePlan) -> Vec<Tapped> {
        let type_name = plan.config.inputs[self.input].type_name();
        let mut sources = self.sources.iter().peekable();
        let mut tapped = Vec::with_capacity(self.records.len());
        for (at, record) in (0_u32..).zip(&self.records) {
            while sources.next_if(|(records, _)| records.end <= at).is_some() {}
            let path = sources
                .peek()
                .and_then(|(_, facts)| facts.file_path.clone());
            tapped.push(Tapped {
                pipeline: plan.name.clone(),
                source: path.unwrap_or_else(|| type_name.to_owned()),
                observed_ns: self.observed_ns,
                raw: self.bytes.slice(record.start as usize..record.end as usize),
                is_truncated: record.flags.contains(Flags::TRUNCATED),
                traced: None,
            });
        }
        tapped
    }
}

#[cfg(test)]
mod tests;
