//! Opens an output as the config describes it.

use tailrace_config as config;
use tailrace_outputs::Opened;
use tokio::runtime::Handle;

use crate::error::{Error, Kind};

/// Opens it: reads its certificates, and connects to nothing.
pub(crate) fn open(
    pipeline: &str,
    output: &config::Output,
    runtime: &Handle,
) -> Result<Opened, Error> {
    let _entered = runtime.enter();
    let opened = output.kind.open().map_err(|source| Kind::Output {
        pipeline: pipeline.to_owned(),
        output: output.name.clone(),
        source,
    })?;
    Ok(opened)
}
