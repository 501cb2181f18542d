//! The prompt of `tailrace query`: queries, commands, completion, history, Ctrl-C and Ctrl-D.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Bench, tailrace};
use crate::terminal::Terminal;

/// A prompt over `a.log`, that keeps its history below the bench's directory.
fn prompt(bench: &Bench) -> (Terminal, Child) {
    let mut command = tailrace();
    command.arg("query").arg(bench.path("a.log"));
    command.env("XDG_STATE_HOME", bench.path("state"));
    let (mut terminal, child) = Terminal::start(&mut command);
    terminal.until("1 file is the table `logs`, with 2 columns");
    terminal.until("tailrace> ");
    (terminal, child)
}

fn bench() -> Bench {
    let bench = Bench::new();
    let lines = (0..3000).map(|n| format!("{{\"n\":{n},\"status\":\"s\\u001b{n}\"}}\n"));
    fs::write(bench.path("a.log"), lines.collect::<String>()).unwrap();
    bench
}

/// Types, and waits for an answer with this text and for the next prompt.
fn ask(terminal: &mut Terminal, keys: &str, expected: &str) -> String {
    terminal.write(keys);
    terminal.until(expected) + &terminal.until("tailrace> ")
}

#[test]
fn a_session_answers_one_query_after_the_other() {
    let bench = bench();
    fs::write(bench.path("u.csv"), "id,name\n7,Anna\n").unwrap();
    let csv = format!("FROM '{}' WHERE id = 7;\r", bench.path("u.csv").display());
    let (mut terminal, mut child) = prompt(&bench);
    // A query of two lines.
    terminal.write("SELECT sum(n) AS total\r");
    ask(&mut terminal, "FROM logs;\r", "4498500");
    // A mistake is shown where it is, and ends nothing.
    let shown = ask(&mut terminal, "SELECT m FROM logs;\r", "`m` (SQL:1:8)");
    assert!(shown.contains("\n         ^"), "{shown:?}");
    // The tab key completes a column. What the file holds is escaped.
    let by_tab = "SELECT statu\t FROM logs WHERE n = 2999;\r";
    ask(&mut terminal, by_tab, "s\\u{1b}2999");
    // A table that DataFusion reads itself, twice.
    for _ in 0..2 {
        ask(&mut terminal, &format!("SELECT name {csv}"), "Anna");
    }
    ask(&mut terminal, "\\d\r", "int64");
    ask(&mut terminal, ".none\r", "there is no command `.none`");
    terminal.write("\u{4}");
    assert!(child.wait().unwrap().success());
    let history = bench.path("state/tailrace/history");
    let mode = fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The next session has the queries of this one.
    let (mut terminal, mut child) = prompt(&bench);
    ask(&mut terminal, "\u{1b}[A\u{1b}[A\u{1b}[A\r", "Anna");
    terminal.write(".quit\r");
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_interrupt_ends_the_query_and_not_the_session() {
    let bench = bench();
    let (mut terminal, mut child) = prompt(&bench);
    terminal.write(
        "SELECT count(*) FROM logs a, logs b, logs c, logs d WHERE a.n + b.n + c.n + d.n < 0;\r",
    );
    // The bar shows that it runs.
    terminal.until(" rows");
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    ask(&mut terminal, "", "the query was interrupted");
    ask(&mut terminal, "SELECT 40 + 2 AS answer;\r", "42");
    // At the prompt Ctrl-C clears what is written.
    ask(&mut terminal, "SELECT nonsense\u{3}", "nonsense");
    ask(&mut terminal, "SELECT 40 + 3 AS answer;\r", "43");
    terminal.write("\u{4}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_query_that_does_not_stop_keeps_no_other_waiting() {
    let bench = bench();
    let (mut terminal, mut child) = prompt(&bench);
    terminal.write(
        "SELECT count(*) FROM generate_series(1, 9000000) a(x), generate_series(1, 9000000) b(y) WHERE x * y < 0;\r",
    );
    terminal.until(" rows");
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    ask(&mut terminal, "", "the query was interrupted");
    let shown = ask(
        &mut terminal,
        "SELECT 40 + 2 AS answer, sum(n) AS n FROM logs;\r",
        "4498500",
    );
    assert!(shown.contains("42"), "{shown:?}");
    terminal.write("\u{4}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn without_a_terminal_there_is_no_prompt() {
    let bench = bench();
    let file = bench.path("a.log");
    let cases: [(&[&str], &str); 3] = [
        (&[], "no query was given"),
        (&[file.to_str().unwrap()], "is a file"),
        (&["-f", file.to_str().unwrap()], "is a file"),
    ];
    for (arguments, expected) in cases {
        let mut command = tailrace();
        command.arg("query").args(arguments).stdin(Stdio::null());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
