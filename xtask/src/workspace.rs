//! Where things are, and how other programs are started.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// The directories of this checkout.
pub struct Workspace {
    /// The directory of the workspace's `Cargo.toml`.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target: PathBuf,
}

impl Workspace {
    /// The checkout that cargo runs this program for. It need not be the one that the program was built in, where several
    /// share a build directory.
    ///
    /// # Errors
    /// Without a current directory.
    pub fn find() -> Result<Workspace> {
        let package = env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = package
            .ancestors()
            .find(|dir| dir.join("xtask/Cargo.toml").is_file())
            .with_context(|| format!("{} is in no checkout", package.display()))?
            .to_owned();
        let target = match env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => env::current_dir()
                .context("no current directory")?
                .join(dir),
            None => root.join("target"),
        };
        Ok(Workspace { root, target })
    }

    /// The cargo that started us, in the workspace's root.
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        self.command(cargo, arguments)
    }

    /// A program, in the workspace's root.
    pub fn command(&self, program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.root);
        if let Ok(path) = env::join_paths(search_path()) {
            command.env("PATH", path);
        }
        // What cargo told this program about itself would make build scripts run again.
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name.as_ref());
            }
        }
        command
    }
}

/// True when a program of this name is on the PATH, or was brought by `cargo xtask setup`.
pub fn on_path(program: &str) -> bool {
    search_path().any(|dir| dir.join(program).is_file())
}

/// Where `cargo xtask setup` puts programs, outside of the clone; its `bin` is searched after the PATH.
pub fn tools() -> Option<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache")));
    Some(cache?.join("tailrace/tools"))
}

/// The directories in which programs are looked for.
fn search_path() -> impl Iterator<Item = PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    dirs.into_iter().chain(tools().map(|dir| dir.join("bin")))
}

/// True in continuous integration, where a check that cannot run is a failure.
pub fn is_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true" || value == "1")
}

/// Runs a command to its end; what it prints goes where ours goes.
///
/// # Errors
/// When it cannot be started or fails.
pub fn run(command: &mut Command) -> Result<()> {
    let name = display(command);
    println!("$ {name}");
    let status = command
        .status()
        .with_context(|| format!("cannot start `{name}`"))?;
    if !status.success() {
        bail!("`{name}` ended with {status}");
    }
    Ok(())
}

/// Runs a command to its end and gives what it printed on standard output.
///
/// # Errors
/// When it cannot be started, fails, or prints something else than UTF-8.
pub fn capture(command: &mut Command) -> Result<String> {
    let name = display(command);
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{name}`"))?;
    if !output.status.success() {
        bail!("`{name}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{name}` printed no UTF-8"))
}

/// The program's own name and its arguments.
fn display(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut text = program
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
