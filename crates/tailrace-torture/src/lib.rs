//! The torture test: an agent as a process of its own, writers and rotators before it, a collector
//! with faults behind it, and a killer. [`run()`] executes a [`Plan`] and returns an [`Outcome`]: what was
//! lost, repeated, torn or is not explained, stream by stream. It drives the agent only from outside:
//! by its config, its files, signals and its admin endpoint.
//!
//! Every record can be generated again from its stream and sequence number, so that the judge compares
//! what arrives with what was written byte by byte and keeps one bit per record.
//!
//! What the verdict calls
//!
//! * **lost**: written, never arrived, never rejected by the collector, and the file was there to read.
//! * **destroyed**: never arrived, and `copytruncate` or a deletion took the bytes before they had
//!   arrived. Not the agent's fault; that it counts them is: what its counters do not
//!   cover is **unexplained**.
//! * **rejected**: named by the collector in a partial success.
//! * **dead-lettered**: in the agent's dead-letter file.
//! * **repeated**: arrived again without need. After an answer that may not have reached the agent (a
//!   half response, a closed listener, a reply later than its timeout) a repeat is right, and
//!   is counted apart as **excused**.
//! * **an end**: the end of a record that had arrived whole, marked as truncated; the file with its beginning was deleted.
//! * **torn**: arrived, but no record like it was ever written, and it is no such end.

#![allow(
    clippy::unwrap_used,
    reason = "a harness that cannot continue shall panic"
)]

mod agent;
mod dead_letters;
mod disk;
mod explained;
mod faults;
mod harness;
mod matrix;
mod plan;
mod record;
mod rng;
mod rotated;
mod run;
mod scenario;
mod sink;
mod stops;
mod stream;
mod table;
mod verdict;

pub use agent::{Agent, Kind};
pub use disk::DiskFault;
pub use faults::Fault;
pub use matrix::matrix;
pub use plan::{Plan, Stops};
pub use run::run;
pub use scenario::Scenario;
pub use stream::Rotation;
pub use verdict::{GroupVerdict, Outcome};
