//! The `multiline` section of an input: which lines of plain text are one record. Declarations, their reading, and
//! the check of the expression; never matches a line.

use std::time::Duration;

use regex::bytes::{Regex, RegexBuilder};

use tailrace_schema::diagnostic::Diagnostic;
use tailrace_schema::interpolate::Resolved;
use tailrace_schema::kind::{KIB, Kind, List, MIB, SECOND, Time};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::{Section, Shape};
use tailrace_schema::source::Position;

/// Which lines are joined, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Multiline {
    /// What distinguishes the first line of a record from the others.
    pub by: MultilineBy,
    /// How long a source has to be quiet until its last record is complete.
    pub timeout: Duration,
}

/// What distinguishes the first line of a record from the others.
#[derive(Clone, Debug, PartialEq)]
pub enum MultilineBy {
    /// The stack traces of these languages; at least one.
    Presets(Vec<MultilinePreset>),
    /// A record begins where this is found.
    Start(StartExpression),
}

/// A compiled expression. Two are equal if they are written alike.
#[derive(Clone, Debug)]
pub struct StartExpression(pub Regex);

impl PartialEq for StartExpression {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

section! {
    /// Joins lines of plain text into one record, with a line feed between them: per file and, in container logs, per
    /// stream, after partial lines were joined. Give either `preset` or `start`. A blank line is left out and ends
    /// nothing. A JSON object is always a record of its own. A record that would be longer than `max_record_bytes`
    /// ends before that, flagged `truncated`; the rest becomes a record of its own.
    struct MultilineFile {
        /// Stack traces of these languages, one or several. The first line of a trace begins a record; other lines
        /// are records of their own.
        preset: Option<Vec<MultilinePreset>> = List<MultilinePreset, 1>, unset("no preset", "[java, python]");
        /// A record begins at each line in which this regular expression is found (`^` is the start of the line);
        /// any other line goes on with the record before it.
        start: Option<StartExpression> = Expression, unset("no expression", "'^\\d{4}-\\d\\d-\\d\\d '");
        /// The last line waits for more until the file was quiet for this long.
        timeout: Duration = Time<10, { 60 * SECOND }>, default("1s");
    }
}

choice! {
    /// A language whose stack traces are known.
    pub enum MultilinePreset {
        /// Java and other languages of the JVM: `at`, `Caused by:`, `Suppressed:`, `... 12 more`.
        Java = "java",
        /// Python: from `Traceback` to the exception, with those that it was raised from; exception groups.
        Python = "python",
        /// Go: `panic:` and `fatal error:` with all goroutines.
        Go = "go",
        /// Ruby: `from`, and the frames that its Logger writes. A cause is a record of its own.
        Ruby = "ruby",
        /// C# and other languages of .NET: `at`, `--->`, `--- End of`.
        Dotnet = "dotnet",
        /// JavaScript in Node.js: `at`, the source before and the properties behind it.
        Javascript = "javascript",
        /// Rust: `thread '...' panicked at` with message and backtrace.
        Rust = "rust",
    }
}

impl Kind for Multiline {
    type Value = Multiline;

    fn shape() -> Shape {
        Shape::Section(const { &MultilineFile::INFO })
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Multiline> {
        let file: MultilineFile = reader.section(node, &[])?;
        let by = match (file.preset, file.start) {
            (Some(presets), None) => MultilineBy::Presets(presets),
            (None, Some(start)) => MultilineBy::Start(start),
            (Some(_), Some(_)) => {
                let message = format!("{}: both `preset` and `start`", reader.path());
                let hint = "`start` alone decides where a record begins; keep one".to_owned();
                reader.report(node.nearest(&["start"]).diagnostic(message).with_hint(hint));
                return None;
            }
            (None, None) => {
                let message = format!("{} has neither `preset` nor `start`", reader.path());
                let hint = "such as `preset: java`".to_owned();
                reader.report(node.diagnostic(message).with_hint(hint));
                return None;
            }
        };
        Some(Multiline {
            by,
            timeout: file.timeout,
        })
    }
}

/// A regular expression over bytes.
struct Expression;

/// What a compiled expression may take.
pub(super) const EXPRESSION_BYTES_MAX: u64 = 256 * KIB;
/// What its search may take at run time, for each thread.
const SEARCH_BYTES_MAX: u64 = MIB;

impl Kind for Expression {
    type Value = StartExpression;

    fn shape() -> Shape {
        Shape::Text("regular expression")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<StartExpression> {
        let resolved = reader.scalar(node, "a regular expression")?;
        if resolved.text.is_empty() {
            reader.expected(node, "a regular expression", Some(&resolved));
            return None;
        }
        // Without the expression's own flags, as the search does it.
        let parsed = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .build()
            .parse(&resolved.text);
        let (what, span) = match &parsed {
            Err(regex_syntax::Error::Parse(error)) => (error.kind().to_string(), error.span()),
            Err(regex_syntax::Error::Translate(error)) => (error.kind().to_string(), error.span()),
            _ => {
                let built = RegexBuilder::new(&resolved.text)
                    .size_limit(usize::try_from(EXPRESSION_BYTES_MAX).unwrap_or(usize::MAX))
                    .dfa_size_limit(usize::try_from(SEARCH_BYTES_MAX).unwrap_or(usize::MAX))
                    .build();
                if built.is_err() {
                    let what = "the regular expression is too large".to_owned();
                    let hint = "write smaller repetitions than `{1000}`, and `[0-9]` for `\\d`";
                    reader.refuse(node, Some(&resolved), what, Some(hint.to_owned()));
                }
                return built.ok().map(StartExpression);
            }
        };
        if resolved.is_hidden {
            // What is wrong with an expression quotes it.
            let what = "not a valid regular expression".to_owned();
            reader.refuse(node, Some(&resolved), what, None);
            return None;
        }
        let length = resolved.text[span.start.offset..span.end.offset]
            .chars()
            .count();
        let message = format!("{}: not a valid regular expression: {what}", reader.path());
        let diagnostic = at(node, &resolved, span.start.offset, length, message);
        reader.report(diagnostic);
        None
    }
}

/// A diagnostic about a place within a text.
fn at(
    node: &Node,
    resolved: &Resolved,
    offset: usize,
    length: usize,
    message: String,
) -> Diagnostic {
    let (line, column) = resolved.origins.place(&resolved.text, offset);
    let position = Position::new(node.position.source(), line, column);
    Diagnostic::new(&position, length.max(1), message)
}
