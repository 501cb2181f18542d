//! `cargo xtask docs`: writes the generated documents anew. They are outputs of
//! tests, which compare by default and write when `TAILRACE_BLESS` is set.

use anyhow::Result;

use crate::workspace::{Workspace, run as execute};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    // By convention they are the integration tests named `generated`.
    let arguments = ["test", "--workspace", "--test", "generated"];
    execute(workspace.cargo(&arguments).env("TAILRACE_BLESS", "1"))?;
    // It is printed from what the binary's crate has private.
    let arguments = [
        "test",
        "--workspace",
        "--lib",
        "the_page_of_metrics_is_fresh",
    ];
    execute(workspace.cargo(&arguments).env("TAILRACE_BLESS", "1"))
}
