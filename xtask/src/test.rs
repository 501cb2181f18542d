//! `cargo xtask test`: every check, cheap ones first, one table at the end.
//!
//! Everything is built in the dev profile, so that the tests, the end-to-end
//! tests and the README's commands share one set of artifacts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};

use crate::steps::Steps;
use crate::toolchain::Toolchain;
use crate::workspace::{Workspace, is_ci, on_path, run as execute};
use crate::{book, collector, deny, deploy, kubernetes, oracle, package, page, python, readme};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out the collector and the end-to-end tests that need it
    #[arg(long)]
    skip_e2e: bool,
    /// Leave out a step; may be given several times
    #[arg(long, value_name = "STEP", value_parser = STEPS)]
    skip: Vec<String>,
    /// Run only this step; may be given several times
    #[arg(long, value_name = "STEP", value_parser = STEPS, conflicts_with = "skip")]
    only: Vec<String>,
    /// Run only the checks of deploy/, and build what they need
    #[arg(long, conflicts_with_all = ["skip", "only"])]
    deploy: bool,
    /// Run only the oracle: Python's json and DuckDB against the agent's output
    #[arg(long, conflicts_with_all = ["skip", "only", "deploy"])]
    oracle: bool,
    #[command(flatten)]
    kubernetes: kubernetes::Args,
}

const STEPS: [&str; 15] = [
    "fmt",
    "fuzz",
    "typos",
    "deny",
    "clippy",
    "collector",
    "tests",
    "oracle",
    "python",
    "page",
    "docs",
    "readme",
    "book",
    "packages",
    "deploy",
];

impl Args {
    fn wants(&self, step: &str) -> bool {
        if self.deploy || self.oracle {
            return step == if self.deploy { "deploy" } else { "oracle" };
        }
        let named = |list: &[String]| list.iter().any(|name| name == step);
        !named(&self.skip) && (self.only.is_empty() || named(&self.only))
    }
}

/// Runs the steps; the exit code tells whether all went well.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let mut steps = Steps::default();
    if args.kubernetes.kubernetes {
        kubernetes::run(workspace, &args.kubernetes, &mut steps);
        return Ok(steps.finish());
    }
    let cargo = |arguments: &[&str]| execute(&mut workspace.cargo(arguments));

    if args.wants("fmt") {
        steps.run("fmt", || cargo(&["fmt", "--all", "--check"]));
    }
    if args.wants("fuzz") {
        // It is no member of the workspace, so no other step sees that its lock file is behind.
        let arguments = ["fetch", "--locked", "--manifest-path", "fuzz/Cargo.toml"];
        steps.run("fuzz: lock file", || cargo(&arguments));
    }
    if args.wants("typos") {
        optional(&mut steps, "typos", "typos", || {
            execute(&mut workspace.command("typos", &[]))
        });
    }
    if args.wants("deny") {
        deny::run(workspace, &mut steps);
    }
    if args.wants("clippy") {
        let arguments = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ];
        steps.run("clippy", || cargo(&arguments));
        let arguments = ["clippy", "-p", "tailrace", "--no-default-features"];
        steps.run("clippy, without queries", || {
            cargo(&[&arguments[..], &["--", "-D", "warnings"]].concat())
        });
    }
    let collector = build_collector(workspace, args, &mut steps)?;
    if args.wants("tests") {
        run_tests(workspace, collector.as_deref(), &mut steps);
        run_static_tests(workspace, &mut steps)?;
    }
    if args.wants("oracle") {
        oracle::run(workspace, &mut steps);
    }
    if args.wants("python") {
        python::run(workspace, &mut steps);
    }
    if args.wants("page") {
        page::run(workspace, &mut steps);
    }
    if args.wants("docs") {
        steps.run("docs", || {
            let arguments = [
                "doc",
                "--workspace",
                "--no-deps",
                "--document-private-items",
            ];
            execute(
                workspace
                    .cargo(&arguments)
                    .env("RUSTDOCFLAGS", "-D warnings"),
            )
        });
    }
    if args.wants("readme") {
        readme::run(workspace, &mut steps)?;
    }
    if args.wants("book") {
        book::run(workspace, &mut steps)?;
    }
    if args.wants("packages") {
        package::check(workspace, &mut steps);
    }
    if args.wants("deploy") {
        deploy::run(workspace, args.deploy, &mut steps);
    }
    if STEPS.iter().all(|step| args.wants(step)) {
        kubernetes::skip(&mut steps);
    }
    Ok(steps.finish())
}

/// A step that needs a program which not every machine has.
fn optional(steps: &mut Steps, step: &str, program: &str, body: impl FnOnce() -> Result<()>) {
    if on_path(program) {
        steps.run(step, body);
    } else {
        steps.skip(step, format!("{program} is not on the PATH"));
    }
}

/// Builds the collector, or names the tests that go without it.
fn build_collector(
    workspace: &Workspace,
    args: &Args,
    steps: &mut Steps,
) -> Result<Option<PathBuf>> {
    if !args.wants("collector") && !args.wants("tests") {
        return Ok(None);
    }
    let left_out = || -> Result<String> {
        Ok(format!(
            "not run: {}",
            collector_tests(&workspace.root)?.join(", ")
        ))
    };
    // `--only tests` still means all of them, so only a skip leaves it out.
    if args.skip_e2e || args.skip.iter().any(|name| name == "collector") {
        steps.skip("collector", format!("asked for; {}", left_out()?));
    } else if !on_path("go") {
        let reason = format!("Go is not on the PATH; {}", left_out()?);
        if is_ci() {
            steps.fail("collector", reason);
        } else {
            steps.skip("collector", reason);
        }
    } else {
        let mut path = None;
        steps.run("collector", || {
            path = Some(collector::build(workspace)?);
            Ok(())
        });
        return Ok(path);
    }
    Ok(None)
}

fn run_tests(workspace: &Workspace, collector: Option<&Path>, steps: &mut Steps) {
    let name = match collector {
        Some(_) => "tests, end to end with the collector",
        None => "tests, without the collector",
    };
    steps.run(name, || {
        let mut command = workspace.cargo(&["test", "--workspace", "--no-fail-fast"]);
        match collector {
            Some(path) => command.env("TAILRACE_OTELCOL", path),
            None => command.env_remove("TAILRACE_OTELCOL"),
        };
        execute(&mut command)
    });
}

/// What ships is linked with musl, whose standard library answers otherwise: what knows files and their names is
/// tested with it as well.
fn run_static_tests(workspace: &Workspace, steps: &mut Steps) -> Result<()> {
    const STEP: &str = "tests of the input, static";
    let toolchain = match Toolchain::find(workspace, std::env::consts::ARCH) {
        Ok(toolchain) => toolchain,
        Err(error) => {
            steps.skip(STEP, format!("{error:#}"));
            return Ok(());
        }
    };
    let arguments = ["test", "-p", "tailrace-inputs", "--lib"];
    steps.run(STEP, || {
        execute(&mut toolchain.cargo(workspace, &arguments))
    });
    Ok(())
}

/// The names of the tests in `crates/*/tests/*/real_collector.rs`: only those
/// need the collector.
fn collector_tests(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for member in list(&root.join("crates"))? {
        for target in list(&member.join("tests"))? {
            let path = target.join("real_collector.rs");
            if path.is_file() {
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                names.extend(test_names(&text));
            }
        }
    }
    if names.is_empty() {
        bail!("no tests found in crates/*/tests/*/real_collector.rs");
    }
    Ok(names)
}

/// What a directory holds, in order; nothing if it does not exist.
fn list(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = fs::read_dir(dir)
        .and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.path()))
                .collect::<Result<Vec<_>, _>>()
        })
        .with_context(|| format!("cannot list {}", dir.display()))?;
    paths.sort();
    Ok(paths)
}

/// The functions that stand behind a `#[test]` or `#[tokio::test]`.
fn test_names(source: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
            names.extend(rest.split('(').next().map(str::to_owned));
            is_test = false;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_functions_are_found_by_their_attribute() {
        let source = "fn helper() {}\n#[test]\nfn one() {}\n#[tokio::test(flavor = \"x\")]\n\
                      #[allow(x)]\nasync fn two() -> R {}\nfn no() {}\n";
        assert_eq!(test_names(source), ["one", "two"]);
    }

    #[test]
    fn the_tests_that_need_the_collector_are_named() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .expect("a workspace");
        let names = collector_tests(root).expect("tests are found");
        assert!(names.len() >= 2, "{names:?}");
    }

    #[test]
    fn steps_are_chosen_by_name() {
        let args = |skip: &[&str], only: &[&str]| Args {
            skip_e2e: false,
            skip: skip.iter().map(|name| (*name).to_owned()).collect(),
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            deploy: false,
            oracle: false,
            kubernetes: kubernetes::Args::default(),
        };
        let chosen = |args: &Args| STEPS.into_iter().filter(|step| args.wants(step)).count();
        assert_eq!(chosen(&args(&[], &[])), STEPS.len());
        assert_eq!(chosen(&args(&["docs"], &[])), STEPS.len() - 1);
        assert_eq!(chosen(&args(&[], &["docs"])), 1);
        let deploy = Args {
            deploy: true,
            ..args(&[], &[])
        };
        assert_eq!(chosen(&deploy), 1);
        assert!(deploy.wants("deploy"));
        let oracle = Args {
            oracle: true,
            ..args(&[], &[])
        };
        assert_eq!(chosen(&oracle), 1);
        assert!(oracle.wants("oracle"));
    }
}
