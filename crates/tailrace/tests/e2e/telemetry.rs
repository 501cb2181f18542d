//! The agent's own logs and metrics arrive as OTLP, say nothing that the log would not, and never harm the pipelines.

use std::collections::BTreeSet;
use std::fs;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use tailrace_testkit::{Answer, Collector, Protocol, Record, TestTls};

use crate::agent::{attribute, body, lines};
use crate::support::{Agent, Bench, append, get, post, until};

/// Text from outside that came in by `${PLANTED}`.
const PLANTED: &str = "planted-in-telemetry";

/// A config of a pipeline `app` with one output `main` to `app`, and a pipeline `idle` with one output `backend` to `own`.
fn config(bench: &Bench, telemetry: &str, app: &Collector, own: &Collector, protocol: &str) {
    let pipeline = |name: &str, output: &str, to: &Collector, protocol: &str| {
        format!(
            "  {name}:\n    input: {{type: file, include: ['$DIR/logs/{name}*.log', '$DIR/${{PLANTED:-x}}/*'], format: \
             json}}\n    batch: {{max_wait: 20ms}}\n    output: {{type: otlp, name: {output}, endpoint: '{}', protocol: \
             {protocol}, headers: {{x-key: own-header}}, retry: {{initial: 50ms, max: 100ms}}}}\n",
            to.endpoint()
        )
    };
    bench.config(&format!(
        "admin: {{listen: '127.0.0.1:0'}}\nresource: {{service.name: shop, k8s.cluster.name: prod}}\n{telemetry}\n\
         pipelines:\n{}{}",
        pipeline("app", "main", app, "http/protobuf"),
        pipeline("idle", "backend", own, protocol),
    ));
}

fn text(resource: &Resource, name: &str) -> Option<String> {
    let is_it = |pair: &&KeyValue| pair.key == name;
    let value = resource.attributes.iter().find(is_it)?.value.clone()?;
    match value {
        AnyValue {
            value: Some(Value::StringValue(text)),
            ..
        } => Some(text),
        other => panic!("{other:?}"),
    }
}

/// The lines of the agent's own log that arrived.
fn own_lines(collector: &Collector) -> Vec<Record> {
    let mut records = collector.records();
    let is_own = |record: &Record| text(&record.resource, "service.name").unwrap() == "tailrace";
    records.retain(is_own);
    records
}

/// Waits until a line arrived whose message has this text.
fn arrives(collector: &Collector, part: &str) -> Record {
    let found = || {
        let lines = own_lines(collector);
        lines.into_iter().find(|line| body(line).contains(part))
    };
    let bodies = || own_lines(collector).iter().map(body).collect::<Vec<_>>();
    until(|| found().is_some(), || format!("{part}: {:?}", bodies()));
    found().unwrap()
}

/// The names of the metrics in the last request with metrics.
fn metric_names(collector: &Collector) -> BTreeSet<String> {
    let metrics = collector.metrics();
    let scopes = &metrics.last().unwrap().resource_metrics[0].scope_metrics;
    let metrics = scopes.iter().flat_map(|scope| &scope.metrics);
    metrics.map(|metric| metric.name.clone()).collect()
}

/// The names that `/metrics` has.
fn scraped_names(agent: &Agent) -> BTreeSet<String> {
    let text = get(&agent.admin(), "/metrics");
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let name = |line: &str| {
        let (name, kind) = line.split_once(' ').unwrap();
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        format!("{name}{suffix}")
    };
    types.map(name).collect()
}

/// Whether the thread that sends is there.
fn is_sending(agent: &Agent) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", agent.pid())).unwrap();
    let mut names =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.any(|name| name.trim() == "tailrace-own")
}

#[test]
fn lines_and_metrics_arrive_over_both_protocols_with_the_headers_of_the_output() {
    for (protocol, expected) in [("http/protobuf", Protocol::Http), ("grpc", Protocol::Grpc)] {
        let (bench, app, own) = (Bench::new(), Collector::start(), Collector::start());
        let telemetry = "telemetry: {output: backend, logs: info, metrics_interval: 1s}";
        config(&bench, telemetry, &app, &own, protocol);
        append(&bench.log("app.log"), &lines(0..500));
        let agent = bench.start();
        app.wait_records(500);
        let running = arrives(&own, "running");
        own.wait_metrics(1);
        // What is scraped is what is sent.
        until(
            || metric_names(&own) == scraped_names(&agent),
            || format!("{:?}\n{:?}", metric_names(&own), scraped_names(&agent)),
        );
        assert_eq!(agent.terminate().code(), Some(0));

        let resource = &running.resource;
        for (name, value) in [
            ("service.name", "tailrace"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("k8s.cluster.name", "prod"),
        ] {
            assert_eq!(text(resource, name).as_deref(), Some(value), "{name}");
        }
        let instance = text(resource, "service.instance.id").unwrap();
        assert!(
            instance.ends_with(&bench.path("data").display().to_string()),
            "{instance}"
        );
        assert_eq!(running.scope.name, "tailrace");
        assert_eq!(
            (
                running.log.severity_number,
                running.log.severity_text.as_str()
            ),
            (9, "INFO")
        );
        assert!(matches!(
            attribute(&running, "workers"),
            Some(Value::IntValue(1..))
        ));
        let target = Some(Value::StringValue("tailrace::run".to_owned()));
        assert_eq!(attribute(&running, "target"), target);
        // The last lines leave before the end.
        arrives(&own, "stopping");
        let requests = own.requests();
        assert!(!requests.is_empty());
        for request in &requests {
            assert_eq!(
                (request.protocol, request.header("x-key")),
                (expected, Some("own-header"))
            );
        }
        check_last_metrics(&own);
        // None of it took the way of the records.
        assert_eq!(app.records().len(), 500);
    }
}

/// The metrics that were sent at the end are those of all that was done.
fn check_last_metrics(own: &Collector) {
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
    let requests = own.metrics();
    let group = &requests.last().unwrap().resource_metrics[0];
    assert_eq!(
        text(group.resource.as_ref().unwrap(), "service.name").unwrap(),
        "tailrace"
    );
    let mut metrics = group.scope_metrics[0].metrics.iter();
    let name = "tailrace_output_delivered_records_total";
    let delivered = metrics.find(|metric| metric.name == name).unwrap();
    assert_eq!(delivered.description, "records accepted by the output");
    let Some(Data::Sum(sum)) = &delivered.data else {
        panic!("{delivered:?}");
    };
    assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
    let is_app = |pairs: &[KeyValue]| {
        let app = Some(Value::StringValue("app".to_owned()));
        pairs
            .iter()
            .any(|pair| pair.key == "pipeline" && pair.value.clone().unwrap().value == app)
    };
    let point = sum
        .data_points
        .iter()
        .find(|point| is_app(&point.attributes))
        .unwrap();
    assert_eq!(point.value, Some(Number::AsInt(500)));
    assert!(point.start_time_unix_nano > 0 && point.start_time_unix_nano < point.time_unix_nano);
}

#[test]
fn secrets_are_masked_and_levels_kept_as_the_config_says() {
    let (mut bench, app, own) = (Bench::new(), Collector::start(), Collector::start());
    bench.set("PLANTED", PLANTED);
    let telemetry = "telemetry: {output: backend}";
    config(&bench, telemetry, &app, &own, "http/protobuf");
    app.always(Answer::status(401).message(&format!("no user {PLANTED} here")));
    append(&bench.log("app.log"), &lines(0..1));
    let agent = bench.start();
    let line = arrives(&own, "the server refuses this output");
    let Some(Value::StringValue(reason)) = attribute(&line, "reason") else {
        panic!("{line:?}");
    };
    assert!(reason.contains("no user ${PLANTED} here"), "{reason}");
    arrives(&own, "there is no directory");
    agent.kill();
    for line in own_lines(&own) {
        assert!(!format!("{line:?}").contains(PLANTED), "{line:?}");
        assert!(line.log.severity_number >= 13, "{line:?}");
    }
}

#[test]
fn a_server_that_is_down_costs_the_pipelines_nothing_and_gets_the_lines_later() {
    let (bench, app, mut own) = (Bench::new(), Collector::start(), Collector::start());
    own.stop();
    let telemetry = "telemetry: {output: backend, logs: info, metrics_interval: 1s}";
    config(&bench, telemetry, &app, &own, "http/protobuf");
    append(&bench.log("app.log"), &lines(0..1000));
    let agent = bench.start();
    app.wait_records(1000);
    agent.says("the agent's own logs cannot be sent");
    agent.says("the agent's own metrics cannot be sent");
    let text = get(&agent.admin(), "/metrics");
    assert!(
        text.contains("tailrace_telemetry_delivered_records_total 0"),
        "{text}"
    );
    let in_flight = "tailrace_output_in_flight_requests{pipeline=\"idle\",output=\"backend\"} 0";
    assert!(text.contains(in_flight), "{text}");
    own.restart();
    arrives(&own, "running");
    own.wait_metrics(1);
    agent.says("what the agent sends about itself arrives again");
    append(&bench.log("idle.log"), &lines(0..1));
    until(
        || own.records().len() > own_lines(&own).len(),
        || "the record of the pipeline did not arrive".to_owned(),
    );
    let log = agent.own_log();
    assert_eq!(agent.terminate().code(), Some(0));
    // Lines about sending lines do not leave.
    for line in own_lines(&own) {
        assert!(!body(&line).contains("cannot be sent"), "{line:?}");
    }
    assert_eq!(
        log.matches("the agent's own logs cannot be sent").count(),
        1,
        "{log}"
    );
}

#[test]
fn a_server_that_takes_logs_alone_gets_logs_and_the_agent_says_what_to_do() {
    let (bench, app, own) = (Bench::new(), Collector::start(), Collector::start());
    own.answer_metrics(Answer::status(404));
    let telemetry = "telemetry: {output: backend, logs: info, metrics_interval: 1s}";
    config(&bench, telemetry, &app, &own, "http/protobuf");
    let agent = bench.start();
    agent.says("set `telemetry.metrics_interval: off`");
    arrives(&own, "running");
    append(&bench.log("app.log"), &lines(0..10));
    app.wait_records(10);
    let of_metrics = own
        .requests()
        .iter()
        .filter(|it| it.path == "/v1/metrics")
        .count();
    // The pause after an answer that blames neither side is half a minute.
    assert!((1..=3).contains(&of_metrics), "{of_metrics}");
    assert_eq!(agent.terminate().code(), Some(0));
    assert!(own.metrics().is_empty());
}

#[test]
fn a_reload_begins_changes_and_ends_it() {
    let (bench, app) = (Bench::new(), Collector::start());
    let (first, second) = (Collector::start(), Collector::start());
    config(&bench, "", &app, &first, "http/protobuf");
    let agent = bench.start();
    append(&bench.log("app.log"), &lines(0..1));
    app.wait_records(1);
    assert!(!is_sending(&agent));
    let scrape = || get(&agent.admin(), "/metrics");
    assert!(
        !scrape().contains("tailrace_telemetry"),
        "nothing changes without the section"
    );

    let telemetry = "telemetry: {output: backend, logs: info}";
    config(&bench, telemetry, &app, &first, "http/protobuf");
    assert_eq!(post(&agent.admin(), "/-/reload").0, 200);
    arrives(&first, "config reloaded");
    assert!(is_sending(&agent) && scrape().contains("tailrace_telemetry"));

    config(&bench, telemetry, &app, &second, "http/protobuf");
    assert_eq!(post(&agent.admin(), "/-/reload").0, 200);
    arrives(&second, "config reloaded");
    // The same again is no change.
    assert_eq!(post(&agent.admin(), "/-/reload").0, 200);

    config(
        &bench,
        "telemetry: {output: nobody}",
        &app,
        &second,
        "http/protobuf",
    );
    let (status, answer) = post(&agent.admin(), "/-/reload");
    assert_eq!(status, 422, "{answer}");
    assert!(answer.contains("there is no output `nobody`"), "{answer}");
    assert!(is_sending(&agent));
    arrives(&second, "the config was not reloaded");

    config(&bench, "", &app, &second, "http/protobuf");
    assert_eq!(post(&agent.admin(), "/-/reload").0, 200);
    until(
        || !is_sending(&agent),
        || "the thread is still there".to_owned(),
    );
    append(&bench.log("app.log"), &lines(1..2));
    app.wait_records(2);
    assert_eq!(agent.terminate().code(), Some(0));
    assert_eq!(
        own_lines(&first)
            .iter()
            .filter(|it| body(it).contains("stopping"))
            .count(),
        0
    );
    assert_eq!(
        own_lines(&second)
            .iter()
            .filter(|it| body(it).contains("stopping"))
            .count(),
        0
    );
}

#[test]
fn certificates_are_those_of_the_output_and_a_reload_takes_new_ones() {
    let tls = TestTls::generate();
    let (bench, app, own) = (
        Bench::new(),
        Collector::start(),
        Collector::start_tls(&tls, true),
    );
    let ca = bench.path("ca.pem");
    fs::copy(TestTls::generate().ca_file(), &ca).unwrap();
    let protocol = format!(
        "http/protobuf, tls: {{server_name: localhost, ca_file: {}, cert_file: {}, key_file: {}}}",
        ca.display(),
        tls.cert_file().display(),
        tls.key_file().display()
    );
    let telemetry = "telemetry: {output: backend, logs: info, metrics_interval: 1s}";
    config(&bench, telemetry, &app, &own, &protocol);
    let agent = bench.start();
    agent.says("the agent's own logs cannot be sent");
    assert!(own.requests().is_empty());
    fs::copy(tls.ca_file(), &ca).unwrap();
    assert_eq!(post(&agent.admin(), "/-/reload").0, 200);
    arrives(&own, "running");
    own.wait_metrics(1);
    assert_eq!(agent.terminate().code(), Some(0));
}

#[test]
fn an_end_is_not_held_up_by_a_server_that_does_not_answer() {
    let (bench, app, own) = (Bench::new(), Collector::start(), Collector::start());
    let gate = tailrace_testkit::Gate::new();
    own.always(Answer::ok().after(&gate));
    let telemetry = "telemetry: {output: backend, logs: info, metrics_interval: off}";
    config(&bench, telemetry, &app, &own, "http/protobuf");
    let agent = bench.start();
    own.wait_requests(1);
    let log = agent.log_path();
    assert_eq!(agent.terminate().code(), Some(0));
    let log = fs::read_to_string(log).unwrap();
    assert!(
        log.contains("the last lines of the own log were not sent"),
        "{log}"
    );
    assert!(own_lines(&own).is_empty());
    gate.open();
}
