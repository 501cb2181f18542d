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

const PIPELINE: &str =
    "pipelines:\n  app:\n    input: {type: stdin}\n    output: {type: discard}\n";

/// Each of these took time or memory that grows with the square of its size.
#[test]
fn a_hostile_file_is_refused_with_few_diagnostics() {
    let many = |count: usize, line: &str| -> String {
        (0..count)
            .map(|n| line.replace('#', &n.to_string()))
            .collect()
    };
    for text in [
        many(40_000, "unknown_#: #\n"),
        many(40_000, "a: #\n"),
        format!("admin: {{{}}}\n", many(40_000, "u#: #, ")),
        format!("admin: {{{}}}\n", many(40_000, "a: #, ")),
        format!(
            "x-a: &a {{{}}}\nadmin:\n  <<: *a\n{}",
            many(9_000, "k#: 1, "),
            many(9_000, "  u#: 1\n")
        ),
        many(40_000, "? [#]\n: 1\n"),
        format!("? {}\n: 1\n", "k".repeat(3 << 20)),
        format!(
            "admin: {{{}: 1}}\n",
            "\"k\"".replace('k', &"k".repeat(1 << 20))
        ),
        format!("x-a: [{}]\n", many(300_000, "#, ")),
        many(300_000, "x-#:\n"),
    ] {
        let diagnostics = answer(format!("{PIPELINE}{text}").as_bytes()).unwrap_err();
        assert!((1..=100).contains(&diagnostics.len()));
        let shown: usize = diagnostics.iter().map(|d| d.to_string().len()).sum();
        assert!(
            shown < 100_000,
            "{shown}: {:.100}",
            diagnostics[0].to_string()
        );
        if diagnostics.len() == 100 {
            let last = diagnostics[99].to_string();
            assert!(last.contains("there is more that is wrong"), "{last}");
        }
    }
    let resource = many(40_000, "  k#: v\n");
    let sound = answer(format!("{PIPELINE}resource:\n{resource}").as_bytes()).unwrap();
    assert_eq!(sound.resource.len(), 40_000);
}

/// As in an ignore file, which would send what is meant to be left out.
#[test]
fn a_glob_that_leaves_out_is_for_exclude() {
    let pipeline = |globs: &str| {
        format!(
            "pipelines:\n  a:\n    input: {{type: file, include: {globs}}}\n    output: {{type: discard}}\n"
        )
    };
    let found = answer(pipeline("['*.log', '!a.log']").as_bytes()).unwrap_err();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("leaves out none"), "{found:?}");
    let hint = found[0].hint.as_deref().unwrap();
    assert!(hint.contains("`exclude`"), "{hint}");
    answer(pipeline("['./!a.log', 'a!.log']").as_bytes()).unwrap();
}

/// Nothing would be read, or a directory of that name written.
#[test]
fn what_can_be_no_path_is_refused_at_its_place() {
    for (path, what) in [("~/a.log", "home directory"), ("\"/a\\0.log\"", "NUL")] {
        for (yaml, line) in [
            (format!("input: {{type: file, include: [{path}]}}"), 3),
            (
                format!("input: {{type: file, include: [/a], exclude: [{path}]}}"),
                3,
            ),
            (
                format!("input: {{type: stdin}}\n    output: {{type: file, path: {path}}}"),
                4,
            ),
        ] {
            let output = match line {
                3 => "    output: {type: discard}\n",
                _ => "",
            };
            let yaml = format!("pipelines:\n  a:\n    {yaml}\n{output}");
            let found = answer(yaml.as_bytes()).unwrap_err();
            let of_path: Vec<_> = found
                .iter()
                .filter(|it| it.message.contains(what))
                .collect();
            assert_eq!(of_path.len(), 1, "{yaml}: {found:?}");
            assert_eq!(of_path[0].line, line, "{yaml}: {found:?}");
        }
    }
}

/// The library that compiles globs panicked, or overflowed the stack.
#[test]
fn a_hostile_glob_is_refused_at_its_place() {
    let nested = |depth: usize| format!("{}b{}", "{a,".repeat(depth), "}".repeat(depth));
    for glob in [nested(125), nested(300_000), "?".repeat(1_000_000)] {
        for (input, column) in [
            (format!("{{type: file, include: ['{glob}']}}"), 35),
            (
                format!("{{type: file, include: [/a], exclude: ['{glob}']}}"),
                50,
            ),
            (
                format!("{{type: kubernetes, include: {{namespaces: ['{glob}']}}}}"),
                54,
            ),
            (
                format!("{{type: kubernetes, exclude: {{namespaces: ['{glob}']}}}}"),
                54,
            ),
        ] {
            let yaml =
                format!("pipelines:\n  a:\n    input: {input}\n    output: {{type: discard}}\n");
            let diagnostics = answer(yaml.as_bytes()).unwrap_err();
            let [diagnostic] = &diagnostics[..] else {
                panic!("{diagnostics:?}");
            };
            assert_eq!(
                (diagnostic.line, diagnostic.column),
                (3, column),
                "{diagnostic}"
            );
            assert!(
                diagnostic.message.contains("not a valid glob"),
                "{diagnostic}"
            );
        }
    }
}

#[test]
fn pipelines_and_files_have_a_greatest_number() {
    let pipeline = |n: usize| {
        format!("  p{n}: {{input: {{type: file, include: [/x]}}, output: {{type: discard}}}}\n")
    };
    let pipelines = |count| (0..count).map(pipeline).collect::<String>();
    let roomy = format!("limits: {{memory: 1GiB}}\npipelines:\n{}", pipelines(1000));
    let config = answer(roomy.as_bytes()).unwrap();
    assert_eq!(config.pipelines.len(), 1000);
    let refused = answer(format!("pipelines:\n{}", pipelines(1001)).as_bytes()).unwrap_err();
    assert_eq!(refused[0].message, "1001 pipelines, more than 1000");

    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("0.yaml"), PIPELINE).unwrap();
    for n in 1..=100 {
        fs::write(directory.path().join(format!("{n}.yaml")), "").unwrap();
    }
    let refused = load(&[directory.path().to_owned()], &|_| None).unwrap_err();
    assert_eq!(refused[0].message, "101 configuration files, more than 100");
    let directory = tempfile::tempdir().unwrap();
    for n in 0..5 {
        let path = directory.path().join(format!("{n}.yaml"));
        fs::write(path, "#".repeat(4 << 20)).unwrap();
    }
    let refused = load(&[directory.path().to_owned()], &|_| None).unwrap_err();
    let what = "together are larger than 16 MiB";
    let said = refused
        .iter()
        .any(|diagnostic| diagnostic.message.contains(what));
    assert!(said, "{refused:?}");
}

/// A file of 1 MiB, put in again and again.
#[test]
fn what_is_put_in_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let big = directory.path().join("big");
    fs::write(&big, "x".repeat(1 << 20)).unwrap();
    let reference = format!("${{file:{}}}", big.display());
    let refused = |resource: &str| {
        let diagnostics =
            answer(format!("{PIPELINE}resource:\n{resource}").as_bytes()).unwrap_err();
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        diagnostics[0].message.clone()
    };
    let again = reference.repeat(10_000);
    for text in [again.clone(), format!("${{NONE:-{again}}}")] {
        let message = refused(&format!("  a: '{text}'\n"));
        assert!(message.contains("expands to more than 4 MiB"), "{message}");
    }
    let keys: String = (0..10_000)
        .map(|n| format!("  k{n}: '{reference}'\n"))
        .collect();
    let message = refused(&keys);
    assert!(message.contains("more than 16 MiB altogether"), "{message}");
}

#[test]
fn a_file_without_an_end_is_refused() {
    let diagnostics = load(&["/dev/zero".into()], &|_| None).unwrap_err();
    assert_eq!(
        diagnostics[0].message,
        "larger than 4 MiB: this is not a configuration file"
    );
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
