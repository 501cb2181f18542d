//! OTLP as JSON for people, by the rules of its JSON encoding: names in lowerCamelCase, ids in hexadecimal, 64-bit integers as
//! texts, bytes in base64. Members that have their default value are left out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message;
use serde_json::{Map, Value, json};

/// A request as JSON.
///
/// # Errors
///
/// It is not a protobuf `ExportLogsServiceRequest`.
pub(crate) fn request(bytes: &[u8]) -> anyhow::Result<Value> {
    let request = ExportLogsServiceRequest::decode(bytes)?;
    Ok(json!({"resourceLogs": all(&request.resource_logs, resource_logs)}))
}

fn all<T>(items: &[T], convert: impl Fn(&T) -> Value) -> Value {
    items.iter().map(convert).collect()
}

fn resource_logs(logs: &ResourceLogs) -> Value {
    let mut object = Object::default();
    let attributes = logs.resource.as_ref().map(|it| &it.attributes[..]);
    let mut resource = Object::default();
    resource.attributes(attributes.unwrap_or_default());
    object.add("resource", Value::Object(resource.0));
    object.add("scopeLogs", all(&logs.scope_logs, scope_logs));
    object.text("schemaUrl", &logs.schema_url);
    Value::Object(object.0)
}

fn scope_logs(logs: &ScopeLogs) -> Value {
    let mut object = Object::default();
    if let Some(InstrumentationScope { name, version, .. }) = &logs.scope {
        let mut scope = Object::default();
        scope.text("name", name);
        scope.text("version", version);
        object.add("scope", Value::Object(scope.0));
    }
    object.add("logRecords", all(&logs.log_records, log_record));
    object.text("schemaUrl", &logs.schema_url);
    Value::Object(object.0)
}

fn log_record(record: &LogRecord) -> Value {
    let mut object = Object::default();
    object.long("timeUnixNano", record.time_unix_nano);
    object.long("observedTimeUnixNano", record.observed_time_unix_nano);
    if record.severity_number != 0 {
        object.add("severityNumber", record.severity_number.into());
    }
    object.text("severityText", &record.severity_text);
    if let Some(body) = &record.body {
        object.add("body", any(body));
    }
    object.attributes(&record.attributes);
    let dropped = record.dropped_attributes_count;
    if dropped != 0 {
        object.add("droppedAttributesCount", dropped.into());
    }
    if record.flags != 0 {
        object.add("flags", record.flags.into());
    }
    object.text("traceId", &hex(&record.trace_id));
    object.text("spanId", &hex(&record.span_id));
    object.text("eventName", &record.event_name);
    Value::Object(object.0)
}

fn any(value: &AnyValue) -> Value {
    use any_value::Value as Any;
    match &value.value {
        None => json!({}),
        Some(Any::StringValue(text)) => json!({"stringValue": text}),
        Some(Any::BoolValue(truth)) => json!({"boolValue": truth}),
        Some(Any::IntValue(number)) => json!({"intValue": number.to_string()}),
        Some(Any::DoubleValue(number)) if number.is_finite() => json!({"doubleValue": number}),
        Some(Any::DoubleValue(number)) => json!({"doubleValue": not_finite(*number)}),
        Some(Any::ArrayValue(array)) => json!({"arrayValue": {"values": all(&array.values, any)}}),
        Some(Any::KvlistValue(list)) => json!({"kvlistValue": {"values": all(&list.values, pair)}}),
        Some(Any::BytesValue(bytes)) => json!({"bytesValue": STANDARD.encode(bytes)}),
        // Which only profiles have.
        Some(_) => json!({}),
    }
}

fn pair(pair: &KeyValue) -> Value {
    let value = pair.value.as_ref().map_or_else(|| json!({}), any);
    json!({"key": pair.key, "value": value})
}

/// As protobuf's JSON writes it.
fn not_finite(number: f64) -> &'static str {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A message without members that have their default value.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn add(&mut self, name: &str, value: Value) {
        self.0.insert(name.to_owned(), value);
    }

    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.add(name, text.into());
        }
    }

    fn long(&mut self, name: &str, number: u64) {
        if number != 0 {
            self.add(name, number.to_string().into());
        }
    }

    fn attributes(&mut self, attributes: &[KeyValue]) {
        if !attributes.is_empty() {
            self.add("attributes", all(attributes, pair));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use opentelemetry_proto::tonic::common::v1::{ArrayValue, KeyValueList};

    fn value(value: any_value::Value) -> AnyValue {
        AnyValue { value: Some(value) }
    }

    #[test]
    fn a_record_is_written_by_the_rules_of_otlp() {
        use any_value::Value as Any;
        let pair = |key: &str, value| KeyValue {
            key: key.to_owned(),
            value: Some(value),
            ..KeyValue::default()
        };
        let list = ArrayValue {
            values: vec![value(Any::BoolValue(true)), AnyValue { value: None }],
        };
        let map = KeyValueList {
            values: vec![pair("k", value(Any::DoubleValue(f64::NEG_INFINITY)))],
        };
        let record = LogRecord {
            time_unix_nano: u64::MAX,
            severity_number: 17,
            body: Some(value(Any::StringValue("b".to_owned()))),
            attributes: vec![
                pair("int", value(Any::IntValue(i64::MIN))),
                pair("bytes", value(Any::BytesValue(vec![0, 255]))),
                pair("list", value(Any::ArrayValue(list))),
                pair("map", value(Any::KvlistValue(map))),
            ],
            trace_id: vec![0xab; 16],
            span_id: vec![1; 8],
            flags: 1,
            ..LogRecord::default()
        };
        let logs = ScopeLogs {
            log_records: vec![record],
            ..ScopeLogs::default()
        };
        let logs = ResourceLogs {
            scope_logs: vec![logs],
            ..ResourceLogs::default()
        };
        let bytes = ExportLogsServiceRequest {
            resource_logs: vec![logs],
        }
        .encode_to_vec();
        let expect = json!({"resourceLogs": [{"resource": {}, "scopeLogs": [{"logRecords": [{
            "timeUnixNano": "18446744073709551615",
            "severityNumber": 17,
            "body": {"stringValue": "b"},
            "attributes": [
                {"key": "int", "value": {"intValue": "-9223372036854775808"}},
                {"key": "bytes", "value": {"bytesValue": "AP8="}},
                {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": true}, {}]}}},
                {"key": "map", "value": {"kvlistValue": {"values": [{"key": "k", "value": {"doubleValue": "-Infinity"}}]}}},
            ],
            "flags": 1,
            "traceId": "abababababababababababababababab",
            "spanId": "0101010101010101",
        }]}]}]});
        assert_eq!(request(&bytes).unwrap(), expect);
        assert!(request(b"\xff").is_err());
    }
}
