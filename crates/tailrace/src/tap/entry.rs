//! A sampled record as a line of JSON. Rows are in it as they are written, so that numbers stay exact. Values of `${...}` are
//! replaced before anything is shortened, since half a secret would not be recognised.

use serde_json::Value;
use tailrace_pipeline::{Tapped, Traced, Unmet, Verdict};

use super::request::Stage;
use crate::otlp_json;
use crate::printed::{self, redacted};
use crate::try_query::verdict;

/// A longer record, or row, is shortened.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Rows of one record, and their bytes, but for the last one.
const ROWS_MAX: usize = 100;
const ROWS_BYTES_MAX: usize = 256 * 1024;
/// Characters of a reason.
const REASON_CHARS_MAX: usize = 1000;

/// Whether a reader sees the record who wants only those that leave.
pub(crate) fn leaves(tapped: &Tapped) -> bool {
    let verdict = tapped.traced.as_ref().map(|traced| &traced.verdict);
    matches!(verdict, None | Some(Verdict::Kept(_)))
}

/// The line, without its end.
pub(crate) fn json(tapped: &Tapped, stage: Stage) -> String {
    let raw = redacted(&String::from_utf8_lossy(&tapped.raw));
    let shown = shortened(&raw, TEXT_BYTES_MAX);
    let mut members = vec![
        ("unix_ms", (tapped.observed_ns / 1_000_000).to_string()),
        ("pipeline", text(&tapped.pipeline)),
        ("source", text(&redacted(&tapped.source))),
    ];
    if let Some(traced) = &tapped.traced {
        members.push(("verdict", text(word(traced))));
        members.push((
            "reason",
            reason(traced).map_or("null".to_owned(), |it| text(&it)),
        ));
    }
    members.push(("raw", text(shown)));
    if shown.len() < raw.len() {
        members.push(("raw_bytes", tapped.raw.len().to_string()));
    }
    if tapped.is_truncated {
        members.push(("truncated", "true".to_owned()));
    }
    if let Some(traced) = &tapped.traced
        && let Verdict::Kept(rows) = &traced.verdict
    {
        let (mut shown, mut bytes) = (Vec::new(), 0);
        for row in rows.iter().take(ROWS_MAX) {
            let row = match (stage, &row.otlp) {
                (Stage::Input, _) => continue,
                (Stage::Output, Some(otlp)) => otlp_text(otlp),
                _ => printed::json_line(&row.json),
            };
            let row = short_row(row);
            bytes += row.len();
            shown.push(row);
            if bytes >= ROWS_BYTES_MAX {
                break;
            }
        }
        let more = (rows.len() - shown.len()) as u64 + traced.more_rows;
        if stage != Stage::Input {
            members.push(("rows", format!("[{}]", shown.join(","))));
            members.extend((more > 0).then(|| ("more_rows", more.to_string())));
        }
    }
    let members = members
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"));
    let line = members.collect::<Vec<_>>().join(",");
    printed::plain_json(&format!("{{{line}}}"))
}

/// The one word that says most: a record that leaves may be malformed, or an expression may have failed for it.
fn word(traced: &Traced) -> &'static str {
    match &traced.verdict {
        Verdict::Crashed(_) => "failed",
        Verdict::Filtered(_) => "filtered",
        Verdict::Kept(_) if !traced.failed.is_empty() => "failed",
        Verdict::Kept(_) if traced.malformed.is_some() => "malformed",
        Verdict::Kept(_) => "kept",
    }
}

/// Why, in words; `None` if there is nothing to say.
fn reason(traced: &Traced) -> Option<String> {
    let mut texts = Vec::new();
    match &traced.verdict {
        Verdict::Crashed(reason) => texts.push(format!("it cannot be processed: {reason}")),
        Verdict::Filtered(all) => {
            let several = all.len() > 1;
            texts.extend(all.iter().map(|it| match several {
                true => format!("SELECT {}: {}", it.branch + 1, unmet(it)),
                false => unmet(it),
            }));
        }
        Verdict::Kept(_) => {}
    }
    for failed in &traced.failed {
        let of = match &failed.column {
            Some(column) => format!("column {column}"),
            None => "an expression".to_owned(),
        };
        texts.push(format!("{of} failed: {}", failed.reason));
    }
    texts.extend(traced.malformed.clone());
    let text = redacted(&texts.join("; "));
    let short: String = text.chars().take(REASON_CHARS_MAX).collect();
    (!short.is_empty()).then_some(short)
}

/// Why a SELECT makes no row.
fn unmet(unmet: &Unmet) -> String {
    let mut unmet = unmet.clone();
    let values = unmet.reads.iter_mut().filter_map(|it| it.json.as_mut());
    values.for_each(|json| *json = redacted(json));
    verdict::reason(&unmet)
}

fn otlp_text(otlp: &[u8]) -> String {
    match otlp_json::request(otlp) {
        Ok(request) => printed::redacted_json(request).to_string(),
        Err(_) => "null".to_owned(),
    }
}

/// A row that is JSON and not too long: half of one would be none.
fn short_row(row: String) -> String {
    match shortened(&row, TEXT_BYTES_MAX) {
        short if short.len() < row.len() => {
            format!("{{\"shortened\":{},\"bytes\":{}}}", text(short), row.len())
        }
        _ => row,
    }
}

/// The beginning of a text.
fn shortened(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

fn text(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailrace_pipeline::{FailedExpression, ReadValue, Row};
    use tailrace_sql::Outcome;

    fn tapped(raw: &[u8], traced: Option<Traced>) -> Tapped {
        Tapped {
            pipeline: "app".to_owned(),
            source: "/logs/a\u{9b}.log".to_owned(),
            observed_ns: 1_700_000_000_123_456_789,
            raw: raw.to_vec().into(),
            is_truncated: false,
            traced,
        }
    }

    fn traced(verdict: Verdict) -> Traced {
        Traced {
            line: 0,
            lines: 0,
            raw: Vec::new().into(),
            verdict,
            more_rows: 0,
            malformed: None,
            is_truncated: false,
            is_repaired: false,
            failed: Vec::new(),
        }
    }

    fn parsed(tapped: &Tapped) -> Value {
        let line = json(tapped, Stage::Transform);
        assert!(!line.contains(tailrace_config::is_unsafe), "{line}");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn row(json: &str) -> Row {
        Row {
            json: json.to_owned(),
            otlp: None,
        }
    }

    #[test]
    fn a_record_is_one_plain_line() {
        let kept = Verdict::Kept(vec![row("{\"n\":12345678901234567890123}")]);
        let tapped = tapped(b"{\"n\":1}\n\x1b[31m\xff", Some(traced(kept)));
        let line = json(&tapped, Stage::Transform);
        assert_eq!(
            line,
            "{\"unix_ms\":1700000000123,\"pipeline\":\"app\",\"source\":\"/logs/a\\u009b.log\",\"verdict\":\"kept\",\
             \"reason\":null,\"raw\":\"{\\\"n\\\":1}\\n\\u001b[31m\u{fffd}\",\"rows\":[{\"n\":12345678901234567890123}]}"
        );
        assert!(!json(&tapped, Stage::Input).contains("rows"));
    }

    #[test]
    fn what_is_huge_is_shortened_and_says_so() {
        let found = parsed(&tapped("ä".repeat(100_001).as_bytes(), None));
        assert_eq!(found["raw"].as_str().map(str::len), Some(TEXT_BYTES_MAX));
        assert_eq!(
            (&found["raw_bytes"], &found["verdict"]),
            (&Value::from(200_002), &Value::Null)
        );
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(100_000));
        let kept = Verdict::Kept(vec![row(&long), row("{}")]);
        let found = parsed(&tapped(b"", Some(traced(kept))));
        assert_eq!(found["rows"][0]["bytes"], long.len());
        assert!(long.starts_with(found["rows"][0]["shortened"].as_str().unwrap_or("?")));
        assert_eq!(found["rows"][1], Value::Object(serde_json::Map::new()));
        let many = Traced {
            more_rows: 5,
            ..traced(Verdict::Kept(vec![row("{}"); 1000]))
        };
        let found = parsed(&tapped(b"", Some(many)));
        assert_eq!(
            (found["rows"].as_array().map(Vec::len), &found["more_rows"]),
            (Some(100), &Value::from(905))
        );
        let large = Verdict::Kept(vec![row(&long); 50]);
        assert!(
            json(&tapped(b"", Some(traced(large))), Stage::Transform).len() < 2 * ROWS_BYTES_MAX
        );
    }

    #[test]
    fn a_verdict_says_why() {
        let said = |traced: Traced| {
            let found = parsed(&tapped(b"", Some(traced)));
            let text = |key: &str| found[key].as_str().unwrap_or("-").to_owned();
            (text("verdict"), text("reason"))
        };
        let check = |traced, verdict: &str, reason: &str| {
            assert_eq!(said(traced), (verdict.to_owned(), reason.to_owned()));
        };
        let read = |json: Option<String>| ReadValue {
            name: "level".to_owned(),
            json,
            misfit: None,
        };
        let unmet = |branch, json| Unmet {
            branch,
            condition: "level = 'ERROR'".to_owned(),
            outcome: Some(Outcome::False),
            reads: vec![read(json)],
        };
        check(traced(Verdict::Kept(vec![row("{}")])), "kept", "-");
        let one = Verdict::Filtered(vec![unmet(0, Some("\"info\"".to_owned()))]);
        check(
            traced(one),
            "filtered",
            "`level = 'ERROR'` is false: level = \"info\"",
        );
        let two = Verdict::Filtered(vec![unmet(0, None), unmet(1, Some("x".repeat(100)))]);
        let expected = format!(
            "SELECT 1: `level = 'ERROR'` is false: level is absent; SELECT 2: `level = 'ERROR'` is false: level = {}...",
            "x".repeat(77)
        );
        check(traced(two), "filtered", &expected);
        let malformed = Traced {
            malformed: Some("not JSON".to_owned()),
            ..traced(Verdict::Kept(vec![row("{}")]))
        };
        check(malformed.clone(), "malformed", "not JSON");
        let failed = FailedExpression {
            branch: 0,
            column: Some("c".to_owned()),
            reason: "division by zero".to_owned(),
        };
        let failed = Traced {
            failed: vec![failed],
            ..malformed
        };
        check(
            failed,
            "failed",
            "column c failed: division by zero; not JSON",
        );
        let crashed = Verdict::Crashed("a panic".to_owned());
        check(traced(crashed), "failed", "it cannot be processed: a panic");
    }
}
