//! What the agent reports besides the overview: sources, problems, its own log, and the query with its plan.

use ratatui::text::{Line, Span};
use serde_json::Value;

use super::Page;
use super::palette::Palette;
use super::table::{Column, cut, table, wrapped};
use crate::printed;
use crate::top::answer::{lines, list, number, text};
use crate::top::number::{bytes, clock, duration, whole};
use crate::top::state::State;

const SOURCES: [Column; 6] = [
    Column::text("source", 0),
    Column::text("pipeline", 10).wide(),
    Column::number("files", 6).wide(),
    Column::number("read", 9),
    Column::number("behind", 9),
    Column::number("oldest", 9).wide(),
];

/// The sources: files, namespaces or pods.
pub(super) fn sources(state: &State, report: &Value, palette: &Palette, width: usize) -> Page {
    let room = source_room(width);
    let rows = list(&report["sources"]).iter().map(|source| {
        let plain = |text: String| (text, palette.plain);
        let age = number(&source["oldest_unread_s"]);
        vec![
            plain(tail(&text(&source["name"]), room)),
            (text(&source["pipeline"]), palette.dim),
            plain(whole(&source["files"])),
            plain(bytes(number(&source["read_bytes"]))),
            plain(bytes(number(&source["behind_bytes"]))),
            plain(duration(age)),
        ]
    });
    let mut page = table(width, palette, &SOURCES, rows);
    let (by, sort) = state.source_order();
    let of = format!("{} of {}", page.rows.len(), whole(&report["total"]));
    page.head.insert(
        0,
        Line::from(vec![
            Span::styled("by ", palette.dim),
            Span::styled(by, palette.accent),
            Span::styled(", sorted by ", palette.dim),
            Span::styled(sort, palette.accent),
            Span::styled(format!("  {of}"), palette.dim),
        ]),
    );
    page
}

/// What the other columns of the sources leave.
fn source_room(width: usize) -> usize {
    let others = if width >= super::table::NARROW {
        53
    } else {
        22
    };
    width.saturating_sub(others)
}

/// The end of a path, which says more than its beginning.
fn tail(path: &str, width: usize) -> String {
    let reversed: String = path.chars().rev().collect();
    let kept = cut(&reversed, width);
    kept.chars().rev().collect()
}

/// What was malformed, refused, dropped or unreadable.
pub(super) fn problems(report: &Value, palette: &Palette, width: usize) -> Page {
    let mut rows = Vec::new();
    for reason in list(&report["reasons"]) {
        let kind = reason["kind"].as_str().unwrap_or("");
        let is_loss = matches!(kind, "lost" | "dropped" | "rejected");
        let style = if is_loss { palette.bad } else { palette.warn };
        let facts = format!(
            "  {}  {}  {} {}  ",
            clock(number(&reason["unix_s"])),
            times(&reason["count"]),
            text(&reason["pipeline"]),
            text(&reason["stage"]),
        );
        rows.push(Line::from(vec![
            Span::styled(printed::shown(kind).replace('_', " "), style),
            Span::styled(facts, palette.dim),
            Span::styled(text(&reason["subject"]), palette.accent),
        ]));
        let indent = |line: String| Line::from(format!("  {line}"));
        let room = width.saturating_sub(2);
        rows.extend(
            wrapped(&text(&reason["reason"]), room)
                .into_iter()
                .map(indent),
        );
        if reason["example"].is_string() {
            let example = wrapped(&text(&reason["example"]), room).into_iter();
            rows.extend(example.map(indent).map(|line| line.style(palette.dim)));
        }
    }
    if rows.is_empty() {
        let none = "Nothing was malformed, refused, dropped or unreadable since the start.";
        rows.push(Line::from(none).style(palette.dim));
    }
    Page {
        head: Vec::new(),
        rows,
    }
}

fn times(count: &Value) -> String {
    match count.as_u64() {
        Some(1) => "once".to_owned(),
        _ => format!("{} times", whole(count)),
    }
}

/// The own log of the agent, the newest line first.
pub(super) fn log(report: &Value, palette: &Palette, width: usize) -> Page {
    let mut lines: Vec<&Value> = list(&report["lines"]).iter().collect();
    lines.sort_by(|a, b| number(&b["unix_ms"]).total_cmp(&number(&a["unix_ms"])));
    let mut rows = Vec::new();
    for line in lines {
        let level = text(&line["level"]);
        let style = match level.as_str() {
            "ERROR" => palette.bad,
            "WARN" => palette.warn,
            _ => palette.dim,
        };
        let fields = line["fields"].as_object().into_iter().flatten();
        let fields = fields.map(|(name, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), ToOwned::to_owned);
            printed::shown(&format!("{name}={value}"))
        });
        let message = [text(&line["message"])].into_iter().chain(fields);
        let message = message.collect::<Vec<_>>().join("  ");
        let time = clock(number(&line["unix_ms"]) / 1000.0);
        let indent = time.len() + 8;
        for (n, part) in wrapped(&message, width.saturating_sub(indent))
            .into_iter()
            .enumerate()
        {
            let (time, level) = match n {
                0 => (format!("{time}  "), format!("{level:<6}")),
                _ => (" ".repeat(indent), String::new()),
            };
            rows.push(Line::from(vec![
                Span::styled(time, palette.dim),
                Span::styled(level, style),
                Span::raw(part),
            ]));
        }
    }
    Page {
        head: Vec::new(),
        rows,
    }
}

/// The query as written, and how the agent executes it.
pub(super) fn query(pipeline: &Value, report: &Value, palette: &Palette) -> Page {
    let mut rows: Vec<Line<'static>> = lines(&pipeline["query"])
        .into_iter()
        .map(Line::from)
        .collect();
    rows.push(Line::default());
    rows.push(Line::from("how the agent executes it").style(palette.accent));
    rows.extend(lines(&report["text"]).into_iter().map(Line::from));
    Page {
        head: Vec::new(),
        rows,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_keeps_its_end() {
        assert_eq!(super::tail("/var/log/app.log", 9), "…/app.log");
        assert_eq!(super::tail("a.log", 9), "a.log");
    }
}
