//! The configs that the Helm chart makes, and those of the plain manifests, are good ones: what `deploy/helm/golden` has
//! recorded is loaded as the agent would load it.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use tailrace_config::{Config, Diagnostic, load};

/// Where a ConfigMap holds the config, indented by four.
const KEY: &str = "\n  tailrace.yaml: |\n";

#[test]
fn every_config_of_the_chart_loads() {
    let mut loaded = 0;
    for path in manifests() {
        let text = fs::read_to_string(&path).unwrap();
        // With `configMap.existingName` the chart makes none.
        let Some(config) = config_of(&text) else {
            continue;
        };
        let config =
            check(&config).unwrap_or_else(|faults| panic!("{}: {}", path.display(), list(&faults)));
        assert!(!config.pipelines.is_empty(), "{}", path.display());
        // The probes and the mounts are made for these.
        assert!(config.admin.listen.is_some(), "{}", path.display());
        assert_eq!(config.data_dir, Path::new("/var/lib/tailrace"));
        loaded += 1;
    }
    assert!(loaded >= 20, "only {loaded} configs were found");
}

#[test]
fn a_config_with_an_unknown_option_does_not_load() {
    let text = "x: y\n  tailrace.yaml: |\n    pipelines:\n      a:\n        inptu: {}\n---\n";
    let faults = check(&config_of(text).unwrap()).unwrap_err();
    assert!(list(&faults).contains("inptu"), "{}", list(&faults));
}

fn manifests() -> Vec<PathBuf> {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let mut paths: Vec<PathBuf> = fs::read_dir(deploy.join("helm/golden"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.push(deploy.join("kubernetes/tailrace.yaml"));
    paths
}

/// The text of the config in a manifest, without its indentation.
fn config_of(manifest: &str) -> Option<String> {
    let (_, rest) = manifest.split_once(KEY)?;
    let lines = rest.lines().map_while(|line| line.strip_prefix("    "));
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Loads it with all that the chart's values name of the environment; secret files are not there.
fn check(text: &str) -> Result<Config, Vec<Diagnostic>> {
    let directory = tempfile::tempdir().unwrap();
    let secret = directory.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let text = text.replace(
        "${file:/run/secrets/tenant/name}",
        &format!("${{file:{}}}", secret.display()),
    );
    let path = directory.path().join("tailrace.yaml");
    fs::write(&path, text).unwrap();
    load(&[path], &|name| {
        let value = match name {
            "K8S_NODE_NAME" => "node-1",
            "OTLP_TOKEN" => "token",
            "OTEL_EXPORTER_OTLP_ENDPOINT" => "http://10.0.0.1:4318",
            _ => return None,
        };
        Some(value.to_owned())
    })
}

fn list(faults: &[Diagnostic]) -> String {
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
