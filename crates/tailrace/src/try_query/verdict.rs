//! What became of a record: as text for people, and as JSON.

use std::fmt::Display;
use std::io::{self, Write};

use tailrace_pipeline::{PipelinePlan, ReadValue, Traced, Unmet, Verdict};
use tailrace_sql::Outcome;

use super::table::shortened;
use crate::style;

/// Characters of a line where the width of the terminal is not known.
const WIDTH: u16 = 120;
/// What stands before the record: the number of the line and the verdict.
const INDENT: usize = 19;
/// Characters of a value.
const VALUE_CHARS_MAX: usize = 80;

/// Prints a record and what became of it.
pub(super) fn print(traced: &Traced, plan: &PipelinePlan, out: &mut dyn Write) -> io::Result<()> {
    let width = usize::from(style::width().unwrap_or(WIDTH)).max(2 * INDENT);
    let line = shortened(&String::from_utf8_lossy(&traced.raw), width - INDENT);
    let number = traced.line;
    write!(out, "{number:>7}  ")?;
    match &traced.verdict {
        Verdict::Kept(_) => write!(out, "{}", style::good(format_args!("{:<10}", "kept")))?,
        Verdict::Filtered(_) => write!(out, "{}", style::dim(format_args!("{:<10}", "filtered")))?,
        Verdict::Crashed(_) => write!(out, "{}", style::bad(format_args!("{:<10}", "crashed")))?,
    }
    writeln!(out, "{line}")?;
    let mut say = |look: Look, text: &dyn Display| {
        let text = shortened(&text.to_string(), 1000);
        let text = match look {
            Look::Plain => text,
            Look::Warn => style::warn(text).to_string(),
            Look::Bad => style::bad(text).to_string(),
        };
        writeln!(out, "{:INDENT$}{text}", "")
    };
    if traced.lines > 1 {
        let lines = traced.lines;
        say(Look::Plain, &format_args!("made of {lines} lines"))?;
    }
    if let Some(reason) = &traced.malformed {
        say(Look::Warn, &format_args!("malformed: {reason}"))?;
    }
    if traced.is_truncated {
        let text = "truncated: longer than max_record_bytes, or a part or its end is missing";
        say(Look::Warn, &text)?;
    }
    if traced.is_repaired {
        say(Look::Warn, &"invalid UTF-8 became U+FFFD")?;
    }
    for failed in &traced.failed {
        let of = match &failed.column {
            Some(column) => format!("column {column}"),
            None => "an expression".to_owned(),
        };
        let reason = plan.config.transform.redact(&failed.reason);
        say(Look::Warn, &format_args!("{of} failed: {reason}"))?;
    }
    match &traced.verdict {
        Verdict::Kept(rows) => {
            for row in rows {
                say(Look::Plain, &format_args!("=> {}", row.json))?;
            }
            if traced.more_rows > 0 {
                let more = traced.more_rows;
                say(
                    Look::Warn,
                    &format_args!("{more} more rows are too large to show"),
                )?;
            }
        }
        Verdict::Filtered(_) => {
            for reason in reasons(traced, plan) {
                say(Look::Plain, &reason)?;
            }
        }
        Verdict::Crashed(reason) => say(Look::Bad, reason)?,
    }
    Ok(())
}

/// How a line below a record looks.
enum Look {
    Plain,
    Warn,
    Bad,
}

/// Why the query makes no row of a record, in words: a reason for each SELECT. None if it makes one.
pub(crate) fn reasons(traced: &Traced, plan: &PipelinePlan) -> Vec<String> {
    let Verdict::Filtered(unmet) = &traced.verdict else {
        return Vec::new();
    };
    let branches = plan.query.branches().len();
    let of_select = |unmet: &Unmet| match branches {
        0 | 1 => reason(unmet),
        _ => format!("SELECT {}: {}", unmet.branch + 1, reason(unmet)),
    };
    unmet.iter().map(of_select).collect()
}

/// Why a SELECT makes no row, in words.
pub(crate) fn reason(unmet: &Unmet) -> String {
    let condition = &unmet.condition;
    let reads: Vec<String> = unmet.reads.iter().map(value).collect();
    let reads = match reads.is_empty() {
        true => String::new(),
        false => format!(": {}", reads.join(", ")),
    };
    match &unmet.outcome {
        None if condition.is_empty() => "it makes no row: unnest finds no element".to_owned(),
        None => format!("it makes no row, though `{condition}` can be true{reads}"),
        Some(Outcome::False) => format!("`{condition}` is false{reads}"),
        Some(Outcome::Null) => format!("`{condition}` is NULL{reads}"),
        Some(Outcome::Failed(why)) => format!("`{condition}` failed: {why}{reads}"),
    }
}

fn value(read: &ReadValue) -> String {
    let name = &read.name;
    let Some(json) = &read.json else {
        return format!("{name} is absent");
    };
    let json = shortened(json, VALUE_CHARS_MAX);
    match read.misfit {
        Some(ty) => format!("{name} = {json}, which is no {ty}"),
        None => format!("{name} = {json}"),
    }
}

/// The same as a JSON object. Rows and values are in it as they are written: numbers stay exact.
pub(super) fn json(traced: &Traced) -> String {
    let mut members = vec![
        ("line", traced.line.to_string()),
        ("lines", traced.lines.to_string()),
    ];
    match &traced.verdict {
        Verdict::Kept(rows) => {
            members.push(("verdict", text("kept")));
            members.push(("rows", list(rows.iter().map(|row| row.json.clone()))));
            let more = (traced.more_rows > 0).then(|| traced.more_rows.to_string());
            members.extend(more.map(|more| ("more_rows", more)));
        }
        Verdict::Filtered(reasons) => {
            members.push(("verdict", text("filtered")));
            members.push(("reasons", list(reasons.iter().map(reason_json))));
        }
        Verdict::Crashed(reason) => {
            members.push(("verdict", text("crashed")));
            members.push(("reason", text(reason)));
        }
    }
    let malformed = traced.malformed.as_deref().map(text);
    members.extend(malformed.map(|reason| ("malformed", reason)));
    let flags = [
        ("truncated", traced.is_truncated),
        ("repaired", traced.is_repaired),
    ];
    let flags = flags.into_iter().filter(|(_, is_set)| *is_set);
    members.extend(flags.map(|(name, _)| (name, true.to_string())));
    if !traced.failed.is_empty() {
        let failed = traced.failed.iter().map(|failed| {
            object([
                ("select", (failed.branch + 1).to_string()),
                ("column", optional(failed.column.as_deref())),
                ("reason", text(&failed.reason)),
            ])
        });
        members.push(("failed", list(failed)));
    }
    members.push(("raw", text(&String::from_utf8_lossy(&traced.raw))));
    object(members)
}

fn reason_json(unmet: &Unmet) -> String {
    let (is, why) = match &unmet.outcome {
        None => ("true", None),
        Some(Outcome::False) => ("false", None),
        Some(Outcome::Null) => ("null", None),
        Some(Outcome::Failed(why)) => ("failed", Some(why.as_str())),
    };
    let present = unmet.reads.iter();
    let present = present.filter_map(|read| Some((read.name.as_str(), read.json.clone()?)));
    let absent = unmet.reads.iter().filter(|read| read.json.is_none());
    object([
        ("select", (unmet.branch + 1).to_string()),
        ("condition", text(&unmet.condition)),
        ("is", text(is)),
        ("failed", optional(why)),
        ("values", object(present)),
        ("absent", list(absent.map(|read| text(&read.name)))),
    ])
}

fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn optional(value: Option<&str>) -> String {
    value.map_or_else(|| "null".to_owned(), text)
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn object<'a>(members: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let member = |(name, value)| format!("{}:{value}", text(name));
    let members: Vec<String> = members.into_iter().map(member).collect();
    format!("{{{}}}", members.join(","))
}
