//! The checks of `deploy/`: the chart and what it renders, the alert rules, the unit. They are
//! programs of other ecosystems, kept in `deploy/checks`; this gets their tools and runs them.
//!
//! Tools that cannot be had (no Go, no Python, no network) skip their check by name; in continuous
//! integration that is a failure.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::steps::Steps;
use crate::venv;
use crate::workspace::{Workspace, capture, is_ci, on_path, run as execute};

/// promtool without the service discovery of clouds, which is most of it.
const PROMTOOL: &str = "github.com/prometheus/prometheus/cmd/promtool";
const PROMTOOL_TAGS: &str = "remove_all_sd";

/// What `systemd-analyze security` may give the unit: tenths of its 0 to 10.
const EXPOSURE_MAX: &str = "20";

/// Runs all checks; those whose tools take minutes to build only when asked for or in CI.
pub(crate) fn run(workspace: &Workspace, asked_for: bool, steps: &mut Steps) {
    let checks = workspace.root.join("deploy/checks");
    step(
        steps,
        "deploy: chart and manifests",
        || go_modules(workspace, &checks, &["-test", "./..."]),
        || execute(&mut go(workspace, &checks, &["test", "-count=1", "./..."])),
    );
    step(
        steps,
        "deploy: schemas of Kubernetes",
        || python(workspace).map(drop),
        || schemas(workspace, &python(workspace)?),
    );
    let promtool = workspace.target.join("deploy/promtool");
    step(
        steps,
        "deploy: alert rules",
        || {
            if !promtool.is_file() && !asked_for && !is_ci() {
                bail!("promtool takes minutes to build, which `cargo xtask setup` does once");
            }
            let module = checks.join("promtool");
            go_modules(workspace, &module, &["-tags", PROMTOOL_TAGS, PROMTOOL])
        },
        || alerts(workspace, &promtool),
    );
    if on_path("systemd-analyze") {
        steps.run("deploy: systemd unit", || unit(workspace));
    } else {
        steps.skip("deploy: systemd unit", "systemd-analyze is not on the PATH");
    }
}

/// A step whose tools may be missing: without them it is skipped, in CI it fails.
fn step(
    steps: &mut Steps,
    name: &str,
    tools: impl FnOnce() -> Result<()>,
    body: impl FnOnce() -> Result<()>,
) {
    match tools() {
        Ok(()) => {
            steps.run(name, body);
        }
        Err(error) if is_ci() => steps.fail(name, format!("{error:#}")),
        Err(error) => steps.skip(name, format!("{error:#}")),
    }
}

fn go(workspace: &Workspace, dir: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = workspace.command("go", arguments);
    command.current_dir(dir).env("CGO_ENABLED", "0");
    command
}

/// Fetches the modules that these packages need. What does not compile is none of its business.
fn go_modules(workspace: &Workspace, dir: &Path, packages: &[&str]) -> Result<()> {
    if !on_path("go") {
        bail!("Go is not on the PATH");
    }
    let arguments = [&["list", "-deps"], packages].concat();
    capture(&mut go(workspace, dir, &arguments)).context("its Go modules cannot be had")?;
    Ok(())
}

/// The Python of an environment with the packages of `requirements.txt`.
pub(crate) fn python(workspace: &Workspace) -> Result<PathBuf> {
    venv::python(workspace, "deploy", "deploy/checks/requirements.txt")
}

fn schemas(workspace: &Workspace, python: &Path) -> Result<()> {
    let script = [
        "deploy/checks/schemas.py",
        "deploy/helm/golden",
        "deploy/kubernetes/base",
    ];
    execute(&mut workspace.command(python, &script))?;
    let lint = [
        "-m",
        "yamllint",
        "--strict",
        "--config-file=deploy/checks/yamllint.yaml",
        "deploy/helm/golden",
        "deploy/helm/tailrace/Chart.yaml",
        "deploy/helm/tailrace/ci",
        "deploy/helm/tailrace/files",
        "deploy/helm/tailrace/values.yaml",
        "deploy/kubernetes",
        "deploy/grafana",
    ];
    execute(&mut workspace.command(python, &lint))
}

/// Builds promtool; from the cache, after the first time, so that it is of the version that go.mod names.
pub(crate) fn build_promtool(workspace: &Workspace) -> Result<PathBuf> {
    if !on_path("go") {
        bail!("Go is not on the PATH");
    }
    let module = workspace.root.join("deploy/checks/promtool");
    let promtool = workspace.target.join("deploy/promtool");
    let mut build = go(workspace, &module, &["build", "-tags", PROMTOOL_TAGS]);
    execute(build.arg("-o").arg(&promtool).arg(PROMTOOL))?;
    Ok(promtool)
}

fn alerts(workspace: &Workspace, promtool: &Path) -> Result<()> {
    build_promtool(workspace)?;
    let grafana = workspace.root.join("deploy/grafana");
    for arguments in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "alerts_test.yaml"],
    ] {
        execute(
            workspace
                .command(promtool, &arguments)
                .current_dir(&grafana),
        )?;
    }
    Ok(())
}

/// Checks the unit with a program that is there in place of the agent's.
fn unit(workspace: &Workspace) -> Result<()> {
    let source = workspace.root.join("deploy/systemd/tailrace.service");
    let text = fs::read_to_string(&source)
        .with_context(|| format!("cannot read {}", source.display()))?
        .replace("/usr/bin/tailrace", "/usr/bin/env");
    let dir = workspace.target.join("deploy");
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let copy = dir.join("tailrace.service");
    fs::write(&copy, text).with_context(|| format!("cannot write {}", copy.display()))?;
    let analyze = |arguments: &[&str]| {
        let mut command = workspace.command("systemd-analyze", arguments);
        command.arg(&copy);
        command
    };
    // It exits with 0 for keys that it does not know, and says so on standard error; it also speaks of other units.
    let output = analyze(&["verify", "--man=no"])
        .output()
        .context("cannot start systemd-analyze")?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() || complaints.contains("tailrace.service") {
        bail!("systemd-analyze verify: {}", complaints.trim());
    }
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let output = analyze(&["security", "--offline=true", "--no-pager", &threshold])
        .output()
        .context("cannot start systemd-analyze")?;
    let table = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("systemd-analyze security: above {threshold}\n{table}");
    }
    println!(
        "{}",
        table.trim_end().lines().next_back().unwrap_or_default()
    );
    Ok(())
}
