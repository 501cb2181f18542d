//! The sources and the recent reasons of a running agent as tables, from the JSON of the admin endpoint.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use indicatif::{HumanBytes, HumanCount, HumanDuration};
use serde_json::Value;

use super::{number, text};

/// Sources, as `/api/v1/sources` lists them.
pub(super) fn print_sources(report: &Value, out: &mut dyn Write) -> io::Result<()> {
    let sources = list(&report["sources"]);
    let by = text(&report["by"]);
    if sources.is_empty() {
        return writeln!(out, "no {by} is followed now");
    }
    let mut table = table([&by, "pipeline", "files", "read", "behind", "waits since"]);
    for column in 2..=4 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for source in sources {
        let name = match source["name"].as_str() {
            Some("") => format!("(without a {by})"),
            _ => text(&source["name"]),
        };
        let oldest = source["oldest_unread_s"].as_u64();
        let oldest = oldest.map(|age| HumanDuration(Duration::from_secs(age)).to_string());
        table.add_row([
            name,
            text(&source["pipeline"]),
            HumanCount(number(&source["files"])).to_string(),
            HumanBytes(number(&source["read_bytes"])).to_string(),
            HumanBytes(number(&source["behind_bytes"])).to_string(),
            oldest.unwrap_or_default(),
        ]);
    }
    writeln!(out, "{table}")?;
    let (shown, total) = (sources.len() as u64, number(&report["total"]));
    if shown < total {
        let (shown, total) = (HumanCount(shown), HumanCount(total));
        writeln!(out, "{shown} of {total}; `--top N` shows more")?;
    }
    Ok(())
}

/// Reasons, as `/api/v1/reasons` lists them.
pub(super) fn print_reasons(report: &Value, out: &mut dyn Write) -> io::Result<()> {
    let reasons = list(&report["reasons"]);
    if reasons.is_empty() {
        return writeln!(
            out,
            "nothing was malformed, rejected, denied, lost or repeated since the agent started"
        );
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_secs_f64();
    for reason in reasons {
        let age = (now - reason["unix_s"].as_f64().unwrap_or(now)).max(0.0);
        let age = HumanDuration(Duration::try_from_secs_f64(age).unwrap_or_default());
        writeln!(
            out,
            "{} x {}, pipeline {}, {}, last {age} ago",
            HumanCount(number(&reason["count"])),
            text(&reason["kind"]).replace('_', " "),
            text(&reason["pipeline"]),
            text(&reason["stage"]),
        )?;
        writeln!(out, "    {}", text(&reason["subject"]))?;
        writeln!(out, "    {}", text(&reason["reason"]))?;
        if reason["example"].is_string() {
            writeln!(out, "    for example: {}", text(&reason["example"]))?;
        }
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn table(header: [&str; 6]) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING);
    // One row a line, also where it is wide: people search it.
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header);
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn printed(print: impl Fn(&Value, &mut dyn Write) -> io::Result<()>, report: &Value) -> String {
        let mut out = Vec::new();
        print(report, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn sources_are_a_row_each_and_the_rest_is_counted() {
        let source = |name: &str, oldest: Value| {
            json!({"name": name, "pipeline": "app", "files": 3, "size_bytes": 5000, "read_bytes": 4096,
                   "behind_bytes": 1024, "oldest_unread_s": oldest})
        };
        let sources = [source("shop\u{1b}[2J", json!(61)), source("", Value::Null)];
        let report = json!({"by": "namespace", "sort": "bytes", "total": 1200, "sources": sources});
        let text = printed(print_sources, &report);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[1].contains("shop\\u{1b}[2J") && lines[1].contains("4.00 KiB"),
            "{text}"
        );
        assert!(lines[1].contains("61 seconds"), "{text}");
        assert!(lines[2].contains("(without a namespace)"), "{text}");
        assert!(lines[3].contains("2 of 1,200"), "{text}");
        let nothing = json!({"by": "pod", "sources": [], "total": 0});
        assert!(printed(print_sources, &nothing).contains("no pod"));
        // An agent of another version.
        assert_eq!(printed(print_sources, &json!({})), "no ? is followed now\n");
    }

    #[test]
    fn reasons_say_how_often_where_and_why() {
        let reason = json!({"unix_s": 1.0, "pipeline": "app", "stage": "input", "kind": "read_error",
            "subject": "/a\n2026", "reason": "broken", "count": 1234, "example": null});
        let mut other = reason.clone();
        other["example"] = json!("a line");
        let text = printed(print_reasons, &json!({"reasons": [reason, other]}));
        assert!(
            text.contains("1,234 x read error, pipeline app, input, last"),
            "{text}"
        );
        assert!(text.contains("    /a\\n2026\n    broken\n"), "{text}");
        assert_eq!(text.matches("for example: a line").count(), 1, "{text}");
        assert!(printed(print_reasons, &json!({})).starts_with("nothing was"));
    }
}
