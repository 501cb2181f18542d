//! What `tailrace blackhole --print` shows of a request: one line for each log record, for people or as JSON. Text from the
//! request can neither steer a terminal nor forge a line. It never writes.

use std::fmt::Write as _;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message as _;
use serde_json::{Map, Value, json};

use crate::printed;

/// How records are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// One line to read, or one JSON object.
    pub format: Format,
    /// The most records printed of each request.
    pub records_max: usize,
    /// Severities have colours.
    pub colours: bool,
}

/// The format of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Time, severity, service, body and attributes.
    Text,
    /// One JSON object a record.
    Json,
}

impl Print {
    /// The lines of an `ExportLogsServiceRequest`, each with its end; `None` if the bytes are none.
    pub(super) fn lines(&self, request: &[u8]) -> Option<String> {
        let request = ExportLogsServiceRequest::decode(request).ok()?;
        let (mut lines, mut count) = (String::new(), 0_usize);
        for of in request.resource_logs {
            let resource = of.resource.map(|resource| resource.attributes);
            let resource = resource.unwrap_or_default();
            for record in of
                .scope_logs
                .into_iter()
                .flat_map(|scope| scope.log_records)
            {
                count += 1;
                if count > self.records_max {
                    continue;
                }
                match self.format {
                    Format::Text => self.text(&record, &resource, &mut lines),
                    Format::Json => {
                        lines.push_str(&printed::json_line(&json(&record, &resource).to_string()));
                    }
                }
                lines.push('\n');
            }
        }
        let more = count.saturating_sub(self.records_max);
        if more > 0 {
            let _ = match self.format {
                Format::Text => writeln!(lines, "({more} more in this request)"),
                Format::Json => writeln!(lines, "{}", json!({"not_printed": more})),
            };
        }
        Some(lines)
    }

    fn text(&self, record: &LogRecord, resource: &[KeyValue], line: &mut String) {
        let severity = severity(record);
        let (on, off) = match (self.colours, record.severity_number) {
            (false, _) => ("", ""),
            (true, 17..) => ("\x1b[31m", "\x1b[0m"),
            (true, 13..=16) => ("\x1b[33m", "\x1b[0m"),
            (true, 9..=12) => ("\x1b[32m", "\x1b[0m"),
            (true, _) => ("\x1b[2m", "\x1b[0m"),
        };
        let _ = write!(
            line,
            "{} {on}{:5}{off} {} {}",
            time(record),
            printed::shown(&severity),
            printed::shown(&service(resource)),
            printed::shown(&plain(record.body.as_ref())),
        );
        for pair in &record.attributes {
            let value = plain(pair.value.as_ref());
            let is_bare =
                !value.is_empty() && !value.contains(|c: char| c.is_whitespace() || c == '"');
            let value = if is_bare {
                value
            } else {
                Value::String(value).to_string()
            };
            let _ = write!(
                line,
                " {}={}",
                printed::shown(&pair.key),
                printed::shown(&value)
            );
        }
    }
}

/// The record's time, else when it was observed, else `-`.
fn time(record: &LogRecord) -> String {
    let times = [record.time_unix_nano, record.observed_time_unix_nano];
    let time = times.into_iter().find(|&time| time > 0);
    let Some(time) = time.and_then(|time| i64::try_from(time).ok()) else {
        return "-".to_owned();
    };
    let mut text = Vec::new();
    tailrace_model::time::write_rfc3339(time, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn severity(record: &LogRecord) -> String {
    if !record.severity_text.is_empty() {
        return record.severity_text.clone();
    }
    let name = match record.severity_number {
        1..=4 => "TRACE",
        5..=8 => "DEBUG",
        9..=12 => "INFO",
        13..=16 => "WARN",
        17..=20 => "ERROR",
        21..=24 => "FATAL",
        _ => "-",
    };
    name.to_owned()
}

/// What names the source best.
fn service(resource: &[KeyValue]) -> String {
    let names = [
        "service.name",
        "k8s.container.name",
        "k8s.pod.name",
        "host.name",
    ];
    let value_of = |name: &str| resource.iter().find(|pair| pair.key == name);
    let found = names.iter().find_map(|name| value_of(name));
    match found {
        Some(pair) => plain(pair.value.as_ref()),
        None => "-".to_owned(),
    }
}

/// A text as it is, anything else as JSON; nothing for no value.
fn plain(value: Option<&AnyValue>) -> String {
    match json_value(value) {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn json(record: &LogRecord, resource: &[KeyValue]) -> Value {
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let mut object = Map::new();
    object.insert("time".to_owned(), time(record).into());
    object.insert("severity".to_owned(), severity(record).into());
    object.insert("severity_number".to_owned(), record.severity_number.into());
    object.insert("body".to_owned(), json_value(record.body.as_ref()));
    object.insert("attributes".to_owned(), members(&record.attributes));
    object.insert("resource".to_owned(), members(resource));
    let texts = [
        ("trace_id", hex(&record.trace_id)),
        ("span_id", hex(&record.span_id)),
        ("event_name", record.event_name.clone()),
    ];
    for (name, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        object.insert(name.to_owned(), text.into());
    }
    Value::Object(object)
}

fn members(pairs: &[KeyValue]) -> Value {
    let member = |pair: &KeyValue| (pair.key.clone(), json_value(pair.value.as_ref()));
    Value::Object(pairs.iter().map(member).collect())
}

/// Bytes are written in hex. What JSON has no number for (NaN, infinity) is a text.
fn json_value(value: Option<&AnyValue>) -> Value {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone().into(),
        Some(Any::BoolValue(value)) => (*value).into(),
        Some(Any::IntValue(value)) => (*value).into(),
        Some(Any::DoubleValue(value)) => match Value::from(*value) {
            Value::Null => value.to_string().into(),
            number => number,
        },
        Some(Any::ArrayValue(array)) => array
            .values
            .iter()
            .map(|value| json_value(Some(value)))
            .collect(),
        Some(Any::KvlistValue(list)) => members(&list.values),
        Some(Any::BytesValue(bytes)) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            hex.into()
        }
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use opentelemetry_proto::tonic::logs::v1::{ResourceLogs, ScopeLogs};
    use opentelemetry_proto::tonic::resource::v1::Resource;

    use super::*;

    fn value(value: Any) -> Option<AnyValue> {
        Some(AnyValue { value: Some(value) })
    }

    fn pair(key: &str, text: &str) -> KeyValue {
        KeyValue {
            key: key.to_owned(),
            value: value(Any::StringValue(text.to_owned())),
            ..KeyValue::default()
        }
    }

    fn request(records: Vec<LogRecord>) -> Vec<u8> {
        let of = ResourceLogs {
            resource: Some(Resource {
                attributes: vec![pair("host.name", "h"), pair("service.name", "shop")],
                ..Resource::default()
            }),
            scope_logs: vec![ScopeLogs {
                log_records: records,
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        };
        ExportLogsServiceRequest {
            resource_logs: vec![of],
        }
        .encode_to_vec()
    }

    const TEXT: Print = Print {
        format: Format::Text,
        records_max: usize::MAX,
        colours: false,
    };

    #[test]
    fn a_line_has_time_severity_service_body_and_attributes() {
        let record = LogRecord {
            time_unix_nano: 1_700_000_000_123_456_789,
            severity_number: 9,
            body: value(Any::StringValue("paid".to_owned())),
            attributes: vec![
                pair("user", "ann"),
                pair("note", "two words"),
                pair("none", ""),
            ],
            ..LogRecord::default()
        };
        let lines = TEXT.lines(&request(vec![record.clone()])).unwrap();
        let rest = "INFO  shop paid user=ann note=\"two words\" none=\"\"\n";
        assert_eq!(lines, format!("2023-11-14T22:13:20.123456789Z {rest}"));
        let coloured = Print {
            colours: true,
            ..TEXT
        };
        let lines = coloured.lines(&request(vec![record])).unwrap();
        assert!(lines.contains(" \x1b[32mINFO \x1b[0m shop "), "{lines:?}");
    }

    #[test]
    fn no_text_steers_a_terminal_or_forges_a_line() {
        let evil = "\x1b[2J\r\n2023 ERROR \u{202e}";
        let record = LogRecord {
            severity_text: evil.to_owned(),
            body: value(Any::StringValue(evil.to_owned())),
            attributes: vec![pair(evil, evil)],
            ..LogRecord::default()
        };
        for format in [Format::Text, Format::Json] {
            let print = Print { format, ..TEXT };
            let lines = print.lines(&request(vec![record.clone()])).unwrap();
            assert_eq!(lines.lines().count(), 1, "{lines:?}");
            let is_harmful = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            assert!(!lines.contains(is_harmful), "{lines:?}");
        }
    }

    #[test]
    fn json_keeps_types_and_the_number_of_records_is_limited() {
        let record = LogRecord {
            body: value(Any::DoubleValue(f64::NAN)),
            attributes: vec![KeyValue {
                key: "n".to_owned(),
                value: value(Any::IntValue(7)),
                ..KeyValue::default()
            }],
            trace_id: vec![0xab; 16],
            ..LogRecord::default()
        };
        let print = Print {
            format: Format::Json,
            records_max: 1,
            ..TEXT
        };
        let lines = print
            .lines(&request(vec![record.clone(), record.clone()]))
            .unwrap();
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            (&lines[0]["body"], &lines[0]["attributes"]["n"]),
            (&json!("NaN"), &json!(7))
        );
        assert_eq!(lines[0]["resource"]["service.name"], "shop");
        assert_eq!(lines[0]["trace_id"], "ab".repeat(16));
        assert_eq!(lines[1], json!({"not_printed": 1}));
        let none = Print {
            records_max: 0,
            ..TEXT
        };
        assert_eq!(
            none.lines(&request(vec![record])).unwrap(),
            "(1 more in this request)\n"
        );
        assert_eq!(TEXT.lines(b"\xff"), None);
        assert_eq!(TEXT.lines(b"").unwrap(), "");
    }
}
