//! The step `oracle`: runs `tests/oracle`, in which Python's json, DuckDB and others say what the agent's output must be.
//!
//! They are installed into a virtual environment below the target directory, and nowhere else. Where that cannot be done, the
//! step is skipped with what to do; in continuous integration it fails.

use std::path::Path;

use anyhow::Result;

use crate::steps::Steps;
use crate::venv;
use crate::workspace::{Workspace, is_ci, run as execute};

const STEP: &str = "oracle";
/// What pip is asked for.
const REQUIREMENTS: &str = "tests/oracle/requirements.txt";
/// The longest the suite may take, in seconds. It takes a minute or two.
const TIMEOUT: &str = "1200";

/// Adds the step.
pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) {
    match venv::python(workspace, STEP, REQUIREMENTS) {
        Ok(python) => {
            steps.run(STEP, || check(workspace, &python));
        }
        Err(error) => missing(steps, format!("no Python with the oracles: {error:#}")),
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
    fn what_is_missing_is_skipped_or_failed_by_name() {
        let mut steps = Steps::default();
        missing(&mut steps, "no Python".to_owned());
        let outcome = format!("{:?}", steps.finish());
        let failed = format!("{:?}", std::process::ExitCode::FAILURE);
        assert_eq!(outcome == failed, is_ci());
    }
}
