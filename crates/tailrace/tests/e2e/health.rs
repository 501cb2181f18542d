//! What the agent says of its health, and what `validate` says before it runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tailrace_testkit::{Answer, Collector};

use crate::support::{Bench, append, get, request, tailrace, until};

/// A command that has not ended by then never will.
const TIMEOUT: Duration = Duration::from_secs(60);

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn free_address() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn with_admin(bench: &Bench, collector: &Collector) -> String {
    let admin = free_address();
    let more = format!("admin: {{listen: '{admin}'}}\n");
    bench.pipeline(&collector.endpoint(), "json", &more);
    admin
}

#[test]
fn an_outage_fails_health_with_its_stage_and_neither_liveness_nor_readiness() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let admin = with_admin(&bench, &collector);
    collector.always(Answer::status(503).message("out of order"));
    append(&bench.log("a.log"), b"{\"msg\":\"one\"}\n");
    let agent = bench.start();
    agent.says("admin endpoint");
    assert_eq!(request("GET", &admin, "/healthz").0, 200);
    let is_unhealthy = || request("GET", &admin, "/healthz").0 == 503;
    until(is_unhealthy, || get(&admin, "/healthz"));
    let health: serde_json::Value = serde_json::from_str(&get(&admin, "/healthz")).unwrap();
    let trouble = &health["troubles"][0];
    assert_eq!(health["healthy"], false);
    assert_eq!(
        (&trouble["pipeline"], &trouble["stage"], &trouble["subject"]),
        (&"app".into(), &"output".into(), &"otlp".into())
    );
    let reason = trouble["reason"].as_str().unwrap();
    assert!(
        reason.contains("503") && reason.contains("out of order"),
        "{reason}"
    );
    assert!(trouble["seconds"].as_u64().unwrap() < 30, "{trouble}");
    assert!(get(&admin, "/metrics").contains("tailrace_pipeline_stalled{pipeline=\"app\"} 1"));
    // A new process would be refused, too.
    assert_eq!(request("GET", &admin, "/livez").0, 200);
    assert_eq!(request("GET", &admin, "/readyz").0, 200);

    collector.always(Answer::ok());
    until(|| !is_unhealthy(), || get(&admin, "/healthz"));
    collector.wait_records(1);
    assert_eq!(agent.terminate().code(), Some(0));
}

/// A user without rights.
pub(crate) const NOBODY: u32 = 65534;

/// Starts the binary as a user without rights: as root from a copy, for what is beneath /root is root's alone.
pub(crate) fn unprivileged(bench: &Bench, args: &[&str]) -> Command {
    let mut command = tailrace();
    if rustix::process::geteuid().is_root() {
        let copy = bench.path("tailrace");
        if !copy.exists() {
            fs::copy(env!("CARGO_BIN_EXE_tailrace"), &copy).unwrap();
            make_open(&bench.path(""), 0o777);
            make_open(&bench.path("logs"), 0o755);
        }
        command = Command::new(copy);
        command.uid(NOBODY).gid(NOBODY);
    }
    command
        .args(args)
        .arg("-c")
        .arg(bench.path("tailrace.yaml"));
    command
}

pub(crate) fn make_open(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_may_not_be_read_is_told_before_the_start_and_while_it_runs() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let admin = with_admin(&bench, &collector);
    append(&bench.log("open.log"), b"{\"msg\":\"open\"}\n");
    append(&bench.log("closed.log"), b"{\"msg\":\"closed\"}\n");
    let closed = bench.log("closed.log");
    let file = fs::File::open(&closed).unwrap();
    make_open(&closed, 0o000);
    let named = closed.display().to_string();
    let said_so = |text: &str| text.contains(&named) && text.contains("CAP_DAC_READ_SEARCH");

    let validate = unprivileged(&bench, &["validate"]).output().unwrap();
    let said = stderr(&validate);
    assert_eq!(validate.status.code(), Some(78), "{said}");
    assert!(
        said_so(&said) && said.contains("tailrace.yaml:4:"),
        "{said}"
    );
    let explain = unprivileged(&bench, &["explain"]).output().unwrap();
    let said = String::from_utf8_lossy(&explain.stdout).into_owned();
    assert!(explain.status.success() && said_so(&said), "{said}");
    for command in ["validate", "explain"] {
        let elsewhere = unprivileged(&bench, &[command, "--no-environment"]).output();
        let elsewhere = elsewhere.unwrap();
        let said = String::from_utf8_lossy(&elsewhere.stdout).into_owned();
        assert!(elsewhere.status.success() && !said_so(&said), "{said}");
    }

    let mut agent = unprivileged(&bench, &["run"]);
    let mut agent = agent.stderr(Stdio::null()).spawn().unwrap();
    let connects = || std::net::TcpStream::connect(&admin).is_ok();
    until(connects, || "no admin endpoint".to_owned());
    let readyz = || request("GET", &admin, "/readyz");
    until(|| readyz().0 == 503, || readyz().1);
    assert!(said_so(&readyz().1), "{}", readyz().1);
    let (status, health) = request("GET", &admin, "/healthz");
    assert!(status == 503 && said_so(&health), "{health}");
    let denied = "tailrace_input_denied_paths{pipeline=\"app\"} 1";
    assert!(get(&admin, "/metrics").contains(denied));
    assert_eq!(request("GET", &admin, "/livez").0, 200);
    // What may be read is read.
    collector.wait_records(1);
    // A rotated file alone does not make it unready.
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    file.set_modified(long_ago).unwrap();
    until(|| readyz().0 == 200, || readyz().1);
    assert!(said_so(&readyz().1), "{}", readyz().1);
    assert_eq!(request("GET", &admin, "/healthz").0, 503);
    file.set_modified(SystemTime::now()).unwrap();
    until(|| readyz().0 == 503, || readyz().1);

    make_open(&closed, 0o644);
    collector.wait_records(2);
    until(|| readyz().0 == 200, || readyz().1);
    agent.kill().unwrap();
    agent.wait().unwrap();
}

/// A config, what is wrong here, and the line that says so.
struct Case {
    yaml: String,
    said: &'static str,
    line: usize,
}

fn cases(bench: &Bench, busy: &str) -> Vec<Case> {
    let otlp = "input: {type: stdin}, output: {type: otlp, endpoint: 'https://localhost:4318'";
    let case = |yaml: String, said, line| Case { yaml, said, line };
    let bad = bench.path("bad.pem").display().to_string();
    fs::write(&bad, "-----BEGIN CERTIFICATE-----\nnot base64 at all!\n").unwrap();
    let file = bench.path("file").display().to_string();
    fs::write(&file, "").unwrap();
    vec![
        case(
            format!("pipelines:\n  app: {{{otlp}, tls: {{ca_file: {bad}}}}}}}\n"),
            "bad.pem",
            3,
        ),
        case(
            format!(
                "pipelines:\n  app: {{{otlp}, tls: {{cert_file: {bad}, key_file: {bad}}}}}}}\n"
            ),
            "bad.pem",
            3,
        ),
        case(
            format!("pipelines:\n  app: {{{otlp}, tls: {{ca_file: {bad}.none}}}}}}\n"),
            "bad.pem.none",
            3,
        ),
        case(
            "pipelines:\n  app:\n    input: {type: kubernetes}\n    output: {type: discard}\n"
                .to_owned(),
            "metadata of pods",
            4,
        ),
        case(
            format!(
                "pipelines: {{app: {{input: {{type: stdin}}, output: {{type: discard}}}}}}\nadmin: {{listen: '{busy}'}}\n"
            ),
            "cannot be listened on",
            3,
        ),
    ]
}

/// What a command makes of a config in the end. `run` ends at once where it refuses it.
fn outcome(command: &str, config: &Path, more: &[&str]) -> Output {
    let mut run = tailrace();
    for name in ["KUBERNETES_SERVICE_HOST", "KUBECONFIG", "HOME"] {
        run.env_remove(name);
    }
    let run = run.arg(command).arg("-c").arg(config).args(more);
    run.env("K8S_NODE_NAME", "node-1");
    let pipes = run.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = pipes.stdout(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5)); // tidy: another process, no event to await
    }
    child.wait_with_output().unwrap()
}

#[test]
fn validate_refuses_what_run_refuses() {
    let bench = Bench::new();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = (busy.local_addr().unwrap().to_string(), busy);
    for Case { yaml, said, line } in cases(&bench, &busy.0) {
        let config = bench.config(&yaml);
        let run = outcome("run", &config, &[]);
        // A file that the config names is a part of the config.
        let code = if said.contains(".pem") { 78 } else { 1 };
        assert_eq!(run.status.code(), Some(code), "{yaml}{}", stderr(&run));
        let validate = outcome("validate", &config, &[]);
        let output = stderr(&validate);
        assert_eq!(validate.status.code(), Some(78), "{yaml}{output}");
        assert!(output.contains(said), "{output}");
        assert!(
            output.contains(&format!("tailrace.yaml:{line}:")),
            "{output}"
        );
        assert!(output.contains("help: "), "what to do next: {output}");
        let elsewhere = outcome("validate", &config, &["--no-environment"]);
        assert!(elsewhere.status.success(), "{yaml}{}", stderr(&elsewhere));
    }
    // A data directory that cannot be made.
    let config =
        bench.config("pipelines: {app: {input: {type: stdin}, output: {type: discard}}}\n");
    let text = fs::read_to_string(&config).unwrap();
    let beneath: PathBuf = bench.path("file/data");
    let text = text.replace(
        &bench.path("data").display().to_string(),
        &beneath.display().to_string(),
    );
    fs::write(&config, text).unwrap();
    assert!(!outcome("run", &config, &[]).status.success());
    let output = stderr(&outcome("validate", &config, &[]));
    assert!(
        output.contains("tailrace.yaml:1:") && output.contains("data_dir"),
        "{output}"
    );
}

#[test]
fn the_port_of_the_agent_that_runs_is_no_obstacle() {
    let (bench, collector) = (Bench::new(), Collector::start());
    with_admin(&bench, &collector);
    let agent = bench.start();
    agent.says("admin endpoint");
    let config = bench.path("tailrace.yaml");
    let validate = outcome("validate", &config, &[]);
    assert!(validate.status.success(), "{}", stderr(&validate));
    // Of another data directory it is another agent.
    let other = bench.path("other").display().to_string();
    let validate = outcome("validate", &config, &["--data-dir", &other]);
    assert_eq!(validate.status.code(), Some(78));
    assert_eq!(agent.terminate().code(), Some(0));
}
