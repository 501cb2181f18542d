//! Query output to OTLP: columns to ExportLogsServiceRequest bytes, compressed.
//!
//! Data flow: [`Part`]s and an [`Envelope`] -> [`Encoder`] -> [`Request`] -> [`Compressor`] ->
//! (sent elsewhere). An [`Encoding`] is one module: `otlp`, `ndjson` and `console` are there. The agent's own logs and metrics
//! have two simple encoders beside them: [`encode_log_lines`] and [`encode_metrics`]. Everything here is pure: no I/O, no
//! clock, no thread. What becomes of each column and type is written in `docs/otlp-mapping.md`.

mod any;
mod attribute;
mod cell;
mod compress;
mod console;
mod cut;
mod encoding;
mod environment;
mod field;
mod keys;
mod lift;
mod log_line;
mod metric;
mod ndjson;
mod nested;
mod number;
mod open;
mod origin;
mod otlp;
mod part;
mod plan;
mod value;
mod value_json;
mod wire;

pub use any::NESTING_MAX;
pub use compress::{Choice, Compression, Compressor, DecompressError, decompress};
pub use console::{ConsoleEncoder, ConsoleEncoding};
pub use cut::{Cut, cut_lines, extract, middle};
pub use encoding::{Encoder, Encoding};
pub use environment::{ResourceAttributesError, parse_resource_attributes};
pub use field::{Field, Mapping};
pub use log_line::{LogLine, encode_log_lines};
pub use metric::{
    HistogramPoint, Metric, MetricsRequest, Number, NumberPoint, Period, Points, encode_metrics,
};
pub use ndjson::{NdjsonEncoder, NdjsonEncoding};
pub use origin::Origin;
pub use otlp::{MALFORMED, ORIGINAL, OtlpEncoder, OtlpEncoding, TRANSFORM_FAILED, TRUNCATED};
pub use part::{Column, Envelope, FailedValue, Index, Part, Request, Run, Stats};
pub use value::{SCHEMA_URL, SourceFacts, Value};
pub use value_json::value_json;
