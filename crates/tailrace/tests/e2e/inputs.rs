//! Pipelines of several inputs: a file stays that of the input that found it.

use std::fs;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use tailrace_testkit::{Answer, Collector, Record};

use crate::agent::body;
use crate::reload::reload;
use crate::support::{Agent, Bench, append, until};

/// How the agent goes on.
#[derive(Clone, Copy, Debug)]
enum Way {
    Kill,
    End,
    Reload,
}

const APP: &str = "{type: file, include: ['$DIR/logs/app/*.log'], multiline: {start: '^BEGIN'}}";
const PODS: &str = "{type: kubernetes, logs_dir: $DIR/pods, metadata: path}";
const RAW: &str = "{type: file, include: ['$DIR/logs/raw/*.log'], format: raw}";

fn config(bench: &Bench, collector: &Collector, inputs: &[&str]) {
    bench.config(&format!(
        "admin: {{listen: '127.0.0.1:0'}}\nshutdown: {{grace: 0s}}\npipelines:\n  app:\n    inputs: [{}]\n    \
         batch: {{max_wait: 20ms}}\n    output: {{type: otlp, endpoint: {}, retry: {{initial: 50ms, max: 100ms}}}}\n",
        inputs.join(", "),
        collector.endpoint()
    ));
}

/// Each record, with the name of its pod.
fn arrived(collector: &Collector) -> Vec<(String, Option<String>)> {
    let pod = |record: &Record| {
        let mut pairs = record.resource.attributes.iter();
        let pod = pairs.find(|pair| pair.key == "k8s.pod.name")?;
        match pod.value.as_ref()?.value.as_ref()? {
            Value::StringValue(name) => Some(name.clone()),
            other => panic!("{other:?}"),
        }
    };
    let records = collector.records();
    let arrived = records.iter().map(|record| (body(record), pod(record)));
    let mut arrived: Vec<_> = arrived.collect();
    arrived.sort();
    arrived
}

/// Waits until the checkpoint knows a file by this name.
fn is_known(bench: &Bench, name: &str) {
    let files = ["data/checkpoint.json", "data/checkpoint.journal"];
    let texts = || files.map(|file| fs::read_to_string(bench.path(file)).unwrap_or_default());
    let is_known = || texts().concat().contains(&format!("{name}\""));
    until(is_known, || format!("{name} is not in {:?}", texts()));
}

/// Goes on with these inputs.
fn go_on(agent: Agent, way: Way, bench: &Bench, collector: &Collector, inputs: &[&str]) -> Agent {
    match way {
        Way::Kill => agent.kill(),
        Way::End => drop(agent.terminate()),
        Way::Reload => {
            config(bench, collector, inputs);
            let (status, body) = reload(&agent);
            assert_eq!(status, 200, "{body}");
            return agent;
        }
    }
    config(bench, collector, inputs);
    bench.start()
}

/// The kubelet rotates a log while the output is down; then the agent goes on, perhaps with other inputs around.
#[test]
fn a_log_that_was_rotated_stays_with_its_pod() {
    for (way, inputs) in [
        (Way::Kill, [APP, PODS].as_slice()),
        (Way::End, &[APP, PODS]),
        (Way::Reload, &[RAW, APP, PODS]),
        (Way::Reload, &[PODS, APP]),
        (Way::End, &[RAW, PODS]),
    ] {
        let (bench, collector) = (Bench::new(), Collector::start());
        let dir = bench.path("pods/shop_web_u1/app");
        fs::create_dir_all(&dir).unwrap();
        config(&bench, &collector, &[APP, PODS]);
        collector.always(Answer::status(503));
        let line = |text: &str| format!("2026-01-02T03:04:05Z stdout F {text}\n");
        let log = dir.join("0.log");
        append(&log, ["one", "two", "three"].map(line).concat().as_bytes());
        let agent = bench.start();
        is_known(&bench, "0.log");
        fs::rename(&log, dir.join("0.log.20260102-030405")).unwrap();
        append(&log, line("four").as_bytes());
        is_known(&bench, "0.log.20260102-030405");
        let agent = go_on(agent, way, &bench, &collector, inputs);
        collector.always(Answer::ok());
        collector.wait_records(4);
        append(&log, line("last").as_bytes());
        collector.wait_records(5);
        let web = || Some("web".to_owned());
        let expected = ["four", "last", "one", "three", "two"].map(|body| (body.to_owned(), web()));
        assert_eq!(arrived(&collector), expected, "{way:?} {inputs:?}");
        assert_eq!(agent.terminate().code(), Some(0));
    }
}

/// All of it was delivered, its own input has no file of that path any more, and its last name no rotation gives.
#[test]
fn what_was_delivered_of_a_file_that_was_renamed_is_not_read_again() {
    for way in [Way::Kill, Way::End, Way::Reload] {
        for name in ["x.log.1", "x.kept"] {
            let (bench, collector) = (Bench::new(), Collector::start());
            for dir in ["app", "raw"] {
                fs::create_dir(bench.log(dir)).unwrap();
            }
            config(&bench, &collector, &[APP, RAW]);
            let agent = bench.start();
            agent.says("admin endpoint");
            append(&bench.log("raw/x.log"), b"{\"n\": 1}\n");
            collector.wait_records(1);
            let renamed = bench.log("raw").join(name);
            fs::rename(bench.log("raw/x.log"), &renamed).unwrap();
            is_known(&bench, name);
            let agent = go_on(agent, way, &bench, &collector, &[APP, RAW, PODS]);
            append(&renamed, b"{\"n\": 2}\n");
            collector.wait_records(2);
            append(&bench.log("raw/y.log"), b"{\"n\": 3}\n");
            collector.wait_records(3);
            let expected = [1, 2, 3].map(|n| (format!("{{\"n\": {n}}}"), None));
            assert_eq!(arrived(&collector), expected, "{way:?} {name}");
            assert_eq!(agent.terminate().code(), Some(0));
        }
    }
}
