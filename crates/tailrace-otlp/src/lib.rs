//! Query output to OTLP: columns to ExportLogsServiceRequest bytes, compressed; and reading what
//! comes back.
//!
//! Data flow: [`Part`]s and an [`Envelope`] -> [`Encoder`] -> [`Request`] -> [`Compressor`] ->
//! (sent elsewhere) -> [`read_response`]. An [`Encoding`] is one module: `otlp`, `ndjson` and `console` are there. Everything here is pure: no I/O, no clock, no thread. What becomes of
//! each column and type is written in `docs/otlp-mapping.md`.

mod any;
mod attribute;
mod cell;
mod compress;
mod console;
mod cut;
mod encoding;
mod environment;
mod field;
mod grpc;
mod keys;
mod lift;
mod ndjson;
mod nested;
mod number;
mod open;
mod otlp;
mod part;
mod plan;
mod presence;
mod response;
mod value;
mod wire;

pub use any::NESTING_MAX;
pub use compress::{Compression, Compressor, DecompressError, decompress};
pub use console::{ConsoleEncoder, ConsoleEncoding};
pub use cut::{Cut, cut_lines, extract, middle};
pub use encoding::{Encoder, Encoding};
pub use environment::{ResourceAttributesError, parse_resource_attributes};
pub use field::{Field, Mapping};
pub use grpc::{GRPC_HEADER_BYTES, grpc_frame_header, read_grpc_frame};
pub use ndjson::{NdjsonEncoder, NdjsonEncoding};
pub use otlp::{MALFORMED, ORIGINAL, OtlpEncoder, OtlpEncoding, TRANSFORM_FAILED, TRUNCATED};
pub use part::{Column, Envelope, FailedValue, Index, Part, Request, Run, Stats};
pub use response::{
    ExportResponse, Status, count_log_records, read_response, read_status, write_response,
    write_status,
};
pub use value::{SCHEMA_URL, SourceFacts, Value};
