//! Outputs: state, rates, the last error, and the time of the next attempt.

use ratatui::text::{Line, Span};
use serde_json::Value;

use super::Page;
use super::palette::Palette;
use super::table::{Column, cut, table};
use crate::top::answer::{list, number, text};
use crate::top::number::{bytes, compact, per_second};
use crate::top::state::State;

const COLUMNS: [Column; 7] = [
    Column::text("output", 0),
    Column::text("type", 8).wide(),
    Column::text("state", 8),
    Column::number("delivered", 9),
    Column::number("sent", 10).wide(),
    Column::number("ratio", 8).wide(),
    Column::number("in flight", 9).wide(),
];

/// The outputs of a pipeline, each followed by its last error.
pub(super) fn of_pipeline(
    state: &State,
    pipeline: &Value,
    palette: &Palette,
    width: usize,
) -> Page {
    let outputs = list(&pipeline["outputs"]);
    let rows = outputs.iter().map(|output| {
        let (delivered, sent) = state
            .samples
            .output_rates(&pipeline["name"], &output["name"]);
        let ratio = number(&output["encoded_bytes"]) / number(&output["sent_bytes"]);
        let name = output["state"].as_str().unwrap_or("");
        let plain = |text: String| (text, palette.plain);
        vec![
            (text(&output["name"]), palette.strong),
            plain(text(&output["type"])),
            (text(&output["state"]), palette.of_state(name)),
            plain(per_second(compact, delivered)),
            plain(per_second(bytes, sent)),
            plain(match ratio.is_finite() {
                true => format!("{ratio:.1} : 1"),
                false => "-".to_owned(),
            }),
            plain(compact(number(&output["in_flight_requests"]))),
        ]
    });
    let mut page = table(width, palette, &COLUMNS, rows);
    let rows = std::mem::take(&mut page.rows);
    for (row, output) in rows.into_iter().zip(outputs) {
        page.rows.push(row);
        page.rows.extend(error(output, palette, width));
    }
    page
}

/// The outputs of all pipelines.
pub(super) fn page(state: &State, palette: &Palette, width: usize) -> Page {
    let mut rows = Vec::new();
    for pipeline in state.pipelines() {
        let name = cut(&text(&pipeline["name"]), width);
        rows.push(Line::from(Span::styled(name, palette.accent)));
        let outputs = of_pipeline(state, pipeline, palette, width);
        rows.extend(outputs.head);
        rows.extend(outputs.rows);
        rows.push(Line::default());
    }
    Page {
        head: Vec::new(),
        rows,
    }
}

/// What went wrong last, and what follows.
fn error(output: &Value, palette: &Palette, width: usize) -> Option<Line<'static>> {
    let error = output["last_error"]["text"].as_str()?;
    let is_over = matches!(output["state"].as_str(), Some("ok" | "idle"));
    let retry = number(&output["retry_in_s"]);
    let next = match retry.is_finite() && !is_over {
        true => format!(" next attempt in {:.0} s", retry.max(0.0).ceil()),
        false => String::new(),
    };
    let before = if is_over { "  last error: " } else { "  " };
    let room = width.saturating_sub(before.len() + next.len());
    let style = if is_over { palette.dim } else { palette.warn };
    Some(Line::from(vec![
        Span::styled(before, palette.dim),
        Span::styled(cut(&crate::printed::shown(error), room), style),
        Span::styled(next, palette.strong),
    ]))
}
