//! What `try` prints of each record, and the counts of all of them.

use std::io::{self, Write};

use anyhow::Context;
use tailrace_pipeline::{PipelinePlan, Traced, Verdict};

use super::table::Rows;
use super::verdict;
use crate::printed::Printer;
use crate::style::{self, Stream};
use crate::{otlp_json, printed};

/// Prints traced records to standard output.
pub(super) struct Print<'a> {
    what: What,
    is_jsonl: bool,
    plan: &'a PipelinePlan,
    out: &'a mut dyn Write,
    /// Rows of the table, until it is printed.
    rows: Option<Rows>,
    counts: Counts,
    /// The first error: nothing is printed after it.
    failed: Option<anyhow::Error>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Rows,
    Verdicts,
    Otlp,
}

/// Counts of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    records: u64,
    kept: u64,
    rows: u64,
    filtered: u64,
    malformed: u64,
    truncated: u64,
    repaired: u64,
    failed: u64,
    crashed: u64,
    /// Rows that are too large together to be kept.
    left_out: u64,
    /// Rows that the table has no space for.
    not_shown: u64,
}

impl<'a> Print<'a> {
    pub(super) fn new(
        verdicts: bool,
        otlp: bool,
        is_jsonl: bool,
        plan: &'a PipelinePlan,
        out: &'a mut dyn Write,
    ) -> Self {
        let what = match (verdicts, otlp) {
            (true, _) => What::Verdicts,
            (_, true) => What::Otlp,
            _ => What::Rows,
        };
        Self {
            what,
            is_jsonl,
            plan,
            out,
            rows: (what == What::Rows && !is_jsonl).then(Rows::default),
            counts: Counts::default(),
            failed: None,
        }
    }

    /// Prints a record, or keeps it for the table.
    pub(super) fn add(&mut self, traced: &Traced) {
        self.counts.add(traced);
        if self.failed.is_some() {
            return;
        }
        if let Err(error) = self.print(traced) {
            self.failed = Some(error);
        }
    }

    /// Ends a group of records: what was printed leaves.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub(super) fn flush(&mut self) -> anyhow::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.out.flush().context("stdout"),
        }
    }

    /// Prints what is left.
    ///
    /// # Errors
    ///
    /// Standard output cannot be written.
    pub(super) fn finish(mut self) -> anyhow::Result<Counts> {
        self.print_table()?;
        if self.counts.not_shown > 0 {
            let more = self.counts.not_shown;
            let text = format!(
                "{more} more: pipe the output, or give `--output jsonl`, to see all rows\n"
            );
            self.out.write_all(text.as_bytes()).context("stdout")?;
        }
        self.flush()?;
        Ok(self.counts)
    }

    fn print_table(&mut self) -> anyhow::Result<()> {
        let table = self.rows.take().and_then(|rows| rows.table());
        self.people(|out| out.write_all(table.unwrap_or_default().as_bytes()))
    }

    fn print(&mut self, traced: &Traced) -> anyhow::Result<()> {
        if self.what == What::Verdicts {
            if self.is_jsonl {
                return self.json(&verdict::json(traced));
            }
            let plan = self.plan;
            return self.people(|out| verdict::print(traced, plan, out));
        }
        let Verdict::Kept(rows) = &traced.verdict else {
            return Ok(());
        };
        for row in rows {
            if let Some(bytes) = &row.otlp {
                let request = otlp_json::request(bytes)?;
                let text = match self.is_jsonl {
                    true => request.to_string(),
                    false => format!("{request:#}"),
                };
                self.json(&text)?;
            } else if self.is_jsonl {
                self.json(&row.json)?;
            } else if let Some(table) = &mut self.rows {
                table.add(&row.json);
                if table.is_full() {
                    // Of lines that go on for ever, the first are shown.
                    self.print_table()?;
                }
            } else {
                self.counts.not_shown += 1;
            }
        }
        Ok(())
    }

    fn json(&mut self, text: &str) -> anyhow::Result<()> {
        let line = printed::json_line(text) + "\n";
        self.out.write_all(line.as_bytes()).context("stdout")
    }

    fn people(
        &mut self,
        print: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut printer = Printer::coloured(&mut *self.out, style::is_coloured(Stream::Stdout));
        print(&mut printer)
            .and_then(|()| printer.flush())
            .context("stdout")
    }
}

impl Counts {
    fn add(&mut self, traced: &Traced) {
        self.records += 1;
        match &traced.verdict {
            Verdict::Kept(rows) => {
                self.kept += 1;
                self.rows += rows.len() as u64 + traced.more_rows;
                self.left_out += traced.more_rows;
            }
            Verdict::Filtered(_) => self.filtered += 1,
            Verdict::Crashed(_) => self.crashed += 1,
        }
        self.malformed += u64::from(traced.malformed.is_some());
        self.truncated += u64::from(traced.is_truncated);
        self.repaired += u64::from(traced.is_repaired);
        self.failed += u64::from(!traced.failed.is_empty());
    }

    /// One line for people.
    pub(super) fn summary(
        self,
        blank_lines: u64,
        nul_bytes: u64,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let of = if self.records == 1 {
            "record"
        } else {
            "records"
        };
        write!(out, "{} of {} {of} kept", self.kept, self.records)?;
        if self.rows != self.kept {
            write!(out, " as {} rows", self.rows)?;
        }
        let more = [
            (self.filtered, "filtered"),
            (self.malformed, "malformed"),
            (self.truncated, "truncated"),
            (self.repaired, "with invalid UTF-8"),
            (self.failed, "for which an expression failed"),
            (self.left_out, "rows not shown: one record makes too many"),
            (self.crashed, "that cannot be processed"),
            (
                blank_lines,
                if blank_lines == 1 {
                    "blank line skipped"
                } else {
                    "blank lines skipped"
                },
            ),
            (nul_bytes, "NUL bytes skipped"),
        ];
        for (count, what) in more.into_iter().filter(|(count, _)| *count > 0) {
            write!(out, ", {count} {what}")?;
        }
        writeln!(out)
    }
}
