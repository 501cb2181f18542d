//! `tailrace generate`: test data, the same bytes for the same seed.
//!
//! Takes a shape and a seed, gives log lines into a caller's buffer, and (for
//! the command) writes them to a file or to standard output, as fast as it can
//! or at a steady rate. It never reads a clock for what it writes: the times in
//! the lines start at 2026-01-02T03:04:05Z unless the caller says otherwise,
//! and advance by up to 2 ms per line.
//!
//! | shape | fields | mean bytes | what it is for |
//! |---|---|---|---|
//! | narrow | 3 | 65 | many small records |
//! | simple | 6 | 164 | a usual access or application log |
//! | wide | 20 | 537 | structured logs with many attributes |
//! | mixed | 5 to 8 | 254 | stack traces, escapes, nesting, several key sets |
//! | cri | 6 in CRI | 207 | container files: two streams, split lines |
//! | demo | 10 | 213 | what `tailrace demo` tails |
//! | escaped | 6 or 7 | 360 | the lines of mixed that hold escapes |
//! | nested | 6 | 255 | the lines of mixed that hold objects and arrays |
//! | text | no JSON | 68 | programs that log plain text |
//!
//! Shares, the same in every shape: `level` is ERROR in 10 % of the lines, WARN
//! in 15 %, DEBUG in 15 % and INFO in 60 %. Where a line has a `status`, it is
//! 500 or more exactly when the level is ERROR, and 400 to 499 exactly when it
//! is WARN. In mixed lines below ERROR some key sets hold a numeric level. The
//! bytes `"level":"ERROR"` stand in a line exactly when it is an ERROR.
//!
//! ```
//! use tailrace::generate::{Generator, Shape};
//!
//! let mut line = Vec::new();
//! Generator::new(Shape::Narrow, 7).next_line(&mut line);
//! assert!(line.starts_with(b"{\"ts\":\"2026-01-02T03:04:05.") && line.ends_with(b"}\n"));
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;

mod lines;

pub use lines::{Generator, Shape};

impl clap::ValueEnum for Shape {
    fn value_variants<'a>() -> &'a [Shape] {
        &Shape::ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        Some(clap::builder::PossibleValue::new(self.name()).help(self.about()))
    }
}

const NS_PER_S: u128 = 1_000_000_000;

/// How many units are due at a steady rate. It reads no clock itself.
#[derive(Debug, Clone)]
pub struct Pacer {
    rate: NonZeroU64,
    done: u64,
}

impl Pacer {
    /// A pacer for `rate` units per second.
    pub fn new(rate: NonZeroU64) -> Pacer {
        Pacer { rate, done: 0 }
    }

    /// The units that are due `elapsed` after the start and were not taken
    /// yet; the caller must do them all.
    pub fn take_due(&mut self, elapsed: Duration) -> u64 {
        let due = u128::from(self.rate.get()) * elapsed.as_nanos() / NS_PER_S;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        let take = due.saturating_sub(self.done);
        self.done = self.done.max(due);
        take
    }
}

/// Options of `tailrace generate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What the lines look like
    #[arg(long, value_enum, default_value_t = Shape::Simple)]
    pub shape: Shape,
    /// How many records to write
    #[arg(long, short = 'n', default_value_t = 1000)]
    pub lines: u64,
    /// The same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Records per second; as fast as possible without it
    #[arg(long)]
    pub rate: Option<NonZeroU64>,
    /// Adds the fields `stream` (this name) and `seq` (0, 1, 2, ...) to every record
    #[arg(long, value_name = "NAME")]
    pub stream: Option<String>,
    /// Adds the field `pad`, so many bytes, to every record
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=PAD_BYTES_MAX))]
    pub pad: u32,
    /// Writes every other record to standard error
    #[arg(long, conflicts_with = "output")]
    pub stderr: bool,
    /// Writes to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// No longer field: a batch of records is put together in memory.
const PAD_BYTES_MAX: i64 = 64 << 20;

/// Runs `tailrace generate`. `stdout` is used unless a file is named.
///
/// # Errors
/// When the file cannot be created or a write fails.
pub fn run(args: &Args, stdout: &mut dyn Write) -> anyhow::Result<()> {
    let mut generator = Generator::new(args.shape, args.seed).with_pad(args.pad as usize);
    if let Some(stream) = &args.stream {
        generator = generator.with_accounting(stream);
    }
    match &args.output {
        Some(path) => {
            let mut file =
                File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
            write_lines(&mut generator, args.lines, args.rate, &mut file)
                .with_context(|| format!("cannot write {}", path.display()))
        }
        None if args.stderr => {
            let mut both = InTurn::new(stdout, io::stderr());
            write_lines(&mut generator, args.lines, args.rate, &mut both)
                .context("cannot write to standard output and standard error")
        }
        None => write_lines(&mut generator, args.lines, args.rate, stdout)
            .context("cannot write to standard output"),
    }
}

/// Bytes put together before they are written.
const WRITE_BYTES: usize = 1 << 20;

/// Writes `lines` records, `rate` per second or as fast as possible.
pub(crate) fn write_lines(
    generator: &mut Generator,
    lines: u64,
    rate: Option<NonZeroU64>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(WRITE_BYTES + (1 << 16));
    let mut pacer = rate.map(Pacer::new);
    let started = Instant::now();
    while generator.records() < lines {
        let left = lines - generator.records();
        let due = match &mut pacer {
            Some(pacer) => pacer.take_due(started.elapsed()).min(left),
            None => left,
        };
        if due == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        let until = generator.records() + due;
        while generator.records() < until {
            while generator.records() < until && buffer.len() < WRITE_BYTES {
                generator.next_line(&mut buffer);
            }
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    generator.finish(&mut buffer);
    out.write_all(&buffer)?;
    out.flush()
}

/// Writes one line here and the next one there.
struct InTurn<A, B> {
    outs: (A, B),
    is_second: bool,
}

impl<A: Write, B: Write> InTurn<A, B> {
    fn new(first: A, second: B) -> InTurn<A, B> {
        InTurn {
            outs: (first, second),
            is_second: false,
        }
    }
}

impl<A: Write, B: Write> Write for InTurn<A, B> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (lines, end) = (bytes.split_inclusive(|&byte| byte == b'\n'), bytes.len());
        for line in lines {
            if self.is_second {
                self.outs.1.write_all(line)?;
            } else {
                // Standard output may keep lines back, and then they would not come in turn.
                self.outs.0.write_all(line)?;
                self.outs.0.flush()?;
            }
            // A line may come in two pieces.
            self.is_second ^= line.ends_with(b"\n");
        }
        Ok(end)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.outs.0.flush()?;
        self.outs.1.flush()
    }
}

#[cfg(test)]
mod tests;
