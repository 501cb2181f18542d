//! `cargo xtask bench`: builds `benches/runner` and hands it the arguments.

use std::ffi::OsString;

use anyhow::Result;

use crate::workspace::{Workspace, run as execute};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// See `cargo xtask bench --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let runner = ["run", "--quiet", "--package", "tailrace-bench-runner", "--"];
    execute(workspace.cargo(&runner).args(&args.arguments))
}
