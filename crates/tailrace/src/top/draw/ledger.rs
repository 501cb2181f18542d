//! The ledger of a pipeline: where its bytes and records went, and whether the counts add up.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::Page;
use super::palette::Palette;
use super::table::{Column, table};
use crate::printed;
use crate::top::answer::{count, list, number, text};
use crate::top::number::{bytes, compact, percent, whole};

const COLUMNS: [Column; 3] = [
    Column::text("", 0),
    Column::number("", 18),
    Column::number("", 9),
];
/// The table is no wider: numbers stay near their names.
const WIDTH_MAX: usize = 76;
const OUTCOMES: [(&str, &str); 5] = [
    ("delivered", "delivered_records"),
    ("dead-lettered", "dead_lettered_records"),
    ("rejected", "rejected_records"),
    ("dropped", "dropped_records"),
    ("of before a reload", "earlier_records"),
];

type Row = Vec<(String, Style)>;

/// Records of an output that nothing explains: no byte is in flight, and yet they have no outcome.
fn unexplained(ledger: &Value, output: &Value) -> u64 {
    let is_detached = output["detached"].as_bool().unwrap_or(false);
    match count(&ledger["in_flight_bytes"]) == 0 && !is_detached {
        true => count(&output["in_flight_records"]),
        false => 0,
    }
}

/// Whether the counts add up, as a line.
pub(super) fn balance(ledger: &Value, palette: &Palette) -> Line<'static> {
    let outputs = list(&ledger["outputs"]);
    let missing: u64 = outputs
        .iter()
        .map(|output| unexplained(ledger, output))
        .sum();
    let in_flight = outputs
        .iter()
        .map(|output| count(&output["in_flight_records"]));
    let in_flight = in_flight.max().unwrap_or(0);
    let (text, style) = match (count(&ledger["records"]), missing, in_flight) {
        (0, _, _) => ("no records yet".to_owned(), palette.dim),
        (_, 1.., _) => (format!("{missing} records unexplained"), palette.bad),
        (_, _, 0) => ("balanced".to_owned(), palette.good),
        _ => (
            format!("balanced, {} in flight", compact(in_flight as f64)),
            palette.good,
        ),
    };
    let sum = format!(
        "  {} records, {} filtered",
        whole(&ledger["records"]),
        percent(number(&ledger["filtered_records"]) / number(&ledger["records"])),
    );
    Line::from(vec![
        Span::styled(text, style),
        Span::styled(sum, palette.dim),
    ])
}

/// The whole ledger.
pub(super) fn page(pipeline: &Value, palette: &Palette, width: usize) -> Page {
    let ledger = &pipeline["ledger"];
    let mut rows = bytes_of(ledger, palette);
    rows.extend(records(ledger, palette));
    for output in list(&ledger["outputs"]) {
        rows.extend(at_output(ledger, output, palette));
    }
    let mut page = table(width.min(WIDTH_MAX), palette, &COLUMNS, rows.into_iter());
    page.head = vec![balance(ledger, palette)];
    page
}

fn title(text: String, palette: &Palette) -> [Row; 2] {
    let empty = || (String::new(), palette.plain);
    [
        vec![empty(), empty(), empty()],
        vec![(text, palette.accent), empty(), empty()],
    ]
}

fn row(name: String, value: String, share: String, style: Style, palette: &Palette) -> Row {
    vec![(name, style), (value, style), (share, palette.dim)]
}

fn bytes_of(ledger: &Value, palette: &Palette) -> Vec<Row> {
    let plain = |name: &str, key: &str| {
        let value = bytes(number(&ledger[key]));
        row(
            name.to_owned(),
            value,
            String::new(),
            palette.plain,
            palette,
        )
    };
    let mut rows = title("bytes".to_owned(), palette).to_vec();
    rows.remove(0);
    rows.push(plain("read", "read_bytes"));
    rows.push(plain("not read yet", "unread_bytes"));
    rows.push(plain("in flight", "in_flight_bytes"));
    for (name, key) in [
        ("skipped", "skipped_bytes"),
        ("lost", "lost_bytes"),
        ("files lost", "lost_files"),
    ] {
        for (reason, n) in ledger[key].as_object().into_iter().flatten() {
            let name = format!("{name}: {}", printed::shown(reason).replace('_', " "));
            let value = if key == "lost_files" {
                whole(n)
            } else {
                bytes(number(n))
            };
            rows.push(row(name, value, String::new(), palette.warn, palette));
        }
    }
    let cut = &ledger["truncated_unread"];
    if count(&cut["truncations"]) > 0 {
        let name = format!(
            "truncated unread {} times, at most",
            whole(&cut["truncations"])
        );
        rows.push(row(
            name,
            bytes(number(&cut["bytes_max"])),
            String::new(),
            palette.warn,
            palette,
        ));
    }
    rows
}

fn records(ledger: &Value, palette: &Palette) -> Vec<Row> {
    let share = |key: &str| percent(number(&ledger[key]) / number(&ledger["records"]));
    let mut rows = title("records".to_owned(), palette).to_vec();
    rows.push(row(
        "framed".to_owned(),
        whole(&ledger["records"]),
        String::new(),
        palette.plain,
        palette,
    ));
    for (name, key) in [
        ("  malformed", "malformed_records"),
        ("  truncated", "truncated_records"),
        ("  read again", "replayed_records"),
    ] {
        if count(&ledger[key]) > 0 {
            rows.push(row(
                name.to_owned(),
                whole(&ledger[key]),
                share(key),
                palette.dim,
                palette,
            ));
        }
    }
    let filtered = "filtered_records";
    rows.push(row(
        "- filtered".to_owned(),
        whole(&ledger[filtered]),
        share(filtered),
        palette.plain,
        palette,
    ));
    rows
}

fn at_output(ledger: &Value, output: &Value, palette: &Palette) -> Vec<Row> {
    let mut rows = title(format!("at output {}", text(&output["output"])), palette).to_vec();
    for (n, (name, key)) in OUTCOMES.into_iter().enumerate() {
        if n > 0 && count(&output[key]) == 0 {
            continue;
        }
        let share = percent(number(&output[key]) / number(&ledger["records"]));
        let is_loss = matches!(n, 1..=3);
        let style = if is_loss { palette.warn } else { palette.plain };
        rows.push(row(
            format!("- {name}"),
            whole(&output[key]),
            share,
            style,
            palette,
        ));
    }
    let (name, style) = match unexplained(ledger, output) {
        0 => ("= in flight", palette.strong),
        _ => ("= unexplained", palette.bad),
    };
    rows.push(row(
        name.to_owned(),
        whole(&output["in_flight_records"]),
        String::new(),
        style,
        palette,
    ));
    rows
}
