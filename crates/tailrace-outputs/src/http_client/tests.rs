//! Clients against real servers on loopback: what messages say, and the way through a proxy.

mod messages;
mod proxies;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use prost::Message;
use tailrace_otlp::Compression;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::delivery::{Outcome, Payload, Transport};
use crate::otlp::{OtlpOutput, OtlpTransport, Protocol};

fn config(endpoint: &str, protocol: Protocol) -> OtlpOutput {
    OtlpOutput {
        endpoint: Some(endpoint.to_owned()),
        protocol,
        // Longer than any test waits.
        timeout: Duration::from_secs(60),
        ..OtlpOutput::default()
    }
}

/// Sends a request of one record.
async fn attempt(config: &OtlpOutput) -> Outcome {
    let scope_logs = vec![ScopeLogs {
        log_records: vec![LogRecord::default()],
        ..ScopeLogs::default()
    }];
    let resource_logs = vec![ResourceLogs {
        scope_logs,
        ..ResourceLogs::default()
    }];
    let bytes = ExportLogsServiceRequest { resource_logs }.encode_to_vec();
    let payload = Payload {
        uncompressed_bytes: bytes.len() as u64,
        bytes: Bytes::from(bytes),
        compression: Compression::None,
        records: 1,
    };
    let transport = OtlpTransport::new(config).unwrap();
    transport.attempt(&payload).await.outcome
}

fn reason(outcome: Outcome) -> String {
    match outcome {
        Outcome::Retry { reason, .. }
        | Outcome::TooLarge { reason }
        | Outcome::Refused { reason }
        | Outcome::Hold { reason }
        | Outcome::Closed { reason } => reason,
        Outcome::Delivered { .. } => panic!("delivered"),
    }
}

/// Reads the head of a request.
async fn read_head(socket: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match socket.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// A server that answers the head of each request with a text, and then closes the connection.
async fn server(answer: impl Fn(&str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let head = read_head(&mut socket).await;
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.split("\r\n").next()?.parse().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            let _ = socket.read_exact(&mut body).await;
            let _ = socket.write_all(answer(&head).as_bytes()).await;
        }
    });
    address
}

fn response(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// A port at which nobody listens.
async fn closed_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    listener.local_addr().unwrap().port()
}

/// What a proxy was asked.
type Heads = Arc<Mutex<Vec<String>>>;

/// A proxy that leads everything to one address, or that refuses to.
async fn proxy(upstream: Option<SocketAddr>, refusal: &'static str) -> (SocketAddr, Heads) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Heads::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let head = read_head(&mut socket).await;
            seen.lock().unwrap().push(head.clone());
            let Some(upstream) = upstream else {
                let _ = socket.write_all(response(refusal, "no").as_bytes()).await;
                continue;
            };
            let mut server = TcpStream::connect(upstream).await.unwrap();
            if head.starts_with("CONNECT ") {
                let connected = b"HTTP/1.1 200 Connection established\r\n\r\n";
                socket.write_all(connected).await.unwrap();
            } else {
                server.write_all(head.as_bytes()).await.unwrap();
            }
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut socket, &mut server).await;
            });
        }
    });
    (address, heads)
}
