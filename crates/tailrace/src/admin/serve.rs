//! Serves HTTP/1 within bounds, whatever clients do. The number of connections, the size of headers, the time to send them
//! and the share of one core for all clients together are limited; each connection serves one request. This module knows
//! no path.
//!
//! Idle connections do not keep others out: at the limit, a new one replaces the oldest that has not sent a whole request.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::task::AbortHandle;
use tracing::warn;

use super::budget::Budget;
use super::cpu::ThreadClock;
use super::listen::{Listener, Peer, Stream};

/// Open connections at a time; fewer where the process may open few files.
const CONNECTIONS_MAX: usize = 64;
/// Of so many descriptors one is for a connection at most: the others are for logs.
const DESCRIPTORS_PER_CONNECTION: u64 = 16;
/// The head of a request.
const HEADER_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// The share of one core for all of them, and what may be saved up of it. It counts where nobody else wants the core, or
/// the process has a quota: else the thread gives way.
const CPU_PART: u32 = 20;
const CPU_BURST: Duration = Duration::from_millis(200);
/// Pauses are not shorter, so that several connections are accepted after one, and not longer: nobody waits for more on
/// account of others.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// How long the end of the process waits for answers that are being sent.
pub(super) const FINISH_TIME: Duration = Duration::from_secs(1);
/// After the kernel had no connection to give.
const ERROR_PAUSE: Duration = Duration::from_millis(50);
/// A connection has at least this long to send its request, and no other one is accepted where all are younger.
const GRACE: Duration = Duration::from_millis(20);
const FULL_PAUSE: Duration = Duration::from_millis(5);

/// How much of connections is borne.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// How many at a time.
    connections: usize,
    /// How long the head of a request may take to come.
    header_time: Duration,
    /// How long a connection may take, unless the answer is still being made.
    connection_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let share = descriptors.unwrap_or(u64::MAX) / DESCRIPTORS_PER_CONNECTION;
        let share = usize::try_from(share).unwrap_or(usize::MAX);
        Self {
            connections: share.clamp(4, CONNECTIONS_MAX),
            header_time: Duration::from_secs(5),
            connection_time: Duration::from_secs(10),
        }
    }
}

/// The connections that are open, the oldest first.
pub(super) type Table = Arc<Mutex<BTreeMap<u64, Connection>>>;

#[derive(Debug)]
pub(super) struct Connection {
    task: AbortHandle,
    since: Instant,
    /// What it does.
    state: Arc<Conversation>,
}

/// What a connection does.
#[derive(Debug, Default)]
struct Conversation {
    /// Its request has come.
    has_asked: AtomicBool,
    /// An answer is being made.
    is_busy: AtomicBool,
}

/// Serves until the future is dropped; every connection ends with it. It counts what its thread takes of the processor, so
/// that it has to be a thread of its own.
pub(super) async fn serve(listener: Listener, router: Router, limits: Limits, table: &Table) {
    let (clock, begin) = (ThreadClock::new(), Instant::now());
    let mut budget = Budget::new(CPU_PART, CPU_BURST);
    let mut cpu = clock.now();
    // Where all descriptors are in use, this one makes room for a connection.
    let mut spare = File::open("/dev/null").ok();
    for id in 0_u64.. {
        let cpu_now = clock.now();
        budget.take(cpu_now.saturating_sub(cpu), begin.elapsed());
        cpu = cpu_now;
        let pause = budget.wait();
        if pause >= PAUSE_MIN {
            tokio::time::sleep(pause.min(PAUSE_MAX)).await;
        }
        while !make_room(table, limits.connections) {
            tokio::time::sleep(FULL_PAUSE).await;
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                let router = router.clone();
                let converse = |state| converse(stream, peer, router, limits, state);
                open(id, converse, table);
                spare = spare.or_else(|| File::open("/dev/null").ok());
            }
            Err(_) if spare.take().is_some() => {}
            Err(error) => {
                warn!(%error, "the admin endpoint cannot accept a connection");
                tokio::time::sleep(ERROR_PAUSE).await;
                spare = File::open("/dev/null").ok();
            }
        }
    }
}

/// Nothing is accepted any more: waits until those who have asked have their answers, for a moment at most.
pub(super) async fn finish(table: &Table) {
    let until = Instant::now() + FINISH_TIME;
    let has_asked = |connection: &Connection| connection.state.has_asked.load(Ordering::Relaxed);
    while Instant::now() < until && locked(table).values().any(has_asked) {
        tokio::time::sleep(FULL_PAUSE).await;
    }
}

/// Whether one more connection may be opened. Ends the oldest without an answer to make, if there are as many as may be.
fn make_room(table: &Table, connections_max: usize) -> bool {
    let mut table = locked(table);
    if table.len() < connections_max {
        return true;
    }
    let may_end = |connection: &Connection| {
        !connection.state.is_busy.load(Ordering::Relaxed) && connection.since.elapsed() >= GRACE
    };
    let oldest = table.iter().find(|(_, connection)| may_end(connection));
    let oldest = oldest.map(|(&id, _)| id);
    let ended = oldest.and_then(|id| table.remove(&id));
    ended
        .inspect(|connection| connection.task.abort())
        .is_some()
}

fn open<F: Future<Output = ()> + Send + 'static>(
    id: u64,
    converse: impl FnOnce(Arc<Conversation>) -> F,
    table: &Table,
) {
    let state = Arc::<Conversation>::default();
    let (conversation, ended) = (converse(Arc::clone(&state)), Arc::clone(table));
    // Held until the connection is in the table, so that it cannot end before.
    let mut table = locked(table);
    let task = tokio::spawn(async move {
        conversation.await;
        locked(&ended).remove(&id);
    });
    let task = task.abort_handle();
    let since = Instant::now();
    table.insert(id, Connection { task, since, state });
}

/// Answers one request.
async fn converse(
    stream: Box<dyn Stream>,
    peer: Peer,
    router: Router,
    limits: Limits,
    state: Arc<Conversation>,
) {
    let routes = TowerToHyperService::new(router);
    let of_request = Arc::clone(&state);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        of_request.has_asked.store(true, Ordering::Relaxed);
        of_request.is_busy.store(true, Ordering::Relaxed);
        let (answer, state) = (routes.call(request), Arc::clone(&of_request));
        async move {
            let answer = answer.await;
            state.is_busy.store(false, Ordering::Relaxed);
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .max_buf_size(HEADER_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    loop {
        tokio::select! {
            // What the other side did wrong is answered or ended by hyper.
            _ = &mut connection => return,
            () = tokio::time::sleep(limits.connection_time) => {
                if !state.is_busy.load(Ordering::Relaxed) {
                    return;
                }
            }
        }
    }
}

fn locked(table: &Mutex<BTreeMap<u64, Connection>>) -> MutexGuard<'_, BTreeMap<u64, Connection>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
