//! The outputs: one module for each type, and the delivery of requests, which all types share.
//!
//! A type of output implements [`Output`]: it has the options in the configuration, the [`Encoding`] of its requests, and
//! the [`Transport`](delivery::Transport) that makes one attempt and classifies the answer. [`OUTPUTS`] lists the types;
//! nothing outside of this crate knows one by name.
//!
//! [`delivery`] takes requests from a queue and resolves each as delivered, rejected, or dropped if the configuration says
//! so. A record is rejected only on evidence that the record itself is at fault.
//!
//! This crate knows nothing of files that are read, checkpoints or columns.
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
pub use http_client::endpoint::Endpoint;
pub use http_client::options::{Retry, Tls};
pub use output::{FileAttributes, Opened, Output, OutputType, Signal, SignalUrl};

/// Every type of output there is, in the order of the documentation.
pub const OUTPUTS: &[OutputType] = &[
    otlp::TYPE,
    http::TYPE,
    stdout::TYPE,
    file::TYPE,
    discard::TYPE,
];
