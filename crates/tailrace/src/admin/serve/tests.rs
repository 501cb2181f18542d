//! Connections that are slow, silent, large or many, over real sockets.
#![allow(clippy::unwrap_used)]

use std::io;
use std::net::SocketAddr;

use axum::routing::get;
use tailrace_config::AdminAddress;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

const TEST_LIMITS: Limits = Limits {
    connections: 16,
    header_time: Duration::from_secs(3600),
    connection_time: Duration::from_secs(3600),
};

/// Serves `ok` at `/` and something that never comes at `/never`.
fn start(limits: Limits) -> SocketAddr {
    let any = AdminAddress::Tcp("127.0.0.1:0".parse().unwrap());
    let listener = Listener::bind(&any).unwrap();
    let AdminAddress::Tcp(address) = listener.address().unwrap() else {
        panic!("not over TCP");
    };
    let router = Router::new()
        .route("/", get(async || "ok"))
        .route("/never", get(std::future::pending::<&'static str>));
    tokio::spawn(async move { serve(listener, router, limits, &Table::default()).await });
    address
}

async fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // The other side may close before it has read all of it.
    let _ = stream.write_all(bytes).await;
    stream
}

/// All that comes until the connection ends.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

async fn ask(address: SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    rest(send(address, request.as_bytes()).await).await
}

/// Neither ended nor answered.
fn is_open(stream: &TcpStream) -> bool {
    let read = stream.try_read(&mut [0]);
    read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[tokio::test]
async fn connections_that_never_ask_give_way_and_are_never_more_than_may_be() {
    let address = start(TEST_LIMITS);
    let mut silent = Vec::new();
    for n in 0..1000 {
        let bytes: &[u8] = if n % 2 == 0 {
            b""
        } else {
            b"GET / HTTP/1.1\r\nx: "
        };
        silent.push(send(address, bytes).await);
    }
    assert!(ask(address, "/").await.ends_with("ok"));
    // All but the youngest were ended; none of these was answered. One place is kept free.
    let open = silent.split_off(1000 - (TEST_LIMITS.connections - 2));
    drop(silent.pop());
    for stream in silent {
        assert_eq!(rest(stream).await, "");
    }
    for mut stream in open {
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
        assert!(rest(stream).await.ends_with("ok"));
    }
}

#[tokio::test]
async fn large_heads_are_refused_however_they_come() {
    let address = start(TEST_LIMITS);
    let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(395_000));
    let mut floods = Vec::new();
    for _ in 0..100 {
        floods.push(send(address, long.as_bytes()).await);
    }
    assert!(ask(address, "/").await.ends_with("ok"));
    for flood in floods {
        let answer = rest(flood).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 431 "),
            "{answer}"
        );
    }
    let many = (0..HEADERS_MAX + 1).map(|n| format!("x-{n}: y\r\n"));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", many.collect::<String>());
    let answer = rest(send(address, many.as_bytes()).await).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn heads_and_connections_that_take_too_long_are_ended() {
    let at_once = Duration::from_millis(1);
    let address = start(Limits {
        header_time: at_once,
        ..TEST_LIMITS
    });
    let slow = send(address, b"GET / HTTP/1.1\r\n").await;
    assert!(!rest(slow).await.contains("200 OK"));
    let address = start(Limits {
        connection_time: at_once,
        ..TEST_LIMITS
    });
    assert_eq!(rest(send(address, b"").await).await, "");
    // While an answer is being made, a connection stays.
    let waiting = send(address, b"GET /never HTTP/1.1\r\nhost: a\r\n\r\n").await;
    assert_eq!(rest(send(address, b"").await).await, "");
    assert!(is_open(&waiting));
}

#[tokio::test]
async fn a_connection_serves_one_request_and_what_waits_is_never_thrown_out() {
    let address = start(TEST_LIMITS);
    let twice = "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(2);
    let answer = rest(send(address, twice.as_bytes()).await).await;
    assert_eq!(answer.matches("200 OK").count(), 1, "{answer}");
    let mut waiting = Vec::new();
    for _ in 0..TEST_LIMITS.connections - 2 {
        waiting.push(send(address, b"GET /never HTTP/1.1\r\nhost: a\r\n\r\n").await);
    }
    for _ in 0..100 {
        assert!(ask(address, "/").await.ends_with("ok"));
    }
    for stream in waiting {
        assert!(is_open(&stream));
    }
}

#[tokio::test]
async fn an_answer_on_its_way_outlives_the_listener() {
    let any = AdminAddress::Tcp("127.0.0.1:0".parse().unwrap());
    let listener = Listener::bind(&any).unwrap();
    let AdminAddress::Tcp(address) = listener.address().unwrap() else {
        panic!("not over TCP");
    };
    let (ready, table) = (Arc::new(tokio::sync::Notify::new()), Table::default());
    let (waits, of_server) = (Arc::clone(&ready), Arc::clone(&table));
    let answer = get(async move || {
        waits.notified().await;
        "ok"
    });
    let router = Router::new().route("/", answer);
    let server =
        tokio::spawn(async move { serve(listener, router, TEST_LIMITS, &of_server).await });
    let silent = send(address, b"").await;
    let asks = send(address, b"GET / HTTP/1.0\r\n\r\n").await;
    let has_asked = |connection: &Connection| connection.state.has_asked.load(Ordering::Relaxed);
    while !locked(&table).values().any(has_asked) {
        tokio::task::yield_now().await;
    }
    server.abort();
    let answered = async {
        ready.notify_one();
        rest(asks).await
    };
    let (answered, ()) = tokio::join!(answered, finish(&table));
    assert!(answered.ends_with("ok"), "{answered:?}");
    // Whoever has not asked is not waited for.
    assert!(is_open(&silent) && !locked(&table).values().any(has_asked));
}
