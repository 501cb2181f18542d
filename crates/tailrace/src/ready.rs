//! `tailrace ready`: asks a running agent whether it is ready, where there is no HTTP client, as in the container image.

use std::io::Write;

use anyhow::Context;
use tailrace_config::AdminAddress;

use crate::admin_client::ask;
use crate::cli::Failure;

/// Arguments of `tailrace ready`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Admin endpoint of the running agent, as in `admin.listen`: `IP:PORT` or `unix:/PATH`.
    #[arg(long, value_name = "ADDRESS", env = "TAILRACE_ADMIN")]
    admin: AdminAddress,
}

/// Asks the agent and prints its answer.
///
/// # Errors
///
/// It is not ready, or cannot be reached.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let body = ask(&args.admin, "/readyz")
        .with_context(|| format!("the agent at {} is not ready", args.admin))?;
    out.write_all(&body).context("standard output")?;
    Ok(())
}
