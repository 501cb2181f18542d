//! Reloading of the config while the agent runs: on SIGHUP, on `POST /-/reload`, and with `--watch` when the
//! content of one of its files changes.
//!
//! One thread serves all triggers. It reads and checks the config, passes it to the agent, and reports the result in the
//! log, on the status page and as metrics. A config that is refused changes nothing. The thread never touches a pipeline
//! itself.

mod files;
mod panics;
mod status;
mod trigger;
mod watch;

use std::sync::mpsc::{Receiver, SyncSender};

use anyhow::Context;
use tailrace_config::{Config, Diagnostic};
use tailrace_pipeline::{Reload, Reloaded, View};
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use crate::cli::ConfigArgs;
use crate::load::prepare;
use crate::notify::Notify;
use crate::printed;
use crate::telemetry::{self, Telemetry};
use crate::token::Token;

pub(crate) use files::Files;
use panics::{completed, contained};
pub(crate) use status::Status;
pub(crate) use trigger::{Answer, Trigger, pull, triggers};

/// What a reloader is started with.
pub(crate) struct Start {
    pub(crate) args: ConfigArgs,
    /// The config that the agent was started with.
    pub(crate) config: Config,
    /// The files of this config.
    pub(crate) files: Files,
    /// Whether to watch these.
    pub(crate) watch: bool,
    /// Who may ask the admin endpoint.
    pub(crate) token: Token,
    /// What of the agent a reload changes besides its pipelines.
    pub(crate) view: View,
    /// Sends the agent's own logs and metrics.
    pub(crate) telemetry: Telemetry,
    /// Sends reloads to the agent.
    pub(crate) agent: tokio::sync::mpsc::Sender<Reload>,
    /// Is told when a reload begins and ends.
    pub(crate) notify: Notify,
}

/// A config that the pipelines have gone over to, and what else is to be set as it says.
struct InUse {
    reloaded: Reloaded,
    config: Config,
    telemetry: Option<telemetry::Prepared>,
}

struct Reloader {
    start: Start,
    watch: Option<watch::Watch>,
    status: Status,
}

/// Starts to wait for triggers, and to watch. The threads end with the process.
///
/// # Errors
///
/// No thread can be started.
pub(crate) fn start(
    start: Start,
    (sender, triggers): (SyncSender<Trigger>, Receiver<Trigger>),
    status: Status,
) -> anyhow::Result<()> {
    let watch = if start.watch {
        Some(watch::start(sender).context("no thread to watch the config")?)
    } else {
        None
    };
    if let Some(watch) = &watch {
        watch.follow(&start.files.dirs());
        // What changed before it was watched.
        watch.pull();
    }
    let reloader = Reloader {
        start,
        watch,
        status,
    };
    std::thread::Builder::new()
        .name("tailrace-reload".to_owned())
        .spawn(move || reloader.run(&triggers))
        .context("no thread for reloads")?;
    Ok(())
}

impl Reloader {
    fn run(mut self, triggers: &Receiver<Trigger>) {
        serve(triggers, |is_asked| {
            let status = self.status.clone();
            let answer = contained(&status, || self.look(is_asked))?;
            match &answer {
                Ok(_) => self.start.notify.ready(&self.start.view.names()),
                Err(error) => self.start.notify.failed(error),
            }
            Some(answer)
        });
    }

    /// Reloads the config if that was asked for or if one of its files has changed.
    fn look(&mut self, is_asked: bool) -> Option<Answer> {
        if let Some(watch) = &self.watch {
            // Before looking, so that what changes after that is noticed.
            watch.follow(&self.start.files.dirs());
        }
        if !is_asked && !self.start.files.have_changed() {
            return None;
        }
        self.start.notify.reloading();
        Some(self.reload())
    }

    fn reload(&mut self) -> Answer {
        let InUse {
            reloaded,
            config,
            telemetry,
        } = match self.go_over() {
            Ok(in_use) => in_use,
            Err(diagnostics) => {
                let text = report(&diagnostics);
                error!(
                    error = text,
                    "the config was not reloaded: the agent goes on with the one that it has"
                );
                self.status.failed(text.clone());
                return Err(text);
            }
        };
        let needs_restart = needs_restart(&self.start.config, &config);
        let hash = self.start.files.hash();
        completed(&self.status, hash, needs_restart.clone(), || {
            self.start.token.set(config.admin.token.clone());
            self.start.view.keep_examples(config.admin.examples);
            self.start.telemetry.replace(telemetry);
        })?;
        // Sent as the new config says.
        info!(
            unchanged = reloaded.unchanged.join(","),
            changed = reloaded.changed.join(","),
            added = reloaded.added.join(","),
            removed = reloaded.removed.join(","),
            "config reloaded"
        );
        for key in needs_restart {
            warn!("{key} was changed, which needs a restart; the rest of the config is in use");
        }
        Ok(reloaded)
    }

    /// Reads the config, checks it, and has the agent go over to it.
    fn go_over(&mut self) -> Result<InUse, Vec<Diagnostic>> {
        let args = &self.start.args;
        for name in args.once_names() {
            warn!(
                config = name,
                "cannot be read again: the reload uses what was read at the start, and reads other files again"
            );
        }
        let (files, config) = match Files::load(args, &self.start.files) {
            Ok(loaded) => loaded,
            // It was loaded at the start.
            Err(_) => return Err(vec![Diagnostic::about_file("tailrace", "no config")]),
        };
        self.start.files = files;
        if let Some(watch) = &self.watch {
            watch.follow(&self.start.files.dirs());
        }
        let (config, plans) = prepare(args, config?)?;
        let telemetry = telemetry::prepare(&config).map_err(|diagnostic| vec![diagnostic])?;
        let (answer, answered) = oneshot::channel();
        let reload = Reload {
            plans,
            grace: config.shutdown.grace,
            answer,
        };
        let ended = || {
            vec![Diagnostic::about_file(
                "tailrace",
                "the agent is shutting down",
            )]
        };
        self.start
            .agent
            .blocking_send(reload)
            .map_err(|_| ended())?;
        let reloaded = answered.blocking_recv().map_err(|_| ended())??;
        Ok(InUse {
            reloaded,
            config,
            telemetry,
        })
    }
}

/// Has each trigger answered, until nobody can send one any more. `reload` is told whether somebody asked for it.
fn serve(triggers: &Receiver<Trigger>, mut reload: impl FnMut(bool) -> Option<Answer>) {
    while let Ok(first) = triggers.recv() {
        let mut waiting = Vec::new();
        let mut is_asked = false;
        // One reload serves all who have come by now.
        for trigger in std::iter::once(first).chain(triggers.try_iter()) {
            match trigger {
                Trigger::Files => {}
                Trigger::Signal => is_asked = true,
                Trigger::Asked(answer) => {
                    is_asked = true;
                    waiting.push(answer);
                }
            }
        }
        let Some(answer) = reload(is_asked) else {
            continue;
        };
        for asked in waiting {
            // Who asked may have gone.
            let _ = asked.send(answer.clone());
        }
    }
}

/// What only a restart can change, and is another than at the start.
fn needs_restart(started: &Config, now: &Config) -> Vec<&'static str> {
    [
        ("data_dir", started.data_dir != now.data_dir),
        ("admin.listen", started.admin.listen != now.admin.listen),
        ("limits.memory", started.limits.memory != now.limits.memory),
        ("workers", started.workers != now.workers),
    ]
    .into_iter()
    .filter_map(|(key, differs)| differs.then_some(key))
    .collect()
}

/// The diagnostics as text, without excerpts of the config: these may contain what not everybody may see.
fn report(diagnostics: &[Diagnostic]) -> String {
    let plain = |diagnostic: &Diagnostic| {
        let plain = Diagnostic {
            snippet: None,
            ..diagnostic.clone()
        };
        plain.to_string()
    };
    let texts: Vec<String> = diagnostics.iter().map(plain).collect();
    printed::redacted(&texts.join("\n"))
}
