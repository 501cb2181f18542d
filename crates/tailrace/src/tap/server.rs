//! The agent's side of `tailrace tap`: serves samples on a socket in the data directory, each client on a thread of its own.
//!
//! No client can harm the pipelines, or another client. The threads give way to all others, and each takes a bounded share of
//! a core: what one client owes, it owes alone. Few clients are served at a time. A client that does not read is waited for without being sampled: it costs the pipelines nothing, and
//! the memory of one sample. It makes room if another one comes.

mod conversation;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;
use tailrace_pipeline::View;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::socket::{self, Socket};
use crate::admin::cpu::give_way;
use crate::ending::Ending;

/// Clients at a time.
const CLIENTS_MAX: usize = 4;
/// A client that has not read for so long makes room for another one.
const STALLED_MAX: Duration = Duration::from_secs(1);
/// How long a shutdown waits for a record that is being traced.
const END_TIME: Duration = Duration::from_secs(1);
/// After the kernel had no connection to give.
const ERROR_PAUSE: Duration = Duration::from_millis(50);

/// A running server. Dropping it ends the connections and removes the socket.
#[derive(Debug)]
pub(crate) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<Ending>,
}

/// Listens in the data directory, which the agent holds, and serves.
///
/// # Errors
///
/// The socket cannot be made, or no thread be started. The agent does without.
pub(crate) fn start(data_dir: &Path, view: View) -> anyhow::Result<Server> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let socket = {
        let _entered = runtime.enter();
        socket::listen(data_dir)?
    };
    let (stop, stopped) = oneshot::channel();
    let run = move || {
        give_way();
        runtime.block_on(async {
            tokio::select! {
                () = serve(&socket, &view) => {}
                _ = stopped => {}
            }
        });
    };
    let thread = Ending::start("tailrace-tap", run).context("no thread")?;
    Ok(Server {
        stop: Some(stop),
        thread: Some(thread),
    })
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop = None;
        self.thread.take().map(|thread| thread.wait(END_TIME));
    }
}

/// Since when a client has not read what was written.
type Stalled = Arc<Mutex<Option<Instant>>>;

/// A client that is served. Dropping it ends the conversation.
struct Client {
    _stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
    stalled: Stalled,
}

#[derive(Default)]
struct Clients(Vec<Client>);

impl Clients {
    /// Whether one more client may be served. Ends the one that has not read for the longest time, if it is needed.
    fn make_room(&mut self) -> bool {
        // One that is gone keeps its place until its thread has done its work.
        self.0.retain(|client| !client.thread.is_finished());
        if self.0.len() < CLIENTS_MAX {
            return true;
        }
        let since = |client: &Client| {
            *client
                .stalled
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let stalled = self.0.iter().enumerate();
        let stalled = stalled.filter_map(|(at, client)| Some((since(client)?, at)));
        let longest = stalled
            .min()
            .filter(|(since, _)| since.elapsed() >= STALLED_MAX);
        let Some((_, at)) = longest else {
            return false;
        };
        // It waits for its client, so that its thread ends at once.
        drop(self.0.remove(at));
        info!("a tap client that did not read made room for another one");
        true
    }
}

/// Accepts clients until it is dropped.
async fn serve(socket: &Socket, view: &View) {
    let mut clients = Clients::default();
    loop {
        match socket.listener.accept().await {
            Ok((stream, _)) if !socket::is_trusted(&stream) => {
                refuse(stream, "only the agent's user and root may tap it").await;
            }
            Ok((stream, _)) if !clients.make_room() => {
                let text = format!("{CLIENTS_MAX} clients tap this agent already: end one of them");
                refuse(stream, &text).await;
            }
            Ok((stream, _)) => match converse(stream, view.clone()) {
                Ok(client) => clients.0.push(client),
                Err(error) => warn!(%error, "a tap client cannot be served"),
            },
            Err(error) => {
                warn!(%error, "the tap socket cannot accept a connection");
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
}

/// Serves a client on a thread of its own.
fn converse(stream: UnixStream, view: View) -> std::io::Result<Client> {
    let stream = stream.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stalled = Stalled::default();
    let of_thread = Arc::clone(&stalled);
    let (stop, stopped) = oneshot::channel();
    let run = move || {
        give_way();
        runtime.block_on(async {
            let Ok(stream) = UnixStream::from_std(stream) else {
                return;
            };
            tokio::select! {
                // It ends when its client is gone.
                _ = conversation::hold(stream, &view, &of_thread) => {}
                _ = stopped => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("tailrace-tapped".to_owned());
    Ok(Client {
        _stop: stop,
        thread: thread.spawn(run)?,
        stalled,
    })
}

async fn refuse(mut stream: UnixStream, text: &str) {
    let line = conversation::error(text);
    // A new socket has room for a line.
    let _ = stream.try_write(line.as_bytes());
    let _ = stream.shutdown().await;
}
