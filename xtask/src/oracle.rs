//! The step `oracle`: runs `tests/oracle`, in which Python's json, DuckDB and others say what the agent's output must be.
//!
//! Takes a Python that has them, or installs them into a virtual environment below the target directory, and
//! nowhere else. Where that cannot be done, the step is skipped with what to do; in continuous integration it fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};

use crate::steps::Steps;
use crate::workspace::{Workspace, is_ci, on_path, run as execute};

const STEP: &str = "oracle";
const PYTHON: &str = "python3";
/// What pip is asked for, and what of it shows that it is there.
const REQUIREMENTS: &str = "tests/oracle/requirements.txt";
const IMPORTS: &str = "import boto3, duckdb, moto, polars, pyarrow, pyspark";
/// The longest the suite may take, in seconds. It takes a minute or two.
const TIMEOUT: &str = "1200";

/// Adds the step.
pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) {
    if !on_path(PYTHON) {
        return missing(
            steps,
            format!("{PYTHON} is not on the PATH; install Python 3.9 or later"),
        );
    }
    match python_with_oracles(workspace) {
        Ok(python) => {
            steps.run(STEP, || check(workspace, &python));
        }
        Err(error) => missing(
            steps,
            format!(
                "no Python with the oracles: {error:#}; `{PYTHON} -m pip install --requirement {REQUIREMENTS}` brings them"
            ),
        ),
    }
}

/// What keeps the step from running is a failure in continuous integration.
fn missing(steps: &mut Steps, reason: String) {
    if is_ci() {
        steps.fail(STEP, reason);
    } else {
        steps.skip(STEP, reason);
    }
}

/// A Python that can import the oracles: the one on the PATH, else that of a virtual environment, which is made at need.
fn python_with_oracles(workspace: &Workspace) -> Result<PathBuf> {
    let on_path = PathBuf::from(PYTHON);
    let environment = workspace.target.join("oracle/venv");
    let own = environment.join("bin").join(PYTHON);
    for python in [&on_path, &own] {
        if has_oracles(workspace.command(python, &[])) {
            return Ok(python.clone());
        }
    }
    let mut create = workspace.command(&on_path, &["-m", "venv", "--clear"]);
    execute(create.arg(&environment)).context("a virtual environment")?;
    let arguments = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--requirement",
        REQUIREMENTS,
    ];
    execute(&mut workspace.command(&own, &arguments))?;
    Ok(own)
}

fn has_oracles(mut python: Command) -> bool {
    python.args(["-c", IMPORTS]);
    python.stdout(Stdio::null()).stderr(Stdio::null());
    python.status().is_ok_and(|status| status.success())
}

/// Builds the agent and runs the suite.
fn check(workspace: &Workspace, python: &Path) -> Result<()> {
    // A test among what is built gives dependencies the features they have for `cargo test --workspace`: after the tests
    // there is nothing left to build.
    let arguments = [
        "build",
        "--workspace",
        "--bin",
        "tailrace",
        "--test",
        "tidy",
    ];
    execute(&mut workspace.cargo(&arguments))?;
    let mut suite = workspace.command("timeout", &["--kill-after=10", TIMEOUT]);
    suite
        .arg(python)
        .arg("tests/oracle/oracle.py")
        .arg("--agent")
        .arg(workspace.target.join("debug/tailrace"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1");
    execute(&mut suite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_python_that_is_missing_has_no_oracles() {
        assert!(!has_oracles(Command::new("/no/such/python3")));
    }

    #[test]
    fn what_is_missing_is_skipped_or_failed_by_name() {
        let mut steps = Steps::default();
        missing(&mut steps, "no Python".to_owned());
        let outcome = format!("{:?}", steps.finish());
        let failed = format!("{:?}", std::process::ExitCode::FAILURE);
        assert_eq!(outcome == failed, is_ci());
    }
}
