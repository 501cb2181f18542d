//! `tailrace query`: exit codes, forms of results, pipes and memory.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Bench, tailrace};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What a shell prints.
fn run(bench: &Bench, command: &str) -> String {
    let binary = Path::new(tailrace().get_program())
        .parent()
        .unwrap()
        .to_owned();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(command)
        .current_dir(bench.path("."))
        .env("PATH", path);
    let output = shell.stdin(Stdio::null()).output().unwrap();
    text(&output.stdout) + &text(&output.stderr)
}

fn query(arguments: &[&str]) -> Output {
    let mut command = tailrace();
    command.arg("query").args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn exit_codes_say_whose_fault_it_is() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    fs::write(&file, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n").unwrap();
    let file = file.to_str().unwrap();
    let cases: [(&[&str], i32); 11] = [
        (&["SELECT n FROM logs", file], 0),
        (&["-- of all\nSELECT n FROM logs", file], 0),
        // A file is named that the query does not read.
        (&["SELECT 1", "/no/such/file"], 1),
        (&["SELECT m FROM logs", file], 2),
        (&["SELECT n FRM logs", file], 2),
        (&["SELECT 1; SELECT 2", file], 2),
        (&["SELECT n FROM logs"], 2),
        (&[file], 2),
        (&["SELECT n FROM logs", file, "--columns", "n=number"], 2),
        (&["SELECT n FROM logs", "/no/such/file"], 1),
        (&["SELECT 1 / (n - 2) FROM logs", file], 1),
    ];
    for (arguments, code) in cases {
        let output = query(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert_eq!(said.is_empty(), code == 0, "{arguments:?}: {said}");
        assert!(!said.contains("panic"), "{said}");
    }
    // A condition as long as a program may write it.
    let long = format!(
        "SELECT n FROM logs WHERE {}",
        vec!["n = 1"; 900].join(" OR ")
    );
    let output = query(&[&long, file]);
    assert_eq!(
        text(&output.stdout),
        "{\"n\":1}\n",
        "{}",
        text(&output.stderr)
    );
    let longer = format!(
        "SELECT n FROM logs WHERE {}",
        vec!["n = 1"; 10_000].join(" OR ")
    );
    let output = query(&[&longer, file]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("IN (...)"),
        "{}",
        text(&output.stderr)
    );
    let deep = format!("SELECT {}1{} FROM logs", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(query(&[&deep, file]).status.code(), Some(2));
}

#[test]
fn names_that_are_no_text_are_those_of_files() {
    let bench = Bench::new();
    let file = bench.path("a.log").into_os_string().into_vec();
    let file = OsString::from_vec([&file[..], b"\xff"].concat());
    fs::write(&file, "{\"n\":1}\n").unwrap();
    for arguments in [&["query", "SELECT n FROM logs"][..], &["schema"]] {
        let output = tailrace().args(arguments).arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains('1'), "{arguments:?}");
    }
    let mut command = tailrace();
    let output = command
        .args(["query", "-f", "SELECT n FROM logs"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("not UTF-8"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn times_that_no_calendar_has_are_null_and_counted() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    fs::write(&file, "{\"s\":1}\n{\"s\":1767323045678901234}\n").unwrap();
    let file = file.to_str().unwrap();
    let sql =
        "SELECT to_timestamp_seconds(s) AS t, make_array(to_timestamp_seconds(s)) AS l FROM logs";
    let expected = [
        ("jsonl", "{\"t\":null,\"l\":[null]}\n"),
        ("json", ",{\"t\":null,\"l\":[null]}]\n"),
        ("markdown", "[]                     |\n"),
    ];
    for (how, end) in expected {
        let output = query(&[sql, file, "-o", how]);
        assert!(
            text(&output.stdout).ends_with(end),
            "{}",
            text(&output.stdout)
        );
        let note = "note: 2 times are beyond the years that a calendar has, and are shown as NULL";
        assert!(
            text(&output.stderr).starts_with(note),
            "{}",
            text(&output.stderr)
        );
        assert_eq!(output.status.code(), Some(0));
    }
    // Neither a column that has no NULL by itself, nor what a list has in other rows.
    let sql = "SELECT coalesce(to_timestamp_seconds(1767323045678901234), to_timestamp_seconds(0)) AS t, make_array(to_timestamp_seconds(s)) AS l FROM logs LIMIT 1";
    let output = query(&[sql, file]);
    assert_eq!(
        text(&output.stdout),
        "{\"t\":null,\"l\":[\"1970-01-01T00:00:01Z\"]}\n"
    );
    assert!(
        text(&output.stderr).starts_with("note: a time is"),
        "{}",
        text(&output.stderr)
    );
    // Microseconds cannot hold it.
    let output = query(&[
        "SELECT to_timestamp_seconds(s) AS t FROM logs",
        file,
        "-o",
        "parquet",
    ]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn every_form_of_a_result_has_all_its_rows() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    let lines: String = (0..100)
        .map(|n| format!("{{\"n\":{n},\"t\":\"a|b,\\t\\u001b\"}}\n"))
        .collect();
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let printed = |sql: &str, how: &str| text(&query(&[sql, file, "-o", how]).stdout);
    let all = "SELECT * FROM logs";
    assert_eq!(printed(all, "jsonl").lines().count(), 100);
    let array: serde_json::Value = serde_json::from_str(&printed(all, "json")).unwrap();
    assert_eq!(array.as_array().unwrap().len(), 100);
    assert_eq!(printed(all, "csv").lines().count(), 101);
    assert!(printed(all, "csv").starts_with("n,t\n0,\"a|b,"));
    assert!(printed(all, "tsv").starts_with("n\tt\n"));
    assert!(printed(all, "table").ends_with("\n60 more rows\n"));
    assert!(!printed(all, "table").contains('\u{1b}'));
    assert_eq!(printed(all, "markdown").lines().count(), 102);
    assert!(printed(all, "markdown").contains("a\\|b"));
    // The columns of the first rows are aligned, and no others wait for them.
    let many = printed(
        "SELECT a.n FROM logs a CROSS JOIN logs b LIMIT 1234",
        "markdown",
    );
    assert_eq!(many.lines().count(), 1_236);
    let cells = many
        .lines()
        .filter(|line| line.starts_with("| ") && line.ends_with(" |"));
    assert_eq!(cells.count(), 1_235);
    let none = "SELECT n FROM logs WHERE n < 0";
    assert_eq!(
        (
            printed(none, "json").as_str(),
            printed(none, "jsonl").as_str()
        ),
        ("[]\n", "")
    );
    assert_eq!(printed(none, "csv"), "n\n");
    let lists = "SELECT make_array(1, NULL, n) AS l, named_struct('t', t) AS o, NULLIF(make_array(n), [n]) AS z FROM logs WHERE n = 0";
    assert_eq!(
        printed(lists, "csv"),
        "l,o,z\n\"[1,null,0]\",\"{\"\"t\"\":\"\"a|b,\\t\\u001b\"\"}\",\n"
    );
    // An empty text is not NULL.
    let none = "SELECT '' AS a, NULL AS b, 'x\"y' AS c, NULLIF(t, t) AS d FROM logs WHERE n = 0";
    assert_eq!(printed(none, "csv"), "a,b,c,d\n\"\",,\"x\"\"y\",\n");
    assert_eq!(printed(none, "tsv"), "a\tb\tc\td\n\"\"\t\t\"x\"\"y\"\t\n");
    let again = "SELECT n, n, * FROM logs WHERE n = 0";
    assert!(printed(again, "csv").starts_with("n_1,n_2,n,t\n0,0,0,"));
    let twice = "SELECT a.n, b.n FROM logs a JOIN logs b ON a.n = b.n + 1 WHERE a.n = 5";
    assert_eq!(printed(twice, "jsonl"), "{\"n\":5,\"n_1\":4}\n");
    let rows = query(&[all, file, "-n", "3", "-o", "jsonl"]);
    assert_eq!(text(&rows.stdout).lines().count(), 3);
}

#[test]
fn a_pipe_may_end_on_either_side() {
    let mut command = tailrace();
    command.args(["query", "SELECT n FROM logs", "-", "-n", "2"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than the sample, and the pipe stays open.
    let line = format!("{{\"n\":1,\"pad\":\"{}\"}}\n", "x".repeat(1000));
    let _ = stdin.write_all(line.repeat(3000).as_bytes());
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(
        (text(&output.stdout).as_str(), output.status.code()),
        ("{\"n\":1}\n{\"n\":1}\n", Some(0))
    );
    let bench = Bench::new();
    let file = bench.path("a.log");
    fs::write(&file, line.repeat(3000)).unwrap();
    let mut command = tailrace();
    command
        .arg("query")
        .arg("SELECT * FROM logs")
        .arg(&file)
        .stdin(Stdio::null());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    assert!(first.starts_with("{\"n\":1"), "{first}");
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (text(&output.stderr).as_str(), output.status.code()),
        ("", Some(0))
    );
}

#[test]
fn a_pipe_is_read_once_and_whole() {
    let bench = Bench::new();
    let lines: String = (0..100_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    fs::write(bench.path("a.log"), &lines).unwrap();
    let count = "SELECT count(*) AS n, max(n) AS m FROM logs";
    let piped = format!("mkfifo p; cat a.log > p & tailrace query '{count}' p");
    assert_eq!(run(&bench, &piped), "{\"n\":100000,\"m\":99999}\n");
    // Twice it would have to be kept.
    let twice =
        "cat a.log | tailrace query \"SELECT count(*) FROM logs a JOIN '-' b ON a.n = b.n\" -";
    assert!(run(&bench, twice).contains("standard input can be read once"));
    let proc = query(&[
        "SELECT count(*) > 10 AS many FROM logs",
        "/proc/meminfo",
        "-o",
        "csv",
    ]);
    assert_eq!(text(&proc.stdout), "many\ntrue\n");
}

#[test]
fn keys_that_no_column_is_made_of_are_named() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    let late: String = (0..7).map(|n| format!(",\"k{n}\":1")).collect();
    let lines = "{\"n\":1}\n".repeat(40_000) + &format!("{{\"n\":2{late}}}\n");
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let told = text(&query(&["SELECT * FROM logs WHERE n = 2", file]).stderr);
    let named = "lacks: `k0`, `k1`, `k2`, `k3`, `k4` and 2 more; `--columns k0=text` makes";
    assert!(told.contains(named), "{told}");
    let told = text(&query(&["SELECT n FROM logs WHERE n = 2", file]).stderr);
    assert_eq!(told, "");
}

#[test]
fn memory_is_bounded() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    let lines: String = (0..200_000_u32)
        .map(|n| format!("{{\"n\":{},\"t\":\"{n:0>40}\"}}\n", n.reverse_bits()))
        .collect();
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let joined = "SELECT count(*) FROM logs a JOIN logs b ON a.t = b.t";
    let refused = query(&[joined, file, "--memory-limit", "1MiB"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("--memory-limit"),
        "{}",
        text(&refused.stderr)
    );
    // The first rows of what would be large without end.
    let large = query(&["SELECT a.n FROM logs a, logs b, logs c", file, "-n", "2"]);
    assert_eq!(
        text(&large.stdout).lines().count(),
        2,
        "{}",
        text(&large.stderr)
    );
}

#[test]
fn what_is_on_disk_is_removed_by_a_signal() {
    let bench = Bench::new();
    let (file, temporary) = (bench.path("a.log"), bench.path("tmp"));
    fs::create_dir(&temporary).unwrap();
    let filler = "x".repeat(300);
    let lines: String = (0..60_000_u32)
        .map(|n| format!("{{\"n\":{},\"t\":\"{filler}\"}}\n", n.reverse_bits()))
        .collect();
    fs::write(&file, lines).unwrap();
    let mut command = tailrace();
    command.args(["query", "SELECT n, t FROM logs ORDER BY n"]);
    command.arg(&file).args(["--memory-limit", "8MiB"]);
    command.env("TMPDIR", &temporary).stdin(Stdio::null());
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut rows = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        rows.read_line(&mut first).unwrap();
        assert!(first.starts_with("{\"n\":0,"), "{first}");
        // The other rows wait there: nobody takes them.
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 1);
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    }
}
