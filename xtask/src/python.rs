//! The step `python`: the wheel of the Python package, made of what the tests left behind, installed beside pyarrow, pandas,
//! Polars and DuckDB, and tested. `crates/tailrace-python/tests` has the tests, `wheel.py` beside it makes the wheel.
//!
//! Everything is installed below the target directory, and nowhere else. Where that cannot be done, the step is skipped with
//! what to do; in continuous integration it fails.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::steps::Steps;
use crate::venv;
use crate::workspace::{Workspace, capture, is_ci, on_path, run as execute};

const STEP: &str = "python";
const CRATE: &str = "crates/tailrace-python";
/// The longest the tests may take, in seconds. They take a minute or two.
const TIMEOUT: &str = "900";

/// Adds the step.
pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) {
    let requirements = format!("{CRATE}/requirements.txt");
    match venv::python(workspace, STEP, &requirements) {
        Ok(python) => {
            steps.run(STEP, || check(workspace, &python));
        }
        Err(error) if is_ci() => steps.fail(STEP, format!("{error:#}")),
        Err(error) => steps.skip(STEP, format!("{error:#}")),
    }
}

/// Builds the wheel, installs it and runs the tests.
fn check(workspace: &Workspace, python: &Path) -> Result<()> {
    let library = build(workspace)?;
    let dir = workspace.target.join(STEP);
    let stripped = strip(workspace, &library, &dir)?;
    let mut assemble = workspace.command(python, &["crates/tailrace-python/wheel.py"]);
    let wheel = capture(assemble.arg(&stripped).arg(dir.join("wheels")))?;
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
    ];
    execute(workspace.command(python, &install).arg(wheel.trim()))?;
    let mut tests = workspace.command("timeout", &["--kill-after=10", TIMEOUT]);
    tests
        .arg(python)
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(format!("{CRATE}/tests"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1");
    execute(&mut tests)
}

/// Builds the native module, and gives its path.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    // With a test among what is built, dependencies have the features that they have for `cargo test --workspace`: all that
    // is left to build is this module.
    let arguments = ["build", "--workspace", "--lib", "--test", "tidy"];
    execute(&mut workspace.cargo(&arguments))?;
    Ok(workspace.target.join("debug/lib_tailrace.so"))
}

/// A copy without symbols, where `strip` is there: those of a debug build take most of the time to compress.
fn strip(workspace: &Workspace, library: &Path, dir: &Path) -> Result<PathBuf> {
    let copy = dir.join("lib_tailrace.so");
    fs::copy(library, &copy).with_context(|| format!("cannot copy {}", library.display()))?;
    if on_path("strip") {
        execute(workspace.command("strip", &["--strip-debug"]).arg(&copy))?;
    }
    Ok(copy)
}
