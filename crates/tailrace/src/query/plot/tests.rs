//! Charts of results with times, groups, gaps and hostile names.
#![allow(clippy::unwrap_used)]

mod raster;

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray, TimestampSecondArray};
use arrow::record_batch::RecordBatch;

use super::data::{Chart, Collected};
use super::{svg, text};
use crate::printed::Printer;

const TEN_O_CLOCK: i64 = 1_772_359_200;

/// A chart of these columns.
fn chart(columns: Vec<(&str, ArrayRef)>) -> Chart {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns
            .into_iter()
            .map(|(name, column)| (name, column, true)),
    );
    let batch = batch.unwrap();
    let mut collected = Collected::new(&batch.schema()).unwrap();
    // In two batches.
    let half = batch.num_rows() / 2;
    collected.add(&batch.slice(0, half)).unwrap();
    collected
        .add(&batch.slice(half, batch.num_rows() - half))
        .unwrap();
    collected.chart()
}

/// The chart in a terminal of 60 columns.
fn drawn(chart: &Chart) -> String {
    let mut bytes = Vec::new();
    for line in text::draw(chart, 60) {
        use std::io::Write as _;
        writeln!(Printer::new(&mut bytes), "{line}").unwrap();
    }
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.lines().all(|line| line.chars().count() <= 60),
        "{text}"
    );
    assert!(
        svg_texts(chart)
            .iter()
            .all(|it| !it.contains(char::is_control))
    );
    text
}

/// The texts of the chart as SVG.
fn svg_texts(chart: &Chart) -> Vec<String> {
    let svg = svg::draw(chart);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts = document.descendants().filter(|it| it.has_tag_name("text"));
    texts
        .map(|it| it.text().unwrap_or_default().to_owned())
        .collect()
}

fn minutes(minutes: impl IntoIterator<Item = i64>) -> ArrayRef {
    let times = minutes.into_iter().map(|it| TEN_O_CLOCK + 60 * it);
    Arc::new(TimestampSecondArray::from_iter_values(times))
}

fn texts(texts: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(texts))
}

fn floats(values: Vec<Option<f64>>) -> ArrayRef {
    Arc::new(Float64Array::from(values))
}

/// A count for each minute of an hour.
fn by_minute() -> Chart {
    let counts = (0..60).map(|minute: i64| 40 + (minute * 37) % 23 + 2 * minute);
    chart(vec![
        ("t", minutes(0..60)),
        ("requests", Arc::new(Int64Array::from_iter_values(counts))),
    ])
}

/// Two series with gaps of every kind.
fn with_gaps() -> Chart {
    let temperatures = vec![
        Some(-4.0),
        None,
        Some(2.5),
        Some(f64::NAN),
        Some(f64::INFINITY),
        Some(8.0),
        Some(-8.5),
        Some(0.0),
    ];
    let values = (0..8).map(|n| (n != 3).then_some(f64::from(n) * 1000.0));
    chart(vec![
        ("t", minutes([0, 5, 10, 15, 20, 25, 30, 40])),
        ("temperature", floats(temperatures)),
        ("bytes", floats(values.collect())),
    ])
}

/// One column of text names the series.
fn by_level() -> Chart {
    chart(vec![
        ("t", minutes([0, 0, 1, 2, 2, 3])),
        (
            "level",
            texts(&["info", "error", "info", "info", "error", "info"]),
        ),
        ("n", Arc::new(Int64Array::from(vec![40, 3, 30, 50, 20, 45]))),
    ])
}

#[test]
fn columns_begin_at_zero() {
    for (values, zero_is_lowest) in [([950.0, 1000.0], true), ([-950.0, -1000.0], false)] {
        let values = floats(values.map(Some).to_vec());
        let drawn = drawn(&chart(vec![("t", minutes([0, 1])), ("ms", values)]));
        let labels = drawn.lines().filter_map(|line| line.split_once(" ┤"));
        let labels: Vec<_> = labels.map(|(label, _)| label.trim()).collect();
        let zero = if zero_is_lowest {
            labels.last()
        } else {
            labels.first()
        };
        assert_eq!(zero, Some(&"0"), "{drawn}");
    }
}

#[test]
fn numbers_over_a_time_are_columns() {
    insta::assert_snapshot!(drawn(&by_minute()));
}

#[test]
fn gaps_are_not_drawn_and_each_column_has_its_scale() {
    insta::assert_snapshot!(drawn(&with_gaps()));
}

/// It stands in the middle with its label, all of which can be seen.
#[test]
fn one_time_alone_is_in_the_middle() {
    let chart = chart(vec![
        ("t", minutes([0])),
        ("n", Arc::new(Int64Array::from(vec![1]))),
    ]);
    let svg = svg::draw(&chart);
    assert!(svg.contains("<circle cx=\"458.2\""), "{svg}");
    let label = "<text x=\"458.2\" y=\"380.0\" text-anchor=\"middle\">2026-03-01T10:00:00Z";
    assert!(svg.contains(label), "{svg}");
}

#[test]
fn a_column_of_text_names_the_series_which_have_one_scale() {
    let chart = by_level();
    insta::assert_snapshot!(drawn(&chart));
    let texts = svg_texts(&chart);
    assert_eq!(texts[..2], ["info", "error"]);
    assert_eq!(texts[2..8], ["0", "10", "20", "30", "40", "50"]);
}

/// However little room there is, nothing panics.
#[test]
fn narrow_terminals_have_charts() {
    let values = floats(vec![Some(123_456_789_012.345), Some(-1e300)]);
    let groups = chart(vec![
        ("service", texts(&["a-long-service", "b"])),
        ("a-long-name-of-a-number", Arc::clone(&values)),
        ("n", values),
    ]);
    for chart in [groups, by_minute(), with_gaps(), by_level()] {
        for width in 0..60 {
            assert!(!text::draw(&chart, width).is_empty());
        }
    }
}

#[test]
fn groups_are_bars() {
    let chart = chart(vec![
        (
            "path",
            texts(&[
                "/cart",
                "/a\u{1b}[2J<b>&",
                "/日本語/very/long/path/of/a/request",
                "/none",
            ]),
        ),
        (
            "n",
            floats(vec![Some(1234.0), Some(0.5), Some(617.0), None]),
        ),
    ]);
    insta::assert_snapshot!(drawn(&chart));
    assert!(svg_texts(&chart).contains(&"/a\\u{1b}[2J<b>&".to_owned()));
}

#[test]
fn groups_of_several_series_stand_together() {
    insta::assert_snapshot!(drawn(&chart(vec![
        ("service", texts(&["web", "api"])),
        ("n", floats(vec![Some(12.0), Some(7.0)])),
        ("change", floats(vec![Some(-3.0), Some(6.25)])),
    ])));
}

#[test]
fn what_is_not_drawn_is_counted() {
    let names: Vec<_> = (0..40).map(|n| format!("group {n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let numbers = || floats((0..40).map(|n| Some(f64::from(n))).collect());
    let groups = chart(vec![("g", texts(&names)), ("n", numbers())]);
    assert!(drawn(&groups).ends_with("\n10 more groups\n"));
    assert_eq!(svg_texts(&groups).last().unwrap(), "10 more groups");
    let series = chart(vec![
        ("t", minutes(0..40)),
        ("g", texts(&names)),
        ("n", numbers()),
    ]);
    assert!(drawn(&series).ends_with("\n32 more series\n"));
    let untimed: ArrayRef = Arc::new(TimestampSecondArray::from(vec![None, Some(1)]));
    let untimed = chart(vec![
        ("t", untimed),
        ("n", floats(vec![Some(1.0), Some(2.0)])),
    ]);
    assert!(drawn(&untimed).ends_with("\n1 row without a time, not drawn\n"));
}

#[test]
fn extremes_are_drawn() {
    for values in [
        vec![None, None],
        vec![Some(0.0), Some(0.0)],
        vec![Some(f64::MAX), Some(f64::MIN)],
        vec![Some(1e300), Some(-1e300)],
        vec![Some(f64::MIN_POSITIVE), Some(1e-320)],
        vec![Some(1e20), Some(1e20 + 16384.0)],
    ] {
        for axis in [
            texts(&["a", ""]),
            minutes([0, 0]),
            minutes([i64::from(i32::MIN), 60 * 24 * 365 * 200]),
        ] {
            drawn(&chart(vec![("t", axis), ("n", floats(values.clone()))]));
        }
    }
    let nothing = chart(vec![("t", minutes([])), ("n", floats(Vec::new()))]);
    assert_eq!(drawn(&nothing), "there are no values to draw\n");
}

#[test]
fn svg_breaks_a_line_at_a_gap() {
    let svg = svg::draw(&with_gaps());
    let document = roxmltree::Document::parse(&svg).unwrap();
    let paths = document.descendants().filter_map(|it| it.attribute("d"));
    let parts: Vec<_> = paths.map(|path| path.matches('M').count()).collect();
    assert_eq!(parts, [3, 2]);
}
