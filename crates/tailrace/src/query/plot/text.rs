//! A chart as lines of text: a panel of columns for each series over a time, bars for groups.

use ratatui::text::Span;

use super::data::{Chart, Point, Series};
use super::ticks;
use crate::{printed, style};

/// Columns of text that a chart needs.
const WIDTH_MIN: usize = 30;
/// Wider columns of a chart have a space between them.
const TOUCHING_MAX: usize = 2;
/// Eighths of a cell, from below and from the left.
const UP: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const RIGHT: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// The lines of a chart, at most `width` wide. They are for a [`Printer`](crate::printed::Printer).
pub(super) fn draw(chart: &Chart, width: usize) -> Vec<String> {
    let width = width.max(WIDTH_MIN);
    let mut lines = match (&chart.groups, Chart::range(chart.series.iter())) {
        (_, None) => vec!["there are no values to draw".to_owned()],
        (Some(groups), Some(_)) => bars(chart, groups, width),
        (None, Some(_)) => panels(chart, width),
    };
    lines.extend(chart.notes.iter().map(|note| style::dim(note).to_string()));
    lines
}

/// The range of values in which a series is drawn.
fn range_of(chart: &Chart, series: &Series) -> (f64, f64) {
    let range = match chart.has_one_scale {
        true => Chart::range(chart.series.iter()),
        false => Chart::range(std::iter::once(series)),
    };
    range.unwrap_or((0.0, 0.0))
}

/// A panel for each series, and the time below.
fn panels(chart: &Chart, width: usize) -> Vec<String> {
    let Some((first, last, step)) = chart.times() else {
        return Vec::new();
    };
    let rows = match chart.series.len() {
        1 => 12,
        2 => 8,
        3 | 4 => 6,
        _ => 4,
    };
    let axis_of = |series: &Series| {
        let (min, max) = range_of(chart, series);
        // The area of a column says how large a value is, so it begins at zero.
        let ticks = ticks::numbers(min.min(0.0), max.max(0.0), rows / 3);
        let labels = ticks::labels(&ticks);
        (ticks, labels)
    };
    let axes: Vec<_> = chart.series.iter().map(axis_of).collect();
    let labels = axes.iter().flat_map(|(_, labels)| labels);
    let margin = labels.map(String::len).max().unwrap_or(0);
    let time = TimeAxis {
        start: first,
        end: last.saturating_add(step.max(1)),
        step,
        cells: width.saturating_sub(margin + 2).max(1),
    };
    let mut lines = Vec::new();
    for (series, (ticks, labels)) in chart.series.iter().zip(&axes) {
        let name = fitted(&printed::shown(&series.name), width - margin - 2);
        let largest = labels.last().map_or("", String::as_str);
        let largest = style::dim(format!("{largest:>margin$} ┤"));
        lines.push(format!("{largest}{}", style::strong(name)));
        let range = (ticks[0], ticks[ticks.len() - 1]);
        let cells = time.columns(series);
        let row_of = |tick: f64| ((range.1 - tick) / (range.1 - range.0) * rows as f64).round();
        for row in 0..rows {
            // A label stands beside the row whose lower edge is its value, and the largest one beside the name.
            let edge = (row + 1) as f64;
            let label = ticks.iter().position(|tick| row_of(*tick) == edge);
            let label = label.map_or("", |at| labels[at].as_str());
            let mark = if label.is_empty() { '│' } else { '┤' };
            let drawn: String = cells
                .iter()
                .map(|value| cell(*value, range, row, rows))
                .collect();
            let axis = style::dim(format!("{label:>margin$} {mark}"));
            lines.push(format!("{axis}{}", style::accent(drawn.trim_end())));
        }
    }
    lines.extend(time.lines(margin));
    lines
}

/// What a row of a panel shows of a value.
fn cell(value: Option<f64>, (min, max): (f64, f64), row: usize, rows: usize) -> char {
    let Some(value) = value else { return ' ' };
    let height = |value: f64| (value - min) / (max - min) * rows as f64;
    let base = height(0.0_f64.clamp(min, max));
    let (low, high) = (height(value).min(base), height(value).max(base));
    let (floor, ceiling) = ((rows - row - 1) as f64, (rows - row) as f64);
    if value < 0.0 && min < 0.0 {
        // There are no eighths from above, but halves.
        let filled = (ceiling.min(high) - floor.max(low)).max(0.0);
        return match filled {
            f if f >= 0.75 => '█',
            f if f >= 0.25 => '▀',
            _ => ' ',
        };
    }
    let filled = ((high - floor).clamp(0.0, 1.0) * 8.0).round() as usize;
    // A value that is there can be seen.
    let is_lowest = floor <= base && base < ceiling;
    match filled {
        0 if is_lowest => UP[1],
        _ if ceiling <= base => ' ',
        filled => UP[filled.min(8)],
    }
}

/// The time below the panels.
struct TimeAxis {
    start: i64,
    end: i64,
    /// The span of a bucket.
    step: i64,
    cells: usize,
}

impl TimeAxis {
    /// The cell in which a time is, counted from the left.
    fn cell(&self, at: i64) -> usize {
        let span = i128::from(self.end) - i128::from(self.start);
        let offset = i128::from(at) - i128::from(self.start);
        (offset * self.cells as i128 / span.max(1)) as usize
    }

    /// The value of each cell: the largest of several.
    fn columns(&self, series: &Series) -> Vec<Option<f64>> {
        let mut cells = vec![None; self.cells];
        for Point { at, value } in &series.points {
            let Some(value) = *value else { continue };
            let from = self.cell(*at).min(self.cells - 1);
            let to = self.cell(at.saturating_add(self.step)).min(self.cells);
            let is_wide = to.saturating_sub(from) > TOUCHING_MAX;
            let to = (to - usize::from(is_wide)).max(from + 1);
            for cell in &mut cells[from..to] {
                let larger = |known: f64| {
                    if known.abs() > value.abs() {
                        known
                    } else {
                        value
                    }
                };
                *cell = Some(cell.map_or(value, larger));
            }
        }
        cells
    }

    /// The axis with its labels, and the dates of its ends.
    fn lines(&self, margin: usize) -> [String; 3] {
        // A label of seven characters, and space on both sides.
        let ticks = ticks::times(self.start, self.end, self.cells / 14);
        let mut axis = vec!['─'; self.cells];
        let mut labels = String::new();
        for (at, label) in ticks {
            let cell = self.cell(at).min(self.cells - 1);
            let start = cell.saturating_sub(label.len() / 2);
            let is_free = labels.is_empty() || start > labels.len();
            if is_free && start + label.len() <= self.cells {
                axis[cell] = '┬';
                labels = format!("{labels:start$}{label}");
            }
        }
        let axis: String = axis.into_iter().collect();
        let last = self.end.saturating_sub(self.step.max(1));
        let span = fitted(&ticks::span(self.start, last), self.cells);
        [
            style::dim(format!("{:margin$} └{axis}", "")).to_string(),
            style::dim(format!("{:margin$}  {labels}", "")).to_string(),
            style::dim(format!("{:margin$}  {span}", "")).to_string(),
        ]
    }
}

/// Horizontal bars: one for each group, or a group's name and below it a bar for each series.
fn bars(chart: &Chart, groups: &[String], width: usize) -> Vec<String> {
    let is_single = chart.series.len() == 1;
    let indent = if is_single { "" } else { "  " };
    let names: Vec<_> = match is_single {
        true => groups.iter().map(|group| printed::shown(group)).collect(),
        false => {
            let series = chart.series.iter();
            series.map(|it| printed::shown(&it.name)).collect()
        }
    };
    let longest = names.iter().map(|name| width_of(name)).max().unwrap_or(0);
    let margin = longest.min(width / 3);
    let values = chart.series.iter().flat_map(|series| &series.points);
    let values = values.map(|point| written(point.value).len());
    let room = width.saturating_sub(margin + indent.len() + 2 + values.max().unwrap_or(0));
    let mut lines = Vec::new();
    if is_single {
        let name = fitted(&printed::shown(&chart.series[0].name), width - margin - 1);
        lines.push(format!("{:margin$} {}", "", style::strong(name)));
    }
    for (at, group) in groups.iter().enumerate() {
        if !is_single {
            lines.push(style::strong(fitted(&printed::shown(group), width)).to_string());
        }
        for (nth, series) in chart.series.iter().enumerate() {
            let name = fitted(&names[if is_single { at } else { nth }], margin);
            let padding = " ".repeat(margin - width_of(&name));
            let point = series.points.iter().find(|it| it.at == at as i64);
            let Some(point) = point else { continue };
            let bar = bar(point.value, range_of(chart, series), room.max(5));
            let value = written(point.value);
            lines.push(format!(
                "{indent}{name}{padding} {} {value}",
                style::accent(bar)
            ));
        }
    }
    lines
}

/// A value beside its bar.
fn written(value: Option<f64>) -> String {
    value.map_or_else(|| "no value".to_owned(), ticks::number)
}

/// A bar from zero to a value. What is left of zero has room where there are negative values.
fn bar(value: Option<f64>, (min, max): (f64, f64), room: usize) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let (min, max) = (min.min(0.0), max.max(0.0));
    let span = if max > min { max - min } else { 1.0 };
    let eighths = |value: f64| ((value - min) / span * room as f64 * 8.0).round() as usize;
    let zero = eighths(0.0) / 8;
    if value < 0.0 {
        let start = (eighths(value) / 8).min(zero.saturating_sub(1));
        return format!("{}{}", " ".repeat(start), "█".repeat(zero - start));
    }
    // A value that is not zero can be seen.
    let length = (eighths(value).saturating_sub(zero * 8)).max(usize::from(value > 0.0));
    let mut bar = " ".repeat(zero) + &"█".repeat(length / 8);
    if length % 8 > 0 {
        bar.push(RIGHT[length % 8]);
    }
    bar
}

fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}

/// The text, cut to a width.
fn fitted(text: &str, width: usize) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        cut.push(c);
        if width_of(&cut) >= width {
            cut.pop();
            break;
        }
    }
    cut + "…"
}
