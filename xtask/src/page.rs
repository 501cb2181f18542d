//! `cargo xtask page`, and the step `page`: the agent's page in a real browser. `crates/tailrace/tests/page` has the checks.
//!
//! They need Node with npm, and a Chromium of this machine. Their packages are installed below the target directory, and
//! nowhere else. Where that cannot be done, the step is skipped with what to do; in continuous integration it fails.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};

use crate::steps::Steps;
use crate::workspace::{Workspace, is_ci, on_path, run as execute};

const STEP: &str = "page";
/// Where the checks are.
const SOURCES: &str = "crates/tailrace/tests/page";
/// What the checks consist of.
const FILES: [&str; 4] = ["agent.mjs", "package-lock.json", "package.json", "page.mjs"];
/// Where the screenshots go.
const SCREENSHOTS: &str = "docs/img";
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Take the screenshots of the documentation instead of checking
    #[arg(long)]
    screenshots: bool,
    /// Use this program instead of building the agent
    #[arg(long, value_name = "PROGRAM")]
    agent: Option<PathBuf>,
    /// How long the agent of the screenshots runs before they are taken
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 300,
        requires = "screenshots"
    )]
    seconds: u32,
}

/// Runs the checks alone, or takes the screenshots.
pub(crate) fn run_alone(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let browser = tools(workspace)?;
    let agent = match &args.agent {
        Some(agent) => agent.clone(),
        None => build(workspace)?,
    };
    let mut command = checks(workspace, &browser, &agent);
    if args.screenshots {
        command.arg("--screenshots");
        command.arg(workspace.root.join(SCREENSHOTS));
        command.args(["--seconds", &args.seconds.to_string()]);
    }
    execute(&mut command)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the step.
pub(crate) fn run(workspace: &Workspace, steps: &mut Steps) {
    match tools(workspace) {
        Ok(browser) => {
            steps.run(STEP, || {
                let agent = build(workspace)?;
                execute(&mut checks(workspace, &browser, &agent))
            });
        }
        Err(error) if is_ci() => steps.fail(STEP, format!("{error:#}")),
        Err(error) => steps.skip(STEP, format!("{error:#}")),
    }
}

/// Finds the browser, and installs the packages that the checks use.
fn tools(workspace: &Workspace) -> Result<PathBuf> {
    if !on_path("node") || !on_path("npm") {
        bail!("node and npm are not on the PATH; install Node 20 or later");
    }
    let Some(browser) = browser() else {
        bail!("none of {} is on the PATH", BROWSERS.join(", "));
    };
    let dir = directory(workspace);
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let installed = dir.join("installed.json");
    let wanted = fs::read(workspace.root.join(SOURCES).join("package-lock.json"))
        .with_context(|| format!("cannot read the lock file of {SOURCES}"))?;
    let is_installed = fs::read(&installed).is_ok_and(|lock| lock == wanted);
    // What is copied is what runs: Node looks for packages beside the file that asks for them.
    for name in FILES {
        let from = workspace.root.join(SOURCES).join(name);
        fs::copy(&from, dir.join(name))
            .with_context(|| format!("cannot copy {}", from.display()))?;
    }
    if !is_installed {
        let install = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
        let mut npm = workspace.command("npm", &install);
        execute(npm.current_dir(&dir)).context("the packages of the checks cannot be had")?;
        fs::write(&installed, wanted)
            .with_context(|| format!("cannot write {}", installed.display()))?;
    }
    Ok(browser)
}

/// The path of a browser: what starts it does not look it up.
pub(crate) fn browser() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<_> = env::split_paths(&path).collect();
    let mut paths = BROWSERS
        .iter()
        .flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    paths.find(|path| path.is_file())
}

fn directory(workspace: &Workspace) -> PathBuf {
    workspace.target.join(STEP)
}

/// Builds the agent, and gives its path.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    // With a test among what is built, dependencies have the features that they have for `cargo test --workspace`.
    let build = [
        "build",
        "--workspace",
        "--bin",
        "tailrace",
        "--test",
        "tidy",
    ];
    execute(&mut workspace.cargo(&build))?;
    Ok(workspace.target.join("debug/tailrace"))
}

/// The command that checks the page of an agent.
fn checks(workspace: &Workspace, browser: &Path, agent: &Path) -> Command {
    let mut command = workspace.command("node", &[]);
    command
        .arg(directory(workspace).join("page.mjs"))
        .arg("--agent")
        .arg(agent)
        .arg("--browser")
        .arg(browser);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_checks_is_copied() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        let dir = root.expect("a workspace").join(SOURCES);
        let mut names: Vec<_> = fs::read_dir(dir)
            .expect("a directory")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            })
            .collect();
        names.sort();
        assert_eq!(names, FILES);
    }
}
