//! The Tailrace log agent: command line, own logs, admin endpoint, signals and wiring.
//!
//! Takes arguments, environment and signals; gives an exit code. Never parses a log byte: what a
//! pipeline does with one is in `tailrace-pipeline` and below.

pub mod commands;

pub mod blackhole;
mod demo;
mod environment;
mod explain;
pub mod generate;
mod ledger;
mod queue;
mod ready;
mod reload;
mod replay;
mod run;
mod validate;

mod admin;
mod admin_client;
pub mod cli;
mod load;
pub mod logging;
mod printed;
mod resource;
mod sizing;
pub mod sysinfo;
mod token;
