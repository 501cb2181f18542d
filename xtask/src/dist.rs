//! `cargo xtask dist`: builds the binary that ships, and tells what a release
//! note needs: time, size, checksum.
//!
//! The binary is static (musl) where that target and its C compiler are
//! installed, else it needs this machine's glibc or a newer one; which of the
//! two it is, is printed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::workspace::{Workspace, capture, on_path, run as execute};

/// What was built.
pub(crate) struct Built {
    pub(crate) path: PathBuf,
    is_static: bool,
}

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let started = Instant::now();
    let Built { path, is_static } = build(workspace)?;
    let seconds = started.elapsed().as_secs_f64();
    let bytes = fs::metadata(&path)
        .with_context(|| format!("cannot read {}", path.display()))?
        .len();
    let (dir, name) = (path.parent(), path.file_name());
    let (dir, name) = dir.zip(name).context("the binary has no name")?;
    complete(workspace, &path, dir)?;
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
fn complete(workspace: &Workspace, binary: &Path, dir: &Path) -> Result<()> {
    let files = [
        ("tailrace.1", &["man"][..]),
        ("tailrace.bash", &["completion", "bash"]),
        ("_tailrace", &["completion", "zsh"]),
        ("tailrace.fish", &["completion", "fish"]),
    ];
    for (name, arguments) in files {
        let text = capture(&mut workspace.command(binary, arguments))?;
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(())
}

/// Builds it, and puts it where what ships is.
pub(crate) fn build(workspace: &Workspace) -> Result<Built> {
    let arch = env::consts::ARCH;
    let is_static = can_be_static(workspace)?;
    let libc = if is_static { "musl" } else { "gnu" };
    let target = format!("{arch}-unknown-linux-{libc}");
    let arguments = [
        "build",
        "--profile",
        "dist",
        "--bin",
        "tailrace",
        "--target",
        &target,
    ];
    execute(&mut workspace.cargo(&arguments))?;

    let built = workspace.target.join(&target).join("dist/tailrace");
    let out = workspace.target.join("dist-out");
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let version = version(&built, workspace)?;
    let name = format!("tailrace-{version}-{target}");
    let shipped = out.join(&name);
    fs::copy(&built, &shipped)
        .with_context(|| format!("cannot copy {} to {}", built.display(), shipped.display()))?;
    Ok(Built {
        path: shipped,
        is_static,
    })
}

/// Whether the target and the C compiler of a static binary are installed.
pub(crate) fn can_be_static(workspace: &Workspace) -> Result<bool> {
    let musl = format!("{}-unknown-linux-musl", env::consts::ARCH);
    Ok(has_target(workspace, &musl)? && on_path("musl-gcc"))
}

/// Whether rustup brought a target's standard library.
pub(crate) fn has_target(workspace: &Workspace, target: &str) -> Result<bool> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let arguments = ["--print", "target-libdir", "--target", target];
    let dir = capture(&mut workspace.command(rustc, &arguments))?;
    Ok(fs::read_dir(dir.trim()).is_ok_and(|mut entries| entries.next().is_some()))
}

/// The last word of `tailrace --version`.
pub(crate) fn version(binary: &Path, workspace: &Workspace) -> Result<String> {
    let text = capture(&mut workspace.command(binary, &["--version"]))?;
    let word = text
        .split_whitespace()
        .next_back()
        .context("`tailrace --version` printed nothing")?;
    Ok(word.to_owned())
}
