//! `tailrace demo`: the whole pipeline on this machine. Writes growing log files, tails them with
//! the SQL of `config/examples/demo.yaml`, ships OTLP to a server in the same process, and counts
//! at both ends: what was written must be delivered, filtered or rejected, to the record.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use prometheus_client::registry::Registry;
use tailrace_pipeline::{Agent, PipelineLedger, View};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::blackhole::{Blackhole, Counts, Options};
use crate::cli::Failure;
use crate::generate::{Generator, Shape, write_lines};
use crate::style::{self, Look};
use crate::{sizing, sysinfo};

/// The config of the demo, the same file that a reader of the documentation sees.
const CONFIG: &str = include_str!("../../../config/examples/demo.yaml");
/// What it is called where the demo runs.
const CONFIG_NAME: &str = "tailrace.yaml";
/// Log files written at once.
const FILES: u64 = 4;
/// The progress line changes this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Without progress for this long the demo ends with what it has; longer than any retry's pause.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// Arguments of `tailrace demo`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// How long logs are written.
    #[arg(long, default_value_t = 10, value_name = "N")]
    seconds: u64,
    /// Lines per second, over all files.
    #[arg(long, default_value = "20000", value_name = "LINES")]
    rate: NonZeroU64,
    /// Keep the log files, the config and the checkpoint here instead of in a temporary directory.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Runs the demo.
///
/// # Errors
///
/// A directory that cannot be written, or a record that nobody can explain.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<(), Failure> {
    let temporary = TempDir::with_prefix("tailrace-demo-").context("no temporary directory")?;
    let root = args.dir.as_deref().unwrap_or(temporary.path());
    let logs = root.join("logs");
    check_free(root, &logs)?;
    fs::create_dir_all(&logs).with_context(|| format!("{} cannot be made", logs.display()))?;
    let runtime = Runtime::new().context("no thread for the receiver")?;
    let options = Options {
        decode: true,
        ..Options::default()
    };
    let receiver = runtime
        .block_on(Blackhole::bind(([127, 0, 0, 1], 0).into(), options))
        .context("no receiver on loopback")?;
    // Made before the agent starts, so that it finds them.
    let mut files = LogFiles::create(&logs).context("logs cannot be written")?;
    let agent = start(root, &logs, &format!("http://{}", receiver.addr()))?;

    let (stop, stopped) = oneshot::channel::<()>();
    let (_, no_reload) = mpsc::channel(1);
    let (view, lines) = (agent.view(), args.rate.get().saturating_mul(args.seconds));
    let written = OnceLock::new();
    let summary = thread::scope(|scope| {
        scope.spawn(|| {
            let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
            let now_ns = since_1970.unwrap_or_default().as_nanos();
            let mut generator = Generator::new(Shape::Demo, 1)
                .starting_at(i64::try_from(now_ns).unwrap_or(i64::MAX));
            written.set(write_lines(
                &mut generator,
                lines,
                Some(args.rate),
                &mut files,
            ))
        });
        scope.spawn(|| {
            watch_progress(&view, lines, &written);
            drop(stop);
        });
        let stop = async move {
            let _ = stopped.await;
        };
        agent.run(stop, no_reload)
    });
    written
        .into_inner()
        .unwrap_or(Ok(()))
        .context("logs cannot be written")?;
    let counts = runtime.block_on(receiver.shutdown());

    let ledger = summary.pipelines.first().cloned().unwrap_or_default();
    let unexplained = print(out, lines, &ledger, &counts).context("stdout")?;
    let kept = args.dir.as_ref();
    let kept = kept.map_or(String::new(), |dir| format!("Kept in {}. ", dir.display()));
    let (what, next) = next();
    let next = style::accent(next);
    writeln!(out, "\n{kept}Next: {what}\n\n    {next}").context("stdout")?;
    match unexplained {
        0 => Ok(()),
        n => Err(anyhow!("{n} records are unexplained; please report this as a bug").into()),
    }
}

/// Checks that the demo overwrites and reads nothing of somebody else's, or of a demo before it.
fn check_free(root: &Path, logs: &Path) -> anyhow::Result<()> {
    let has_logs = fs::read_dir(logs).is_ok_and(|mut entries| entries.next().is_some());
    if has_logs || root.join(CONFIG_NAME).symlink_metadata().is_ok() {
        let root = root.display();
        return Err(anyhow!(
            "{root} has logs or a {CONFIG_NAME} already: name a directory without them, or one that is not there yet"
        ));
    }
    Ok(())
}

/// What to look at after the demo: the query of an example, where this is a clone of the repository, else a config to begin with.
fn next() -> (&'static str, &'static str) {
    const EXAMPLE: &str = "config/examples/pods-json.yaml";
    if Path::new(EXAMPLE).is_file() {
        let explain = "tailrace explain -c config/examples/pods-json.yaml";
        return ("what the agent makes of that query", explain);
    }
    let init = "tailrace init --preset laptop && tailrace explain -c tailrace.yaml";
    (
        "a config to begin with, and what the agent makes of it",
        init,
    )
}

/// Starts the agent with the config of the demo.
fn start(root: &Path, logs: &Path, endpoint: &str) -> Result<Agent, Failure> {
    let path = root.join(CONFIG_NAME);
    fs::write(&path, CONFIG).with_context(|| format!("{} cannot be written", path.display()))?;
    let env = |name: &str| match name {
        "TAILRACE_DEMO_DIR" => Some(logs.display().to_string()),
        "TAILRACE_DEMO_ENDPOINT" => Some(endpoint.to_owned()),
        _ => None,
    };
    let mut config = tailrace_config::load(&[path], &env)?;
    config.data_dir = root.join("data");
    let plans = tailrace_pipeline::prepare(&config)?;
    let sizes = sizing::sizes(&config);
    let agent = Agent::start(&config, plans, sizes, &mut Registry::default());
    Ok(agent.context("the agent cannot start")?)
}

/// The log files, written in turn.
struct LogFiles {
    files: Vec<File>,
    next: usize,
}

impl LogFiles {
    fn create(logs: &Path) -> io::Result<LogFiles> {
        let file = |n| File::create(logs.join(format!("app-{n}.log")));
        Ok(LogFiles {
            files: (0..FILES).map(file).collect::<io::Result<_>>()?,
            next: 0,
        })
    }
}

impl Write for LogFiles {
    /// Takes whole lines.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.files[self.next].write_all(bytes)?;
        self.next = (self.next + 1) % self.files.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Shows one live line until everything written has its outcome, or nothing moves any more.
fn watch_progress(view: &View, lines: u64, written: &OnceLock<io::Result<()>>) {
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    let progress = ProgressBar::new_spinner();
    progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    let (mut moved, mut last) = (Instant::now(), 0);
    loop {
        let ledger = view.ledgers().into_iter().next().unwrap_or_default();
        let (delivered, rejected) = sent(&ledger);
        let [of, read, filtered, sent] =
            [lines, ledger.records, ledger.filtered, delivered].map(HumanCount);
        progress.set_message(format!(
            "{read} of {of} read, {filtered} filtered, {sent} delivered"
        ));
        progress.tick();
        let resolved = ledger.filtered + delivered + rejected;
        if resolved != last {
            (moved, last) = (Instant::now(), resolved);
        }
        let is_done = |written: &io::Result<()>| written.is_err() || resolved >= lines;
        if written.get().is_some_and(is_done) || moved.elapsed() > STUCK_AFTER {
            break;
        }
        thread::sleep(PROGRESS_EVERY);
    }
    progress.finish_and_clear();
}

/// How many records all outputs have delivered, and how many were rejected.
fn sent(ledger: &PipelineLedger) -> (u64, u64) {
    let outputs = ledger.outputs.iter();
    outputs.fold((0, 0), |(delivered, rejected), output| {
        (delivered + output.delivered, rejected + output.rejected)
    })
}

/// Prints the totals. Gives how many written lines were neither filtered nor rejected nor counted by the receiver.
fn print(
    out: &mut dyn Write,
    lines: u64,
    ledger: &PipelineLedger,
    counts: &Counts,
) -> io::Result<i128> {
    let (_, rejected) = sent(ledger);
    let explained = ledger.filtered + counts.records + rejected;
    let unexplained = i128::from(lines) - i128::from(explained);
    let ratio = ledger.read_bytes as f64 / counts.wire_bytes.max(1) as f64;
    let cpu = sysinfo::cpu_time().unwrap_or_default().as_secs_f64();
    let peak = sysinfo::memory().map(|memory| HumanBytes(memory.peak).to_string());
    let mut row = |name: &str, value: &dyn Display, note: &str| {
        let value = value.to_string();
        let look = match name {
            "unexplained" if value != "0" => Look::Bad,
            "unexplained" | "delivered" => Look::Good,
            _ => Look::Strong,
        };
        let value = style::styled(look, value);
        writeln!(out, " {name:<17}  {value:>11}  {}", style::dim(note))
    };
    row("written", &HumanCount(lines), "records in the log files")?;
    row("read", &HumanCount(ledger.records), "framed by the agent")?;
    row("filtered", &HumanCount(ledger.filtered), "removed by WHERE")?;
    row(
        "delivered",
        &HumanCount(counts.records),
        "counted by the receiver",
    )?;
    row("rejected", &HumanCount(rejected), "refused by the receiver")?;
    row("unexplained", &unexplained, "must be 0")?;
    row("bytes in", &HumanBytes(ledger.read_bytes), "log bytes")?;
    let note = format!("OTLP with zstd, {ratio:.0} times less");
    row("bytes on the wire", &HumanBytes(counts.wire_bytes), &note)?;
    let note = "agent, log writer and receiver together";
    row("CPU", &format_args!("{cpu:.2} s"), note)?;
    row(
        "peak memory",
        &peak.as_deref().unwrap_or("unknown"),
        "of all three",
    )?;
    Ok(unexplained)
}
