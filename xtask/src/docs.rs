//! `cargo xtask docs`: writes the generated documents anew. They are outputs of
//! tests, which compare by default and write when `TAILRACE_BLESS` is set.

use anyhow::Result;

use crate::workspace::{Workspace, run as execute};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    // All tests of a crate run in the same build that `cargo xtask test` makes;
    // only those whose name says so write anything.
    let arguments = ["test", "--workspace", "--", "generated"];
    execute(workspace.cargo(&arguments).env("TAILRACE_BLESS", "1"))
}
