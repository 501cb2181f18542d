//! `tailrace init`, `tailrace config`, and what all commands share: colours, pipes, hints, variables.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use crate::support::{Bench, tailrace, until};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn run(arguments: &[&str]) -> Output {
    tailrace().args(arguments).output().unwrap()
}

const CONFIG: &str = "pipelines: {a: {input: {type: stdin}, output: {type: otlp, headers: \
                      {x-token: planted-literal, y: '${PLANTED:-}'}}}}\n";

#[test]
fn what_init_writes_is_valid_and_is_never_overwritten() {
    let bench = Bench::new();
    let path = bench.path("new.yaml");
    let file = path.to_str().unwrap();
    for preset in ["vm", "kubernetes", "laptop", "stdin"] {
        let output = run(&["init", "--preset", preset, "--output", file]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(&format!("tailrace validate -c {file}")));
        let valid = run(&[
            "validate",
            "--no-environment",
            "--deny-warnings",
            "-c",
            file,
        ]);
        assert!(valid.status.success(), "{preset}: {}", text(&valid.stderr));
        let written = fs::read_to_string(&path).unwrap();
        let again = run(&["init", "--preset", preset, "--output", file]);
        assert_eq!(again.status.code(), Some(1));
        assert!(
            text(&again.stderr).contains("--output"),
            "{}",
            text(&again.stderr)
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), written);
        let shown = run(&["init", "--preset", preset, "--output", "-"]);
        assert_eq!(text(&shown.stdout), written);
        fs::remove_file(&path).unwrap();
    }
    // A link to nowhere is not followed, and a directory that is missing is an error.
    std::os::unix::fs::symlink(bench.path("victim"), &path).unwrap();
    assert_eq!(run(&["init", "--output", file]).status.code(), Some(1));
    assert!(!bench.path("victim").exists());
    let nowhere = bench.path("none/new.yaml");
    assert_eq!(
        run(&["init", "--output", nowhere.to_str().unwrap()])
            .status
            .code(),
        Some(1)
    );
}

#[test]
fn config_print_shows_origins_and_no_secret_and_loads_again() {
    let bench = Bench::new();
    let config = bench.config(CONFIG);
    let config = config.to_str().unwrap();
    let print = |format: &str| {
        let mut command = tailrace();
        command
            .env("PLANTED", "planted-variable")
            .env("TAILRACE_DATA_DIR", "/tmp/planted dir");
        let output = command
            .args(["config", "print", "--format", format, "-c", config])
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let yaml = print("text");
    for part in [
        "data_dir: \"/tmp/planted dir\"  # $TAILRACE_DATA_DIR",
        "x-token: \"[redacted]\"  # ",
        "tailrace.yaml:2",
        "max_wait: 1s  # default",
    ] {
        assert!(yaml.contains(part), "{part} in {yaml}");
    }
    assert!(!yaml.contains("planted-"), "{yaml}");
    let json: serde_json::Value = serde_json::from_str(&print("json")).unwrap();
    assert!(json["options"].as_array().unwrap().len() > 20);
    assert!(!json.to_string().contains("planted-"));
    let second = bench.path("second.yaml");
    fs::write(&second, &yaml).unwrap();
    let valid = run(&[
        "validate",
        "--no-environment",
        "-c",
        second.to_str().unwrap(),
    ]);
    assert!(valid.status.success(), "{}", text(&valid.stderr));
    // A config that is wrong is refused as everywhere.
    fs::write(&second, "pipelines: {}\nadmin: {listne: 1}\n").unwrap();
    let wrong = run(&["config", "print", "-c", second.to_str().unwrap()]);
    assert_eq!(wrong.status.code(), Some(78));
    assert!(text(&wrong.stderr).contains("did you mean `listen`?"));
}

#[test]
fn config_schema_is_the_schema_of_the_repository() {
    let output = run(&["config", "schema"]);
    assert!(output.status.success());
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../config/tailrace.schema.json"
    );
    assert_eq!(text(&output.stdout), fs::read_to_string(file).unwrap());
}

#[test]
fn a_config_may_come_from_standard_input_or_a_pipe() {
    let bench = Bench::new();
    let path = bench.config(
        "pipelines: {a: {input: {type: file, include: [/none]}, outptu: {type: stdout}}}\n",
    );
    let wrong = fs::read_to_string(&path).unwrap();
    let right = wrong.replace("outptu", "output");
    for command in [
        &["validate", "--no-environment"][..],
        &["explain"],
        &["config", "print"],
        &["replay"],
    ] {
        for (config, code) in [(&wrong, 78), (&right, 0)] {
            let mut child = tailrace();
            child
                .args(command)
                .args(["-c", "-", "--data-dir"])
                .arg(bench.path("data"));
            child
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            let mut child = child.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(config.as_bytes()).unwrap();
            drop(stdin);
            let output = child.wait_with_output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(code), "{command:?} {said}");
            assert!(
                code == 0 || said.contains("<stdin>:2:"),
                "{command:?} {said}"
            );
        }
    }
    let mut bash = std::process::Command::new("bash");
    let script = "\"$0\" validate --no-environment -c <(cat \"$1\")";
    bash.args(["-c", script, env!("CARGO_BIN_EXE_tailrace")])
        .arg(&path);
    let output = bash.output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    assert!(
        text(&output.stderr).contains(":2:"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn nobody_has_to_read_to_the_end() {
    let bench = Bench::new();
    let config = bench.config(CONFIG);
    let config = config.to_str().unwrap();
    for command in [
        &["explain", "-c", config][..],
        &["validate", "-c", config],
        &["config", "print", "-c", config],
        &["config", "schema"],
        &["init", "--output", "-"],
        &["generate", "--lines", "100000"],
        &["man"],
        &["completion", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = tailrace().args(command).stdout(writer).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(0),
            "{command:?} {}",
            text(&output.stderr)
        );
        assert_eq!(text(&output.stderr), "", "{command:?}");
    }
}

#[test]
fn a_slip_in_a_command_or_flag_gets_a_hint() {
    for (arguments, hint) in [
        (&["valdate"][..], "'validate'"),
        (&["validate", "--deny-warning"], "'--deny-warnings'"),
        (&["config", "pirnt"], "'print'"),
        (&["init", "--preset", "kubernets"], "'kubernetes'"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(hint),
            "{}",
            text(&output.stderr)
        );
    }
}

#[test]
fn deny_warnings_refuses_what_only_warns() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines: {a: {input: {type: stdin}, transform: \"SELECT levle FROM logs\", output: {type: stdout}}}\n",
    );
    let sample = bench.path("sample.log");
    fs::write(&sample, "{\"level\":\"info\"}\n").unwrap();
    let (config, sample) = (config.to_str().unwrap(), sample.to_str().unwrap());
    let validate = |more: &[&str], variable: Option<&str>| {
        let mut command = tailrace();
        command
            .args(["validate", "-c", config, "--sample", sample])
            .args(more);
        command.envs(variable.map(|name| (name, "1")));
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stdout))
    };
    assert_eq!(validate(&[], None).0, Some(0));
    for (code, said) in [
        validate(&["--deny-warnings"], None),
        validate(&[], Some("TAILRACE_VALIDATE_DENY_WARNINGS")),
    ] {
        assert_eq!(code, Some(78));
        assert!(said.contains("refused") && said.contains("levle"), "{said}");
    }
    let (code, said) = validate(&["--deny-warnings", "--format", "json"], None);
    let json: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(code, Some(78));
    assert_eq!(
        (&json["valid"], &json["errors"]),
        (&false.into(), &0.into())
    );
    assert_eq!(json["diagnostics"][0]["severity"], "warning");
}

#[test]
fn colours_are_shown_where_they_are_wanted() {
    let bench = Bench::new();
    let config = bench.config(CONFIG);
    let config = config.to_str().unwrap();
    let of = |flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = tailrace();
        command
            .env_remove("NO_COLOR")
            .envs(variables.iter().copied());
        let output = command
            .args(["validate", "-c", config])
            .args(flags)
            .output()
            .unwrap();
        text(&output.stdout).contains('\u{1b}')
    };
    assert!(!of(&[], &[]));
    assert!(of(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(of(&[], &[("TAILRACE_COLOR", "always")]));
    assert!(of(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!of(&["--color=never"], &[("CLICOLOR_FORCE", "1")]));
}

/// A process that ends with the test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn variables_of_opentelemetry_and_a_glob_are_enough_to_run() {
    let bench = Bench::new();
    let server = tailrace_testkit::Collector::start();
    fs::write(bench.log("a.log"), "{\"msg\":\"one\"}\n").unwrap();
    let own = fs::File::create(bench.path("own.log")).unwrap();
    let glob = bench.path("logs").join("*.log");
    let mut command = tailrace();
    command
        .args(["run", "--input"])
        .arg(&glob)
        .arg("--data-dir")
        .arg(bench.path("data"));
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", server.endpoint());
    command.env("OTEL_SERVICE_NAME", "from-variable");
    let agent = Killed(command.stdin(Stdio::null()).stderr(own).spawn().unwrap());
    let own_log = || fs::read_to_string(bench.path("own.log")).unwrap();
    until(|| !server.records().is_empty(), own_log);
    drop(agent);
    // Nothing to read, or nowhere to send it.
    for variables in [
        &[][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")],
    ] {
        let output = tailrace()
            .arg("run")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--input"), "{said}");
    }
}

#[test]
fn a_file_that_init_wrote_may_be_read_by_who_may_read_files() {
    let bench = Bench::new();
    let path = bench.path("new.yaml");
    run(&[
        "init",
        "--preset",
        "laptop",
        "--output",
        path.to_str().unwrap(),
    ]);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o133, 0, "{mode:o}");
}

#[test]
fn a_flag_wins_over_the_variable_of_one_that_it_excludes() {
    let bench = Bench::new();
    let config = bench.config(CONFIG);
    let print = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = tailrace();
        command.args(["config", "print"]).args(arguments);
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        let code = output.status.code().unwrap();
        (code, text(&output.stdout) + &text(&output.stderr))
    };
    let file = config.to_str().unwrap();
    let of_file = "type: stdin";
    let (code, said) = print(&["-c", file], &[("TAILRACE_INPUT", "/x/*.log")]);
    assert!(code == 0 && said.contains(of_file), "{said}");
    let (code, said) = print(&["--input", "/x/*.log"], &[("TAILRACE_CONFIG", file)]);
    assert!(code == 0 && said.contains("- \"/x/*.log\""), "{said}");
    let both = [("TAILRACE_CONFIG", file), ("TAILRACE_INPUT", "/x/*.log")];
    let (code, said) = print(&[], &both);
    assert!(code == 0 && said.contains(of_file), "{said}");
    let (code, said) = print(&["--input", "/x/*.log", "-c", file], &[]);
    assert!(code == 2 && said.contains("cannot be used with"), "{said}");
}

#[test]
fn a_config_that_was_read_once_serves_reloads_too() {
    let bench = Bench::new();
    let own = fs::File::create(bench.path("own.log")).unwrap();
    let mut command = tailrace();
    command.args(["run", "--log-format", "text", "-c", "-", "--data-dir"]);
    command
        .arg(bench.path("data"))
        .stdin(Stdio::piped())
        .stderr(own);
    let mut agent = Killed(command.spawn().unwrap());
    let config = "pipelines: {a: {input: {type: file, include: [/none]}, output: {type: discard}}}";
    let mut stdin = agent.0.stdin.take().unwrap();
    stdin.write_all(config.as_bytes()).unwrap();
    drop(stdin);
    let own_log = || fs::read_to_string(bench.path("own.log")).unwrap();
    until(|| own_log().contains("running"), own_log);
    let pid = rustix::process::Pid::from_raw(i32::try_from(agent.0.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    until(|| own_log().contains("config reloaded"), own_log);
    assert!(own_log().contains("<stdin>") && own_log().contains("cannot be read again"));
    // What is read to its end as a config has no records.
    let mut command = tailrace();
    command
        .args(["run", "-c", "-", "--data-dir"])
        .arg(bench.path("other"));
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"pipelines: {a: {input: {type: stdin}, output: {type: discard}}}")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(78));
    let said = text(&output.stderr);
    assert!(
        said.contains("<stdin>") && said.contains("give the config as a file"),
        "{said}"
    );
}

#[test]
fn a_user_in_a_url_from_variables_is_named_without_its_value() {
    let bench = Bench::new();
    let config = bench.config(
        "pipelines:\n  app:\n    input: {type: stdin}\n    output: {type: otlp, endpoint: 'http://${LOGIN_USER}:${LOGIN_PASSWORD}@host/'}\n",
    );
    let output = tailrace()
        .args(["validate", "--no-environment", "-c"])
        .arg(&config)
        .env("LOGIN_USER", "planted-user")
        .env("LOGIN_PASSWORD", "planted-password")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("a URL with a user or password")
            && said.contains("send credentials in `headers`"),
        "{said}"
    );
    assert!(!said.contains("planted"), "{said}");
}

#[test]
fn integers_beyond_64_bits_are_compared_by_their_digits() {
    let kept = |record: &str, condition: &str| {
        let bench = Bench::new();
        let path = bench.path("records.jsonl");
        std::fs::write(&path, format!("{record}\n")).unwrap();
        let query = format!("SELECT b FROM logs WHERE {condition}");
        let output = tailrace()
            .arg("try")
            .arg(query)
            .arg(&path)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().contains("\"b\":")
    };
    let twenty = r#"{"b":99999999999999999999}"#;
    let long = r#"{"b":-12345678901234567890123}"#;
    for (record, condition, is_kept) in [
        (twenty, "b = 99999999999999999999", true),
        (twenty, "b = 99999999999999999998", false),
        (twenty, "b::text = 99999999999999999999", true),
        (twenty, "json->'b' IN (1, 99999999999999999999)", true),
        (twenty, "b > 99999999999999999999", false),
        (long, "b < -12345678901234567890122", true),
        (long, "b < -12345678901234567890123", false),
        (long, "b = -(12345678901234567890123)", true),
    ] {
        assert_eq!(kept(record, condition), is_kept, "{record} {condition}");
    }
}
