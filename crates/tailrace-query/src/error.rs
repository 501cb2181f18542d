//! Why a query was refused, with the place in its text.

use std::fmt::{self, Write};

use datafusion::common::{DataFusionError, SchemaError};

use crate::sample::reserved_column;

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
        Error {
            is_usage: false,
            ..Error::usage(causes(error))
        }
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

    /// What DataFusion says of a query. Plans fail because of the query, executions because of the data.
    pub(crate) fn of(error: &DataFusionError, sql: &str, is_planning: bool) -> Error {
        let root = error.find_root();
        if let DataFusionError::SchemaError(schema, _) = root
            && let SchemaError::FieldNotFound {
                field,
                valid_fields,
            } = &**schema
        {
            return unknown_column(
                &field.name,
                valid_fields.iter().map(|it| it.name.as_str()),
                sql,
            );
        }
        if let DataFusionError::ResourcesExhausted(text) = root {
            return Error {
                is_usage: false,
                is_memory: true,
                hint: Some(
                    "a larger limit helps; several DISTINCT aggregates, exact percentiles, ordered lists, NOT IN and joins without an equality are kept in memory whole"
                        .to_owned(),
                ),
                ..Error::usage(format!(
                    "the query needs more memory than `--memory-limit` grants: {}",
                    in_one_line(text)
                ))
            };
        }
        let text = match root {
            DataFusionError::External(error) => chain(error.as_ref()),
            DataFusionError::Plan(text) | DataFusionError::Execution(text) => text.clone(),
            other => other.strip_backtrace(),
        };
        let text = text.replace('\n', " ");
        let is_cast = !is_planning && text.contains("Cannot cast string");
        let hint = "; `--columns NAME=TYPE` reads a key as a number and makes NULL of what is none";
        Error {
            is_usage: is_planning,
            ..Error::usage(format!("{text}{}", if is_cast { hint } else { "" }))
        }
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

/// What DataFusion says of memory: who wanted it, and who has how much.
fn in_one_line(text: &str) -> String {
    let text = text.replace(" (DiskManager is disabled)", "");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

fn unknown_column<'a>(name: &str, known: impl Iterator<Item = &'a str>, sql: &str) -> Error {
    let mut known: Vec<_> = known.collect();
    known.sort_unstable();
    known.dedup();
    let near = tailrace_sql::nearest(name, known.into_iter());
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    let hint = match reserved_column(name) {
        Some(_) => {
            format!("`*` does not stand for it: write SELECT *, \"{name}\" where `*` stands")
        }
        None => format!(
            "{near}A key that the beginning of the files lacks becomes a column by `--columns {name}=text`."
        ),
    };
    Error {
        place: word_in(sql, name),
        hint: Some(hint),
        ..Error::usage(format!("there is no column `{name}`"))
    }
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
