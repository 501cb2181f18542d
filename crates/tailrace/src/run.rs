//! `tailrace run`: the agent, from config files to the end of the process.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, anyhow};
use prometheus_client::registry::Registry;
use tailrace_config::{Config, Diagnostic};
use tailrace_pipeline::{Agent, Reload};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use crate::admin::{self, Admin};
use crate::cli::{ConfigArgs, Failure};
use crate::environment;
use crate::load::prepare;
use crate::logging;
use crate::notify::Notify;
use crate::open_files;
use crate::own_metrics;
use crate::reload::{self, Files, Status, Trigger};
use crate::sizing;
use crate::tap::server;
use crate::telemetry::{self, Telemetry};
use crate::token::Token;

/// Arguments of `tailrace run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Reload the config when the content of one of its files changes, including secrets and certificates.
    #[arg(long)]
    watch: bool,
}

/// Runs the agent until it receives SIGTERM or SIGINT.
///
/// # Errors
///
/// What keeps it from starting.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    open_files::raise_limit();
    let (triggers, pulled) = reload::triggers();
    let stop = stop_signal(triggers.clone())?;
    let notify = Notify::of_environment();
    let Launched {
        agent,
        admin,
        tap,
        telemetry,
        reloads,
    } = launch(args, (triggers, pulled), &notify)?;
    notify.ready(&agent.view().names());
    let stop = async {
        let _ = stop.await;
        notify.stopping();
    };
    let summary = agent.run(stop, reloads);
    // It may have ended by itself.
    notify.stopping();
    telemetry.end();
    drop((admin, tap));
    if summary.fault || summary.lost_bytes > 0 || summary.is_broken {
        return Err(anyhow!("the agent did not end well; its log says why").into());
    }
    match summary.undelivered_bytes {
        0 => Ok(()),
        bytes => Err(Failure::Undelivered {
            bytes,
            gone_bytes: summary.undelivered_gone_bytes,
        }),
    }
}

/// An agent that reads, and what belongs to it.
struct Launched {
    agent: Agent,
    admin: Option<Admin>,
    /// `None` if its socket cannot be had.
    tap: Option<server::Server>,
    telemetry: Telemetry,
    reloads: mpsc::Receiver<Reload>,
}

/// Does everything that may keep the agent from starting.
fn launch(
    args: &Args,
    (triggers, pulled): (SyncSender<Trigger>, Receiver<Trigger>),
    notify: &Notify,
) -> Result<Launched, Failure> {
    let (files, config) = Files::load(&args.config, &Files::default())?;
    let (config, plans) = prepare(&args.config, config?)?;
    if let Some(diagnostic) = args.config.stdin_twice(&config) {
        return Err(vec![diagnostic].into());
    }
    open_files::warn_if_few(&config);
    let own = telemetry::prepare(&config).map_err(|diagnostic| vec![diagnostic])?;
    let (mut registry, started) = (Registry::default(), SystemTime::now());
    own_metrics::register(&mut registry, started);
    telemetry::register(&mut registry);
    let sizes = sizing::sizes(&config);
    let agent = Agent::start(&config, plans, sizes, &mut registry)
        .map_err(|error| not_started(error, &config))?;
    info!(
        version = env!("CARGO_PKG_VERSION"),
        workers = sizes.workers,
        "running"
    );
    let (listen, data_dir) = (config.admin.listen.clone(), config.data_dir.clone());
    let tap = server::start(&data_dir, agent.view());
    let tap = tap.inspect_err(|error| {
        let error = logging::chain(error.as_ref()).to_string();
        warn!(
            error,
            "`tailrace tap` cannot be used; the rest of the agent works"
        );
    });
    let tap = tap.ok();
    let token = Token::new(config.admin.token.clone());
    let (to_agent, reloads) = mpsc::channel(1);
    let status = Status::register(&mut registry, files.hash());
    let registry = Arc::new(registry);
    let telemetry = Telemetry::new(Arc::clone(&registry), started);
    telemetry.start(own);
    let start = reload::Start {
        args: args.config.clone(),
        config,
        files,
        watch: args.watch,
        token: token.clone(),
        view: agent.view(),
        telemetry: telemetry.clone(),
        agent: to_agent,
        notify: notify.clone(),
    };
    reload::start(start, (triggers.clone(), pulled), status.clone())?;
    let admin = match listen {
        Some(address) => {
            let data_dir = environment::absolute(&data_dir);
            let view = agent.view();
            let shared = admin::Shared::new(view, registry, status, data_dir, token, triggers);
            Some(admin::start(&address, shared)?)
        }
        None => None,
    };
    Ok(Launched {
        agent,
        admin,
        tap,
        telemetry,
        reloads,
    })
}

/// Why the agent cannot start. What the config names and cannot be used is an error of the config, as for `validate`.
fn not_started(error: tailrace_pipeline::Error, config: &Config) -> Failure {
    match error.position(config) {
        Some(position) => {
            let message = logging::chain(&error).to_string();
            vec![Diagnostic::new(position, 1, message)].into()
        }
        None => anyhow::Error::new(error)
            .context("the agent cannot start")
            .into(),
    }
}

/// As long after a signal another one is the same: `timeout` signals its child, and then the group that the child is in.
const ONE_STOP: Duration = Duration::from_millis(100);

/// Installs the signal handlers. The receiver is ready at the first SIGTERM or SIGINT; the second one ends the process at
/// once. SIGHUP triggers a reload. The handlers are installed before anything else, so that a signal during the start is not
/// lost.
fn stop_signal(reload: SyncSender<Trigger>) -> anyhow::Result<oneshot::Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime for signals")?;
    let handlers = {
        let _entered = runtime.enter();
        signal(SignalKind::terminate()).and_then(|term| {
            let int = signal(SignalKind::interrupt())?;
            Ok((term, int, signal(SignalKind::hangup())?))
        })
    };
    let (mut term, mut int, mut hup) = handlers.context("signals cannot be handled")?;
    let (stop, stopped) = oneshot::channel();
    let wait = async move {
        loop {
            tokio::select! {
                _ = term.recv() => break,
                _ = int.recv() => break,
                _ = hup.recv() => {
                    reload::pull(&reload, Trigger::Signal);
                }
            }
        }
        info!("stopping: what was read is being delivered; a second signal ends at once");
        let _ = stop.send(());
        let since = Instant::now();
        loop {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            if since.elapsed() >= ONE_STOP {
                break;
            }
        }
        #[allow(
            clippy::disallowed_methods,
            reason = "at once, whatever other threads wait for"
        )]
        std::process::exit(130);
    };
    std::thread::Builder::new()
        .name("tailrace-signal".to_owned())
        .spawn(move || runtime.block_on(wait))
        .context("no thread for signals")?;
    Ok(stopped)
}
