//! `tailrace blackhole`: an OTLP endpoint that takes logs, counts them and keeps
//! nothing.
//!
//! Serves OTLP/HTTP (`POST /v1/logs`, over HTTP/1.1 and over HTTP/2 without
//! TLS) and OTLP/gRPC on one port, told apart by the content type. It counts
//! requests and bytes; with `decode` it also decompresses each request and
//! counts its log records, and `print` shows them. It never stores or forwards a record, and it is no
//! model of a slow or failing server.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

mod answer;
mod command;
mod count;
mod print;

pub use command::{Args, Summary, run};
pub use print::{Format, Print};

/// A running endpoint. Dropping it stops it; [`Blackhole::shutdown`] lets the
/// requests being answered finish first.
#[derive(Debug)]
pub struct Blackhole {
    addr: SocketAddr,
    state: Arc<State>,
    stop: watch::Sender<bool>,
    server: JoinHandle<()>,
    lines: Option<mpsc::Receiver<String>>,
}

/// What the endpoint does with a request.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decompress each request and count its log records. A request that cannot
    /// be decoded is answered with 400 (gRPC: `INVALID_ARGUMENT`).
    pub decode: bool,
    /// Print the records; needs `decode`. See [`Blackhole::take_lines`].
    pub print: Option<Print>,
    /// The largest body taken, in bytes, before and after decompression.
    pub body_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            decode: false,
            print: None,
            body_bytes_max: 64 << 20,
        }
    }
}

/// What has arrived so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests answered with success.
    pub requests: u64,
    /// Bytes of their bodies as they came: compressed, gRPC's framing included.
    pub wire_bytes: u64,
    /// Bytes of their messages after decompression; 0 without `decode`.
    pub message_bytes: u64,
    /// Log records in them; 0 without `decode`.
    pub records: u64,
    /// Requests answered with an error.
    pub refused: u64,
}

impl Blackhole {
    /// Listens on `addr` (port 0: any free one) and serves until it is stopped.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn bind(addr: SocketAddr, options: Options) -> io::Result<Blackhole> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let (printed, lines) = mpsc::channel(REQUESTS_WAITING_MAX);
        let printed = options.print.map(|_| printed);
        let lines = printed.is_some().then_some(lines);
        let state = Arc::new(State::new(options, printed));
        let (stop, stopped) = watch::channel(false);
        let server = tokio::spawn(serve(listener, Arc::clone(&state), stopped));
        Ok(Blackhole {
            addr,
            state,
            stop,
            server,
            lines,
        })
    }

    /// The address it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// With `print`, the lines of each request; once. A request is answered when its lines are taken, or a few others wait
    /// before them: who reads slowly slows the senders down.
    pub fn take_lines(&mut self) -> Option<mpsc::Receiver<String>> {
        self.lines.take()
    }

    /// What has arrived so far.
    pub fn counts(&self) -> Counts {
        self.state.counts()
    }

    /// Waits until at least `records` log records have been counted. Without
    /// `decode` that is never, unless `records` is 0.
    pub async fn wait_for_records(&self, records: u64) {
        loop {
            let arrival = self.state.arrival.notified();
            tokio::pin!(arrival);
            // Registered before the look at the count, so that no arrival
            // falls between the two.
            arrival.as_mut().enable();
            if self.counts().records >= records {
                return;
            }
            arrival.await;
        }
    }

    /// Takes no more connections, finishes the answers under way, and gives the
    /// final counts.
    pub async fn shutdown(self) -> Counts {
        self.stop.send_replace(true);
        let Blackhole { state, server, .. } = self;
        // The server task only ends; it neither panics nor is aborted here.
        let _ = server.await;
        state.counts()
    }
}

/// The most requests whose lines wait to be printed.
const REQUESTS_WAITING_MAX: usize = 16;

/// What all connections share.
#[derive(Debug)]
struct State {
    options: Options,
    /// Takes the lines to print.
    printed: Option<mpsc::Sender<String>>,
    requests: AtomicU64,
    wire_bytes: AtomicU64,
    message_bytes: AtomicU64,
    records: AtomicU64,
    refused: AtomicU64,
    /// Woken after each counted request.
    arrival: Notify,
}

impl State {
    fn new(options: Options, printed: Option<mpsc::Sender<String>>) -> State {
        State {
            options,
            printed,
            requests: AtomicU64::new(0),
            wire_bytes: AtomicU64::new(0),
            message_bytes: AtomicU64::new(0),
            records: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            arrival: Notify::new(),
        }
    }

    fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.load(Ordering::Relaxed),
            wire_bytes: self.wire_bytes.load(Ordering::Relaxed),
            message_bytes: self.message_bytes.load(Ordering::Relaxed),
            records: self.records.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    fn count(&self, received: &answer::Received) {
        self.wire_bytes
            .fetch_add(received.wire_bytes, Ordering::Relaxed);
        self.message_bytes
            .fetch_add(received.message_bytes, Ordering::Relaxed);
        self.records.fetch_add(received.records, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.arrival.notify_waiters();
    }

    fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.arrival.notify_waiters();
    }
}

/// Accepts connections until told to stop, then waits for the open ones.
async fn serve(listener: TcpListener, state: Arc<State>, stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    let told_to_stop = told_to_stop(stopped.clone());
    tokio::pin!(told_to_stop);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => {
                    connections.spawn(connection(socket, Arc::clone(&state), stopped.clone()));
                }
                // Out of descriptors, or a connection that was reset at once:
                // the listener itself is sound.
                Err(error) => {
                    tracing::warn!(%error, "blackhole: cannot accept a connection");
                    tokio::task::yield_now().await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = told_to_stop.as_mut() => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Ends when the endpoint is shut down or its handle is gone.
async fn told_to_stop(mut stopped: watch::Receiver<bool>) {
    // The error is that the handle is gone, which means the same.
    let _ = stopped.wait_for(|&stop| stop).await;
}

async fn connection(socket: TcpStream, state: Arc<State>, stopped: watch::Receiver<bool>) {
    // Answers are small: they should not wait for more.
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| answer::answer(request, Arc::clone(&state)));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Large windows: a load test measures the agent, not this end's credit.
    builder
        .http2()
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20);
    let connection = builder.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = told_to_stop(stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(error, "blackhole: connection ended");
    }
}

#[cfg(test)]
mod tests;
