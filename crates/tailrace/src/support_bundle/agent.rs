//! What a running agent says of itself. Texts in which a record may be quoted are left out: examples always, and errors
//! unless they are asked for.

use http::StatusCode;
use serde_json::Value;
use tailrace_config::AdminAddress;

use super::archive::Bundle;
use crate::admin_client::{LEDGER_PATH, STATUS_PATH, ask_any};

/// How much of an answer is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    /// All of it: the agent has written every text.
    All,
    /// What cannot quote a record.
    NoQuotes,
    /// The same of the agent's own log.
    Log,
}

/// What is asked for.
const REPORTS: [(&str, &str, &str, Keep); 10] = [
    (
        "status.json",
        STATUS_PATH,
        "version, phase and config",
        Keep::All,
    ),
    ("ready.json", "/readyz", "whether it is ready", Keep::All),
    (
        "health.json",
        "/healthz",
        "what is not well",
        Keep::NoQuotes,
    ),
    (
        "ledger.json",
        LEDGER_PATH,
        "the outcome of every record",
        Keep::NoQuotes,
    ),
    (
        "overview.json",
        "/api/v1/overview",
        "the state of each pipeline",
        Keep::NoQuotes,
    ),
    (
        "history.json",
        "/api/v1/history",
        "the last minutes",
        Keep::NoQuotes,
    ),
    (
        "reasons.json",
        "/api/v1/reasons",
        "why records were refused",
        Keep::NoQuotes,
    ),
    (
        "sources.json",
        "/api/v1/sources?n=200",
        "files and how far they are read",
        Keep::All,
    ),
    (
        "log.json",
        "/api/v1/log?n=500",
        "the end of its own log",
        Keep::Log,
    ),
    ("metrics.txt", "/metrics", "its metrics", Keep::All),
];

/// Keys whose texts may quote a record.
const QUOTES: [&str; 6] = ["answer", "error", "last_error", "reason", "report", "text"];
/// Keys whose texts are made of records.
const EXAMPLES: [&str; 4] = ["example", "examples", "line", "record"];
/// Fields of the own log that name what it is about.
const LOG_FIELDS: [&str; 14] = [
    "added",
    "address",
    "changed",
    "dir",
    "file",
    "input",
    "output",
    "path",
    "phase",
    "pipeline",
    "removed",
    "stage",
    "unchanged",
    "version",
];

const LEFT_OUT: &str = "[left out]";

/// Asks the agent. After the first failure it is not asked again: that may take long.
pub(super) fn add(address: &AdminAddress, with_errors: bool, bundle: &mut Bundle) {
    for (name, path, what, keep) in REPORTS {
        let name = format!("agent/{name}");
        let (status, body) = match ask_any(address, path) {
            Ok(answer) => answer,
            Err(error) => {
                let reason = format!("the agent at {address} does not answer: {error:#}");
                return bundle.miss("agent/", reason);
            }
        };
        let body = String::from_utf8_lossy(&body);
        if status == StatusCode::NOT_FOUND {
            bundle.miss(&name, "this agent has no such report".to_owned());
        } else if path == "/metrics" {
            bundle.add(&name, what, Ok(body.into_owned()));
        } else {
            let text = kept(&body, keep, with_errors);
            let text = text.ok_or_else(|| format!("it answered {status}, and no JSON"));
            bundle.add_json(&name, what, text);
        }
    }
}

/// An answer without what must not be kept; `None` if it is not JSON.
fn kept(body: &str, keep: Keep, with_errors: bool) -> Option<String> {
    let mut body: Value = serde_json::from_str(body).ok()?;
    if keep == Keep::Log && !with_errors {
        let lines = body.get_mut("lines").and_then(Value::as_array_mut);
        for fields in lines
            .into_iter()
            .flatten()
            .filter_map(|line| line.get_mut("fields"))
        {
            strip_all_but(fields, &LOG_FIELDS);
        }
    }
    let has_quotes = keep == Keep::NoQuotes && !with_errors;
    strip(&mut body, &|key| {
        EXAMPLES.contains(&key) || (has_quotes && QUOTES.contains(&key))
    });
    Some(body.to_string())
}

/// Replaces the texts below such keys.
fn strip(value: &mut Value, is_left_out: &dyn Fn(&str) -> bool) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                if is_left_out(key) {
                    strip_texts(member);
                } else {
                    strip(member, is_left_out);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, is_left_out)),
        _ => {}
    }
}

fn strip_texts(value: &mut Value) {
    match value {
        Value::String(text) => LEFT_OUT.clone_into(text),
        Value::Array(items) => items.iter_mut().for_each(strip_texts),
        Value::Object(members) => members.values_mut().for_each(strip_texts),
        _ => {}
    }
}

fn strip_all_but(fields: &mut Value, kept: &[&str]) {
    for (key, field) in fields.as_object_mut().into_iter().flatten() {
        if !kept.contains(&key.as_str()) {
            strip_texts(field);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: Value, keep: Keep, with_errors: bool) -> Value {
        let text = kept(&value.to_string(), keep, with_errors);
        serde_json::from_str(&text.expect("it is JSON")).expect("so is this")
    }

    #[test]
    fn what_may_quote_a_record_is_left_out() {
        let reasons = || {
            json!({"reasons": [{
                "example": "planted line", "reason": "server said: planted line", "count": 3,
                "last_error": {"unix_s": 1.5, "text": "planted line"}, "pipeline": "a",
            }]})
        };
        let strict = of(reasons(), Keep::NoQuotes, false);
        assert!(!strict.to_string().contains("planted"), "{strict}");
        assert_eq!(strict["reasons"][0]["last_error"]["unix_s"], 1.5);
        assert_eq!(strict["reasons"][0]["pipeline"], "a");
        let with_errors = of(reasons(), Keep::NoQuotes, true);
        assert_eq!(with_errors["reasons"][0]["example"], LEFT_OUT);
        assert_eq!(
            with_errors["reasons"][0]["reason"],
            "server said: planted line"
        );
    }

    #[test]
    fn of_the_own_log_only_known_fields_are_kept() {
        let log = || {
            json!({"lines": [{
                "level": "warn", "message": "refused",
                "fields": {"pipeline": "a", "records": 2, "status": "planted", "new": ["planted"]},
            }]})
        };
        let strict = of(log(), Keep::Log, false);
        let line = &strict["lines"][0];
        assert_eq!(
            (&line["message"], &line["fields"]["pipeline"]),
            (&json!("refused"), &json!("a"))
        );
        assert_eq!(line["fields"]["records"], 2);
        assert!(!strict.to_string().contains("planted"), "{strict}");
        assert!(of(log(), Keep::Log, true).to_string().contains("planted"));
        assert_eq!(kept("<html>", Keep::All, true), None);
    }
}
