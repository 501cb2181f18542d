//! Values that the query could not compute: they are there, empty, and nothing of the record takes their place.

use arrow::array::{StringViewArray, UInt8Array};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use tailrace_otlp::{
    Column, ConsoleEncoder, ConsoleEncoding, Encoder, Envelope, FailedValue, Index, NdjsonEncoder,
    NdjsonEncoding, OtlpEncoder, OtlpEncoding, Part, Request,
};

use crate::fixed::{attributes, string};

const TRUE: Option<Any> = Some(Any::BoolValue(true));
const SECRET: &str = "card 4111111111111111";

/// Two plain-text records with another key that holds the secret, too; the query computes `name`, and fails for the
/// first of them.
fn encode(
    name: &str,
    encode: impl FnOnce(&Envelope<'_>, &[Part<'_>], &mut dyn FnMut(&Request)),
) -> Vec<u8> {
    let raw = StringViewArray::from(vec![SECRET, "card ok"]);
    let computed = StringViewArray::from(vec![None, Some("card [masked]")]);
    let (log, kinds) = (
        StringViewArray::from(vec![SECRET, "ok"]),
        UInt8Array::from(vec![1, 1]),
    );
    let column = |name, values, kinds, index| Column {
        name,
        values,
        kinds,
        index,
    };
    let part = Part {
        rows: None,
        columns: vec![
            column(name, &computed, None, Index::Row),
            column("body", &log, Some(&kinds), Index::Record),
        ],
        overflow: None,
        overflow_except: Vec::new(),
        failed: &[FailedValue { row: 0, column: 0 }],
    };
    let envelope = Envelope {
        observed_ns: 7,
        records: 2,
        raw: Some(&raw),
        malformed: None,
        truncated: None,
        times: &[],
        streams: &[],
        uids: &[],
        runs: &[],
    };
    let mut bytes = Vec::new();
    encode(&envelope, &[part], &mut |request| {
        bytes.extend_from_slice(&request.bytes)
    });
    bytes
}

fn records(name: &str) -> Vec<LogRecord> {
    let bytes = encode(name, |envelope, parts, emit| {
        OtlpEncoder::new(OtlpEncoding::default()).encode(envelope, parts, emit);
    });
    let request = ExportLogsServiceRequest::decode(&*bytes).unwrap();
    let scopes = request
        .resource_logs
        .into_iter()
        .flat_map(|group| group.scope_logs);
    scopes.flat_map(|scope| scope.log_records).collect()
}

#[test]
fn a_body_that_failed_is_empty_and_the_record_says_so() {
    let [failed, other] = <[LogRecord; 2]>::try_from(records("message")).unwrap();
    // What the query selects as `body` it selects by itself: it stays an attribute.
    let expect = [
        ("body", string(SECRET)),
        ("tailrace.transform_failed", TRUE),
    ];
    assert_eq!(attributes(&failed), expect);
    assert_eq!(failed.body.map(|body| body.value), Some(None));
    assert_eq!(attributes(&other), [("body", string("ok"))]);
    assert_eq!(
        other.body.and_then(|body| body.value),
        string("card [masked]")
    );
}

#[test]
fn an_attribute_that_failed_is_empty() {
    let failed = records("x").swap_remove(0);
    let expect = [("x", None), ("tailrace.transform_failed", TRUE)];
    assert_eq!(attributes(&failed), expect);
}

#[test]
fn a_severity_that_failed_is_not_that_of_another_key() {
    let failed = records("level").swap_remove(0);
    assert_eq!(
        (failed.severity_number, failed.severity_text.as_str()),
        (0, "")
    );
}

#[test]
fn lines_have_null_in_its_place() {
    let lines = encode("message", |envelope, parts, emit| {
        NdjsonEncoder::new(NdjsonEncoding::default()).encode(envelope, parts, emit);
    });
    let expect = format!(
        "{{\"message\":null,\"body\":\"{SECRET}\"}}\n{{\"message\":\"card [masked]\",\"body\":\"ok\"}}\n"
    );
    assert_eq!(String::from_utf8(lines).unwrap(), expect);
    let lines = encode("message", |envelope, parts, emit| {
        ConsoleEncoder::new(ConsoleEncoding::default()).encode(envelope, parts, emit);
    });
    let lines = String::from_utf8(lines).unwrap();
    assert!(
        lines
            .lines()
            .next()
            .unwrap()
            .contains("tailrace.transform_failed"),
        "{lines}"
    );
}
