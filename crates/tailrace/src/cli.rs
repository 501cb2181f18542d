//! The command line: what can be typed, and which function serves it. Exit codes are chosen in
//! `main`: 0 all well, 1 a failure at run time, 2 usage, 3 stopped before all was delivered, 78 a bad config.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};
use tailrace_config::Diagnostic;

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
    /// Show what became of every byte and record of a running agent.
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
    Man,
}

/// Which config to use; the same for every command that takes one.
#[derive(Debug, Clone, clap::Args)]
pub struct ConfigArgs {
    /// Config file, or a directory of `*.yaml` files; may be given several times.
    #[arg(
        short,
        long = "config",
        value_name = "FILE|DIR",
        env = "TAILRACE_CONFIG"
    )]
    #[arg(value_delimiter = ':', required = true)]
    pub config: Vec<PathBuf>,
    /// Keep progress here instead of in the config's `data_dir`.
    #[arg(long, value_name = "DIR", env = "TAILRACE_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
}

/// Why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// Something went wrong at run time.
    Runtime(anyhow::Error),
    /// The config is at fault, here.
    Config(Vec<Diagnostic>),
    /// The agent stopped while so many bytes that it had read were not delivered. The next start reads again what stays in
    /// its file.
    Undelivered {
        /// How many.
        bytes: u64,
        /// How many of them do not: their files were truncated or deleted.
        gone_bytes: u64,
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
            Command::Man => {
                let page = clap_mangen::Man::new(Cli::command()).render(&mut stdout);
                quiet_pipe(page.map_err(anyhow::Error::from))
            }
        }
    }
}

/// Whoever reads our output may stop reading: `tailrace generate ... | head`.
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

impl Failure {
    /// Prints the failure for people, to stderr.
    pub fn print(&self) {
        let mut stderr = Printer::new(io::stderr().lock());
        // Nothing can be said when stderr is gone.
        let _ = match self {
            Self::Runtime(error) => {
                let error = printed::shown(&logging::chain(error.as_ref()).to_string());
                writeln!(stderr, "error: {error}")
            }
            Self::Config(diagnostics) => print_diagnostics(&mut stderr, diagnostics),
            Self::Undelivered { bytes, gone_bytes } => {
                writeln!(stderr, "{}", undelivered(*bytes, *gone_bytes))
            }
        };
    }
}

/// Of bytes that were read and not delivered, and how many of them are in no file any more.
fn undelivered(bytes: u64, gone_bytes: u64) -> String {
    let staying_bytes = bytes.saturating_sub(gone_bytes);
    let stay = "stay in their files, and the next start reads them again";
    match (staying_bytes, gone_bytes) {
        (_, 0) => format!("stopped with {bytes} bytes not delivered: they {stay}"),
        (0, _) => format!("stopped with {bytes} bytes not delivered: {GONE}"),
        _ => format!(
            "stopped with {bytes} bytes not delivered: {staying_bytes} of them {stay}; of the other {gone_bytes} {GONE}"
        ),
    }
}

const GONE: &str = "the files were truncated or deleted after they were read; the next start reads what a compressed \
                    copy holds of them, and counts the rest as lost";

fn print_diagnostics(out: &mut dyn Write, diagnostics: &[Diagnostic]) -> io::Result<()> {
    for diagnostic in diagnostics {
        writeln!(out, "{diagnostic}\n")?;
    }
    let errors = if diagnostics.len() == 1 {
        "error"
    } else {
        "errors"
    };
    writeln!(out, "{} {errors} in the config", diagnostics.len())
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Config(diagnostics)
    }
}
