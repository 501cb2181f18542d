//! The progress bar of `tailrace query`: on a terminal, while the query runs, and gone before its result.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::support::{Bench, tailrace};
use crate::terminal::Terminal;

/// More than what is read before a query runs.
fn lines() -> String {
    (0..40_000).map(|n| format!("{{\"n\":{n}}}\n")).collect()
}

#[test]
fn a_slow_query_shows_how_far_it_is_until_it_ends() {
    let bench = Bench::new();
    let (pipe, file) = (bench.path("pipe"), bench.path("a.log"));
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    std::fs::write(&file, lines()).unwrap();
    let (mut terminal, other) = Terminal::open();
    let mut child = {
        let mut command = tailrace();
        command.args(["query", "SELECT count(*) AS n FROM logs"]);
        command.arg(&pipe).arg(&file).env("TERM", "xterm");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(other).spawn().unwrap()
    };
    // The query waits for the end of the pipe, and shows that it does.
    let mut writer = File::options().write(true).open(&pipe).unwrap();
    writer.write_all(lines().as_bytes()).unwrap();
    let drawn = terminal.until(" rows kept");
    assert!(drawn.contains("read, "), "{drawn:?}");
    drop(writer);
    let mut result = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut result)
        .unwrap();
    assert_eq!(result, "{\"n\":80000}\n");
    assert!(child.wait().unwrap().success());
    // The line is cleared, and nothing is written after that.
    let rest = terminal.rest();
    let last = rest.rsplit("\u{1b}[2K").next().unwrap();
    assert_eq!(last.trim_matches(['\r', '\n']), "", "{rest:?}");
}
