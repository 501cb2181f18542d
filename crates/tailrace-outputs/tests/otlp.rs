//! The OTLP output against the scripted collector, over real sockets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message;
use tailrace_otlp::Compression;
use tailrace_outputs::Tls;
use tailrace_outputs::delivery::{
    Delivered, DriveConfig, Observer, OnRefused, Outcome, Payload, RetryCause, RetryPolicy,
    Transport, drive,
};
use tailrace_outputs::otlp::{OtlpOutput, OtlpTransport, Protocol, RequestCompression};
use tailrace_schema::Secret;
use tailrace_testkit::{Answer, Collector, Gate, Record, TestTls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[path = "otlp/job.rs"]
mod job;

use job::{Book, Job, text};

const BOTH: [Protocol; 2] = [Protocol::HttpProtobuf, Protocol::Grpc];

fn config(endpoint: String, protocol: Protocol) -> OtlpOutput {
    OtlpOutput {
        endpoint: Some(endpoint),
        protocol,
        // Longer than any test waits; those about timeouts set their own.
        timeout: Duration::from_secs(60),
        ..OtlpOutput::default()
    }
}

fn otlp(collector: &Collector, protocol: Protocol) -> Arc<OtlpTransport> {
    made(&config(collector.endpoint(), protocol))
}

fn made(config: &OtlpOutput) -> Arc<OtlpTransport> {
    let transport = OtlpTransport::new(config).unwrap();
    Arc::new(transport.with_retry_policy(RetryPolicy {
        hold: Duration::from_millis(1),
        ..RetryPolicy::between(Duration::from_millis(1), Duration::from_millis(10))
    }))
}

/// A request of `records` records whose bodies are `name-0`, `name-1` and so on, uncompressed.
fn payload(name: &str, records: usize) -> Payload {
    named(
        (0..records)
            .map(|index| format!("{name}-{index}"))
            .collect(),
    )
}

fn named(names: Vec<String>) -> Payload {
    let records = names.len() as u64;
    let record = |name| LogRecord {
        body: Some(AnyValue {
            value: Some(any_value::Value::StringValue(name)),
        }),
        ..LogRecord::default()
    };
    let scope_logs = ScopeLogs {
        log_records: names.into_iter().map(record).collect(),
        ..ScopeLogs::default()
    };
    let resource_logs = ResourceLogs {
        scope_logs: vec![scope_logs],
        ..ResourceLogs::default()
    };
    let bytes = ExportLogsServiceRequest {
        resource_logs: vec![resource_logs],
    }
    .encode_to_vec();
    Payload {
        uncompressed_bytes: bytes.len() as u64,
        bytes: Bytes::from(bytes),
        compression: Compression::None,
        records,
    }
}

const ONE: DriveConfig = DriveConfig {
    concurrency: 1,
    on_refused: OnRefused::Hold,
};

/// Drives these requests to their end.
async fn drive_all(
    otlp: &Arc<OtlpTransport>,
    payloads: impl IntoIterator<Item = Payload>,
    observer: &dyn Observer,
) -> Book {
    let book = Arc::<Mutex<Book>>::default();
    #[allow(clippy::disallowed_methods, reason = "as the pipeline does")]
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    for payload in payloads {
        let book = Arc::clone(&book);
        assert!(sender.send(Job { payload, book }).is_ok());
    }
    drop(sender);
    let transport: Arc<dyn Transport> = otlp.clone();
    drive(transport, receiver, ONE, observer).await;
    std::mem::take(&mut *book.lock().unwrap())
}

async fn deliver_told(
    otlp: &Arc<OtlpTransport>,
    payload: Payload,
    observer: &dyn Observer,
) -> Delivered {
    let mut book = drive_all(otlp, [payload], observer).await;
    assert_eq!((book.delivered.len(), book.rejected.len()), (1, 0));
    book.delivered.remove(0)
}

async fn deliver(otlp: &Arc<OtlpTransport>, payload: Payload) -> Delivered {
    deliver_told(otlp, payload, &()).await
}

fn bodies(collector: &Collector) -> Vec<String> {
    let records = collector.records();
    records.into_iter().map(|record| text(record.log)).collect()
}

fn compressions(collector: &Collector) -> Vec<String> {
    let requests = collector.requests();
    requests.into_iter().map(|r| r.compression).collect()
}

fn retry_of(outcome: Outcome) -> (RetryCause, String, Option<Duration>) {
    match outcome {
        Outcome::Retry {
            cause,
            reason,
            after,
        } => (cause, reason, after),
        other => panic!("not a retry: {other:?}"),
    }
}

fn hold_of(outcome: Outcome) -> String {
    match outcome {
        Outcome::Hold { reason } => reason,
        other => panic!("not a hold: {other:?}"),
    }
}

#[tokio::test]
async fn a_request_arrives_whole_in_each_encoding() {
    for protocol in BOTH {
        for (compression, name) in [
            (RequestCompression::Auto, "zstd"),
            (RequestCompression::Zstd, "zstd"),
            (RequestCompression::Gzip, "gzip"),
            (RequestCompression::None, "identity"),
        ] {
            let collector = Collector::start();
            let config = OtlpOutput {
                compression,
                headers: [("authorization".to_owned(), Secret::new("Bearer x"))].into(),
                ..config(collector.endpoint(), protocol)
            };
            let otlp = made(&config);
            let delivered = deliver(&otlp, payload("a", 100)).await;
            assert_eq!((delivered.attempts, delivered.rejected), (1, 0));
            assert_eq!(bodies(&collector).len(), 100);
            assert_eq!(bodies(&collector)[99], "a-99");
            let requests = collector.requests();
            let request = &requests[0];
            assert_eq!(request.compression, name, "{protocol:?}");
            assert_eq!(request.wire_bytes as u64, delivered.wire_bytes);
            assert_eq!(request.header("authorization"), Some("Bearer x"));
            let agent = request.header("user-agent").unwrap();
            assert!(agent.starts_with("Tailrace/"), "{agent}");
        }
    }
}

#[tokio::test]
async fn a_large_request_arrives_whole() {
    for protocol in BOTH {
        let collector = Collector::start();
        let config = OtlpOutput {
            compression: RequestCompression::None,
            ..config(collector.endpoint(), protocol)
        };
        let otlp = made(&config);
        let large = payload("large", 200_000);
        assert!(large.bytes.len() > 3 << 20);
        deliver(&otlp, large).await;
        assert_eq!(collector.records().len(), 200_000);
    }
}

#[tokio::test]
async fn connections_are_kept() {
    for protocol in BOTH {
        let collector = Collector::start();
        let otlp = otlp(&collector, protocol);
        for index in 0..10 {
            deliver(&otlp, payload(&format!("r{index}"), 1)).await;
        }
        let requests = collector.requests();
        assert!(requests.iter().all(|r| r.connection == 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_connection_is_replaced_when_it_is_old_or_the_server_cannot_now() {
    for (protocol, busy) in [
        (Protocol::HttpProtobuf, Answer::status(503)),
        (Protocol::Grpc, Answer::grpc(14, "later")),
    ] {
        let collector = Collector::start();
        let otlp = otlp(&collector, protocol);
        collector.script([Answer::ok(), busy]);
        deliver(&otlp, payload("a", 1)).await;
        deliver(&otlp, payload("b", 1)).await;
        let connections = |collector: &Collector| -> Vec<usize> {
            let requests = collector.requests();
            requests.into_iter().map(|r| r.connection).collect()
        };
        assert_eq!(connections(&collector), [1, 1, 2], "{protocol:?}");

        let collector = Collector::start();
        let otlp = made(&OtlpOutput {
            max_connection_age: Duration::ZERO,
            ..config(collector.endpoint(), protocol)
        });
        for name in ["a", "b"] {
            deliver(&otlp, payload(name, 1)).await;
        }
        assert_eq!(connections(&collector), [1, 2], "{protocol:?}");
    }
}

#[tokio::test]
async fn retryable_answers_are_repeated_until_it_arrives_once() {
    let collector = Collector::start();
    collector.script([429, 502, 503, 504].map(Answer::status));
    let delivered = deliver(&otlp(&collector, Protocol::HttpProtobuf), payload("a", 5)).await;
    assert_eq!(delivered.attempts, 5);
    assert_eq!(bodies(&collector).len(), 5);

    let collector = Collector::start();
    let codes = [1, 4, 10, 11, 14, 15].map(|code| Answer::grpc(code, "busy"));
    let in_headers = codes.clone().map(Answer::trailers_only);
    collector.script(codes.into_iter().chain(in_headers));
    let exhausted = Answer::grpc(8, "slow down").retry_info(Duration::from_millis(1));
    collector.script([exhausted, Answer::status(503)]);
    let delivered = deliver(&otlp(&collector, Protocol::Grpc), payload("a", 5)).await;
    assert_eq!(delivered.attempts, 15);
    assert_eq!(bodies(&collector).len(), 5);
}

#[tokio::test]
async fn the_time_to_wait_is_read_from_headers_and_trailers() {
    let collector = Collector::start();
    collector.script([
        Answer::status(503).header("retry-after", "17"),
        Answer::status(429),
    ]);
    let http = otlp(&collector, Protocol::HttpProtobuf);
    let (cause, reason, after) = retry_of(http.attempt(&payload("a", 1)).await.outcome);
    assert_eq!(cause, RetryCause::Unavailable);
    assert!(reason.contains("503"), "{reason}");
    assert_eq!(after, Some(Duration::from_secs(17)));
    let (cause, _, after) = retry_of(http.attempt(&payload("a", 1)).await.outcome);
    assert_eq!((cause, after), (RetryCause::Throttled, None));

    let delay = Duration::from_millis(2500);
    let throttled = Answer::grpc(8, "qu\u{f6}ta").retry_info(delay);
    collector.script([
        throttled.clone(),
        throttled.trailers_only(),
        Answer::grpc(8, "message larger than max"),
    ]);
    let grpc = otlp(&collector, Protocol::Grpc);
    for _ in 0..2 {
        let (cause, reason, after) = retry_of(grpc.attempt(&payload("a", 1)).await.outcome);
        assert_eq!(cause, RetryCause::Throttled);
        assert_eq!(after, Some(delay));
        assert!(
            reason.ends_with("the server answered RESOURCE_EXHAUSTED: qu\u{f6}ta"),
            "{reason}"
        );
    }
    let outcome = grpc.attempt(&payload("a", 1)).await.outcome;
    assert!(matches!(outcome, Outcome::TooLarge { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_partial_success_is_counted_and_not_repeated() {
    for protocol in BOTH {
        let collector = Collector::start();
        collector.script([Answer::partial(2, "too old"), Answer::partial(0, "hurry")]);
        let otlp = otlp(&collector, protocol);
        let delivered = deliver(&otlp, payload("a", 5)).await;
        assert_eq!((delivered.rejected, delivered.attempts), (2, 1));
        assert_eq!(delivered.message.as_deref(), Some("too old"));
        assert_eq!(bodies(&collector), ["a-0", "a-1", "a-2"]);
        let delivered = deliver(&otlp, payload("b", 1)).await;
        assert_eq!(delivered.rejected, 0);
        assert_eq!(delivered.message.as_deref(), Some("hurry"));
    }
}

#[tokio::test]
async fn broken_connections_are_repeated() {
    for protocol in BOTH {
        let collector = Collector::start();
        let otlp = otlp(&collector, protocol);
        // A first request, so that the next one finds a connection to lose.
        deliver(&otlp, payload("a", 1)).await;
        collector.script([Answer::close(), Answer::reset()]);
        for _ in 0..2 {
            let (cause, reason, _) = retry_of(otlp.attempt(&payload("x", 1)).await.outcome);
            assert_eq!(cause, RetryCause::Transport, "{protocol:?}: {reason}");
        }
        // Cut in its body, the answer may have been a success: the records come twice.
        collector.script([Answer::cut()]);
        let delivered = deliver(&otlp, payload("b", 1)).await;
        assert_eq!(delivered.attempts, 2, "{protocol:?}");
        assert_eq!(bodies(&collector), ["a-0", "b-0", "b-0"]);
    }
}

#[tokio::test]
async fn a_server_that_is_down_is_waited_for() {
    /// Starts the collector once an attempt has failed.
    struct Start(Mutex<Option<Collector>>, Mutex<Vec<RetryCause>>);

    impl Observer for Start {
        fn retrying(&self, cause: RetryCause, _reason: &str, _delay: Duration) {
            let mut causes = self.1.lock().unwrap();
            causes.push(cause);
            if causes.len() == 3 {
                self.0.lock().unwrap().as_mut().unwrap().restart();
            }
        }
    }

    for protocol in BOTH {
        let mut collector = Collector::start();
        collector.stop();
        let otlp = otlp(&collector, protocol);
        let start = Start(Mutex::new(Some(collector)), Mutex::default());
        let delivered = deliver_told(&otlp, payload("a", 1), &start).await;
        assert_eq!(delivered.attempts, 4);
        assert_eq!(
            *start.1.lock().unwrap(),
            [RetryCause::Connect; 3],
            "{protocol:?}"
        );
        let collector = start.0.lock().unwrap();
        assert_eq!(bodies(collector.as_ref().unwrap()), ["a-0"]);
    }
}

#[tokio::test]
async fn a_server_that_answers_too_late_or_too_slowly_is_cut_off() {
    for protocol in BOTH {
        let collector = Collector::start();
        let gate = Gate::new();
        collector.script([
            Answer::ok().after(&gate),
            Answer::partial(1, "slow").body_after(&gate),
        ]);
        let config = OtlpOutput {
            timeout: Duration::from_millis(300),
            ..config(collector.endpoint(), protocol)
        };
        let otlp = made(&config);
        for _ in 0..2 {
            let (cause, reason, _) = retry_of(otlp.attempt(&payload("a", 1)).await.outcome);
            assert_eq!(cause, RetryCause::Timeout, "{protocol:?}: {reason}");
        }
        gate.open();
    }
}

#[tokio::test]
async fn an_acceptance_in_other_words_is_one_and_is_noted() {
    for (protocol, body) in [
        (Protocol::HttpProtobuf, "{}"),
        (Protocol::HttpProtobuf, "OK"),
        (Protocol::Grpc, "OK"),
    ] {
        let collector = Collector::start();
        collector.script([Answer::ok().body(body)]);
        let otlp = Arc::new(otlp(&collector, protocol));
        let odd = deliver(&otlp, payload("a", 1)).await;
        assert!(odd.oddity.is_some(), "{odd:?}");
        let usual = deliver(&otlp, payload("a", 1)).await;
        assert_eq!((odd.attempts, usual.oddity), (1, None));
    }
}

#[tokio::test]
async fn what_is_no_otlp_server_is_held() {
    let collector = Collector::start();
    collector.script([
        Answer::html(),
        Answer::ok().body(vec![0x0a; (4 << 20) + 1]),
        Answer::status(301).header("location", "http://127.0.0.1:1/v1/logs"),
        Answer::status(404)
            .header("content-type", "text/html")
            .body("<html>nginx</html>"),
    ]);
    let http = otlp(&collector, Protocol::HttpProtobuf);
    let parts = [
        "no OTLP response (48 bytes of text/html; charset=utf-8)",
        "no OTLP response (more than 4194304 bytes",
        "redirects are not followed; it points to http://127.0.0.1:1/v1/logs",
        "404 Not Found: (an HTML page)",
    ];
    for part in parts {
        let reason = hold_of(http.attempt(&payload("a", 1)).await.outcome);
        assert!(reason.contains(part), "{reason}");
    }

    collector.script([
        Answer::ok().body("<html></html>").trailers_only(),
        Answer::status(404),
        Answer::grpc(16, "who are you"),
    ]);
    let grpc = otlp(&collector, Protocol::Grpc);
    let outcome = grpc.attempt(&payload("a", 1)).await.outcome;
    assert!(matches!(outcome, Outcome::Delivered { .. }), "{outcome:?}");
    let reason = hold_of(grpc.attempt(&payload("a", 1)).await.outcome);
    assert!(reason.contains("404"), "{reason}");
    let reason = hold_of(grpc.attempt(&payload("a", 1)).await.outcome);
    let expected = "the server answered UNAUTHENTICATED: who are you: \
                    check the credentials in headers or tls";
    assert_eq!(reason, format!("{}: {expected}", collector.endpoint()));
}

#[tokio::test]
async fn a_held_request_is_probed_until_it_is_accepted() {
    #[derive(Default)]
    struct Held(Mutex<Vec<String>>);

    impl Observer for Held {
        fn holding(&self, reason: &str, _delay: Duration) {
            self.0.lock().unwrap().push(reason.to_owned());
        }
    }

    for (protocol, refusal) in [
        (Protocol::HttpProtobuf, Answer::status(401)),
        (Protocol::Grpc, Answer::grpc(16, "no")),
    ] {
        let collector = Collector::start();
        collector.script([refusal.clone(), refusal]);
        let held = Held::default();
        let otlp = otlp(&collector, protocol);
        let delivered = deliver_told(&otlp, payload("a", 1), &held).await;
        assert_eq!(delivered.attempts, 3);
        assert_eq!(held.0.lock().unwrap().len(), 2);
        assert_eq!(bodies(&collector), ["a-0"]);
    }
}

fn holds(name: &'static str) -> impl Fn(&[Record]) -> bool + Send + 'static {
    move |records| {
        records
            .iter()
            .any(|record| text(record.log.clone()) == name)
    }
}

#[tokio::test]
async fn one_poison_record_in_ten_thousand_is_rejected_and_no_other() {
    for (protocol, refusal) in [
        (Protocol::HttpProtobuf, Answer::status(400).message("bad")),
        (Protocol::HttpProtobuf, Answer::status(422).message("bad")),
        (Protocol::Grpc, Answer::grpc(3, "bad")),
    ] {
        let collector = Collector::start();
        collector.answer_if(holds("a-7777"), refusal);
        let book = drive_all(&otlp(&collector, protocol), [payload("a", 10_000)], &()).await;
        assert_eq!(book.rejected.len(), 1);
        let (name, reason) = &book.rejected[0];
        assert_eq!(name, "a-7777");
        assert!(reason.ends_with(": bad"), "{reason}");
        let mut bodies = bodies(&collector);
        bodies.sort_unstable();
        bodies.dedup();
        assert_eq!((bodies.len(), collector.records().len()), (9_999, 9_999));
    }
}

#[tokio::test]
async fn a_poison_record_alone_in_its_request_is_rejected_after_another_was_accepted() {
    let collector = Collector::start();
    collector.answer_if(holds("b-0"), Answer::status(400));
    let payloads = ["a", "b", "c"].map(|name| payload(name, 1));
    let book = drive_all(&otlp(&collector, Protocol::HttpProtobuf), payloads, &()).await;
    assert_eq!(book.rejected.len(), 1);
    assert_eq!(bodies(&collector), ["a-0", "c-0"]);
}

#[tokio::test]
async fn a_request_above_the_limit_is_cut_until_it_fits() {
    for (protocol, refusal) in [
        (Protocol::HttpProtobuf, Answer::status(413)),
        (
            Protocol::HttpProtobuf,
            Answer::status(400).message("http: request body too large"),
        ),
        (
            Protocol::Grpc,
            Answer::grpc(8, "grpc: received message larger than max (5 vs. 4)"),
        ),
        (Protocol::Grpc, Answer::status(413)),
    ] {
        let collector = Collector::start();
        collector.answer_if(|records| records.len() > 3000, refusal);
        let otlp = otlp(&collector, protocol);
        let payloads = ["a", "b", "c"].map(|name| payload(name, 10_000));
        let book = drive_all(&otlp, payloads, &()).await;
        assert_eq!(book.rejected.len(), 0);
        assert_eq!(collector.records().len(), 30_000);
        // 10,000 and 5,000 are too many; then the size is known.
        let (seen, taken) = (collector.requests().len(), book.delivered.len());
        assert_eq!(seen - taken, 2, "{protocol:?}");
    }
}

#[tokio::test]
async fn an_encoding_the_server_does_not_know_is_found_out_once() {
    let cases = [
        (Protocol::HttpProtobuf, Answer::status(400)),
        (Protocol::HttpProtobuf, Answer::status(415)),
        (Protocol::HttpProtobuf, Answer::status(500)),
        (Protocol::Grpc, Answer::grpc(12, "unknown").trailers_only()),
        (Protocol::Grpc, Answer::grpc(13, "no decompressor for zstd")),
    ];
    for (protocol, refusal) in cases {
        let collector = Collector::start();
        collector.refuse_compression("zstd", refusal.clone());
        let otlp = otlp(&collector, protocol);
        let delivered = deliver(&otlp, payload("a", 3)).await;
        assert_eq!(delivered.compression, Compression::Gzip);
        assert_eq!(otlp.compression().preferred(), Compression::Gzip);
        deliver(&otlp, payload("b", 1)).await;
        assert_eq!(compressions(&collector), ["zstd", "gzip", "gzip"]);
        assert_eq!(bodies(&collector).len(), 4);
    }
}

#[tokio::test]
async fn a_server_that_takes_nothing_compressed_is_served() {
    for (protocol, refusal) in [
        (Protocol::HttpProtobuf, Answer::status(500)),
        (Protocol::Grpc, Answer::grpc(12, "unknown")),
    ] {
        let collector = Collector::start();
        for compression in ["zstd", "gzip"] {
            collector.refuse_compression(compression, refusal.clone());
        }
        let otlp = otlp(&collector, protocol);
        deliver(&otlp, payload("a", 1)).await;
        assert_eq!(compressions(&collector), ["zstd", "gzip", "identity"]);
        assert_eq!(otlp.compression().preferred(), Compression::None);
    }
}

#[tokio::test]
async fn after_a_success_only_a_named_compression_is_given_up() {
    let collector = Collector::start();
    let otlp = otlp(&collector, Protocol::HttpProtobuf);
    deliver(&otlp, payload("a", 1)).await;
    collector.script([Answer::status(400), Answer::status(500)]);
    deliver(&otlp, payload("b", 1)).await;
    assert_eq!(compressions(&collector), ["zstd"; 4]);
    collector.refuse_compression(
        "zstd",
        Answer::status(400).message("cannot decompress zstd"),
    );
    deliver(&otlp, payload("c", 1)).await;
    assert_eq!(compressions(&collector)[4..], ["zstd", "gzip"]);
    assert_eq!(bodies(&collector), ["a-0", "b-0", "c-0"]);
}

#[tokio::test]
async fn deliveries_side_by_side_arrive_once_each() {
    for protocol in BOTH {
        let collector = Collector::start();
        collector.refuse_compression("zstd", Answer::status(415));
        if protocol == Protocol::Grpc {
            collector.refuse_compression("zstd", Answer::grpc(12, ""));
        }
        collector.script((0..20).map(|_| match protocol {
            Protocol::HttpProtobuf => Answer::status(503),
            Protocol::Grpc => Answer::grpc(14, "later"),
        }));
        let otlp = otlp(&collector, protocol);
        let mut tasks = tokio::task::JoinSet::new();
        for index in 0..16 {
            let otlp = Arc::clone(&otlp);
            tasks.spawn(async move { deliver(&otlp, payload(&index.to_string(), 2)).await });
        }
        tasks.join_all().await;
        let mut bodies = bodies(&collector);
        bodies.sort_unstable();
        bodies.dedup();
        assert_eq!((bodies.len(), collector.records().len()), (32, 32));
    }
}

#[tokio::test]
async fn tls_trusts_the_given_authority_and_shows_the_client() {
    let files = TestTls::generate();
    let tls = Tls {
        ca_file: Some(files.ca_file()),
        cert_file: Some(files.cert_file()),
        key_file: Some(files.key_file()),
        server_name: None,
    };
    for protocol in BOTH {
        let collector = Collector::start_tls(&files, true);
        let with = |tls: Tls| OtlpOutput {
            tls,
            ..config(collector.endpoint(), protocol)
        };
        let otlp = made(&with(tls.clone()));
        deliver(&otlp, payload("a", 3)).await;
        assert_eq!(bodies(&collector).len(), 3);
        // TLS agrees on HTTP/2 for both.
        assert_eq!(collector.requests()[0].version, "HTTP/2.0");

        let anonymous = Tls {
            cert_file: None,
            key_file: None,
            ..tls.clone()
        };
        let otlp = OtlpTransport::new(&with(anonymous)).unwrap();
        // With TLS 1.3 the client hears of it only after the handshake, from an alert or from the
        // connection's end.
        let (cause, _, _) = retry_of(otlp.attempt(&payload("b", 1)).await.outcome);
        let expected = [RetryCause::Connect, RetryCause::Transport];
        assert!(expected.contains(&cause), "{protocol:?}: {cause:?}");

        let stranger = TestTls::generate();
        let distrusting = Tls {
            ca_file: Some(stranger.ca_file()),
            ..tls.clone()
        };
        let otlp = OtlpTransport::new(&with(distrusting)).unwrap();
        let (cause, reason, _) = retry_of(otlp.attempt(&payload("b", 1)).await.outcome);
        assert_eq!(cause, RetryCause::Connect, "{protocol:?}: {reason}");
        assert!(reason.contains("invalid peer certificate"), "{reason}");
        assert_eq!(collector.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_server_name_is_asked_for_and_checked() {
    let files = TestTls::generate();
    for protocol in BOTH {
        let collector = Collector::start_tls(&files, false);
        let with = |name: &str| {
            let tls = Tls {
                ca_file: Some(files.ca_file()),
                server_name: Some(name.to_owned()),
                ..Tls::default()
            };
            made(&OtlpOutput {
                tls,
                ..config(collector.endpoint(), protocol)
            })
        };
        deliver(&with("collector.test"), payload("a", 1)).await;
        assert_eq!(bodies(&collector), ["a-0"]);
        let other = with("other.test").attempt(&payload("b", 1)).await;
        let (_, reason, _) = retry_of(other.outcome);
        assert!(reason.contains("other.test"), "{protocol:?}: {reason}");
    }
}

/// A server that reads what a client says first and answers with these bytes.
async fn speaks(answer: &'static [u8]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut head = [0; 1024];
        let _ = stream.read(&mut head).await.unwrap();
        stream.write_all(answer).await.unwrap();
        stream.shutdown().await.unwrap();
        // Until the client has gone.
        while stream.read(&mut head).await.is_ok_and(|read| read > 0) {}
    });
    endpoint
}

#[tokio::test]
async fn the_port_of_the_other_protocol_is_guessed() {
    let settings = b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64";
    let endpoint = speaks(settings).await;
    let http = OtlpTransport::new(&config(endpoint, Protocol::HttpProtobuf)).unwrap();
    let (_, reason, _) = retry_of(http.attempt(&payload("a", 1)).await.outcome);
    assert!(reason.contains("protocol: grpc"), "{reason}");

    let endpoint = speaks(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").await;
    let grpc = OtlpTransport::new(&config(endpoint, Protocol::Grpc)).unwrap();
    let (_, reason, _) = retry_of(grpc.attempt(&payload("a", 1)).await.outcome);
    assert!(reason.contains("protocol: http/protobuf"), "{reason}");
}

#[tokio::test]
async fn http_over_tls_falls_back_to_what_the_server_speaks() {
    // Without TLS there is no agreement on HTTP/2.
    let collector = Collector::start();
    deliver(&otlp(&collector, Protocol::HttpProtobuf), payload("a", 1)).await;
    assert_eq!(collector.requests()[0].version, "HTTP/1.1");
}

#[test]
fn a_client_is_made_without_a_runtime_and_shows_no_secret() {
    for protocol in BOTH {
        let mut config = config("http://127.0.0.1:1".to_owned(), protocol);
        config.headers = [("authorization".to_owned(), Secret::new("hunter2"))].into();
        assert!(!format!("{config:?}").contains("hunter2"));
        assert!(config.url().starts_with("http://127.0.0.1:1"));
        assert!(OtlpTransport::new(&config).is_ok());
    }
}
