//! The rows of a result: a table for people, JSON, or separated values.

mod calendar;
mod csv;

use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

use anyhow::Context;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use arrow_json::WriterBuilder as JsonBuilder;
use arrow_json::writer::{JsonFormat, LineDelimited};
use comfy_table::presets::{ASCII_MARKDOWN, UTF8_HORIZONTAL_ONLY};
use comfy_table::{ContentArrangement, Table};
use tailrace_query::Encoder;

use self::csv::csv;
use crate::try_query::table::shortened;
use crate::{printed, style};

/// The forms of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum How {
    /// For people: 40 rows, as wide as the terminal
    Table,
    /// A JSON object on each line
    Jsonl,
    /// A JSON array
    Json,
    /// Comma-separated values
    Csv,
    /// Tab-separated values
    Tsv,
    /// A table in Markdown
    Markdown,
    /// A Parquet file
    Parquet,
    /// A stream of Arrow's IPC format
    Arrow,
    /// A chart as an SVG document, of a result as `--plot` draws it
    Svg,
    /// The same chart as a PNG image
    Png,
}

impl How {
    /// What suits the standard output.
    pub(super) fn suiting(is_terminal: bool) -> How {
        if is_terminal { How::Table } else { How::Jsonl }
    }

    /// Whether it is bytes, and no text.
    pub(super) fn is_binary(self) -> bool {
        matches!(self, How::Parquet | How::Arrow | How::Png)
    }

    /// Whether it is a chart and not rows.
    pub(super) fn is_chart(self) -> bool {
        matches!(self, How::Svg | How::Png)
    }

    /// Whether rows are printed while the query runs, and not only at its end.
    pub(super) fn prints_rows(self) -> bool {
        match self {
            How::Jsonl | How::Json | How::Csv | How::Tsv | How::Markdown => true,
            How::Table | How::Svg | How::Png | How::Parquet | How::Arrow => false,
        }
    }
}

/// Rows of a table; more of them are counted.
const ROWS_MAX: usize = 40;
/// Rows of a table in Markdown that wait, so that its columns can be aligned.
const ROWS_ALIGNED: usize = 1_000;
/// Characters of a value in a table; a longer one is cut.
const CELL_CHARS_MAX: usize = 300;

/// Prints a result.
pub(super) struct Print<'o> {
    how: How,
    out: &'o mut dyn Write,
    table: Table,
    /// The file in the making.
    encoder: Option<Encoder>,
    /// The columns, each of another name.
    schema: SchemaRef,
    /// Rows printed or counted.
    rows: usize,
    /// Times that no calendar has.
    beyond: usize,
}

impl<'o> Print<'o> {
    /// Prints rows of these columns.
    ///
    /// # Errors
    ///
    /// A column has a type that the form lacks.
    pub(super) fn new(
        how: How,
        schema: &SchemaRef,
        out: &'o mut dyn Write,
    ) -> anyhow::Result<Print<'o>> {
        let schema = with_unique_names(schema);
        let encoder = match how {
            How::Parquet => Some(Encoder::parquet(&schema)?),
            How::Arrow => Some(Encoder::arrow(&schema)?),
            _ => None,
        };
        let mut table = Table::new();
        table.set_header(
            schema
                .fields()
                .iter()
                .map(|field| of_table(how, printed::shown(field.name()))),
        );
        if how == How::Markdown {
            table.load_preset(ASCII_MARKDOWN);
        } else {
            table.load_preset(UTF8_HORIZONTAL_ONLY);
            table.set_content_arrangement(ContentArrangement::Dynamic);
            if let Some(width) = style::width() {
                table.set_width(width);
            }
        }
        Ok(Print {
            how,
            out,
            table,
            encoder,
            schema,
            rows: 0,
            beyond: 0,
        })
    }

    /// Prints or keeps the rows of a batch.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let (schema, columns) = (Arc::clone(&self.schema), batch.columns().to_vec());
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = &RecordBatch::try_new_with_options(schema, columns, &options)
            .context("a batch has not the columns of the result")?;
        let (batch, beyond) = match self.how.is_binary() {
            true => (batch.clone(), 0),
            false => calendar::within(batch).context("a time has no form as text")?,
        };
        let batch = &batch;
        self.beyond += beyond;
        let mut bytes = Vec::new();
        match self.how {
            How::Table => self.add_to_table(batch)?,
            How::Markdown => self.add_markdown(batch, &mut bytes)?,
            How::Jsonl => json::<LineDelimited>(batch, &mut bytes)?,
            How::Json => json::<Elements>(batch, &mut bytes)?,
            How::Csv => csv(batch, b',', self.rows == 0, &mut bytes)?,
            How::Tsv => csv(batch, b'\t', self.rows == 0, &mut bytes)?,
            How::Parquet | How::Arrow => {
                if let Some(encoder) = &mut self.encoder {
                    bytes = encoder.add(batch)?;
                }
            }
            // A chart is drawn by `plot`.
            How::Svg | How::Png => {}
        }
        if self.how == How::Json && batch.num_rows() > 0 {
            let before = if self.rows == 0 { b"[" } else { b"," };
            self.out.write_all(before).context("stdout")?;
        }
        self.rows += batch.num_rows();
        self.out.write_all(&bytes).context("stdout")
    }

    /// How many times were shown as NULL, because no calendar has them.
    pub(super) fn beyond(&self) -> usize {
        self.beyond
    }

    /// Hands on what was written.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        self.out.flush().context("stdout")
    }

    fn add_to_table(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let shown = match self.how {
            How::Markdown => batch.num_rows(),
            _ => batch.num_rows().min(ROWS_MAX.saturating_sub(self.rows)),
        };
        let (how, table) = (self.how, &mut self.table);
        each_row(how, &batch.slice(0, shown), |cells| {
            table.add_row(cells);
        })
    }

    /// The columns of the first rows are aligned; the others are written as they come.
    fn add_markdown(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> anyhow::Result<()> {
        let aligned = ROWS_ALIGNED.saturating_sub(self.rows).min(batch.num_rows());
        self.add_to_table(&batch.slice(0, aligned))?;
        if aligned == batch.num_rows() {
            return Ok(());
        }
        if self.rows <= ROWS_ALIGNED {
            writeln!(out, "{}", self.table)?;
        }
        let others = batch.slice(aligned, batch.num_rows() - aligned);
        each_row(self.how, &others, |cells| {
            let line = format!("| {} |\n", cells.join(" | "));
            out.extend_from_slice(line.as_bytes());
        })
    }

    /// Prints what was kept.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if self.rows == 0 && matches!(self.how, How::Csv | How::Tsv) {
            // The header.
            self.add(&RecordBatch::new_empty(Arc::clone(&self.schema)))?;
        }
        if let Some(encoder) = self.encoder.take() {
            self.out.write_all(&encoder.finish()?).context("stdout")?;
            return self.out.flush().context("stdout");
        }
        let text = match self.how {
            How::Table if self.rows > ROWS_MAX => {
                let more = self.rows - ROWS_MAX;
                let rows = if more == 1 { "row" } else { "rows" };
                format!("{}\n{more} more {rows}\n", self.table)
            }
            How::Markdown if self.rows > ROWS_ALIGNED => String::new(),
            How::Table | How::Markdown => format!("{}\n", self.table),
            How::Json if self.rows == 0 => "[]\n".to_owned(),
            How::Json => "]\n".to_owned(),
            _ => String::new(),
        };
        self.out.write_all(text.as_bytes()).context("stdout")?;
        self.out.flush().context("stdout")
    }
}

/// The cells of each row of a table.
fn each_row(
    how: How,
    batch: &RecordBatch,
    mut each: impl FnMut(Vec<String>),
) -> anyhow::Result<()> {
    let options = FormatOptions::new();
    let columns = batch.columns().iter();
    let columns = columns.map(|column| ArrayFormatter::try_new(column, &options));
    let columns = columns
        .collect::<Result<Vec<_>, _>>()
        .context("a column cannot be shown")?;
    for row in 0..batch.num_rows() {
        let cell = |column: &ArrayFormatter<'_>| {
            let text = column.value(row).to_string();
            of_table(how, shortened(&text, CELL_CHARS_MAX))
        };
        each(columns.iter().map(cell).collect());
    }
    Ok(())
}

/// A text in a cell of a table.
fn of_table(how: How, text: String) -> String {
    match how {
        How::Markdown => text.replace('|', "\\|"),
        _ => text,
    }
}

/// The same columns; the second `n` is called `n_1`, so that no JSON object has a key twice.
fn with_unique_names(schema: &SchemaRef) -> SchemaRef {
    let mut names: HashSet<String> = HashSet::new();
    let mut fields = Vec::new();
    for field in schema.fields() {
        let numbered = (1..).map(|nth| format!("{}_{nth}", field.name()));
        let mut candidates = std::iter::once(field.name().clone()).chain(numbered);
        let name = candidates.find(|name| names.insert(name.clone()));
        fields.push(field.as_ref().clone().with_name(name.unwrap_or_default()));
    }
    Arc::new(Schema::new(fields))
}

/// The elements of an array, without its brackets.
#[derive(Debug, Default)]
struct Elements;

impl JsonFormat for Elements {
    fn start_row<W: Write>(
        &self,
        writer: &mut W,
        is_first: bool,
    ) -> Result<(), arrow::error::ArrowError> {
        if !is_first {
            writer.write_all(b",")?;
        }
        Ok(())
    }
}

fn json<F: JsonFormat>(batch: &RecordBatch, out: &mut Vec<u8>) -> anyhow::Result<()> {
    let mut writer = JsonBuilder::new()
        .with_explicit_nulls(true)
        .build::<_, F>(out);
    let written = writer.write(batch).and_then(|()| writer.finish());
    written.context("a value has no form in JSON")
}
