//! `tailrace run`: the agent, from config files to the end of the process.

use std::future::Future;

use anyhow::Context;
use prometheus_client::registry::Registry;
use tailrace_config::Config;
use tailrace_pipeline::{Agent, PipelinePlan};
use tokio::signal::unix::{SignalKind, signal};
use tracing::info;

use crate::admin;
use crate::cli::{ConfigArgs, Failure};
use crate::sizing;

/// Arguments of `tailrace run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
}

/// Runs the agent until it is told to stop.
///
/// # Errors
///
/// What keeps it from starting.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (config, plans) = load(&args.config)?;
    let mut registry = Registry::default();
    let workers = sizing::workers(&config);
    let agent =
        Agent::start(&config, plans, workers, &mut registry).context("the agent cannot start")?;
    info!(version = env!("CARGO_PKG_VERSION"), workers, "running");
    let admin = match config.admin.listen {
        Some(address) => Some(admin::start(address, agent.view(), registry)?),
        None => None,
    };
    agent.run(stop_signal());
    drop(admin);
    Ok(())
}

/// Loads the config and prepares its pipelines.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(crate) fn load(args: &ConfigArgs) -> Result<(Config, Vec<PipelinePlan>), Failure> {
    let env = |name: &str| std::env::var(name).ok();
    let mut config = tailrace_config::load(&args.config, &env)?;
    if let Some(data_dir) = &args.data_dir {
        config.data_dir.clone_from(data_dir);
    }
    let resource = crate::resource::with_environment(&config.resource, &env);
    config.resource = resource;
    let plans = tailrace_pipeline::prepare(&config)?;
    Ok((config, plans))
}

/// Ready at the first SIGTERM or SIGINT; the second one ends the process at once.
fn stop_signal() -> impl Future<Output = ()> {
    async {
        let (Ok(mut term), Ok(mut int)) = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
        ) else {
            // Without handlers the default action ends the process: that is a stop, too.
            return std::future::pending().await;
        };
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
        info!("stopping: what was read is being delivered; a second signal ends at once");
        tokio::spawn(async move {
            tokio::select! {
                _ = term.recv() => {}
                _ = int.recv() => {}
            }
            // The only exit besides `main`: nothing is left to be tidy about.
            std::process::exit(130);
        });
    }
}
