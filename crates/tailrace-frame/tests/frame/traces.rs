//! What runtimes printed: `tests/traces/<runtime>-<version>.txt`, those of .NET written after its documentation and
//! source. A case begins with `#### name`; lines of `====` divide its records and are not part of the input.

use tailrace_frame::{Config, Format, Multiline, Preset};

use crate::check::check_config;

/// Frames each case with the preset alone and with all of them.
#[track_caller]
fn check_traces(preset: Preset, file: &str) {
    for case in file.split("#### ").skip(1) {
        let (_, text) = case.split_once('\n').unwrap();
        let expect: Vec<String> = text.split("====\n").map(without_blank_lines).collect();
        let expect: Vec<&str> = expect.iter().map(String::as_str).collect();
        for presets in [&[preset][..], &Preset::ALL] {
            let config = Config {
                format: Format::Raw,
                multiline: Some(Multiline::presets(presets)),
                ..Config::default()
            };
            check_config(&config, &text.replace("====\n", ""), &expect);
        }
    }
}

fn without_blank_lines(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn java() {
    check_traces(Preset::Java, include_str!("../traces/java-17.txt"));
}

#[test]
fn python() {
    check_traces(Preset::Python, include_str!("../traces/python-3.11.txt"));
}

#[test]
fn go() {
    check_traces(Preset::Go, include_str!("../traces/go-1.26.txt"));
}

#[test]
fn ruby() {
    check_traces(Preset::Ruby, include_str!("../traces/ruby-3.1.txt"));
}

#[test]
fn dotnet() {
    check_traces(Preset::Dotnet, include_str!("../traces/dotnet-8.txt"));
}

#[test]
fn javascript() {
    check_traces(Preset::Javascript, include_str!("../traces/node-20.txt"));
}

#[test]
fn rust() {
    check_traces(Preset::Rust, include_str!("../traces/rust-1.95.txt"));
}
