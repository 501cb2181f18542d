//! The Tailrace log agent: command line, own logs, admin endpoint, signals and wiring.
//!
//! This crate never parses a log byte: that is done in `tailrace-pipeline` and the crates below it.

pub mod commands;

pub mod blackhole;
mod config;
mod config_tests;
mod demo;
mod environment;
mod explain;
pub mod generate;
mod init;
mod ledger;
#[cfg(feature = "query")]
mod query;
mod queue;
mod ready;
mod reload;
mod replay;
mod run;
#[cfg(feature = "query")]
mod schema;
mod support_bundle;
mod tap;
mod top;
mod try_query;
mod validate;

mod admin;
mod admin_client;
pub mod cli;
mod diagnostics;
mod ending;
mod help;
mod inferred;
mod load;
pub mod logging;
#[cfg(test)]
mod metrics_page;
mod notify;
mod open_files;
mod otlp_json;
mod own_metrics;
mod printed;
mod resource;
mod sizing;
pub mod style;
pub mod sysinfo;
mod telemetry;
mod token;
mod variables;
