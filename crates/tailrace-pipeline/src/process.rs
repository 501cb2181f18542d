//! From batches to requests: workers frame, scan, transform and encode, and contain what goes wrong.

pub(crate) mod contain;
mod crash;
pub(crate) mod encode;
pub(crate) mod failed;
pub(crate) mod failpoint;
pub(crate) mod in_progress;
pub(crate) mod metrics;
pub(crate) mod minute;
pub(crate) mod problems;
pub(crate) mod sample;
pub(crate) mod seen;
pub(crate) mod trace;
pub(crate) mod transform;
pub(crate) mod uid;
pub(crate) mod unfinished;
pub(crate) mod work;
pub(crate) mod worker;
