//! The number of log records in an `ExportLogsServiceRequest`.
//!
//! The messages here have only the fields that lead to the records. prost checks and skips all others, so that
//! counting creates no value of a record and costs little beside decompressing the request.

use prost::Message;

/// Counts the log records of an encoded request; `None` if the bytes are not such a request.
pub(super) fn count_log_records(request: &[u8]) -> Option<u64> {
    let request = Request::decode(request).ok()?;
    let scopes = request.resource_logs.iter().flat_map(|of| &of.scope_logs);
    Some(scopes.map(|scope| scope.log_records.len() as u64).sum())
}

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_logs: Vec<ResourceLogs>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceLogs {
    #[prost(message, repeated, tag = "2")]
    scope_logs: Vec<ScopeLogs>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeLogs {
    #[prost(message, repeated, tag = "2")]
    log_records: Vec<LogRecord>,
}

/// Has no size, so that a vector of it is a count.
#[derive(Clone, PartialEq, Message)]
struct LogRecord {}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
    use opentelemetry_proto::tonic::logs::v1 as full;

    use super::*;

    #[test]
    fn records_are_counted_in_all_groups_and_other_fields_are_skipped() {
        let attribute = KeyValue {
            key: "a".to_owned(),
            value: Some(AnyValue {
                value: Some(any_value::Value::IntValue(7)),
            }),
            ..KeyValue::default()
        };
        let record = full::LogRecord {
            time_unix_nano: 1,
            severity_text: "INFO".to_owned(),
            attributes: vec![attribute],
            trace_id: vec![1; 16],
            ..full::LogRecord::default()
        };
        let scope = |records: usize| full::ScopeLogs {
            log_records: vec![record.clone(); records],
            schema_url: "s".to_owned(),
            ..full::ScopeLogs::default()
        };
        let group = |scopes: &[usize]| full::ResourceLogs {
            scope_logs: scopes.iter().map(|records| scope(*records)).collect(),
            schema_url: "s".to_owned(),
            ..full::ResourceLogs::default()
        };
        let request = ExportLogsServiceRequest {
            resource_logs: vec![group(&[2, 0, 3]), group(&[]), group(&[4])],
        };
        assert_eq!(count_log_records(&request.encode_to_vec()), Some(9));
        assert_eq!(count_log_records(b""), Some(0));
    }

    #[test]
    fn what_is_no_request_is_not_counted() {
        for text in ["<html></html>", "{}", "OK", "not found\n"] {
            assert_eq!(count_log_records(text.as_bytes()), None, "{text}");
        }
        // A group that ends early, a record that does, a group that is a number.
        for bytes in [
            &[0x0a, 0x05, 0x12][..],
            &[0x0a, 0x05, 0x12, 0x03, 0x12, 0x01, 0x08],
            &[0x08, 0x01],
        ] {
            assert_eq!(count_log_records(bytes), None, "{bytes:?}");
        }
        assert_eq!(count_log_records(&[0x13; 100_000]), None, "deep groups");
    }
}
