//! The command line: the commands, and the functions that run them. Exit codes are chosen in
//! `main`: 0 all well, 1 a failure at run time, 2 usage, 3 stopped before all was delivered, 78 a bad config.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{CommandFactory, Parser, Subcommand};

use crate::cli::Failure;
use crate::printed::{self, Printer};
use crate::{
    blackhole, demo, explain, generate, ledger, logging, queue, ready, replay, run, validate,
};

/// A log agent: tails files, runs SQL on them, delivers OTLP. Loses nothing it can keep.
#[derive(Debug, Parser)]
#[command(
    name = "tailrace",
    version,
    max_term_width = 100,
    arg_required_else_help = true
)]
#[command(after_help = "Start with `tailrace demo`: the whole pipeline on this machine.")]
pub struct Cli {
    #[command(flatten)]
    logging: logging::Args,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the agent until SIGTERM or SIGINT.
    Run(run::Args),
    /// Check a config as `run` would at its start.
    Validate(validate::Args),
    /// Resend the records in the dead-letter files; those refused again are kept.
    Replay(replay::Args),
    /// Inspect the disk queues of inputs that cannot be read again.
    Queue(queue::Args),
    /// Explain the queries of a config: columns, types, pushed-down conditions, OTLP fields.
    Explain(explain::Args),
    /// Show the outcome of every byte and record of a running agent.
    Ledger(ledger::Args),
    /// Ask a running agent whether it is ready; exit code 1 if it is not.
    Ready(ready::Args),
    /// Run the whole pipeline on this machine, with generated logs and a built-in server.
    Demo(demo::Args),
    /// Write generated log lines, the same for the same seed.
    Generate(generate::Args),
    /// Receive OTLP over HTTP and gRPC, count it and forget it.
    Blackhole(blackhole::Args),
    /// Write the completions of a shell: bash, elvish, fish, powershell or zsh.
    Completion { shell: clap_complete::Shell },
    /// Write the man page.
    Man {
        /// Write the pages of all commands into this directory, one file each.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

impl Cli {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// Why it failed, ready to be printed.
    pub fn run(&self) -> Result<(), Failure> {
        // The one TLS provider of the process; a second call would be the error, and is none.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut logging = self.logging.clone();
        if matches!(self.command, Command::Demo(_)) && logging.log_level == "info" {
            // The demo has a progress line of its own.
            logging.log_level = "warn".to_owned();
        }
        logging::init(&logging)?;
        printed::report_panics();
        let mut stdout = io::stdout().lock();
        match &self.command {
            Command::Run(args) => {
                drop(stdout);
                run::run(args)
            }
            Command::Validate(args) => validate::run(args, &mut Printer::new(stdout)),
            Command::Replay(args) => replay::run(args, &mut Printer::new(stdout)),
            Command::Queue(args) => queue::run(args, &mut Printer::new(stdout)),
            Command::Explain(args) => explain::run(args, &mut Printer::new(stdout)),
            Command::Ledger(args) => ledger::run(args, &mut Printer::new(stdout)),
            Command::Ready(args) => ready::run(args, &mut Printer::new(stdout)),
            Command::Demo(args) => demo::run(args, &mut stdout),
            Command::Generate(args) => quiet_pipe(generate::run(args, &mut stdout)),
            Command::Blackhole(args) => Ok(blackhole::run(args, &mut stdout, &mut io::stderr())?),
            Command::Completion { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut Cli::command(), "tailrace", &mut script);
                quiet_pipe(stdout.write_all(&script).map_err(anyhow::Error::from))
            }
            Command::Man { dir: Some(dir) } => {
                let pages = clap_mangen::generate_to(Cli::command(), dir);
                Ok(pages
                    .with_context(|| format!("cannot write man pages into {}", dir.display()))?)
            }
            Command::Man { dir: None } => {
                let page = clap_mangen::Man::new(Cli::command()).render(&mut stdout);
                quiet_pipe(page.map_err(anyhow::Error::from))
            }
        }
    }
}

/// Ignores a broken pipe: the reader of the output may stop reading, as in `tailrace generate ... | head`.
fn quiet_pipe(result: anyhow::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        other => Ok(other?),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().map(io::Error::kind)
    };
    error
        .chain()
        .any(|cause| kind(cause) == Some(io::ErrorKind::BrokenPipe))
}
