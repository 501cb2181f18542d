//! Composes the stages; decides when a checkpoint may move.
//!
//! Takes a checked config and gives a running [`Agent`]. Start reading in `pipeline.rs`, the one
//! file that names all stages; `delivery.rs` has the argument that nothing is lost. Formats
//! nothing and never looks inside a record.

mod pipeline;
mod pipeline_id;
mod pipelines;

mod plan;

mod batch;
mod catch_up;
mod clock;
mod credit;
mod pool;
mod queues;
mod reader;
mod resume;
mod wake;

mod facts;
mod input_queue;
mod order;
mod record_locations;

mod contain;
mod crashed;
mod encoding;
mod failpoint;
mod in_progress;
mod jobs;
mod kubernetes;
mod sample;
mod seen;
mod transform;
mod uid;
mod unfinished;
mod work;
mod worker;

mod dead_letters;
mod driver;
mod output_config;
mod outputs;
mod replay;
mod request;

mod checkpointer;
mod delivery;
mod watermark;

mod agent;
mod certificates;
mod delay;
mod environment;
mod error;
mod failed;
mod fault;
mod health;
mod ledger;
mod metrics;
mod safe_mode;
mod shared;
mod sizes;
mod source_lag;

pub use agent::{Agent, Phase, Reload, Reloaded, Summary, View};
pub use delay::DelaySums;
pub use environment::{check_environment, unreadable};
pub use error::Error;
pub use health::{Stage, Trouble};
pub use ledger::{OutputLedger, PipelineLedger, TruncatedUnread};
pub use plan::{ColumnFrom, Fact, PipelinePlan, prepare};
pub use replay::{Replayed, replay};
pub use sample::{Sampled, sample};
pub use sizes::Sizes;
pub use source_lag::SourceLag;
