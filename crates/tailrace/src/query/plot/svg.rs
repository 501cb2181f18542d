//! A chart as an SVG document: lines over a time, bars for groups.

use std::fmt::Write as _;

use super::data::{Chart, Point};
use super::outlines::Outlines;
use super::{thin, ticks};
use crate::printed;

/// Colours that people with a weakness for some of them tell apart (Okabe and Ito), one for each series.
pub(super) const COLOURS: [&str; super::data::SERIES_MAX] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#666666",
];
const WIDTH: f64 = 900.0;
/// Height of the letters of all texts.
const FONT_SIZE: f64 = 13.0;
/// Height of the area of a chart over a time.
const HEIGHT: f64 = 320.0;
const BAR_HEIGHT: f64 = 18.0;
/// Width of a character of the font, about.
const CHAR_WIDTH: f64 = 7.5;
const LABEL_CHARS_MAX: usize = 36;
/// A line of more points has no dots.
const DOTS_MAX: usize = 100;

/// What is below the head of a document.
struct Body<'f> {
    xml: String,
    /// The font by which texts are drawn as paths, for those who have none.
    outlines: Option<&'f Outlines>,
}

impl std::fmt::Write for Body<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.xml.write_str(text)
    }
}

/// Where the values are drawn.
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// The document.
pub(super) fn draw(chart: &Chart) -> String {
    document(chart, None)
}

/// The document; with outlines, its texts are paths.
pub(super) fn document(chart: &Chart, outlines: Option<&Outlines>) -> String {
    let range = Chart::range(chart.series.iter());
    let mut body = Body {
        xml: String::new(),
        outlines,
    };
    let names: Vec<_> = chart.series.iter().map(|it| shortened(&it.name)).collect();
    let top = legend(&names, &mut body);
    let bottom = match (&chart.groups, range) {
        (_, None) => {
            put(
                &mut body,
                (WIDTH / 2.0, top + 20.0),
                "middle",
                "there are no values to draw",
            );
            top + 40.0
        }
        (Some(groups), Some(range)) => bars(chart, groups, range, top, &mut body),
        (None, Some(range)) => lines(chart, range, top, &mut body),
    };
    for (nth, note) in chart.notes.iter().enumerate() {
        put(
            &mut body,
            (10.0, bottom + 18.0 * nth as f64),
            "start",
            &shortened(note),
        );
    }
    let height = bottom + 18.0 * chart.notes.len() as f64;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"{FONT_SIZE}\" fill=\"#333\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{}</svg>\n",
        body.xml
    )
}

/// The names of the series in their colours, in as many rows as they need. What is below them begins at the result.
fn legend(names: &[String], out: &mut Body<'_>) -> f64 {
    let (mut x, mut y) = (20.0, 20.0);
    for (name, colour) in names.iter().zip(COLOURS) {
        let width = 34.0 + name.chars().count() as f64 * CHAR_WIDTH;
        if x + width > WIDTH && x > 20.0 {
            (x, y) = (20.0, y + 20.0);
        }
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/>",
            y - 10.0
        );
        put(out, (x + 18.0, y), "start", name);
        x += width;
    }
    y + 20.0
}

/// Lines over a time; gives where the next element below begins.
fn lines(chart: &Chart, (min, max): (f64, f64), top: f64, out: &mut Body<'_>) -> f64 {
    let Some((start, last, _)) = chart.times() else {
        return top;
    };
    let ticks = ticks::numbers(min, max, 5);
    let labels = ticks::labels(&ticks);
    let longest = labels.iter().map(String::len).max().unwrap_or(0);
    let area = Area {
        left: 24.0 + longest as f64 * CHAR_WIDTH,
        right: WIDTH - 30.0,
        top,
        bottom: top + HEIGHT,
    };
    // One time alone is drawn in the middle.
    let (from, to) = match start == last {
        true => (start.saturating_sub(1), last.saturating_add(1)),
        false => (start, last),
    };
    let x_of = |at: i64| {
        // Before it is a float: nanoseconds since 1970 are too many for one.
        let after = |start: i64, end: i64| (i128::from(end) - i128::from(start)) as f64;
        let share = after(from, at) / after(from, to).max(1.0);
        area.left + share * (area.right - area.left)
    };
    let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
    let y_of = |value: f64| area.bottom - (value - low) / (high - low) * (area.bottom - area.top);
    for (tick, label) in ticks.iter().zip(&labels) {
        let y = y_of(*tick);
        line(out, (area.left, y), (area.right, y), "#e0e0e0");
        put(out, (area.left - 8.0, y + 4.0), "end", label);
    }
    let times = match start == last {
        true => vec![(start, ticks::rfc3339(start))],
        false => ticks::times(start, last, 9),
    };
    for (at, label) in times {
        let x = x_of(at);
        line(out, (x, area.bottom), (x, area.bottom + 5.0), "#888");
        put(out, (x, area.bottom + 20.0), "middle", &label);
    }
    line(
        out,
        (area.left, area.bottom),
        (area.right, area.bottom),
        "#888",
    );
    for (series, colour) in chart.series.iter().zip(COLOURS) {
        path(&series.points, x_of, y_of, colour, out);
    }
    if start < last {
        let middle = (area.left + area.right) / 2.0;
        let span = ticks::span(start, last);
        put(out, (middle, area.bottom + 40.0), "middle", &span);
    }
    area.bottom + 60.0
}

/// The line of a series, interrupted by gaps; a value between two gaps is a dot.
fn path(
    points: &[Point],
    x_of: impl Fn(i64) -> f64,
    y_of: impl Fn(f64) -> f64,
    colour: &str,
    out: &mut Body<'_>,
) {
    let places = points
        .iter()
        .map(|point| Some((x_of(point.at), y_of(point.value?))));
    let mut path = String::new();
    for run in thin::runs(places) {
        for (nth, (x, y)) in run.iter().enumerate() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if nth == 0 { 'M' } else { 'L' });
            if run.len() == 1 || points.len() <= DOTS_MAX {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"{colour}\"/>"
                );
            }
        }
    }
    let _ = writeln!(
        out,
        "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"/>"
    );
}

/// Horizontal bars, those of a group together; gives where the next element below begins.
fn bars(
    chart: &Chart,
    groups: &[String],
    (min, max): (f64, f64),
    top: f64,
    out: &mut Body<'_>,
) -> f64 {
    let labels: Vec<_> = groups.iter().map(|group| shortened(group)).collect();
    let longest = labels.iter().map(|it| it.chars().count()).max();
    let group_height = BAR_HEIGHT * chart.series.len() as f64 + 8.0;
    let values = chart.series.iter().flat_map(|series| &series.points);
    let written = values.filter_map(|point| Some(ticks::number(point.value?).len()));
    let area = Area {
        left: 24.0 + longest.unwrap_or(0) as f64 * CHAR_WIDTH,
        right: WIDTH - 24.0 - written.max().unwrap_or(0) as f64 * CHAR_WIDTH,
        top,
        bottom: top + group_height * groups.len() as f64,
    };
    let ticks = ticks::numbers(min.min(0.0), max.max(0.0), 6);
    let (low, high) = (ticks[0], ticks[ticks.len() - 1]);
    let x_of = |value: f64| area.left + (value - low) / (high - low) * (area.right - area.left);
    for (tick, label) in ticks.iter().zip(ticks::labels(&ticks)) {
        let x = x_of(*tick);
        line(out, (x, area.top), (x, area.bottom), "#e0e0e0");
        put(out, (x, area.bottom + 18.0), "middle", &label);
    }
    for (at, label) in labels.iter().enumerate() {
        let y = area.top + group_height * at as f64;
        put(
            out,
            (area.left - 8.0, y + group_height / 2.0 + 4.0),
            "end",
            label,
        );
        for (nth, (series, colour)) in chart.series.iter().zip(COLOURS).enumerate() {
            let mut points = series.points.iter().filter(|it| it.at == at as i64);
            let Some(value) = points.find_map(|point| point.value) else {
                continue;
            };
            let y = y + 4.0 + BAR_HEIGHT * nth as f64;
            let (from, to) = (x_of(value.min(0.0)), x_of(value.max(0.0)));
            let (width, height) = (to - from, BAR_HEIGHT - 2.0);
            let _ = writeln!(
                out,
                "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{colour}\"/>"
            );
            put(out, (to + 6.0, y + 12.0), "start", &ticks::number(value));
        }
    }
    line(out, (x_of(0.0), area.top), (x_of(0.0), area.bottom), "#888");
    area.bottom + 38.0
}

fn line(out: &mut Body<'_>, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    );
}

/// Writes a text.
fn put(out: &mut Body<'_>, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = match out.outlines {
        Some(outlines) => {
            let path = outlines.path(text, (x, y), anchor, FONT_SIZE);
            writeln!(out, "<path d=\"{path}\"/>")
        }
        None => {
            let text = escaped(text);
            writeln!(
                out,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
            )
        }
    };
}

fn shortened(label: &str) -> String {
    let label = printed::shown(label);
    match label.char_indices().nth(LABEL_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label,
    }
}

/// A text as XML, without what that cannot hold.
fn escaped(text: &str) -> String {
    let mut xml = String::new();
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '\u{fffe}' | '\u{ffff}' => xml.push('\u{fffd}'),
            c => xml.push(c),
        }
    }
    xml
}
