//! The agent's side of `tailrace tap`: serves samples on a socket in the data directory, on a thread of its own.
//!
//! No client can harm the pipelines. The thread gives way to all others and takes a bounded share of a core. Few clients are
//! served at a time. A client that does not read is waited for without being sampled: it costs the pipelines nothing, and
//! the memory of one sample. It makes room if another one comes.

mod conversation;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use tailrace_pipeline::View;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet};
use tracing::{info, warn};

use super::socket::{self, Socket};
use crate::admin::budget::Budget;
use crate::admin::cpu::{ThreadClock, give_way};
use crate::ending::Ending;

/// Clients at a time.
const CLIENTS_MAX: usize = 4;
/// A client that has not read for so long makes room for another one.
const STALLED_MAX: Duration = Duration::from_secs(1);
/// The share of one core for all clients, and what may be saved up of it.
const CPU_PART: u32 = 20;
const CPU_BURST: Duration = Duration::from_secs(1);
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
        LocalSet::new().block_on(&runtime, async {
            let shared = Rc::new(Shared::new(view));
            tokio::select! {
                () = serve(&socket, &shared) => {}
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

/// What the conversations share.
struct Shared {
    view: View,
    clients: RefCell<Vec<Client>>,
    clock: ThreadClock,
    begin: Instant,
    /// What is left of the thread's share, and the time that was counted.
    budget: RefCell<(Budget, Duration)>,
}

struct Client {
    id: u64,
    task: AbortHandle,
    /// Since when it has not read what was written.
    stalled: Rc<Cell<Option<Instant>>>,
}

impl Shared {
    fn new(view: View) -> Self {
        let clock = ThreadClock::new();
        let counted = clock.now();
        Self {
            view,
            clients: RefCell::default(),
            clock,
            begin: Instant::now(),
            budget: RefCell::new((Budget::new(CPU_PART, CPU_BURST), counted)),
        }
    }

    /// Waits until the thread may work again.
    async fn pace(&self) {
        let wait = {
            let (budget, counted) = &mut *self.budget.borrow_mut();
            let now = self.clock.now();
            budget.take(now.saturating_sub(*counted), self.begin.elapsed());
            *counted = now;
            budget.wait()
        };
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
    }

    /// Whether one more client may be served. Ends the one that has not read for the longest time, if it is needed.
    fn make_room(&self) -> bool {
        let mut clients = self.clients.borrow_mut();
        clients.retain(|client| !client.task.is_finished());
        if clients.len() < CLIENTS_MAX {
            return true;
        }
        let stalled = clients
            .iter()
            .filter_map(|client| Some((client.stalled.get()?, client.id)));
        let longest = stalled
            .min()
            .filter(|(since, _)| since.elapsed() >= STALLED_MAX);
        let Some((_, id)) = longest else {
            return false;
        };
        for client in clients.extract_if(.., |client| client.id == id) {
            client.task.abort();
            info!("a tap client that did not read made room for another one");
        }
        true
    }
}

/// Accepts clients until it is dropped.
async fn serve(socket: &Socket, shared: &Rc<Shared>) {
    for id in 0_u64.. {
        shared.pace().await;
        match socket.listener.accept().await {
            Ok((stream, _)) if !socket::is_trusted(&stream) => {
                refuse(stream, "only the agent's user and root may tap it").await;
            }
            Ok((stream, _)) if !shared.make_room() => {
                let text = format!("{CLIENTS_MAX} clients tap this agent already: end one of them");
                refuse(stream, &text).await;
            }
            Ok((stream, _)) => {
                let stalled = Rc::<Cell<Option<Instant>>>::default();
                let (of_task, of_client) = (Rc::clone(shared), Rc::clone(&stalled));
                let task = tokio::task::spawn_local(async move {
                    // It ends when its client is gone.
                    let _ = conversation::hold(stream, &of_task, &of_client).await;
                });
                shared.clients.borrow_mut().push(Client {
                    id,
                    task: task.abort_handle(),
                    stalled,
                });
            }
            Err(error) => {
                warn!(%error, "the tap socket cannot accept a connection");
                tokio::time::sleep(ERROR_PAUSE).await;
            }
        }
    }
}

async fn refuse(mut stream: UnixStream, text: &str) {
    let line = conversation::error(text);
    // A new socket has room for a line.
    let _ = stream.try_write(line.as_bytes());
    let _ = stream.shutdown().await;
}
