//! `--plot`: the result of a query as a chart, in the terminal, as an SVG document or as a PNG image.

mod data;
mod outlines;
mod raster;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod thin;
mod ticks;

use std::io::Write;

use anyhow::Context;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;

use self::data::{Chart, Collected};
use crate::cli::Failure;
use crate::printed::Printer;
use crate::style::{self, Stream};

/// Columns of a line where the terminal does not say.
const WIDTH: u16 = 80;

/// Where a chart is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Canvas {
    /// A terminal, or any place of text.
    Text,
    /// An SVG document.
    Svg,
    /// A PNG image.
    Png,
}

/// Collects a result and draws it.
pub(super) struct Plot<'o> {
    canvas: Canvas,
    collected: Collected,
    out: &'o mut dyn Write,
}

impl<'o> Plot<'o> {
    /// A chart of a result with these columns.
    ///
    /// # Errors
    ///
    /// The columns make no chart.
    pub(super) fn new(
        canvas: Canvas,
        schema: &SchemaRef,
        out: &'o mut dyn Write,
    ) -> Result<Plot<'o>, Failure> {
        Ok(Plot {
            canvas,
            collected: Collected::new(schema).map_err(Failure::Usage)?,
            out,
        })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    ///
    /// There are more of them than a chart has room for.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        self.collected.add(batch)
    }

    /// Draws the chart.
    ///
    /// # Errors
    ///
    /// It cannot be written, or is no picture.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let chart = self.collected.chart();
        let document = match self.canvas {
            Canvas::Text => return print(&chart, self.out),
            Canvas::Svg => svg::draw(&chart).into_bytes(),
            Canvas::Png => raster::draw(&chart)?,
        };
        self.out.write_all(&document).context("stdout")?;
        self.out.flush().context("stdout")
    }
}

/// Prints a chart as text.
fn print(chart: &Chart, out: &mut dyn Write) -> anyhow::Result<()> {
    let width = style::width().unwrap_or(WIDTH);
    let is_coloured = style::is_coloured(Stream::Stdout);
    let mut printer = Printer::coloured(out, is_coloured);
    for line in text::draw(chart, usize::from(width)) {
        writeln!(printer, "{line}").context("stdout")?;
    }
    printer.flush().context("stdout")
}
