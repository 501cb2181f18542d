//! Rules with their exact figures, one by one.

use std::sync::Arc;

use arrow::array::{Array, StringViewArray, UInt8Array};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value::Value as Any};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use tailrace_otlp::{
    Column, Encoder, Envelope, Index, Mapping, NESTING_MAX, OtlpEncoder, OtlpEncoding, Part, Stats,
};

/// An open column of one record.
type Cell = (&'static str, u8, String);

fn text(name: &'static str, value: &str) -> Cell {
    (name, 1, value.to_owned())
}

fn integer(name: &'static str, value: &str) -> Cell {
    (name, 2, value.to_owned())
}

fn encode(
    cells: &[Cell],
    overflow: Option<&str>,
    times: &[i64],
    mapping: Mapping,
) -> (LogRecord, Stats) {
    let arrays: Vec<_> = cells
        .iter()
        .map(|(_, kind, value)| {
            (
                StringViewArray::from(vec![value.as_str()]),
                UInt8Array::from(vec![*kind]),
            )
        })
        .collect();
    let columns = cells
        .iter()
        .zip(&arrays)
        .map(|((name, ..), (values, kinds))| Column {
            name,
            values,
            kinds: Some(kinds),
            index: Index::Record,
        });
    let overflow = overflow.map(|text| StringViewArray::from(vec![text]));
    let part = Part {
        rows: None,
        columns: columns.collect(),
        overflow: overflow.as_ref(),
        overflow_except: Vec::new(),
        failed: &[],
    };
    let envelope = Envelope {
        observed_ns: 7,
        records: 1,
        raw: None,
        malformed: None,
        truncated: None,
        times,
        streams: &[],
        uids: &[],
        runs: &[],
    };
    let mut records = Vec::new();
    let stats = OtlpEncoder::new(OtlpEncoding {
        mapping,
        ..OtlpEncoding::default()
    })
    .encode(&envelope, &[part], &mut |request| {
        let decoded = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
        let scopes = decoded
            .resource_logs
            .into_iter()
            .flat_map(|group| group.scope_logs);
        records.extend(scopes.flat_map(|scope| scope.log_records));
    });
    let [record] = <[LogRecord; 1]>::try_from(records).unwrap();
    (record, stats)
}

pub(crate) fn usual(cells: &[Cell]) -> (LogRecord, Stats) {
    encode(cells, None, &[], Mapping::default())
}

pub(crate) fn attributes(record: &LogRecord) -> Vec<(&str, Option<Any>)> {
    record
        .attributes
        .iter()
        .map(|a| (a.key.as_str(), a.value.clone().unwrap().value))
        .collect()
}

pub(crate) fn string(text: &str) -> Option<Any> {
    Some(Any::StringValue(text.to_owned()))
}

#[test]
fn a_usual_record() {
    let (record, stats) = usual(&[
        text("time", "2026-01-02T03:04:05.678901234+01:00"),
        text("level", "Warning"),
        text("msg", "hello"),
        text("trace_id", "0AF7651916cd43dd8448eb211c80319c"),
        text("span_id", "b7ad6b7169203331"),
        text("trace_flags", "01"),
        text("event.name", "login"),
        integer("status", "200"),
        text("code", "200"),
        ("ratio", 3, "0.50".into()),
        ("ok", 4, "true".into()),
        ("nothing", 0, String::new()),
        ("http", 5, r#"{"tags":["a",1],"none":null,"tags":2}"#.into()),
    ]);
    assert_eq!(record.time_unix_nano, 1_767_319_445_678_901_234);
    assert_eq!(record.observed_time_unix_nano, 7);
    assert_eq!(
        (record.severity_number, record.severity_text.as_str()),
        (13, "Warning")
    );
    assert_eq!(
        record.body,
        Some(AnyValue {
            value: string("hello")
        })
    );
    assert_eq!(
        record.trace_id,
        0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c_u128.to_be_bytes()
    );
    assert_eq!(record.span_id, 0xb7ad_6b71_6920_3331_u64.to_be_bytes());
    assert_eq!((record.flags, record.event_name.as_str()), (1, "login"));
    let attributes = attributes(&record);
    assert_eq!(
        attributes[..5],
        [
            ("status", Some(Any::IntValue(200))),
            ("code", string("200")),
            ("ratio", Some(Any::DoubleValue(0.5))),
            ("ok", Some(Any::BoolValue(true))),
            ("nothing", None),
        ]
    );
    let Some(Any::KvlistValue(http)) = &attributes[5].1 else {
        panic!("{attributes:?}")
    };
    assert_eq!(
        http.values
            .iter()
            .map(|entry| entry.key.as_str())
            .collect::<Vec<_>>(),
        ["tags", "none"]
    );
    assert_eq!(http.values[1].value, Some(AnyValue { value: None }));
    assert_eq!(
        stats,
        Stats {
            log_records: 1,
            requests: 1,
            bytes: stats.bytes,
            duplicate_keys: 1,
            ..Stats::default()
        }
    );
}

#[test]
fn times_of_every_magnitude_are_exact() {
    for (cell, ns) in [
        (integer("ts", "1767323045"), 1_767_323_045_000_000_000),
        (integer("ts", "1767323045678"), 1_767_323_045_678_000_000),
        (integer("ts", "1767323045678901"), 1_767_323_045_678_901_000),
        (
            integer("ts", "1767323045678901234"),
            1_767_323_045_678_901_234,
        ),
        (
            ("ts", 3, "1767323045.678901234".into()),
            1_767_323_045_678_901_234,
        ),
        (
            text("ts", "1767323045.678901234"),
            1_767_323_045_678_901_234,
        ),
        (
            text("ts", "2026-01-02 03:04:05.678901234Z"),
            1_767_323_045_678_901_234,
        ),
    ] {
        let (record, stats) = usual(std::slice::from_ref(&cell));
        assert_eq!(record.time_unix_nano, ns, "{cell:?}");
        assert!(record.attributes.is_empty());
        assert_eq!(stats.unparsable_timestamps, 0);
    }
}

#[test]
fn a_time_that_is_none_stays_and_the_runtimes_time_counts() {
    for cell in [
        text("ts", "yesterday"),
        text("ts", ""),
        text("ts", "1969-12-31T23:59:59Z"),
        integer("ts", "0"),
        integer("ts", "-5"),
        ("ts", 4, "true".into()),
        ("ts", 5, "{}".into()),
    ] {
        for (times, ns) in [(&[][..], 0), (&[42][..], 42)] {
            let (record, stats) =
                encode(std::slice::from_ref(&cell), None, times, Mapping::default());
            assert_eq!(
                (record.time_unix_nano, stats.unparsable_timestamps),
                (ns, 1),
                "{cell:?}"
            );
            assert_eq!(record.attributes.len(), 1, "{cell:?}");
        }
    }
    // Present and null is not a time that failed.
    let (record, stats) = encode(
        &[("ts", 0, String::new()), text("t", "1767323045")],
        None,
        &[],
        Mapping::default(),
    );
    assert_eq!(
        (record.time_unix_nano, stats.unparsable_timestamps),
        (1_767_323_045_000_000_000, 0)
    );
    assert_eq!(attributes(&record), [("ts", None)]);
}

#[test]
fn precedence_is_that_of_the_lists() {
    let (record, _) = usual(&[
        text("msg", "second"),
        text("message", "first"),
        text("t", "1767323046"),
        text("timestamp", "1767323045"),
        text("severity", "error"),
        text("level", "info"),
        integer("severity_number", "11"),
    ]);
    assert_eq!(
        record.body,
        Some(AnyValue {
            value: string("first")
        })
    );
    assert_eq!(record.time_unix_nano, 1_767_323_045_000_000_000);
    assert_eq!(
        (record.severity_text.as_str(), record.severity_number),
        ("info", 11)
    );
    assert_eq!(
        attributes(&record),
        [
            ("msg", string("second")),
            ("t", string("1767323046")),
            ("severity", string("error"))
        ]
    );
}

#[test]
fn numeric_levels_keep_their_text() {
    for (cell, shown, number) in [
        (integer("level", "30"), "30", 9),
        (text("level", "50"), "50", 17),
        (integer("level", "4"), "4", 13),
        (integer("level", "35"), "35", 0),
        (("level", 3, "30.0".into()), "30.0", 0),
    ] {
        let (record, _) = usual(&[cell]);
        assert_eq!(
            (record.severity_text.as_str(), record.severity_number),
            (shown, number)
        );
        assert!(record.attributes.is_empty());
    }
    for number in ["0", "25", "-1"] {
        let (record, stats) = usual(&[integer("severity_number", number), text("level", "info")]);
        assert_eq!((record.severity_number, stats.unparsable_fields), (9, 1));
        assert_eq!(record.attributes.len(), 1);
    }
}

#[test]
fn ids_that_are_none_stay() {
    for cell in [
        text("trace_id", "00000000000000000000000000000000"),
        text("trace_id", "0af7651916cd43dd8448eb211c80319"),
        text("trace_id", "0af7651916cd43dd8448eb211c80319g"),
        text("trace_id", "+af7651916cd43dd8448eb211c80319c"),
        text("spanId", "0000000000000000"),
        text("trace_flags", "100"),
        integer("trace_flags", "256"),
        integer("trace_id", "12"),
    ] {
        let (record, stats) = usual(std::slice::from_ref(&cell));
        assert!(
            record.trace_id.is_empty() && record.span_id.is_empty() && record.flags == 0,
            "{cell:?}"
        );
        assert_eq!(
            (record.attributes.len(), stats.unparsable_fields),
            (1, 1),
            "{cell:?}"
        );
    }
}

#[test]
fn fields_can_be_chosen() {
    let mapping = Mapping {
        timestamp: Some("when".into()),
        body: Some("text".into()),
        ..Mapping::default()
    };
    let cells = [
        text("when", "2026-01-02 03:04:05"),
        text("ts", "1"),
        text("text", "b"),
        text("msg", "m"),
    ];
    let (record, _) = encode(
        &cells,
        None,
        &[],
        Mapping {
            offset_s: 3600,
            ..mapping
        },
    );
    assert_eq!(record.time_unix_nano, 1_767_319_445_000_000_000);
    assert_eq!(record.body, Some(AnyValue { value: string("b") }));
    assert_eq!(
        attributes(&record),
        [("ts", string("1")), ("msg", string("m"))]
    );
}

#[test]
fn integers_are_exact_to_the_last_digit() {
    for (digits, value) in [
        ("9007199254740993", Some(9_007_199_254_740_993)),
        ("-9007199254740993", Some(-9_007_199_254_740_993)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("-9223372036854775809", None),
        ("18446744073709551616", None),
        ("1000000000000000000000000000000", None),
    ] {
        let expected = value.map_or_else(|| string(digits), |value| Some(Any::IntValue(value)));
        let (record, _) = usual(&[integer("n", digits), ("l", 6, format!("[{digits}]"))]);
        assert_eq!(record.attributes[0].value.clone().unwrap().value, expected);
        let Some(Any::ArrayValue(list)) = record.attributes[1].value.clone().unwrap().value else {
            panic!()
        };
        assert_eq!(list.values[0].value, expected);
    }
    let (record, _) = usual(&[("f", 3, "1e999".into())]);
    assert_eq!(attributes(&record), [("f", string("1e999"))]);
}

#[test]
fn deep_values_end_as_text_that_every_decoder_can_reach() {
    for (open, close) in [("{\"a\":", "}"), ("[", "]")] {
        for depth in [1, NESTING_MAX, NESTING_MAX + 1, 128, 129, 100_000] {
            let value = open.repeat(depth) + "1" + &close.repeat(depth);
            let kind = if open == "[" { 6 } else { 5 };
            // prost stops at 100 nested messages, as most do.
            let (record, stats) = usual(&[("v", kind, value.clone())]);
            assert_eq!(stats.too_deep, u64::from(depth > NESTING_MAX), "{depth}");
            let mut any = record.attributes[0].value.clone().unwrap();
            for level in 0..depth.min(NESTING_MAX) {
                any = match any.value.unwrap() {
                    Any::KvlistValue(list) => list.values[0].value.clone().unwrap(),
                    Any::ArrayValue(list) => list.values[0].clone(),
                    other => panic!("{other:?} at {level}"),
                };
            }
            let rest = depth.saturating_sub(NESTING_MAX);
            let expected = match rest {
                0 => Any::IntValue(1),
                rest => Any::StringValue(open.repeat(rest) + "1" + &close.repeat(rest)),
            };
            assert_eq!(any.value, Some(expected));
        }
    }
}

#[test]
fn escapes_in_nested_values_are_undone() {
    let nested = r#"{"k\u0065y\n":"\ud83d\ude00\ud800\"","key\n":1,"l":["\t"]}"#;
    let (record, stats) = usual(&[("v", 5, nested.into())]);
    let Some(Any::KvlistValue(list)) = record.attributes[0].value.clone().unwrap().value else {
        panic!()
    };
    assert_eq!(list.values[0].key, "key\n");
    assert_eq!(
        list.values[0].value.clone().unwrap().value,
        string("😀\u{fffd}\"")
    );
    assert_eq!((list.values.len(), stats.duplicate_keys), (2, 1));
    let Some(Any::ArrayValue(array)) = list.values[1].value.clone().unwrap().value else {
        panic!()
    };
    assert_eq!(array.values[0].value, string("\t"));
}

#[test]
fn overflow_never_repeats_a_column() {
    let overflow = r#"{"a":1,"b":2,"\u0062":3,"msg":"again","c":{"x":[]}}"#;
    let (record, stats) = encode(
        &[text("a", "x"), text("msg", "m")],
        Some(overflow),
        &[],
        Mapping::default(),
    );
    let keys: Vec<_> = attributes(&record)
        .into_iter()
        .map(|(key, _)| key.to_owned())
        .collect();
    assert_eq!(
        (keys.join(" "), stats.duplicate_keys),
        ("a b c".to_owned(), 3)
    );
}

#[test]
fn no_rows_no_request() {
    let column: Arc<dyn Array> = Arc::new(StringViewArray::from(Vec::<&str>::new()));
    let columns = vec![Column {
        name: "a",
        values: &column,
        kinds: None,
        index: Index::Row,
    }];
    let envelope = Envelope {
        observed_ns: 1,
        records: 3,
        raw: None,
        malformed: None,
        truncated: None,
        times: &[],
        streams: &[],
        uids: &[],
        runs: &[],
    };
    let mut encoder = OtlpEncoder::new(OtlpEncoding::default());
    for parts in [
        vec![],
        vec![Part {
            rows: Some(&[]),
            columns,
            overflow: None,
            overflow_except: Vec::new(),
            failed: &[],
        }],
    ] {
        let stats = encoder.encode(&envelope, &parts, &mut |_| panic!("an empty request"));
        assert_eq!(stats, Stats::default());
    }
}

/// A record of the source that an overflow key and a lifted column fight over: the attribute's name is free again.
#[test]
fn a_key_refused_from_the_overflow_does_not_hide_a_fact() {
    use tailrace_otlp::{Run, SourceFacts, Value};
    let facts = SourceFacts::new(&[], &[("level".to_owned(), Value::from("source"))]);
    let runs = [Run {
        records: 0..1,
        source: &facts,
    }];
    let values = StringViewArray::from(vec!["info"]);
    let overflow = StringViewArray::from(vec![r#"{"level":"overflow"}"#]);
    let columns = vec![Column {
        name: "level",
        values: &values,
        kinds: None,
        index: Index::Record,
    }];
    let part = Part {
        rows: None,
        columns,
        overflow: Some(&overflow),
        overflow_except: Vec::new(),
        failed: &[],
    };
    let envelope = Envelope {
        observed_ns: 1,
        records: 1,
        raw: None,
        malformed: None,
        truncated: None,
        times: &[],
        streams: &[],
        uids: &[],
        runs: &runs,
    };
    let mut shown = Vec::new();
    OtlpEncoder::new(OtlpEncoding::default()).encode(&envelope, &[part], &mut |request| {
        let decoded = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
        let record = &decoded.resource_logs[0].scope_logs[0].log_records[0];
        assert_eq!(record.severity_text, "info");
        shown.extend(
            attributes(record)
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value)),
        );
    });
    assert_eq!(shown, [("level".to_owned(), string("source"))]);
}

/// Each row's `log.record.uid`, of two records that two branches select.
fn uids(record_uid: bool, column: &str, uids: &[u128]) -> Vec<Option<String>> {
    let values = StringViewArray::from(vec!["x", "x"]);
    let part = || Part {
        rows: None,
        columns: vec![Column {
            name: column,
            values: &values,
            kinds: None,
            index: Index::Record,
        }],
        overflow: None,
        overflow_except: Vec::new(),
        failed: &[],
    };
    let envelope = Envelope {
        observed_ns: 1,
        records: 2,
        raw: None,
        malformed: None,
        truncated: None,
        times: &[],
        streams: &[],
        uids,
        runs: &[],
    };
    let config = OtlpEncoding {
        record_uid,
        ..OtlpEncoding::default()
    };
    let mut shown = Vec::new();
    OtlpEncoder::new(config).encode(&envelope, &[part(), part()], &mut |request| {
        let decoded = ExportLogsServiceRequest::decode(&*request.bytes).unwrap();
        for record in &decoded.resource_logs[0].scope_logs[0].log_records {
            let mut named = attributes(record)
                .into_iter()
                .filter(|(key, _)| *key == "log.record.uid");
            let uid = named.next().map(|(_, value)| value.to_owned());
            assert!(named.next().is_none(), "the name stands there once");
            shown.push(uid.map(|uid| match uid {
                Some(Any::StringValue(text)) => text,
                other => panic!("not a text: {other:?}"),
            }));
        }
    });
    shown
}

#[test]
fn every_row_has_a_uid_of_its_own_where_it_is_wanted_and_known() {
    let text = |uid: &str| Some(uid.to_owned());
    let known = [0xab << 120, 0xff];
    assert_eq!(
        uids(true, "k", &known),
        [
            text("ab000000000000000000000000000000"),
            text("ab000000000000000000000000000001"),
            text("000000000000000000000000000000ff"),
            text("00000000000000000000000000000100"),
        ]
    );
    assert_eq!(uids(true, "k", &[0, 0]), [const { None }; 4]);
    assert_eq!(uids(true, "k", &[]), [const { None }; 4]);
    assert_eq!(uids(false, "k", &known), [const { None }; 4]);
    // A key of the record does not take its place.
    assert_eq!(
        uids(true, "log.record.uid", &known),
        uids(true, "k", &known)
    );
    assert_eq!(
        uids(false, "log.record.uid", &known),
        [const { Some("x") }; 4].map(|x| x.map(str::to_owned))
    );
}
