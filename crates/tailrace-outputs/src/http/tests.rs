//! The HTTP output against servers of a few lines, and its array against serde_json.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use tailrace_otlp::{Encoding, NdjsonEncoding};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::json_array::JsonArrayEncoding;
use super::*;

/// What a server got.
struct Got {
    head: String,
    body: Vec<u8>,
}

/// A server that reads one request and gives this answer.
async fn server(answer: &'static str) -> (String, JoinHandle<Got>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/in?tenant=1", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        let head = loop {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
            let end = read.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                break String::from_utf8(read.drain(..end + 4).collect()).unwrap();
            }
        };
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap();
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        while read.len() < length {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        Got { head, body: read }
    });
    (url, served)
}

fn output(options: &str) -> Result<Arc<dyn Output>, String> {
    let text = format!("type: http\n{options}");
    let source = tailrace_schema::source::Source::new("t.yaml", text);
    let mut diagnostics = Vec::new();
    let node = tailrace_schema::yaml::parse(&source, &mut diagnostics).unwrap();
    let mut reader = Reader::new(&|_| None);
    let output = (TYPE.read)(&node, &mut reader, &["type"]);
    diagnostics.extend(reader.finish().0);
    match (output, diagnostics.first()) {
        (Some(output), None) => Ok(output),
        (_, first) => Err(first.unwrap().to_string()),
    }
}

fn payload(text: &'static str) -> Payload {
    Payload {
        bytes: Bytes::from_static(text.as_bytes()),
        compression: Compression::None,
        records: 1,
        uncompressed_bytes: text.len() as u64,
    }
}

async fn attempt(options: &str, answer: &'static str) -> (Outcome, Got) {
    let (url, served) = server(answer).await;
    let output = output(&format!("endpoint: {url}\n{options}")).unwrap();
    let transport = output.open().unwrap().transport;
    let answered = transport.attempt(&payload("{\"a\":1}\n")).await;
    (answered.outcome, served.await.unwrap())
}

#[tokio::test]
async fn a_request_has_the_method_headers_and_body_that_were_asked_for() {
    let answer = "HTTP/1.1 204 No Content\r\n\r\n";
    let (outcome, got) = attempt("method: PUT\nheaders: {X-Token: abc}", answer).await;
    assert!(matches!(outcome, Outcome::Delivered { rejected: 0, .. }));
    assert!(
        got.head.starts_with("put /in?tenant=1 http/1.1\r\n"),
        "{}",
        got.head
    );
    assert!(got.head.contains("\r\nx-token: abc\r\n"), "{}", got.head);
    assert!(
        got.head
            .contains("\r\ncontent-type: application/x-ndjson\r\n")
    );
    assert!(!got.head.contains("content-encoding"), "{}", got.head);
    assert_eq!(got.body, b"{\"a\":1}\n");
}

#[tokio::test]
async fn a_body_that_is_a_word_is_a_success_and_a_page_is_none() {
    let word = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    assert!(matches!(
        attempt("", word).await.0,
        Outcome::Delivered { .. }
    ));
    for (head, body) in [
        ("content-type: text/html\r\n", "<html>"),
        (
            "Content-Type: Text/HTML; charset=utf-8\r\n",
            "log in <a href=/>here</a>",
        ),
        (
            "content-type: text/plain\r\n",
            "\n<!DOCTYPE html><p>Please log in",
        ),
        ("", "<!-- a page -->\n<HTML><body>"),
        ("", "\u{feff}<!DOCTYPE html><p>Please log in"),
        (
            "content-type: text/html\r\ncontent-encoding: gzip\r\n",
            "\u{1f}compressed",
        ),
    ] {
        match attempt("", answer(200, head, body)).await.0 {
            Outcome::Hold { reason } => assert!(reason.contains("a web page"), "{reason}"),
            other => panic!("{head}{body}: {other:?}"),
        }
    }
    // What a few lines of Flask or PHP answer, and S3.
    for (status, head, body) in [
        (204, "content-type: text/html\r\n", ""),
        (200, "content-type: text/html\r\n", ""),
        (200, "content-type: text/html\r\n", "ok"),
        (
            200,
            "content-type: application/xml\r\n",
            "<?xml version=\"1.0\"?><Ok/>",
        ),
    ] {
        let outcome = attempt("", answer(status, head, body)).await.0;
        let is_delivered = matches!(outcome, Outcome::Delivered { rejected: 0, .. });
        assert!(is_delivered, "{status} {head}{body}: {outcome:?}");
    }
}

fn answer(status: u16, head: &str, body: &str) -> &'static str {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status} X\r\n{head}content-length: {length}\r\n\r\n{body}");
    Box::leak(answer.into_boxed_str())
}

/// The status accepts. That the rest of the answer does not come, because the server waits or has gone, changes nothing.
#[tokio::test]
async fn a_success_is_one_without_the_end_of_its_body() {
    const BROKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf";
    const PAGE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 1000\r\n\r\n";
    for (answer, is_page) in [(BROKEN, false), (PAGE, true)] {
        for outcome in [attempt("", answer).await.0, stalled(answer).await] {
            match (&outcome, is_page) {
                (Outcome::Delivered { rejected: 0, .. }, false) => {}
                (Outcome::Hold { reason }, true) => {
                    assert!(reason.contains("0 bytes so far"), "{reason}");
                }
                _ => panic!("{answer}: {outcome:?}"),
            }
        }
    }
}

/// The outcome where nothing comes behind this.
async fn stalled(answer: &str) -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let output = output(&format!("endpoint: {url}\ntimeout: 3s")).unwrap();
    let transport = output.open().unwrap().transport;
    let slow = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut read = Vec::new();
        while !read.ends_with(b"}\n") {
            assert!(stream.read_buf(&mut read).await.unwrap() > 0);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    };
    let payload = payload("{\"a\":1}\n");
    let answered = tokio::select! {
        answered = transport.attempt(&payload) => answered,
        () = slow => unreachable!(),
    };
    answered.outcome
}

#[tokio::test]
async fn statuses_mean_what_they_mean_to_otlp() {
    for (status, expected) in [
        (400, "Refused"),
        (401, "Hold"),
        (413, "TooLarge"),
        (422, "Refused"),
        (429, "Retry"),
        (500, "Hold"),
        (503, "Retry"),
    ] {
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        let outcome = attempt("", Box::leak(answer.into_boxed_str())).await.0;
        let outcome = format!("{outcome:?}");
        assert!(outcome.starts_with(expected), "{status}: {outcome}");
    }
}

#[test]
fn options_that_cannot_be_are_refused() {
    for (options, expected) in [
        ("", "endpoint"),
        ("endpoint: logs.example.com", "http://"),
        ("endpoint: http://h\nmethod: GET", "a method with a body"),
        ("endpoint: http://h\nmethod: post", "capitals"),
        (
            "endpoint: http://h\nheaders: {content-type: a}",
            "set by the output",
        ),
        (
            "endpoint: http://h\nheaders: {x: \"a\\nb\"}",
            "a text on one line",
        ),
        (
            "endpoint: http://h\nretry: {initial: 2s, max: 1s}",
            "longer than retry.max",
        ),
        ("endpoint: http://h\ntls: {ca_file: /a}", "does not use TLS"),
    ] {
        let error = output(options).unwrap_err();
        assert!(error.contains(expected), "{options}: {error}");
    }
    assert!(output("endpoint: http://h\nmethod: REPORT").is_ok());
}

/// An array of these texts, as its encoder would make it, and where each object ends.
fn array(texts: &[String]) -> (Vec<u8>, Vec<u32>) {
    let (mut bytes, mut ends) = (b"[".to_vec(), Vec::new());
    for text in texts {
        serde_json::to_writer(&mut bytes, &serde_json::json!({ "t": text })).unwrap();
        bytes.push(b',');
        ends.push(u32::try_from(bytes.len()).unwrap());
    }
    *bytes.last_mut().unwrap() = b']';
    (bytes, ends)
}

proptest! {
    #[test]
    fn parts_of_an_array_are_arrays(
        texts in prop::collection::vec(".{0,6}", 1..8),
        from in any::<prop::sample::Index>(),
        to in any::<prop::sample::Index>(),
    ) {
        let encoding = JsonArrayEncoding { lines: NdjsonEncoding::default() };
        let (bytes, ends) = array(&texts);
        let start = from.index(texts.len());
        let range = start..start + 1 + to.index(texts.len() - start);
        let cut = encoding.cut(&bytes, &ends, range.clone());
        prop_assert_eq!((cut.bytes, cut.ends), array(&texts[range]));
    }
}
