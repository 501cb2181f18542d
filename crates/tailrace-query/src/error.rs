//! Why a query was refused, with the place in its text.

use std::fmt::{self, Write};

use datafusion::common::{DataFusionError, SchemaError};

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
}

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            place: None,
            hint: None,
            is_usage: true,
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
                message: format!(
                    "the query needs more memory than `--memory-limit` grants: {text}"
                ),
                is_usage: false,
                ..Error::usage("")
            };
        }
        let text = match root {
            DataFusionError::SQL(error, _) => error.to_string(),
            DataFusionError::External(error) => format!("{error:#}"),
            DataFusionError::Plan(text) | DataFusionError::Execution(text) => text.clone(),
            other => other.strip_backtrace(),
        };
        let place = place_in(&text);
        let text = text.split(" at Line: ").next().unwrap_or(&text);
        let text = text.trim_start_matches("sql parser error: ");
        Error {
            message: text.to_owned(),
            place,
            hint: None,
            is_usage: is_planning,
        }
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

fn unknown_column<'a>(name: &str, known: impl Iterator<Item = &'a str>, sql: &str) -> Error {
    let mut known: Vec<_> = known.collect();
    known.sort_unstable();
    known.dedup();
    let near = known
        .iter()
        .map(|other| (strsim::damerau_levenshtein(name, other), other))
        .min()
        .filter(|(distance, _)| *distance <= 1.max(name.chars().count() / 3));
    let near = near.map_or_else(String::new, |(_, near)| format!("did you mean `{near}`? "));
    let hint = format!(
        "{near}A key that the beginning of the files lacks becomes a column by `--columns {name}=text`."
    );
    Error {
        message: format!("there is no column `{name}`"),
        place: word_in(sql, name),
        hint: Some(hint),
        is_usage: true,
    }
}

/// `... at Line: 1, Column: 8`, as the parser says it.
fn place_in(text: &str) -> Option<(usize, usize)> {
    let (_, behind) = text.rsplit_once(" at Line: ")?;
    let (line, column) = behind.split_once(", Column: ")?;
    let digits: String = column.chars().take_while(char::is_ascii_digit).collect();
    let place = (line.parse().ok()?, digits.parse().ok()?);
    (place.0 > 0 && place.1 > 0).then_some(place)
}

/// Where a word stands in the SQL for the first time.
fn word_in(sql: &str, word: &str) -> Option<(usize, usize)> {
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
