//! `tailrace query --follow`: rows as lines are written, through rotation, until a signal.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Bench, tailrace};

/// A query that follows; it is killed with the test.
struct Followed {
    child: Child,
    rows: BufReader<ChildStdout>,
}

impl Drop for Followed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Followed {
    fn start(arguments: &[&str]) -> Followed {
        let mut command = tailrace();
        command.arg("query").arg("-f").args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let rows = BufReader::new(child.stdout.take().unwrap());
        Followed { child, rows }
    }

    fn row(&mut self) -> String {
        let mut row = String::new();
        self.rows.read_line(&mut row).unwrap();
        row
    }

    fn interrupt(&self) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        kill_process(pid, Signal::INT).unwrap();
    }
}

fn append(path: &Path, text: &str) {
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn rows_come_as_lines_are_written_and_a_signal_is_a_good_end() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    append(&file, "{\"n\":1,\"level\":\"error\"}\n{\"n\":2}\n");
    let sql = "SELECT n, \"log.file.name\" AS f FROM (SELECT *, \"log.file.name\" FROM logs) WHERE n <> 2 AND random() < 2";
    let glob = format!("{}/*.log", bench.path(".").display());
    let mut followed = Followed::start(&[sql, &glob]);
    assert_eq!(followed.row(), "{\"n\":1,\"f\":\"a.log\"}\n");
    append(&file, "{\"n\":3}\n{\"n\":");
    assert_eq!(followed.row(), "{\"n\":3,\"f\":\"a.log\"}\n");
    append(&file, "4}\n");
    assert_eq!(followed.row(), "{\"n\":4,\"f\":\"a.log\"}\n");
    // Rotation, and a file that was not there.
    append(&file, "{\"n\":5}\n");
    fs::rename(&file, bench.path("a.log.1")).unwrap();
    append(&file, "{\"n\":6}\n");
    assert!(followed.row().starts_with("{\"n\":5,"));
    assert_eq!(followed.row(), "{\"n\":6,\"f\":\"a.log\"}\n");
    append(&bench.path("b.log"), "{\"n\":7}\n");
    assert_eq!(followed.row(), "{\"n\":7,\"f\":\"b.log\"}\n");
    followed.interrupt();
    assert_eq!(followed.child.wait().unwrap().code(), Some(0));
}

#[test]
fn bounds_and_a_number_of_rows_hold() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    append(&file, "{\"n\":1,\"level\":\"info\"}\n");
    let path = file.to_str().unwrap();
    let mut followed = Followed::start(&[
        "SELECT n FROM logs",
        path,
        "--level",
        "warn",
        "-n",
        "2",
        "-o",
        "csv",
    ]);
    append(
        &file,
        "{\"n\":2,\"level\":\"error\"}\n{\"n\":3}\n{\"n\":4,\"level\":\"fatal\"}\n{\"n\":5,\"level\":\"fatal\"}\n",
    );
    let rows = [
        followed.row(),
        followed.row(),
        followed.row(),
        followed.row(),
    ];
    assert_eq!(rows, ["n\n", "2\n", "4\n", ""]);
    assert_eq!(followed.child.wait().unwrap().code(), Some(0));
}

#[test]
fn nobody_reads_the_rows_any_more() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    append(&file, "{\"n\":1}\n");
    let mut followed = Followed::start(&["SELECT n FROM logs", file.to_str().unwrap()]);
    followed.row();
    let Followed { child, .. } = &mut followed;
    let mut said = child.stderr.take().unwrap();
    // Without a further row.
    let closed = std::mem::replace(&mut followed.rows, BufReader::new(other_pipe()));
    drop(closed);
    let ended = followed.child.wait().unwrap();
    assert_eq!(ended.code(), Some(0));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut said, &mut text).unwrap();
    assert_eq!(text, "");
}

/// The standard output of a process that has ended.
fn other_pipe() -> ChildStdout {
    let mut command = tailrace();
    let mut child = command
        .arg("--version")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.wait().unwrap();
    child.stdout.take().unwrap()
}

#[test]
fn a_signal_ends_a_query_whose_rows_nobody_takes() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    let pad = "x".repeat(1000);
    let lines = (0..20_000).map(|n| format!("{{\"n\":{n},\"pad\":\"{pad}\"}}\n"));
    append(&file, &lines.collect::<String>());
    let mut followed = Followed::start(&["SELECT * FROM logs", file.to_str().unwrap()]);
    followed.row();
    let pid = Pid::from_raw(followed.child.id() as i32).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(followed.child.wait().unwrap().code(), Some(143));
}

#[test]
fn what_is_not_row_wise_is_refused_by_name() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    append(&file, "{\"n\":1,\"l\":\"x\"}\n");
    append(&bench.path("u.csv"), "n,m\n1,2\n");
    let path = file.to_str().unwrap();
    let csv = format!("SELECT * FROM '{}'", bench.path("u.csv").display());
    let cases = [
        (
            "SELECT l, count(*) FROM logs GROUP BY l",
            "GROUP BY cannot be followed (SQL:1:30)",
        ),
        ("SELECT count(*) FROM logs", "an aggregate cannot"),
        (
            "SELECT n FROM logs ORDER BY n",
            "ORDER BY cannot be followed (SQL:1:20)",
        ),
        ("SELECT DISTINCT n FROM logs", "DISTINCT cannot"),
        (
            "SELECT a.n FROM logs a JOIN logs b ON a.n = b.n",
            "a join cannot be followed (SQL:1:24)",
        ),
        (
            "SELECT n FROM logs UNION ALL SELECT n FROM logs",
            "UNION cannot",
        ),
        (
            "SELECT n, row_number() OVER () FROM logs",
            "a window function cannot",
        ),
        (
            "SELECT n FROM logs WHERE n IN (SELECT n FROM logs)",
            "a subquery in an expression cannot",
        ),
        ("SELECT 1", "a query without a log file cannot"),
        (&csv, "a table that is no log file cannot"),
    ];
    let refused = |arguments: &[&str]| {
        let mut command = tailrace();
        command.args(["query", "-f"]).args(arguments);
        let output = command.stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        said
    };
    for (sql, expected) in cases {
        let said = refused(&[sql, path]);
        assert!(said.contains(expected), "{sql}: {said}");
    }
    assert!(refused(&["SELECT n FROM logs", path, "-o", "table"]).contains("jsonl"));
    assert!(refused(&["SELECT n FROM logs", "-"]).contains("standard input"));
    let packed = bench.path("packed");
    fs::write(&packed, zstd::encode_all(&b"{\"n\":1}\n"[..], 1).unwrap()).unwrap();
    let said = refused(&["SELECT n FROM logs", packed.to_str().unwrap()]);
    assert!(said.contains("is compressed and does not grow"), "{said}");
    let empty = bench.path("empty.log");
    fs::write(&empty, "").unwrap();
    let said = refused(&["SELECT * FROM logs", empty.to_str().unwrap()]);
    assert!(said.contains("hold no record yet"), "{said}");
}
