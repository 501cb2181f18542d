//! `tailrace try`: what it prints, and that this is what an agent writes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Bench, append, tailrace, until};

const LINES: &str = r#"{"level":"ERROR","status":500,"msg":"a"}
{"level":"INFO","status":200,"msg":"b"}

plain
{"level":"ERROR","status":503,"id":9007199254740993,"msg":"c\u001b[31m"}
"#;

/// Runs `tailrace try` on lines.
fn try_on(arguments: &[&str], lines: impl AsRef<[u8]>) -> Output {
    let mut child = tailrace()
        .arg("try")
        .args(arguments)
        .env("COLUMNS", "200")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(lines.as_ref());
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn rows_in_a_pipe_are_json_lines_and_the_counts_go_to_stderr() {
    let sql = "SELECT id, msg, status / 1000 AS s FROM logs WHERE status >= 500";
    for arguments in [&[sql][..], &[sql, "-"]] {
        let output = try_on(arguments, LINES);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(
            stdout(&output),
            "{\"msg\":\"a\",\"s\":0.5}\n{\"id\":9007199254740993,\"msg\":\"c\\u001b[31m\",\"s\":0.503}\n"
        );
        assert_eq!(
            stderr(&output),
            "2 of 4 records kept, 2 filtered, 1 blank line skipped\n"
        );
    }
    let none = try_on(&[sql], "");
    assert_eq!(
        (stdout(&none).as_str(), none.status.code()),
        ("", Some(0)),
        "{}",
        stderr(&none)
    );
}

#[test]
fn a_table_shows_the_first_rows_and_says_how_many_there_are() {
    let table = try_on(&["SELECT * FROM logs", "-o", "table"], LINES);
    let said = stdout(&table);
    assert_eq!(table.status.code(), Some(0), "{}", stderr(&table));
    let header: Vec<&str> = said.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(header[..3], ["level", "status", "msg"], "{said}");
    assert!(
        said.contains("c\\u{1b}[31m") && said.contains("plain"),
        "{said}"
    );
    assert!(!said.contains('\u{1b}'), "{said}");
    assert!(stderr(&table).contains("4 of 4 records kept"));
    let many: String = (0..1000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let said = stdout(&try_on(&["SELECT n FROM logs", "--output", "table"], many));
    assert!(said.contains("39") && !said.contains("\n 40"), "{said}");
    assert!(said.contains("960 more"), "{said}");
}

#[test]
fn verdicts_say_why_each_record_is_kept_or_not() {
    let sql = "SELECT msg, 10 / (status - 200) AS d FROM logs WHERE level = 'ERROR' AND status >= 501 \
               UNION ALL SELECT msg, NULL AS d FROM logs WHERE msg = 'b'";
    let lines = [
        LINES.as_bytes(),
        b"{\"level\":\"ERROR\",\"msg\":\"\xff\"}\n{\"x\n",
    ]
    .concat();
    let output = try_on(&[sql, "--verdict"], &lines);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    let found: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let words: Vec<_> = found
        .iter()
        .map(|it| {
            (
                it["line"].as_u64().unwrap(),
                it["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    let expect = [
        (1, "filtered"),
        (2, "kept"),
        (4, "filtered"),
        (5, "kept"),
        (6, "filtered"),
        (7, "filtered"),
    ];
    assert_eq!(words, expect);
    assert_eq!(
        found[0]["reasons"][0],
        json!({"select": 1, "condition": "status >= 501", "is": "false", "failed": null,
               "values": {"status": 500}, "absent": []})
    );
    assert_eq!(found[0]["reasons"][1]["values"], json!({"msg": "a"}));
    assert_eq!(found[1]["rows"], json!([{"msg": "b"}]));
    assert_eq!(found[4]["repaired"], true);
    assert_eq!(found[4]["reasons"][0]["absent"], json!(["status"]));
    assert!(found[5]["malformed"].as_str().unwrap().contains("not JSON"));

    let text = stdout(&try_on(&[sql, "--verdict", "-o", "table"], &lines));
    for part in [
        "      1  filtered  {\"level\":\"ERROR\"",
        "SELECT 1: `status >= 501` is false: status = 500",
        "SELECT 2: `msg = 'b'` is false: msg = \"a\"",
        "      2  kept      {\"level\":\"INFO\"",
        "=> {\"msg\":\"b\"}",
        "`level = 'ERROR'` is NULL: level is absent",
        "invalid UTF-8 became U+FFFD",
        "malformed: not JSON",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn failed_expressions_are_named() {
    let sql = "SELECT substr(n, 1)::bigint AS m FROM logs";
    let lines = "{\"n\":\"7\"}\n{\"n\":\"x\"}\n";
    let output = try_on(&[sql, "--verdict"], lines);
    let second = stdout(&output);
    let second: Value = serde_json::from_str(second.lines().nth(1).unwrap()).unwrap();
    assert_eq!(second["failed"][0]["column"], "m", "{second}");
    assert!(
        second["failed"][0]["reason"]
            .as_str()
            .unwrap()
            .contains('x')
    );
    assert!(stderr(&output).contains("1 for which an expression failed"));
}

#[test]
fn otlp_records_are_shown_as_json() {
    let line = r#"{"ts":"2026-01-02T03:04:05.678Z","level":"warn","msg":"slow","id":9007199254740993,"user":null}"#;
    let output = try_on(&["SELECT * FROM logs", "--otlp"], line);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let request: Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    assert_eq!(record["timeUnixNano"], "1767323045678000000");
    assert_eq!(record["severityNumber"], 13);
    assert_eq!(record["body"], json!({"stringValue": "slow"}));
    let attributes = json!([
        {"key": "id", "value": {"intValue": "9007199254740993"}},
        {"key": "user", "value": {}},
    ]);
    assert_eq!(record["attributes"], attributes);
    let text = stdout(&try_on(
        &["SELECT * FROM logs", "--otlp", "-o", "table"],
        line,
    ));
    assert!(text.contains("\n      \"scopeLogs\": ["), "{text}");
}

#[test]
fn the_config_that_is_printed_is_valid() {
    let bench = Bench::new();
    let sql = "SELECT *\n\nFROM logs -- ${HOME} $1\nWHERE msg ~ '^a$' AND x = '# y: z'";
    let log = bench.log("a [1]*.log");
    let log = log.to_str().unwrap();
    let output = try_on(&[sql, log, "--to-config", "--multiline", "java,go"], "");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let path = bench.path("printed.yaml");
    fs::write(&path, &output.stdout).unwrap();
    let path = path.to_str().unwrap();
    let validate = |arguments: &[&str]| {
        let output = tailrace().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    validate(&["validate", "--no-environment", "-c", path]);
    let explained = validate(&["explain", "--no-environment", "-c", path]);
    assert!(
        explained.contains("WHERE msg ~ '^a$' AND x = '# y: z'"),
        "{explained}"
    );
    assert!(explained.contains("${HOME} $1"), "{explained}");
    let wrong = try_on(&["SELECT nothing(a) AS b FROM logs", "--to-config"], "");
    assert_eq!(
        (wrong.status.code(), stdout(&wrong).as_str()),
        (Some(78), "")
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let bench = Bench::new();
    let directory = bench.path("logs");
    let absent = bench.log("absent.log");
    let present = bench.log("present.log");
    std::fs::write(&present, "{}\n").unwrap();
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &[present.to_str().unwrap()],
            2,
            "is a file, and the query comes first",
        ),
        (&["SELECT lenght(a) AS n FROM logs"], 78, "SQL:1:8: error:"),
        (&["SELECT a,\n  b FRM logs"], 78, "SQL:2:"),
        (&["SELECT count(a) AS n FROM logs"], 78, "count"),
        (&["SELECT a FROM other"], 78, "logs"),
        (
            &["SELECT a FROM logs", absent.to_str().unwrap()],
            1,
            "absent.log: cannot be read",
        ),
        (
            &["SELECT a FROM logs", directory.to_str().unwrap()],
            1,
            "is a directory",
        ),
        (&["SELECT a FROM logs", "--format", "xml"], 2, "docker"),
    ];
    for (arguments, code, what) in cases {
        let output = try_on(arguments, "{}\n");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{said}");
        assert!(
            said.contains(what) && !said.contains("in the config"),
            "{said}"
        );
        assert_eq!(stdout(&output), "");
    }
    assert_eq!(try_on(&[], "").status.code(), Some(2));
}

#[test]
fn compressed_files_are_read_and_damaged_ones_named() {
    let bench = Bench::new();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(LINES.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(LINES.as_bytes(), 1).unwrap();
    let sql = "SELECT msg FROM logs WHERE status = 200";
    // Two members of gzip are one file.
    for (bytes, rows) in [(&gzip, 1), (&zstd, 1), (&gzip.repeat(2), 2)] {
        let path = bench.log("app.log.1");
        fs::write(&path, bytes).unwrap();
        let output = try_on(&[sql, path.to_str().unwrap()], "");
        assert_eq!(
            stdout(&output),
            "{\"msg\":\"b\"}\n".repeat(rows),
            "{}",
            stderr(&output)
        );
        assert_eq!(try_on(&[sql], bytes).stdout, output.stdout);
        fs::write(&path, &bytes[..bytes.len() - 9]).unwrap();
        let cut = try_on(&[sql, path.to_str().unwrap()], "");
        assert_eq!(cut.status.code(), Some(1));
        assert!(
            stderr(&cut).contains("app.log.1: cannot be read"),
            "{}",
            stderr(&cut)
        );
    }
}

#[test]
fn the_query_of_a_config_is_tried_as_its_input_reads() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines:\n  a:\n    input: {type: stdin, format: raw}\n    transform: SELECT body FROM logs\n    \
         output: {type: otlp, endpoint: 'http://127.0.0.1:1'}\n  b:\n    input: {type: file, include: [/x/*.log]}\n    \
         transform: SELECT a, \"log.file.name\" AS f FROM logs WHERE a > 1\n    output: {type: stdout}\n",
    );
    let config = config.to_str().unwrap();
    let log = bench.log("app.log");
    fs::write(&log, "{\"a\":1}\n{\"a\":2}\n").unwrap();
    let log = log.to_str().unwrap();
    let b = try_on(&["-c", config, "--pipeline", "b", log], "");
    assert_eq!(
        stdout(&b),
        "{\"a\":2,\"f\":\"app.log\"}\n",
        "{}",
        stderr(&b)
    );
    let a = try_on(&["-c", config, "--pipeline", "a", "-"], "{\"a\":1}\n");
    assert_eq!(
        stdout(&a),
        "{\"body\":\"{\\\"a\\\":1}\"}\n",
        "{}",
        stderr(&a)
    );
    let b = try_on(&["-c", config, "--pipeline", "b"], "{\"a\":3}\n");
    assert_eq!(stdout(&b), "{\"a\":3}\n");
    assert!(
        stderr(&b).contains("\"log.file.name\" is NULL here"),
        "{}",
        stderr(&b)
    );
    for (more, what) in [
        (&[][..], "choose one of a, b"),
        (&["--pipeline", "c"], "no pipeline `c`"),
    ] {
        let output = try_on(&[&["-c", config], more].concat(), "{}\n");
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(what), "{}", stderr(&output));
    }
    assert!(!bench.path("data").exists(), "a data directory was made");
}

/// `tail -f app.log | tailrace try ... | head -1`.
#[test]
fn rows_leave_as_soon_as_they_are_made_and_a_closed_pipe_is_no_error() {
    let mut child = tailrace()
        .args(["try", "SELECT n FROM logs"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut rows = BufReader::new(child.stdout.take().unwrap());
    for n in 0..3 {
        writeln!(stdin, "{{\"n\":{n}}}").unwrap();
        let mut row = String::new();
        rows.read_line(&mut row).unwrap();
        assert_eq!(row, format!("{{\"n\":{n}}}\n"));
    }
    drop(rows);
    // It ends at the first row that nobody reads.
    while writeln!(stdin, "{{\"n\":4}}").is_ok() {}
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
}

/// The same lines, through an agent into a file and through `try`.
fn agree(input: &str, sql: &str, lines: &[u8]) {
    let bench = Bench::new();
    let config = bench.config(&format!(
        "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log'], {input}}}\n    \
         batch: {{max_wait: 10ms}}\n    transform: |\n      {sql}\n    \
         output: {{type: file, path: $DIR/out.ndjson}}\n"
    ));
    let log = bench.log("nasty.log");
    append(&log, lines);
    let tried = try_on(&["-c", config.to_str().unwrap(), log.to_str().unwrap()], "");
    assert_eq!(tried.status.code(), Some(0), "{}", stderr(&tried));
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let expect = sorted(&stdout(&tried));
    assert!(!expect.is_empty(), "{}", stderr(&tried));
    let agent = bench.start();
    let written = || fs::read_to_string(bench.path("out.ndjson")).unwrap_or_default();
    until(
        || written().matches('\n').count() >= expect.len(),
        || format!("{}\n{expect:#?}\n{}", agent.own_log(), written()),
    );
    assert_eq!(agent.terminate().code(), Some(0));
    // The same JSON: what a terminal could obey is written as an escape.
    let written = written().replace('\u{feff}', "\\ufeff");
    assert_eq!(sorted(&written), expect, "{input}");
}

#[test]
fn what_is_shown_is_what_an_agent_writes() {
    let all = "SELECT *, malformed AS m, truncated AS t, \"log.file.name\" AS f FROM logs";
    let long = format!("{{\"a\":\"{}\"}}\n", "long ".repeat(1000));
    let json = [
        b"{\"a\":1,\"a\":2,\"b\":{\"c\":[1,null,{\"d\":\"\\u0000\"}]}}\n".as_slice(),
        b"{\"a\":9007199254740993.5,\"ts\":\"2026-01-02T03:04:05Z\",\"level\":\"warn\"}\r\n",
        b"\n  \n{\"a\":x}\nplain text\n[1]\n{\"a\":NaN}\n{\"a\":\"\xff\xfe\"}\n\xff\n",
        b"\0\0\0{\"a\":3}\n{\"a\":\"x\0y\"}\n\xef\xbb\xbf{\"a\":4}\n{}\n{\"a\":1e400,\"b\":-0}\n",
        b"{\"severity_text\":\"x\",\"log.file.name\":\"own\",\"tailrace.malformed\":7}\n",
        long.as_bytes(),
        "x".repeat(5000).as_bytes(),
        b"\n{\"last\":true}\n",
    ]
    .concat();
    agree("format: json, max_record_bytes: 1KiB", all, &json);
    agree("format: auto", all, &json);
    agree("format: raw", all, &json);
    let several = "SELECT a, b FROM logs WHERE a > 1 OR malformed UNION ALL SELECT upper(a) AS a, NULL AS b FROM logs \
                   UNION ALL SELECT unnest(json_get_array(b, 'c')) AS a, b FROM logs WHERE b IS NOT NULL";
    agree("format: json", several, &json);
    let cri = b"2026-01-02T03:04:05.1Z stdout P {\"a\":\n2026-01-02T03:04:05.2Z stderr F err\n\
        2026-01-02T03:04:05.3Z stdout F 1}\nno envelope\n2026-01-02T03:04:05Z stdout F \n\
        2026-01-02T03:04:06Z stdout F java.lang.Error: x\n2026-01-02T03:04:06Z stderr F other\n\
        2026-01-02T03:04:06Z stdout F \tat A.f(A.java)\n2026-01-02T03:04:07Z stdout F end\n";
    let streams = "SELECT *, \"log.iostream\" AS s, timestamp AS ts, malformed AS m FROM logs";
    agree("format: cri, multiline: {preset: java}", streams, cri);
    let docker = br#"{"log":"{\"a\":","stream":"stdout","time":"2026-01-02T03:04:05Z"}
{"log":"err\n","stream":"stderr","time":"2026-01-02T03:04:05Z"}
{"log":"1}\n","stream":"stdout","time":"2026-01-02T03:04:06Z"}
{"log":7}
"#;
    agree("format: docker", streams, docker);
    let java = b"java.lang.Error: x\n\tat A.f(A.java)\n\nCaused by: y\n\tat B.g(B.java)\nnext\n";
    agree("format: raw, multiline: {preset: [java, go]}", all, java);
}

/// More keys than become columns: the others are kept as members, and the query decides about them all the same.
#[test]
fn what_a_query_replaces_or_leaves_out_does_not_leave_beside_many_keys() {
    let keys: Vec<_> = (0..600).map(|n| format!("\"k{n}\":{n}")).collect();
    let lines = format!(
        "{{{}}}\n{{\"card\":\"secret\",\"c\\u0061rd\":\"secret\"}}\n{{\"id\":7}}\n",
        keys.join(",")
    );
    for sql in [
        "SELECT *, NULL AS card FROM logs",
        "SELECT *, card::bigint + 0 AS card FROM logs WHERE card IS NULL OR card <> ''",
        "SELECT *, regexp_match(card, 'x(.)')[1] AS card FROM logs",
        "SELECT * EXCEPT (card) FROM logs UNION ALL SELECT * FROM logs WHERE false",
        "SELECT * FROM logs WHERE k1 = 5 UNION ALL SELECT * EXCEPT (card) FROM logs",
    ] {
        for form in [
            &["-o", "jsonl"][..],
            &["-o", "jsonl", "--otlp"],
            &["-o", "table"],
        ] {
            let arguments = [&[sql][..], form].concat();
            let said = stdout(&try_on(&arguments, &lines));
            assert!(
                !said.is_empty() && !said.contains("secret"),
                "{arguments:?}: {said}"
            );
        }
    }
}

/// The raw records of other names for the body are attributes beside it.
#[test]
fn a_computed_body_is_the_body_whatever_else_a_record_has() {
    const BODY: &str = "/resourceLogs/0/scopeLogs/0/logRecords/0/body/stringValue";
    let lines =
        "{\"msg\":\"login of ann\"}\n{\"log\":\"by ann\",\"message\":null}\n{\"body\":\"ann\"}\n";
    let sql = "SELECT * EXCEPT (message), replace(body, 'ann', 'X') AS body FROM logs";
    let said = stdout(&try_on(&[sql, "--otlp", "-o", "jsonl"], lines));
    let bodies = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let bodies: Vec<_> = bodies.map(|it| it.pointer(BODY).unwrap().clone()).collect();
    assert_eq!(
        bodies,
        [json!("login of X"), json!("by X"), json!("X")],
        "{said}"
    );
}
