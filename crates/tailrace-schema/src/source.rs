//! Positions of values: a [`Source`] is one text (a file, or the value of an environment variable), a [`Position`] a line
//! and column in it. This module reads no files: the caller passes the text.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A line and column in a configuration file, both counted from 1, columns in characters.
///
/// It keeps the text of its file alive, so that a diagnostic made much later (by the SQL planner, say)
/// can still show the offending line. `Display` writes `file:line:column`.
#[derive(Clone)]
pub struct Position {
    source: Arc<Source>,
    line: usize,
    column: usize,
}

impl Position {
    /// A place in a text; line and column count from 1.
    pub fn new(source: &Arc<Source>, line: usize, column: usize) -> Position {
        Position {
            source: Arc::clone(source),
            line,
            column,
        }
    }

    /// The file, or `$NAME` where the value came from an environment variable.
    pub fn file(&self) -> &Path {
        &self.source.name
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The text of the line, without its end; empty where the position has no line.
    pub fn line_text(&self) -> &str {
        self.line
            .checked_sub(1)
            .and_then(|index| self.source.line(index))
            .unwrap_or("")
    }

    /// The text that it is in.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file().display(), self.line, self.column)
    }
}

impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl PartialEq for Position {
    fn eq(&self, other: &Position) -> bool {
        self.file() == other.file() && self.line == other.line && self.column == other.column
    }
}

impl Eq for Position {}

/// A named text and where its lines lie.
pub struct Source {
    name: PathBuf,
    text: String,
    /// Byte ranges of the lines, without their ends. LF, CRLF and CR end a line, as in YAML.
    lines: Vec<(usize, usize)>,
}

impl Source {
    /// A text and what it is called in messages.
    pub fn new(name: impl Into<PathBuf>, text: String) -> Arc<Source> {
        let mut lines = Vec::new();
        let mut start = 0;
        let bytes = text.as_bytes();
        for (index, &byte) in bytes.iter().enumerate() {
            let crlf = byte == b'\r' && bytes.get(index + 1) == Some(&b'\n');
            if byte == b'\n' || (byte == b'\r' && !crlf) {
                let end = if byte == b'\n' && index > start && bytes[index - 1] == b'\r' {
                    index - 1
                } else {
                    index
                };
                lines.push((start, end));
                start = index + 1;
            }
        }
        lines.push((start, text.len()));
        Arc::new(Source {
            name: name.into(),
            text,
            lines,
        })
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    fn line(&self, index: usize) -> Option<&str> {
        self.lines
            .get(index)
            .map(|&(start, end)| &self.text[start..end])
    }

    /// Line and column, both from 1, of a byte offset that lies on a character boundary.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let index = self
            .lines
            .partition_point(|&(start, _)| start <= offset)
            .saturating_sub(1);
        let start = self.lines[index].0;
        (index + 1, self.text[start..offset].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_lf_crlf_and_cr() {
        let source = Source::new("f", "a\nbb\r\nccc\rdddd".to_owned());
        let lines: Vec<_> = (0..5).map(|index| source.line(index)).collect();
        assert_eq!(
            lines,
            [Some("a"), Some("bb"), Some("ccc"), Some("dddd"), None]
        );
        assert_eq!(source.line_column(3), (2, 2));
        assert_eq!(source.line_column(14), (4, 5));
    }

    #[test]
    fn columns_count_characters() {
        let source = Source::new("f", "äö: x".to_owned());
        assert_eq!(source.line_column("äö: ".len()), (1, 5));
    }
}
