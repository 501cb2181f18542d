//! The LogRecord of a row as a plain JSON object, whose fields a test compares.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use prost::Message;
use serde_json::{Map, Value, json};

/// The only LogRecord of a request, with the attributes of its resource. Fields that it does not have are left out.
///
/// # Errors
///
/// It is not a protobuf `ExportLogsServiceRequest` with a LogRecord.
pub(super) fn record(bytes: &[u8]) -> anyhow::Result<Value> {
    let request = ExportLogsServiceRequest::decode(bytes)?;
    let logs = request.resource_logs.first();
    let record = logs.and_then(|logs| logs.scope_logs.first()?.log_records.first());
    let (Some(logs), Some(record)) = (logs, record) else {
        anyhow::bail!("the request has no LogRecord");
    };
    let resource = logs.resource.as_ref().map(|it| attributes(&it.attributes));
    let text = |text: &str| (!text.is_empty()).then(|| json!(text));
    let number = |number: u64| (number != 0).then(|| json!(number));
    let severity = u64::try_from(record.severity_number).unwrap_or(0);
    let fields = [
        ("time_unix_nano", number(record.time_unix_nano)),
        (
            "observed_time_unix_nano",
            number(record.observed_time_unix_nano),
        ),
        ("severity_number", number(severity)),
        ("severity_text", text(&record.severity_text)),
        ("body", record.body.as_ref().map(any)),
        ("attributes", Some(attributes(&record.attributes))),
        ("resource", resource),
        ("trace_id", text(&hex(&record.trace_id))),
        ("span_id", text(&hex(&record.span_id))),
        ("flags", number(record.flags.into())),
        ("event_name", text(&record.event_name)),
        (
            "dropped_attributes_count",
            number(record.dropped_attributes_count.into()),
        ),
    ];
    let fields = fields.into_iter();
    Ok(fields
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect())
}

fn attributes(pairs: &[KeyValue]) -> Value {
    let value = |pair: &KeyValue| pair.value.as_ref().map_or(Value::Null, any);
    let members: Map<String, Value> = pairs
        .iter()
        .map(|pair| (pair.key.clone(), value(pair)))
        .collect();
    Value::Object(members)
}

fn any(value: &AnyValue) -> Value {
    use any_value::Value as Any;
    match &value.value {
        Some(Any::StringValue(text)) => json!(text),
        Some(Any::BoolValue(truth)) => json!(truth),
        Some(Any::IntValue(number)) => json!(number),
        // JSON has no number that is not finite.
        Some(Any::DoubleValue(number)) if number.is_finite() => json!(number),
        Some(Any::DoubleValue(number)) => json!(number.to_string()),
        Some(Any::ArrayValue(array)) => array.values.iter().map(any).collect(),
        Some(Any::KvlistValue(list)) => attributes(&list.values),
        Some(Any::BytesValue(bytes)) => json!(STANDARD.encode(bytes)),
        _ => Value::Null,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
