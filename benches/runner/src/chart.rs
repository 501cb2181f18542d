//! Bar charts as SVG: horizontal bars in groups, each with its name and its value.

use std::path::Path;

use anyhow::{Context as _, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

/// A chart of bars.
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What the numbers are, and which direction is good.
    pub(crate) unit: String,
    pub(crate) groups: Vec<Group>,
}

/// Bars that belong together.
pub(crate) struct Group {
    pub(crate) title: String,
    pub(crate) bars: Vec<Bar>,
}

/// One bar.
pub(crate) struct Bar {
    pub(crate) name: String,
    pub(crate) value: f64,
    /// Drawn in colour.
    pub(crate) is_ours: bool,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const WIDTH: i32 = 760;
const NAMES: i32 = 210;
const VALUES: i32 = 70;
const BAR: i32 = 16;
const STEP: i32 = 20;
const GROUP: i32 = 30;
const HEAD: i32 = 62;
/// Sizes of fonts; plotters makes one pixel of 1.24.
const TITLE: i32 = 20;
const SUBTITLE: i32 = 16;
const TEXT: i32 = 15;
const OURS: RGBColor = RGBColor(0x0b, 0x72, 0x85);
const OTHERS: RGBColor = RGBColor(0xad, 0xb5, 0xbd);
const INK: RGBColor = RGBColor(0x21, 0x25, 0x29);

impl Chart {
    /// Writes the chart with a white ground, so that it can be read on a dark page too.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let svg = self.svg()?;
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))
    }

    fn svg(&self) -> Result<String> {
        let bars = self.groups.iter().map(|group| group.bars.len() as i32);
        let height = HEAD + bars.map(|bars| GROUP + bars * STEP).sum::<i32>();
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32));
        let area = area.into_drawing_area();
        self.draw(&area).context("cannot draw the chart")?;
        drop(area);
        Ok(svg)
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        area.fill(&WHITE)?;
        text(area, (12, 12), TITLE, true, &self.title)?;
        text(area, (12, 34), TEXT, false, &self.unit)?;
        let scale = f64::from(WIDTH - NAMES - VALUES) / self.longest();
        let mut y = HEAD;
        for group in &self.groups {
            text(area, (12, y), SUBTITLE, true, &group.title)?;
            y += STEP;
            for bar in &group.bars {
                let colour = if bar.is_ours { OURS } else { OTHERS };
                let end = NAMES + ((bar.value * scale) as i32).max(1);
                area.draw(&Rectangle::new(
                    [(NAMES, y), (end, y + BAR)],
                    colour.filled(),
                ))?;
                text(area, (24, y + 3), TEXT, bar.is_ours, &bar.name)?;
                let value = number(bar.value);
                text(area, (end + 6, y + 3), TEXT, bar.is_ours, &value)?;
                y += STEP;
            }
            y += GROUP - STEP;
        }
        area.present()?;
        Ok(())
    }

    /// The largest value.
    pub(crate) fn longest(&self) -> f64 {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        bars.map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max)
    }
}

/// Draws a line of text with its upper left corner at a place.
fn text(area: &Area<'_>, at: (i32, i32), size: i32, is_bold: bool, words: &str) -> Result<()> {
    let style = if is_bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let font = ("sans-serif", size, style).into_font();
    area.draw(&Text::new(words, at, font.color(&INK)))?;
    Ok(())
}

/// Three digits that matter.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_width_and_markup_is_escaped() {
        let bar = |name: &str, value| Bar {
            name: name.to_owned(),
            value,
            is_ours: false,
        };
        let chart = Chart {
            title: "a < b".to_owned(),
            unit: "GB/s".to_owned(),
            groups: vec![Group {
                title: "wide".to_owned(),
                bars: vec![bar("one", 2.0), bar("two", 1.0)],
            }],
        };
        let svg = chart.svg().expect("memory");
        assert!(svg.contains("a &lt; b"), "{svg}");
        assert!(
            svg.contains("width=\"480\"") && svg.contains("width=\"240\""),
            "{svg}"
        );
        assert_eq!(number(1234.5), "1234");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.123), "0.12");
    }
}
