//! `cargo xtask dist`: builds the binary that ships, and tells what a release
//! note needs: time, size, checksum.
//!
//! The binary is static (musl) where that target and a C compiler for it are
//! installed, else it needs this machine's glibc or a newer one; which of the
//! two it is, is printed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::toolchain::{self, ARCHITECTURES, Toolchain};
use crate::workspace::{Workspace, capture, run as execute};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build for this architecture
    #[arg(long, default_value = env::consts::ARCH, value_parser = ARCHITECTURES)]
    arch: String,
    /// Run the scanner's tests for this architecture, and the demo of what was built; under qemu where it is not this machine's
    #[arg(long)]
    check: bool,
}

/// What was built.
struct Built {
    path: PathBuf,
    is_static: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.check {
        check_scanner(workspace, &args.arch)?;
    }
    let started = Instant::now();
    let Built { path, is_static } = match Toolchain::find(workspace, &args.arch) {
        Ok(toolchain) => Built {
            path: build(workspace, &toolchain)?,
            is_static: true,
        },
        Err(error) if args.arch == env::consts::ARCH => {
            println!("not static: {error:#}");
            Built {
                path: build_dynamic(workspace)?,
                is_static: false,
            }
        }
        Err(error) => return Err(error),
    };
    let seconds = started.elapsed().as_secs_f64();
    if args.check {
        let mut demo = toolchain::program(workspace, &args.arch, &path, &["demo"]);
        execute(&mut demo)?;
    }
    let bytes = fs::metadata(&path)
        .with_context(|| format!("cannot read {}", path.display()))?
        .len();
    let (dir, name) = (path.parent(), path.file_name());
    let (dir, name) = dir.zip(name).context("the binary has no name")?;
    complete(workspace, &args.arch, &path, dir)?;
    let mut sum = workspace.command("sha256sum", &[]);
    sum.arg(name)
        .args(["tailrace.1", "tailrace.bash", "_tailrace", "tailrace.fish"]);
    let sum = capture(sum.current_dir(dir))?;
    fs::write(dir.join("SHA256SUMS"), &sum).context("cannot write SHA256SUMS")?;

    println!("binary    {}", path.display());
    println!(
        "linked    {}",
        if is_static {
            "static (musl)"
        } else {
            "glibc of this machine"
        }
    );
    println!("size      {bytes} bytes ({:.1} MB)", bytes as f64 / 1e6);
    println!("built in  {seconds:.0} s (what was built before is not built again)");
    print!("{sum}");
    Ok(())
}

/// The man page and completions, as the binary itself writes them.
fn complete(workspace: &Workspace, arch: &str, binary: &Path, dir: &Path) -> Result<()> {
    let files = [
        ("tailrace.1", &["man"][..]),
        ("tailrace.bash", &["completion", "bash"]),
        ("_tailrace", &["completion", "zsh"]),
        ("tailrace.fish", &["completion", "fish"]),
    ];
    for (name, arguments) in files {
        let text = capture(&mut toolchain::program(workspace, arch, binary, arguments))?;
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// The scanner has code of its own for each architecture. What fails here fails before the long build of what ships.
fn check_scanner(workspace: &Workspace, arch: &str) -> Result<()> {
    let tests = ["test", "--release", "-p", "tailrace-scan", "--lib"];
    execute(&mut Toolchain::find(workspace, arch)?.cargo(workspace, &tests))
}

/// Builds a static binary, and puts it where what ships is.
pub(crate) fn build(workspace: &Workspace, toolchain: &Toolchain) -> Result<PathBuf> {
    let arguments = ["build", "--profile", "dist", "--bin", "tailrace"];
    execute(&mut toolchain.cargo(workspace, &arguments))?;
    let target = toolchain.target();
    let arch = toolchain.arch();
    ship(
        workspace,
        arch,
        &target,
        &workspace.target.join(&target).join("dist/tailrace"),
    )
}

/// The same, for machines like this one.
fn build_dynamic(workspace: &Workspace) -> Result<PathBuf> {
    let arch = env::consts::ARCH;
    let target = format!("{arch}-unknown-linux-gnu");
    execute(&mut workspace.cargo(&["build", "--profile", "dist", "--bin", "tailrace"]))?;
    ship(
        workspace,
        arch,
        &target,
        &workspace.target.join("dist/tailrace"),
    )
}

/// Copies a binary to its name with version and target.
fn ship(workspace: &Workspace, arch: &str, target: &str, built: &Path) -> Result<PathBuf> {
    let out = workspace.target.join("dist-out");
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let version = version(workspace, arch, built)?;
    let shipped = out.join(format!("tailrace-{version}-{target}"));
    fs::copy(built, &shipped)
        .with_context(|| format!("cannot copy {} to {}", built.display(), shipped.display()))?;
    Ok(shipped)
}

/// The last word of `tailrace --version`.
pub(crate) fn version(workspace: &Workspace, arch: &str, binary: &Path) -> Result<String> {
    let text = capture(&mut toolchain::program(
        workspace,
        arch,
        binary,
        &["--version"],
    ))?;
    let word = text
        .split_whitespace()
        .next_back()
        .context("`tailrace --version` printed nothing")?;
    Ok(word.to_owned())
}
