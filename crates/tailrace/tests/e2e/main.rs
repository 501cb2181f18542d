//! End to end: the built binary, real files, and servers on loopback. One test program, so that
//! the binary is started as a user starts it and everything is linked once.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;
mod support_bundle;
mod terminal;

mod admin_api;
mod admin_socket;
mod agent;
mod attack;
mod bad_input;
mod command_line;
mod config_commands;
mod config_tests;
mod crash;
mod data_dir;
mod detach;
mod disk;
mod first_start;
mod health;
mod http_output;
mod inputs;
mod kubernetes;
mod multiline;
mod notify;
mod oracle;
mod order;
mod page;
mod query;
mod query_archive;
mod query_bounds;
mod query_follow;
mod query_plot;
mod query_progress;
mod query_prompt;
mod queue;
mod real_collector;
mod refused;
mod reload;
mod reload_outputs;
mod safe_mode;
mod tap;
mod telemetry;
mod torture;
mod truncation;
mod try_query;
