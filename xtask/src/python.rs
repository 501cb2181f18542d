//! `cargo xtask wheel`: the wheel of the Python package, of a release build; and the step `python`: a wheel made of what the tests
//! left behind, installed beside pyarrow, pandas, Polars and DuckDB, and tested. `crates/tailrace-python/tests` has the tests, `wheel.py` beside it makes the wheel.
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

/// Builds the wheel of a release, and prints where it is.
pub(crate) fn wheel(workspace: &Workspace) -> Result<()> {
    let python = python(workspace)?;
    execute(&mut workspace.cargo(&["build", "--release", "--workspace", "--lib"]))?;
    let library = workspace.target.join("release/lib_tailrace.so");
    let wheel = assemble(
        workspace,
        &python,
        &library,
        &workspace.target.join("wheels"),
    )?;
    let bytes = fs::metadata(&wheel)
        .with_context(|| format!("cannot read {wheel}"))?
        .len();
    println!("wheel     {wheel}");
    println!("size      {bytes} bytes ({:.1} MB)", bytes as f64 / 1e6);
    println!("install   pip install {wheel}");
    Ok(())
}

/// A Python that has what the wheel is made and tested with.
fn python(workspace: &Workspace) -> Result<PathBuf> {
    venv::python(workspace, STEP, &format!("{CRATE}/requirements.txt"))
}

/// Adds the step.
pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) {
    match python(workspace) {
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
    let wheel = assemble(workspace, python, &stripped, &dir.join("wheels"))?;
    let install = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
    ];
    execute(workspace.command(python, &install).arg(wheel))?;
    let mut tests = workspace.command("timeout", &["--kill-after=10", TIMEOUT]);
    tests
        .arg(python)
        .args(["-m", "unittest", "discover", "--start-directory"])
        .arg(format!("{CRATE}/tests"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1");
    execute(&mut tests)
}

/// Makes a wheel of a native module, and gives its path.
fn assemble(
    workspace: &Workspace,
    python: &Path,
    library: &Path,
    directory: &Path,
) -> Result<String> {
    let mut assemble = workspace.command(python, &["crates/tailrace-python/wheel.py"]);
    let wheel = capture(assemble.arg(library).arg(directory))?;
    Ok(wheel.trim().to_owned())
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
