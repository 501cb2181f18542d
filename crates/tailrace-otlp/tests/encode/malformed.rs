//! Not a byte of a malformed record is lost, in any encoding; and which of its members count.

use arrow::array::{BooleanArray, StringViewArray, UInt8Array};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use tailrace_otlp::{
    Column, ConsoleEncoder, ConsoleEncoding, Encoder, Envelope, Index, NdjsonEncoder,
    NdjsonEncoding, OtlpEncoder, OtlpEncoding, Part, Request,
};

use crate::fixed::{attributes, string, usual};

const RAW: &str = r#"{"msg":"own","v":bad}"#;

/// One malformed record with these columns: name, kind, text, and whether the query computed it.
fn encode(cells: &[(&str, u8, &str, bool)]) -> (LogRecord, String, String) {
    let arrays: Vec<_> = cells
        .iter()
        .map(|(_, kind, text, _)| {
            let text = (*kind != 0).then_some(*text);
            (
                StringViewArray::from(vec![text]),
                UInt8Array::from(vec![*kind]),
            )
        })
        .collect();
    let columns = cells
        .iter()
        .zip(&arrays)
        .map(|(&(name, _, _, is_computed), (values, kinds))| Column {
            name,
            values,
            kinds: (!is_computed).then_some(kinds),
            index: if is_computed {
                Index::Row
            } else {
                Index::Record
            },
        });
    let part = Part {
        rows: None,
        columns: columns.collect(),
        overflow: None,
        overflow_except: Vec::new(),
        failed: &[],
    };
    let (raw, malformed) = (
        StringViewArray::from(vec![RAW]),
        BooleanArray::from(vec![true]),
    );
    let envelope = Envelope {
        observed_ns: 7,
        records: 1,
        raw: Some(&raw),
        malformed: Some(&malformed),
        truncated: None,
        times: &[],
        streams: &[],
        uids: &[],
        runs: &[],
    };
    let parts = [part];
    let mut bytes = Vec::new();
    let mut keep = |request: &Request| bytes.clone_from(&request.bytes);
    OtlpEncoder::new(OtlpEncoding::default()).encode(&envelope, &parts, &mut keep);
    let request = ExportLogsServiceRequest::decode(&*bytes).unwrap();
    let record = request.resource_logs[0].scope_logs[0].log_records[0].clone();
    let mut keep = |request: &Request| bytes.clone_from(&request.bytes);
    NdjsonEncoder::new(NdjsonEncoding::default()).encode(&envelope, &parts, &mut keep);
    let line = String::from_utf8(bytes.clone()).unwrap();
    let mut keep = |request: &Request| bytes.clone_from(&request.bytes);
    ConsoleEncoder::new(ConsoleEncoding::default()).encode(&envelope, &parts, &mut keep);
    (record, line, String::from_utf8(bytes).unwrap())
}

fn body(record: &LogRecord) -> Option<Any> {
    record.body.clone().and_then(|body| body.value)
}

const MARK: (&str, Option<Any>) = ("tailrace.malformed", Some(Any::BoolValue(true)));

#[test]
fn a_record_without_a_body_of_its_own_has_its_raw_text() {
    let (record, line, shown) = encode(&[("a", 2, "1", false)]);
    assert_eq!(body(&record), string(RAW));
    assert_eq!(
        attributes(&record),
        [("a", Some(Any::IntValue(1))), MARK],
        "the raw text is sent once"
    );
    let escaped = serde_json::to_string(RAW).unwrap();
    assert_eq!(line, format!("{{\"body\":{escaped},\"a\":1}}\n"));
    assert!(shown.contains(RAW), "{shown}");
}

#[test]
fn a_record_with_a_body_of_its_own_has_its_raw_text_beside_it() {
    let (record, line, shown) = encode(&[("msg", 1, "own", false)]);
    assert_eq!(body(&record), string("own"));
    let original = ("log.record.original", string(RAW));
    assert_eq!(attributes(&record), [MARK, original]);
    let escaped = serde_json::to_string(RAW).unwrap();
    let expect = format!("{{\"log.record.original\":{escaped},\"msg\":\"own\"}}\n");
    assert_eq!(line, expect);
    assert!(shown.contains("log.record.original="), "{shown}");
}

#[test]
fn a_null_is_no_body() {
    let (record, line, _) = encode(&[("msg", 0, "", false)]);
    assert_eq!(body(&record), string(RAW));
    assert_eq!(attributes(&record), [("msg", None), MARK]);
    let escaped = serde_json::to_string(RAW).unwrap();
    assert_eq!(line, format!("{{\"body\":{escaped},\"msg\":null}}\n"));
    // A member of that name is there already.
    let (_, line, _) = encode(&[("body", 0, "", false)]);
    let expect = format!("{{\"log.record.original\":{escaped},\"body\":null}}\n");
    assert_eq!(line, expect);
}

#[test]
fn what_the_query_masks_stays_masked() {
    let (record, line, shown) = encode(&[("message", 1, "***", true)]);
    assert_eq!(body(&record), string("***"));
    assert_eq!(attributes(&record), [MARK]);
    assert_eq!(line, "{\"message\":\"***\"}\n");
    assert!(!shown.contains("own"), "{shown}");
}

#[test]
fn the_raw_text_that_is_selected_is_not_sent_twice() {
    let (record, line, _) = encode(&[("body", 1, RAW, false)]);
    assert_eq!(body(&record), string(RAW));
    assert_eq!(attributes(&record), [MARK]);
    let escaped = serde_json::to_string(RAW).unwrap();
    assert_eq!(line, format!("{{\"body\":{escaped}}}\n"));
}

#[test]
fn no_key_of_a_record_hides_what_is_said_about_it() {
    let (record, line, _) = encode(&[
        ("tailrace.malformed", 4, "false", false),
        ("msg", 1, "own", false),
        ("log.record.original", 1, "forged", false),
    ]);
    let original = ("log.record.original", string(RAW));
    assert_eq!(attributes(&record), [MARK, original]);
    let escaped = serde_json::to_string(RAW).unwrap();
    let expect = format!(
        "{{\"log.record.original\":{escaped},\"tailrace.malformed\":false,\"msg\":\"own\"}}\n"
    );
    assert_eq!(line, expect);
}

#[test]
fn what_the_query_computes_stays_under_any_name() {
    let (record, line, _) = encode(&[
        ("msg", 1, "own", false),
        ("log.record.original", 1, "***", true),
        ("tailrace.malformed", 1, "no", true),
    ]);
    let original = ("log.record.original", string("***"));
    assert_eq!(
        attributes(&record),
        [original, ("tailrace.malformed", string("no"))]
    );
    assert!(!line.contains("bad"), "{line}");
}

#[test]
fn numbers_that_are_not_finite_are_doubles_and_strings_in_lines() {
    let nested = r#"{"a":[NaN, 1,-Infinity],"NaN":"Infinity \" NaN","z":Infinity}"#;
    let (record, line, _) = encode(&[
        ("n", 3, "NaN", false),
        ("i", 3, "Infinity", false),
        ("m", 3, "-Infinity", false),
        ("o", 5, nested, false),
    ]);
    let double = |at: usize| match record.attributes[at].value.clone().unwrap().value {
        Some(Any::DoubleValue(value)) => value,
        other => panic!("{other:?}"),
    };
    assert!(double(0).is_nan());
    assert_eq!((double(1), double(2)), (f64::INFINITY, f64::NEG_INFINITY));
    let Some(Any::KvlistValue(object)) = record.attributes[3].value.clone().unwrap().value else {
        panic!("no object");
    };
    let z = object.values[2].value.clone().unwrap().value;
    assert_eq!(z, Some(Any::DoubleValue(f64::INFINITY)));
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    let expect = serde_json::json!({
        "body": RAW, "n": "NaN", "i": "inf", "m": "-inf",
        "o": {"a": ["NaN", 1, "-inf"], "NaN": "Infinity \" NaN", "z": "inf"},
    });
    assert_eq!(line, expect);
}

#[test]
fn of_candidates_the_first_that_is_there_and_not_null_counts() {
    let null = |name| (name, 0, String::new());
    let text = |name, text: &str| (name, 1, text.to_owned());
    let (record, _) = usual(&[
        null("level"),
        text("severity", "ERROR"),
        null("message"),
        text("msg", "m"),
        null("timestamp"),
        text("ts", "1970-01-01T00:00:01Z"),
    ]);
    assert_eq!(record.severity_number, 17);
    assert_eq!(body(&record), string("m"));
    assert_eq!(record.time_unix_nano, 1_000_000_000);
    let nulls = ["level", "message", "timestamp"].map(|name| (name, None));
    assert_eq!(attributes(&record), nulls);
}

#[test]
fn a_severity_number_is_one_however_it_is_written() {
    for (kind, number, expect) in [
        (2, "9", 9),
        (3, "9.0", 9),
        (3, "90e-1", 9),
        (1, "9", 9),
        (1, "9.0", 9),
        (3, "9.5", 0),
        (1, "+9", 0),
        (1, " 9", 0),
        (3, "NaN", 0),
        (2, "25", 0),
    ] {
        let (record, stats) = usual(&[("severity_number", kind, number.to_owned())]);
        assert_eq!(record.severity_number, expect, "{number}");
        assert_eq!(stats.unparsable_fields, u64::from(expect == 0), "{number}");
    }
}
