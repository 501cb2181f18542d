//! What the commands share: how a config is given, and how a command fails.

use std::io::{self, Write};
use std::path::PathBuf;

use tailrace_config::Diagnostic;

use crate::logging;
use crate::printed::{self, Printer};

/// Which config to use; the same for every command that takes one.
#[derive(Debug, Clone, Default, clap::Args)]
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
    /// The config is at fault, and the command has printed why.
    Refused,
    /// The agent stopped while so many bytes that it had read were not delivered. The next start reads again what stays in
    /// its file.
    Undelivered {
        /// How many.
        bytes: u64,
        /// How many of them do not: their files were truncated or deleted.
        gone_bytes: u64,
    },
}

impl Failure {
    /// Prints the failure for people, to stderr.
    pub fn print(&self) {
        let mut stderr = Printer::new(io::stderr().lock());
        // Nothing can be said when stderr is gone.
        let _ = match self {
            Self::Refused => Ok(()),
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
