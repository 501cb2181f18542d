//! The client side of the admin endpoint, for the commands that ask a running agent.

pub(crate) mod peer;

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Bytes;
use tailrace_config::AdminAddress;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// The path of the ledger.
pub(crate) const LEDGER_PATH: &str = "/api/v1/ledger";
/// The path of the status page: what the agent is, and which config it has.
pub(crate) const STATUS_PATH: &str = "/api/v1/status";
/// The path of the recent reasons.
pub(crate) const REASONS_PATH: &str = "/api/v1/reasons";
/// The path of the sources.
pub(crate) const SOURCES_PATH: &str = "/api/v1/sources";
/// How long an agent on this machine may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The longest answer of an agent; a longer one comes from something else.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Asks a running agent, and blocks until it has answered.
///
/// # Errors
///
/// The agent cannot be reached in time, or refuses.
pub(crate) fn ask(admin: impl Into<AdminAddress>, path: &str) -> anyhow::Result<Bytes> {
    successful(ask_any(admin, path)?)
}

/// Like [`ask`], and an answer that refuses is an answer.
///
/// # Errors
///
/// The agent cannot be reached in time.
pub(crate) fn ask_any(
    admin: impl Into<AdminAddress>,
    path: &str,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let admin = admin.into();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let asked = async { tokio::time::timeout(TIMEOUT, fetch_any(&admin, path, None)).await };
    runtime
        .block_on(asked)
        .map_err(|_| anyhow!("no answer within {} s", TIMEOUT.as_secs()))
        .and_then(|fetched| fetched)
}

/// Asks an admin endpoint.
///
/// # Errors
///
/// It cannot be reached, refuses, or answers with more than an agent would.
pub(crate) async fn fetch(admin: impl Into<AdminAddress>, path: &str) -> anyhow::Result<Bytes> {
    fetch_with(admin, path, None).await
}

/// Asks an admin endpoint, with the value of `Authorization`.
///
/// # Errors
///
/// As of [`fetch`].
pub(crate) async fn fetch_with(
    admin: impl Into<AdminAddress>,
    path: &str,
    token: Option<&HeaderValue>,
) -> anyhow::Result<Bytes> {
    successful(fetch_any(&admin.into(), path, token).await?)
}

fn successful((status, body): (StatusCode, Bytes)) -> anyhow::Result<Bytes> {
    if !status.is_success() {
        bail!(refusal(status, &body));
    }
    Ok(body)
}

async fn fetch_any(
    admin: &AdminAddress,
    path: &str,
    token: Option<&HeaderValue>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    match admin {
        AdminAddress::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            converse(stream, &address.to_string(), path, token).await
        }
        AdminAddress::Unix(socket) => {
            let stream = UnixStream::connect(socket).await?;
            peer::check(&stream, socket)?;
            converse(stream, "localhost", path, token).await
        }
    }
}

/// Sends one request, and reads the answer.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    host: &str,
    path: &str,
    token: Option<&HeaderValue>,
) -> anyhow::Result<(StatusCode, Bytes)> {
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
    let mut request = http::Request::get(path)
        .header(http::header::HOST, host)
        .body(Empty::<Bytes>::new())?;
    if let Some(token) = token {
        let headers = request.headers_mut();
        headers.insert(http::header::AUTHORIZATION, token.clone());
    }
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        match body.collect().await {
            Ok(body) => Ok((status, body.to_bytes())),
            Err(error) if error.is::<LengthLimitError>() => bail!(
                "its answer is longer than {} MiB: is that a Tailrace agent?",
                ANSWER_BYTES_MAX >> 20
            ),
            Err(error) => Err(anyhow!(error)),
        }
    };
    tokio::pin!(answer);
    tokio::select! {
        answer = &mut answer => answer,
        ended = connection => {
            ended?;
            answer.await
        }
    }
}

/// What an agent says that does not answer.
fn refusal(status: http::StatusCode, body: &[u8]) -> String {
    let body: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let said = body.as_ref().and_then(|body| {
        let keys = ["error", "reason"].into_iter();
        keys.filter_map(|key| body[key].as_str()).next()
    });
    match said {
        Some(said) => format!("it answered {status}: {said}"),
        None => format!("it answered {status}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// The error of a client whose server answers with this head, and then with as many bytes as the client takes.
    fn asked(head: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 4096]);
            let mut sent = stream.write_all(head.as_bytes());
            let chunk = format!("10000\r\n{}\r\n", " ".repeat(65_536));
            let mut bytes = 0;
            while sent.is_ok() {
                sent = stream.write_all(chunk.as_bytes());
                bytes += chunk.len();
            }
            bytes
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let error = runtime
            .block_on(fetch(address, LEDGER_PATH))
            .expect_err("no answer");
        drop(runtime);
        let bytes = server.join().expect("the server ends");
        assert!(bytes < 64 * ANSWER_BYTES_MAX, "{bytes}");
        error.to_string()
    }

    #[test]
    fn an_answer_without_an_end_is_given_up() {
        let body = asked("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        assert!(body.contains("longer than 4 MiB"), "{body}");
        // Headers are bounded by the client.
        asked("HTTP/1.1 200 OK\r\nx: ");
    }
}
