//! The reference encoder: prost and opentelemetry-proto building the message that ours writes straight to bytes.
//!
//! Takes the scanned columns of a regular shape (strings and numbers, no nesting), gives an ExportLogsServiceRequest as
//! docs/otlp-mapping.md says.

use arrow::array::Array as _;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::resource::v1::Resource;
use tailrace_model::json::Kind;
use tailrace_otlp::{Field, Mapping, SCHEMA_URL};
use tailrace_scan::{Scanned, StarColumn};

use crate::corpus::OBSERVED_NS;

/// The message of all rows.
pub fn message(scanned: &Scanned) -> ExportLogsServiceRequest {
    let mapping = Mapping::default();
    let columns: Vec<(&StarColumn, Option<Field>)> = scanned
        .star
        .iter()
        .map(|column| (column, mapping.field_of(&column.key)))
        .collect();
    let rows = 0..scanned.batch.num_rows();
    let scope_logs = ScopeLogs {
        scope: Some(InstrumentationScope {
            name: "tailrace".to_owned(),
            version: tailrace_otlp::OtlpEncoding::default().scope_version,
            ..InstrumentationScope::default()
        }),
        log_records: rows.map(|row| log_record(&columns, row)).collect(),
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(Resource::default()),
            scope_logs: vec![scope_logs],
            schema_url: SCHEMA_URL.to_owned(),
        }],
    }
}

fn log_record(columns: &[(&StarColumn, Option<Field>)], row: usize) -> LogRecord {
    let mut record = LogRecord {
        observed_time_unix_nano: OBSERVED_NS as u64,
        attributes: Vec::with_capacity(columns.len()),
        ..LogRecord::default()
    };
    for (column, field) in columns {
        if column.kinds.is_null(row) {
            continue;
        }
        let text = column.values.value(row);
        match field {
            Some(Field::Timestamp) => {
                let time_ns = tailrace_model::time::parse(text, 0).expect("the shape's times");
                record.time_unix_nano = time_ns as u64;
            }
            Some(Field::Severity) => {
                let number = tailrace_model::severity::number_of_text(text);
                record.severity_number = i32::from(number);
                record.severity_text = text.to_owned();
            }
            Some(Field::Body) => record.body = Some(any_value(column, row)),
            Some(Field::TraceId) => record.trace_id = bytes_of_hex(text),
            Some(Field::SpanId) => record.span_id = bytes_of_hex(text),
            _ => record.attributes.push(KeyValue {
                key: column.key.to_string(),
                value: Some(any_value(column, row)),
                ..KeyValue::default()
            }),
        }
    }
    record
}

fn any_value(column: &StarColumn, row: usize) -> AnyValue {
    let text = column.values.value(row);
    let value = match Kind::from_u8(column.kinds.value(row)) {
        Some(Kind::String) => Value::StringValue(text.to_owned()),
        Some(Kind::Integer) => Value::IntValue(text.parse().expect("it fits")),
        Some(Kind::Float) => Value::DoubleValue(text.parse().expect("it is a number")),
        other => panic!("{other:?} is not in the regular shapes"),
    };
    AnyValue { value: Some(value) }
}

fn bytes_of_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("hex digits") as u8;
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
