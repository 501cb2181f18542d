//! The agent's own log lines to ExportLogsServiceRequests. A few lines a second at most: simple code, which allocates.

use crate::origin::{ITEMS, Origin};
use crate::value::{LOG_RECORD_ATTRIBUTES, Value, push_attribute};
use crate::wire::{fixed64_tag, push_bytes, push_varint, varint_tag};

/// One line of the agent's own log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogLine {
    /// When it was written, in nanoseconds since 1970.
    pub time_unix_nano: u64,
    /// OTLP's number of its level, 1 to 24.
    pub severity_number: u8,
    /// Its level as the log has it.
    pub severity_text: &'static str,
    /// The message.
    pub body: String,
    /// Its fields, with unique names.
    pub attributes: Vec<(String, Value)>,
}

/// One request with the first of these lines: as many as fit into `bytes_max`, and at least one if there is any.
/// Returns the request and how many lines it has.
pub fn encode_log_lines(
    origin: &Origin,
    lines: impl IntoIterator<Item = LogLine>,
    bytes_max: usize,
) -> (Vec<u8>, usize) {
    let (mut items, mut count) = (Vec::new(), 0);
    for line in lines {
        let len = items.len();
        push_bytes(&mut items, ITEMS, &log_record(&line));
        if count > 0 && origin.request_len(items.len()) > bytes_max {
            items.truncate(len);
            break;
        }
        count += 1;
    }
    (origin.request(&items), count)
}

/// A LogRecord.
fn log_record(line: &LogLine) -> Vec<u8> {
    let mut record = Vec::new();
    // The line is observed when it is written.
    for field in [1, 11] {
        record.push(fixed64_tag(field));
        record.extend(line.time_unix_nano.to_le_bytes());
    }
    record.push(varint_tag(2));
    push_varint(&mut record, u64::from(line.severity_number));
    push_bytes(&mut record, 3, line.severity_text.as_bytes());
    let mut body = Vec::new();
    push_bytes(&mut body, 1, line.body.as_bytes());
    push_bytes(&mut record, 5, &body);
    for (name, value) in &line.attributes {
        push_attribute(&mut record, LOG_RECORD_ATTRIBUTES, name, value);
    }
    record
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
    use opentelemetry_proto::tonic::resource::v1::Resource;
    use prost::Message;

    use super::*;
    use crate::SCHEMA_URL;

    fn any(value: Any) -> Option<AnyValue> {
        Some(AnyValue { value: Some(value) })
    }

    fn attribute(key: &str, value: Any) -> KeyValue {
        KeyValue {
            key: key.to_owned(),
            value: any(value),
            ..KeyValue::default()
        }
    }

    fn line(body: &str) -> LogLine {
        LogLine {
            time_unix_nano: u64::MAX,
            severity_number: 13,
            severity_text: "WARN",
            body: body.to_owned(),
            attributes: vec![
                ("target".to_owned(), "tailrace::x".into()),
                ("bytes".to_owned(), (-7).into()),
                ("share".to_owned(), Value::Double(0.25)),
                ("is_last".to_owned(), false.into()),
            ],
        }
    }

    fn origin() -> Origin {
        let resource = [("service.name".to_owned(), Value::from("tailrace"))];
        Origin::new(&resource, "1.2.3")
    }

    #[test]
    fn lines_are_what_an_independent_encoder_makes_of_them() {
        let record = |body: &str| LogRecord {
            time_unix_nano: u64::MAX,
            observed_time_unix_nano: u64::MAX,
            severity_number: 13,
            severity_text: "WARN".to_owned(),
            body: any(Any::StringValue(body.to_owned())),
            attributes: vec![
                attribute("target", Any::StringValue("tailrace::x".to_owned())),
                attribute("bytes", Any::IntValue(-7)),
                attribute("share", Any::DoubleValue(0.25)),
                attribute("is_last", Any::BoolValue(false)),
            ],
            ..LogRecord::default()
        };
        let expected = ExportLogsServiceRequest {
            resource_logs: vec![ResourceLogs {
                resource: Some(Resource {
                    attributes: vec![attribute(
                        "service.name",
                        Any::StringValue("tailrace".to_owned()),
                    )],
                    ..Resource::default()
                }),
                scope_logs: vec![ScopeLogs {
                    scope: Some(InstrumentationScope {
                        name: "tailrace".to_owned(),
                        version: "1.2.3".to_owned(),
                        ..InstrumentationScope::default()
                    }),
                    log_records: vec![record("a\n\u{e9}"), record("")],
                    schema_url: SCHEMA_URL.to_owned(),
                }],
                schema_url: SCHEMA_URL.to_owned(),
            }],
        };
        let (bytes, count) = encode_log_lines(&origin(), [line("a\n\u{e9}"), line("")], 1 << 20);
        assert_eq!(count, 2);
        assert_eq!(ExportLogsServiceRequest::decode(&*bytes).unwrap(), expected);
    }

    #[test]
    fn a_request_is_no_longer_than_asked_unless_one_line_is() {
        let lines = || (0..100).map(|n| line(&format!("{n} {}", "x".repeat(1000))));
        let (bytes, count) = encode_log_lines(&origin(), lines(), 10_000);
        assert!(bytes.len() <= 10_000, "{}", bytes.len());
        assert!((7..10).contains(&count), "{count}");
        let decoded = ExportLogsServiceRequest::decode(&*bytes).unwrap();
        let records = &decoded.resource_logs[0].scope_logs[0].log_records;
        assert_eq!(records.len(), count);
        let (bytes, count) = encode_log_lines(&origin(), lines(), 10);
        assert!(count == 1 && bytes.len() > 1000);
        let (_, count) = encode_log_lines(&origin(), [], 10);
        assert_eq!(count, 0);
    }
}
