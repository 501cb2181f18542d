//! `tailrace query` with bounds on time and severity, and `tailrace schema`.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::{Bench, tailrace};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn run(arguments: &[&str]) -> Output {
    let mut command = tailrace();
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn bounds_are_checked_and_hold() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    let lines = "{\"ts\":\"2020-01-01T00:00:00Z\",\"level\":\"info\",\"n\":1}\n\
                 {\"ts\":\"2100-01-01T00:00:00Z\",\"level\":\"error\",\"n\":2}\n{\"n\":3}\n";
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let sql = "SELECT n FROM logs";
    let ask = |more: &[&str]| run(&[&["query", sql, file], more].concat());
    let found = ask(&["--since", "1h", "--stats"]);
    assert_eq!(text(&found.stdout), "{\"n\":2}\n");
    let said = text(&found.stderr);
    assert!(said.contains("at least 1 records have no time"), "{said}");
    assert!(said.contains("1 files, "), "{said}");
    assert_eq!(text(&ask(&["--until", "2020-01-02"]).stdout), "{\"n\":1}\n");
    assert_eq!(text(&ask(&["--level", "warn"]).stdout), "{\"n\":2}\n");
    let wrong: [&[&str]; 5] = [
        &["--since", "yesterday"],
        &["--until", "2020-02-30"],
        &["--level", "loud"],
        &["--level", "25"],
        &["--since", "2020-01-02", "--until", "2020-01-02"],
    ];
    for arguments in wrong {
        let refused = ask(arguments);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(arguments[0]), "{said}");
    }
}

#[test]
fn a_schema_has_every_key_of_every_record() {
    let bench = Bench::new();
    let file = bench.path("a.log");
    let mut lines = String::new();
    for n in 0..30_000 {
        lines += &format!("{{\"id\":{n},\"a\\u001b\":null,\"when\":\"2026\"}}\n");
    }
    lines += "{\"id\":\"x\",\"late\":[1],\"when\":\"\\u001b[31m\"}\n{\"id\":1.5}\nplain text\n{\"id\": broken\n";
    fs::write(&file, lines).unwrap();
    let file = file.to_str().unwrap();
    let found = run(&["schema", file, "-o", "json"]);
    let json: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(
        [&json["records"], &json["text"], &json["malformed"]],
        [30_004, 1, 1]
    );
    let columns = json["columns"].as_array().unwrap();
    let column = |name: &str| columns.iter().find(|it| it["name"] == name).unwrap();
    assert_eq!(
        column("id")["kinds"],
        serde_json::json!({"integer": 30_000, "string": 1, "float": 1})
    );
    assert_eq!(
        (&column("id")["type"], &column("id")["type_in_query"]),
        (&Value::from("text"), &Value::from("int64"))
    );
    assert_eq!(
        (&column("a\u{1b}")["nulls"], &column("a\u{1b}")["absent"]),
        (&Value::from(30_000), &Value::from(4))
    );
    assert_eq!(column("late")["type_in_query"], Value::Null);
    assert_eq!(column("late")["example"], "[1]");
    let table = run(&["schema", file]);
    let shown = text(&table.stdout);
    assert!(shown.contains("--columns id=text,"), "{shown}");
    assert!(shown.contains("late=text"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert_eq!(table.status.code(), Some(0), "{}", text(&table.stderr));
    let csv = bench.path("a.csv");
    fs::write(&csv, "a\n1\n").unwrap();
    let empty = bench.path("empty.log");
    fs::write(&empty, "").unwrap();
    let cases = [
        (csv.to_str().unwrap(), 2),
        ("/no/such/file", 1),
        (empty.to_str().unwrap(), 0),
    ];
    for (file, code) in cases {
        let ended = run(&["schema", file]);
        assert_eq!(ended.status.code(), Some(code), "{}", text(&ended.stderr));
    }
    assert_eq!(
        text(&run(&["schema", empty.to_str().unwrap()]).stdout),
        "0 records in 1 file\n"
    );
}
