//! `cargo xtask setup`: brings the programs of the checks that this machine lacks. They go into the user's cache
//! (`~/.cache/tailrace/tools`) or the build directory, never into the system; what needs the system's package manager is
//! named. Nothing here fails: what cannot be had is skipped by the gate, too.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::steps::Steps;
use crate::toolchain::{ARCHITECTURES, has_target};
use crate::workspace::{self, Workspace, capture, on_path, run as execute};
use crate::{deploy, package, page};

const TYPOS: &str = "typos==1.52.0";
const ZIG: &str = "ziglang==0.15.2";
const CARGO_DENY: &str = "cargo-deny@0.20.2";
/// Without its server, which is most of its build.
const MDBOOK: [&str; 4] = [
    "mdbook@0.5.4",
    "--no-default-features",
    "--features",
    "search",
];

/// Tries all of them.
pub(crate) fn run(workspace: &Workspace) -> ExitCode {
    let mut steps = Steps::default();
    steps.attempt("typos", || typos(workspace));
    steps.attempt("cargo-deny", || {
        cargo_install(workspace, "cargo-deny", &[CARGO_DENY])
    });
    steps.attempt("advisory database", || {
        execute(&mut workspace.cargo(&["deny", "fetch"]))
    });
    steps.attempt("mdbook", || cargo_install(workspace, "mdbook", &MDBOOK));
    steps.attempt("musl targets", || musl_targets(workspace));
    steps.attempt("zig", || zig(workspace));
    steps.attempt("promtool", || deploy::build_promtool(workspace).map(drop));
    steps.attempt("nfpm", || package::nfpm(workspace).map(drop));
    steps.attempt("Python packages of the checks", || {
        deploy::python(workspace).map(drop)
    });
    steps.attempt("systemd-analyze", || {
        on_system("systemd-analyze", "systemd")
    });
    steps.attempt("dpkg-deb", || on_system("dpkg-deb", "dpkg"));
    steps.attempt("chromium", || {
        let browser = page::browser().map(drop);
        browser.context("the page of the agent cannot be opened: install chromium")
    });
    steps.finish()
}

/// The directory of the tools, with its `bin`.
fn tools() -> Result<PathBuf> {
    let tools = workspace::tools().context("no home directory: set XDG_CACHE_HOME")?;
    let bin = tools.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("cannot create {}", bin.display()))?;
    Ok(tools)
}

/// typos comes as a Python package, which has the program itself.
fn typos(workspace: &Workspace) -> Result<()> {
    if on_path("typos") {
        return Ok(());
    }
    let venv = python_package(workspace, "typos", TYPOS)?;
    link(&venv.join("bin/typos"), "typos")
}

/// Installs a package into an environment of this name, and gives its directory.
fn python_package(workspace: &Workspace, name: &str, package: &str) -> Result<PathBuf> {
    on_system("python3", "Python 3.9 or later")?;
    let venv = tools()?.join(name);
    let mut make = workspace.command("python3", &["-m", "venv", "--clear"]);
    execute(make.arg(&venv))?;
    let install = ["-m", "pip", "install", "--quiet", package];
    execute(&mut workspace.command(venv.join("bin/python"), &install))?;
    Ok(venv)
}

/// Makes a program one of the tools.
fn link(program: &Path, name: &str) -> Result<()> {
    let link = tools()?.join("bin").join(name);
    // One that leads nowhere is in the way.
    let _ = fs::remove_file(&link);
    symlink(program, &link).with_context(|| format!("cannot create {}", link.display()))
}

/// A program that cargo builds; it takes minutes.
fn cargo_install(workspace: &Workspace, program: &str, package: &[&str]) -> Result<()> {
    if on_path(program) {
        return Ok(());
    }
    let mut install = workspace.cargo(&["install", "--locked"]);
    let tools = tools()?;
    install
        .args(package)
        .arg("--root")
        .arg(&tools)
        .current_dir(&tools);
    execute(install.env_remove("CARGO_TARGET_DIR"))
}

fn musl_targets(workspace: &Workspace) -> Result<()> {
    for arch in ARCHITECTURES {
        let target = format!("{arch}-unknown-linux-musl");
        if !has_target(workspace, &target)? {
            on_system("rustup", "rustup")?;
            execute(&mut workspace.command("rustup", &["target", "add", &target]))?;
        }
    }
    Ok(())
}

/// zig compiles the C libraries of static binaries, for any architecture. It comes as a Python package.
fn zig(workspace: &Workspace) -> Result<()> {
    if on_path("zig") {
        return Ok(());
    }
    let venv = python_package(workspace, "zig", ZIG)?;
    let find = "import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), 'zig'))";
    let program = capture(&mut workspace.command(venv.join("bin/python"), &["-c", find]))?;
    link(Path::new(program.trim()), "zig")
}

/// A program that only the system's package manager brings.
fn on_system(program: &str, package: &str) -> Result<()> {
    if !on_path(program) {
        bail!("{program} is not on the PATH: install {package}");
    }
    Ok(())
}
