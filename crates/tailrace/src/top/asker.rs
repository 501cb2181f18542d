//! Asks the agent each second, on a thread of its own, so that a slow answer delays no key. Signals that end the program
//! arrive here, too.

use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow};
use http::HeaderValue;
use serde_json::Value;
use tailrace_config::AdminAddress;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::state::News;
use crate::admin_client::fetch_with;

const OVERVIEW_PATH: &str = "/api/v1/overview";
const HISTORY_PATH: &str = "/api/v1/history";
const INTERVAL: Duration = Duration::from_secs(1);
/// The history is the largest answer, and a column of its lines is about ten seconds.
const HISTORY_EVERY: u32 = 10;
/// An agent that has not answered by then is busy, or gone.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Whom to ask, and as whom.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) admin: AdminAddress,
    /// What is sent as `Authorization`.
    pub(super) token: Option<HeaderValue>,
}

impl Agent {
    /// The JSON of an answer.
    ///
    /// # Errors
    ///
    /// The agent cannot be reached in time, refuses, or answers something else.
    async fn ask(&self, path: &str) -> anyhow::Result<Value> {
        let fetched = timeout(TIMEOUT, fetch_with(&self.admin, path, self.token.as_ref())).await;
        let body = fetched.map_err(|_| anyhow!("no answer within {} s", TIMEOUT.as_secs()))??;
        serde_json::from_slice(&body).context("the answer is no JSON: is that a Tailrace agent?")
    }

    /// The first overview.
    ///
    /// # Errors
    ///
    /// As of [`ask`](Self::ask), or there is no runtime.
    pub(super) fn overview(&self) -> anyhow::Result<Value> {
        runtime()?.block_on(self.ask(OVERVIEW_PATH))
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().context("no runtime")
}

/// The thread that asks. It ends when nobody listens any more.
pub(super) struct Asker {
    /// The path of the report that is shown.
    pub(super) wanted: watch::Sender<Option<String>>,
    _thread: JoinHandle<()>,
}

impl Asker {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// There is no runtime, thread or signal handler to be had.
    pub(super) fn start(agent: Agent, news: SyncSender<News>) -> anyhow::Result<Self> {
        let (wanted, wants) = watch::channel(None);
        let runtime = runtime()?;
        let ended = {
            let _entered = runtime.enter();
            ended()?
        };
        let thread = std::thread::Builder::new()
            .name("tailrace-top".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = ask_on(&agent, wants, &news) => {}
                        () = ended => {}
                    }
                });
                // Nobody listens if that is the reason.
                let _ = news.send(News::End);
            })
            .context("no thread to ask the agent")?;
        Ok(Self {
            wanted,
            _thread: thread,
        })
    }
}

/// Completes at a signal that ends programs.
fn ended() -> anyhow::Result<impl Future<Output = ()>> {
    let of = |kind| signal(kind).context("no handler of signals");
    let mut terminate = of(SignalKind::terminate())?;
    let mut interrupt = of(SignalKind::interrupt())?;
    let mut hangup = of(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// Asks until nobody listens.
async fn ask_on(
    agent: &Agent,
    mut wants: watch::Receiver<Option<String>>,
    news: &SyncSender<News>,
) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut until_history = 0;
    loop {
        let is_tick = tokio::select! {
            _ = ticks.tick() => true,
            changed = wants.changed() => match changed {
                Ok(()) => false,
                Err(_) => return,
            },
        };
        let wanted = wants.borrow_and_update().clone();
        let round = async {
            let mut answers = Vec::new();
            if is_tick {
                answers.push(News::Overview(agent.ask(OVERVIEW_PATH).await?));
                if until_history == 0 {
                    answers.push(News::History(agent.ask(HISTORY_PATH).await?));
                }
            }
            if let Some(path) = wanted {
                let report = agent.ask(&path).await?;
                answers.push(News::Report(path, report));
            }
            anyhow::Ok(answers)
        };
        let answers = match round.await {
            Ok(answers) => {
                if is_tick {
                    until_history = (until_history + 1) % HISTORY_EVERY;
                }
                answers
            }
            Err(error) => {
                // An agent that comes back may be another one.
                until_history = 0;
                let text = crate::logging::chain(error.as_ref()).to_string();
                vec![News::Unreachable(text)]
            }
        };
        for answer in answers {
            if news.send(answer).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Receiver, sync_channel};

    use super::*;

    const DEADLINE: Duration = Duration::from_secs(30);

    /// A server that answers with what it was asked for, until it is told to go away. A path with `bad` gets no JSON.
    fn serve(listener: TcpListener, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let Some(path) = head.first().and_then(|line| line.split(' ').nth(1)) else {
                continue;
            };
            let token = head.iter().find(|line| line.starts_with("authorization"));
            let body = match path.contains("bad") {
                true => "<html>".to_owned(),
                false => serde_json::json!({"path": path, "token": token}).to_string(),
            };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
            );
        }
    }

    /// Waits for news that `wanted` accepts.
    fn next(news: &Receiver<News>, wanted: impl Fn(&News) -> bool) -> News {
        loop {
            let one = news.recv_timeout(DEADLINE).unwrap();
            if wanted(&one) {
                return one;
            }
        }
    }

    #[test]
    fn it_asks_for_what_is_shown_and_says_when_the_agent_is_gone() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let server = std::thread::spawn({
            let is_over = Arc::clone(&is_over);
            move || serve(listener, &is_over)
        });
        let agent = Agent {
            admin: address.into(),
            token: Some(HeaderValue::from_static("Bearer a")),
        };
        let first = agent.overview().unwrap();
        assert_eq!(first["path"], OVERVIEW_PATH);
        assert_eq!(first["token"], "authorization: Bearer a");
        let (sender, news) = sync_channel(16);
        let (wanted, wants) = watch::channel(None);
        let asker = std::thread::spawn(move || {
            runtime().unwrap().block_on(ask_on(&agent, wants, &sender));
        });
        next(&news, |one| matches!(one, News::Overview(_)));
        next(&news, |one| matches!(one, News::History(_)));
        for path in ["/api/v1/log", "/api/v1/reasons"] {
            wanted.send(Some(path.to_owned())).unwrap();
            let is_it = |one: &News| matches!(one, News::Report(of, body) if of == path && body["path"] == path);
            next(&news, is_it);
        }
        wanted.send(Some("/bad".to_owned())).unwrap();
        let bad = next(&news, |one| matches!(one, News::Unreachable(_)));
        assert!(
            format!("{bad:?}").contains("is that a Tailrace agent?"),
            "{bad:?}"
        );
        is_over.store(true, Ordering::Relaxed);
        let gone = next(
            &news,
            |one| matches!(one, News::Unreachable(text) if text.contains("refused")),
        );
        assert!(matches!(gone, News::Unreachable(_)));
        server.join().unwrap();
        // Nobody shows anything any more.
        drop((wanted, news));
        asker.join().unwrap();
    }
}
