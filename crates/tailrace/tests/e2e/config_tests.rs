//! `tailrace test`: what it says of tests that pass and fail, and what it writes.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Output;

use crate::health::{NOBODY, make_open, unprivileged};
use crate::support::{Bench, tailrace};

/// Runs `tailrace test` in the directory of a bench.
fn test(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = tailrace();
    command.current_dir(bench.path(".")).arg("test");
    command.args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A bench with this config, and its path.
fn bench(text: &str) -> Bench {
    let bench = Bench::new();
    fs::write(bench.path("t.yaml"), text).unwrap();
    bench
}

const PIPELINES: &str = "data_dir: /proc/nowhere
pipelines:
  app:
    input: {type: stdin, format: json}
    transform: SELECT * FROM logs WHERE status >= 500
    output: {type: otlp, endpoint: '${ENDPOINT}', headers: {authorization: 'Bearer ${file:/no/such/token}'}}
";

/// The blocks of a page that open with this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let blocks = page.split(&fence).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn the_page_says_what_is_printed() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/testing.md");
    let page = fs::read_to_string(page).unwrap();
    let config = blocks(&page, "yaml").remove(0);
    let printed = blocks(&page, "text");
    let bench = Bench::new();
    fs::write(bench.path("tailrace.yaml"), &config).unwrap();
    let passed = test(&bench, &["-c", "tailrace.yaml"]);
    assert_eq!(passed.status.code(), Some(0), "{}", stderr(&passed));
    assert_eq!(stdout(&passed), printed[0]);
    assert!(
        stderr(&passed).contains("${TOKEN} is not there"),
        "{}",
        stderr(&passed)
    );
    let other = config.replacen("status >= 500", "status > 500", 1);
    fs::write(bench.path("tailrace.yaml"), other).unwrap();
    let failed = test(&bench, &["-c", "tailrace.yaml", "failed requests pass"]);
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(
        stdout(&failed),
        format!("{}0 passed, 1 failed\n", printed[1])
    );
    assert_eq!(stderr(&failed).lines().last(), Some("error: 1 test failed"));
    assert_eq!(
        fs::read_dir(bench.path(".")).unwrap().count(),
        2,
        "nothing was made"
    );
}

#[test]
fn each_expectation_fails_with_what_differs() {
    let bench = bench(&format!(
        "{PIPELINES}tests:
  - name: rows
    lines: '{{\"status\":500,\"a\":{{\"b\":[1,2]}}}}'
    expect: {{rows: [{{status: 500, a: {{b: [1, 3]}}, c: null}}]}}
  - name: count
    lines: [plain, '{{\"status\":1}}']
    expect: {{count: 2}}
  - name: otlp
    lines: '{{\"status\":500,\"level\":\"warn\",\"ts\":\"2026-01-02T03:04:05Z\"}}'
    expect: {{otlp: [{{severity_number: 17, time_unix_nano: 1767323045000000000, attributes: {{status: 501, x: null}}}}]}}
  - name: condition
    lines: ['{{\"status\":500}}', '{{\"status\":600,\"x\":\"\\u001b[31m\"}}']
    expect: {{sql: status < 600 OR x = ''}}
  - name: facts and time
    file: /logs/a.log
    pod: {{k8s.pod.name: web-1}}
    now: 2026-01-02T03:04:05Z
    lines: '{{\"status\":500}}'
    expect:
      otlp: [{{observed_time_unix_nano: 1767323045000000000, attributes: {{log.file.name: a.log}}, resource: {{k8s.pod.name: web-1}}}}]
"
    ));
    let output = test(&bench, &["-c", "t.yaml", "--junit", "out.xml"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}{}", stderr(&output));
    for part in [
        "failed  rows",
        "- a: {\"b\": [1, 3]}",
        "+ a: {\"b\": [1, 2]}",
        "- c: null",
        "2 rows are expected, and 0 leave",
        "line 1 is filtered: `status >= 500` is NULL: status is absent",
        "- severity_number: 17",
        "+ severity_number: 13",
        "- attributes.status: 501",
        "row 2: `(status < 600 OR x = '')` is false: status = 600, x = \"\\u001b[31m\"",
        "ok      facts and time",
        "1 passed, 4 failed",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(
        !said.contains("time_unix_nano") && !said.contains('\u{1b}'),
        "{said}"
    );

    let xml = fs::read_to_string(bench.path("out.xml")).unwrap();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let cases: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("testcase"))
        .collect();
    let names: Vec<_> = cases
        .iter()
        .map(|it| it.attribute("name").unwrap())
        .collect();
    assert_eq!(
        names,
        ["rows", "count", "otlp", "condition", "facts and time"]
    );
    let failures = |at: usize| {
        let children = cases[at].children();
        children.filter(|node| node.has_tag_name("failure")).count()
    };
    assert_eq!([0, 1, 2, 3, 4].map(failures), [1, 1, 1, 1, 0]);
    let suite = document.root_element();
    assert_eq!(
        (suite.attribute("tests"), suite.attribute("failures")),
        (Some("5"), Some("4"))
    );
    let text: String = cases[0]
        .descendants()
        .filter_map(|node| node.text())
        .collect();
    assert!(text.contains("- a: {\"b\": [1, 3]}"), "{xml}");
}

#[test]
fn update_writes_the_rows_and_nothing_else() {
    let text = format!(
        "# first\n{PIPELINES}tests:  # tests
  - name: one   # keep
    lines: |
      {{\"status\":500,\"m\":\"a: # b\"}}
      {{\"status\":501,\"m\":\"\\ud83d\\ude00\\u001b\\u202e${{X}} $$\"}}
    expect:
      rows: []   # filled
  - name: two
    lines: ['{{\"status\":500}}', '{{\"status\":700}}']
    expect:
      rows:
        - {{status: 1}}   # gone
      # stays
      count: 3
  - {{name: three, lines: '{{\"status\":500}}', expect: {{rows: [{{status: 500}}]}}}}
# last
"
    );
    let bench = bench(&text);
    let failed = test(&bench, &["-c", "t.yaml"]);
    assert!(
        stdout(&failed).contains("1 passed, 2 failed"),
        "{}",
        stdout(&failed)
    );
    assert_eq!(fs::read_to_string(bench.path("t.yaml")).unwrap(), text);
    let updated = test(&bench, &["-c", "t.yaml", "--update"]);
    let said = stdout(&updated);
    assert_eq!(updated.status.code(), Some(1), "{said}{}", stderr(&updated));
    assert!(
        said.contains("updated one") && said.contains("failed  two"),
        "{said}"
    );
    let expect = text
        .replace(
            "rows: []   # filled",
            "rows:\n        - {\"status\": 500, \"m\": \"a: # b\"}\n        - {\"status\": 501, \"m\": \
             \"\u{1f600}\\u001b\\u202e${X} $$\"}   # filled",
        )
        .replace(
            "- {status: 1}   # gone\n",
            "- {\"status\": 500}\n        - {\"status\": 700}   # gone\n",
        );
    assert_eq!(fs::read_to_string(bench.path("t.yaml")).unwrap(), expect);
    let again = test(&bench, &["-c", "t.yaml"]);
    assert!(
        stdout(&again).contains("2 passed, 1 failed"),
        "{}",
        stdout(&again)
    );
    let names: Vec<_> = fs::read_dir(bench.path(".")).unwrap().collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn update_keeps_owner_group_and_mode_or_says_so() {
    const OWNER: u32 = 12_345;
    if !rustix::process::geteuid().is_root() {
        // Nobody else may give a file away.
        return;
    }
    let bench = bench("");
    let path = bench.path("tailrace.yaml");
    let mut denied = unprivileged(&bench, &["test", "--update"]);
    let access = || {
        let meta = fs::metadata(&path).unwrap();
        (meta.uid(), meta.gid(), meta.mode() & 0o7777)
    };
    let write = |mode: u32| {
        let tests = "tests: [{name: a, lines: '{\"status\":500}', expect: {rows: []}}]\n";
        fs::write(&path, format!("{PIPELINES}{tests}")).unwrap();
        chown(&path, Some(OWNER), Some(OWNER)).unwrap();
        make_open(&path, mode);
    };
    let is_updated = || !fs::read_to_string(&path).unwrap().contains("rows: []");
    write(0o600);
    let kept = test(&bench, &["-c", "tailrace.yaml", "--update"]);
    assert_eq!(kept.status.code(), Some(0), "{}", stderr(&kept));
    assert!(is_updated() && !stderr(&kept).contains("could not be kept"));
    assert_eq!(access(), (OWNER, OWNER, 0o600));
    // A user who may not give it back; the group that it has now is another one.
    write(0o664);
    let lost = denied.output().unwrap();
    let said = stderr(&lost);
    assert_eq!(lost.status.code(), Some(0), "{said}");
    let why = "its group 12345 and its owner 12345 could not be kept";
    assert!(is_updated() && said.contains(why), "{said}");
    assert_eq!(access(), (NOBODY, NOBODY, 0o644));
}

#[test]
fn update_refuses_what_it_cannot_write_and_writes_nothing() {
    let rows = |more: &str| format!("{PIPELINES}{more}");
    let shared = rows(
        "x-rows: &rows [{status: 1}]\ntests:\n  - {name: a, lines: '{\"status\":500}', expect: {rows: *rows}}\n",
    );
    let twice = rows(
        "tests:\n  - &one {name: a, lines: '{\"status\":500}', expect: {rows: []}}\n  - {<<: *one, name: b}\n",
    );
    let doubled_keys = rows(
        "tests: [{name: a, lines: '{\"status\":500,\"o\":{\"k\":1,\"k\":2}}', expect: {rows: []}}]\n",
    );
    let secret = rows(
        "tests: [{name: a, lines: '{\"status\":500,\"m\":\"s3cr3t-value\"}', expect: {rows: []}}]\nresource: {x: '${SECRET}'}\n",
    );
    let cases = [
        (shared, "an anchor"),
        (twice, "from the same place"),
        (doubled_keys, "YAML cannot have such rows"),
        (secret, "the value of a `${...}`"),
    ];
    for (text, why) in cases {
        let bench = bench(&text);
        let mut command = tailrace();
        command
            .args(["test", "--update", "-c"])
            .arg(bench.path("t.yaml"));
        let output = command.env("SECRET", "s3cr3t-value").output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("are not updated") && said.contains(why),
            "{why}: {said}"
        );
        assert_eq!(fs::read_to_string(bench.path("t.yaml")).unwrap(), text);
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let sql = format!(
        "{PIPELINES}tests:\n  - name: a\n    lines: x\n    expect: {{sql: lenght(a) > 1}}\n"
    );
    let none = PIPELINES.to_owned();
    let one = format!("{PIPELINES}tests: [{{name: a, lines: x, expect: {{count: 0}}}}]\n");
    let number = format!("{one}workers: ${{NOT_SET}}\n");
    let cases: [(&str, &[&str], i32, &str); 4] = [
        (&sql, &[], 78, "t.yaml:10:19: error:"),
        (&none, &[], 1, "the config has no tests"),
        (&one, &["b"], 1, "there is no test `b`; the config has a"),
        (&number, &[], 78, "a whole number"),
    ];
    for (text, names, code, what) in cases {
        let bench = bench(text);
        let output = test(&bench, &[&["-c", "t.yaml"], names].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(what), "{what}: {said}");
    }
    // Tests need no secrets; `validate` does, wherever it runs.
    let without_secrets = bench(&one);
    let mut command = tailrace();
    command
        .args(["validate", "--no-environment", "-c"])
        .arg(without_secrets.path("t.yaml"));
    let refused = command.output().unwrap();
    assert_eq!(refused.status.code(), Some(78));
    assert!(stderr(&refused).contains("/no/such/token"));
    // An agent takes a config with tests.
    let bench = bench(
        &one.replace("'${ENDPOINT}'", "http://127.0.0.1:1")
            .replace("${file:/no/such/token}", "x"),
    );
    let mut command = tailrace();
    command
        .args(["validate", "--no-environment", "-c"])
        .arg(bench.path("t.yaml"));
    assert_eq!(command.output().unwrap().status.code(), Some(0));
}
