//! `cargo xtask package`: what a release offers for download. A `.tar.gz`, a `.deb` and a `.rpm` of the static binary, with the
//! systemd unit, an example config, man pages, completions, the license and a bill of materials; and their checksums.
//!
//! The files are collected in one directory. nfpm makes the packages of it, by `deploy/packages/nfpm.yaml`. Equal input
//! and an equal `SOURCE_DATE_EPOCH` (default: the time of the commit) give equal bytes.

mod sbom;

use std::env;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::steps::Steps;
use crate::toolchain::{ARCHITECTURES, Toolchain, program};
use crate::workspace::{Workspace, capture, is_ci, on_path, run as execute};
use crate::{deploy, dist};

/// The last version whose modules the Go proxy has in full.
const NFPM_VERSION: &str = "v2.43.4";
const NFPM: &str = "github.com/goreleaser/nfpm/v2/cmd/nfpm";
const MAINTAINER: &str = "The Tailrace authors <noreply@localhost>";

/// Files of the repository, and what they are called in the archive.
const FILES: [(&str, &str); 9] = [
    ("LICENSE", "LICENSE"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("README.md", "README.md"),
    ("config/tailrace.yaml", "tailrace.example.yaml"),
    ("config/tailrace.schema.json", "tailrace.schema.json"),
    ("deploy/packages/tailrace.yaml", "tailrace.yaml"),
    ("deploy/packages/environment", "environment"),
    ("deploy/packages/sysusers.conf", "sysusers.conf"),
    ("deploy/systemd/tailrace.service", "tailrace.service"),
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Package for this architecture
    #[arg(long, default_value = env::consts::ARCH, value_parser = ARCHITECTURES)]
    arch: String,
    /// Package this static binary instead of building one
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Write the packages into this directory [default: packages in the build directory, emptied first]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let nfpm = nfpm(workspace)?;
    let binary = match &args.binary {
        Some(binary) => {
            fs::canonicalize(binary).with_context(|| format!("cannot read {}", binary.display()))?
        }
        None => dist::build(workspace, &Toolchain::find(workspace, &args.arch)?)?,
    };
    let output = match &args.output {
        Some(dir) => dir.clone(),
        None => {
            let dir = workspace.target.join("packages");
            empty(&dir)?;
            dir
        }
    };
    make(workspace, &nfpm, &args.arch, &binary, &output)
}

/// The step `package`: packages of the binary that the tests left behind, looked into, installed, started and removed.
pub(crate) fn check(workspace: &Workspace, steps: &mut Steps) {
    const STEP: &str = "packages";
    let tools = || -> Result<(PathBuf, PathBuf)> {
        if !on_path("dpkg-deb") {
            bail!("dpkg-deb is not on the PATH");
        }
        Ok((nfpm(workspace)?, deploy::python(workspace)?))
    };
    let (nfpm, python) = match tools() {
        Ok(tools) => tools,
        Err(error) if is_ci() => return steps.fail(STEP, format!("{error:#}")),
        Err(error) => return steps.skip(STEP, format!("{error:#}")),
    };
    steps.run(STEP, || {
        let binary = workspace.target.join("debug/tailrace");
        let dir = workspace.target.join("packages-checked");
        empty(&dir)?;
        let stripped = strip(workspace, &binary)?;
        make(workspace, &nfpm, env::consts::ARCH, &stripped, &dir)?;
        let script = ["deploy/checks/packages.py"];
        execute(workspace.command(python, &script).arg(&dir))
    });
}

/// A copy without symbols, where `strip` is there: those of a debug build take a minute to compress.
fn strip(workspace: &Workspace, binary: &Path) -> Result<PathBuf> {
    let copy = workspace.target.join("deploy/tailrace-stripped");
    fs::copy(binary, &copy).with_context(|| {
        format!(
            "cannot copy {}: the step `tests` builds it",
            binary.display()
        )
    })?;
    if on_path("strip") {
        execute(workspace.command("strip", &["--strip-all"]).arg(&copy))?;
    }
    Ok(copy)
}

fn make(
    workspace: &Workspace,
    nfpm: &Path,
    arch: &str,
    binary: &Path,
    output: &Path,
) -> Result<()> {
    fs::create_dir_all(output).with_context(|| format!("cannot create {}", output.display()))?;
    let output = fs::canonicalize(output)?;
    let stage = workspace.target.join("package-stage");
    empty(&stage)?;
    collect(workspace, arch, binary, &stage)?;

    let version = dist::version(workspace, arch, binary)?;
    let epoch = epoch(workspace)?;
    let name = format!("tailrace-{version}-{arch}-linux");
    let archive = output.join(format!("{name}.tar.gz"));
    fs::write(&archive, tar_gz(&stage, &name, epoch)?)
        .with_context(|| format!("cannot write {}", archive.display()))?;

    compress_pages(&stage.join("man"))?;
    for packager in ["deb", "rpm"] {
        let mut command = Command::new(nfpm);
        command
            .current_dir(&stage)
            .args(["package", "--packager", packager, "--config"])
            .arg(workspace.root.join("deploy/packages/nfpm.yaml"))
            .arg("--target")
            .arg(format!("{}/", output.display()))
            .env("ARCH", debian_arch(arch))
            .env("VERSION", &version)
            .env("MAINTAINER", MAINTAINER)
            .env("SOURCE_DATE_EPOCH", epoch.to_string());
        execute(&mut command)?;
    }
    sums(workspace, &output)
}

/// Puts the files of all packages into one directory.
fn collect(workspace: &Workspace, arch: &str, binary: &Path, stage: &Path) -> Result<()> {
    let copy = |from: &Path, name: &str| -> Result<()> {
        fs::copy(from, stage.join(name))
            .with_context(|| format!("cannot copy {}", from.display()))?;
        Ok(())
    };
    copy(binary, "tailrace")?;
    for (from, name) in FILES {
        copy(&workspace.root.join(from), name)?;
    }
    for dir in ["man", "completions", "scripts"] {
        fs::create_dir(stage.join(dir))?;
    }
    for name in ["postinstall.sh", "preremove.sh", "postremove.sh"] {
        let from = workspace.root.join("deploy/packages/scripts").join(name);
        copy(&from, &format!("scripts/{name}"))?;
    }
    let mut man = program(workspace, arch, binary, &["man", "--dir"]);
    execute(man.arg(stage.join("man")))?;
    for (shell, name) in [
        ("bash", "tailrace.bash"),
        ("zsh", "_tailrace"),
        ("fish", "tailrace.fish"),
    ] {
        let script = capture(&mut program(
            workspace,
            arch,
            binary,
            &["completion", shell],
        ))?;
        fs::write(stage.join("completions").join(name), script)?;
    }
    let bill = sbom::bill(workspace, arch)?;
    fs::write(stage.join("tailrace.cdx.json"), bill).context("cannot write the bill of materials")
}

/// One directory of this name, with all that was collected except what only packages need.
fn tar_gz(stage: &Path, name: &str, epoch: u64) -> Result<Vec<u8>> {
    let gzip = GzEncoder::new(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(gzip);
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        for path in sorted(&stage.join(&dir))? {
            let relative = path.strip_prefix(stage)?;
            if relative == Path::new("scripts") {
                continue;
            }
            if path.is_dir() {
                dirs.push(relative.to_owned());
                continue;
            }
            let content = fs::read(&path)?;
            let is_program = relative == Path::new("tailrace");
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(if is_program { 0o755 } else { 0o644 });
            header.set_mtime(epoch);
            tar.append_data(
                &mut header,
                Path::new(name).join(relative),
                content.as_slice(),
            )?;
        }
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Packages have man pages as `.gz`.
fn compress_pages(dir: &Path) -> Result<()> {
    for path in sorted(dir)? {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(&fs::read(&path)?)?;
        let compressed = PathBuf::from(format!("{}.gz", path.display()));
        fs::write(compressed, gzip.finish()?)?;
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Writes SHA256SUMS, and prints it with the sizes.
fn sums(workspace: &Workspace, output: &Path) -> Result<()> {
    let mut sum = workspace.command("sha256sum", &["--"]);
    sum.current_dir(output);
    for path in sorted(output)? {
        let name = path.file_name().context("a file without a name")?;
        if name == "SHA256SUMS" {
            continue;
        }
        let megabytes = fs::metadata(&path)?.len() as f64 / 1e6;
        println!("{megabytes:6.1} MB  {}", path.display());
        sum.arg(name);
    }
    let text = capture(&mut sum)?;
    fs::write(output.join("SHA256SUMS"), &text).context("cannot write SHA256SUMS")?;
    print!("{text}");
    Ok(())
}

/// The time that files in packages have, in seconds of Unix.
fn epoch(workspace: &Workspace) -> Result<u64> {
    let text = match env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => capture(&mut workspace.command("git", &["log", "-1", "--format=%ct"]))
            .context("no time for the files: set SOURCE_DATE_EPOCH")?,
    };
    text.trim()
        .parse()
        .with_context(|| format!("SOURCE_DATE_EPOCH: {text} is no number of seconds"))
}

/// Debian's name of an architecture; nfpm knows what it is called in an rpm.
fn debian_arch(arch: &str) -> &str {
    match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// nfpm, built once below the build directory.
pub(crate) fn nfpm(workspace: &Workspace) -> Result<PathBuf> {
    let dir = workspace
        .target
        .join("deploy")
        .join(format!("nfpm-{NFPM_VERSION}"));
    let program = dir.join("nfpm");
    if program.is_file() {
        return Ok(program);
    }
    if !on_path("go") {
        bail!("Go is not on the PATH, and nfpm is built with it");
    }
    let package = format!("{NFPM}@{NFPM_VERSION}");
    let mut install = workspace.command("go", &["install", &package]);
    execute(install.env("GOBIN", &dir).env("CGO_ENABLED", "0")).context("nfpm cannot be had")?;
    Ok(program)
}

fn empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
}

fn sorted(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_archive_has_one_directory_and_equal_bytes() {
        let stage = tempfile::tempdir().unwrap();
        for path in ["man/a.1", "scripts/no.sh", "tailrace", "LICENSE"] {
            let path = stage.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let archive = tar_gz(stage.path(), "top", 7).unwrap();
        assert_eq!(archive, tar_gz(stage.path(), "top", 7).unwrap());
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive.as_slice()));
        let mut files: Vec<(String, u32)> = tar
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let path = entry.path().unwrap().display().to_string();
                (path, entry.header().mode().unwrap())
            })
            .collect();
        files.sort();
        let expected = [
            ("top/LICENSE", 0o644),
            ("top/man/a.1", 0o644),
            ("top/tailrace", 0o755),
        ];
        assert_eq!(files, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }
}
