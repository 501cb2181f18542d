//! The files that are printed from the options are what they were printed as.

use std::fs;
use std::path::PathBuf;

use tailrace_config::{annotated_example, json_schema, reference_page};

fn check(name: &str, expected: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name);
    if std::env::var_os("TAILRACE_BLESS").is_some() {
        fs::write(&path, expected).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let line = found
        .lines()
        .zip(expected.lines())
        .position(|(found, expected)| found != expected);
    let line = line.unwrap_or(found.lines().count().min(expected.lines().count())) + 1;
    assert!(
        found == expected,
        "{name} is stale from line {line} on; refresh it: TAILRACE_BLESS=1 cargo test -p tailrace-config"
    );
}

#[test]
fn the_reference_page_is_fresh() {
    check("docs/configuration.md", &reference_page());
}

#[test]
fn the_annotated_example_is_fresh() {
    check("config/tailrace.yaml", &annotated_example());
}

#[test]
fn the_schema_is_fresh_and_json() {
    let schema = json_schema();
    let parsed: serde_json::Value = serde_json::from_str(&schema).expect("the schema is JSON");
    assert_eq!(parsed["additionalProperties"], false);
    assert_eq!(
        parsed["properties"]["admin"]["properties"]["listen"]["type"][0],
        "string"
    );
    check("config/tailrace.schema.json", &schema);
}
