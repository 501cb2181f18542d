//! Own logs as they come out: both formats, the limit, the filter, the chain.
#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::{debug, info, warn};

use super::*;

/// Collects what is written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `body` with own logs going into the returned text; `body` gets the
/// seconds of the limiter's clock.
fn logged(json: bool, filter: &str, body: impl FnOnce(&AtomicU64)) -> String {
    let lines = Lines::default();
    let seconds = Arc::new(AtomicU64::new(0));
    let writer = lines.clone();
    let clock: Clock = {
        let seconds = Arc::clone(&seconds);
        Arc::new(move || Duration::from_secs(seconds.load(Ordering::Relaxed)))
    };
    let filter = parse_filter(filter).unwrap();
    let subscriber = subscriber(json, false, filter, move || writer.clone(), clock);
    tracing::subscriber::with_default(subscriber, || body(&seconds));
    String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
}

/// One place in the code that warns.
fn warn_of(path: &str) {
    warn!(path, "cannot read file");
}

#[test]
fn text_lines_hold_level_target_message_and_fields() {
    let text = logged(false, "info", |_| warn_of("/a"));
    assert!(text.contains("WARN"), "{text}");
    assert!(
        text.contains("tailrace::logging::tests: cannot read file path=\"/a\"\n"),
        "{text}"
    );
    assert!(
        !text.contains('\u{1b}'),
        "no colours were asked for: {text}"
    );
}

#[test]
fn json_lines_are_flat_objects() {
    let text = logged(true, "info", |_| warn_of("/a"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["message"], "cannot read file");
    assert_eq!(value["path"], "/a");
    assert_eq!(value["level"], "WARN");
}

#[test]
fn repeats_are_held_back_and_counted_in_both_formats() {
    let body = |seconds: &AtomicU64| {
        for _ in 0..5 {
            warn_of("/a");
        }
        warn_of("/b");
        seconds.store(10, Ordering::Relaxed);
        warn_of("/a");
    };
    let text = logged(false, "info", body);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[1].ends_with("path=\"/b\""), "{text}");
    assert!(lines[2].ends_with("path=\"/a\" suppressed=4"), "{text}");

    let text = logged(true, "info", body);
    let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["path"], &last["suppressed"]),
        (&"/a".into(), &4.into())
    );
}

#[test]
fn debug_events_are_never_held_back() {
    let body = |_: &AtomicU64| {
        for _ in 0..30 {
            debug!("same");
        }
    };
    assert_eq!(logged(false, "debug", body).lines().count(), 30);
    assert_eq!(logged(false, "info", body), "");
}

#[test]
fn directives_choose_levels_per_module() {
    let body = |_: &AtomicU64| {
        info!("here");
        info!(target: "other", "there");
    };
    let text = logged(false, "warn,other=info", body);
    assert!(text.contains("there") && !text.contains("here: "), "{text}");
    let error = parse_filter("not=a=filter").unwrap_err();
    assert!(error.to_string().contains("`filter`"), "{error}");
}

#[test]
fn a_word_that_is_no_level_is_refused() {
    for (text, meant) in [
        ("warning", "did you mean `warn`?"),
        ("info,WARNING", "did you mean `warn`?"),
        ("err", "did you mean `error`?"),
        ("wars", "did you mean `warn`?"),
        ("tailrace_inputs", "is no log level (levels: off"),
        (
            "info,tailrace_pipeline=verbose",
            "`verbose` is no log level",
        ),
    ] {
        let error = parse_filter(text).unwrap_err().to_string();
        assert!(error.contains(meant), "{text}: {error}");
    }
    for text in [
        "",
        " ",
        "INFO",
        "3",
        "off",
        "info, tailrace_pipeline=debug",
        "[span]=debug",
    ] {
        assert!(parse_filter(text).is_ok(), "{text}");
    }
}

/// A name that would clear the screen, forge a line and turn the direction of writing.
const HOSTILE: &str = "a\n2026-01-01T00:00:00Z ERROR forged\r\u{1b}[2J\u{9b}31m\u{202e}\u{2028}";

fn log_hostile() {
    let error = io::Error::other(HOSTILE);
    let path = std::path::Path::new(HOSTILE);
    let span = tracing::info_span!("span", pod = %HOSTILE);
    let _entered = span.enter();
    warn!(path = HOSTILE, shown = %path.display(), debug = ?path, error = %chain(&error), "of {HOSTILE}");
    warn!(dynamic = &error as &(dyn Error + 'static), "{}", HOSTILE);
}

#[test]
fn text_from_outside_neither_steers_a_terminal_nor_forges_a_line() {
    let text = logged(false, "info", |_| log_hostile());
    assert_eq!(text.lines().count(), 2, "{text:?}");
    let lines = text.replace('\n', "");
    assert!(!lines.contains(tailrace_config::is_unsafe), "{text:?}");
    assert!(
        text.contains("a\\n2026-01-01T00:00:00Z ERROR forged\\r\\u{1b}[2J"),
        "{text:?}"
    );
}

#[test]
fn json_logs_stay_json_and_hold_the_text_as_it_is() {
    let text = logged(true, "info", |_| log_hostile());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text:?}");
    assert!(
        !text.replace('\n', "").contains(tailrace_config::is_unsafe),
        "{text:?}"
    );
    let value: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!(
        (&value["path"], &value["shown"]),
        (&HOSTILE.into(), &HOSTILE.into())
    );
    assert_eq!(value["span"]["pod"], HOSTILE);
}

#[derive(Debug)]
struct Failure(&'static str, Option<Box<Failure>>);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

#[test]
fn a_chain_names_every_cause_once() {
    let root = Failure("no space left on device", None);
    let middle = Failure(
        "cannot write /x: no space left on device",
        Some(Box::new(root)),
    );
    let top = Failure("checkpoint not saved", Some(Box::new(middle)));
    assert_eq!(
        chain(&top).to_string(),
        "checkpoint not saved: cannot write /x: no space left on device"
    );
}

#[test]
fn retries_of_object_stores_are_details() {
    let said = |filter| {
        logged(false, filter, |_| {
            info!(target: "object_store::client::retry", "backing off");
            warn!(target: "object_store::aws", "falling back");
        })
    };
    for (filter, retries) in [
        ("info", false),
        ("info,tailrace_inputs=warn", false),
        ("debug", true),
        ("info,object_store=info", true),
    ] {
        let text = said(filter);
        assert_eq!(text.contains("backing off"), retries, "{filter}: {text}");
        assert!(text.contains("falling back"), "{filter}: {text}");
    }
}
