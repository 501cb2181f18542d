//! Whatever stands in the files, loading answers: with a configuration or with diagnostics that have a
//! position and can be shown. It never panics.
#![allow(clippy::unwrap_used)]

use std::fs;

use proptest::prelude::*;
use tailrace_config::{Config, Diagnostic, annotated_example, load};

fn answer(bytes: &[u8]) -> Result<Config, Vec<Diagnostic>> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.yaml");
    fs::write(&path, bytes).unwrap();
    let env = |name: &str| name.starts_with('A').then(|| "value".to_owned());
    let answer = load(&[path], &env);
    if let Err(diagnostics) = &answer {
        assert!(!diagnostics.is_empty());
        for diagnostic in diagnostics {
            assert!(diagnostic.line > 0 && diagnostic.column > 0, "{diagnostic}");
            assert!(!diagnostic.message.is_empty());
            assert!(diagnostic.to_string().lines().count() <= 4, "{diagnostic}");
        }
    }
    answer
}

/// Bits of YAML and of our own words, in any order.
fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("pipelines:\n  a:\n".to_owned()),
        Just("    input: {type: stdin}\n".to_owned()),
        Just("    output: {type: discard}\n".to_owned()),
        Just("    transform: |\n      SELECT\n".to_owned()),
        Just("admin:".to_owned()),
        Just("\n  ".to_owned()),
        Just("- ".to_owned()),
        Just("? ".to_owned()),
        Just(": ".to_owned()),
        Just("&a ".to_owned()),
        Just("*a".to_owned()),
        Just("<<: *a\n".to_owned()),
        Just("!!str ".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(", ".to_owned()),
        Just("\"".to_owned()),
        Just("'".to_owned()),
        Just("|".to_owned()),
        Just(">".to_owned()),
        Just("#".to_owned()),
        Just("\t".to_owned()),
        Just("\r\n".to_owned()),
        Just("\n".to_owned()),
        Just("---\n".to_owned()),
        Just("...\n".to_owned()),
        Just("%YAML 1.2\n".to_owned()),
        Just("${A}".to_owned()),
        Just("${B:-".to_owned()),
        Just("\u{feff}".to_owned()),
        "\\PC{0,6}",
        "[a-z]{1,5}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = answer(&bytes);
    }

    #[test]
    fn any_tokens(tokens in prop::collection::vec(token(), 0..40)) {
        let _ = answer(tokens.concat().as_bytes());
    }

    #[test]
    fn a_damaged_example(at in 0.0..1.0_f64, length in 0_usize..40, insert in token()) {
        let example = annotated_example();
        let floor = |mut index: usize| {
            while !example.is_char_boundary(index) {
                index -= 1;
            }
            index
        };
        let start = floor((example.len() as f64 * at) as usize);
        let end = floor((start + length).min(example.len()));
        let damaged = format!("{}{insert}{}", &example[..start], &example[end..]);
        let _ = answer(damaged.as_bytes());
    }
}

#[test]
fn deep_nesting_is_refused() {
    for deep in [
        "[".repeat(100_000),
        "{a: ".repeat(100_000),
        "- ".repeat(100_000),
        "a:\n".repeat(3),
    ] {
        assert!(answer(deep.as_bytes()).is_err());
    }
    let mut block = String::new();
    for level in 0..2_000 {
        block.push_str(&format!("{}a:\n", " ".repeat(level)));
    }
    assert!(answer(block.as_bytes()).is_err());
}

#[test]
fn aliases_cannot_blow_up() {
    let mut laughs = String::from("x-0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..20 {
        let below = level - 1;
        laughs.push_str(&format!(
            "x-{level}: &a{level} [{}]\n",
            vec![format!("*a{below}"); 10].join(", ")
        ));
    }
    let diagnostics = answer(laughs.as_bytes()).unwrap_err();
    assert_eq!(diagnostics[0].message, "aliases copy too much");
    assert!(diagnostics[0].line < 7, "{}", diagnostics[0]);
}

#[test]
fn a_file_that_is_too_large_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.yaml");
    fs::write(&path, "#\n".repeat(3 << 20)).unwrap();
    let diagnostics = load(&[path], &|_| None).unwrap_err();
    assert_eq!(
        diagnostics[0].message,
        "larger than 4 MiB: this is not a configuration file"
    );
}
