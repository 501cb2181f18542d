//! Names with a meaning of their own: reserved columns of the SQL table, and the JSON keys that OTLP fields come from.
//!
//! Maps a name to what it stands for. A reserved name wins over a JSON key of that name, which is then reached as
//! `json->'name'`. Names are exact, case included. Never looks at a record.

use crate::column::Type;

/// What a reserved column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reserved {
    /// `body`: the first present of [`BODY_KEYS`], else the raw record where it is text or malformed.
    Body,
    /// `timestamp`: the first present of [`TIMESTAMP_KEYS`], else the time the container runtime wrote.
    Timestamp,
    /// `observed_timestamp`: when the record was read.
    ObservedTimestamp,
    /// `severity_text`: the first present of [`SEVERITY_KEYS`].
    SeverityText,
    /// `severity_number`: the first present of [`SEVERITY_NUMBER_KEYS`], else by the severity's text.
    SeverityNumber,
    /// `malformed`: the record was expected to be JSON and is not.
    Malformed,
    /// `truncated`: the record was longer than the limit.
    Truncated,
    /// `json`: the whole record as JSON text.
    Json,
    /// `log.iostream`: `stdout` or `stderr`.
    Iostream,
    /// `log.file.name`
    FileName,
    /// `log.file.path`
    FilePath,
    /// Any name that starts with `k8s.`
    Kubernetes,
    /// Any name that starts with `container.`
    Container,
}

impl Reserved {
    /// The type of its values where nothing asks for another.
    pub const fn column_type(self) -> Type {
        match self {
            Reserved::Timestamp | Reserved::ObservedTimestamp => Type::Timestamp,
            Reserved::SeverityNumber => Type::Int64,
            Reserved::Malformed | Reserved::Truncated => Type::Boolean,
            Reserved::Body
            | Reserved::SeverityText
            | Reserved::Json
            | Reserved::Iostream
            | Reserved::FileName
            | Reserved::FilePath
            | Reserved::Kubernetes
            | Reserved::Container => Type::Text,
        }
    }
}

/// What `name` stands for, if it is reserved.
pub fn lookup(name: &str) -> Option<Reserved> {
    Some(match name {
        BODY => Reserved::Body,
        TIMESTAMP => Reserved::Timestamp,
        OBSERVED_TIMESTAMP => Reserved::ObservedTimestamp,
        SEVERITY_TEXT => Reserved::SeverityText,
        SEVERITY_NUMBER => Reserved::SeverityNumber,
        MALFORMED => Reserved::Malformed,
        TRUNCATED => Reserved::Truncated,
        JSON => Reserved::Json,
        IOSTREAM => Reserved::Iostream,
        FILE_NAME => Reserved::FileName,
        FILE_PATH => Reserved::FilePath,
        _ if name.starts_with(KUBERNETES_PREFIX) => Reserved::Kubernetes,
        _ if name.starts_with(CONTAINER_PREFIX) => Reserved::Container,
        _ => return None,
    })
}

/// Column name of [`Reserved::Body`].
pub const BODY: &str = "body";
/// Column name of [`Reserved::Timestamp`].
pub const TIMESTAMP: &str = "timestamp";
/// Column name of [`Reserved::ObservedTimestamp`].
pub const OBSERVED_TIMESTAMP: &str = "observed_timestamp";
/// Column name of [`Reserved::SeverityText`].
pub const SEVERITY_TEXT: &str = "severity_text";
/// Column name of [`Reserved::SeverityNumber`].
pub const SEVERITY_NUMBER: &str = "severity_number";
/// Column name of [`Reserved::Malformed`].
pub const MALFORMED: &str = "malformed";
/// Column name of [`Reserved::Truncated`].
pub const TRUNCATED: &str = "truncated";
/// Column name of [`Reserved::Json`].
pub const JSON: &str = "json";
/// Column name of [`Reserved::Iostream`]; OpenTelemetry's attribute name.
pub const IOSTREAM: &str = "log.iostream";
/// Column name of [`Reserved::FileName`]; OpenTelemetry's attribute name.
pub const FILE_NAME: &str = "log.file.name";
/// Column name of [`Reserved::FilePath`]; OpenTelemetry's attribute name.
pub const FILE_PATH: &str = "log.file.path";
/// Every column name with this prefix is [`Reserved::Kubernetes`].
pub const KUBERNETES_PREFIX: &str = "k8s.";
/// Every column name with this prefix is [`Reserved::Container`].
pub const CONTAINER_PREFIX: &str = "container.";

/// All reserved names that are not prefixes.
pub const NAMES: [&str; 11] = [
    BODY,
    TIMESTAMP,
    OBSERVED_TIMESTAMP,
    SEVERITY_TEXT,
    SEVERITY_NUMBER,
    MALFORMED,
    TRUNCATED,
    JSON,
    IOSTREAM,
    FILE_NAME,
    FILE_PATH,
];

// Where OTLP fields come from. Earlier wins: the first key that a record has, record by record.

/// Keys of the body.
pub const BODY_KEYS: [&str; 4] = ["message", "msg", "log", "body"];
/// Keys of the time.
pub const TIMESTAMP_KEYS: [&str; 5] = ["timestamp", "@timestamp", "time", "ts", "t"];
/// Keys of the severity's text.
pub const SEVERITY_KEYS: [&str; 7] = [
    "level",
    "severity",
    "severity_text",
    "lvl",
    "log.level",
    "loglevel",
    "levelname",
];
/// Keys of the severity's number (already OpenTelemetry's 1 to 24).
pub const SEVERITY_NUMBER_KEYS: [&str; 1] = ["severity_number"];
/// Keys of the trace id (32 hex digits).
pub const TRACE_ID_KEYS: [&str; 5] = ["trace_id", "traceId", "traceid", "trace.id", "otelTraceID"];
/// Keys of the span id (16 hex digits).
pub const SPAN_ID_KEYS: [&str; 5] = ["span_id", "spanId", "spanid", "span.id", "otelSpanID"];
/// Keys of the W3C trace flags (2 hex digits).
pub const TRACE_FLAGS_KEYS: [&str; 3] = ["trace_flags", "traceFlags", "trace.flags"];
/// Keys of the event's name.
pub const EVENT_NAME_KEYS: [&str; 2] = ["event.name", "otel.event.name"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_has_a_meaning_of_its_own() {
        let meanings: BTreeSet<_> = NAMES.iter().filter_map(|name| lookup(name)).collect();
        assert_eq!(meanings.len(), NAMES.len());
        assert_eq!(lookup("k8s.pod.name"), Some(Reserved::Kubernetes));
        assert_eq!(lookup("container.id"), Some(Reserved::Container));
        assert!(
            !meanings.contains(&Reserved::Kubernetes) && !meanings.contains(&Reserved::Container)
        );
    }

    #[test]
    fn names_are_exact() {
        for name in [
            "",
            "Body",
            "BODY",
            " body",
            "k8s",
            "K8s.pod.name",
            "container",
            "log.file",
            "log.file.size",
            "level",
        ] {
            assert_eq!(lookup(name), None, "{name:?}");
        }
    }

    #[test]
    fn no_key_feeds_two_fields() {
        let lists: [&[&str]; 8] = [
            &BODY_KEYS,
            &TIMESTAMP_KEYS,
            &SEVERITY_KEYS,
            &SEVERITY_NUMBER_KEYS,
            &TRACE_ID_KEYS,
            &SPAN_ID_KEYS,
            &TRACE_FLAGS_KEYS,
            &EVENT_NAME_KEYS,
        ];
        let all: Vec<_> = lists.concat();
        let distinct: BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
    }
}
