//! Test only: what the stages' tests share. It depends on no stage crate, so that each of them can use it; it never ships.
//!
//! * [`Collector`]: an OTLP server on loopback that answers what a script says and keeps what it
//!   accepted, over HTTP/1.1, HTTP/2 and gRPC, with and without TLS.
//! * [`Writer`]: a log file written, rotated, truncated and deleted as container runtimes do.
//! * [`PodsApi`]: as much of a Kubernetes API server as agents ask.
//! * [`Node`]: a [`PodsApi`] and an OTLP server that checks what an agent made of its pods, at full speed.
//! * [`data()`]: the path of real log files for tests, if this machine has them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on shall panic, one that is skipped shall say so"
)]

mod collector;
mod data;
mod node;
mod pods_api;
pub mod status;
mod tls;
mod writer;

pub use collector::{Answer, Collector, Gate, Judge, Protocol, Record, Request, records_of};
pub use data::data;
pub use node::{Expected, Node, Totals};
pub use pods_api::{PodsApi, pod};
pub use tls::TestTls;
pub use writer::{Stream, Writer};
