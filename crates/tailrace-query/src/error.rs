//! Why a query was refused, with the place in its text.

mod arguments;
mod clauses;
mod fields;
mod memory;
mod operators;
mod patterns;
mod planning;
mod running;
mod values;
mod words;

use std::fmt::{self, Write};

use datafusion::common::{DataFusionError, SchemaError};

pub(crate) use self::arguments::place_of_argument;
pub(crate) use self::planning::{check_operands, name_of_type, place_of};
pub(crate) use self::running::{Ran, reads_lines};
use crate::unsupported::conflict;

/// What helps where a line of a CSV file has more or fewer fields than the others.
pub(crate) const CSV_LINE: &str = "give every line as many fields as the header has; a value with a comma or a quote stands in double quotes";

/// A query that was refused or failed.
#[derive(Debug)]
pub struct Error {
    /// What happened.
    pub message: String,
    /// Line and column of the SQL, from 1.
    pub place: Option<(usize, usize)>,
    /// What to do next.
    pub hint: Option<String>,
    /// The query or its text is wrong, not the data.
    pub is_usage: bool,
    /// What is granted for the query's memory does not suffice.
    pub is_memory: bool,
}

/// An error and its causes, without those that were said: many say what theirs are.
fn causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error {
    /// What could not be read or written.
    pub(crate) fn failed(error: &anyhow::Error) -> Error {
        Error::failure(causes(error))
    }

    pub(crate) fn usage(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            place: None,
            hint: None,
            is_usage: true,
            is_memory: false,
        }
    }

    /// What the parser says of the text.
    pub(crate) fn of_text(error: tailrace_sql::Error) -> Error {
        Error {
            place: Some((error.line, error.column)),
            hint: error.hint,
            ..Error::usage(error.message)
        }
    }

    /// What went wrong with the data, or with the machine.
    pub(crate) fn failure(message: impl Into<String>) -> Error {
        Error {
            is_usage: false,
            ..Error::usage(message)
        }
    }

    /// What DataFusion says of a query that it plans; `has_lines`: it reads log files.
    pub(crate) fn of(error: &DataFusionError, sql: &str, has_lines: bool) -> Error {
        let root = error.find_root();
        if let DataFusionError::SchemaError(schema, _) = root
            && let SchemaError::FieldNotFound {
                field,
                valid_fields,
            } = &**schema
        {
            return planning::unknown_column(field, valid_fields, sql, has_lines);
        }
        let mut text = text_of(error);
        // It names the type, and the error does not.
        if let Some(diagnostic) = error
            .diagnostic()
            .filter(|_| text.starts_with("Unary operator"))
        {
            text += &format!(": {}", diagnostic.message);
        }
        planning::refused(&text, sql, has_lines)
            .or_else(|| moving_frame(&text, sql))
            .or_else(|| of_orders(&text, sql))
            .or_else(|| patterns::refused_regex(&text, sql))
            .unwrap_or_else(|| Error::usage(without_appeal(&text)))
    }

    /// What DataFusion says of a query that runs, which may have so many bytes of memory.
    pub(crate) fn of_run(error: &DataFusionError, ran: &Ran<'_>, memory_bytes: usize) -> Error {
        if let DataFusionError::ResourcesExhausted(text) = error.find_root() {
            return memory::exhausted(text, memory_bytes);
        }
        let text = text_of(error);
        if text.contains("ran out of memory with no aggregated groups") {
            return memory::exhausted("", memory_bytes);
        }
        memory::of_disk(&text)
            .or_else(|| ran.explained(&text))
            .or_else(|| moving_frame(&text, ran.sql))
            .unwrap_or_else(|| Error::failure(without_appeal(&text)))
    }

    /// What a person is told, line by line: what happened and where, the place in the SQL, and what to do next.
    pub fn lines(&self, sql: &str) -> Vec<String> {
        let place = self
            .place
            .map(|(line, column)| format!(" (SQL:{line}:{column})"));
        let mut lines = vec![format!("{}{}", self.message, place.unwrap_or_default())];
        let excerpt = self.excerpt(sql);
        lines.extend(excerpt.iter().flat_map(|it| it.lines()).map(str::to_owned));
        lines.extend(self.hint.clone());
        lines
    }

    /// The line of the SQL with a caret below the place.
    pub fn excerpt(&self, sql: &str) -> Option<String> {
        let (line, column) = self.place?;
        let text = sql.lines().nth(line - 1)?;
        let mut out = String::new();
        let before: String = text
            .chars()
            .take(column - 1)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        write!(out, "  {text}\n  {before}^").ok()?;
        Some(out)
    }
}

/// Aggregates that want their rows in orders that cannot both be had.
fn of_orders(text: &str, sql: &str) -> Option<Error> {
    text.contains("Conflicting ordering requirements")
        .then(|| conflict(sql))
}

/// An aggregate that cannot forget values, in a window that leaves rows behind.
fn moving_frame(text: &str, sql: &str) -> Option<Error> {
    let (_, rest) = text.split_once("can not be used as a sliding accumulator because ")?;
    let (_, rest) = rest.split_once("is not implemented: ")?;
    let (name, _) = rest.split_once('(')?;
    Some(Error {
        place: word_in(&sql.to_ascii_lowercase(), name),
        hint: Some("let the frame begin with UNBOUNDED PRECEDING".to_owned()),
        ..Error::usage(format!(
            "`{name}` cannot leave rows behind, as this frame does"
        ))
    })
}

/// What DataFusion says, in one line.
pub(crate) fn text_of(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::External(error) => chain(error.as_ref()),
        DataFusionError::Plan(text) | DataFusionError::Execution(text) => text.clone(),
        other => other.strip_backtrace(),
    };
    text.replace('\n', " ")
}

/// Without what asks for a report to those who wrote DataFusion.
fn without_appeal(text: &str) -> &str {
    let text = text
        .split("This issue was likely caused by a bug in")
        .next();
    text.unwrap_or_default().trim_end()
}

/// An error with what caused it.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

/// Where a word stands in the SQL for the first time.
pub(crate) fn word_in(sql: &str, word: &str) -> Option<(usize, usize)> {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    for (number, line) in sql.lines().enumerate() {
        for (at, _) in line.match_indices(word) {
            let (before, behind) = (&line[..at], &line[at + word.len()..]);
            if !is_part(before.chars().next_back()) && !is_part(behind.chars().next()) {
                return Some((number + 1, before.chars().count() + 1));
            }
        }
    }
    None
}
