//! The slow reference: what a table's LogRecords must be, built from what the test knows, never
//! from Arrow or our code (but for reading times and severities, which have tests of their own).

use std::collections::HashMap;

use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, KeyValue, KeyValueList, any_value::Value as Any,
};
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use serde_json::value::RawValue;
use tailrace_model::{reserved, severity, time};
use tailrace_otlp::{Mapping, NESTING_MAX, Value};

use crate::table::{Known, KnownColumn, KnownSource, OBSERVED_NS, Table};

/// What the encoder counts.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) unparsable_timestamps: u64,
    pub(crate) unparsable_fields: u64,
}

/// One LogRecord, its resource's attributes and its record.
pub(crate) type Expected = (Vec<KeyValue>, LogRecord, u32);

/// Everything a table must become.
pub(crate) fn expected(table: &Table) -> (Vec<Expected>, Counts) {
    let mut counts = Counts::default();
    let records = table.rows().into_iter().map(|(part, row, record)| {
        let source = &table.sources[table.source_of[record]];
        let log_record = log_record(table, part, row, record, source, &mut counts);
        (distinct(&source.resource), log_record, record as u32)
    });
    (records.collect(), counts)
}

/// The value of each name that is present in a row: the first wins.
pub(crate) fn present(
    table: &Table,
    part: usize,
    row: usize,
    record: usize,
) -> Vec<(String, Known)> {
    let mut present: Vec<(String, Known)> = Vec::new();
    for column in &table.parts[part].columns {
        let cell = &column.cells[if column.by_row { row } else { record }];
        if *cell != Known::Absent && present.iter().all(|(name, _)| *name != column.name) {
            present.push((column.name.clone(), cell.clone()));
        }
    }
    present
}

/// The overflow of a row, without what is in `present` already.
pub(crate) fn overflow(
    table: &Table,
    part: usize,
    record: usize,
    present: &[(String, Known)],
) -> Vec<(String, Json)> {
    let overflow = table.parts[part]
        .overflow
        .as_ref()
        .and_then(|overflow| overflow[record].as_deref());
    let Some(Json::Object(members)) = overflow.map(|text| read_json(text).unwrap()) else {
        return Vec::new();
    };
    let is_new = |name: &String| present.iter().all(|(known, _)| known != name);
    first_of_each(members)
        .into_iter()
        .filter(|(name, _)| is_new(name))
        .collect()
}

fn log_record(
    table: &Table,
    part: usize,
    row: usize,
    record: usize,
    source: &KnownSource,
    counts: &mut Counts,
) -> LogRecord {
    let columns = present(table, part, row, record);
    let mapping = &table.mapping;
    let mut lifted: Vec<&str> = Vec::new();
    let mut out = LogRecord {
        observed_time_unix_nano: OBSERVED_NS as u64,
        time_unix_nano: table
            .times
            .get(record)
            .map_or(0, |time| (*time).max(0) as u64),
        ..LogRecord::default()
    };
    let find = |choice: &Option<String>, usual: &[&'static str]| candidate(&columns, choice, usual);
    if let Some((name, value)) = find(&mapping.timestamp, &reserved::TIMESTAMP_KEYS) {
        match time_of(value, mapping) {
            Some(ns) => {
                out.time_unix_nano = ns;
                lifted.push(name);
            }
            None => counts.unparsable_timestamps += 1,
        }
    }
    if let Some((name, value)) = find(&mapping.severity, &reserved::SEVERITY_KEYS)
        && let Some(text) = scalar_text(value)
    {
        out.severity_number = severity::number_of_text(&text).into();
        out.severity_text = text;
        lifted.push(name);
    }
    if let Some((name, value)) = find(&mapping.severity_number, &reserved::SEVERITY_NUMBER_KEYS) {
        match number_of(value).filter(|number| (1..=24).contains(number)) {
            Some(number) => {
                out.severity_number = number as i32;
                lifted.push(name);
            }
            None => counts.unparsable_fields += 1,
        }
    }
    let body = mapping.body.as_deref().unwrap_or("body");
    let raw = raw(table, part, record, body);
    let mut original = None;
    let found = match computes(table, part, body) {
        true => find(&Some(body.to_owned()), &[]),
        false => find(&mapping.body, &reserved::BODY_KEYS),
    };
    match found {
        Some((name, value)) => {
            out.body = Some(any(value));
            lifted.push(name);
            original = raw.filter(|raw| is_original(table, part, row, record, name, raw));
        }
        None => {
            out.body = raw.map(|raw| AnyValue {
                value: Some(Any::StringValue(raw)),
            });
        }
    }
    if let Some((name, Known::Str(text))) = find(&mapping.event_name, &reserved::EVENT_NAME_KEYS)
        && !text.is_empty()
    {
        out.event_name = text.clone();
        lifted.push(name);
    }
    lifted.extend(lift_ids(&columns, mapping, &mut out, counts));
    let flags = [
        ("tailrace.malformed", table.malformed.as_ref()),
        ("tailrace.truncated", table.truncated.as_ref()),
    ];
    let flags = flags
        .into_iter()
        .filter(|(_, flags)| flags.is_some_and(|flags| flags[record]));
    let marks = flags.map(|(name, _)| name);
    let marks: Vec<&str> = marks
        .chain(original.as_ref().map(|_| "log.record.original"))
        .collect();
    // No key of the record hides them.
    let is_hidden =
        |name: &str| marks.contains(&name) && !is_computed(table, [part, row, record], name);
    lifted.extend(
        columns
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| is_hidden(name)),
    );
    out.attributes = attributes(table, part, record, source, &columns, &lifted, &marks);
    let is_free = |name: &str| out.attributes.iter().all(|known| known.key != name);
    if let Some(raw) = original.filter(|_| is_free("log.record.original")) {
        out.attributes.push(KeyValue {
            key: "log.record.original".to_owned(),
            value: Some(any(&Known::Str(raw))),
            ..KeyValue::default()
        });
    }
    out
}

/// Whether the value of this name is one that the query computed.
pub(crate) fn is_computed(table: &Table, [part, row, record]: [usize; 3], name: &str) -> bool {
    let mut columns = table.parts[part].columns.iter();
    let is_present = |column: &&KnownColumn| {
        let cell = &column.cells[if column.by_row { row } else { record }];
        column.name == name && *cell != Known::Absent
    };
    columns.find(is_present).is_some_and(|column| column.by_row)
}

/// Whether the query computes a column of this name.
fn computes(table: &Table, part: usize, name: &str) -> bool {
    let mut columns = table.parts[part].columns.iter();
    columns.any(|column| column.by_row && column.name == name)
}

/// The raw text of a record; none where the query computes a column of this name, which is the body whatever it holds.
pub(crate) fn raw(table: &Table, part: usize, record: usize, body: &str) -> Option<String> {
    if computes(table, part, body) {
        return None;
    }
    table.raw.as_ref().and_then(|raw| raw[record].clone())
}

/// Whether the raw text of a record is sent beside its body, which the column of this name holds: it is malformed, and the
/// query did not compute the body.
pub(crate) fn is_original(
    table: &Table,
    part: usize,
    row: usize,
    record: usize,
    body: &str,
    raw: &str,
) -> bool {
    let is_malformed = table.malformed.as_ref().is_some_and(|flags| flags[record]);
    let cell =
        |column: &KnownColumn| column.cells[if column.by_row { row } else { record }].clone();
    let mut columns = table.parts[part].columns.iter();
    let column = columns.find(|column| column.name == body && cell(column) != Known::Absent);
    let is_other = |column: &KnownColumn| !column.by_row && cell(column) != Known::Str(raw.into());
    is_malformed && column.is_some_and(is_other)
}

/// The first column with a value that a field may come from.
fn candidate<'c>(
    columns: &'c [(String, Known)],
    choice: &Option<String>,
    usual: &[&'static str],
) -> Option<&'c (String, Known)> {
    let of_name = |name: &str| {
        columns
            .iter()
            .find(|(known, value)| known == name && *value != Known::Null)
    };
    match choice {
        Some(name) => of_name(name),
        None => usual.iter().find_map(|name| of_name(name)),
    }
}

fn lift_ids<'c>(
    columns: &'c [(String, Known)],
    mapping: &Mapping,
    out: &mut LogRecord,
    counts: &mut Counts,
) -> Vec<&'c str> {
    let find = |choice: &Option<String>, usual: &[&'static str]| candidate(columns, choice, usual);
    let mut lifted: Vec<&str> = Vec::new();
    for (choice, usual, field, len) in [
        (
            &mapping.trace_id,
            &reserved::TRACE_ID_KEYS[..],
            &mut out.trace_id,
            16,
        ),
        (
            &mapping.span_id,
            &reserved::SPAN_ID_KEYS[..],
            &mut out.span_id,
            8,
        ),
    ] {
        if let Some((name, value)) = find(choice, usual) {
            match id_of(value, len) {
                Some(id) => {
                    *field = id;
                    lifted.push(name);
                }
                None => counts.unparsable_fields += 1,
            }
        }
    }
    if let Some((name, value)) = find(&mapping.trace_flags, &reserved::TRACE_FLAGS_KEYS) {
        match flags_of(value) {
            Some(flags) => {
                out.flags = flags.into();
                lifted.push(name);
            }
            None => counts.unparsable_fields += 1,
        }
    }
    lifted
}

fn attributes(
    table: &Table,
    part: usize,
    record: usize,
    source: &KnownSource,
    columns: &[(String, Known)],
    lifted: &[&str],
    marks: &[&str],
) -> Vec<KeyValue> {
    let attribute = |key: &str, value| KeyValue {
        key: key.to_owned(),
        value: Some(value),
        ..KeyValue::default()
    };
    let kept = columns
        .iter()
        .filter(|(name, _)| !lifted.contains(&name.as_str()));
    let mut attributes: Vec<_> = kept
        .map(|(name, value)| attribute(name, any(value)))
        .collect();
    let overflow = overflow(table, part, record, columns);
    attributes.extend(
        overflow
            .into_iter()
            .filter(|(name, _)| !marks.contains(&name.as_str()))
            .map(|(name, value)| attribute(&name, any_json(&value, 0))),
    );
    let mut ours = distinct(&source.attributes);
    let text = |text: &str| AnyValue {
        value: Some(Any::StringValue(text.to_owned())),
    };
    match table.streams.get(record) {
        Some(1) if table.iostream => ours.push(attribute("log.iostream", text("stdout"))),
        Some(2) if table.iostream => ours.push(attribute("log.iostream", text("stderr"))),
        _ => {}
    }
    let yes = AnyValue {
        value: Some(Any::BoolValue(true)),
    };
    let flags = marks.iter().filter(|name| **name != "log.record.original");
    ours.extend(flags.map(|name| attribute(name, yes.clone())));
    for attribute in ours {
        if attributes.iter().all(|known| known.key != attribute.key) {
            attributes.push(attribute);
        }
    }
    attributes
}

/// Facts of a source, the first of each name.
fn distinct(facts: &[(String, Value)]) -> Vec<KeyValue> {
    let string = |text: &String| AnyValue {
        value: Some(Any::StringValue(text.clone())),
    };
    let value = |value: &Value| match value {
        Value::Str(text) => string(text),
        Value::Int(value) => AnyValue {
            value: Some(Any::IntValue(*value)),
        },
        Value::Double(value) => AnyValue {
            value: Some(Any::DoubleValue(*value)),
        },
        Value::Bool(value) => AnyValue {
            value: Some(Any::BoolValue(*value)),
        },
        Value::StrArray(texts) => AnyValue {
            value: Some(Any::ArrayValue(ArrayValue {
                values: texts.iter().map(string).collect(),
            })),
        },
    };
    first_of_each(facts.to_vec())
        .into_iter()
        .map(|(key, known)| KeyValue {
            key,
            value: Some(value(&known)),
            ..KeyValue::default()
        })
        .collect()
}

fn first_of_each<T>(pairs: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut seen = HashMap::new();
    pairs
        .into_iter()
        .filter(|(name, _)| seen.insert(name.clone(), ()).is_none())
        .collect()
}

fn time_of(value: &Known, mapping: &Mapping) -> Option<u64> {
    let ns = match value {
        Known::Str(text) => time::parse(text, mapping.offset_s),
        Known::Number(text, _) => time::parse_epoch(text),
        Known::Int(value) => time::parse_epoch(&value.to_string()),
        Known::Uint(value) => time::parse_epoch(&value.to_string()),
        Known::Float(value) => time::parse_epoch(&value.to_string()),
        Known::Time(ns) => Some(*ns),
        _ => None,
    };
    ns.filter(|ns| *ns > 0).map(|ns| ns as u64)
}

fn number_of(value: &Known) -> Option<i128> {
    match value {
        Known::Int(number) => Some(i128::from(*number)),
        Known::Uint(number) => Some(i128::from(*number)),
        Known::Float(number) if number.fract() == 0.0 => Some(*number as i128),
        Known::Str(text) | Known::Number(text, _) if text.trim() == text => {
            let number: f64 = serde_json::from_str(text).ok()?;
            (number.fract() == 0.0).then_some(number as i128)
        }
        _ => None,
    }
}

fn flags_of(value: &Known) -> Option<u8> {
    match value {
        Known::Str(text)
            if matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            u8::from_str_radix(text, 16).ok()
        }
        Known::Number(text, true) => text.parse().ok(),
        Known::Int(flags) => u8::try_from(*flags).ok(),
        Known::Uint(flags) => u8::try_from(*flags).ok(),
        _ => None,
    }
}

fn scalar_text(value: &Known) -> Option<String> {
    match value {
        Known::Str(text) | Known::Number(text, _) => Some(text.clone()),
        Known::Int(value) => Some(value.to_string()),
        Known::Uint(value) => Some(value.to_string()),
        Known::Float(value) => Some(value.to_string()),
        _ => None,
    }
}

fn id_of(value: &Known, len: usize) -> Option<Vec<u8>> {
    let id = match value {
        Known::Str(text) if text.is_ascii() && text.len() == 2 * len => (0..len)
            .map(|at| {
                let pair = &text[2 * at..2 * at + 2];
                pair.bytes()
                    .all(|byte| byte.is_ascii_hexdigit())
                    .then(|| u8::from_str_radix(pair, 16).unwrap())
            })
            .collect::<Option<Vec<u8>>>()?,
        Known::Bytes(bytes) if bytes.len() == len => bytes.clone(),
        _ => return None,
    };
    id.iter().any(|byte| *byte != 0).then_some(id)
}

/// A value as AnyValue.
fn any(value: &Known) -> AnyValue {
    let string = |text: String| Some(Any::StringValue(text));
    let value = match value {
        Known::Absent | Known::Null => None,
        Known::Bool(value) => Some(Any::BoolValue(*value)),
        Known::Int(value) => Some(Any::IntValue(*value)),
        Known::Uint(value) => i64::try_from(*value).map_or_else(
            |_| string(value.to_string()),
            |value| Some(Any::IntValue(value)),
        ),
        Known::Float(value) => Some(Any::DoubleValue(*value)),
        Known::Str(text) => string(text.clone()),
        Known::Number(text, _) if text == "-Infinity" => Some(Any::DoubleValue(f64::NEG_INFINITY)),
        Known::Number(text, _) => return any_json(&Json::Number(text.clone()), 0),
        Known::Json(text, _) => match read_json(text) {
            Some(json) => return any_json(&json, 0),
            None => string(text.clone()),
        },
        Known::Bytes(bytes) => Some(Any::BytesValue(bytes.clone())),
        Known::Time(ns) => {
            let mut text = Vec::new();
            time::write_rfc3339(*ns, &mut text);
            string(String::from_utf8(text).unwrap())
        }
    };
    AnyValue { value }
}

/// JSON with exact numbers and all members.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(String),
    String(String),
    Array(Vec<Json>, String),
    Object(Vec<(String, Json)>),
    /// An object and its text.
    Deep(Vec<(String, Json)>, String),
}

fn any_json(json: &Json, depth: usize) -> AnyValue {
    let value = match json {
        Json::Null => None,
        Json::Bool(value) => Some(Any::BoolValue(*value)),
        Json::String(text) => Some(Any::StringValue(text.clone())),
        Json::Number(text) if text.contains(['.', 'e', 'E']) => {
            let value: f64 = serde_json::from_str(text).unwrap_or(f64::INFINITY);
            Some(if value.is_finite() {
                Any::DoubleValue(value)
            } else {
                Any::StringValue(text.clone())
            })
        }
        Json::Number(text) => Some(
            text.parse()
                .map_or_else(|_| Any::StringValue(text.clone()), Any::IntValue),
        ),
        Json::Array(_, text) | Json::Deep(_, text) if depth >= NESTING_MAX => {
            Some(Any::StringValue(text.clone()))
        }
        Json::Array(elements, _) => {
            let values = elements
                .iter()
                .map(|element| any_json(element, depth + 1))
                .collect();
            Some(Any::ArrayValue(ArrayValue { values }))
        }
        Json::Object(members) | Json::Deep(members, _) => {
            let entry = |(key, value): (String, Json)| KeyValue {
                key,
                value: Some(any_json(&value, depth + 1)),
                ..KeyValue::default()
            };
            let values = first_of_each(members.clone())
                .into_iter()
                .map(entry)
                .collect();
            Some(Any::KvlistValue(KeyValueList { values }))
        }
    };
    AnyValue { value }
}

/// Reads JSON by serde_json; the outermost object is an `Object`, all within are `Deep`.
pub(crate) fn read_json(text: &str) -> Option<Json> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).ok()?;
    Some(
        match read_raw(&serde_json::from_str::<Box<RawValue>>(text).ok()?) {
            Json::Deep(members, _) => Json::Object(members),
            other => other,
        },
    )
}

fn read_raw(raw: &RawValue) -> Json {
    let text = raw.get().trim();
    match text.as_bytes()[0] {
        b'n' => Json::Null,
        b't' => Json::Bool(true),
        b'f' => Json::Bool(false),
        b'"' => Json::String(serde_json::from_str(text).unwrap()),
        b'[' => {
            let elements: Vec<Box<RawValue>> = serde_json::from_str(text).unwrap();
            Json::Array(
                elements.iter().map(|element| read_raw(element)).collect(),
                text.to_owned(),
            )
        }
        b'{' => {
            let Members(members) = serde_json::from_str(text).unwrap();
            Json::Deep(
                members
                    .into_iter()
                    .map(|(key, value)| (key, read_raw(&value)))
                    .collect(),
                text.to_owned(),
            )
        }
        _ => Json::Number(text.to_owned()),
    }
}

/// All members of an object, in order.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
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
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
