//! What the command prints: records for people, a line each, or the agent's lines of JSON.

use std::io::{self, Write};

use anyhow::Context;
use serde_json::{Map, Value};

use super::request::{Request, Stage};
use crate::printed::{self, Printer};
use crate::style::{self, Stream};

/// Characters of a text on a line; the rest is left out.
const TEXT_CHARS_MAX: usize = 2000;

/// Prints lines of the agent.
pub(super) struct Print<'a> {
    stage: Stage,
    with_pipeline: bool,
    is_text: bool,
    out: &'a mut dyn Write,
    records: u64,
    not_sampled: u64,
    /// Records that did not meet the condition, and how many lines of the agent said so, one a second, before any met it.
    not_matched: u64,
    vain: u32,
}

/// So many lines without a record are commented.
const VAIN_MAX: u32 = 3;

impl<'a> Print<'a> {
    pub(super) fn new(request: &Request, is_text: bool, out: &'a mut dyn Write) -> Self {
        Self {
            stage: request.stage,
            with_pipeline: request.pipeline.is_none(),
            is_text,
            out,
            records: 0,
            not_sampled: 0,
            not_matched: 0,
            vain: 0,
        }
    }

    /// How many records were printed.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Prints one line of the agent, which is this object.
    ///
    /// # Errors
    ///
    /// Nobody reads.
    pub(super) fn line(&mut self, line: &str, message: &Map<String, Value>) -> anyhow::Result<()> {
        let number = |key: &str| message.get(key).and_then(Value::as_u64);
        if let Some(count) = number("not_sampled") {
            self.not_sampled += count;
            self.not_matched += number("not_matched").unwrap_or(0);
            self.vain += u32::from(self.not_matched > 0);
            if self.records == 0 && self.vain == VAIN_MAX {
                let seen = self.not_matched;
                return self.note(&format!("no record matched yet ({seen} seen)"));
            }
            return Ok(());
        }
        if let Some(ms) = number("paused_ms") {
            return self.note(&format!(
                "nothing was sampled for {:.1} s, while nobody read",
                ms as f64 / 1000.0
            ));
        }
        if !message.contains_key("raw") {
            return Ok(());
        }
        self.records += 1;
        let mut printed = Vec::new();
        match self.is_text {
            true => self.text(
                message,
                &mut Printer::coloured(&mut printed, style::is_coloured(Stream::Stdout)),
            ),
            false => writeln!(printed, "{}", printed::json_line(line.trim_end())),
        }
        .and_then(|()| self.out.write_all(&printed))
        .and_then(|()| self.out.flush())
        .context("standard output")
    }

    /// Says how many records there were, and how many were not sampled.
    ///
    /// # Errors
    ///
    /// Nobody reads.
    pub(super) fn summary(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let (records, others) = (self.records, self.not_sampled);
        let text = match others {
            0 => format!("{records} records"),
            _ => format!("{records} records; {others} others passed without being sampled"),
        };
        writeln!(out, "{}", style::dim(text)).context("standard error")
    }

    fn note(&mut self, text: &str) -> anyhow::Result<()> {
        let mut stderr = Printer::stderr();
        writeln!(stderr, "{}", style::dim(text)).context("standard error")
    }

    fn text(&self, message: &Map<String, Value>, out: &mut dyn Write) -> io::Result<()> {
        let member = |key: &str| message.get(key).and_then(Value::as_str);
        let ms = message.get("unix_ms").and_then(Value::as_i64).unwrap_or(0);
        write!(out, "{} ", style::dim(time_of_day(ms)))?;
        if self.with_pipeline {
            let pipeline = short(member("pipeline").unwrap_or("?"));
            write!(out, "{pipeline} ")?;
        }
        let source = member("source").unwrap_or("?");
        let name = source.rsplit('/').next().unwrap_or(source);
        write!(out, "{} ", style::dim(short(name)))?;
        let verdict = member("verdict").unwrap_or("");
        let padded = format!("{verdict:<9}");
        match verdict {
            "" => Ok(()),
            "kept" => write!(out, "{} ", style::good(padded)),
            "failed" => write!(out, "{} ", style::bad(padded)),
            "malformed" => write!(out, "{} ", style::warn(padded)),
            _ => write!(out, "{} ", style::dim(short(&padded))),
        }?;
        let rows = message.get("rows").and_then(Value::as_array);
        match rows.filter(|_| self.stage != Stage::Input) {
            Some(rows) => {
                let rows: Vec<String> = rows.iter().map(|row| short(&row.to_string())).collect();
                write!(out, "{}", rows.join("  "))?;
            }
            None => write!(out, "{}", short(member("raw").unwrap_or("")))?,
        }
        if let Some(reason) = member("reason") {
            write!(out, "  {}", style::warn(short(reason)))?;
        }
        writeln!(out)
    }
}

/// A text on one line, not too long.
fn short(text: &str) -> String {
    let mut chars = text.chars();
    let head: String = chars.by_ref().take(TEXT_CHARS_MAX).collect();
    let dots = if chars.next().is_some() { "..." } else { "" };
    printed::shown(&head) + dots
}

/// The time of day in UTC.
fn time_of_day(unix_ms: i64) -> String {
    let ms = unix_ms.rem_euclid(24 * 60 * 60 * 1000);
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn printed(request: &Request, is_text: bool, lines: &[&str]) -> (String, String) {
        let (mut out, mut end) = (Vec::new(), Vec::new());
        let mut print = Print::new(request, is_text, &mut out);
        for line in lines {
            let Value::Object(message) = serde_json::from_str(line).unwrap() else {
                panic!("{line}");
            };
            print.line(line, &message).unwrap();
        }
        let mut stderr = Printer::new(&mut end);
        print.summary(&mut stderr).unwrap();
        stderr.flush().unwrap();
        drop(stderr);
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(out), text(end))
    }

    const LINES: [&str; 5] = [
        r#"{"tapping":true}"#,
        r#"{"unix_ms":1700000000123,"pipeline":"app","source":"/logs/a.log","verdict":"kept","reason":null,"raw":"{}","rows":[{"n":1}]}"#,
        r#"{"not_sampled":41}"#,
        r#"{"unix_ms":1700000000123,"pipeline":"app","source":"/logs/\u001b.log","verdict":"filtered","reason":"`n > 1` is false","raw":"\u001b[2J\n"}"#,
        r#"{"not_sampled":1}"#,
    ];

    #[test]
    fn records_are_a_line_each_and_escaped() {
        let request = Request {
            verdict: true,
            ..Request::default()
        };
        let (out, end) = printed(&request, true, &LINES);
        assert_eq!(
            out,
            "22:13:20.123Z app a.log kept      {\"n\":1}\n\
             22:13:20.123Z app \\u{1b}.log filtered  \\u{1b}[2J\\n  `n > 1` is false\n"
        );
        assert_eq!(end, "2 records; 42 others passed without being sampled\n");
    }

    #[test]
    fn json_lines_are_those_of_the_agent() {
        let (out, _) = printed(&Request::default(), false, &LINES);
        assert_eq!(out.lines().collect::<Vec<_>>(), [LINES[1], LINES[3]]);
    }

    #[test]
    fn a_time_before_the_epoch_is_one_too() {
        assert_eq!(time_of_day(-1), "23:59:59.999Z");
    }
}
