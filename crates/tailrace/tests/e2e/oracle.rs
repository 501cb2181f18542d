//! What must arrive, computed independently of the agent: serde_json parses each line, a plain
//! closure filters, and the rules of the OTLP mapping are written down a second time, in the JSON
//! form in which the collector's file exporter writes what it received.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

/// One LogRecord, in a form that can be compared.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogRecord {
    pub(crate) time_ns: i128,
    pub(crate) severity_number: i64,
    pub(crate) severity_text: String,
    pub(crate) body: Value,
    pub(crate) trace_id: String,
    pub(crate) span_id: String,
    pub(crate) attributes: BTreeMap<String, Value>,
}

const TIME_KEYS: [&str; 5] = ["timestamp", "@timestamp", "time", "ts", "t"];
const SEVERITY_KEYS: [&str; 7] = [
    "level",
    "severity",
    "severity_text",
    "lvl",
    "log.level",
    "loglevel",
    "levelname",
];
const BODY_KEYS: [&str; 4] = ["message", "msg", "log", "body"];

/// The members of a JSON object in order, first key wins; values as they are written.
pub(crate) fn members(line: &str) -> BTreeMap<String, Box<RawValue>> {
    struct Members(BTreeMap<String, Box<RawValue>>);
    impl<'de> serde::Deserialize<'de> for Members {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Visitor;
            impl<'de> serde::de::Visitor<'de> for Visitor {
                type Value = Members;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<Members, A::Error> {
                    let mut members = BTreeMap::new();
                    while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                        members.entry(key).or_insert(value);
                    }
                    Ok(Members(members))
                }
            }
            from.deserialize_map(Visitor)
        }
    }
    serde_json::from_str::<Members>(line).unwrap().0
}

/// The LogRecord that a line of JSON must become with `SELECT *`.
pub(crate) fn expected(line: &str, file_name: &str) -> LogRecord {
    let mut members = members(line);
    let mut lift = |keys: &[&str]| {
        let key = keys
            .iter()
            .find(|key| members.get(**key).is_some_and(|v| v.get() != "null"))?;
        members.remove(*key)
    };
    let time_ns = lift(&TIME_KEYS).map_or(0, |value| time_ns(value.get()));
    let severity = lift(&SEVERITY_KEYS).map_or_else(String::new, |value| text(value.get()));
    let body = lift(&BODY_KEYS).map_or(Value::Null, |value| any_value(value.get()));
    let mut attributes: BTreeMap<String, Value> = members
        .iter()
        .map(|(key, value)| (key.clone(), any_value(value.get())))
        .collect();
    attributes.insert(
        "log.file.name".to_owned(),
        json!({"stringValue": file_name}),
    );
    LogRecord {
        time_ns,
        severity_number: severity_number(&severity),
        severity_text: severity,
        body,
        trace_id: String::new(),
        span_id: String::new(),
        attributes,
    }
}

fn text(raw: &str) -> String {
    if raw.starts_with('"') {
        serde_json::from_str(raw).unwrap()
    } else {
        raw.to_owned()
    }
}

fn time_ns(raw: &str) -> i128 {
    if raw.starts_with('"') {
        let time = chrono::DateTime::parse_from_rfc3339(&text(raw)).unwrap();
        return i128::from(time.timestamp_nanos_opt().unwrap());
    }
    let number: i128 = raw.parse().unwrap();
    match number.abs() {
        n if n < 100_000_000_000 => number * 1_000_000_000,
        n if n < 100_000_000_000_000 => number * 1_000_000,
        n if n < 100_000_000_000_000_000 => number * 1_000,
        _ => number,
    }
}

fn severity_number(text: &str) -> i64 {
    match text.to_ascii_lowercase().as_str() {
        "trace" => 1,
        "debug" | "20" => 5,
        "info" | "30" => 9,
        "warn" | "40" => 13,
        "error" | "50" => 17,
        _ => 0,
    }
}

/// OTLP's AnyValue, as JSON.
fn any_value(raw: &str) -> Value {
    match raw.as_bytes()[0] {
        b'"' => json!({"stringValue": text(raw)}),
        b't' | b'f' => json!({"boolValue": raw == "true"}),
        b'n' => json!({}),
        b'{' => {
            let mut pairs = serde_json::Map::new();
            for (key, value) in members(raw) {
                pairs.insert(key, any_value(value.get()));
            }
            json!({"kvlistValue": pairs})
        }
        b'[' => {
            let items: Vec<Box<RawValue>> = serde_json::from_str(raw).unwrap();
            json!({"arrayValue": items.iter().map(|item| any_value(item.get())).collect::<Vec<_>>()})
        }
        _ if raw.contains(['.', 'e', 'E']) => json!({"doubleValue": raw.parse::<f64>().unwrap()}),
        _ => match raw.parse::<i64>() {
            Ok(integer) => json!({"intValue": integer.to_string()}),
            Err(_) => json!({"stringValue": raw}),
        },
    }
}

/// The LogRecords of one line of the collector's file exporter.
pub(crate) fn arrived(line: &str) -> Vec<LogRecord> {
    let request: Value = serde_json::from_str(line).unwrap();
    let mut records = Vec::new();
    for resource in list(&request, "resourceLogs") {
        for scope in list(resource, "scopeLogs") {
            records.extend(list(scope, "logRecords").iter().map(log_record));
        }
    }
    records
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn log_record(record: &Value) -> LogRecord {
    let string = |key: &str| {
        record
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    assert!(
        !string("observedTimeUnixNano").is_empty(),
        "observed time is always set: {record}"
    );
    LogRecord {
        time_ns: string("timeUnixNano").parse().unwrap_or(0),
        severity_number: record
            .get("severityNumber")
            .and_then(Value::as_i64)
            .unwrap_or(0),
        severity_text: string("severityText"),
        body: match record.get("body") {
            Some(body) if body.as_object().is_some_and(|body| !body.is_empty()) => normal(body),
            _ => Value::Null,
        },
        trace_id: string("traceId"),
        span_id: string("spanId"),
        attributes: pairs(list(record, "attributes")).into_iter().collect(),
    }
}

fn pairs(attributes: &[Value]) -> serde_json::Map<String, Value> {
    let pair = |pair: &Value| {
        (
            pair["key"].as_str().unwrap().to_owned(),
            normal(&pair["value"]),
        )
    };
    let map: serde_json::Map<String, Value> = attributes.iter().map(pair).collect();
    assert_eq!(
        map.len(),
        attributes.len(),
        "attribute keys are unique: {attributes:?}"
    );
    map
}

/// Lists instead of `{"values": [...]}`, maps instead of lists of pairs.
fn normal(value: &Value) -> Value {
    if let Some(list_value) = value.get("arrayValue") {
        return json!({"arrayValue": list(list_value, "values").iter().map(normal).collect::<Vec<_>>()});
    }
    if let Some(map) = value.get("kvlistValue") {
        return json!({"kvlistValue": pairs(list(map, "values"))});
    }
    if let Some(double) = value.get("doubleValue") {
        return json!({"doubleValue": double.as_f64().unwrap()});
    }
    value.clone()
}
