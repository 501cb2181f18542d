//! Diagnostics: what is wrong, where, and what to do next. They are shown as `file:line:column: error: message`, the
//! offending line, a caret and a hint. This module never prints.

use std::fmt;
use std::path::PathBuf;

use crate::printable::{escaped, is_unsafe};
use crate::source::Position;

/// More diagnostics than this are not made: nobody reads them, and a hostile file could ask for millions.
pub const DIAGNOSTICS_MAX: usize = 100;
/// A longer line is not shown, so that many diagnostics of one line stay small.
const LINE_BYTES_MAX: usize = 4096;

/// One thing that is wrong with the configuration.
///
/// `Display` writes, without a newline at the end:
///
/// ```text
/// tailrace.yaml:7:5: error: unknown key `batchs`
///     batchs: {max_wait: 2s}
///     ^^^^^^
/// help: did you mean `batch`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file, or `$NAME` for the value of an environment variable.
    pub file: PathBuf,
    /// The line, from 1; 0 where the whole file is meant (it cannot be read, say).
    pub line: usize,
    /// The column in characters, from 1; 0 where the whole file is meant.
    pub column: usize,
    /// What happened: lowercase, without a full stop.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// The text of the line, where there is one that may be shown and is not longer than any that a person writes. A line
    /// is cut before a secret.
    pub snippet: Option<String>,
    /// How many characters the carets mark, at least 1.
    pub length: usize,
}

impl Diagnostic {
    /// A diagnostic at a position, marking `length` characters of its line.
    pub fn new(position: &Position, length: usize, message: impl Into<String>) -> Diagnostic {
        let line = Some(position.line_text()).filter(|_| position.line() > 0);
        let line = line.filter(|line| line.len() <= LINE_BYTES_MAX);
        let snippet = line.map(str::to_owned);
        Diagnostic {
            file: position.file().to_owned(),
            line: position.line(),
            column: position.column(),
            message: message.into(),
            hint: None,
            snippet,
            length: length.max(1),
        }
    }

    /// A diagnostic about a whole file.
    pub fn about_file(file: impl Into<PathBuf>, message: impl Into<String>) -> Diagnostic {
        let file = file.into();
        Diagnostic {
            file,
            line: 0,
            column: 0,
            message: message.into(),
            hint: None,
            snippet: None,
            length: 1,
        }
    }

    /// The same with a hint; `None` leaves it as it is.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Option<String>>) -> Diagnostic {
        self.hint = hint.into().or(self.hint);
        self
    }

    /// The same without the line: it may hold secrets.
    #[must_use]
    pub fn without_snippet(mut self) -> Diagnostic {
        self.snippet = None;
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", escaped(&self.file.to_string_lossy()))?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        write!(f, " error: {}", escaped(&self.message))?;
        if let Some(line) = self.snippet.as_ref().filter(|line| !line.trim().is_empty()) {
            write_snippet(f, line, self.column, self.length)?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhelp: {}", escaped(hint))?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

/// Characters of a line that are shown at most; of a longer one, those around the column.
const SNIPPET_CHARS_MAX: usize = 160;

fn write_snippet(
    f: &mut fmt::Formatter<'_>,
    line: &str,
    column: usize,
    length: usize,
) -> fmt::Result {
    let before = column.saturating_sub(1);
    let total = line.chars().count();
    let skip = if total <= SNIPPET_CHARS_MAX {
        0
    } else {
        before.saturating_sub(SNIPPET_CHARS_MAX / 2)
    };
    let shown: String = line
        .chars()
        .skip(skip)
        .take(SNIPPET_CHARS_MAX)
        .map(printable)
        .collect();
    let indent: String = shown
        .chars()
        .chain(std::iter::repeat(' '))
        .take(before - skip)
        .map(|c| if c == '\t' { '\t' } else { ' ' })
        .collect();
    let carets = length
        .min(shown.chars().count().saturating_sub(before - skip))
        .max(1);
    write!(
        f,
        "\n    {}\n    {indent}{}",
        shown.trim_end(),
        "^".repeat(carets)
    )
}

/// A terminal must not be steered by a configuration file. One character for one, so that carets stand where they should.
fn printable(c: char) -> char {
    if is_unsafe(c) && c != '\t' {
        '\u{fffd}'
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn at(text: &str, line: usize, column: usize, length: usize) -> String {
        let source = Source::new("a.yaml", text.to_owned());
        Diagnostic::new(&Position::new(&source, line, column), length, "it broke").to_string()
    }

    #[test]
    fn carets_stand_under_the_value() {
        assert_eq!(
            at("a: 1\nbb: 22\n", 2, 5, 2),
            "a.yaml:2:5: error: it broke\n    bb: 22\n        ^^"
        );
    }

    #[test]
    fn a_tab_before_the_value_keeps_its_width() {
        assert_eq!(
            at("a:\tx", 1, 4, 1),
            "a.yaml:1:4: error: it broke\n    a:\tx\n      \t^"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_column() {
        let text = format!("{}Z{}", "x".repeat(1000), "y".repeat(1000));
        let shown = at(&text, 1, 1001, 1);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1].trim_start().chars().count(), SNIPPET_CHARS_MAX);
        assert_eq!(lines[1].find('Z'), lines[2].find('^'));
    }

    #[test]
    fn positions_outside_the_text_do_no_harm() {
        assert_eq!(at("a", 9, 9, 9), "a.yaml:9:9: error: it broke");
        assert_eq!(
            at("a", 1, 9, 9),
            "a.yaml:1:9: error: it broke\n    a\n            ^"
        );
        assert_eq!(at("a", 0, 0, 1), "a.yaml: error: it broke");
    }

    #[test]
    fn nothing_steers_the_terminal_or_forges_a_line() {
        let bad = "x\n\u{1b}[2J\u{202e}";
        let diagnostic = Diagnostic::about_file(format!("a{bad}.yaml"), format!("m{bad}"));
        let text = diagnostic.with_hint(format!("h{bad}")).to_string();
        let shown = "x\\n\\u{1b}[2J\\u{202e}";
        assert_eq!(
            text,
            format!("a{shown}.yaml: error: m{shown}\nhelp: h{shown}")
        );
        let text = at("a: \u{1b}[31m\u{202e}x", 1, 4, 3);
        assert!(!text.replace('\n', "").contains(is_unsafe), "{text:?}");
    }
}
