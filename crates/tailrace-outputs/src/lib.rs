//! Where records go: one module for each type of output, and how requests are delivered to all of them.
//!
//! A type of output is an [`Output`]: its options as they stand in the configuration, the [`Encoding`] of its requests,
//! and the [`Transport`](delivery::Transport) that sends one once and says what became of it. [`OUTPUTS`] lists the types;
//! nothing outside of this crate knows one by name.
//!
//! Everything else is the same for all of them and is found in [`delivery`]: requests come from a queue and each is
//! resolved with what became of it: delivered, rejected, or given up where the configuration says so. A record is
//! rejected only on evidence that it is at fault itself.
//!
//! This crate never knows about files that are read, checkpoints or columns.
//!
//! [`Encoding`]: tailrace_otlp::Encoding

#[macro_use]
extern crate tailrace_schema;

pub mod delivery;
mod discard;
mod error;
mod file;
mod http;
mod http_client;
mod local;
pub mod otlp;
mod output;
mod stdout;
mod text;

pub use error::Error;
pub use http_client::options::{Retry, Tls};
pub use output::{FileAttributes, Opened, Output, OutputType};

/// Every type of output there is, in the order of the documentation.
pub const OUTPUTS: &[OutputType] = &[
    otlp::TYPE,
    http::TYPE,
    stdout::TYPE,
    file::TYPE,
    discard::TYPE,
];
