//! What a client asks of the agent: one line of JSON.

use serde_json::{Value, json};
use tailrace_pipeline::{TapRequest, TraceOptions};

/// What is shown of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stage {
    /// The record as it was read.
    Input,
    /// The rows that the query makes of it.
    #[default]
    Transform,
    /// The rows as OTLP, in its JSON encoding.
    Output,
}

impl Stage {
    /// All of them, by name.
    pub(crate) const NAMES: [(&'static str, Self); 3] = [
        ("output", Self::Output),
        ("transform", Self::Transform),
        ("input", Self::Input),
    ];

    fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, stage)| *stage == self);
        found.map_or("transform", |(name, _)| name)
    }
}

/// A request of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The name of a pipeline; `None` is all.
    pub(crate) pipeline: Option<String>,
    pub(crate) stage: Stage,
    /// A condition that records have to meet, in SQL.
    pub(crate) condition: Option<String>,
    /// Whether records that do not leave are shown too, and why.
    pub(crate) verdict: bool,
}

impl Request {
    /// The line, without its end.
    pub(super) fn to_json(&self) -> String {
        json!({
            "pipeline": self.pipeline,
            "stage": self.stage.name(),
            "where": self.condition,
            "verdict": self.verdict,
        })
        .to_string()
    }

    /// Reads the line.
    ///
    /// # Errors
    ///
    /// It is no request, in words.
    pub(super) fn from_json(line: &[u8]) -> Result<Self, String> {
        let parsed = serde_json::from_slice(line);
        let Ok(Value::Object(members)) = parsed else {
            return Err("a request is one line with a JSON object".to_owned());
        };
        let mut request = Self::default();
        for (name, value) in members {
            let wrong = || format!("the request's `{name}` cannot be used");
            match (name.as_str(), value) {
                ("pipeline" | "where" | "stage" | "verdict", Value::Null) => {}
                ("pipeline", Value::String(text)) => request.pipeline = Some(text),
                ("where", Value::String(text)) => request.condition = Some(text),
                ("verdict", Value::Bool(is_wanted)) => request.verdict = is_wanted,
                ("stage", Value::String(text)) => {
                    let found = Stage::NAMES.iter().find(|(name, _)| *name == text);
                    request.stage = found.ok_or_else(wrong)?.1;
                }
                ("pipeline" | "where" | "stage" | "verdict", _) => return Err(wrong()),
                _ => return Err(format!("the request has an unknown member `{name}`")),
            }
        }
        Ok(request)
    }

    /// What has to be found out for it.
    pub(crate) fn to_tap(&self) -> TapRequest {
        let is_traced = self.verdict || self.stage != Stage::Input;
        TapRequest {
            pipeline: self.pipeline.clone(),
            condition: self.condition.clone(),
            trace: is_traced.then_some(TraceOptions {
                otlp: self.stage == Stage::Output,
                reasons: self.verdict,
                ..TraceOptions::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        for (_, stage) in Stage::NAMES {
            let request = Request {
                pipeline: Some("app".to_owned()),
                stage,
                condition: Some("a = '\n'".to_owned()),
                verdict: true,
            };
            assert_eq!(
                Request::from_json(request.to_json().as_bytes()),
                Ok(request)
            );
        }
        assert_eq!(Request::from_json(b"{}"), Ok(Request::default()));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for (line, expected) in [
            (&b""[..], "one line with a JSON object"),
            (b"\xff{}", "one line with a JSON object"),
            (b"[1]", "one line with a JSON object"),
            (b"{\"stage\":\"scan\"}", "`stage`"),
            (b"{\"where\":7}", "`where`"),
            (b"{\"n\":7}", "unknown member `n`"),
        ] {
            let error = Request::from_json(line).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
