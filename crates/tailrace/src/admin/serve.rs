//! Serves HTTP/1 within bounds, whoever asks and however: so many connections, one request each, so many bytes of headers,
//! so much time for them, and so much of one core for all together. Takes a listener and routes; knows no path.
//!
//! Too many connections do not keep others out: the oldest that has sent no whole request gives way to a new one.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::AbortHandle;
use tracing::warn;

use super::budget::Budget;

/// Open connections at a time; fewer where the process may open few files.
const CONNECTIONS_MAX: usize = 64;
/// Of so many descriptors one is for a connection at most: the others are for logs.
const DESCRIPTORS_PER_CONNECTION: u64 = 16;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 256;
/// What the kernel keeps for a connection, in each direction.
const SOCKET_BYTES: u32 = 32 * 1024;
/// The head of a request.
const HEADER_BYTES_MAX: usize = 16 * 1024;
const HEADERS_MAX: usize = 64;
/// The share of one core for connections, and what may be saved up of it.
const CPU_PART: u32 = 50;
const CPU_BURST: Duration = Duration::from_millis(500);
/// But nobody waits for longer than this on account of others.
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// After the kernel had no connection to give.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

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

/// Binds an address for [`serve`]. Needs to be called in a runtime.
///
/// # Errors
///
/// Those of the system.
pub(super) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The connections that are open, the oldest first.
type Table = Arc<Mutex<BTreeMap<u64, Connection>>>;

#[derive(Debug)]
struct Connection {
    task: AbortHandle,
    /// An answer is being made.
    is_busy: Arc<AtomicBool>,
}

/// Serves until the future is dropped; every connection ends with it.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: Limits) {
    let table = Table::default();
    let metrics = tokio::runtime::Handle::current().metrics();
    let begin = Instant::now();
    let mut budget = Budget::new(CPU_PART, CPU_BURST);
    let mut busy = metrics.worker_total_busy_duration(0);
    // Where all descriptors are in use, this one makes room for a connection.
    let mut spare = File::open("/dev/null").ok();
    for id in 0_u64.. {
        let busy_now = metrics.worker_total_busy_duration(0);
        budget.take(busy_now.saturating_sub(busy), begin.elapsed());
        busy = busy_now;
        let pause = budget.wait().min(PAUSE_MAX);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                if make_room(&table, limits.connections) {
                    let router = router.clone();
                    let converse = |is_busy| converse(stream, peer, router, limits, is_busy);
                    open(id, converse, &table);
                }
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

/// Ends the oldest connection without an answer to make, if there are as many as may be; false if all have one.
fn make_room(table: &Table, connections_max: usize) -> bool {
    let mut table = locked(table);
    if table.len() < connections_max {
        return true;
    }
    let is_idle = |connection: &Connection| !connection.is_busy.load(Ordering::Relaxed);
    let oldest = table.iter().find(|(_, connection)| is_idle(connection));
    let oldest = oldest.map(|(&id, _)| id);
    let ended = oldest.and_then(|id| table.remove(&id));
    ended
        .as_ref()
        .inspect(|connection| connection.task.abort())
        .is_some()
}

fn open<F: Future<Output = ()> + Send + 'static>(
    id: u64,
    converse: impl FnOnce(Arc<AtomicBool>) -> F,
    table: &Table,
) {
    let is_busy = Arc::new(AtomicBool::new(false));
    let (conversation, ended) = (converse(Arc::clone(&is_busy)), Arc::clone(table));
    // Held until the connection is in the table, so that it cannot end before.
    let mut table = locked(table);
    let task = tokio::spawn(async move {
        conversation.await;
        locked(&ended).remove(&id);
    });
    let task = task.abort_handle();
    table.insert(id, Connection { task, is_busy });
}

/// Answers one request.
async fn converse(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    limits: Limits,
    is_busy: Arc<AtomicBool>,
) {
    let routes = TowerToHyperService::new(router);
    let busy = Arc::clone(&is_busy);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        busy.store(true, Ordering::Relaxed);
        let (answer, busy) = (routes.call(request), Arc::clone(&busy));
        async move {
            let answer = answer.await;
            busy.store(false, Ordering::Relaxed);
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
                if !is_busy.load(Ordering::Relaxed) {
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
