//! Charts as PNG images: what is in their pixels.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array};

use super::super::data::{Chart, SERIES_MAX};
use super::super::raster::{SCALE, draw, image};
use super::super::svg;
use super::{by_level, by_minute, chart, floats, minutes, texts, with_gaps};

const SCALE_F: f64 = SCALE as f64;

/// A decoded image.
struct Image {
    width: usize,
    height: usize,
    /// Red, green and blue, row by row.
    rgb: Vec<u8>,
}

impl Image {
    fn decode(bytes: &[u8]) -> Image {
        let decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        let mut reader = decoder.read_info().unwrap();
        let mut rgb = vec![0; reader.output_buffer_size().unwrap()];
        let frame = reader.next_frame(&mut rgb).unwrap();
        let format = (frame.color_type, frame.bit_depth);
        assert_eq!(format, (png::ColorType::Rgb, png::BitDepth::Eight));
        Image {
            width: frame.width as usize,
            height: frame.height as usize,
            rgb,
        }
    }

    /// Pixels of a rectangle, in units of the document, that are so.
    fn count(&self, x: [f64; 2], y: [f64; 2], is: impl Fn([u8; 3]) -> bool) -> usize {
        let pixels = |range: [f64; 2], end: usize| {
            let [from, to] = range.map(|at| ((at * SCALE_F).max(0.0) as usize).min(end));
            from..to
        };
        let rows = pixels(y, self.height);
        let places = rows.flat_map(|y| pixels(x, self.width).map(move |x| y * self.width + x));
        let pixel = |place: usize| [0, 1, 2].map(|part| self.rgb[place * 3 + part]);
        places.filter(|place| is(pixel(*place))).count()
    }

    fn count_all(&self, is: impl Fn([u8; 3]) -> bool) -> usize {
        self.count([0.0, f64::MAX], [0.0, f64::MAX], is)
    }
}

/// Draws a chart, and checks that the image is as large as its document says, and has pixels where its texts begin.
fn drawn(chart: &Chart) -> Image {
    let document = svg::draw(chart);
    let bytes = draw(chart).unwrap();
    assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    let image = Image::decode(&bytes);
    let document = roxmltree::Document::parse(&document).unwrap();
    let number = |node: roxmltree::Node<'_, '_>, name: &str| -> f64 {
        node.attribute(name).unwrap().parse().unwrap()
    };
    let root = document.root_element();
    let size = ["width", "height"].map(|name| (number(root, name) * SCALE_F) as usize);
    assert_eq!([image.width, image.height], size);
    assert!(image.height < 11_000);
    let is_written = |text: &str| text.contains(|c: char| !c.is_whitespace());
    for text in document.descendants().filter(|it| it.has_tag_name("text")) {
        let content = text.text().unwrap_or_default();
        let (x, y) = (number(text, "x"), number(text, "y"));
        let x = match text.attribute("text-anchor").unwrap() {
            "start" => [x, x + 12.0],
            "end" => [x - 12.0, x],
            _ => [x - 8.0, x + 8.0],
        };
        // Nothing else is as dark: the greys of series and lines are lighter.
        let is_dark = |[r, g, b]: [u8; 3]| r == g && g == b && r < 0x60;
        let dark = image.count(x, [y - 11.0, y + 4.0], is_dark);
        assert!(dark > 3 || !is_written(content), "no pixels of {content:?}");
    }
    image
}

/// The colour of a series.
fn colour(series: usize) -> [u8; 3] {
    let hex = u32::from_str_radix(&svg::COLOURS[series][1..], 16).unwrap();
    let [_, r, g, b] = hex.to_be_bytes();
    [r, g, b]
}

/// Each series is in the legend, and in the chart below it.
#[test]
fn every_series_has_its_colour() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let groups = |n: i32| floats((0..3).map(|row| Some(f64::from(row * 7 + n))).collect());
    let many = |axis: ArrayRef| {
        let series = (1..).map(groups).zip(names).map(|(it, name)| (name, it));
        chart(std::iter::once(("x", axis)).chain(series).collect())
    };
    let charts = [
        (by_minute(), 1),
        (with_gaps(), 2),
        (by_level(), 2),
        (many(texts(&["one", "two", "three"])), SERIES_MAX),
        (many(minutes([0, 1, 2])), SERIES_MAX),
    ];
    for (chart, series) in charts {
        let image = drawn(&chart);
        for nth in 0..series {
            let is = |pixel| pixel == colour(nth);
            let legend = image.count([0.0, 900.0], [0.0, 28.0], is);
            assert!(legend > 200, "series {nth}: {legend} pixels in the legend");
            let below = image.count([0.0, 900.0], [40.0, f64::MAX], is);
            assert!(below > 100, "series {nth}: {below} pixels");
        }
        let white = image.count_all(|pixel| pixel == [255; 3]);
        assert!(white > image.width * image.height / 2);
        // The last colour is a grey, as edges of texts have it.
        for nth in series..SERIES_MAX - 1 {
            assert_eq!(image.count_all(|pixel| pixel == colour(nth)), 0);
        }
    }
}

/// Where a strip begins, edges of shapes are a little lighter or darker, and everything is in its place.
#[test]
fn strips_are_not_seen() {
    for chart in [by_level(), with_gaps()] {
        let document = svg::draw(&chart);
        let whole = Image::decode(&image(&document, 100_000).unwrap());
        for rows in [64, 512] {
            let strips = Image::decode(&image(&document, rows).unwrap());
            assert_eq!([strips.width, strips.height], [whole.width, whole.height]);
            let pixels = strips.rgb.iter().zip(&whole.rgb);
            let most = pixels.map(|(a, b)| a.abs_diff(*b)).max();
            assert!(most <= Some(64), "{most:?} in strips of {rows} rows");
        }
    }
}

#[test]
fn hostile_names_are_drawn() {
    let long = "1 MB ".repeat(200_000);
    let names = [
        long.as_str(),
        "😀👩‍👩‍👧‍👦",
        "שלום عالم\u{202e}abc",
        "<&>\"'</text></svg><!--]]>&amp;",
        "\u{0}\u{1}\u{1b}[2J\u{7f}\u{85}\r\n\t",
        "e\u{301}\u{301}\u{301}\u{200d}\u{feff}\u{fffe}\u{ffff}\u{fffd}",
        "日本語 Żółć Ωμέγα Привет → ∞",
        "{{}}%s\\u0000",
    ];
    let numbers = || floats((0..8).map(|n| Some(f64::from(n))).collect());
    let mut columns = vec![("g", texts(&names))];
    columns.extend(names.map(|name| (name, numbers())));
    drawn(&chart(columns));
    let series = vec![
        ("t", minutes(0..8)),
        ("g", texts(&names)),
        (names[3], numbers()),
    ];
    drawn(&chart(series));
    // The largest there is: all groups of all series.
    let names: Vec<_> = (0..40).map(|n| format!("{n} {long}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let numbers = || floats((0..40).map(|n| Some(f64::from(n) * -1e290)).collect());
    let mut columns = vec![("g", texts(&names))];
    columns.extend(names.iter().take(12).map(|name| (*name, numbers())));
    let image = drawn(&chart(columns));
    assert!(image.height > 9000);
}

#[test]
fn extremes_are_drawn() {
    let nothing = chart(vec![("t", minutes([])), ("n", floats(Vec::new()))]);
    assert!(drawn(&nothing).count_all(|it| it == colour(0)) > 200);
    for values in [
        [None, Some(f64::NAN)],
        [Some(f64::INFINITY), Some(f64::NEG_INFINITY)],
        [Some(f64::MAX), Some(1.0)],
        [Some(1e300), Some(-1e300)],
        [Some(f64::MIN_POSITIVE), Some(1e-320)],
        [Some(-0.0), Some(0.0)],
    ] {
        for axis in [
            texts(&["a", ""]),
            minutes([0, 0]),
            minutes([i64::from(i32::MIN), 60 * 24 * 365 * 200]),
        ] {
            drawn(&chart(vec![("t", axis), ("n", floats(values.to_vec()))]));
        }
    }
}

/// As many rows as a chart takes, with a gap at every second value and none: the picture is no larger for it.
#[test]
fn many_rows_are_no_large_picture() {
    const ROWS: i64 = 200_000;
    let columns = |is_gap: fn(i64) -> bool| {
        let value = move |row: i64| (!is_gap(row)).then_some(((row * 7919) % 1000) as f64);
        let values: ArrayRef = Arc::new(Float64Array::from_iter((0..ROWS).map(value)));
        let series = ["a", "b"].map(|name| (name, Arc::clone(&values)));
        let time = std::iter::once(("t", minutes(0..ROWS)));
        chart(time.chain(series).collect())
    };
    for chart in [columns(|_| false), columns(|row| row % 2 == 0)] {
        let document = svg::draw(&chart);
        assert!(document.len() < 1 << 19, "{} bytes", document.len());
        drawn(&chart);
    }
}
