//! Which output column becomes which field of a LogRecord.
//!
//! The mapping depends only on names, so it is known before any record. No value is read.

use tailrace_model::reserved;

/// A field of a LogRecord that a column can become instead of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `time_unix_nano`
    Timestamp,
    /// `severity_text`, and `severity_number` by the table.
    Severity,
    /// `severity_number` as it is.
    SeverityNumber,
    /// `body`
    Body,
    /// `trace_id`
    TraceId,
    /// `span_id`
    SpanId,
    /// `flags`
    TraceFlags,
    /// `event_name`
    EventName,
}

/// Number of [`Field`]s.
pub(crate) const FIELDS: usize = 8;

impl Field {
    /// All of them.
    pub const ALL: [Field; FIELDS] = [
        Field::Timestamp,
        Field::Severity,
        Field::SeverityNumber,
        Field::Body,
        Field::TraceId,
        Field::SpanId,
        Field::TraceFlags,
        Field::EventName,
    ];

    /// Its name in OTLP's LogRecord.
    pub const fn name(self) -> &'static str {
        match self {
            Field::Timestamp => "time_unix_nano",
            Field::Severity => "severity_text",
            Field::SeverityNumber => "severity_number",
            Field::Body => "body",
            Field::TraceId => "trace_id",
            Field::SpanId => "span_id",
            Field::TraceFlags => "flags",
            Field::EventName => "event_name",
        }
    }

    /// The names of columns that become it, in order of precedence.
    fn names(self) -> &'static [&'static str] {
        match self {
            Field::Timestamp => &reserved::TIMESTAMP_KEYS,
            Field::Severity => &reserved::SEVERITY_KEYS,
            Field::SeverityNumber => &reserved::SEVERITY_NUMBER_KEYS,
            Field::Body => &reserved::BODY_KEYS,
            Field::TraceId => &reserved::TRACE_ID_KEYS,
            Field::SpanId => &reserved::SPAN_ID_KEYS,
            Field::TraceFlags => &reserved::TRACE_FLAGS_KEYS,
            Field::EventName => &reserved::EVENT_NAME_KEYS,
        }
    }
}

/// An output's own choice of columns (`fields:`). A field that names a column comes from that
/// column only; the others come from the first present of the usual names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// Column of the time.
    pub timestamp: Option<String>,
    /// Column of the severity's text.
    pub severity: Option<String>,
    /// Column of the severity's number.
    pub severity_number: Option<String>,
    /// Column of the body.
    pub body: Option<String>,
    /// Column of the trace id.
    pub trace_id: Option<String>,
    /// Column of the span id.
    pub span_id: Option<String>,
    /// Column of the trace flags.
    pub trace_flags: Option<String>,
    /// Column of the event's name.
    pub event_name: Option<String>,
    /// Seconds east of UTC of times without a zone.
    pub offset_s: i32,
}

impl Mapping {
    /// The field that a column of this name can become, if any. It stays an attribute in rows where
    /// another column has precedence or where its value cannot be the field's.
    pub fn field_of(&self, name: &str) -> Option<Field> {
        Field::ALL
            .into_iter()
            .find(|field| self.rank(*field, name).is_some())
    }

    /// Every name of a column that may become a field.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        Field::ALL.into_iter().flat_map(|field| {
            let choice = self.choice(field);
            let usual = field
                .names()
                .iter()
                .copied()
                .filter(move |_| choice.is_none());
            choice.into_iter().chain(usual)
        })
    }

    /// The precedence of a column for a field, 0 first; `None` if it is no candidate.
    pub(crate) fn rank(&self, field: Field, name: &str) -> Option<usize> {
        match self.choice(field) {
            Some(chosen) => (chosen == name).then_some(0),
            None => field.names().iter().position(|known| *known == name),
        }
    }

    fn choice(&self, field: Field) -> Option<&str> {
        let choice = match field {
            Field::Timestamp => &self.timestamp,
            Field::Severity => &self.severity,
            Field::SeverityNumber => &self.severity_number,
            Field::Body => &self.body,
            Field::TraceId => &self.trace_id,
            Field::SpanId => &self.span_id,
            Field::TraceFlags => &self.trace_flags,
            Field::EventName => &self.event_name,
        };
        choice.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_replaces_the_usual_names() {
        let usual = Mapping::default();
        assert_eq!(usual.field_of("@timestamp"), Some(Field::Timestamp));
        assert_eq!(usual.rank(Field::Timestamp, "ts"), Some(3));
        assert_eq!(usual.field_of("when"), None);
        let chosen = Mapping {
            timestamp: Some("when".into()),
            ..Mapping::default()
        };
        assert_eq!(chosen.field_of("when"), Some(Field::Timestamp));
        assert_eq!(chosen.field_of("ts"), None);
        assert_eq!(chosen.field_of("level"), Some(Field::Severity));
    }
}
