//! `cargo xtask dist`: builds the binary that ships, and tells what a release
//! note needs: time, size, checksum.
//!
//! The binary is static (musl) where that target and its C compiler are
//! installed, else it needs this machine's glibc or a newer one; which of the
//! two it is, is printed.

use std::env;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::workspace::{Workspace, capture, on_path, run as execute};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let arch = env::consts::ARCH;
    let musl = format!("{arch}-unknown-linux-musl");
    let is_static = has_target(workspace, &musl)? && on_path("musl-gcc");
    let target = if is_static {
        musl
    } else {
        format!("{arch}-unknown-linux-gnu")
    };
    let started = Instant::now();
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
    let seconds = started.elapsed().as_secs_f64();

    let built = workspace.target.join(&target).join("dist/tailrace");
    let out = workspace.target.join("dist-out");
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let version = version(&built, workspace)?;
    let name = format!("tailrace-{version}-{target}");
    let shipped = out.join(&name);
    let bytes = fs::copy(&built, &shipped)
        .with_context(|| format!("cannot copy {} to {}", built.display(), shipped.display()))?;
    let sum = capture(workspace.command("sha256sum", &[&name]).current_dir(&out))?;
    fs::write(out.join("SHA256SUMS"), &sum).context("cannot write SHA256SUMS")?;

    println!("binary    {}", shipped.display());
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
    print!("sha256    {sum}");
    Ok(())
}

fn has_target(workspace: &Workspace, target: &str) -> Result<bool> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let arguments = ["--print", "target-libdir", "--target", target];
    let dir = capture(&mut workspace.command(rustc, &arguments))?;
    Ok(fs::read_dir(dir.trim()).is_ok_and(|mut entries| entries.next().is_some()))
}

/// The last word of `tailrace --version`.
fn version(binary: &Path, workspace: &Workspace) -> Result<String> {
    let text = capture(&mut workspace.command(binary, &["--version"]))?;
    let word = text
        .split_whitespace()
        .next_back()
        .context("`tailrace --version` printed nothing")?;
    Ok(word.to_owned())
}
