//! What the commands share: how a config is given, and how a command fails.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tailrace_config::{Config, Diagnostic, Loaded, ReadOnce};
use tracing::error;

use crate::diagnostics::{self, Severity};
use crate::printed::{self, Printer};
use crate::{inferred, logging, style};

/// Which config to use; the same for every command that takes one.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Config")]
pub struct ConfigArgs {
    /// Config file, or a directory of `*.yaml` files; may be given several times. `-` is standard input.
    #[arg(
        short,
        long = "config",
        value_name = "FILE|DIR",
        env = "TAILRACE_CONFIG"
    )]
    #[arg(value_delimiter = ':', conflicts_with = "input")]
    pub config: Vec<PathBuf>,
    /// Without a config: tail the log files that match this glob, and send them to the server that the variables
    /// OTEL_EXPORTER_OTLP_* name. May be given several times.
    #[arg(long, value_name = "GLOB", env = "TAILRACE_INPUT")]
    pub input: Vec<String>,
    /// Keep progress here instead of in the config's `data_dir`.
    #[arg(long, value_name = "DIR", env = "TAILRACE_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// What was read of the paths that can be read only once; read when it is first needed.
    #[arg(skip)]
    pub(crate) once: Arc<OnceLock<Result<Texts, String>>>,
}

/// The paths of a config, and the texts of those that can be read only once.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    paths: Vec<PathBuf>,
    once: ReadOnce,
}

impl ConfigArgs {
    /// Loads the config. What can be read only once is read at the first call, and kept.
    ///
    /// # Errors
    ///
    /// No config is given, and none can be inferred.
    pub(crate) fn load(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, Failure> {
        let Texts { paths, once } = self.known_texts(env)?;
        Ok(tailrace_config::load_once(paths, once, env))
    }

    /// Like [`load`](Self::load), and records every option with its origin.
    ///
    /// # Errors
    ///
    /// No config is given, and none can be inferred.
    pub(crate) fn load_effective(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Loaded, Failure> {
        let Texts { paths, once } = self.known_texts(env)?;
        Ok(tailrace_config::load_effective(paths, once, env))
    }

    /// Like [`load`](Self::load), and a placeholder stands for what `${...}` asks for and is not there.
    ///
    /// # Errors
    ///
    /// No config is given, and none can be inferred.
    pub(crate) fn load_for_tests(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Loaded, Failure> {
        let Texts { paths, once } = self.known_texts(env)?;
        Ok(tailrace_config::load_for_tests(paths, once, env))
    }

    fn known_texts(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<&Texts, Failure> {
        let texts = self.texts(env).as_ref();
        texts.map_err(|usage| Failure::Usage(usage.clone()))
    }

    fn texts(&self, env: &dyn Fn(&str) -> Option<String>) -> &Result<Texts, String> {
        self.once.get_or_init(|| {
            if !self.config.is_empty() {
                return Ok(Texts {
                    paths: self.config.clone(),
                    once: ReadOnce::read(&self.config),
                });
            }
            let has_pods = Path::new(inferred::PODS_DIR).is_dir();
            let text = inferred::config(&self.input, has_pods, env)?;
            Ok(Texts {
                paths: vec![inferred::NAME.into()],
                once: ReadOnce::default().with(inferred::NAME, text),
            })
        })
    }

    /// The paths given, after the config was loaded.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        match self.once.get() {
            Some(Ok(texts)) => &texts.paths,
            _ => &self.config,
        }
    }

    /// The bytes of a path that can be read only once, where it is one and was read.
    pub(crate) fn read_once(&self, path: &Path) -> Option<&[u8]> {
        match self.once.get() {
            Some(Ok(texts)) => texts.once.get(path)?.ok(),
            _ => None,
        }
    }

    /// The names of those paths.
    pub(crate) fn once_names(&self) -> Vec<String> {
        match self.once.get() {
            Some(Ok(texts)) => texts.once.names().map(printed::path).collect(),
            _ => Vec::new(),
        }
    }

    /// Something to say where the config comes from standard input, which a pipeline is to read as well.
    pub(crate) fn stdin_twice(&self, config: &Config) -> Option<Diagnostic> {
        let is_taken = self.config.iter().any(|path| path == Path::new("-"));
        let mut inputs = config.pipelines.values().flat_map(|it| &it.inputs);
        let input = inputs.find(|input| input.exclusive().is_some())?;
        let message = "this input reads the standard input, which `-c -` has read to its end";
        let hint = "give the config as a file: `-c tailrace.yaml`".to_owned();
        is_taken.then(|| Diagnostic::new(&input.position, 1, message).with_hint(hint))
    }
}

/// How a command prints its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
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
    /// The command line lacks something.
    Usage(String),
    /// Nobody reads the standard output any more, as in `tailrace explain | head`.
    OutputClosed,
    /// The own log says why.
    Logged {
        /// What the process ends with.
        exit_code: u8,
    },
    /// The agent stopped while so many bytes that it had read were not delivered. The next start reads again what stays in
    /// its file.
    Undelivered {
        /// How many.
        bytes: u64,
        /// How many of them do not: their files were truncated or deleted.
        gone_bytes: u64,
    },
}

/// What the process ends with, and what it means.
pub const EXIT_CODES: [(u8, &str); 6] = [
    (0, "all is well"),
    (1, "a failure at run time"),
    (2, "the command line is wrong"),
    (
        3,
        "stopped before all was delivered; the next start continues",
    ),
    (78, "the config is refused (EX_CONFIG)"),
    (130, "a second signal ended the agent at once"),
];

impl Failure {
    /// What the process ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::OutputClosed => 0,
            Self::Runtime(_) => 1,
            Self::Usage(_) => 2,
            Self::Undelivered { .. } => 3,
            Self::Logged { exit_code } => *exit_code,
            Self::Config(_) | Self::Refused => 78,
        }
    }

    /// The same, after it was written to the own log. If that takes no errors, it stays to be printed.
    pub(crate) fn logged(self) -> Self {
        if !tracing::enabled!(tracing::Level::ERROR) {
            return self;
        }
        match &self {
            Self::Refused | Self::OutputClosed | Self::Logged { .. } => {}
            Self::Usage(text) => error!("{text}"),
            Self::Runtime(error) => error!("{}", logging::chain(error.as_ref())),
            Self::Config(found) => {
                for diagnostic in found {
                    log_diagnostic(diagnostic);
                }
                error!("{}", count(found));
            }
            Self::Undelivered { bytes, gone_bytes } => {
                error!("{}", undelivered(*bytes, *gone_bytes));
            }
        }
        Self::Logged {
            exit_code: self.exit_code(),
        }
    }

    /// Prints the failure for people, to stderr.
    pub fn print(&self) {
        self.print_to(Printer::stderr());
    }

    /// The same, after it was printed, or left out where nobody reads stderr.
    pub(crate) fn printed_unwaited(self) -> Self {
        let is_coloured = style::is_coloured(style::Stream::Stderr);
        self.print_to(Printer::coloured(logging::UnwaitedStderr, is_coloured));
        Self::Logged {
            exit_code: self.exit_code(),
        }
    }

    fn print_to<W: Write>(&self, mut stderr: Printer<W>) {
        // Nothing can be said when stderr is gone.
        let _ = match self {
            Self::Refused | Self::OutputClosed | Self::Logged { .. } => Ok(()),
            Self::Usage(text) => {
                writeln!(stderr, "{}: {text}", diagnostics::label(Severity::Error))
            }
            Self::Runtime(error) => {
                let error = printed::shown(&logging::chain(error.as_ref()).to_string());
                writeln!(stderr, "{}: {error}", diagnostics::label(Severity::Error))
            }
            Self::Config(found) => print_diagnostics(&mut stderr, found),
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

fn print_diagnostics(out: &mut dyn Write, found: &[Diagnostic]) -> io::Result<()> {
    for diagnostic in found {
        diagnostics::print(out, diagnostic, Severity::Error)?;
    }
    writeln!(out, "{}", count(found))
}

fn log_diagnostic(diagnostic: &Diagnostic) {
    let has_place = diagnostic.line > 0;
    error!(
        target: logging::UNLIMITED,
        file = %diagnostic.file.display(),
        line = has_place.then_some(diagnostic.line),
        column = has_place.then_some(diagnostic.column),
        hint = diagnostic.hint,
        "{}",
        diagnostic.message
    );
}

fn count(found: &[Diagnostic]) -> String {
    let errors = if found.len() == 1 { "error" } else { "errors" };
    format!("{} {errors} in the config", found.len())
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        if printed::is_output_closed(&error) {
            return Self::OutputClosed;
        }
        Self::Runtime(error)
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Config(diagnostics)
    }
}
