//! `tailrace query` and Parquet: archives by `--to`, files by `-o`, and what is refused.

use std::fs::{self, File};
use std::process::{Output, Stdio};

use crate::support::{Bench, tailrace};

fn query(bench: &Bench, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = tailrace();
    command
        .arg("query")
        .args(arguments)
        .current_dir(bench.path("."));
    let Output {
        status,
        stdout,
        stderr,
    } = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

fn lines(bench: &Bench) {
    let lines = "{\"timestamp\":\"2026-11-25T12:00:01.000000001Z\",\"service\":\"a/b\",\"n\":1}\n\
                 {\"timestamp\":\"2026-11-25T12:00:00Z\",\"service\":\"\",\"n\":2}\n";
    fs::write(bench.path("app.log"), lines).unwrap();
}

#[test]
fn rows_are_kept_and_read_again() {
    let bench = Bench::new();
    lines(&bench);
    let to = [
        "SELECT * FROM logs",
        "app.log",
        "--to",
        "kept",
        "--partition-by",
        "service",
        "-o",
        "parquet",
    ];
    let (code, stdout, stderr) = query(&bench, &to);
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    let said: Vec<_> = stderr.lines().collect();
    assert!(
        said[0].starts_with("note: 1 times were cut to microseconds"),
        "{stderr}"
    );
    assert!(
        said[1].starts_with("note: 1 rows have an empty text"),
        "{stderr}"
    );
    assert!(
        said[2].starts_with("2 rows in 2 files, ") && said[2].contains(": kept/**/2"),
        "{stderr}"
    );
    // The same run again: no file is replaced.
    assert_eq!(query(&bench, &to).0, Some(0));
    let (_, stdout, _) = query(
        &bench,
        &[
            "SELECT service, n, count(*) AS c FROM logs GROUP BY 1, 2 ORDER BY n",
            "kept",
        ],
    );
    assert_eq!(
        stdout,
        "{\"service\":\"a/b\",\"n\":1,\"c\":2}\n{\"service\":null,\"n\":2,\"c\":2}\n"
    );
    assert!(bench.path("kept/service=a%2Fb").is_dir());
}

#[test]
fn a_file_of_standard_output_keeps_every_digit() {
    let bench = Bench::new();
    lines(&bench);
    for form in ["parquet", "arrow"] {
        let name = format!("x.{form}");
        let mut command = tailrace();
        command
            .args(["query", "SELECT * FROM logs", "app.log", "-o", form])
            .current_dir(bench.path("."));
        let out = File::create(bench.path(&name)).unwrap();
        assert!(command.stdout(out).status().unwrap().success());
        let sql = format!(
            "SELECT CAST(timestamp AS BIGINT) % 1000 AS ns, service, n FROM '{name}' ORDER BY n"
        );
        let (_, stdout, stderr) = query(&bench, &[&sql]);
        assert_eq!(
            stdout, "{\"ns\":1,\"service\":\"a/b\",\"n\":1}\n{\"ns\":0,\"service\":\"\",\"n\":2}\n",
            "{stderr}"
        );
    }
    // A result without rows has columns, too.
    let mut command = tailrace();
    command
        .args([
            "query",
            "SELECT n FROM logs WHERE n > 9",
            "app.log",
            "-o",
            "parquet",
        ])
        .current_dir(bench.path("."));
    assert!(
        command
            .stdout(File::create(bench.path("none.parquet")).unwrap())
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(
        query(&bench, &["SELECT count(n) AS c FROM 'none.parquet'"]).1,
        "{\"c\":0}\n"
    );
}

#[test]
fn what_makes_no_archive_is_refused() {
    let bench = Bench::new();
    lines(&bench);
    fs::write(bench.path("no.parquet"), "PAR1").unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["SELECT * FROM logs", "app.log", "--to", "kept", "-o", "csv"],
            2,
            "`--to` writes Parquet",
        ),
        (
            &["SELECT * FROM logs", "app.log", "--partition-by", "n"],
            2,
            "--to",
        ),
        (
            &["SELECT * FROM logs", "app.log", "--to", "kept", "-f"],
            2,
            "cannot be used with",
        ),
        (
            &[
                "SELECT * FROM logs",
                "app.log",
                "--to",
                "kept",
                "--partition-by",
                "m",
            ],
            2,
            "is no column of the result",
        ),
        (
            &["SELECT * FROM logs", "app.log", "--to", "app.log"],
            1,
            "app.log",
        ),
        (&["SELECT * FROM logs", "no.parquet"], 1, "no.parquet"),
        (
            &["SELECT * FROM logs", "no.parquet", "-f"],
            2,
            "cannot be followed",
        ),
        (
            &["SELECT * FROM 's4://bucket/x'"],
            1,
            "no store is known by `s4://`",
        ),
    ];
    for (arguments, want, message) in cases {
        let (code, stdout, stderr) = query(&bench, arguments);
        assert_eq!(
            (code, stdout.as_str()),
            (Some(want), ""),
            "{arguments:?}: {stderr}"
        );
        assert!(
            stderr.contains(message) && !stderr.contains("panic"),
            "{arguments:?}: {stderr}"
        );
    }
    assert!(!bench.path("kept").exists());
}
