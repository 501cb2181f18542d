//! `tailrace demo`: the whole pipeline on this machine. Writes growing log files, tails them with
//! the SQL of `config/examples/demo.yaml`, ships OTLP to a server in the same process, and counts
//! at both ends: what was written must be delivered, filtered or rejected, to the record.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use prometheus_client::registry::Registry;
use tailrace_config::Config;
use tailrace_pipeline::{Agent, PipelineLedger, PipelinePlan, Summary, View};
use tempfile::TempDir;
use tokio::sync::{mpsc, oneshot};

use crate::blackhole::{Blackhole, Counts, Options};
use crate::cli::Failure;
use crate::generate::{Generator, Pacer, Shape};
use crate::sizing;
use crate::sysinfo;

/// The config of the demo, the same file that a reader of the documentation sees.
const CONFIG: &str = include_str!("../../../config/examples/demo.yaml");

/// Log files written at once.
const FILES: u64 = 4;

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
    let place = Place::new(args.dir.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("no thread for the receiver")?;
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = Options {
        decode: true,
        ..Options::default()
    };
    let receiver = runtime
        .block_on(Blackhole::bind(address, options))
        .context("no receiver on loopback")?;
    let (config, plans) = place.config(receiver.addr())?;
    let files = open_logs(&place.logs).context("logs cannot be written")?;
    let agent = Agent::start(
        &config,
        plans,
        sizing::sizes(&config),
        &mut Registry::default(),
    )
    .context("the agent cannot start")?;

    let written = Arc::new(Written::default());
    let writer = {
        let (written, args) = (Arc::clone(&written), args.clone());
        std::thread::spawn(move || write_logs(&args, files, &written))
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let watch = {
        let (view, written, seconds) = (agent.view(), Arc::clone(&written), args.seconds);
        std::thread::spawn(move || {
            watch_progress(&view, &written, seconds);
            drop(stop);
        })
    };
    let stop = async move {
        let _ = stopped.await;
    };
    let (_, no_reload) = mpsc::channel(1);
    let summary = agent.run(stop, no_reload);
    watch
        .join()
        .map_err(|_| anyhow!("the progress line failed"))?;
    writer
        .join()
        .map_err(|_| anyhow!("the writer failed"))?
        .context("logs cannot be written")?;
    let counts = runtime.block_on(receiver.shutdown());

    let result = Outcome {
        lines: written.lines(),
        bytes: written.bytes(),
        summary,
        counts,
    };
    result.print(out, &place).context("stdout")?;
    match result.unexplained() {
        0 => Ok(()),
        n => Err(anyhow!("{n} records are unexplained; please report this as a bug").into()),
    }
}

/// Where the demo lives; removed at the end unless the user chose it.
struct Place {
    root: PathBuf,
    logs: PathBuf,
    _temporary: Option<TempDir>,
}

impl Place {
    fn new(chosen: Option<&Path>) -> anyhow::Result<Self> {
        let temporary = match chosen {
            Some(_) => None,
            None => Some(TempDir::with_prefix("tailrace-demo-").context("no temporary directory")?),
        };
        let root = match (&temporary, chosen) {
            (Some(temporary), _) => temporary.path().to_owned(),
            (None, chosen) => chosen.unwrap_or(Path::new(".")).to_owned(),
        };
        let logs = root.join("logs");
        fs::create_dir_all(&logs).with_context(|| format!("{} cannot be made", logs.display()))?;
        Ok(Self {
            root,
            logs,
            _temporary: temporary,
        })
    }

    fn config(&self, receiver: SocketAddr) -> Result<(Config, Vec<PipelinePlan>), Failure> {
        let path = self.root.join("tailrace.yaml");
        fs::write(&path, CONFIG)
            .with_context(|| format!("{} cannot be written", path.display()))?;
        let logs = self.logs.display().to_string();
        let env = |name: &str| match name {
            "TAILRACE_DEMO_DIR" => Some(logs.clone()),
            "TAILRACE_DEMO_ENDPOINT" => Some(format!("http://{receiver}")),
            _ => None,
        };
        let mut config = tailrace_config::load(&[path], &env)?;
        config.data_dir = self.root.join("data");
        let plans = tailrace_pipeline::prepare(&config)?;
        Ok((config, plans))
    }
}

/// What the writer has written so far.
#[derive(Debug, Default)]
struct Written {
    lines: AtomicU64,
    bytes: AtomicU64,
    done: AtomicBool,
}

impl Written {
    fn lines(&self) -> u64 {
        self.lines.load(Ordering::Acquire)
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }
}

/// Makes the log files, so that the agent finds them at its start.
fn open_logs(logs: &Path) -> io::Result<Vec<File>> {
    (0..FILES)
        .map(|n| File::create(logs.join(format!("app-{n}.log"))))
        .collect()
}

/// Appends paced lines to several files in turn.
fn write_logs(args: &Args, files: Vec<File>, written: &Written) -> io::Result<()> {
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let started_ns = i64::try_from(started.as_nanos()).unwrap_or(i64::MAX);
    let generator = |(n, file): (u64, File)| {
        let generator = Generator::new(Shape::Demo, n + 1).with_accounting(&format!("app-{n}"));
        (file, generator.starting_at(started_ns))
    };
    let mut files: Vec<(File, Generator)> = (0..).zip(files).map(generator).collect();
    let lines_max = args.rate.get() * args.seconds;
    let mut pacer = Pacer::new(args.rate);
    let clock = Instant::now();
    let mut buffer = Vec::new();
    let mut lines = 0;
    let result = (|| {
        while lines < lines_max {
            std::thread::sleep(TICK);
            let due = pacer.take_due(clock.elapsed()).min(lines_max - lines);
            for (n, (file, generator)) in (0..).zip(&mut files) {
                buffer.clear();
                let share = (due + FILES - 1 - n) / FILES;
                (0..share).for_each(|_| generator.next_line(&mut buffer));
                file.write_all(&buffer)?;
                written
                    .bytes
                    .fetch_add(buffer.len() as u64, Ordering::Release);
                written.lines.fetch_add(share, Ordering::Release);
            }
            lines += due;
        }
        Ok(())
    })();
    written.done.store(true, Ordering::Release);
    result
}

/// Shows one live line until everything written has its outcome, or nothing moves any more.
fn watch_progress(view: &View, written: &Written, seconds: u64) {
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    let line = ProgressBar::new_spinner();
    line.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    let mut moved = Instant::now();
    let mut last = 0;
    loop {
        let ledger = view.ledgers().into_iter().next().unwrap_or_default();
        let delivered = ledger
            .outputs
            .iter()
            .map(|output| output.delivered)
            .sum::<u64>();
        let rejected = ledger
            .outputs
            .iter()
            .map(|output| output.rejected)
            .sum::<u64>();
        let settled = ledger.filtered + delivered + rejected;
        line.set_message(format!(
            "{} written, {} read, {} filtered, {} delivered (logs are written for {seconds} s)",
            HumanCount(written.lines()),
            HumanCount(ledger.records),
            HumanCount(ledger.filtered),
            HumanCount(delivered),
        ));
        line.tick();
        if settled != last {
            last = settled;
            moved = Instant::now();
        }
        let all = written.done.load(Ordering::Acquire) && settled >= written.lines();
        if all || moved.elapsed() > STUCK_AFTER {
            break;
        }
        std::thread::sleep(PROGRESS_EVERY);
    }
    line.finish_and_clear();
}

/// The writer writes what is due this often.
const TICK: Duration = Duration::from_millis(20);
/// The progress line changes this often.
const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Without progress for this long the demo ends with what it has; longer than any retry's pause.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// What is shown at the end.
struct Outcome {
    lines: u64,
    bytes: u64,
    summary: Summary,
    /// What the receiver has counted, independently of the agent.
    counts: Counts,
}

impl Outcome {
    fn ledger(&self) -> PipelineLedger {
        self.summary.pipelines.first().cloned().unwrap_or_default()
    }

    fn rejected(&self) -> u64 {
        self.ledger()
            .outputs
            .iter()
            .map(|output| output.rejected)
            .sum()
    }

    /// Written lines that were neither filtered nor rejected nor counted by the receiver.
    fn unexplained(&self) -> i128 {
        let explained = self.ledger().filtered + self.counts.records + self.rejected();
        i128::from(self.lines) - i128::from(explained)
    }

    fn print(&self, out: &mut dyn Write, place: &Place) -> io::Result<()> {
        let ledger = self.ledger();
        let cpu = sysinfo::cpu_time().unwrap_or_default();
        let memory = sysinfo::memory();
        let peak = memory.map_or_else(
            || "unknown".to_owned(),
            |memory| HumanBytes(memory.peak).to_string(),
        );
        let ratio = ledger.read_bytes as f64 / (self.counts.wire_bytes.max(1)) as f64;
        let rows = [
            ("written", count(self.lines), "records in the log files"),
            ("read", count(ledger.records), "framed by the agent"),
            ("filtered", count(ledger.filtered), "removed by WHERE"),
            (
                "delivered",
                count(self.counts.records),
                "counted by the receiver",
            ),
            (
                "rejected",
                count(self.rejected()),
                "refused by the receiver",
            ),
            ("unexplained", self.unexplained().to_string(), "must be 0"),
            ("bytes in", HumanBytes(self.bytes).to_string(), "log bytes"),
            (
                "bytes on the wire",
                HumanBytes(self.counts.wire_bytes).to_string(),
                &format!("OTLP with zstd, {ratio:.0} times less") as &str,
            ),
            (
                "CPU",
                format!("{:.2} s", cpu.as_secs_f64()),
                "agent, log writer and receiver together",
            ),
            ("peak memory", peak, "of all three"),
        ]
        .map(|(name, value, note)| [name.to_owned(), value, note.to_owned()]);
        let mut table = Table::new();
        table.load_preset(NOTHING);
        table.add_rows(rows);
        if let Some(column) = table.column_mut(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        writeln!(out, "{table}")?;
        let root = place.root.display();
        match &place._temporary {
            None => writeln!(
                out,
                "\nKept in {root}. Next: what the agent makes of that query\n"
            )?,
            Some(_) => writeln!(out, "\nNext: what the agent makes of that query\n")?,
        }
        writeln!(
            out,
            "    tailrace explain -c config/examples/pods-json.yaml"
        )
    }
}

fn count(n: u64) -> String {
    HumanCount(n).to_string()
}
