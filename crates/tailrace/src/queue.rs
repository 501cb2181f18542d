//! `tailrace queue check`: lists the segments of the disk queues and whether they are sound. It changes nothing, so the
//! agent may be running.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, anyhow};
use indicatif::HumanBytes;
use tailrace_config::Input;
use tailrace_inputs::{SegmentState, check_queue};

use crate::cli::{ConfigArgs, Failure};
use crate::load::load;
use crate::printed;

/// Arguments of `tailrace queue`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the segments of every disk queue, and check each; exit code 1 if one is damaged.
    Check {
        #[command(flatten)]
        config: ConfigArgs,
    },
}

/// Lists and checks the segments of the config's queues.
///
/// # Errors
///
/// A bad config, a queue that cannot be read, or a damaged segment.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let Command::Check { config } = &args.command;
    let (config, _) = load(config)?;
    let (mut queues, mut damaged) = (0, 0);
    for (name, pipeline) in &config.pipelines {
        let has_queue = |input: &Input| input.disk_queue_bytes_max().is_some();
        if pipeline.inputs.iter().any(has_queue) {
            queues += 1;
            let dir = config.data_dir.join("queue").join(name);
            damaged += check(name, &dir, out)?;
        }
    }
    if queues == 0 {
        writeln!(out, "no input of this config has a queue on the disk").context("stdout")?;
    }
    match damaged {
        0 => Ok(()),
        _ => Err(anyhow!(
            "{damaged} segments are damaged: their records cannot be delivered; the agent quarantines them and continues"
        )
        .into()),
    }
}

/// Lists the segments of one queue. Returns how many are damaged, quarantined or not.
fn check(pipeline: &str, dir: &Path, out: &mut dyn Write) -> anyhow::Result<u64> {
    let segments = check_queue(dir).context("a queue cannot be checked")?;
    let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let (count, bytes) = (segments.len(), HumanBytes(bytes));
    writeln!(
        out,
        "{pipeline}: {count} segments, {bytes}, in {}",
        printed::path(dir)
    )?;
    let mut damaged = 0;
    for segment in &segments {
        let state = match &segment.state {
            SegmentState::Sound => "sound".to_owned(),
            SegmentState::Corrupt(why) => format!("corrupt: {}", printed::shown(why)),
            SegmentState::Quarantined => "quarantined".to_owned(),
        };
        damaged += u64::from(segment.state != SegmentState::Sound);
        let name = Path::new(segment.path.file_name().unwrap_or_default());
        let bytes = HumanBytes(segment.bytes).to_string();
        writeln!(out, "  {}  {bytes:>10}  {state}", printed::path(name))?;
    }
    Ok(damaged)
}
