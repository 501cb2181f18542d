//! Makes text safe to show. Everything that a person sees passes through here: own logs, standard output and error of the
//! commands, and the answers of the admin endpoint. Text from outside, such as file names, pod names and answers of servers,
//! has the values of `${...}` replaced by their names, and can neither steer a terminal nor forge a line. It never prints.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{self, Write as _};
use std::io::{self, StderrLock, StdoutLock, Write};
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tailrace_config::{Redactor, escaped, is_unsafe};
use tailrace_model::time::write_rfc3339;

use crate::logging::UnwaitedStderr;
use crate::style::{self, Stream};

/// What must not be shown, for the whole process: texts come from everywhere in it.
static REDACTOR: RwLock<Option<Redactor>> = RwLock::new(None);

/// Forms of values of earlier configurations that are remembered: far more than are in use at a time.
const EARLIER_MAX: usize = 10_000;

/// From now on these values are not shown, nor those of earlier configurations, which may still be in use.
pub(crate) fn hide(redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    let mut hidden = REDACTOR.write().unwrap_or_else(PoisonError::into_inner);
    let hidden = hidden.get_or_insert_default();
    if hidden.len() > EARLIER_MAX {
        // A secret that is renewed every minute must not grow the list for ever.
        *hidden = Redactor::default();
    }
    hidden.extend(redactor);
}

/// The text with names in the place of values. Whoever shows it escapes it, as JSON does.
pub(crate) fn redacted(text: &str) -> String {
    let hidden = REDACTOR.read().unwrap_or_else(PoisonError::into_inner);
    match &*hidden {
        Some(redactor) => redactor.redact(text).into_owned(),
        None => text.to_owned(),
    }
}

/// The text as a person may see it, on one line.
pub(crate) fn shown(text: &str) -> String {
    escaped(&redacted(text)).into_owned()
}

/// The same of a path.
pub(crate) fn path(path: &Path) -> String {
    shown(&path.to_string_lossy())
}

/// A value of an own log as `Debug` prints it. A number stays one.
pub(crate) fn field(value: &dyn fmt::Debug) -> String {
    let text = format!("{value:?}");
    match text.parse::<f64>() {
        Ok(_) => text,
        Err(_) => shown(&text),
    }
}

/// One JSON value on a line, the same with all its strings redacted, and plain for a terminal.
pub(crate) fn json_line(line: &str) -> String {
    let is_hiding = REDACTOR
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .is_some();
    let parsed = is_hiding.then(|| serde_json::from_str::<Value>(line));
    if let Some(Ok(mut value)) = parsed
        && redact_strings(&mut value)
    {
        return plain_json(&value.to_string());
    }
    plain_json(line)
}

/// The same value with all its strings redacted. Keys stay: they are the program's own, or names that cannot hide anything.
pub(crate) fn redacted_json(mut value: Value) -> Value {
    redact_strings(&mut value);
    value
}

/// True if that changed something.
fn redact_strings(value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let redacted = redacted(text);
            let is_other = *text != redacted;
            *text = redacted;
            is_other
        }
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |other, item| redact_strings(item) | other),
        Value::Object(members) => members
            .values_mut()
            .fold(false, |other, member| redact_strings(member) | other),
        _ => false,
    }
}

/// JSON text in which a terminal finds nothing to obey: what JSON allows in strings is written as `\u` escapes.
pub(crate) fn plain_json(json: &str) -> String {
    let mut plain = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unsafe(c) && !c.is_ascii_whitespace() {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(plain, "\\u{unit:04x}");
            }
        } else {
            plain.push(c);
        }
    }
    plain
}

/// From now on what a panic says is shown like everything else: it may quote a record. `is_json`: as a line of an own log in
/// JSON.
pub(crate) fn report_panics(is_json: bool) {
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        let text = panic.payload_as_str().unwrap_or("a panic without a text");
        let place = panic
            .location()
            .map(ToString::to_string)
            .unwrap_or_default();
        // Empty unless it is asked for with RUST_BACKTRACE.
        let trace = Backtrace::capture();
        if is_json {
            // Not by `tracing`, which may be what panicked.
            let text = format!("thread '{name}' panicked at {place}: {}", redacted(text));
            let line = panic_line(&text, &trace, SystemTime::now());
            let _ = UnwaitedStderr.write_all(format!("{line}\n").as_bytes());
            return;
        }
        let mut stderr = Printer::new(UnwaitedStderr);
        // Nothing can be said when stderr is gone.
        let _ = writeln!(
            stderr,
            "thread '{name}' panicked at {place}: {}",
            shown(text)
        );
        if trace.status() == BacktraceStatus::Captured {
            let _ = writeln!(stderr, "{trace}");
        }
    }));
}

/// A panic as a line of an own log in JSON.
fn panic_line(text: &str, trace: &Backtrace, now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut time = Vec::new();
    write_rfc3339(i64::try_from(since.as_nanos()).unwrap_or(0), &mut time);
    let mut line = serde_json::json!({
        "timestamp": String::from_utf8_lossy(&time),
        "level": "ERROR",
        "message": text,
    });
    if trace.status() == BacktraceStatus::Captured {
        line["backtrace"] = redacted(&trace.to_string()).into();
    }
    plain_json(&line.to_string())
}

/// Writes lines for people. Line ends and tabs are those of the program: text from outside has passed [`shown`] before.
/// Colours are those of [`style`].
pub(crate) struct Printer<W: Write> {
    inner: W,
    is_coloured: bool,
    /// What came behind the last line end.
    rest: Vec<u8>,
}

impl Printer<Stdout> {
    /// Standard output, with colours where it shows them.
    pub(crate) fn stdout() -> Self {
        let is_coloured = style::is_coloured(Stream::Stdout);
        Self::coloured(Stdout::lock(), is_coloured)
    }
}

/// Standard output. That nobody reads it any more is an error of its own, since a pipe can also break elsewhere.
pub(crate) struct Stdout(StdoutLock<'static>);

impl Stdout {
    pub(crate) fn lock() -> Self {
        Self(io::stdout().lock())
    }
}

/// Nobody reads the standard output any more.
#[derive(Debug)]
struct OutputClosed;

impl fmt::Display for OutputClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nobody reads the standard output any more")
    }
}

impl std::error::Error for OutputClosed {}

fn output_closed(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => io::Error::new(io::ErrorKind::BrokenPipe, OutputClosed),
        _ => error,
    }
}

/// Whether a command failed because nobody reads its output any more.
pub(crate) fn is_output_closed(error: &anyhow::Error) -> bool {
    let is_closed = |cause: &(dyn std::error::Error + 'static)| {
        let inner = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        inner.is_some_and(|inner| inner.is::<OutputClosed>())
    };
    error.chain().any(is_closed)
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(output_closed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(output_closed)
    }
}

impl Printer<StderrLock<'static>> {
    /// Standard error, with colours where it shows them.
    pub(crate) fn stderr() -> Self {
        let is_coloured = style::is_coloured(Stream::Stderr);
        Self::coloured(io::stderr().lock(), is_coloured)
    }
}

impl<W: Write> Printer<W> {
    /// A printer without colours.
    pub(crate) fn new(inner: W) -> Self {
        Self::coloured(inner, false)
    }

    /// A printer with colours or without.
    pub(crate) fn coloured(inner: W, is_coloured: bool) -> Self {
        Self {
            inner,
            is_coloured,
            rest: Vec::new(),
        }
    }

    fn print(&mut self, line: &[u8]) -> io::Result<()> {
        let text = redacted(&String::from_utf8_lossy(line));
        let mut line = String::with_capacity(text.len());
        for (sequence, text) in style::pieces(&text, self.is_coloured) {
            line.push_str(&sequence);
            for piece in text.split_inclusive(['\n', '\t']) {
                let end = piece.len() - usize::from(piece.ends_with(['\n', '\t']));
                line.push_str(&escaped(&piece[..end]));
                line.push_str(&piece[end..]);
            }
        }
        self.inner.write_all(line.as_bytes())
    }
}

impl<W: Write> Write for Printer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        if let Some(end) = self.rest.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.rest.split_off(end + 1);
            let lines = std::mem::replace(&mut self.rest, rest);
            self.print(&lines)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        self.print(&rest)?;
        self.inner.flush()
    }
}

impl<W: Write> Drop for Printer<W> {
    fn drop(&mut self) {
        // There is nobody left to report it to.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_printer_keeps_its_own_lines_and_nothing_else_that_steers() {
        let mut printed = Vec::new();
        {
            let mut printer = Printer::new(&mut printed);
            write!(printer, "a\tb\u{1b}[31m\r").unwrap();
            writeln!(printer, "c \u{9b}2J").unwrap();
            write!(printer, "\u{202e}end").unwrap();
        }
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(printed, "a\tb\\u{1b}[31m\\rc \\u{9b}2J\n\\u{202e}end");
    }

    #[test]
    fn json_stays_the_same_json() {
        let value = serde_json::json!({"a\u{9b}": ["\u{1b}\n\u{7f}", 1.5, "\u{e0001}", "ä"]});
        let plain = plain_json(&value.to_string());
        assert!(!plain.contains(is_unsafe), "{plain}");
        assert_eq!(serde_json::from_str::<Value>(&plain).unwrap(), value);
    }

    #[test]
    fn a_panic_is_one_line_of_json_where_the_own_log_is_json() {
        let now = UNIX_EPOCH + std::time::Duration::from_secs(1);
        let line = panic_line("thread 'a' panicked:\nb\u{1b}", &Backtrace::disabled(), now);
        assert_eq!(line.lines().count(), 1);
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["timestamp"], "1970-01-01T00:00:01Z");
        assert_eq!(line["message"], "thread 'a' panicked:\nb\u{1b}");
    }

    #[test]
    fn strings_are_redacted_and_numbers_stay() {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("t.yaml");
        std::fs::write(&config, "resource: {a: '${A}', b: '${B}'}").unwrap();
        // Texts that no other test of the process has.
        let env = |name: &str| match name {
            "A" => Some("90071992547409".to_owned()),
            "B" => Some("printed-\"secret\"".to_owned()),
            _ => None,
        };
        hide(&tailrace_config::load_with_files(&[config], &env).redactor);
        let line = r#"{"n":90071992547409,"s":"at 90071992547409","t":["x printed-\"secret\" y"]}"#;
        assert_eq!(
            json_line(line),
            r#"{"n":90071992547409,"s":"at ${A}","t":["x ${B} y"]}"#
        );
        assert_eq!(field(&90_071_992_547_409_u64), "90071992547409");
        assert_eq!(field(&"printed-\"secret\""), "\"${B}\"");
        assert_eq!(shown("printed-\"secret\"\n"), "${B}\\n");
        assert_eq!(
            json_line("no json 90071992547409"),
            "no json 90071992547409"
        );
    }
}
