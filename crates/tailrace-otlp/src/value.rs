//! Facts about a source: attribute values known before any record, and their bytes made once.
//!
//! It never sees a record.

use crate::any::push_prefix;
use crate::wire::{bytes_tag, fixed64_tag, push_bytes, push_varint, varint_tag};

/// The value of a resource or record attribute that does not come from a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    Str(String),
    /// An integer, such as `k8s.container.restart_count`.
    Int(i64),
    /// Any other number.
    Double(f64),
    /// A truth value.
    Bool(bool),
    /// A list of texts, such as `container.image.tags`.
    StrArray(Vec<String>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Str(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Str(text)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

/// What is known of one source, encoded once: the attributes of its resource and those of each of
/// its records. Sources with equal resource attributes share one ResourceLogs where they are
/// neighbours in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFacts {
    /// The resource and its schema URL, as fields of a ResourceLogs.
    pub(crate) resource: Vec<u8>,
    /// The attributes of each record, as fields of a LogRecord, one behind the other.
    pub(crate) attributes: Vec<u8>,
    /// The name of each of them and where it ends in `attributes`.
    pub(crate) names: Vec<(String, usize)>,
}

impl SourceFacts {
    /// Encodes a source's facts. Of attributes with one name the first stays.
    pub fn new(resource: &[(String, Value)], attributes: &[(String, Value)]) -> SourceFacts {
        let mut message = Vec::new();
        for (name, value) in distinct(resource) {
            push_attribute(&mut message, RESOURCE_ATTRIBUTES, name, value);
        }
        let mut encoded = Vec::new();
        push_bytes(&mut encoded, RESOURCE_LOGS_RESOURCE, &message);
        push_bytes(&mut encoded, SCHEMA_URL_FIELD, SCHEMA_URL.as_bytes());
        let mut facts = SourceFacts {
            resource: encoded,
            attributes: Vec::new(),
            names: Vec::new(),
        };
        for (name, value) in distinct(attributes) {
            push_attribute(&mut facts.attributes, LOG_RECORD_ATTRIBUTES, name, value);
            facts.names.push((name.clone(), facts.attributes.len()));
        }
        // There is one of it for each source.
        facts.resource.shrink_to_fit();
        facts.attributes.shrink_to_fit();
        facts.names.shrink_to_fit();
        facts
    }
}

impl Default for SourceFacts {
    fn default() -> SourceFacts {
        SourceFacts::new(&[], &[])
    }
}

/// Where the semantic conventions that our attribute names follow are described.
pub const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";
/// ResourceLogs and ScopeLogs both keep it in field 3.
pub(crate) const SCHEMA_URL_FIELD: u8 = 3;
pub(crate) const LOG_RECORD_ATTRIBUTES: u8 = 6;
const RESOURCE_LOGS_RESOURCE: u8 = 1;
const RESOURCE_ATTRIBUTES: u8 = 1;

/// Appends the attribute as field `field` of the message that `out` is.
pub(crate) fn push_attribute(out: &mut Vec<u8>, field: u8, name: &str, value: &Value) {
    let mut any = Vec::new();
    match value {
        Value::Str(text) => push_bytes(&mut any, 1, text.as_bytes()),
        Value::Bool(value) => any.extend([varint_tag(2), u8::from(*value)]),
        Value::Int(value) => {
            any.push(varint_tag(3));
            push_varint(&mut any, *value as u64);
        }
        Value::Double(value) => {
            any.push(fixed64_tag(4));
            any.extend(value.to_le_bytes());
        }
        Value::StrArray(texts) => {
            let mut array = Vec::new();
            for text in texts {
                let mut element = Vec::new();
                push_bytes(&mut element, 1, text.as_bytes());
                push_bytes(&mut array, 1, &element);
            }
            push_bytes(&mut any, 5, &array);
        }
    }
    let mut key_value = Vec::new();
    push_prefix(&mut key_value, name);
    push_varint(&mut key_value, any.len() as u64);
    key_value.extend_from_slice(&any);
    out.push(bytes_tag(field));
    push_varint(out, key_value.len() as u64);
    out.extend_from_slice(&key_value);
}

fn distinct(attributes: &[(String, Value)]) -> impl Iterator<Item = &(String, Value)> {
    let is_first =
        |at: usize, name: &str| attributes[..at].iter().all(|(earlier, _)| earlier != name);
    attributes
        .iter()
        .enumerate()
        .filter(move |(at, (name, _))| is_first(*at, name))
        .map(|(_, attribute)| attribute)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, any_value::Value as Any};
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs};
    use prost::Message;

    fn named(name: &str, value: impl Into<Value>) -> (String, Value) {
        (name.to_owned(), value.into())
    }

    #[test]
    fn facts_decode_to_what_was_given() {
        let tags = Value::StrArray(vec!["1.2".into(), String::new()]);
        let resource = [
            named("service.name", "shop"),
            named("k8s.container.restart_count", -3),
            named("flag", true),
            named("container.image.tags", tags),
            named("service.name", "second"),
        ];
        let facts = SourceFacts::new(
            &resource,
            &[
                named("log.file.name", "a.log"),
                named("n", 0),
                named("n", 1),
            ],
        );
        let decoded = ResourceLogs::decode(&*facts.resource).unwrap();
        assert_eq!(decoded.schema_url, SCHEMA_URL);
        let attributes = decoded.resource.unwrap().attributes;
        let text = |text: &str| Any::StringValue(text.into());
        let tags = ["1.2", ""]
            .map(|tag| AnyValue {
                value: Some(text(tag)),
            })
            .to_vec();
        let expected = [
            ("service.name", text("shop")),
            ("k8s.container.restart_count", Any::IntValue(-3)),
            ("flag", Any::BoolValue(true)),
            (
                "container.image.tags",
                Any::ArrayValue(ArrayValue { values: tags }),
            ),
        ];
        assert_eq!(attributes.len(), expected.len());
        for (attribute, (name, value)) in attributes.iter().zip(expected) {
            assert_eq!(attribute.key, name);
            assert_eq!(attribute.value, Some(AnyValue { value: Some(value) }));
        }
        let record = LogRecord::decode(&*facts.attributes).unwrap();
        let keys: Vec<_> = record
            .attributes
            .iter()
            .map(|attribute| attribute.key.as_str())
            .collect();
        assert_eq!(keys, ["log.file.name", "n"]);
        assert_eq!(facts.names[1], ("n".to_owned(), facts.attributes.len()));
    }
}
