//! Composes the stages; decides when a checkpoint may move.
//!
//! Takes a checked config and gives a running [`Agent`]. Start reading in `pipeline.rs`, the one
//! file that names all stages; `delivery/in_flight.rs` has the argument that nothing is lost. Formats
//! nothing and never looks inside a record.

mod pipeline;

// The stages, in flow order.
mod delivery;
mod input;
mod process;

// What they share.
mod clock;
mod jobs;
mod labels;
mod metrics;
mod metrics_example;
mod pipeline_id;
mod plan;
mod reasons;
mod shared;
mod sizes;
mod source_lag;
mod wake;
mod watermark;

// The whole agent.
mod agent;
mod certificates;
mod checkpointer;
mod environment;
mod error;
mod fault;
mod health;
mod ledger;
mod overview;
mod pipelines;
mod safe_mode;
mod sources;

pub use agent::{Agent, Phase, Reload, Reloaded, Summary, View};
pub use delivery::dead_letters::left_dead_letters;
pub use delivery::delay::DelaySums;
pub use delivery::replay::{Replayed, replay};
pub use delivery::standing::OutputState;
pub use environment::{check_environment, incomplete, unreadable};
pub use error::Error;
pub use health::{Stage, Trouble};
pub use ledger::{OutputLedger, PipelineLedger, TruncatedUnread};
pub use metrics_example::example_metrics;
pub use overview::{InputOverview, OutputOverview, PipelineOverview};
pub use plan::{ColumnFrom, Fact, PipelinePlan, prepare};
pub use process::sample::{Sampled, sample};
pub use process::tap::{
    Sample, Subscription, TAP_CONDITION_BYTES_MAX, TapError, TapRequest, TapTracer, Tapped,
};
pub use process::trace::{
    FailedExpression, ReadValue, Row, RowBounds, Trace, TraceOptions, TraceSource, Traced, Tracer,
    Unmet, Verdict, trace,
};
pub use reasons::{Reason, ReasonKind};
pub use sizes::Sizes;
pub use source_lag::SourceLag;
pub use sources::{SourceGroup, SourceKey, SourceOrder, SourceTable};
