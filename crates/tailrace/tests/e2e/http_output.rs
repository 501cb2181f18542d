//! The HTTP output: JSON to a plain server that refuses some records.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use bytes::Bytes;
use serde_json::Value;

use crate::support::{Bench, append, tailrace, until};

/// What a server accepted, by the path that it came to.
#[derive(Clone, Default)]
struct Server {
    records: Arc<Mutex<Vec<(String, Value)>>>,
    takes_poison: Arc<AtomicBool>,
}

impl Server {
    /// Serves until the runtime ends.
    fn start(&self, runtime: &tokio::runtime::Runtime) -> String {
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = Router::new().route("/{name}", post(receive));
        let app = app.with_state(self.clone());
        runtime.spawn(async move { axum::serve(listener, app).await });
        url
    }

    fn numbers(&self, name: &str) -> Vec<u64> {
        let records = self.records.lock().unwrap();
        let of_name = records.iter().filter(|(of, _)| of == name);
        let mut numbers: Vec<_> = of_name.map(|(_, it)| it["n"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    }
}

async fn receive(
    Path(name): Path<String>,
    State(server): State<Server>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let header = |name: &str| {
        headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    };
    let mut text = String::new();
    match header("content-encoding") {
        "gzip" => flate2::read::GzDecoder::new(&*body).read_to_string(&mut text),
        "zstd" => zstd::Decoder::new(&*body)
            .unwrap()
            .read_to_string(&mut text),
        _ => (&*body).read_to_string(&mut text),
    }
    .unwrap();
    let records: Vec<Value> = match header("content-type") {
        "application/json" => serde_json::from_str(&text).unwrap(),
        _ => text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    };
    let is_poison = |record: &Value| record["level"] == "poison";
    if records.iter().any(is_poison) && !server.takes_poison.load(Ordering::Relaxed) {
        return (StatusCode::BAD_REQUEST, "no poison here");
    }
    let records = records.into_iter().map(|record| (name.clone(), record));
    server.records.lock().unwrap().extend(records);
    (StatusCode::OK, "thanks")
}

#[test]
fn lines_and_arrays_arrive_and_what_is_refused_is_kept_and_sent_again() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (bench, server) = (Bench::new(), Server::default());
    let url = server.start(&runtime);
    let config = bench.config(&format!(
        "pipelines:
  app:
    input: {{type: file, include: ['$DIR/logs/*.log']}}
    batch: {{max_wait: 50ms}}
    outputs:
      - {{name: lines, type: http, endpoint: '{url}/lines', compression: gzip}}
      - {{name: array, type: http, endpoint: '{url}/array', encoding: json, compression: zstd}}
"
    ));
    let line = |n: u64| {
        let level = if n == 777 { "poison" } else { "info" };
        format!(
            "{{\"n\":{n},\"level\":\"{level}\",\"text\":\"a \\\"quoted\\\" {{text}}, [{n}]\"}}\n"
        )
    };
    let lines: String = (0..3000).map(line).collect();
    append(&bench.log("a.log"), lines.as_bytes());
    let healthy: Vec<u64> = (0..3000).filter(|n| *n != 777).collect();
    let agent = bench.start();
    for name in ["lines", "array"] {
        let has_all = || server.numbers(name).len() >= healthy.len();
        until(has_all, || {
            format!("{} of {name}", server.numbers(name).len())
        });
        assert_eq!(server.numbers(name), healthy);
    }
    let entries = || {
        let text = std::fs::read_to_string(bench.path("data/dead-letter/app.ndjson"));
        let text = text.unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<Value>>()
    };
    until(|| entries().len() == 2, || format!("{:?}", entries()));
    assert_eq!(agent.terminate().code(), Some(0));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let kept = |it: &Value| (text(&it["output"]), text(&it["encoding"]));
    let kept: BTreeSet<_> = entries().iter().map(kept).collect();
    let pair = |output: &str, encoding: &str| (output.to_owned(), encoding.to_owned());
    assert_eq!(
        kept,
        BTreeSet::from([pair("array", "json"), pair("lines", "ndjson")])
    );

    server.takes_poison.store(true, Ordering::Relaxed);
    let mut replay = tailrace();
    let replay = replay.args(["replay", "-c"]).arg(config).output().unwrap();
    assert!(replay.status.success(), "{replay:?}");
    assert_eq!(entries(), Vec::<Value>::new());
    let all: Vec<u64> = (0..3000).collect();
    assert_eq!(server.numbers("lines"), all);
    assert_eq!(server.numbers("array"), all);
}
