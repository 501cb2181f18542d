//! A chart as a PNG image: its SVG document, drawn at twice its size with a font of the binary.
//!
//! No file of the machine is read, so that the same chart has the same bytes everywhere. The image is drawn and compressed
//! in strips: a tall one takes no more memory than a low one.

use std::io::Write as _;

use anyhow::Context;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::data::Chart;
use super::outlines::Outlines;
use super::svg;

/// Pixels of a unit of the document, so that texts are sharp.
pub(super) const SCALE: u32 = 2;
/// Rows of pixels that are drawn at a time: 4 MiB.
const STRIP_ROWS: u32 = 512;

/// The image.
///
/// # Errors
///
/// It cannot be drawn, which is a fault of Tailrace.
pub(super) fn draw(chart: &Chart) -> anyhow::Result<Vec<u8>> {
    let document = || anyhow::Ok(svg::document(chart, Some(&Outlines::new()?)));
    document()
        .and_then(|document| image(&document, STRIP_ROWS))
        .context("the chart cannot be drawn as PNG: draw it with `-o svg`")
}

/// The image of an opaque document, drawn in strips of so many rows.
pub(super) fn image(document: &str, strip_rows: u32) -> anyhow::Result<Vec<u8>> {
    let tree =
        Tree::from_str(document, &Options::default()).context("its SVG document is not valid")?;
    let pixels = |units: f32| (units * SCALE as f32).ceil() as u32;
    let (width, height) = (pixels(tree.size().width()), pixels(tree.size().height()));
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut file = encoder.write_header()?;
    let mut writer = file.stream_writer()?;
    let mut colours = Vec::new();
    for top in (0..height).step_by(strip_rows as usize) {
        let rows = strip_rows.min(height - top);
        let mut strip = Pixmap::new(width, rows).context("it is too large")?;
        strip.fill(Color::WHITE);
        let scale = SCALE as f32;
        let transform = Transform::from_scale(scale, scale).post_translate(0.0, -(top as f32));
        resvg::render(&tree, transform, &mut strip.as_mut());
        colours.clear();
        let opaque = strip.data().chunks_exact(4);
        colours.extend(opaque.flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]));
        writer.write_all(&colours)?;
    }
    writer.finish()?;
    file.finish()?;
    Ok(bytes)
}
