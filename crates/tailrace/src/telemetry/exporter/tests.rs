//! What is sent when: with a transport that follows a script, and a clock that waits for nothing.
#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;
use std::sync::Mutex;

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prometheus_client::metrics::counter::Counter;
use prost::Message;
use tailrace_otlp::Compression;
use tailrace_outputs::delivery::{
    Attempt as Answering, CompressionSearch, Outcome, Payload, RetryCause, RetryPolicy, Transport,
};

use super::*;
use crate::telemetry::counts::Reason;

const SECOND: Duration = Duration::from_secs(1);

/// A server that follows a script, and then gives one answer.
struct Server {
    script: Mutex<VecDeque<Outcome>>,
    otherwise: Outcome,
    /// The requests, and when they came.
    seen: Mutex<Vec<(Instant, Vec<u8>)>>,
    search: CompressionSearch,
    policy: RetryPolicy,
}

impl Transport for Server {
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Answering<'a> {
        let request = (Instant::now(), payload.bytes.to_vec());
        self.seen.lock().unwrap().push(request);
        let scripted = self.script.lock().unwrap().pop_front();
        let outcome = scripted.unwrap_or_else(|| self.otherwise.clone());
        Box::pin(std::future::ready(outcome.into()))
    }

    fn compression(&self) -> &CompressionSearch {
        &self.search
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &self.policy
    }
}

impl Server {
    fn new(script: impl IntoIterator<Item = Outcome>, otherwise: Outcome) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(script.into_iter().collect()),
            otherwise,
            seen: Mutex::default(),
            search: CompressionSearch::fixed(Compression::None),
            policy: RetryPolicy::between(SECOND, 8 * SECOND),
        })
    }

    fn sender(self: &Arc<Self>) -> SingleSender {
        SingleSender::new(Arc::clone(self) as Arc<dyn Transport>)
    }

    /// The records of each request.
    fn records(&self) -> Vec<Vec<LogRecord>> {
        let seen = self.seen.lock().unwrap();
        let records = |(_, bytes): &(Instant, Vec<u8>)| {
            let mut request = ExportLogsServiceRequest::decode(&**bytes).unwrap();
            request
                .resource_logs
                .remove(0)
                .scope_logs
                .remove(0)
                .log_records
        };
        seen.iter().map(records).collect()
    }

    fn times(&self) -> Vec<Instant> {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .map(|(at, _)| *at)
            .collect()
    }
}

fn accepted() -> Outcome {
    Outcome::Delivered {
        rejected: 0,
        message: None,
    }
}

fn down() -> Outcome {
    Outcome::Retry {
        cause: RetryCause::Connect,
        reason: "down".to_owned(),
        after: None,
    }
}

fn refused() -> Outcome {
    Outcome::Refused {
        reason: "never".to_owned(),
    }
}

fn too_large() -> Outcome {
    Outcome::TooLarge {
        reason: "too much".to_owned(),
    }
}

fn exporter() -> Exporter {
    let outbox: &'static Outbox = Box::leak(Box::new(Outbox::new()));
    outbox.open(Some(Level::DEBUG));
    let mut registry = Registry::default();
    registry.register("records", "records", Counter::<u64>::default());
    Exporter {
        outbox,
        registry: Arc::new(registry),
        origin: Origin::new(&[], "1"),
        started: UNIX_EPOCH,
        request_bytes_max: 1 << 20,
    }
}

fn log(exporter: &Exporter, level: Level, messages: std::ops::Range<usize>) {
    for n in messages {
        let fields = serde_json::json!({"n": n, "share": 0.5, "is_last": false, "path": "/a"});
        exporter.outbox.push(&Arc::new(Line {
            at: UNIX_EPOCH + SECOND,
            level,
            target: "tailrace::tests",
            message: format!("line {n}"),
            fields: fields.as_object().unwrap().clone(),
        }));
    }
}

/// Time passes, and takes none.
async fn passes(time: Duration) {
    sleep(time).await; // tidy: the clock is paused
}

/// Runs what sends lines for so long, and stops it.
async fn run_logs(exporter: &Exporter, server: &Arc<Server>, time: Duration) {
    let (stop, stopped) = watch::channel(());
    let stop = async {
        passes(time).await;
        drop(stop);
    };
    tokio::join!(exporter.logs(server.sender(), stopped), stop);
}

fn attribute(record: &LogRecord, name: &str) -> Option<Any> {
    let found = record.attributes.iter().find(|pair| pair.key == name)?;
    found.value.clone()?.value
}

#[tokio::test(start_paused = true)]
async fn a_line_becomes_a_record_with_its_fields_and_target() {
    let (exporter, server) = (exporter(), Server::new([], accepted()));
    log(&exporter, Level::WARN, 7..8);
    run_logs(&exporter, &server, 5 * SECOND).await;
    let records = server.records();
    let [records] = &records[..] else {
        panic!("{records:?}");
    };
    let record = &records[0];
    assert_eq!(record.time_unix_nano, 1_000_000_000);
    assert_eq!(
        (record.severity_number, record.severity_text.as_str()),
        (13, "WARN")
    );
    let body = record.body.clone().unwrap().value;
    assert_eq!(body, Some(Any::StringValue("line 7".to_owned())));
    let expected = [
        ("target", Any::StringValue("tailrace::tests".to_owned())),
        ("n", Any::IntValue(7)),
        ("share", Any::DoubleValue(0.5)),
        ("is_last", Any::BoolValue(false)),
        ("path", Any::StringValue("/a".to_owned())),
    ];
    assert_eq!(record.attributes.len(), expected.len());
    for (name, value) in expected {
        assert_eq!(attribute(record, name), Some(value), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_while_the_server_is_down_is_bounded_announced_and_paced() {
    let (exporter, server) = (exporter(), Server::new([], down()));
    log(&exporter, Level::DEBUG, 0..10_000);
    run_logs(&exporter, &server, 300 * SECOND).await;
    let times = server.times();
    let pauses: Vec<Duration> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // The last attempt is the one when it is stopped.
    let (last, steady) = pauses.split_last().unwrap();
    assert!(steady.iter().all(|pause| *pause >= SECOND), "{pauses:?}");
    assert!(*last <= 9 * SECOND && times.len() < 100, "{pauses:?}");
    // The server is back.
    let server = Server::new([], accepted());
    run_logs(&exporter, &server, 5 * SECOND).await;
    let records = server.records().concat();
    assert_eq!(records.len(), LINES_MAX);
    let lost = 10_000 - i64::try_from(LINES_MAX).unwrap();
    assert_eq!(attribute(&records[0], DROPPED), Some(Any::IntValue(lost)));
    assert!(
        records[1..]
            .iter()
            .all(|record| attribute(record, DROPPED).is_none())
    );
    assert_eq!(
        exporter.outbox.counts.dropped_for(Reason::Full),
        lost as u64
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_is_dropped_and_the_next_line_says_so() {
    let (exporter, server) = (exporter(), Server::new([refused()], accepted()));
    log(&exporter, Level::ERROR, 0..3);
    let more = async {
        passes(2 * SECOND).await;
        log(&exporter, Level::ERROR, 3..4);
    };
    tokio::join!(run_logs(&exporter, &server, 20 * SECOND), more);
    let records = server.records();
    assert_eq!(
        (records.len(), records[0].len(), records[1].len()),
        (2, 3, 1)
    );
    assert_eq!(attribute(&records[1][0], DROPPED), Some(Any::IntValue(3)));
    assert_eq!(exporter.outbox.counts.dropped_for(Reason::Refused), 3);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_is_followed_by_smaller_ones() {
    let script = [too_large(), too_large()];
    let (exporter, server) = (exporter(), Server::new(script, accepted()));
    log(&exporter, Level::ERROR, 0..16);
    run_logs(&exporter, &server, 60 * SECOND).await;
    let counts: Vec<usize> = server.records().iter().map(Vec::len).collect();
    assert_eq!(counts, [16, 8, 4, 4, 4, 4]);
    assert_eq!(exporter.outbox.counts.delivered_lines(), 16);
    // One line that is too large alone is dropped, and the others arrive.
    let server = Server::new([too_large(), too_large()], accepted());
    log(&exporter, Level::ERROR, 0..2);
    run_logs(&exporter, &server, 60 * SECOND).await;
    let counts: Vec<usize> = server.records().iter().map(Vec::len).collect();
    assert_eq!(counts, [2, 1, 1]);
    assert_eq!(exporter.outbox.counts.dropped_for(Reason::Refused), 1);
}

#[tokio::test(start_paused = true)]
async fn lines_that_wait_leave_when_it_is_stopped() {
    let (exporter, server) = (exporter(), Server::new([], accepted()));
    log(&exporter, Level::INFO, 0..LINES_MAX);
    // Before the first line has waited for others.
    run_logs(&exporter, &server, Duration::ZERO).await;
    assert_eq!(server.records().concat().len(), LINES_MAX);
}

/// Runs what sends metrics for so long, and stops it. Returns when requests came, in seconds.
async fn run_metrics(server: &Arc<Server>, seconds: u32) -> Vec<u64> {
    let (exporter, begun) = (exporter(), Instant::now());
    let (stop, stopped) = watch::channel(());
    let stop = async {
        passes(seconds * SECOND).await;
        drop(stop);
    };
    let metrics = exporter.metrics(server.sender(), 10 * SECOND, stopped);
    tokio::join!(metrics, stop);
    let times = server.times().into_iter();
    times.map(|at| (at - begun).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn metrics_leave_at_every_interval_and_at_the_end() {
    let server = Server::new([], accepted());
    assert_eq!(run_metrics(&server, 35).await, [10, 20, 30, 35]);
}

#[tokio::test(start_paused = true)]
async fn metrics_that_are_refused_cost_a_request_an_interval_and_a_server_that_is_down_one_a_pause()
{
    let server = Server::new([], refused());
    assert_eq!(run_metrics(&server, 35).await, [10, 20, 30, 35]);
    let server = Server::new([], down());
    let times = run_metrics(&server, 300).await;
    let (_, steady) = times.split_last().unwrap();
    assert!(steady.windows(2).all(|pair| pair[1] > pair[0]), "{times:?}");
    assert!(times.len() < 100, "{times:?}");
}
