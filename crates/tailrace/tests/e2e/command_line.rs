//! The commands that end by themselves: what they print and how they exit.

use std::fs;
use std::process::Output;

use crate::support::{Bench, tailrace};

fn run(arguments: &[&str]) -> Output {
    tailrace().args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn the_demo_explains_every_record() {
    let output = run(&["demo", "--seconds", "2", "--rate", "5000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    let row = |name: &str| {
        let line = said
            .lines()
            .find(|line| line.trim_start().starts_with(name))
            .unwrap();
        line[name.len() + 1..]
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(row("written"), "10,000");
    assert_eq!(row("read"), "10,000");
    assert_eq!(row("unexplained"), "0");
    assert_ne!(row("filtered"), "0");
    assert_ne!(row("delivered"), "0");
    assert!(
        said.contains("tailrace explain"),
        "the next command: {said}"
    );
}

#[test]
fn the_demo_overwrites_nothing() {
    let bench = Bench::new();
    for name in ["logs/other.log", "tailrace.yaml"] {
        let (dir, path) = (bench.path("demo"), bench.path("demo").join(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "precious").unwrap();
        let output = run(&["demo", "--seconds", "1", "--dir", dir.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        let said = stderr(&output);
        assert!(said.contains("already"), "{said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn a_standard_output_that_is_closed_is_said_to_be() {
    let bench = Bench::new();
    let config = bench.config("pipelines: {a: {input: {type: stdin}, output: {type: stdout}}}\n");
    for (redirected, is_told) in [(">&-", true), (">/dev/null", false)] {
        let script = format!("echo '{{}}' | \"$0\" run --log-format text -c \"$1\" {redirected}");
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &script, env!("CARGO_BIN_EXE_tailrace")]);
        let output = bash.arg(&config).output().unwrap();
        let said = stderr(&output);
        assert_eq!(said.contains("closed or goes nowhere"), is_told, "{said}");
    }
}

/// A limit on the size of files is an error as any other, not a signal that ends the process in the middle.
#[test]
fn a_file_that_may_not_grow_is_an_error() {
    let bench = Bench::new();
    let (file, kept) = (bench.path("lines"), bench.path("kept"));
    let script = "ulimit -f 10; \"$0\" generate --lines 100000 --output \"$1\"; echo $?; \"$0\" query \
                  \"SELECT * FROM generate_series(1, 1000000)\" --to \"$2\"; echo $?";
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", script, env!("CARGO_BIN_EXE_tailrace")]);
    let output = bash.args([&file, &kept]).output().unwrap();
    assert_eq!(stdout(&output), "1\n1\n", "{}", stderr(&output));
    let left = fs::read_dir(&kept).map_or(0, |entries| entries.count());
    assert_eq!(left, 0, "of the rows that do not fit");
}

#[test]
fn validate_says_where_and_what_next() {
    let bench = Bench::new();
    let cases = [
        ("piplines: {}", "piplines", "pipelines"),
        (
            "pipelines: {a: {input: {type: stdin}, transform: 'SELECT lenght(a) AS n FROM logs', \
             output: {type: stdout}}}",
            "lenght",
            "length",
        ),
        (
            "pipelines: {a: {input: {type: stdin}, transform: 'SELECT count(a) AS n FROM logs', \
             output: {type: stdout}}}",
            "count",
            "",
        ),
        (
            "pipelines: {a: {input: {type: stdin}, output: {type: otlp, timeout: soon}}}",
            "timeout",
            "10s",
        ),
        (
            "pipelines: {a: {input: {type: stdin}, output: {type: otlp, endpoint: '${NOT_SET}'}}}",
            "NOT_SET",
            "",
        ),
    ];
    for (text, what, hint) in cases {
        let path = bench.config(&format!("{text}\n"));
        let output = run(&["validate", "-c", path.to_str().unwrap()]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(78), "{text}\n{said}");
        assert!(said.contains("tailrace.yaml:2:"), "a position: {said}");
        assert!(
            said.contains(what) && said.contains(hint) && said.contains('^'),
            "{said}"
        );
    }
}

#[test]
fn validate_warns_of_keys_that_a_sample_lacks() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines: {a: {input: {type: stdin}, transform: \"SELECT levle, msg FROM logs\", \
         output: {type: stdout}}}\n",
    );
    let sample = bench.path("sample.log");
    fs::write(&sample, "{\"level\":\"info\",\"msg\":\"a\"}\nplain\n").unwrap();
    let config = config.to_str().unwrap();
    let output = run(&[
        "validate",
        "-c",
        config,
        "--sample",
        sample.to_str().unwrap(),
    ]);
    let said = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        said.contains("`levle`") && !said.contains("`msg`"),
        "{said}"
    );
}

#[test]
fn validate_says_how_many_records_of_a_sample_pass() {
    let bench = Bench::new();
    let sample = bench.path("sample.log");
    let lines = r#"{"level":"ERROR","n":"x"}
{"level":"INFO","n":"7"}
{"level":"ERROR","n":"9"}
"#;
    fs::write(&sample, lines).unwrap();
    let said_of = |query: &str| {
        let config = bench.config(&format!(
            "pipelines: {{a: {{input: {{type: stdin}}, transform: \"{query}\", \
             output: {{type: stdout}}}}}}\n"
        ));
        let config = config.to_str().unwrap();
        let sample = sample.to_str().unwrap();
        // No directory that could be written to.
        let output = run(&[
            "validate",
            "-c",
            config,
            "--data-dir",
            "/proc/nowhere",
            "--sample",
            sample,
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let some = said_of("SELECT * FROM logs WHERE level = 'ERROR'");
    assert!(some.contains("2 of 3 records"), "{some}");
    assert!(some.contains("0 warnings"), "{some}");
    let none = said_of("SELECT * FROM logs WHERE level = 'error'");
    assert!(none.contains("0 of 3 records"), "{none}");
    assert!(none.contains("warning: pipeline a: no record"), "{none}");
    let all = said_of("SELECT * FROM logs WHERE level IS NOT NULL");
    assert!(all.contains("3 of 3 records"), "{all}");
    assert!(all.contains("leaves out none"), "{all}");
    let star = said_of("SELECT * FROM logs");
    assert!(star.contains("0 warnings"), "{star}");
    let failed = said_of("SELECT *, substr(n, 1)::bigint AS m FROM logs");
    assert!(failed.contains("fails for 1 of 3 records"), "{failed}");
    let pod = said_of("SELECT * FROM logs WHERE \\\"k8s.pod.name\\\" = 'x'");
    assert!(pod.contains("not counted"), "{pod}");
}

#[test]
fn explain_names_columns_types_and_fields() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines: {a: {input: {type: stdin}, transform: \"SELECT ts, level, msg, status FROM \
         logs WHERE status >= 500 AND level = 'ERROR'\", output: {type: otlp}}}\n",
    );
    let output = run(&["explain", "-c", config.to_str().unwrap(), "a"]);
    let said = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    for part in [
        "float64",
        "text",
        "open",
        "time_unix_nano",
        "severity_text",
        "body",
        "attribute status",
        "row-wise",
        "pushed down",
        "prefilter: \"ERROR\"",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn explain_says_when_each_condition_is_evaluated() {
    let bench = Bench::new();
    let explained = |sql: &str| {
        let config = bench.config(&format!(
            "pipelines: {{a: {{input: {{type: stdin}}, transform: \"{sql}\", output: {{type: stdout}}}}}}\n"
        ));
        let output = run(&["explain", "-c", config.to_str().unwrap()]);
        assert!(output.status.success(), "{}", stderr(&output));
        let said = stdout(&output);
        let row = |condition: &str| {
            let mut rows = said.lines().filter(|line| line.starts_with(' '));
            let found = rows.rfind(|line| line.trim_start().starts_with(&format!("{condition} ")));
            let found = found.unwrap_or_else(|| panic!("{condition} in {said}"));
            found
                .trim_end()
                .rsplit("  ")
                .next()
                .unwrap()
                .trim()
                .to_owned()
        };
        let conditions = ["a = '404'", "b IN ('x', 'true')", "NOT (c = 'y')", "d > 5"];
        conditions.map(row)
    };
    let condition = "a = '404' AND b IN ('x', 'true') AND NOT (c = 'y') AND d > 5";
    assert_eq!(
        explained(&format!("SELECT a FROM logs WHERE {condition}")),
        [
            "prefilter: 404",
            "prefilter: \"x\" or true",
            "pushed down",
            "pushed down"
        ]
    );
    assert_eq!(
        explained(&format!(
            "SELECT a FROM logs WHERE {condition} UNION ALL SELECT b FROM logs WHERE e"
        )),
        ["pushed down"; 4]
    );
    assert_eq!(
        explained(&format!(
            "SELECT a FROM logs WHERE {condition} UNION ALL SELECT b FROM logs"
        )),
        ["after"; 4]
    );
}

#[test]
fn generated_lines_are_the_same_for_the_same_seed() {
    let lines = |seed: &str| {
        stdout(&run(&[
            "generate", "--shape", "simple", "--lines", "50", "--seed", seed,
        ]))
    };
    assert_eq!(lines("1"), lines("1"));
    assert_ne!(lines("1"), lines("2"));
    assert_eq!(lines("1").lines().count(), 50);
}

#[test]
fn usage_errors_exit_with_2() {
    assert_eq!(run(&["run"]).status.code(), Some(2));
    assert_eq!(run(&["no-such-command"]).status.code(), Some(2));
}
