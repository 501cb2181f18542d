//! `tailrace validate`: everything `run` would check at its start, without reading a log.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tailrace_config::Diagnostic;
use tailrace_pipeline::PipelinePlan;

use crate::cli::{ConfigArgs, Failure};
use crate::environment;
use crate::run::load_with_places;

/// Arguments of `tailrace validate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Warn of keys that the queries name and this log file lacks.
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// Do not look at this machine: certificates, credentials, logs and the data directory may be missing here, and the
    /// admin port be in use.
    #[arg(long)]
    no_environment: bool,
}

/// Bytes of a sample that are looked at.
const SAMPLE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Checks a config.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let (config, plans, places) = load_with_places(&args.config)?;
    if !args.no_environment {
        let diagnostics = environment::check(&config, &plans, &places)?;
        if !diagnostics.is_empty() {
            return Err(diagnostics.into());
        }
    }
    let mut warnings = 0;
    for plan in &plans {
        for warning in plan.query.warnings() {
            let position = &plan.config.transform;
            let diagnostic =
                position.diagnostic(warning.line, warning.column, 1, warning.message.clone());
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
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(SAMPLE_BYTES_MAX).read_to_end(&mut bytes))
        .with_context(|| format!("--sample {}: cannot be read", path.display()))?;
    let sampled = tailrace_pipeline::sample(plan, bytes);
    for key in &sampled.missing {
        writeln!(
            out,
            "warning: pipeline {}: no record of {} has the key `{key}`, or a value of its type: it is NULL in all {} of them\n",
            plan.name,
            path.display(),
            sampled.records,
        )
        .context("stdout")?;
    }
    let mut warnings = sampled.missing.len();
    if sampled.malformed > 0 {
        writeln!(
            out,
            "warning: pipeline {}: {} of {} records in {} are not JSON objects: \
             each arrives with the raw record as its body\n",
            plan.name,
            sampled.malformed,
            sampled.records,
            path.display(),
        )
        .context("stdout")?;
        warnings += 1;
    }
    Ok(warnings)
}
