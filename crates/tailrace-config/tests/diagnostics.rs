//! Bad configurations and the exact text that explains them. The cases stand in `diagnostics.txt`:
//!
//! ```text
//! === what is wrong
//! the configuration (`@@@ name` begins another file)
//! >>>
//! the diagnostics
//! ```
//!
//! After a change of wording: `TAILRACE_BLESS=1 cargo test -p tailrace-config`, then read the difference.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tailrace_config::load;

/// What the diagnostics of these files are, with the directory taken out.
fn explained(yaml: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let place = format!("{}/", directory.path().display());
    fs::write(directory.path().join("token"), "s3cr3t\n").unwrap();
    let mut paths = Vec::new();
    for (index, part) in yaml.split("@@@ ").enumerate() {
        let (name, text) = if index == 0 {
            ("t.yaml", part)
        } else {
            part.split_once('\n').unwrap()
        };
        if index > 0 || !text.is_empty() {
            let path = directory.path().join(name);
            fs::write(&path, text.replace("{DIR}", place.trim_end_matches('/'))).unwrap();
            paths.push(path);
        }
    }
    let env = |name: &str| {
        let value = match name {
            "SET" => "value",
            "NUMBER" => "12",
            "EMPTY" => "",
            _ => return None,
        };
        Some(value.to_owned())
    };
    match load(&paths, &env) {
        Ok(_) => "it loads\n".to_owned(),
        Err(diagnostics) => {
            let mut text = String::new();
            for diagnostic in diagnostics {
                writeln!(text, "{diagnostic}").unwrap();
            }
            text.replace(&place, "")
        }
    }
}

#[test]
fn every_bad_configuration_is_explained() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics.txt");
    let cases = fs::read_to_string(&path).unwrap();
    let bless = std::env::var_os("TAILRACE_BLESS").is_some();
    let mut fresh = String::new();
    let mut count = 0;
    let mut wrong = Vec::new();
    for case in cases.split("=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (yaml, expected) = rest.split_once(">>>\n").unwrap();
        let found = explained(yaml);
        writeln!(fresh, "=== {name}\n{yaml}>>>\n{found}").unwrap();
        if found.trim_end() != expected.trim_end() {
            wrong.push(format!(
                "=== {name}\n--- expected\n{expected}--- found\n{found}"
            ));
        }
        count += 1;
    }
    assert!(count >= 100, "{count} cases");
    if bless {
        fs::write(&path, fresh).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
