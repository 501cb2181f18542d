//! Texts as the outlines of their letters: an image needs no font then, and is the same on every machine.

use std::fmt::Write as _;

use anyhow::Context;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// A subset of DejaVu Sans; `font/subset.sh` made it.
const FONT: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");

/// The font of the binary.
pub(super) struct Outlines(Face<'static>);

impl Outlines {
    /// # Errors
    ///
    /// The font is damaged, which is a fault of Tailrace.
    pub(super) fn new() -> anyhow::Result<Outlines> {
        let face = Face::parse(FONT, 0).context("the font of the binary is damaged")?;
        Ok(Outlines(face))
    }

    /// The path of a text whose letters stand on `y`, and which begins, has its middle or ends at `x`, as the anchor of SVG says.
    /// What the font lacks is a box.
    pub(super) fn path(&self, text: &str, (x, y): (f64, f64), anchor: &str, size: f64) -> String {
        let glyphs: Vec<_> = text
            .chars()
            .map(|c| self.0.glyph_index(c).unwrap_or(GlyphId(0)))
            .collect();
        let scale = size / f64::from(self.0.units_per_em());
        let advance = |glyph: &GlyphId| {
            let units = self.0.glyph_hor_advance(*glyph);
            f64::from(units.unwrap_or(0)) * scale
        };
        let width: f64 = glyphs.iter().map(advance).sum();
        let left = match anchor {
            "middle" => x - width / 2.0,
            "end" => x - width,
            _ => x,
        };
        let mut path = Path {
            data: String::new(),
            x: left,
            y,
            scale,
        };
        for glyph in glyphs {
            // A space has no outline.
            let _ = self.0.outline_glyph(glyph, &mut path);
            path.x += advance(&glyph);
        }
        path.data
    }
}

/// The data of a path of SVG.
struct Path {
    data: String,
    /// Where the letter at hand begins, and the line that it stands on.
    x: f64,
    y: f64,
    scale: f64,
}

impl Path {
    fn add(&mut self, command: char, points: &[(f32, f32)]) {
        self.data.push(command);
        for (x, y) in points {
            let (x, y) = (f64::from(*x) * self.scale, f64::from(*y) * self.scale);
            let _ = write!(self.data, "{:.2} {:.2} ", self.x + x, self.y - y);
        }
    }
}

impl OutlineBuilder for Path {
    fn move_to(&mut self, x: f32, y: f32) {
        self.add('M', &[(x, y)]);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.add('L', &[(x, y)]);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        self.add('Q', &[(x1, y1), (x, y)]);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        self.add('C', &[(x1, y1), (x2, y2), (x, y)]);
    }

    fn close(&mut self) {
        self.data.push('Z');
    }
}
