//! What the project's chores share with whoever runs benches: where things are, how other programs are started, and the
//! OpenTelemetry Collector to compare with.
// This program's output is what it prints.
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub mod collector;
pub mod workspace;
