//! Diagnostics of a config for people, with colours, and for programs, as JSON. What they say is decided elsewhere.

use std::io::{self, Write};

use serde_json::{Value, json};
use tailrace_config::Diagnostic;

use crate::printed;
use crate::style;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Error,
    Warning,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// The severity as it stands before a message.
pub(crate) fn label(severity: Severity) -> String {
    match severity {
        Severity::Error => style::bad("error").to_string(),
        Severity::Warning => style::warn("warning").to_string(),
    }
}

/// Prints a diagnostic: position, message, the line with carets, hint, and an empty line.
///
/// # Errors
///
/// The stream cannot be written.
pub(crate) fn print(
    out: &mut dyn Write,
    diagnostic: &Diagnostic,
    severity: Severity,
) -> io::Result<()> {
    let text = diagnostic.to_string();
    let (head, rest) = text.split_once('\n').unwrap_or((&text, ""));
    // The message may hold the same words.
    let (place, message) = head.split_once(": error: ").unwrap_or(("", head));
    writeln!(
        out,
        "{}: {}: {message}",
        style::strong(place),
        label(severity)
    )?;
    for line in rest.lines() {
        match line.strip_prefix("help: ") {
            Some(hint) => writeln!(out, "{}: {hint}", style::accent("help"))?,
            None if is_carets(line) && severity == Severity::Error => {
                writeln!(out, "{}", style::bad(line))?;
            }
            None if is_carets(line) => writeln!(out, "{}", style::warn(line))?,
            None => writeln!(out, "{line}")?,
        }
    }
    writeln!(out)
}

fn is_carets(line: &str) -> bool {
    let carets = line.trim_start();
    !carets.is_empty() && carets.chars().all(|c| c == '^')
}

/// A diagnostic as an object. Line and column are left out where the whole file is meant.
pub(crate) fn to_json(diagnostic: &Diagnostic, severity: Severity) -> Value {
    let mut object = json!({
        "severity": severity.name(),
        "file": printed::redacted(&diagnostic.file.to_string_lossy()),
        "message": printed::redacted(&diagnostic.message),
    });
    if diagnostic.line > 0 {
        object["line"] = json!(diagnostic.line);
        object["column"] = json!(diagnostic.column);
        object["length"] = json!(diagnostic.length);
    }
    if let Some(hint) = &diagnostic.hint {
        object["hint"] = json!(printed::redacted(hint));
    }
    object
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::printed::Printer;

    fn diagnostic() -> Diagnostic {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.yaml");
        std::fs::write(&path, "admin:\n\tlistne: 1\n").unwrap();
        let wrong = tailrace_config::load(&[path], &|_| None).unwrap_err();
        let mut diagnostic = wrong.into_iter().next().unwrap();
        diagnostic.file = "t\u{1b}.yaml".into();
        diagnostic
    }

    fn print_to_string(is_coloured: bool) -> String {
        let mut bytes = Vec::new();
        let mut printer = Printer::coloured(&mut bytes, is_coloured);
        print(&mut printer, &diagnostic(), Severity::Error).unwrap();
        drop(printer);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn without_colours_it_is_the_text_of_the_diagnostic() {
        assert_eq!(print_to_string(false), format!("{}\n\n", diagnostic()));
    }

    #[test]
    fn colours_mark_position_severity_carets_and_hint() {
        let text = print_to_string(true);
        for part in [
            "\u{1b}[1mt\\u{1b}.yaml:2:",
            "\u{1b}[31merror\u{1b}[0m",
            "^\u{1b}[0m",
            "\u{1b}[36mhelp\u{1b}[0m",
        ] {
            assert!(text.contains(part), "{part:?} in {text:?}");
        }
    }

    #[test]
    fn a_program_gets_the_same_parts() {
        let (diagnostic, json) = (diagnostic(), to_json(&diagnostic(), Severity::Warning));
        assert_eq!(json["severity"], "warning");
        assert_eq!(json["line"], diagnostic.line);
        assert_eq!(json["column"], diagnostic.column);
        assert_eq!(json["message"], diagnostic.message);
        assert_eq!(json["hint"], diagnostic.hint.unwrap());
        let whole = Diagnostic::about_file("f", "m");
        assert_eq!(to_json(&whole, Severity::Error).get("line"), None);
    }
}
