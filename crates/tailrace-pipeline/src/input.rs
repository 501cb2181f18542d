//! From files to batches: readers, the queues of their batches, and what a detached output reads again.

pub(crate) mod batch;
pub(crate) mod catch_up;
pub(crate) mod facts;
pub(crate) mod frame_config;
pub(crate) mod input_queue;
pub(crate) mod metrics;
pub(crate) mod pod_framing;
pub(crate) mod pods;
pub(crate) mod pool;
pub(crate) mod problem_log;
pub(crate) mod queues;
pub(crate) mod reader;
pub(crate) mod resume;
