//! The bill of materials of the binary: CycloneDX 1.5, as JSON. Format: <https://cyclonedx.org/docs/1.5/json/>.
//!
//! It lists the crates that are linked into the binary on this target, with version, license, checksum and what each depends
//! on. `cargo tree` knows the crates, Cargo.lock their checksums.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::workspace::{Workspace, capture};

/// Crates as `name@version`.
type Reference = String;

/// The bill as text.
pub(super) fn bill(workspace: &Workspace, arch: &str) -> Result<String> {
    let target = format!("{arch}-unknown-linux-musl");
    let arguments = [
        "tree",
        "--locked",
        "--package=tailrace",
        "--edges=normal",
        "--prefix=depth",
        "--format=|{p}|{l}",
        "--target",
        &target,
    ];
    let tree = capture(&mut workspace.cargo(&arguments))?;
    let lock = std::fs::read_to_string(workspace.root.join("Cargo.lock"))
        .context("cannot read Cargo.lock")?;
    let bill = of(&tree, &checksums(&lock))?;
    Ok(serde_json::to_string_pretty(&bill)?)
}

/// The bill of a tree as `cargo tree` prints it, the binary first: `DEPTH|NAME vVERSION ...|LICENSE`.
fn of(tree: &str, checksums: &BTreeMap<Reference, String>) -> Result<Value> {
    let mut components: BTreeMap<Reference, Value> = BTreeMap::new();
    let mut dependencies: BTreeMap<Reference, BTreeSet<Reference>> = BTreeMap::new();
    // The crates from the binary to the one before.
    let mut path: Vec<Reference> = Vec::new();
    for line in tree.lines().filter(|line| !line.trim().is_empty()) {
        let (depth, name, version, license) =
            parse(line).with_context(|| format!("cargo tree: {line}"))?;
        let reference = format!("{name}@{version}");
        path.truncate(depth);
        if path.len() < depth {
            bail!("cargo tree: {line} has no parent");
        }
        if let Some(parent) = path.last() {
            let children = dependencies.entry(parent.clone()).or_default();
            children.insert(reference.clone());
        }
        dependencies.entry(reference.clone()).or_default();
        path.push(reference.clone());
        let checksum = checksums.get(&reference);
        components
            .entry(reference)
            .or_insert_with_key(|reference| component(reference, name, version, license, checksum));
    }
    let root = path.first().context("cargo tree printed nothing")?;
    let mut binary = components.remove(root).context("the binary is no crate")?;
    binary["type"] = json!("application");
    let dependencies: Vec<Value> = dependencies
        .iter()
        .map(|(reference, on)| json!({"ref": reference, "dependsOn": on}))
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": binary},
        "components": components.values().collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

/// The parts of a line. A crate that was printed before ends in `(*)`.
fn parse(line: &str) -> Option<(usize, &str, &str, &str)> {
    let line = line.strip_suffix(" (*)").unwrap_or(line);
    let mut parts = line.splitn(3, '|');
    let depth = parts.next()?.parse().ok()?;
    let mut words = parts.next()?.split(' ');
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some((depth, name, version, parts.next()?))
}

fn component(
    reference: &str,
    name: &str,
    version: &str,
    license: &str,
    checksum: Option<&String>,
) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": format!("pkg:cargo/{reference}"),
    });
    if !license.is_empty() {
        // Old manifests write `MIT/Apache-2.0`.
        let expression = license.replace('/', " OR ");
        component["licenses"] = json!([{"expression": expression}]);
    }
    if let Some(checksum) = checksum {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    component
}

/// The checksums of Cargo.lock, by crate. Ours have none.
fn checksums(lock: &str) -> BTreeMap<Reference, String> {
    let field = |package: &str, name: &str| {
        let line = package
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    lock.split("[[package]]")
        .filter_map(|package| {
            let (name, version) = (field(package, "name")?, field(package, "version")?);
            Some((format!("{name}@{version}"), field(package, "checksum")?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = "version = 4\n\n[[package]]\nname = \"b\"\nversion = \"1.0.0\"\nchecksum = \"abc\"\n\
                        \n[[package]]\nname = \"a\"\nversion = \"0.1.0\"\ndependencies = [\n \"b\",\n]\n";

    #[test]
    fn each_crate_is_listed_once_with_what_it_depends_on() {
        let tree = "0|a v0.1.0 (/w/a)|Apache-2.0\n1|b v1.0.0|MIT/Apache-2.0\n2|c v2.0.0 (proc-macro)|\n\
                    1|d v3.0.0|MIT\n2|b v1.0.0|MIT/Apache-2.0 (*)\n";
        let bill = of(tree, &checksums(LOCK)).unwrap();
        assert_eq!(bill["metadata"]["component"]["name"], "a");
        let names: Vec<&str> = bill["components"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["bom-ref"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["b@1.0.0", "c@2.0.0", "d@3.0.0"]);
        let b = &bill["components"][0];
        assert_eq!(b["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(b["hashes"][0]["content"], "abc");
        assert!(bill["components"][1].get("licenses").is_none());
        let expected = json!([
            {"ref": "a@0.1.0", "dependsOn": ["b@1.0.0", "d@3.0.0"]},
            {"ref": "b@1.0.0", "dependsOn": ["c@2.0.0"]},
            {"ref": "c@2.0.0", "dependsOn": []},
            {"ref": "d@3.0.0", "dependsOn": ["b@1.0.0"]},
        ]);
        assert_eq!(bill["dependencies"], expected);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for tree in [
            "",
            "x|a v1.0.0|MIT",
            "0|a|MIT",
            "0|a v1.0.0",
            "1|a v1.0.0|MIT",
        ] {
            assert!(of(tree, &BTreeMap::new()).is_err(), "{tree}");
        }
    }
}
