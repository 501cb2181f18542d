//! The query of a pipeline, and the mapping from positions in it to the YAML file. It never parses SQL.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::node::{Node, Value};
use crate::origins::Origins;
use crate::reader::Reader;
use crate::section::Shape;
use crate::source::{Position, Source};

/// A query as the SQL parser sees it, with the place of each character in the YAML file.
#[derive(Clone, Debug)]
pub struct Sql {
    /// The text, after YAML's folding and `${...}`.
    pub text: String,
    /// The text as it may be shown: with the names of values from outside.
    pub shown: String,
    position: Position,
    origins: Origins,
}

/// The text, wherever it is written down.
impl PartialEq for Sql {
    fn eq(&self, other: &Sql) -> bool {
        self.text == other.text
    }
}

impl Sql {
    /// A query that stands in no configuration file, such as one of the command line, and what it is called in messages.
    pub fn plain(name: &str, text: &str) -> Sql {
        let source = Source::new(name, text.to_owned());
        let lines = text.split_inclusive('\n').enumerate();
        let mut origins = Origins::default();
        let mut start = 0;
        for (line, text) in lines {
            origins.push_line(start, line + 1);
            start += text.len();
        }
        Sql {
            text: text.to_owned(),
            shown: text.to_owned(),
            position: Position::new(&source, 1, 1),
            origins,
        }
    }

    /// The place in the YAML file of a place in the text: line from 1, column in characters from 1, as
    /// the SQL planner counts them. Places outside the text give its nearest end. Text that a `${...}`
    /// put in stands where the `${...}` stands, and a query that is not written down where its pipeline is.
    pub fn position(&self, line: usize, column: usize) -> Position {
        let (line, column) = self.origins.place(&self.text, self.offset(line, column));
        Position::new(self.position.source(), line, column)
    }

    /// A diagnostic about `length` characters of the query. Where these were put in by `${...}`, neither the message nor the
    /// hint is given, since they may quote the value.
    pub fn diagnostic(
        &self,
        line: usize,
        column: usize,
        length: usize,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> Diagnostic {
        let position = self.position(line, column);
        let offset = self.offset(line, column);
        if self.text != self.shown && self.origins.is_put_in(offset) {
            let message =
                "the query is not valid with the value that is put in here; it is not shown";
            return Diagnostic::new(&position, 1, message);
        }
        let hint = hint.map(|hint| self.redact(&hint).into_owned());
        let message = message.into();
        Diagnostic::new(&position, length, self.redact(&message)).with_hint(hint)
    }

    /// A text about the query without what `${...}` put into it. Parts of a value are left out too, since an expression is
    /// not quoted as it was written: every word of the query that is not in [`shown`](Self::shown).
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.text == self.shown {
            return Cow::Borrowed(text);
        }
        let known: HashSet<String> = words(&self.shown).map(str::to_lowercase).collect();
        let hidden = words(&self.text).map(str::to_lowercase);
        let hidden: HashSet<String> = hidden.filter(|word| !known.contains(word)).collect();
        let mut redacted = String::with_capacity(text.len());
        for piece in text.split_inclusive(|c| !is_word(c)) {
            let word = piece.trim_end_matches(|c| !is_word(c));
            let is_hidden = hidden.contains(&word.to_lowercase());
            redacted.push_str(if is_hidden { "[redacted]" } else { word });
            redacted.push_str(&piece[word.len()..]);
        }
        Cow::Owned(redacted)
    }

    /// Where the query begins.
    pub fn start(&self) -> &Position {
        &self.position
    }

    /// The byte offset of a place in the text.
    fn offset(&self, line: usize, column: usize) -> usize {
        let mut start = 0;
        for _ in 1..line.max(1) {
            match self.text[start..].find('\n') {
                Some(end) => start += end + 1,
                None => return self.text.trim_end().len(),
            }
        }
        let text = &self.text[start..];
        let text = &text[..text.find('\n').unwrap_or(text.len())];
        let within = text
            .char_indices()
            .nth(column.saturating_sub(1))
            .map_or(text.len(), |(at, _)| at);
        // What follows the last word has no place of its own.
        (start + within).min(self.text.trim_end().len())
    }
}

/// Names, numbers and parts of texts.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

impl Kind for Sql {
    type Value = Sql;

    fn shape() -> Shape {
        Shape::Text("SQL")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Sql> {
        let resolved = reader.scalar(node, "a query, such as `SELECT * FROM logs`")?;
        let Value::Scalar(_) = &node.value else {
            return None;
        };
        if resolved.text.trim().is_empty() {
            let hint = "leave the key out to pass everything".to_owned();
            reader.refuse(
                node,
                Some(&resolved),
                "the query is empty".to_owned(),
                Some(hint),
            );
            return None;
        }
        Some(Sql {
            text: resolved.text,
            shown: resolved.shown,
            position: node.position.clone(),
            origins: resolved.origins,
        })
    }
}
