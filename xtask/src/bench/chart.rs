//! Bar charts as SVG, by hand: horizontal bars in groups, each with its name and its value.

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

const WIDTH: f64 = 760.0;
const NAMES: f64 = 210.0;
const VALUES: f64 = 70.0;
const BAR: f64 = 16.0;
const STEP: f64 = 20.0;
const OURS: &str = "#0b7285";
const OTHERS: &str = "#adb5bd";

impl Chart {
    /// The chart as an SVG document with a white ground, so that it can be read on a dark page too.
    pub(crate) fn svg(&self) -> String {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let longest = bars.map(|bar| bar.value).fold(f64::MIN_POSITIVE, f64::max);
        let scale = (WIDTH - NAMES - VALUES) / longest;
        let mut body = String::new();
        text(&mut body, 12.0, 24.0, 16, "bold", &self.title);
        text(&mut body, 12.0, 43.0, 12, "normal", &self.unit);
        let mut y = 70.0;
        for group in &self.groups {
            text(&mut body, 12.0, y, 13, "bold", &group.title);
            y += 8.0;
            for bar in &group.bars {
                let colour = if bar.is_ours { OURS } else { OTHERS };
                let weight = if bar.is_ours { "bold" } else { "normal" };
                let width = (bar.value * scale).max(1.0);
                text(&mut body, 24.0, y + 12.5, 12, weight, &bar.name);
                body.push_str(&format!(
                    "<rect x=\"{NAMES}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\" fill=\"{colour}\"/>\n"
                ));
                let value = number(bar.value);
                text(&mut body, NAMES + width + 6.0, y + 12.5, 12, weight, &value);
                y += STEP;
            }
            y += 22.0;
        }
        let height = y - 10.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
             height=\"{height:.0}\" font-family=\"system-ui, sans-serif\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }
}

fn text(body: &mut String, x: f64, y: f64, size: u32, weight: &str, words: &str) {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    body.push_str(&format!(
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" font-weight=\"{weight}\" fill=\"#212529\">{words}</text>\n"
    ));
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
        let svg = chart.svg();
        assert!(svg.contains("a &lt; b"), "{svg}");
        assert!(
            svg.contains("width=\"480.0\"") && svg.contains("width=\"240.0\""),
            "{svg}"
        );
        assert_eq!(number(1234.5), "1234");
        assert_eq!(number(12.34), "12.3");
        assert_eq!(number(0.123), "0.12");
    }
}
