//! docs/command-line.md is what the commands and flags of this build are.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use clap::{Arg, Command};
use tailrace::cli::EXIT_CODES;
use tailrace::commands::command_line;

const INTRODUCTION: &str = "\
# Command line

Every command, every flag, and the environment variable that stands for each. A flag wins over its variable, and an empty variable
counts as unset. Flags that take no value are switched on by `true`, `yes`, `on` or `1`.

<!-- Generated. Refresh: TAILRACE_BLESS=1 cargo test -p tailrace --test generated -->

    tailrace COMMAND [OPTIONS]

A slip in a command or a flag gets a hint. `tailrace help COMMAND` prints what is below, `tailrace completion SHELL` completes it.

Results go to standard output, own logs and errors to standard error. A command ends quietly if nobody reads its output any more, as in
`tailrace explain | head`; `tailrace run` with an output `stdout` says so, and ends with exit code 3 because records are left. When own logs
are JSON, `tailrace run` writes nothing else to standard error. Colours and the width of tables follow the terminal, `NO_COLOR`, `CLICOLOR_FORCE`, `TERM=dumb` and `COLUMNS`;
`--color` wins over them.
";

/// Without a config file.
const INFERRED: &str = "\
Without `-c`, a config is inferred: `--input` names the log files, and the variables of OpenTelemetry name the server, its protocol, headers
and certificates (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_EXPORTER_OTLP_*`) and the resource (`OTEL_SERVICE_NAME`,
`OTEL_RESOURCE_ATTRIBUTES`). On a node of Kubernetes, where `/var/log/pods` is there, the server is enough. `tailrace config print` shows what
was inferred:

    OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 tailrace config print --input '/var/log/app/*.log'

A config that comes from standard input (`-c -`) or from a pipe (`-c <(...)`) is read once: a reload uses what was read at the start.
";

#[test]
fn the_page_of_the_command_line_is_fresh() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let expected = page();
    if std::env::var_os("TAILRACE_BLESS").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/command-line.md is stale; refresh it: TAILRACE_BLESS=1 cargo test -p tailrace --test generated"
    );
}

fn page() -> String {
    let mut command = command_line();
    command.build();
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Exit codes\n\n| code | meaning |\n|---:|---|\n");
    for (code, meaning) in EXIT_CODES {
        writeln!(page, "| {code} | {meaning} |").unwrap();
    }
    page.push_str("\n## Options of every command\n\n");
    let options: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .collect();
    table(&options, &mut page);
    page.push_str("\n## Options that choose the config\n\n");
    let run = command.find_subcommand("run").unwrap();
    let options: Vec<&Arg> = run
        .get_arguments()
        .filter(|arg| is_of_config(arg))
        .collect();
    table(&options, &mut page);
    writeln!(page, "\n{}", INFERRED.trim_end()).unwrap();
    for inner in command
        .get_subcommands()
        .filter(|it| it.get_name() != "help")
    {
        section(inner, "tailrace", &mut page);
    }
    page
}

fn is_of_config(arg: &Arg) -> bool {
    arg.get_help_heading() == Some("Config")
}

fn section(command: &Command, above: &str, page: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    writeln!(page, "\n## {name}\n\n{}", sentence(&about)).unwrap();
    let inner: Vec<&Command> = command
        .get_subcommands()
        .filter(|it| it.get_name() != "help")
        .collect();
    if inner.is_empty() {
        options(command, page);
    }
    for inner in inner {
        section(inner, &name, page);
    }
}

fn options(command: &Command, page: &mut String) {
    let is_own = |arg: &&Arg| {
        let is_help = matches!(arg.get_id().as_str(), "help" | "version");
        !is_help && !arg.is_global_set() && !is_of_config(arg) && !arg.is_hide_set()
    };
    let own: Vec<&Arg> = command.get_arguments().filter(is_own).collect();
    if command.get_arguments().any(is_of_config) {
        let link =
            "It takes the [options that choose the config](#options-that-choose-the-config).";
        writeln!(page, "{link}").unwrap();
    }
    if !own.is_empty() {
        page.push('\n');
        table(&own, page);
    }
}

fn table(args: &[&Arg], page: &mut String) {
    page.push_str("| option | variable | default | meaning |\n|---|---|---|---|\n");
    for arg in args {
        let variable = arg
            .get_env()
            .map(|name| format!("`{}`", name.to_string_lossy()));
        let takes_value = arg.get_action().takes_values();
        let defaults = arg.get_default_values().iter().filter(|_| takes_value);
        let defaults: Vec<String> = defaults
            .map(|it| format!("`{}`", it.to_string_lossy()))
            .collect();
        let help = arg
            .get_long_help()
            .or(arg.get_help())
            .map(ToString::to_string);
        let mut meaning = sentence(&help.unwrap_or_default());
        let values = arg.get_possible_values();
        let values: Vec<String> = values.iter().filter(|_| takes_value).map(value).collect();
        if !values.is_empty() {
            write!(meaning, " One of {}.", values.join("; ")).unwrap();
        }
        let cells = [
            shape(arg),
            variable.unwrap_or_default(),
            defaults.join(", "),
            meaning,
        ];
        let cells = cells.map(|cell| cell.replace('|', "\\|").replace('\n', " "));
        writeln!(page, "| {} |", cells.join(" | ")).unwrap();
    }
}

fn value(value: &clap::builder::PossibleValue) -> String {
    let help = value
        .get_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let name = format!("`{}`", value.get_name());
    match help.is_empty() {
        true => name,
        false => format!("{name}: {help}"),
    }
}

/// An option as it is written.
fn shape(arg: &Arg) -> String {
    let mut names = Vec::new();
    names.extend(arg.get_short().map(|short| format!("-{short}")));
    names.extend(arg.get_long().map(|long| format!("--{long}")));
    let value = arg
        .get_value_names()
        .map(|names| names.join(" "))
        .unwrap_or_default();
    let text = match (names.is_empty(), arg.get_action().takes_values()) {
        (true, _) => value,
        // `--print=5`, and without a value; `--print 5` is none of it.
        (false, true) if arg.is_require_equals_set() => format!("{}[={value}]", names.join(", ")),
        (false, true) => format!("{} {value}", names.join(", ")),
        (false, false) => names.join(", "),
    };
    format!("`{text}`")
}

/// A text as a sentence: clap leaves out the full stop of a short one.
fn sentence(text: &str) -> String {
    let text = text.trim().replace(".\n\n", ". ").replace("\n\n", ". ");
    match text.ends_with(['.', ':', '?']) || text.is_empty() {
        true => text,
        false => format!("{text}."),
    }
}
