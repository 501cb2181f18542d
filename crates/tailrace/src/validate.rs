//! `tailrace validate`: everything `run` would check at its start, without reading a log.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tailrace_config::Diagnostic;
use tailrace_pipeline::{PipelinePlan, Sampled};

use crate::cli::{ConfigArgs, Failure};
use crate::environment;
use crate::load::load_with_places;
use crate::printed;

/// Arguments of `tailrace validate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Run the queries on the lines of this log file, and show how many records pass and which keys are missing. The data
    /// directory and certificates are not checked.
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// Do not check this machine: certificates, credentials, logs and the data directory may be missing here, and the
    /// admin port may be in use.
    #[arg(long)]
    no_environment: bool,
}

/// The most bytes of a sample that are read.
const SAMPLE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Checks a config.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (config, plans, places) = load_with_places(&args.config)?;
    if !args.no_environment && args.sample.is_none() {
        let diagnostics = environment::check(&config, &plans, &places)?;
        if !diagnostics.is_empty() {
            return Err(diagnostics.into());
        }
    }
    let mut warnings = 0;
    for plan in &plans {
        for warning in plan.query.warnings() {
            let position = &plan.config.transform;
            let diagnostic = position.diagnostic(
                warning.line,
                warning.column,
                1,
                warning.message.clone(),
                None,
            );
            writeln!(out, "{}\n", as_warning(&diagnostic)).context("stdout")?;
            warnings += 1;
        }
        if let Some(path) = &args.sample {
            warnings += check_sample(plan, path, out)?;
        }
    }
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let (pipelines, warned) = (plans.len(), warnings);
    writeln!(
        out,
        "valid: {pipelines} pipeline{}, {warned} warning{}",
        s(pipelines),
        s(warned)
    )
    .context("stdout")?;
    Ok(())
}

fn as_warning(diagnostic: &Diagnostic) -> String {
    diagnostic
        .to_string()
        .replacen(": error: ", ": warning: ", 1)
}

fn check_sample(plan: &PipelinePlan, path: &Path, out: &mut dyn Write) -> Result<usize, Failure> {
    let name = printed::path(path);
    let mut bytes = Vec::new();
    let is_pipe = std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_fifo());
    if is_pipe {
        return Err(anyhow::anyhow!(
            "--sample {}: is a pipe, whose end may never come: give a file",
            path.display()
        )
        .into());
    }
    File::open(path)
        .and_then(|file| file.take(SAMPLE_BYTES_MAX).read_to_end(&mut bytes))
        .with_context(|| format!("--sample {}: cannot be read", path.display()))?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now_ns = now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
    let sampled = tailrace_pipeline::sample(plan, bytes, now_ns);
    for key in &sampled.missing {
        writeln!(
            out,
            "warning: pipeline {}: no record of {} has the key `{key}`, or a value of its type: it is NULL in all {} of them\n",
            plan.name,
            name,
            sampled.records,
        )
        .context("stdout")?;
    }
    let mut warnings = sampled.missing.len() + passed(plan, path, &sampled, out)?;
    if sampled.malformed > 0 {
        writeln!(
            out,
            "warning: pipeline {}: {} of {} records in {} are not valid JSON objects: \
             each arrives marked, with the raw record\n",
            plan.name, sampled.malformed, sampled.records, name,
        )
        .context("stdout")?;
        warnings += 1;
    }
    Ok(warnings)
}

/// How many records pass, and a warning where that is none, or all despite a condition.
fn passed(
    plan: &PipelinePlan,
    path: &Path,
    sampled: &Sampled,
    out: &mut dyn Write,
) -> Result<usize, Failure> {
    let (name, records, path) = (&plan.name, sampled.records, printed::path(path));
    let mut warnings = 0;
    let mut warn = |text: &str| {
        warnings += 1;
        writeln!(out, "warning: pipeline {name}: {text}\n").context("stdout")
    };
    if sampled.failed > 0 {
        let failed = sampled.failed;
        warn(&format!(
            "an expression fails for {failed} of {records} records of {path}: it is NULL there"
        ))?;
    }
    let filters = plan.query.branches().iter();
    let filters = filters.clone().all(|branch| !branch.predicate.is_empty());
    match sampled.passed {
        Some(0) if records > 0 => warn(&format!(
            "no record of {path} passes: check what WHERE compares, and how the values are written there"
        ))?,
        Some(passed) if passed == records && filters && records > 0 => warn(&format!(
            "every record of {path} passes: WHERE leaves out none"
        ))?,
        _ => {}
    }
    match sampled.passed {
        Some(passed) => writeln!(out, "pipeline {name}: {passed} of {records} records of {path} pass"),
        None => writeln!(
            out,
            "pipeline {name}: WHERE asks for the pod or the file, which {path} does not say: not counted"
        ),
    }
    .context("stdout")?;
    Ok(warnings)
}
