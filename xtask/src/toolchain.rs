//! What a static binary is built with: the musl target of an architecture, and a compiler for the libraries in C.
//!
//! For this machine's architecture that is musl-gcc, or else zig, which `cargo xtask setup` brings. For another one it is zig,
//! and what was built runs under qemu.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Workspace, capture, on_path};

/// The architectures that binaries are built for.
pub(crate) const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// The ways to compile C for musl.
enum Compiler {
    /// Debian's and Fedora's wrapper of gcc; cargo finds it by itself.
    MuslGcc,
    /// Wrappers of zig in this directory.
    Zig(PathBuf),
}

/// All that one architecture's static binary needs.
pub(crate) struct Toolchain {
    arch: String,
    compiler: Compiler,
}

impl Toolchain {
    /// The toolchain of an architecture.
    ///
    /// # Errors
    /// When something is missing; the message says what brings it.
    pub(crate) fn find(workspace: &Workspace, arch: &str) -> Result<Toolchain> {
        let target = format!("{arch}-unknown-linux-musl");
        if !has_target(workspace, &target)? {
            bail!("`rustup target add {target}` brings the standard library of a static binary");
        }
        let is_here = arch == env::consts::ARCH;
        let compiler = if is_here && on_path("musl-gcc") {
            Compiler::MuslGcc
        } else if on_path("zig") {
            let dir = workspace.target.join("zig").join(arch);
            write_wrappers(&dir, arch)?;
            Compiler::Zig(dir)
        } else {
            bail!("no C compiler for {target}: `cargo xtask setup` brings zig");
        };
        Ok(Toolchain {
            arch: arch.to_owned(),
            compiler,
        })
    }

    /// The target, as rustc calls it.
    pub(crate) fn target(&self) -> String {
        format!("{}-unknown-linux-musl", self.arch)
    }

    /// The architecture, as Rust calls it.
    pub(crate) fn arch(&self) -> &str {
        &self.arch
    }

    /// Cargo, told where the compiler and the linker are. `--target` is added to the arguments.
    pub(crate) fn cargo(&self, workspace: &Workspace, arguments: &[&str]) -> Command {
        let target = self.target();
        let mut cargo = workspace.cargo(arguments);
        cargo.arg("--target").arg(&target);
        let snake = target.replace('-', "_");
        let variable = |name: &str| format!("CARGO_TARGET_{}_{name}", snake.to_uppercase());

        if let Compiler::Zig(dir) = &self.compiler {
            for (name, wrapper) in [("CC", "cc"), ("AR", "ar"), ("RANLIB", "ranlib")] {
                cargo.env(format!("{name}_{snake}"), dir.join(wrapper));
            }
        }
        // For a fixed address: else 100,000 pointers are put right when it starts, and the 4 MB that they lie in are copied.
        cargo.env(variable("RUSTFLAGS"), "-Crelocation-model=static");
        if self.arch != env::consts::ARCH {
            cargo.env(variable("LINKER"), "rust-lld");
            cargo.env(variable("RUNNER"), emulator(&self.arch));
        }
        // Kernels of this architecture have pages of 4, 16 or 64 KiB; the allocator runs where they are at most as large as
        // it was built for.
        if self.arch == "aarch64" {
            cargo.env("JEMALLOC_SYS_WITH_LG_PAGE", "16");
        }
        cargo
    }
}

/// A program of an architecture, in the workspace's root: under qemu where it is not this machine's.
pub(crate) fn program(
    workspace: &Workspace,
    arch: &str,
    binary: &Path,
    arguments: &[&str],
) -> Command {
    if arch == env::consts::ARCH {
        return workspace.command(binary, arguments);
    }
    let mut command = workspace.command(emulator(arch), &[]);
    command.arg(binary).args(arguments);
    command
}

/// Debian: qemu-user-static.
fn emulator(arch: &str) -> String {
    format!("qemu-{arch}-static")
}

/// Whether rustup brought a target's standard library.
pub(crate) fn has_target(workspace: &Workspace, target: &str) -> Result<bool> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let arguments = ["--print", "target-libdir", "--target", target];
    let dir = capture(&mut workspace.command(rustc, &arguments))?;
    Ok(fs::read_dir(dir.trim()).is_ok_and(|mut entries| entries.next().is_some()))
}

/// zig's compiler as build scripts expect one. They name Rust's target, which zig does not know.
fn write_wrappers(dir: &Path, arch: &str) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let compile = format!(
        "for argument do\n  shift\n  case $argument in --target=*) ;; *) set -- \"$@\" \"$argument\" ;; esac\ndone\n\
         exec zig cc -target {arch}-linux-musl \"$@\"\n"
    );
    for (name, script) in [
        ("cc", compile),
        ("ar", "exec zig ar \"$@\"\n".to_owned()),
        ("ranlib", "exec zig ranlib \"$@\"\n".to_owned()),
    ] {
        let path = dir.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}"))
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
