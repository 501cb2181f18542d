//! The command line: the commands, and the functions that run them.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::Failure;
use crate::printed::{self, Printer, Stdout};
use crate::{
    blackhole, config, config_tests, demo, explain, generate, help, init, ledger, logging, queue,
    ready, replay, run, style, support_bundle, tap, top, try_query, validate, variables,
};
#[cfg(feature = "query")]
use crate::{query, schema};

/// A log agent: tails files, runs SQL on them, delivers OTLP. Loses nothing it can keep.
#[derive(Debug, Parser)]
#[command(
    name = "tailrace",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
pub struct Cli {
    #[command(flatten)]
    style: style::Args,
    #[command(flatten)]
    logging: logging::Args,
    #[command(subcommand)]
    command: Command,
}

/// The command line with the variable of each flag, and its help in groups. One that no command names itself is `TAILRACE_`, the names of the
/// commands, and its own.
pub fn command_line() -> clap::Command {
    command_line_of(&|_| true)
}

/// The same, where only the wanted commands have variables and groups: to make them for all takes longer than to read the
/// words of a command line.
fn command_line_of(wanted: variables::Wanted<'_>) -> clap::Command {
    help::arrange(variables::add(Cli::command(), "TAILRACE", wanted), wanted)
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the agent until SIGTERM or SIGINT.
    Run(run::Args),
    /// Try a query on lines of a file or of standard input: what leaves, and what becomes of each record.
    Try(try_query::Args),
    /// Query log files with SQL: filters, aggregates, joins, windows.
    #[cfg(feature = "query")]
    Query(query::Args),
    /// Show the columns of log files: kinds of values, how many are missing, examples.
    #[cfg(feature = "query")]
    Schema(schema::Args),
    /// Run the tests of a config: lines in, and what must leave.
    Test(config_tests::Args),
    /// Check a config as `run` would at its start.
    Validate(validate::Args),
    /// Write a config to begin with, for the logs that are on this machine.
    Init(init::Args),
    /// Print the effective config, each value with its origin; or the JSON Schema of all options.
    Config(config::Args),
    /// Resend the records in the dead-letter files; those refused again are kept.
    Replay(replay::Args),
    /// Inspect the disk queues of inputs that cannot be read again.
    Queue(queue::Args),
    /// Explain the queries of a config: columns, types, pushed-down conditions, OTLP fields.
    Explain(explain::Args),
    /// Show the outcome of every byte and record of a running agent.
    Ledger(ledger::Args),
    /// Show samples of what a running agent reads, live, and what becomes of each record.
    Tap(tap::Args),
    /// Watch a running agent in this terminal: rates, queue, sources, outputs, problems, log.
    Top(top::Args),
    /// Ask a running agent whether it is ready; exit code 1 if it is not.
    Ready(ready::Args),
    /// Collect what somebody else needs to help: config, plans, state and limits. No secrets and no log lines.
    SupportBundle(support_bundle::Args),
    /// Run the whole pipeline on this machine, with generated logs and a built-in server.
    Demo(demo::Args),
    /// Write generated log lines, the same for the same seed.
    Generate(generate::Args),
    /// Receive OTLP over HTTP and gRPC, count it and forget it.
    Blackhole(blackhole::Args),
    /// Write the completions of a shell: bash, elvish, fish, powershell or zsh.
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the man page.
    Man {
        /// Write the pages of all commands into this directory, one file each.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

impl Command {
    /// Whether it fills much memory for a short time, so that huge pages save more than they cost: a query over files that ends.
    fn takes_much_memory(&self) -> bool {
        match self {
            #[cfg(feature = "query")]
            Command::Query(args) => !args.follows(),
            _ => false,
        }
    }
}

/// A query may begin with a comment, `-- why`, which no option does: whitespace never stands in the name of one. A space before it says so.
fn not_an_option(word: OsString) -> OsString {
    let text = word.to_string_lossy();
    let name = text.strip_prefix("--").map(|rest| rest.split('=').next());
    match name.flatten() {
        Some(name) if name.contains(char::is_whitespace) => {
            let mut spaced = OsString::from(" ");
            spaced.push(&word);
            spaced
        }
        _ => word,
    }
}

impl Cli {
    /// The command line of this process. Help, and an error in it, end the process here.
    pub fn of_process() -> Self {
        let mut has_options = true;
        let word = |word: OsString| {
            has_options &= word != "--";
            if has_options {
                not_an_option(word)
            } else {
                word
            }
        };
        let words: Vec<_> = std::env::args_os().map(word).collect();
        let color = style::of_command_line(words.iter().map(|it| it.to_string_lossy().into()));
        // A word that only looks like a command's name makes one too many.
        let may_be_asked = |name: &str| words.iter().any(|word| word == name);
        let cli = variables::matches(|| command_line_of(&may_be_asked).color(color), &words)
            .and_then(|matches| Self::from_arg_matches(&matches));
        cli.unwrap_or_else(|error| error.exit())
    }

    /// Runs the command.
    ///
    /// # Errors
    ///
    /// Why it failed, ready to be printed.
    pub fn run(&self) -> Result<(), Failure> {
        // The one TLS provider of the process; a second call would be the error, and is none.
        let _ = rustls::crypto::ring::default_provider().install_default();
        style::choose(self.style.color);
        let mut logging = self.logging.clone();
        if matches!(self.command, Command::Demo(_)) && logging.log_level == "info" {
            // The demo has a progress line of its own.
            logging.log_level = "warn".to_owned();
        }
        logging::init(&logging)?;
        // Whoever reads the own log of an agent as JSON must find nothing else there.
        let is_json = matches!(self.command, Command::Run(_)) && logging.is_json();
        printed::report_panics(is_json);
        report_too_large_files();
        if !self.command.takes_much_memory() {
            // An agent that rests would hold a huge page for every part of one that it touched.
            if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
                tracing::debug!("huge pages stay as the system has them: {error}");
            }
        }
        match &self.command {
            Command::Run(args) if is_json => run::run(args).map_err(Failure::logged),
            Command::Run(args) => run::run(args).map_err(Failure::printed_unwaited),
            Command::Try(args) => try_query::run(args, &mut Stdout::lock()),
            #[cfg(feature = "query")]
            Command::Query(args) => query::run(args),
            #[cfg(feature = "query")]
            Command::Schema(args) => schema::run(args, &mut Printer::stdout()),
            Command::Test(args) => config_tests::run(args, &mut Printer::stdout()),
            Command::Validate(args) => validate::run(args, &mut Printer::stdout()),
            Command::Init(args) => init::run(args, &mut Printer::stdout()),
            Command::Config(args) => config::run(args, &mut Printer::stdout()),
            Command::Replay(args) => replay::run(args, &mut Printer::stdout()),
            Command::Queue(args) => queue::run(args, &mut Printer::stdout()),
            Command::Explain(args) => explain::run(args, &mut Printer::stdout()),
            Command::Ledger(args) => ledger::run(args, &mut Printer::stdout()),
            Command::Tap(args) => tap::run(args, &mut Stdout::lock()),
            Command::Top(args) => top::run(args),
            Command::Ready(args) => ready::run(args, &mut Printer::stdout()),
            Command::SupportBundle(args) => support_bundle::run(args, &mut Printer::stdout()),
            Command::Demo(args) => demo::run(args, &mut Printer::stdout()),
            Command::Generate(args) => Ok(generate::run(args, &mut Stdout::lock())?),
            Command::Blackhole(args) => Ok(blackhole::run(
                args,
                &mut Stdout::lock(),
                &mut io::stderr(),
            )?),
            Command::Completion { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut command_line(), "tailrace", &mut script);
                let written = Stdout::lock().write_all(&script);
                Ok(written.context("standard output")?)
            }
            Command::Man { dir: Some(dir) } => {
                let pages = clap_mangen::generate_to(command_line(), dir);
                Ok(pages
                    .with_context(|| format!("cannot write man pages into {}", dir.display()))?)
            }
            Command::Man { dir: None } => {
                let page = clap_mangen::Man::new(command_line());
                let written = page.render(&mut Stdout::lock());
                Ok(written.context("standard output")?)
            }
        }
    }
}

/// Makes an error of writing to a file that may not grow any more (`ulimit -f`), as a full disk is one, instead of a signal that ends the
/// process. The handler stays for the life of the process.
fn report_too_large_files() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let installed = runtime.and_then(|runtime| {
        let _entered = runtime.enter();
        signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
    });
    if let Err(error) = installed {
        tracing::debug!("a limit on the size of files ends the process: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::not_an_option;

    #[test]
    fn a_comment_is_no_option() {
        for query in [
            "-- all\nSELECT 1",
            "--all of them\nSELECT 1",
            "--\nSELECT 1",
        ] {
            assert_eq!(not_an_option(query.into()), *format!(" {query}"));
        }
        for word in ["--", "--file=a b", "--stats", "SELECT -- 1", "-n 1"] {
            assert_eq!(not_an_option(word.into()), *word);
        }
    }
}
