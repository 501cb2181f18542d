//! An output to a file that is read by an input, or that is the agent's own.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tailrace_config::{Diagnostic, load};

/// Loads a configuration in which `DIR` stands for a directory with `logs`, a link to it, and `data`.
fn check(dir: &Path, include: &str, exclude: &str, path: &str) -> Vec<Diagnostic> {
    let text = format!(
        "data_dir: DIR/data
pipelines:
  a:
    input: {{type: file, include: [{include}], exclude: [{exclude}]}}
    outputs:
      - {{type: file, path: {path}}}
"
    );
    let config = dir.join("t.yaml");
    fs::write(&config, text.replace("DIR", &dir.display().to_string())).unwrap();
    load(&[config], &|_| None).err().unwrap_or_default()
}

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["logs/deep", "data", "out"] {
        fs::create_dir_all(dir.path().join(name)).unwrap();
    }
    symlink(dir.path().join("logs"), dir.path().join("link")).unwrap();
    fs::write(dir.path().join("logs/there.log"), "").unwrap();
    symlink(
        dir.path().join("logs/there.log"),
        dir.path().join("out/other"),
    )
    .unwrap();
    symlink("../logs/new.log", dir.path().join("out/new")).unwrap();
    symlink("new", dir.path().join("out/newer")).unwrap();
    fs::create_dir(dir.path().join("out/deep")).unwrap();
    symlink("../../logs/new.log", dir.path().join("out/deep/new")).unwrap();
    symlink(dir.path().join("out/deep"), dir.path().join("l")).unwrap();
    symlink("round", dir.path().join("out/round")).unwrap();
    dir
}

#[test]
fn an_output_that_an_input_reads_is_refused_whatever_its_name() {
    let dir = directory();
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count());
    let relative = format!("{up}{}/logs/out.log", dir.path().display());
    let refused = [
        ("'DIR/logs/*.log'", "", "DIR/logs/out.log"),
        ("DIR/logs/out.log", "", "DIR/logs/out.log"),
        ("'DIR/**'", "'DIR/data/**'", "DIR/logs/deep/er/out.ndjson"),
        ("'DIR/logs/*.log'", "", "DIR/out/new"),
        ("'DIR/logs/*.log'", "", "DIR/out/newer"),
        ("'DIR/logs/*.log'", "", "DIR/l/new"),
        ("'DIR/logs/*.log'", "", "DIR/out/../logs/./out.log"),
        ("'DIR/logs/*.log'", "", &relative),
        ("'DIR/logs/*.log'", "", "DIR/link/out.log"),
        ("'DIR/link/*.log'", "", "DIR/logs/out.log"),
        ("'DIR/link/*.log'", "", "DIR/link/out.log"),
        ("DIR/link/out.log", "", "DIR/logs/out.log"),
        ("'DIR/logs/*.log'", "", "DIR/out/other"),
        ("'DIR/link/*.log'", "DIR/logs/out.log", "DIR/link/out.log"),
        ("'*.log'", "", "./out.log"),
    ];
    for (include, exclude, path) in refused {
        let found = check(dir.path(), include, exclude, path);
        let case = format!("{include} {exclude} {path}: {found:?}");
        assert_eq!(found.len(), 1, "{case}");
        assert!(found[0].message.contains("t.yaml:4:"), "{case}");
        assert!(found[0].message.contains("again, for ever"), "{case}");
        assert_eq!(found[0].line, 6, "{case}");
        assert!(
            found[0].hint.as_ref().unwrap().contains("exclude"),
            "{case}"
        );
    }
    let fine = [
        ("'DIR/logs/*.log'", "", "DIR/logs/out.ndjson"),
        ("'DIR/logs/*.log'", "", "DIR/logs/deep/out.log"),
        ("'DIR/logs/*.log'", "DIR/logs/out.log", "DIR/logs/out.log"),
        ("'DIR/link/*.log'", "DIR/link/out.log", "DIR/logs/out.log"),
        ("'DIR/logs/*.log'", "", "DIR/nowhere/out.log"),
        ("'DIR/logs/*.log'", "", "DIR/out/round"),
    ];
    for (include, exclude, path) in fine {
        let found = check(dir.path(), include, exclude, path);
        assert!(found.is_empty(), "{include} {exclude} {path}: {found:?}");
    }
}

/// Of pipelines that each read one file and write another one, the lines of the outputs that are refused.
#[test]
fn what_another_pipeline_reads_is_refused_only_if_it_comes_back() {
    let dir = directory();
    let refused = |chain: &[(&str, &str)]| {
        let mut text = "data_dir: DIR/data\npipelines:\n".to_owned();
        for (at, (from, to)) in chain.iter().enumerate() {
            text += &format!(
                "  p{at}: {{input: {{type: file, include: [DIR/out/{from}]}}, output: {{type: file, path: DIR/out/{to}}}}}\n"
            );
        }
        let config = dir.path().join("t.yaml");
        fs::write(
            &config,
            text.replace("DIR", &dir.path().display().to_string()),
        )
        .unwrap();
        let found = load(&[config], &|_| None).err().unwrap_or_default();
        let cycle = found.iter().all(|it| it.message.contains("for ever"));
        assert!(cycle, "{found:?}");
        found.iter().map(|it| it.line - 2).collect::<Vec<_>>()
    };
    assert_eq!(refused(&[("a", "b"), ("b", "c"), ("c", "d")]), [0; 0]);
    assert_eq!(refused(&[("a", "b"), ("b", "c"), ("c", "a")]), [1, 2, 3]);
    assert_eq!(refused(&[("a", "b"), ("b", "c"), ("c", "b")]), [2, 3]);
    assert_eq!(refused(&[("a", "a"), ("a", "b")]), [1]);
}

#[test]
fn an_input_that_reads_the_checkpoint_is_refused() {
    let dir = directory();
    symlink(dir.path().join("data"), dir.path().join("state")).unwrap();
    for (include, exclude) in [
        ("'DIR/**'", ""),
        ("DIR/data/checkpoint.journal", ""),
        ("'DIR/state/*.json'", "'DIR/state/a.json'"),
        ("'DIR/data/**'", "'DIR/data/*.j*'"),
        ("'DIR/data/*.prev'", ""),
    ] {
        let found = check(dir.path(), include, exclude, "DIR/elsewhere/out");
        let own = |it: &&Diagnostic| it.message.contains("the agent's own files in data_dir");
        assert_eq!(found.iter().filter(own).count(), 1, "{include}: {found:?}");
        assert_eq!(found[0].line, 4, "{include}: {found:?}");
    }
    for (include, exclude) in [("'DIR/**/*.log'", ""), ("'DIR/d*/**'", "'DIR/data/**'")] {
        let found = check(dir.path(), include, exclude, "/nowhere/out");
        assert!(found.is_empty(), "{include}: {found:?}");
    }
}

#[test]
fn an_output_among_the_own_files_of_the_agent_is_refused() {
    let dir = directory();
    symlink(dir.path().join("data"), dir.path().join("state")).unwrap();
    for path in [
        "DIR/data/dead-letter/a.ndjson",
        "DIR/data/out",
        "DIR/state/out",
        "DIR/out/../data/out",
    ] {
        let found = check(dir.path(), "/nowhere/x", "", path);
        assert_eq!(found.len(), 1, "{path}: {found:?}");
        assert!(found[0].message.contains("in data_dir"), "{found:?}");
    }
    assert!(check(dir.path(), "/nowhere/x", "", "DIR/data2/out").is_empty());
}
