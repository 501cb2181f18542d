//! `tailrace replay`: sends the records of the dead-letter files again.

use std::io::Write;

use anyhow::{Context, anyhow};

use crate::cli::{ConfigArgs, Failure};
use crate::load::load;
use crate::printed;

/// Arguments of `tailrace replay`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Only this pipeline.
    #[arg(long, value_name = "NAME")]
    pipeline: Option<String>,
}

/// Sends each entry once. The agent may be running.
///
/// # Errors
///
/// A bad config, a file that cannot be used, or records that are not accepted.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (config, _) = load(&args.config)?;
    if let Some(name) = &args.pipeline
        && !config.pipelines.contains_key(name)
    {
        return Err(anyhow!("the config has no pipeline `{name}`").into());
    }
    let replayed = tailrace_pipeline::replay(&config, args.pipeline.as_deref());
    let mut refused = 0;
    for replayed in replayed.context("the dead letters cannot be sent again")? {
        let (name, accepted) = (&replayed.pipeline, replayed.accepted);
        writeln!(
            out,
            "{name}: {accepted} accepted, {} not accepted",
            replayed.refused
        )
        .context("stdout")?;
        for (reason, records) in &replayed.reasons {
            writeln!(out, "  {records}: {}", printed::shown(reason)).context("stdout")?;
        }
        let shown: u64 = replayed.reasons.iter().map(|(_, records)| records).sum();
        if replayed.refused > shown {
            let others = replayed.refused - shown;
            writeln!(out, "  {others}: other reasons").context("stdout")?;
        }
        if replayed.crashed > 0 {
            writeln!(
                out,
                "  {} kept that could not be processed: they hold the record as it was read, and no request",
                replayed.crashed
            )
            .context("stdout")?;
        }
        refused += replayed.refused;
    }
    if args.pipeline.is_none() {
        for path in tailrace_pipeline::left_dead_letters(&config) {
            let path = printed::shown(&path.display().to_string()).to_string();
            writeln!(
                out,
                "{path}: left as it is, for the config has no pipeline of this name"
            )
            .context("stdout")?;
        }
    }
    match refused {
        0 => Ok(()),
        _ => Err(anyhow!("{refused} records were not accepted; they are kept").into()),
    }
}
