//! `tailrace validate`: everything `run` would check at its start, without reading a log.

mod sample;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::json;
use tailrace_config::{Config, Diagnostic};
use tailrace_pipeline::PipelinePlan;

use crate::cli::{ConfigArgs, Failure, Format};
use crate::diagnostics::{self, Severity};
use crate::load::load_with_places;
use crate::{config_tests, environment, printed, style};
use sample::Sample;

/// Arguments of `tailrace validate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    config: ConfigArgs,
    /// Run the queries on the lines of this log file, and show how many records pass and which keys are missing. The data
    /// directory and certificates are not checked.
    #[arg(long, value_name = "FILE")]
    sample: Option<PathBuf>,
    /// Do not check this machine: certificates, access to the cluster, logs and the data directory may be missing here, and
    /// the admin port may be in use. What `${NAME}` and `${file:PATH}` name is needed all the same.
    #[arg(long, env = "TAILRACE_NO_ENVIRONMENT")]
    no_environment: bool,
    /// Refuse a config that causes a warning, with exit code 78.
    #[arg(short, long)]
    deny_warnings: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t = Format::Text, env = "TAILRACE_FORMAT")]
    format: Format,
}

/// What was found.
struct Verdict {
    pipelines: usize,
    errors: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
    samples: Vec<Sample>,
}

/// Checks a config.
///
/// # Errors
///
/// Everything that is wrong with it.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let verdict = judge(args)?;
    let is_refused =
        !verdict.errors.is_empty() || (args.deny_warnings && !verdict.warnings.is_empty());
    match args.format {
        Format::Json => {
            let json = to_json(&verdict, !is_refused).to_string();
            writeln!(out, "{}", printed::plain_json(&json)).context("stdout")?;
        }
        Format::Text => {
            for warning in &verdict.warnings {
                diagnostics::print(out, warning, Severity::Warning).context("stdout")?;
            }
            if !verdict.errors.is_empty() {
                return Err(verdict.errors.into());
            }
            for sample in &verdict.samples {
                writeln!(out, "{}", sample.line).context("stdout")?;
            }
            print_totals(&verdict, is_refused, out).context("stdout")?;
        }
    }
    if is_refused {
        return Err(Failure::Refused);
    }
    Ok(())
}

/// What is wrong with a config, as JSON, this machine included.
///
/// # Errors
///
/// No config is given, or the check itself failed.
pub(crate) fn report(config: &ConfigArgs) -> Result<serde_json::Value, Failure> {
    let verdict = judge(&everything_of(config))?;
    Ok(to_json(&verdict, verdict.errors.is_empty()))
}

/// What is wrong with a config, this machine included.
#[cfg(test)]
pub(crate) fn errors(config: &ConfigArgs) -> Result<Vec<Diagnostic>, Failure> {
    Ok(judge(&everything_of(config))?.errors)
}

fn everything_of(config: &ConfigArgs) -> Args {
    Args {
        config: config.clone(),
        sample: None,
        no_environment: false,
        deny_warnings: false,
        format: Format::Json,
    }
}

fn judge(args: &Args) -> Result<Verdict, Failure> {
    let mut verdict = Verdict {
        pipelines: 0,
        errors: Vec::new(),
        warnings: Vec::new(),
        samples: Vec::new(),
    };
    let (config, plans, places) = match load_with_places(&args.config) {
        Ok(loaded) => loaded,
        Err(Failure::Config(errors)) => {
            verdict.errors = errors;
            return Ok(verdict);
        }
        Err(other) => return Err(other),
    };
    verdict.pipelines = plans.len();
    verdict.errors = config_tests::check_conditions(&config);
    verdict.warnings = warnings(&args.config, &config, &plans);
    if !args.no_environment && args.sample.is_none() {
        let wrong = environment::check(&config, &plans, &places, &mut verdict.warnings)?;
        verdict.errors.extend(wrong);
        verdict
            .warnings
            .extend(environment::warning(&config, &places));
    }
    if let Some(path) = &args.sample {
        let bytes = sample::read(path)?;
        for plan in &plans {
            let sample = Sample::take(plan, path, &bytes);
            verdict.warnings.extend(sample.warnings.iter().cloned());
            verdict.samples.push(sample);
        }
    }
    Ok(verdict)
}

/// What is no error, and probably not meant.
fn warnings(args: &ConfigArgs, config: &Config, plans: &[PipelinePlan]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for plan in plans {
        let query = &plan.config.transform;
        warnings.extend(plan.query.warnings().iter().map(|warning| {
            query.diagnostic(
                warning.line,
                warning.column,
                1,
                warning.message.clone(),
                None,
            )
        }));
    }
    warnings.extend(args.stdin_twice(config));
    warnings
}

fn print_totals(verdict: &Verdict, is_refused: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let (pipelines, warned) = (verdict.pipelines, verdict.warnings.len());
    let warned = format!("{warned} warning{}", s(warned));
    let pipelines = format!("{pipelines} pipeline{}", s(pipelines));
    if is_refused {
        let denied = style::bad("refused");
        return writeln!(
            out,
            "{denied}: {pipelines}, {warned}, which --deny-warnings refuses"
        );
    }
    writeln!(out, "{}: {pipelines}, {warned}", style::good("valid"))
}

fn to_json(verdict: &Verdict, is_valid: bool) -> serde_json::Value {
    let errors = verdict.errors.iter().map(|it| (it, Severity::Error));
    let warnings = verdict.warnings.iter().map(|it| (it, Severity::Warning));
    let found = errors.chain(warnings);
    let mut object = json!({
        "valid": is_valid,
        "pipelines": verdict.pipelines,
        "errors": verdict.errors.len(),
        "warnings": verdict.warnings.len(),
        "diagnostics": found.map(|(it, severity)| diagnostics::to_json(it, severity)).collect::<Vec<_>>(),
    });
    if !verdict.samples.is_empty() {
        let samples = verdict.samples.iter().map(Sample::to_json);
        object["samples"] = samples.collect();
    }
    object
}
