//! The line encoders: NDJSON against the reference, the console by example.

use proptest::prelude::*;
use tailrace_model::{reserved::BODY_KEYS, time};
use tailrace_otlp::{
    ConsoleEncoder, ConsoleEncoding, Encoder, NdjsonEncoder, NdjsonEncoding, Request,
};

use crate::reference::{Json, is_computed, is_original, overflow, present, raw, read_json};
use crate::table::{Known, KnownColumn, KnownPart, LEN, OBSERVED_NS, Table, Type, table};

proptest! {
    #[test]
    fn lines_parse_to_what_the_reference_says(table in table()) {
        let mut encoder = NdjsonEncoder::new(NdjsonEncoding { request_bytes_max: table.request_bytes_max });
        for _ in 0..2 {
            let mut requests: Vec<Request> = Vec::new();
            let stats = table.with(|envelope, parts| {
                encoder.encode(envelope, parts, &mut |request| requests.push(request.clone()))
            });
            let mut lines = Vec::new();
            for request in &requests {
                let text = std::str::from_utf8(&request.bytes).unwrap();
                prop_assert!(text.len() <= table.request_bytes_max || request.ends.len() == 1);
                let mut start = 0;
                for (end, record) in request.ends.iter().zip(&request.records) {
                    let line = text[start..*end as usize].strip_suffix('\n').unwrap();
                    prop_assert!(!line.contains(['\n', '\r']));
                    lines.push((line, *record));
                    start = *end as usize;
                }
                prop_assert_eq!(start, text.len());
            }
            let rows = table.rows();
            prop_assert_eq!(stats.log_records, rows.len() as u64);
            prop_assert_eq!(lines.len(), rows.len());
            for ((line, of), (part, row, record)) in lines.into_iter().zip(rows) {
                prop_assert_eq!(of as usize, record);
                let Some(Json::Object(members)) = read_json(line) else { panic!("no object: {line}") };
                let members: Vec<_> = members.into_iter().map(|(key, value)| (key, simple(value))).collect();
                prop_assert_eq!(members, expected(&table, part, row, record));
            }
        }
    }

    #[test]
    fn console_lines_hold_no_control_characters(mut table in table(), colour: bool) {
        table.request_bytes_max = 1;
        let config = ConsoleEncoding { mapping: table.mapping.clone(), colour, request_bytes_max: 1 };
        let mut records = Vec::new();
        let rows = table.rows();
        table.with(|envelope, parts| ConsoleEncoder::new(config).encode(envelope, parts, &mut |request| {
            let line = std::str::from_utf8(&request.bytes).unwrap().strip_suffix('\n').unwrap();
            let mut plain = line.to_owned();
            for sequence in ["2", "36", "31", "32", "33", "34", "0"] {
                plain = plain.replace(&format!("\u{1b}[{sequence}m"), "");
            }
            assert!(!plain.contains(char::is_control), "{line:?}");
            assert!(colour || plain == line);
            records.extend_from_slice(&request.records);
        }));
        let expected: Vec<_> = rows.iter().map(|(_, _, record)| *record as u32).collect();
        prop_assert_eq!(records, expected);
    }
}

fn expected(table: &Table, part: usize, row: usize, record: usize) -> Vec<(String, Json)> {
    let mut columns = present(table, part, row, record);
    let mut members = Vec::new();
    let has = |name: &str| columns.iter().any(|(known, _)| known == name);
    let has_value = |name: &&&str| {
        let mut columns = columns.iter();
        columns.any(|(known, value)| known == **name && *value != Known::Null)
    };
    let body = BODY_KEYS.iter().find(has_value);
    if let Some(raw) = raw(table, part, record, "body") {
        let name = match body {
            None if !has("body") => Some("body"),
            None => Some("log.record.original"),
            Some(body) => {
                is_original(table, part, row, record, body, &raw).then_some("log.record.original")
            }
        };
        let at = [part, row, record];
        if let Some(name) = name.filter(|name| !is_computed(table, at, name)) {
            members.push((name.to_owned(), Json::String(raw)));
        }
    }
    let mut overflow = overflow(table, part, record, &columns);
    if members
        .iter()
        .any(|(name, _)| name == "log.record.original")
    {
        // No key of the record hides it.
        columns.retain(|(name, _)| name != "log.record.original");
        overflow.retain(|(name, _)| name != "log.record.original");
    }
    members.extend(
        columns
            .into_iter()
            .map(|(name, value)| (name, json(&value))),
    );
    members.extend(
        overflow
            .into_iter()
            .map(|(name, value)| (name, simple(value))),
    );
    members
}

/// Texts of nested values fall away: they may differ in whitespace.
fn simple(json: Json) -> Json {
    match json {
        Json::Array(elements, _) => {
            Json::Array(elements.into_iter().map(simple).collect(), String::new())
        }
        Json::Object(members) | Json::Deep(members, _) => Json::Object(
            members
                .into_iter()
                .map(|(key, value)| (key, simple(value)))
                .collect(),
        ),
        other => other,
    }
}

fn json(value: &Known) -> Json {
    match value {
        Known::Absent | Known::Null => Json::Null,
        Known::Bool(value) => Json::Bool(*value),
        Known::Int(value) => Json::Number(value.to_string()),
        Known::Uint(value) => Json::Number(value.to_string()),
        Known::Float(value) if value.is_finite() => {
            // The text must mean the same number; which text is not ours to say.
            let mut text = serde_json::to_string(value).unwrap();
            if !text.contains(['.', 'e']) {
                text.push_str(".0");
            }
            Json::Number(text.replace("e+", "e"))
        }
        Known::Float(value) => Json::String(value.to_string()),
        Known::Str(text) => Json::String(text.clone()),
        Known::Number(text, _) if text == "-Infinity" => Json::String("-inf".to_owned()),
        Known::Number(text, _) => Json::Number(text.clone()),
        Known::Json(text, _) => read_json(text).map_or_else(|| Json::String(text.clone()), simple),
        Known::Bytes(bytes) => {
            let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
            let mut text = String::new();
            for at in (0..bits.len()).step_by(6) {
                let six = format!("{:0<6}", &bits[at..bits.len().min(at + 6)]);
                text.push(digits[usize::from_str_radix(&six, 2).unwrap()] as char);
            }
            while !text.len().is_multiple_of(4) {
                text.push('=');
            }
            Json::String(text)
        }
        Known::Time(ns) => {
            let mut text = Vec::new();
            time::write_rfc3339(*ns, &mut text);
            Json::String(String::from_utf8(text).unwrap())
        }
    }
}

/// Three records: a usual one, one with a numeric level, one that is no JSON.
fn three_records() -> Table {
    let open = |name: &str, values: [Known; 3]| KnownColumn {
        name: name.to_owned(),
        ty: Type::Open,
        by_row: false,
        cells: values
            .into_iter()
            .chain((3..LEN).map(|_| Known::Absent))
            .collect(),
    };
    let text = |text: &str| Known::Str(text.to_owned());
    Table {
        records: 3,
        raw: Some(vec![
            None,
            None,
            Some("plain \u{1b}[31mtext\n\u{9b}\u{202e}".to_owned()),
        ]),
        malformed: Some(vec![false, false, true]),
        truncated: None,
        times: vec![],
        streams: vec![],
        source_of: vec![],
        sources: vec![],
        parts: vec![KnownPart {
            rows: None,
            columns: vec![
                open(
                    "time",
                    [text("2026-01-02T03:04:05Z"), Known::Absent, Known::Absent],
                ),
                open(
                    "level",
                    [
                        text("info"),
                        Known::Number("50".into(), true),
                        Known::Absent,
                    ],
                ),
                open(
                    "msg",
                    [
                        text("hello world"),
                        Known::Json("{\"a\":1}".into(), true),
                        Known::Absent,
                    ],
                ),
                open("user", [text("a b"), text("\"\\"), Known::Absent]),
                open(
                    "trace_id",
                    [
                        text("0af7651916cd43dd8448eb211c80319c"),
                        Known::Null,
                        Known::Absent,
                    ],
                ),
            ],
            overflow: Some(
                vec![Some("{\"x\":1.0,\"user\":2}".into()), None, None]
                    .into_iter()
                    .chain((3..LEN).map(|_| None))
                    .collect(),
            ),
        }],
        mapping: Default::default(),
        iostream: true,
        request_bytes_max: 1 << 20,
    }
}

#[test]
fn console_lines_are_for_people() {
    let table = three_records();
    let show = |colour| {
        let mut shown = String::new();
        let config = ConsoleEncoding {
            colour,
            ..ConsoleEncoding::default()
        };
        table.with(|envelope, parts| {
            ConsoleEncoder::new(config).encode(envelope, parts, &mut |request| {
                shown.push_str(std::str::from_utf8(&request.bytes).unwrap());
            })
        });
        shown
    };
    let mut observed = Vec::new();
    time::write_rfc3339(OBSERVED_NS, &mut observed);
    let observed = String::from_utf8(observed).unwrap();
    assert_eq!(
        show(false),
        format!(
            "2026-01-02T03:04:05Z info  hello world user=\"a b\" trace_id=0af7651916cd43dd8448eb211c80319c x=1.0\n\
             {observed} ERROR {{\"a\":1}} user=\"\\\"\\\\\" trace_id=null\n\
             {observed} -     plain \\u{{1b}}[31mtext\\n\\u{{9b}}\\u{{202e}} tailrace.malformed=true\n"
        )
    );
    let coloured = show(true);
    let first = coloured.lines().next().unwrap();
    assert!(first.starts_with("\u{1b}[2m2026-01-02T03:04:05Z\u{1b}[0m \u{1b}[32minfo\u{1b}[0m  hello world \u{1b}[36muser\u{1b}[0m="), "{first:?}");
}
