//! The OpenTelemetry Collector of the tests and benchmarks, built from Go
//! modules by the collector project's own builder. The binary is kept in the
//! target directory until the list of components changes.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::workspace::{Workspace, on_path, run};

/// The release of the collector and of every component in the list.
const VERSION: &str = "v0.145.0";

/// The components, as the builder reads them.
const COMPONENTS: &str = include_str!("../../benches/peers/otelcol-builder.yaml");

/// The collector, if it was built here.
pub fn built(workspace: &Workspace) -> Option<PathBuf> {
    let binary = workspace
        .target
        .join("collector")
        .join(format!("otelcol-{VERSION}"));
    binary.is_file().then_some(binary)
}

/// Builds the collector unless it is there already; gives its path.
///
/// # Errors
/// Without Go, or when the build fails.
pub fn build(workspace: &Workspace) -> Result<PathBuf> {
    let dir = workspace.target.join("collector");
    let binary = dir.join(format!("otelcol-{VERSION}"));
    let stamp = dir.join(format!("otelcol-{VERSION}.yaml"));
    if binary.is_file() && fs::read_to_string(&stamp).is_ok_and(|text| text == COMPONENTS) {
        return Ok(binary);
    }
    if !on_path("go") {
        bail!("the collector is built with Go, which is not on the PATH");
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let config = dir.join("builder-config.yaml");
    fs::write(&config, COMPONENTS).with_context(|| format!("cannot write {}", config.display()))?;
    let builder = format!("go.opentelemetry.io/collector/cmd/builder@{VERSION}");
    let mut command =
        workspace.command("go", &["run", &builder, "--config", "builder-config.yaml"]);
    // Its own directory, so that no go.mod above it is taken for ours.
    run(command.current_dir(&dir).env("CGO_ENABLED", "0"))?;
    // The stamp comes last: without it the next run builds again.
    let _ = fs::remove_file(&stamp);
    fs::rename(dir.join("build/otelcol"), &binary).context("the builder left no binary")?;
    fs::write(&stamp, COMPONENTS).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_has_the_version_of_the_builder() {
        let modules: Vec<&str> = COMPONENTS
            .lines()
            .filter(|line| line.contains("gomod:"))
            .collect();
        assert!(modules.len() >= 5);
        for module in modules {
            assert!(module.ends_with(VERSION), "{module}");
        }
    }
}
