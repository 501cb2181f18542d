//! What the agent says of itself at `/api/v1/...`, and the commands that print it.

use std::process::Output;

use serde_json::{Value, json};
use tailrace_testkit::{Answer, Collector};

use crate::support::{Agent, Bench, append, get, post, request, tailrace, until};

/// Makes a text as long as a record says, and divides by that; neither can be done for every record.
const QUERY: &str = "SELECT *, repeat('x', CASE WHEN n = 0 THEN 20000000 ELSE 1 END) AS share, \
    10 / CAST(n AS BIGINT) AS part FROM logs WHERE level IS NULL OR level <> 'DEBUG'";
/// Two records that pass, one that does not, one that is no JSON, one that cannot be divided by.
pub(crate) const LINES: &[u8] = b"{\"n\":1}\n{\"n\":2}\n{\"level\":\"DEBUG\"}\nno json, but s3cret\n{\"n\":0,\"who\":\"s3cret\"}\n";

/// A pipeline over [`LINES`] with an admin endpoint that has these options.
fn start(bench: &Bench, collector: &Collector, admin: &str) -> Agent {
    append(&bench.log("a.log"), LINES);
    write_config(bench, collector, admin);
    bench.start()
}

fn write_config(bench: &Bench, collector: &Collector, admin: &str) {
    let more = format!("    transform: {QUERY}\nadmin: {{listen: '127.0.0.1:0'{admin}}}\n");
    bench.pipeline(&collector.endpoint(), "json", &more);
}

pub(crate) fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn api(agent: &Agent, path: &str) -> Value {
    parsed(&get(&agent.admin(), &format!("/api/v1/{path}")))
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8([&output.stdout[..], &output.stderr[..]].concat()).unwrap()
}

pub(crate) fn ledger(admin: &str, arguments: &[&str]) -> Output {
    let mut command = tailrace();
    command.arg("ledger").args(arguments);
    command.env("TAILRACE_ADMIN", admin).output().unwrap()
}

/// Waits until a report is as it should be.
fn api_until(agent: &Agent, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    until(|| is_so(&api(agent, path)), || api(agent, path).to_string());
    api(agent, path)
}

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[test]
fn the_overview_has_every_stage_and_the_ledger() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let agent = start(&bench, &collector, "");
    collector.wait_records(4);
    let overview = api_until(&agent, "overview", |overview| {
        // Gauges are a second behind.
        let pipeline = &overview["pipelines"][0];
        pipeline["outputs"][0]["delivered"] == 4 && pipeline["stages"]["unread_bytes"] == 0
    });
    let expected = "config data_dir hostname phase pipelines process safe_mode started_unix_s uptime_s version";
    assert_eq!(keys(&overview).join(" "), expected);
    assert_eq!(
        (&overview["phase"], &overview["safe_mode"]),
        (&json!("running"), &Value::Null)
    );
    assert_eq!(overview["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(overview["config"], api(&agent, "status")["config"]);
    let process = &overview["process"];
    assert!(
        process["resident_bytes"].as_u64().unwrap() > 1 << 20,
        "{process}"
    );
    assert!(process["open_fds"].as_u64().unwrap() > 3, "{process}");
    assert!(process["cpu_seconds"].is_f64(), "{process}");

    let pipeline = &overview["pipelines"][0];
    assert_eq!(
        (&pipeline["name"], &pipeline["query"]),
        (&json!("app"), &json!(QUERY))
    );
    assert_eq!(
        pipeline["inputs"],
        json!([{"name": "file", "type": "file"}])
    );
    let mut of_ledger = api(&agent, "ledger")["pipelines"][0].clone();
    of_ledger.as_object_mut().unwrap().remove("sources");
    assert_eq!(pipeline["ledger"], of_ledger);
    assert!(
        pipeline["queue"]["capacity_bytes"].as_u64().unwrap() > 0,
        "{pipeline}"
    );
    let stages = &pipeline["stages"];
    let expected = json!({
        "read_bytes": LINES.len(), "unread_bytes": 0, "oldest_unread_s": 0, "records": 5, "malformed": 1,
        "filtered": 1, "failed_rows": 2, "files_open": stages["files_open"],
    });
    assert_eq!(*stages, expected);
    let output = &pipeline["outputs"][0];
    let expected = json!({
        "name": "otlp", "type": "otlp", "endpoint": format!("{}/v1/logs", collector.endpoint()),
        "state": "ok", "last_error": null, "retry_in_s": null, "delivered": 4, "in_flight_requests": 0,
        "requests": output["requests"], "sent_bytes": output["sent_bytes"], "encoded_bytes": output["encoded_bytes"],
    });
    assert_eq!(*output, expected);
    assert!(output["sent_bytes"].as_u64() > Some(0) && output["encoded_bytes"].as_u64() > Some(0));

    let history = api(&agent, "history");
    assert_eq!(history["interval_s"], 5);
    let point = &history["points"][0];
    assert_eq!(
        keys(point),
        ["cpu_seconds", "pipelines", "resident_bytes", "unix_s"]
    );
    let expected =
        "delay_batches delay_total_s delivered filtered name read_bytes records unread_bytes";
    assert_eq!(keys(&point["pipelines"][0]).join(" "), expected);
    let metrics = get(&agent.admin(), "/metrics");
    for name in [
        "tailrace_build_info{version=\"",
        "process_open_fds ",
        "process_cpu_seconds_total ",
    ] {
        assert!(metrics.contains(&format!("\n{name}")), "{name}: {metrics}");
    }
    let durations =
        "tailrace_output_request_duration_seconds_count{pipeline=\"app\",output=\"otlp\"} ";
    let count = metrics.split(durations).nth(1).unwrap();
    assert!(!count.starts_with('0'), "{metrics}");
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn reasons_are_counted_and_show_a_record_only_if_they_may() {
    let (bench, collector) = (Bench::new(), Collector::start());
    let agent = start(&bench, &collector, "");
    collector.wait_records(4);
    let find = |report: &Value, kind: &str, subject: &str| {
        let is_it = |reason: &&Value| {
            reason["kind"] == kind && reason["subject"].as_str().unwrap().ends_with(subject)
        };
        report["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .find(is_it)
            .cloned()
    };
    let about = |kind: &str, subject: &str| {
        let report = api_until(&agent, "reasons", |report| {
            find(report, kind, subject).is_some()
        });
        find(&report, kind, subject).unwrap()
    };
    let malformed = about("malformed", "/logs/a.log");
    let expected = "count example kind pipeline reason stage subject unix_s";
    assert_eq!(keys(&malformed).join(" "), expected);
    assert_eq!(
        (&malformed["count"], &malformed["example"]),
        (&json!(1), &Value::Null)
    );
    let failed = about("failed_expression", "share");
    assert_eq!(
        (&failed["count"], &failed["stage"]),
        (&json!(1), &json!("transform"))
    );
    assert_eq!(failed["reason"], "its value could not be computed");
    let arithmetic = about("failed_expression", "arithmetic");
    assert!(
        arithmetic["reason"]
            .as_str()
            .unwrap()
            .contains("division by zero"),
        "{arithmetic}"
    );
    agent.says("arithmetic of the query has no result");
    assert!(!agent.own_log().contains("s3cret"));
    assert!(!get(&agent.admin(), "/api/v1/reasons").contains("s3cret"));

    // From a reload on they may.
    write_config(&bench, &collector, ", examples: true");
    let (status, answer) = post(&agent.admin(), "/-/reload");
    assert_eq!(status, 200, "{answer}");
    append(&bench.log("a.log"), LINES);
    collector.wait_records(8);
    let with_examples = |report: &Value| report.to_string().matches("s3cret").count() == 2;
    api_until(&agent, "reasons", with_examples);
    let (malformed, failed) = (
        about("malformed", "a.log"),
        about("failed_expression", "share"),
    );
    assert_eq!(
        (&malformed["count"], &malformed["example"]),
        (&json!(2), &json!("no json, but s3cret"))
    );
    assert_eq!(failed["example"], "{\"n\":0,\"who\":\"s3cret\"}");
    let output = ledger(&agent.admin(), &["--reasons"]);
    let text = said(&output);
    assert!(
        text.contains("2 x malformed, pipeline app, input")
            && text.contains("for example: no json"),
        "{text}"
    );
    // Without the option those that were kept are forgotten.
    write_config(&bench, &collector, "");
    assert_eq!(post(&agent.admin(), "/-/reload").0, 200);
    assert!(!get(&agent.admin(), "/api/v1/reasons").contains("s3cret"));
    assert!(!agent.own_log().contains("s3cret"));
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn an_output_says_what_it_waits_for() {
    let (bench, collector) = (Bench::new(), Collector::start());
    collector.always(
        Answer::status(503)
            .message("out of order")
            .header("retry-after", "600"),
    );
    let agent = start(&bench, &collector, "");
    let state = |overview: &Value| overview["pipelines"][0]["outputs"][0]["state"].clone();
    let overview = api_until(&agent, "overview", |overview| state(overview) == "retrying");
    let output = &overview["pipelines"][0]["outputs"][0];
    let text = output["last_error"]["text"].as_str().unwrap();
    assert!(
        text.contains("503") && text.contains("out of order"),
        "{text}"
    );
    assert!(
        output["last_error"]["unix_s"].as_f64() > Some(1e9),
        "{output}"
    );
    assert!(output["retry_in_s"].as_f64() > Some(0.0), "{output}");
    let reasons = api(&agent, "reasons");
    let retry = &reasons["reasons"].as_array().unwrap().iter();
    let retry = retry
        .clone()
        .find(|reason| reason["kind"] == "retry")
        .unwrap();
    assert_eq!(
        (&retry["subject"], &retry["stage"]),
        (&json!("otlp"), &json!("output"))
    );
    agent.kill();

    collector.always(Answer::status(401).message("who are you"));
    let agent = bench.start();
    let overview = api_until(&agent, "overview", |overview| state(overview) == "holding");
    let output = &overview["pipelines"][0]["outputs"][0];
    assert!(
        output["last_error"]["text"]
            .as_str()
            .unwrap()
            .contains("401"),
        "{output}"
    );
    api_until(&agent, "reasons", |report| {
        report.to_string().contains("\"refused\"")
    });
    collector.always(Answer::ok());
    let overview = api_until(&agent, "overview", |overview| state(overview) == "ok");
    let output = &overview["pipelines"][0]["outputs"][0];
    assert_eq!(output["retry_in_s"], Value::Null);
    assert!(
        output["last_error"].is_object(),
        "what happened is remembered: {output}"
    );
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn the_log_the_sources_and_the_plan_are_asked_for_with_parameters() {
    let (bench, collector) = (Bench::new(), Collector::start());
    append(&bench.log("b.log"), b"{\"n\":3}\n");
    let agent = start(&bench, &collector, "");
    collector.wait_records(5);
    let log = api(&agent, "log");
    let lines = log["lines"].as_array().unwrap();
    let running = lines
        .iter()
        .find(|line| line["message"] == "running")
        .unwrap();
    assert_eq!(keys(running), ["fields", "level", "message", "unix_ms"]);
    assert_eq!(
        (&running["level"], &running["fields"]["version"]),
        (&json!("INFO"), &json!(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(api(&agent, "log?n=1")["lines"].as_array().unwrap().len(), 1);

    let all_read = |report: &Value| {
        let behind = report["sources"].as_array().unwrap().iter();
        behind.clone().count() == 2 && behind.clone().all(|source| source["behind_bytes"] == 0)
    };
    let sources = api_until(&agent, "sources", all_read);
    assert_eq!(
        (&sources["by"], &sources["sort"], &sources["total"]),
        (&json!("file"), &json!("bytes"), &json!(2))
    );
    let first = &sources["sources"][0];
    assert!(
        first["name"].as_str().unwrap().ends_with("/a.log"),
        "{first}"
    );
    let (size, read) = (&first["size_bytes"], &first["read_bytes"]);
    assert_eq!((size, read), (&json!(LINES.len()), &json!(LINES.len())));
    assert_eq!(
        (&first["pipeline"], &first["files"]),
        (&json!("app"), &json!(1))
    );
    assert_eq!(first["oldest_unread_s"], Value::Null);
    let by_pod = api(&agent, "sources?by=pod&sort=lag&n=1");
    assert_eq!(
        (&by_pod["total"], &by_pod["sources"][0]["files"]),
        (&json!(1), &json!(2))
    );

    let explain = api(&agent, "explain?pipeline=app");
    let command = tailrace()
        .args(["explain", "-c"])
        .arg(bench.path("tailrace.yaml"))
        .output()
        .unwrap();
    assert_eq!(explain["text"], said(&command));
    assert_eq!(api(&agent, "explain"), explain, "there is only one");

    let admin = agent.admin();
    for (path, why) in [
        ("status?x=1", "unknown parameter `x`; there is none"),
        ("ledger?x=1", "unknown parameter `x`"),
        ("overview?x", "unknown parameter `x`"),
        ("history?x=", "unknown parameter `x`"),
        ("reasons?x=1", "unknown parameter `x`"),
        ("log?n=501", "from 0 to 500"),
        ("log?n=x", "got `x`"),
        ("log?lines=3", "unknown parameter `lines`"),
        ("sources?by=node", "`file`, `namespace`, `pod`"),
        ("sources?by=pod&by=pod", "twice"),
        ("explain?pipeline=web", "the agent has app"),
    ] {
        let (status, answer) = request("GET", &admin, &format!("/api/v1/{path}"));
        assert!(
            status == 400 && answer.contains(why),
            "{path}: {status} {answer}"
        );
    }
    assert_eq!(post(&admin, "/api/v1/overview").0, 405);
    assert_eq!(post(&admin, "/-/reload?x=1").0, 400);
    assert_eq!(request("GET", &admin, "/api/v1/status?").0, 200);
    assert_eq!(request("GET", &admin, "/api/v1/nothing").0, 404);

    let output = ledger(&admin, &["--by", "file", "--top", "1"]);
    let text = said(&output);
    assert!(
        text.contains("/a.log") && text.contains("1 of 2") && !text.contains("/b.log"),
        "{text}"
    );
    let output = ledger(&admin, &["--by", "file", "--json"]);
    assert_eq!(parsed(&said(&output))["total"], 2);
    let wrong = ledger(&admin, &["--top", "3"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", said(&wrong));
    assert_eq!(agent.terminate().code(), Some(0));
}
