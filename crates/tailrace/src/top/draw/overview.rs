//! The overview of a pipeline: its stages with their rates, what is in flight, the last 15 minutes, and its outputs.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::palette::Palette;
use super::table::{NARROW, cut, fit};
use super::{Page, ledger, outputs};
use crate::top::answer::{count, list, number, sum_of_outputs, text};
use crate::top::number::{bytes, compact, duration, per_second, percent, whole};
use crate::top::rates::{Rates, Series};
use crate::top::state::State;

const STAGES: usize = 5;
/// The widest a line of the last 15 minutes gets: ten seconds for each column.
const SPARK_MAX: usize = 90;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Fuller than this is worth a look.
const FULL: f64 = 0.9;

/// A stage: its name, its rate, and what else is known of it.
struct Stage {
    name: &'static str,
    rate: String,
    notes: Vec<(String, Style)>,
}

/// The lines of the overview.
pub(super) fn page(state: &State, pipeline: &Value, palette: &Palette, width: usize) -> Page {
    let name = pipeline["name"].as_str().unwrap_or("");
    let rates = state.samples.rates(name);
    let stages = stages(pipeline, &rates, palette);
    let mut rows = if width >= NARROW {
        side_by_side(&stages, palette, width)
    } else {
        one_below_the_other(&stages, palette)
    };
    rows.push(in_flight(&pipeline["queue"], palette, width));
    rows.push(Line::default());
    let columns = width.saturating_sub(26).min(SPARK_MAX);
    rows.extend(past(&state.history.series(name, columns), palette));
    rows.push(Line::default());
    let mut balance = ledger::balance(&pipeline["ledger"], palette);
    balance
        .spans
        .insert(0, Span::styled("ledger  ", palette.dim));
    rows.push(balance);
    let outputs = outputs::of_pipeline(state, pipeline, palette, width);
    rows.extend(outputs.head);
    rows.extend(outputs.rows);
    Page {
        head: vec![title(state, pipeline, palette, width)],
        rows,
    }
}

/// Which pipeline this is, of how many, and what it reads.
pub(super) fn title(
    state: &State,
    pipeline: &Value,
    palette: &Palette,
    width: usize,
) -> Line<'static> {
    let (at, all) = state.position();
    let inputs: Vec<String> = list(&pipeline["inputs"])
        .iter()
        .map(|input| text(&input["name"]))
        .collect();
    let place = match all {
        1 => String::new(),
        _ => format!("  {} of {all}", at + 1),
    };
    let name = cut(&text(&pipeline["name"]), width / 2);
    Line::from(vec![
        Span::styled(name, palette.strong),
        Span::styled(place, palette.accent),
        Span::styled(format!("  {}", inputs.join(", ")), palette.dim),
    ])
}

fn stages(pipeline: &Value, rates: &Rates, palette: &Palette) -> [Stage; STAGES] {
    let counts = &pipeline["stages"];
    let dim = |text: String| (text, palette.dim);
    let warn = |text: String| (text, palette.warn);
    let stage = |name, rate, notes: Vec<(String, Style)>| Stage { name, rate, notes };
    let unread = number(&counts["unread_bytes"]);
    let mut read = vec![dim(format!("{} unread", bytes(unread)))];
    let age = number(&counts["oldest_unread_s"]);
    read.push(dim(match age > 0.0 {
        true => format!("oldest {}", duration(age)),
        false => format!("{} open", whole(&counts["files_open"])),
    }));
    let mut frame = Vec::new();
    if rates.records > 0.0 {
        frame.push(dim(format!("{}/record", bytes(rates.read / rates.records))));
    }
    if count(&counts["malformed"]) > 0 {
        let share = number(&counts["malformed"]) / number(&counts["records"]);
        frame.push(warn(format!("{} malf.", percent(share))));
    }
    let mut transform = vec![dim(format!("-{}", per_second(compact, rates.filtered)))];
    if count(&counts["failed_rows"]) > 0 {
        transform.push(warn(format!(
            "{} failed",
            compact(number(&counts["failed_rows"]))
        )));
    }
    let mut encode = vec![dim(format!("{} sent", per_second(bytes, rates.sent)))];
    if rates.sent > 0.0 {
        encode.push(dim(format!("{:.1} : 1", rates.encoded / rates.sent)));
    }
    let requests = sum_of_outputs(pipeline, "in_flight_requests");
    let mut send = vec![dim(format!("{requests:.0} in flight"))];
    let is_bad = |output: &&Value| !matches!(output["state"].as_str(), Some("ok" | "idle"));
    if let Some(bad) = list(&pipeline["outputs"]).iter().find(is_bad) {
        send.push(warn(text(&bad["state"])));
    }
    [
        stage("read", per_second(bytes, rates.read), read),
        stage("frame", per_second(compact, rates.records), frame),
        stage(
            "transform",
            format!("{} kept", percent(rates.kept(counts))),
            transform,
        ),
        stage("encode", per_second(bytes, rates.encoded), encode),
        stage("send", per_second(compact, rates.delivered), send),
    ]
}

fn side_by_side(stages: &[Stage; STAGES], palette: &Palette, width: usize) -> Vec<Line<'static>> {
    let column = width / STAGES;
    let row = |of: &dyn Fn(&Stage) -> (String, Style)| {
        let cells = stages.iter().map(|stage| {
            let (text, style) = of(stage);
            Span::styled(fit(&cut(&text, column - 1), column, false), style)
        });
        Line::from(cells.collect::<Vec<_>>())
    };
    let note = |at: usize| {
        row(&move |stage| {
            let note = stage.notes.get(at).cloned();
            note.unwrap_or_else(|| (String::new(), palette.plain))
        })
    };
    let names = stages.iter().enumerate().flat_map(|(n, stage)| {
        let rest = column.saturating_sub(stage.name.len() + 4);
        let arrow = match n + 1 < STAGES {
            true => format!(" {}▶ ", "─".repeat(rest)),
            false => String::new(),
        };
        [
            Span::styled(stage.name, palette.accent),
            Span::styled(fit(&arrow, column - stage.name.len(), false), palette.dim),
        ]
    });
    vec![
        Line::from(names.collect::<Vec<_>>()),
        row(&|stage| (stage.rate.clone(), palette.strong)),
        note(0),
        note(1),
    ]
}

fn one_below_the_other(stages: &[Stage; STAGES], palette: &Palette) -> Vec<Line<'static>> {
    let line = |stage: &Stage| {
        let mut spans = vec![
            Span::styled(fit(stage.name, 10, false), palette.accent),
            Span::styled(fit(&stage.rate, 12, false), palette.strong),
        ];
        // What is a warning comes last, and matters more.
        if let Some((note, style)) = stage.notes.last() {
            spans.push(Span::styled(format!(" {note}"), *style));
        }
        Line::from(spans)
    };
    stages.iter().map(line).collect()
}

fn in_flight(queue: &Value, palette: &Palette, width: usize) -> Line<'static> {
    let (size, capacity) = (
        number(&queue["size_bytes"]),
        number(&queue["capacity_bytes"]),
    );
    let share = (size / capacity).clamp(0.0, 1.0);
    let label = format!(" {} of {}", bytes(size), bytes(capacity));
    let room = width.saturating_sub(10 + label.len()).min(60);
    let filled = if share.is_finite() {
        (share * room as f64).round() as usize
    } else {
        0
    };
    let style = if share >= FULL {
        palette.warn
    } else {
        palette.accent
    };
    Line::from(vec![
        Span::styled("in flight ", palette.dim),
        Span::styled("━".repeat(filled), style),
        Span::styled("─".repeat(room - filled.min(room)), palette.dim),
        Span::raw(label),
    ])
}

/// The last 15 minutes: a line for each of four figures.
fn past(series: &Series, palette: &Palette) -> Vec<Line<'static>> {
    let cpu = |seconds: f64| match seconds.is_finite() {
        true => format!("{seconds:.2} s/M"),
        false => "-".to_owned(),
    };
    let line = |title: &'static str, values: &[f64], last: String| {
        Line::from(vec![
            Span::styled(fit(title, 12, false), palette.dim),
            Span::styled(fit(&last, 13, false), palette.strong),
            Span::styled(spark(values), palette.accent),
        ])
    };
    let last = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN);
    let of = |values: &[f64], write: fn(f64) -> String| write(last(values));
    vec![
        line(
            "throughput",
            &series.throughput,
            per_second(bytes, last(&series.throughput)),
        ),
        line("CPU", &series.cpu, cpu(last(&series.cpu))),
        line("memory", &series.memory, of(&series.memory, bytes)),
        line("delay", &series.delay, of(&series.delay, duration)),
    ]
}

/// Values as bars of eight heights, from zero to the highest; a space is unknown.
fn spark(values: &[f64]) -> String {
    let max = values
        .iter()
        .copied()
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    let bar = |value: &f64| {
        if !value.is_finite() {
            return ' ';
        }
        let share = if max > 0.0 { value / max } else { 0.0 };
        BARS[((share * 8.0) as usize).min(BARS.len() - 1)]
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_of_the_highest_value() {
        assert_eq!(spark(&[0.0, 1.0, f64::NAN, 2.0]), "▁▅ █");
        assert_eq!(spark(&[0.0, -1.0]), "▁▁");
        assert_eq!(spark(&[]), "");
    }
}
