//! Loading a config for a command: reads its files, and prepares its pipelines without starting them.

use tailrace_config::{Config, Diagnostic, Places};
use tailrace_pipeline::PipelinePlan;

use crate::cli::{ConfigArgs, Failure};
use crate::{printed, resource};

/// Loads the config and prepares its pipelines.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(crate) fn load(args: &ConfigArgs) -> Result<(Config, Vec<PipelinePlan>), Failure> {
    let (config, plans, _) = load_with_places(args)?;
    Ok((config, plans))
}

/// Like [`load`], and returns the positions of options of the whole agent.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(crate) fn load_with_places(
    args: &ConfigArgs,
) -> Result<(Config, Vec<PipelinePlan>, Places), Failure> {
    let env = |name: &str| std::env::var(name).ok();
    let loaded = args.load(&env)?;
    printed::hide(&loaded.redactor);
    let (config, plans) = prepare(args, loaded.config?)?;
    let mut places = loaded.places;
    if args.data_dir.is_some() {
        places.data_dir = None;
    }
    Ok((config, plans, places))
}

/// Loads the config to run its tests: a placeholder stands for what `${...}` asks for and is not there. Returns the names of
/// what that is, too.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(crate) fn load_for_tests(
    args: &ConfigArgs,
) -> Result<(Config, Vec<PipelinePlan>, Vec<String>), Failure> {
    let env = |name: &str| std::env::var(name).ok();
    let loaded = args.load_for_tests(&env)?;
    printed::hide(&loaded.redactor);
    let (config, plans) = prepare(args, loaded.config?)?;
    Ok((config, plans, loaded.missing))
}

/// Prepares the pipelines of a config that was read, with the options of the command line and the environment.
///
/// # Errors
///
/// Everything that is wrong with their queries.
pub(crate) fn prepare(
    args: &ConfigArgs,
    mut config: Config,
) -> Result<(Config, Vec<PipelinePlan>), Vec<Diagnostic>> {
    let env = |name: &str| std::env::var(name).ok();
    if let Some(data_dir) = &args.data_dir {
        config.data_dir.clone_from(data_dir);
    }
    config.resource = resource::with_environment(&config.resource, &env);
    let plans = tailrace_pipeline::prepare(&config)?;
    Ok((config, plans))
}
