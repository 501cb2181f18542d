//! Own logs: tracing events to standard error, as text or as JSON.
//!
//! Each event of `tracing` is one line. Text is for terminals, JSON for programs
//! that read logs. In both, text from outside is escaped and secrets are left out
//! (`printed.rs`). Repeated messages are suppressed and counted
//! (`logging/limit.rs`), so that a persistent failure never floods the logs, and
//! nothing waits for somebody to read them (`logging/unwaited.rs`). This module never writes to standard output and never touches users' records. It
//! has the only printer of error chains, [`chain`].

use std::error::Error;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tracing::field::Field;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{EnvFilter, LevelFilter};
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter, format};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;

use crate::{printed, style};

mod limit;
pub(crate) mod ring;
mod unwaited;

pub(crate) use limit::UNLIMITED;
use limit::{Limiter, Verdict};
use unwaited::Unwaited;

/// Options for own logs, shared by all commands.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How own logs are written to standard error: `auto` is text on a terminal, else JSON
    #[arg(long, value_enum, default_value_t = Format::Auto, global = true)]
    pub log_format: Format,
    /// Which own logs are written: a level, or directives such as `info,tailrace_pipeline=debug`
    #[arg(
        long,
        env = "TAILRACE_LOG",
        default_value = "info",
        global = true,
        value_name = "FILTER",
        value_parser = filter_text,
        hide_env_values = true
    )]
    pub log_level: String,
}

impl Args {
    /// Whether each event is a JSON object.
    pub(crate) fn is_json(&self) -> bool {
        match self.log_format {
            Format::Auto => !io::stderr().is_terminal(),
            Format::Text => false,
            Format::Json => true,
        }
    }
}

/// How own logs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text if standard error is a terminal, else JSON.
    Auto,
    /// One readable line per event.
    Text,
    /// One JSON object per event.
    Json,
}

/// Sends the events of the whole process to standard error from here on.
///
/// # Errors
/// When the filter is not understood, or own logs were set up before.
pub fn init(args: &Args) -> anyhow::Result<()> {
    let json = args.is_json();
    let filter = parse_filter(&args.log_level)?;
    let started = Instant::now();
    let clock: Clock = Arc::new(move || started.elapsed());
    let colours = style::is_coloured(style::Stream::Stderr);
    let stderr = unwaited::stderr().context("standard error cannot be used")?;
    let stderr = Arc::new(Unwaited::new(stderr, json));
    let stderr = Arc::clone(STDERR.get_or_init(|| stderr));
    let subscriber = subscriber(json, colours, filter, stderr, clock);
    tracing::subscriber::set_global_default(subscriber).context("own logs are set up already")
}

/// Standard error, once own logs are set up.
static STDERR: OnceLock<Arc<Unwaited<OwnedFd>>> = OnceLock::new();

/// Standard error, where an agent must not wait for somebody to read it: as its own log.
pub(crate) struct UnwaitedStderr;

impl Write for UnwaitedStderr {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        match STDERR.get() {
            Some(stderr) => stderr.write_line(lines),
            None => io::stderr().lock().write_all(lines)?,
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a level may be called.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The filter takes a word that is no level for the name of a module, whose events alone are then written: `warning` would silence the
/// agent. So such a word is refused here; a module stands before a level.
fn check_levels(text: &str) -> anyhow::Result<()> {
    if text.contains('[') {
        // Fields of spans have commas of their own.
        return Ok(());
    }
    let levels = text.split(',').map(str::trim);
    let levels = levels.filter(|word| !word.is_empty());
    let mut levels = levels.map(|word| word.rsplit('=').next().unwrap_or(word));
    let Some(word) = levels.find(|level| level.parse::<LevelFilter>().is_err()) else {
        return Ok(());
    };
    let lower = word.to_lowercase();
    let begins = |level: &&&str| lower.starts_with(**level) || level.starts_with(&lower);
    let alike = LEVELS.iter().find(begins).map(|level| (*level).to_owned());
    let alike = alike.or_else(|| tailrace_sql::nearest(&lower, LEVELS.into_iter()));
    let meant = alike.map_or_else(String::new, |level| format!(", did you mean `{level}`?"));
    bail!(
        "`{}` is no log level{meant} (levels: {}; of one module: `tailrace_pipeline=debug`)",
        printed::shown(word),
        LEVELS.join(", ")
    )
}

/// A filter that is understood, for the command line.
fn filter_text(text: &str) -> Result<String, String> {
    match parse_filter(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The filter that a person asks for. What the clients of object stores say of each retry is a detail here, which is left out unless
/// it is asked for.
fn parse_filter(text: &str) -> anyhow::Result<EnvFilter> {
    check_levels(text)?;
    let directives = text.split(',').map(str::trim);
    let directives: Vec<_> = directives.filter(|word| !word.is_empty()).collect();
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(directives.join(","))
        .with_context(|| {
            format!(
                "cannot read the log level `{text}`; try `info` or `info,tailrace_pipeline=debug`"
            )
        })?;
    if filter.max_level_hint() != Some(LevelFilter::INFO) || text.contains(STORES) {
        return Ok(filter);
    }
    let quiet = format!("{STORES}=warn").parse();
    Ok(filter.add_directive(quiet.context("a directive is wrong")?))
}

/// The crate of the clients of object stores.
const STORES: &str = "object_store";

/// The time since some start, for the limiter.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

fn subscriber<W>(
    json: bool,
    colours: bool,
    filter: EnvFilter,
    writer: W,
    clock: Clock,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let ring = ring::RingLayer::new(Arc::clone(&clock));
    let registry = tracing_subscriber::registry().with(filter).with(ring);
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    if json {
        let inner = format().json().flatten_event(true).with_current_span(true);
        let limited = Limited {
            inner,
            json,
            limiter: Limiter::default(),
            clock,
        };
        let layer = layer
            .with_ansi(false)
            .fmt_fields(JsonFields::new())
            .event_format(limited);
        Box::new(registry.with(layer))
    } else {
        let inner = format().with_ansi(colours).with_target(true);
        let limited = Limited {
            inner,
            json,
            limiter: Limiter::default(),
            clock,
        };
        let layer = layer
            .with_ansi(colours)
            .fmt_fields(format::debug_fn(write_field).delimited(" "))
            .event_format(limited);
        Box::new(registry.with(layer))
    }
}

/// A format that leaves out what repeats and says how much it left out.
struct Limited<F> {
    inner: F,
    json: bool,
    limiter: Limiter,
    clock: Clock,
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let suppressed = match self.limiter.check(event, (self.clock)()) {
            // The layer writes nothing when nothing was formatted.
            Verdict::Hold => return Ok(()),
            Verdict::Pass { suppressed } => suppressed,
        };
        if suppressed == 0 && !self.json {
            return self.inner.format_event(ctx, writer, event);
        }
        let mut line = String::new();
        self.inner
            .format_event(ctx, Writer::new(&mut line), event)?;
        let line = line.trim_end_matches('\n');
        if !self.json {
            return writeln!(writer, "{line} suppressed={suppressed}");
        }
        match line.strip_suffix('}').filter(|_| suppressed > 0) {
            Some(open) => {
                let line = format!("{open},\"suppressed\":{suppressed}}}");
                writeln!(writer, "{}", printed::json_line(&line))
            }
            None => writeln!(writer, "{}", printed::json_line(line)),
        }
    }
}

/// The message, or `name=value`; whatever the value holds, it stays on its line and steers no terminal.
fn write_field(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    let value = printed::field(value);
    match (field.name(), writer.has_ansi_escapes()) {
        ("message", _) => writer.write_str(&value),
        (name, false) => write!(writer, "{name}={value}"),
        // The name in italics, as the crate does it.
        (name, true) => write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"),
    }
}

/// An error and its sources on one line, `what failed: why: why that`. Each
/// text stands there once: a cause that the error above it already ends with is
/// left out.
///
/// ```
/// let error = std::io::Error::other("disk on fire");
/// assert_eq!(tailrace::logging::chain(&error).to_string(), "disk on fire");
/// ```
pub fn chain<'a>(error: &'a (dyn Error + 'static)) -> Chain<'a> {
    Chain { error }
}

/// Prints an error with its sources; made by [`chain`].
#[derive(Debug, Clone, Copy)]
pub struct Chain<'a> {
    error: &'a (dyn Error + 'static),
}

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.error.to_string();
        f.write_str(&said)?;
        let mut source = self.error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !said.ends_with(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            source = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
