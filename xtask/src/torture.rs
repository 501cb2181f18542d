//! `cargo xtask torture`: builds Tailrace and the torture harness (`tailrace-torture`), and the collector if it is
//! needed, and hands everything else on the command line to the harness. It tortures nothing by itself.

use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::collector;
use crate::workspace::{Workspace, run as execute};

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// What `cargo xtask torture --help` lists
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the harness; its exit code is ours.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<ExitCode> {
    let needs = Needs::of(&args.arguments);
    // With the features of the whole workspace, as everything else is built.
    let mut build = vec!["build", "--workspace", "--bin", "torture"];
    if needs.tailrace {
        build.extend(["--bin", "tailrace"]);
    }
    execute(&mut workspace.cargo(&build))?;
    let built = workspace.target.join("debug");
    let mut command = workspace.command(built.join("torture"), &[]);
    if needs.tailrace {
        command.arg("--tailrace").arg(built.join("tailrace"));
    }
    if needs.otelcol {
        command.arg("--otelcol").arg(collector::build(workspace)?);
    }
    for argument in &args.arguments {
        command.arg(argument);
        if argument == "--report" {
            command.arg(workspace.root.join("docs/fault-matrix.md"));
        }
    }
    let status = command.status().context("cannot start the harness")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// What must be built for a command line.
#[derive(Debug, PartialEq)]
struct Needs {
    tailrace: bool,
    otelcol: bool,
}

impl Needs {
    fn of(arguments: &[String]) -> Needs {
        let has = |name: &str| {
            let with_value = format!("{name}=");
            let is = |text: &String| text == name || text.starts_with(&with_value);
            arguments.iter().any(is)
        };
        let both = has("--report");
        let peer = arguments.iter().any(|text| text.ends_with("otelcol"));
        Needs {
            tailrace: !has("--tailrace"),
            otelcol: (both || peer) && !has("--otelcol"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Needs;

    #[test]
    fn what_is_given_is_not_built() {
        let needs = |text: &str| {
            let arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let Needs { tailrace, otelcol } = Needs::of(&arguments);
            (tailrace, otelcol)
        };
        assert_eq!(needs("--kills 3"), (true, false));
        assert_eq!(needs("--agent otelcol"), (true, true));
        assert_eq!(needs("--agent=otelcol --tailrace=x"), (false, true));
        assert_eq!(needs("--report --tailrace x --otelcol y"), (false, false));
    }
}
