//! Query output to OTLP: columns to ExportLogsServiceRequest bytes, compressed; and reading what
//! comes back.
//!
//! Data flow: [`Part`]s and an [`Envelope`] -> [`Encoder`] -> [`Request`] -> [`Compressor`] ->
//! (sent elsewhere) -> [`read_response`]. [`NdjsonEncoder`] and [`ConsoleEncoder`] take the same
//! and give lines of text. Everything here is pure: no I/O, no clock, no thread. What becomes of
//! each column and type is written in `docs/otlp-mapping.md`.

mod any;
mod attribute;
mod cell;
mod compress;
mod console;
mod cut;
mod encoder;
mod environment;
mod field;
mod grpc;
mod keys;
mod lift;
mod ndjson;
mod nested;
mod number;
mod open;
mod part;
mod plan;
mod presence;
mod response;
mod value;
mod wire;

pub use any::NESTING_MAX;
pub use compress::{Compression, Compressor, DecompressError, decompress};
pub use console::{ConsoleConfig, ConsoleEncoder};
pub use cut::{Cut, extract, middle};
pub use encoder::{Config, Encoder, MALFORMED, ORIGINAL, TRANSFORM_FAILED, TRUNCATED};
pub use environment::{ResourceAttributesError, parse_resource_attributes};
pub use field::{Field, Mapping};
pub use grpc::{GRPC_HEADER_BYTES, grpc_frame_header, read_grpc_frame};
pub use ndjson::{NdjsonConfig, NdjsonEncoder};
pub use part::{Column, Envelope, FailedValue, Index, Part, Request, Run, Stats};
pub use response::{
    ExportResponse, Status, count_log_records, read_response, read_status, write_response,
    write_status,
};
pub use value::{SCHEMA_URL, SourceFacts, Value};
