//! The endpoint over real sockets: both protocols, both HTTP versions, every
//! encoding, every refusal.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use prost::Message as _;
use tailrace_otlp::{Compression, Compressor};
use tailrace_outputs::otlp::rpc;

use super::*;

/// An `ExportLogsServiceRequest` of `records` empty log records (at most 60).
fn message(records: u8) -> Vec<u8> {
    let scope: Vec<u8> = (0..records).flat_map(|_| [0x12, 0]).collect();
    let mut resource = vec![0x12, scope.len() as u8];
    resource.extend(scope);
    let mut request = vec![0x0a, resource.len() as u8];
    request.extend(resource);
    request
}

fn grpc_frame(flag: u8, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![flag];
    frame.extend_from_slice(&(message.len() as u32).to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

async fn bind(decode: bool) -> Blackhole {
    let options = Options {
        decode,
        body_bytes_max: 4096,
        ..Options::default()
    };
    Blackhole::bind((Ipv4Addr::LOCALHOST, 0).into(), options)
        .await
        .unwrap()
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    trailers: HeaderMap,
}

async fn send(to: &Blackhole, http2: bool, request: Request<Full<Bytes>>) -> Answer {
    let io = TokioIo::new(TcpStream::connect(to.addr()).await.unwrap());
    let response = if http2 {
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
                .await
                .unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        tokio::spawn(connection);
        sender.send_request(request).await.unwrap()
    };
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap();
    let trailers = body.trailers().cloned().unwrap_or_default();
    Answer {
        status: head.status,
        headers: head.headers,
        body: body.to_bytes(),
        trailers,
    }
}

fn http_request(to: &Blackhole, encoding: Option<&str>, body: Vec<u8>) -> Request<Full<Bytes>> {
    let mut request = Request::post(format!("http://{}/v1/logs", to.addr()))
        .header("host", "localhost")
        .header("content-type", "application/x-protobuf");
    if let Some(encoding) = encoding {
        request = request.header("content-encoding", encoding);
    }
    request.body(Full::new(Bytes::from(body))).unwrap()
}

fn grpc_request(to: &Blackhole, encoding: Option<&str>, body: Vec<u8>) -> Request<Full<Bytes>> {
    let method = "opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let mut request = Request::post(format!("http://{}/{method}", to.addr()))
        .header("content-type", "application/grpc+proto")
        .header("te", "trailers");
    if let Some(encoding) = encoding {
        request = request.header("grpc-encoding", encoding);
    }
    request.body(Full::new(Bytes::from(body))).unwrap()
}

#[tokio::test]
async fn http_requests_are_counted_in_every_encoding_and_version() {
    let blackhole = bind(true).await;
    let mut wire_bytes = 0;
    for http2 in [false, true] {
        for (name, compression) in [
            (None, Compression::None),
            (Some("gzip"), Compression::Gzip),
            (Some("zstd"), Compression::Zstd),
        ] {
            let body = Compressor::new(compression, 1).compress(&message(3));
            wire_bytes += body.len() as u64;
            let answer = send(&blackhole, http2, http_request(&blackhole, name, body)).await;
            assert_eq!(answer.status, StatusCode::OK, "{name:?}");
            assert_eq!(answer.headers["content-type"], "application/x-protobuf");
            assert!(answer.body.is_empty(), "an empty response message");
        }
    }
    let message_bytes = 6 * message(3).len() as u64;
    let expected = Counts {
        requests: 6,
        wire_bytes,
        message_bytes,
        records: 18,
        refused: 0,
    };
    assert_eq!(blackhole.counts(), expected);
    blackhole.wait_for_records(18).await;
    assert_eq!(blackhole.shutdown().await, expected);
}

#[tokio::test]
async fn grpc_requests_are_answered_with_a_message_and_trailers() {
    let blackhole = bind(true).await;
    let plain = grpc_frame(0, &message(2));
    let packed = grpc_frame(
        1,
        &Compressor::new(Compression::Zstd, 1).compress(&message(5)),
    );
    let wire_bytes = (plain.len() + packed.len()) as u64;
    for (encoding, body) in [(None, plain), (Some("zstd"), packed)] {
        let answer = send(&blackhole, true, grpc_request(&blackhole, encoding, body)).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.headers["content-type"], "application/grpc");
        assert_eq!(&answer.body[..], [0; 5], "one empty message");
        assert_eq!(answer.trailers["grpc-status"], "0");
    }
    let counts = blackhole.counts();
    assert_eq!(
        (counts.requests, counts.records, counts.wire_bytes),
        (2, 7, wire_bytes)
    );
}

#[tokio::test]
async fn without_decode_only_requests_and_bytes_are_counted() {
    let blackhole = bind(false).await;
    let answer = send(
        &blackhole,
        false,
        http_request(&blackhole, Some("br"), b"anything".to_vec()),
    )
    .await;
    assert_eq!(answer.status, StatusCode::OK);
    let expected = Counts {
        requests: 1,
        wire_bytes: 8,
        ..Counts::default()
    };
    assert_eq!(blackhole.counts(), expected);
}

#[tokio::test]
async fn http_refusals_have_a_status_and_a_reason() {
    let blackhole = bind(true).await;
    let json = Request::post(format!("http://{}/v1/logs", blackhole.addr()))
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from("{}")))
        .unwrap();
    let traces = Request::post(format!("http://{}/v1/traces", blackhole.addr()))
        .header("host", "localhost")
        .body(Full::default())
        .unwrap();
    let get = Request::get(format!("http://{}/v1/logs", blackhole.addr()))
        .header("host", "localhost")
        .body(Full::default())
        .unwrap();
    let cases = [
        (http_request(&blackhole, None, vec![0xff; 9]), 400),
        (
            http_request(&blackhole, Some("gzip"), b"no gzip".to_vec()),
            400,
        ),
        (http_request(&blackhole, Some("br"), message(1)), 415),
        (http_request(&blackhole, None, vec![0; 5000]), 413),
        (json, 415),
        (traces, 404),
        (get, 405),
    ];
    let refused = cases.len() as u64;
    for (request, status) in cases {
        let answer = send(&blackhole, false, request).await;
        assert_eq!(answer.status.as_u16(), status);
        let status = rpc::Status::decode(answer.body).unwrap();
        assert!(!status.message.is_empty());
    }
    assert_eq!(
        blackhole.counts(),
        Counts {
            refused,
            ..Counts::default()
        }
    );
}

#[tokio::test]
async fn grpc_refusals_have_their_status_in_the_headers() {
    let blackhole = bind(true).await;
    let mut unknown = grpc_request(&blackhole, None, grpc_frame(0, &message(1)));
    *unknown.uri_mut() = format!("http://{}/some.Other/Method", blackhole.addr())
        .parse()
        .unwrap();
    let mut short = grpc_frame(0, &message(1));
    short.pop();
    let cases = [
        (unknown, "12"),
        (
            grpc_request(&blackhole, Some("snappy"), grpc_frame(1, b"x")),
            "12",
        ),
        (grpc_request(&blackhole, None, short), "3"),
        (
            grpc_request(&blackhole, None, grpc_frame(1, &message(1))),
            "3",
        ),
        (grpc_request(&blackhole, None, vec![0; 5000]), "8"),
    ];
    for (request, status) in cases {
        let answer = send(&blackhole, true, request).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.headers["grpc-status"], status);
        assert!(answer.body.is_empty());
    }
    assert_eq!(blackhole.counts().requests, 0);
}

#[tokio::test]
async fn after_shutdown_nothing_listens() {
    let blackhole = bind(false).await;
    let addr = blackhole.addr();
    // An idle kept-alive connection must not hold the shutdown up.
    let _idle = TcpStream::connect(addr).await.unwrap();
    blackhole.shutdown().await;
    assert!(TcpStream::connect(addr).await.is_err());
}

/// A reader that is slow, or gone, delays requests but loses none, and the end waits for nobody.
#[tokio::test]
async fn records_are_printed_in_both_formats_as_they_arrive() {
    for (format, expected) in [
        (Format::Text, "- -     - "),
        (Format::Json, "\"severity\":\"-\""),
    ] {
        let print = Print {
            format,
            records_max: usize::MAX,
            colours: false,
        };
        let options = Options {
            decode: true,
            print: Some(print),
            ..Options::default()
        };
        let mut to = Blackhole::bind((Ipv4Addr::LOCALHOST, 0).into(), options)
            .await
            .unwrap();
        let mut lines = to.take_lines().unwrap();
        assert!(to.take_lines().is_none());
        let answer = send(&to, false, http_request(&to, None, message(3))).await;
        assert_eq!(answer.status, StatusCode::OK);
        let printed = lines.recv().await.unwrap();
        assert_eq!(printed.lines().count(), 3, "{printed}");
        assert!(printed.contains(expected), "{printed}");
        drop(lines);
        let answer = send(&to, false, http_request(&to, None, message(2))).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(to.shutdown().await.records, 5);
    }
}
