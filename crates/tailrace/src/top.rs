//! `tailrace top`: a running agent in a terminal, as its page shows it in a browser. It only asks, and changes nothing.
//!
//! `asker` asks on a thread of its own, `state` keeps the answers and obeys keys, `draw` makes the picture. This file has the
//! terminal: it is restored at every end, a panic and SIGTERM included.

mod answer;
mod asker;
mod draw;
mod number;
mod rates;
mod state;

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use http::HeaderValue;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tailrace_config::AdminAddress;

use crate::cli::Failure;
use crate::style::{Stream, is_coloured};
use asker::{Agent, Asker};
use draw::Palette;
use state::{News, State};

/// How long a key may wait while an answer is looked for.
const POLL: Duration = Duration::from_millis(100);
/// Answers that wait to be shown.
const NEWS_MAX: usize = 16;
/// A longer file holds something else than a token.
const TOKEN_BYTES_MAX: usize = 4096;

/// Arguments of `tailrace top`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Admin endpoint of the running agent, as in `admin.listen`: `IP:PORT` or `unix:/PATH`.
    #[arg(long, value_name = "ADDRESS", env = "TAILRACE_ADMIN")]
    admin: AdminAddress,
    /// A file with the token of `admin.token`, for an agent on another machine.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Shows the agent until a key or a signal ends it.
///
/// # Errors
///
/// There is no terminal, or the agent cannot be reached at first.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    check_terminal()?;
    let token = args.token_file.as_deref().map(token).transpose()?;
    let agent = Agent {
        admin: args.admin.clone(),
        token,
    };
    let first = agent.overview().with_context(|| {
        format!(
            "the agent at {} gives no overview: does it run, with `admin: {{listen: {}}}`?",
            args.admin, args.admin
        )
    })?;
    let (sender, news) = sync_channel(NEWS_MAX);
    let asker = Asker::start(agent, sender)?;
    let mut state = State::new();
    learn(&mut state, News::Overview(first));
    let mut screen = Screen::open()?;
    let shown = show(&mut screen.0, &mut state, &asker, &news);
    drop(screen);
    Ok(shown?)
}

fn check_terminal() -> anyhow::Result<()> {
    if !stdout().is_terminal() || !stdin().is_terminal() {
        bail!(
            "`tailrace top` needs a terminal on its standard input and output; in a script, use `tailrace ledger --json`"
        );
    }
    if std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb") {
        bail!(
            "`tailrace top` needs a terminal with a cursor that moves, and TERM names none; use `tailrace ledger`"
        );
    }
    Ok(())
}

/// The header value of the token in a file.
fn token(path: &std::path::Path) -> anyhow::Result<HeaderValue> {
    let place = || format!("--token-file {}", path.display());
    let text = std::fs::read_to_string(path).with_context(place)?;
    let token = text.trim();
    let is_token = (1..=TOKEN_BYTES_MAX).contains(&token.len())
        && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_token {
        let text = "it must hold one token of visible ASCII characters, and nothing else";
        return Err(anyhow!(text)).with_context(place);
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).with_context(place)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The terminal while it shows the agent. Dropping it restores what was there.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> anyhow::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self(terminal)),
            Err(error) => {
                // A part of it may have been done.
                let _ = ratatui::try_restore();
                Err(error).context("the terminal cannot be used")
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = self.0.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Draws what is new, and obeys keys, until the end.
fn show(
    terminal: &mut DefaultTerminal,
    state: &mut State,
    asker: &Asker,
    news: &Receiver<News>,
) -> anyhow::Result<()> {
    let palette = Palette::new(is_coloured(Stream::Stdout));
    let mut is_changed = true;
    loop {
        if is_changed {
            terminal
                .draw(|frame| draw::draw(frame, state, &palette))
                .context("the terminal cannot be drawn on")?;
        }
        is_changed = false;
        let wanted = state.wanted();
        asker.wanted.send_if_modified(|before| {
            let is_other = *before != wanted;
            *before = wanted;
            is_other
        });
        if event::poll(POLL).context("the terminal is gone")? {
            match event::read().context("the terminal is gone")? {
                Event::Key(key) if !state.press(key) => return Ok(()),
                _ => is_changed = true,
            }
        }
        loop {
            match news.try_recv() {
                Ok(news) => {
                    if !learn(state, news) {
                        return Ok(());
                    }
                    is_changed = true;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => bail!("what asks the agent has ended"),
            }
        }
    }
}

fn learn(state: &mut State, news: News) -> bool {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    state.learn(
        news,
        Instant::now(),
        since.unwrap_or_default().as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    #[test]
    fn a_token_is_one_word() {
        let read = |content: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(content.as_bytes()).unwrap();
            super::token(file.path())
        };
        let token = read("0123456789abcdef\n").unwrap();
        assert_eq!(token.as_bytes(), b"Bearer 0123456789abcdef");
        assert!(!format!("{token:?}").contains("0123"));
        for content in ["", "\n", "two words", "a\r\nx: y", "ä", &"x".repeat(5000)] {
            let error = format!("{:#}", read(content).unwrap_err());
            assert!(error.contains("one token of visible ASCII"), "{error}");
        }
        let error = format!("{:#}", super::token("/nonexistent".as_ref()).unwrap_err());
        assert!(error.starts_with("--token-file /nonexistent: "), "{error}");
    }
}
