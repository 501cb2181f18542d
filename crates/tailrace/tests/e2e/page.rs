//! The agent's page as a client gets it, and `tailrace top` where it cannot run. What they show is checked in a browser and on
//! a terminal: `tests/page`.

use std::io::{Read, Write};
use std::net::TcpStream;

use tailrace_testkit::Collector;

use crate::support::{Agent, Bench, tailrace};

/// An agent whose admin endpoint has these options.
fn start(bench: &Bench, collector: &Collector, admin: &str) -> Agent {
    let more = format!("admin: {{listen: '127.0.0.1:0'{admin}}}\n");
    bench.pipeline(&collector.endpoint(), "json", &more);
    bench.start()
}

/// The head of an answer in lower case, and its body.
fn asked(agent: &Agent, path: &str, headers: &str) -> (String, String) {
    let admin = agent.admin();
    let mut stream = TcpStream::connect(&admin).unwrap();
    let host = if headers.contains("host: ") {
        String::new()
    } else {
        format!("host: {admin}\r\n")
    };
    write!(
        stream,
        "GET {path} HTTP/1.1\r\n{host}{headers}connection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

fn status(answer: &(String, String)) -> &str {
    answer.0.split(' ').nth(1).unwrap()
}

#[test]
fn the_page_may_load_nothing_but_its_own_files() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let agent = start(&bench, &collector, "");
    let (head, body) = asked(&agent, "/", "");
    assert!(body.starts_with("<!doctype html>"), "{body}");
    for part in [
        "200 ok",
        "content-type: text/html; charset=utf-8",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "cross-origin-resource-policy: same-origin",
    ] {
        assert!(head.contains(part), "{part} is not in {head}");
    }
    // As a browser asks for a module of the page.
    let own = format!(
        "origin: http://{}\r\nsec-fetch-site: same-origin\r\n",
        agent.admin()
    );
    let (head, body) = asked(&agent, "/page/main.js", &own);
    assert!(
        head.contains("200 ok") && head.contains("content-type: text/javascript"),
        "{head}"
    );
    assert!(body.contains("import "), "{body}");
    for path in [
        "/page/",
        "/page/none.js",
        "/page/../metrics",
        "/page/%2e%2e/main.js",
    ] {
        assert_eq!(status(&asked(&agent, path, "")), "404", "{path}");
    }
    assert_eq!(status(&asked(&agent, "/", "host: evil.example\r\n")), "421");
    let other = "origin: http://evil.example\r\n";
    assert_eq!(status(&asked(&agent, "/page/main.js", other)), "403");
}

#[test]
fn from_elsewhere_there_is_a_page_only_with_a_token() {
    let (bench, collector) = (Bench::new(), Collector::start());
    // What a proxy on this machine passes on.
    let elsewhere = "x-forwarded-for: 10.0.0.7\r\n";
    let agent = start(&bench, &collector, "");
    assert_eq!(status(&asked(&agent, "/", elsewhere)), "403");
    drop(agent);
    let agent = start(&bench, &collector, ", token: a-token-of-24-characters");
    assert_eq!(status(&asked(&agent, "/", elsewhere)), "200");
    let data = "/api/v1/overview";
    assert_eq!(status(&asked(&agent, data, elsewhere)), "403");
    let bearer = format!("{elsewhere}authorization: Bearer a-token-of-24-characters\r\n");
    assert_eq!(status(&asked(&agent, data, &bearer)), "200");
}

#[test]
fn top_without_a_terminal_names_what_can_be_used_instead() {
    let output = tailrace()
        .args(["top", "--admin", "127.0.0.1:1"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("needs a terminal") && said.contains("tailrace ledger --json"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}
