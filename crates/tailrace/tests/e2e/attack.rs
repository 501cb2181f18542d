//! What whoever reaches the agent, names a file or answers it may try: its admin endpoint, its own logs and its commands.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use tailrace_testkit::{Answer, Collector};

use crate::support::{Agent, Bench, append, get, post, request, tailrace, until};

/// Bytes that a terminal obeys, and a line that the agent never wrote.
const HOSTILE: &str = "x\n2026-01-01T00:00:00Z ERROR forged\u{1b}[2J\u{9b}31m";
const SECRET: &str = "hunter2-of-the-environment";

fn start(bench: &Bench, collector: &Collector, admin: &str) -> Agent {
    let more = format!("admin: {{listen: '127.0.0.1:0'{admin}}}\n");
    bench.pipeline(&collector.endpoint(), "json", &more);
    let agent = bench.start();
    agent.says("admin endpoint");
    agent
}

fn lines(from: usize, to: usize) -> Vec<u8> {
    let lines = (from..to).map(|seq| format!("{{\"seq\":{seq}}}\n"));
    lines.collect::<String>().into_bytes()
}

fn descriptors(agent: &Agent) -> usize {
    fs::read_dir(format!("/proc/{}/fd", agent.pid()))
        .unwrap()
        .count()
}

/// The most memory that the agent ever held, in KiB.
fn peak_kib(agent: &Agent) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Sends a request with these headers; its status, and all of the answer.
fn asked(admin: &str, line: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(admin).unwrap();
    write!(stream, "{line} HTTP/1.1\r\n{headers}\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

#[test]
fn a_thousand_half_open_connections_take_neither_descriptors_nor_health() {
    let (bench, collector) = (Bench::new(), Collector::start());
    append(&bench.log("a.log"), &lines(0, 10));
    let agent = start(&bench, &collector, "");
    collector.wait_records(10);
    let (admin, before) = (agent.admin(), descriptors(&agent));
    let mut silent = Vec::new();
    for n in 0..1000 {
        let mut stream = TcpStream::connect(&admin).unwrap();
        if n % 2 == 0 {
            // It may have been ended by now.
            let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: ");
        }
        silent.push(stream);
        if n % 100 == 99 {
            assert_eq!(request("GET", &admin, "/livez").0, 200);
            let now = descriptors(&agent);
            assert!(now <= before + 64 + 8, "{now} descriptors, {before} before");
        }
    }
    // New files are found and read meanwhile.
    append(&bench.log("b.log"), &lines(10, 20));
    collector.wait_records(20);
    assert_eq!(request("GET", &admin, "/readyz").0, 200);
    let output = tailrace()
        .args(["ready", "--admin", &admin])
        .output()
        .unwrap();
    assert!(
        output.status.success() && said(&output).contains("\"ready\":true"),
        "{}",
        said(&output)
    );
    drop(silent);
    until(
        || descriptors(&agent) <= before + 8,
        || descriptors(&agent).to_string(),
    );
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn unfinished_headers_take_no_memory() {
    let (bench, collector) = (Bench::new(), Collector::start());
    append(&bench.log("a.log"), &lines(0, 10));
    let agent = start(&bench, &collector, "");
    collector.wait_records(10);
    let (admin, before) = (agent.admin(), peak_kib(&agent));
    let head = format!("GET /livez HTTP/1.1\r\nx: {}", "y".repeat(395_000));
    let mut floods = Vec::new();
    for n in 0..1200 {
        let mut stream = TcpStream::connect(&admin).unwrap();
        // It is ended before it has read all of that.
        let _ = stream.write_all(head.as_bytes());
        floods.push(stream);
        if n % 100 == 99 {
            assert_eq!(request("GET", &admin, "/livez").0, 200);
        }
    }
    append(&bench.log("a.log"), &lines(10, 20));
    collector.wait_records(20);
    let grown = peak_kib(&agent) - before;
    assert!(grown < 32 * 1024, "{grown} KiB more than {before}");
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn only_this_machine_and_who_has_the_token_may_do_more_than_probe() {
    let (mut bench, collector) = (Bench::new(), Collector::start());
    bench.set("TOKEN", "0123456789abcdef-one");
    let agent = start(&bench, &collector, ", token: '${TOKEN}'");
    let admin = agent.admin();
    let host = format!("host: {admin}\r\n");
    let reload = |headers: &str| asked(&admin, "POST /-/reload", &format!("{host}{headers}")).0;
    for page in [
        "origin: http://evil.example\r\n",
        "origin: null\r\n",
        "sec-fetch-site: cross-site\r\n",
    ] {
        assert_eq!(reload(page), 403, "{page}");
    }
    assert_eq!(
        asked(&admin, "POST /-/reload", "host: evil.example\r\n").0,
        421
    );
    // As another machine: what a proxy on this one passes on.
    let remote = "x-forwarded-for: 10.0.0.7\r\n";
    assert_eq!(reload(remote), 403);
    for path in [
        "/api/v1/ledger",
        "/api/v1/status",
        "/api/v1/overview",
        "/api/v1/history",
        "/api/v1/reasons",
        "/api/v1/log",
        "/api/v1/sources",
        "/api/v1/explain",
    ] {
        let (status, answer) = asked(&admin, &format!("GET {path}"), &format!("{host}{remote}"));
        assert!(status == 403 && answer.contains("admin.token"), "{answer}");
    }
    for path in ["/livez", "/readyz", "/healthz", "/metrics"] {
        assert_eq!(
            asked(&admin, &format!("GET {path}"), &format!("{host}{remote}")).0,
            200
        );
    }
    assert_eq!(
        reload(&format!(
            "{remote}authorization: Bearer 0123456789abcdef\r\n"
        )),
        401
    );
    let of_nobody: serde_json::Value =
        serde_json::from_str(&get(&admin, "/api/v1/status")).unwrap();
    assert_eq!(
        of_nobody["config"]["reloads"],
        serde_json::json!({"succeeded": 0, "failed": 0})
    );
    assert_eq!(
        reload(&format!(
            "{remote}authorization: Bearer 0123456789abcdef-one\r\n"
        )),
        200
    );
    assert_eq!(post(&admin, "/-/reload").0, 200);
    // Another token is in use with the config that has it.
    let config = fs::read_to_string(bench.path("tailrace.yaml")).unwrap();
    fs::write(
        bench.path("tailrace.yaml"),
        config.replace("'${TOKEN}'", "another-0123456789"),
    )
    .unwrap();
    assert_eq!(post(&admin, "/-/reload").0, 200);
    assert_eq!(
        reload(&format!(
            "{remote}authorization: Bearer 0123456789abcdef-one\r\n"
        )),
        401
    );
    assert_eq!(
        reload(&format!(
            "{remote}authorization: Bearer another-0123456789\r\n"
        )),
        200
    );
    assert_eq!(agent.terminate().code(), Some(0));
}

/// Standard output and error.
fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

/// Nothing that a terminal obeys, and no line of anybody else.
fn is_harmless(text: &str) {
    let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.contains(steers), "{text:?}");
    assert!(
        !text
            .lines()
            .any(|line| line.starts_with("2026-01-01T00:00:00Z")),
        "{text}"
    );
}

#[test]
fn names_of_files_and_answers_of_servers_are_shown_and_not_obeyed() {
    let (bench, collector) = (Bench::new(), Collector::start());
    collector.always(Answer::status(503).message(HOSTILE));
    append(&bench.log(&format!("{HOSTILE}.log")), &lines(0, 10));
    // A link is refused by its name.
    std::os::unix::fs::symlink("/nowhere", bench.log(&format!("link {HOSTILE}.log"))).unwrap();
    let corrupt = bench.log(&format!("gz {HOSTILE}.log.1.gz"));
    fs::write(corrupt, b"\x1f\x8b\x08\x00 no gzip").unwrap();
    let more = "admin: {listen: '127.0.0.1:0'}\n";
    bench.pipeline(&collector.endpoint(), "json", more);
    let config = bench.path("tailrace.yaml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("logs/*.log'", "logs/*'")).unwrap();
    let agent = bench.start();
    agent.says("forged\\u{1b}[2J\\u{9b}31m");
    let admin = agent.admin();
    agent.says("will be sent again");
    is_harmless(&agent.own_log());
    for arguments in [
        &["ledger", "--admin", &admin][..],
        &["ledger", "--json", "--admin", &admin],
    ] {
        let output = tailrace().args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("forged\\u"), "{}", said(&output));
        is_harmless(&said(&output));
        if arguments.len() == 4 {
            let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert!(
                json["pipelines"][0]["sources"]
                    .to_string()
                    .contains("forged"),
                "{json}"
            );
        }
    }
    for command in ["validate", "explain"] {
        let output = tailrace()
            .args([command, "-c"])
            .arg(&config)
            .output()
            .unwrap();
        is_harmless(&said(&output));
    }
    let missing = std::ffi::OsStr::from_bytes(b"/nowhere/\n2026-01-01T00:00:00Z \x1b[2J\xff");
    let output = tailrace()
        .args(["validate", "-c"])
        .arg(missing)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(78));
    is_harmless(&said(&output));
    collector.always(Answer::ok());
    assert_eq!(agent.terminate().code(), Some(0));
}

fn commands(bench: &Bench, config: &Path) -> String {
    let mut texts = String::new();
    for arguments in [
        &["validate"][..],
        &["validate", "--no-environment"],
        &["explain"],
        &["queue", "check"],
        &["replay"],
    ] {
        let output = tailrace()
            .args(arguments)
            .arg("-c")
            .arg(config)
            .env("API_TOKEN", SECRET)
            .env("STATE", bench.path("data").join(SECRET))
            .output()
            .unwrap();
        texts.push_str(&said(&output));
    }
    texts
}

#[test]
fn a_variable_is_named_and_its_value_shown_nowhere() {
    let (mut bench, collector) = (Bench::new(), Collector::start());
    bench.set("API_TOKEN", SECRET);
    let state = bench.path("data").join(SECRET);
    bench.set("STATE", state.to_str().unwrap());
    // It is accepted in these places, and the server says it back.
    collector.always(Answer::status(503).message(SECRET));
    append(&bench.log("a.log"), &lines(0, 10));
    let endpoint = collector.endpoint();
    let good = format!(
        "data_dir: '${{STATE}}'\nadmin: {{listen: '127.0.0.1:0'}}\npipelines:\n  app:\n    \
         input: {{type: file, include: ['{}/*.log', '/nowhere/${{API_TOKEN}}/*']}}\n    \
         transform: SELECT * FROM logs WHERE seq <> '${{API_TOKEN}}'\n    \
         output: {{type: otlp, endpoint: '{endpoint}', timeout: 5s, retry: {{initial: 50ms, max: 1s}}, \
         headers: {{x-api-token: '${{API_TOKEN}}'}}}}\n",
        bench.path("logs").display()
    );
    let config = bench.path("tailrace.yaml");
    fs::write(&config, &good).unwrap();
    let mut texts = commands(&bench, &config);
    let agent = bench.start();
    agent.says("admin endpoint");
    let admin = agent.admin();
    let status = || get(&admin, "/api/v1/status");
    assert!(
        status().contains("\"data_dir\":\"${STATE}\""),
        "{}",
        status()
    );
    agent.says("will be sent again");
    for wrong in [
        good.replace("timeout: 5s", "timeout: '${API_TOKEN}'"),
        good.replace("type: otlp", "type: '${API_TOKEN}'"),
        good.replace("SELECT *", "SELECT ${API_TOKEN}"),
        good.replace("SELECT *", "SELECT x${API_TOKEN}('a', *)"),
    ] {
        fs::write(&config, wrong).unwrap();
        texts.push_str(&commands(&bench, &config));
        let (code, answer) = post(&admin, "/-/reload");
        assert_eq!(code, 422);
        texts.push_str(&answer);
        texts.push_str(&status());
    }
    fs::write(&config, &good).unwrap();
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/v1/ledger",
        "/api/v1/overview",
        "/api/v1/history",
        "/api/v1/reasons",
        "/api/v1/log",
        "/api/v1/sources",
        "/api/v1/explain",
    ] {
        texts.push_str(&get(&admin, path));
    }
    let output = tailrace()
        .args(["ledger", "--admin", &admin])
        .output()
        .unwrap();
    texts.push_str(&said(&output));
    collector.always(Answer::ok());
    collector.wait_records(10);
    texts.push_str(&agent.own_log());
    assert_eq!(agent.terminate().code(), Some(0));
    assert!(!texts.contains("hunter2"), "{texts}");
    assert!(
        texts.contains("got the value of `${API_TOKEN}`, which is not shown"),
        "{texts}"
    );
}
