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
//!
//! Shares, the same in every shape: `level` is ERROR in 10 % of the lines, WARN
//! in 15 %, DEBUG in 15 % and INFO in 60 %. Where a line has a `status`, it is
//! 500 or more exactly when the level is ERROR, and 400 to 499 exactly when it
//! is WARN. In mixed lines below ERROR some key sets hold a numeric level. The
//! bytes `"level":"ERROR"` stand in a line exactly when it is an ERROR.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context as _;

mod cri;
mod fields;
mod mixed;
mod plain;
mod random;

use fields::Fields;
use random::Random;

/// What the generated lines look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// 3 fields, about 64 bytes.
    Narrow,
    /// 6 fields, about 165 bytes.
    Simple,
    /// 20 fields, about 537 bytes.
    Wide,
    /// Several key sets: stack traces, escapes, nesting, big numbers.
    Mixed,
    /// Simple lines as a container runtime writes them, some of them split.
    Cri,
    /// The lines of `tailrace demo`: 10 fields, always with stream and seq.
    Demo,
}

/// Writes the lines of one shape, one after the other.
///
/// ```
/// use tailrace::generate::{Generator, Shape};
///
/// let mut line = Vec::new();
/// Generator::new(Shape::Narrow, 7).next_line(&mut line);
/// assert!(line.starts_with(b"{\"ts\":\"2026-01-02T03:04:05.") && line.ends_with(b"}\n"));
/// ```
#[derive(Debug)]
pub struct Generator {
    shape: Shape,
    random: Random,
    clock: Clock,
    /// The stream's name as a JSON literal, when lines carry stream and seq.
    stream: Option<Vec<u8>>,
    /// The number of the next line, from 0.
    seq: u64,
    cri: cri::Splitter,
    /// One payload of a CRI line, kept for its capacity.
    payload: Vec<u8>,
}

/// The time of the first line: 2026-01-02T03:04:05Z.
const START_NS: i64 = 1_767_323_045_000_000_000;

impl Generator {
    /// A generator whose lines depend on nothing but the shape and the seed.
    pub fn new(shape: Shape, seed: u64) -> Generator {
        let generator = Generator {
            shape,
            random: Random::new(seed),
            clock: Clock::new(START_NS),
            stream: None,
            seq: 0,
            cri: cri::Splitter::default(),
            payload: Vec::new(),
        };
        match shape {
            Shape::Demo => generator.with_accounting("demo"),
            _ => generator,
        }
    }

    /// Adds `stream` (this name) and `seq` (0, 1, 2, ...) to every record, so
    /// that a test can tell which records arrived, and how often.
    pub fn with_accounting(mut self, stream: &str) -> Generator {
        let literal = serde_json::Value::from(stream).to_string();
        self.stream = Some(literal.into_bytes());
        self
    }

    /// Lets the times in the lines begin at `ns` (since the Unix epoch).
    pub fn starting_at(mut self, ns: i64) -> Generator {
        self.clock = Clock::new(ns);
        self
    }

    /// Appends the next record, newline included.
    ///
    /// That is one line, except in the cri shape: a split record is several
    /// lines, and its last one may come only with a later call (between them
    /// stand whole lines of the other stream), or with [`Generator::finish`].
    pub fn next_line(&mut self, out: &mut Vec<u8>) {
        self.clock.advance(&mut self.random);
        if self.shape == Shape::Cri {
            let mut payload = std::mem::take(&mut self.payload);
            payload.clear();
            self.write_json(&mut payload);
            self.cri
                .write(&payload, &mut self.clock, &mut self.random, out);
            self.payload = payload;
        } else {
            self.write_json(out);
            out.push(b'\n');
        }
        self.seq += 1;
    }

    /// Appends what a split record still owes; nothing in other shapes.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.cri.finish(&mut self.clock, &mut self.random, out);
    }

    /// How many records have been written.
    pub fn records(&self) -> u64 {
        self.seq
    }

    fn write_json(&mut self, out: &mut Vec<u8>) {
        let mut fields = Fields::open(out);
        let (random, clock) = (&mut self.random, &mut self.clock);
        match self.shape {
            Shape::Narrow => plain::narrow(&mut fields, random, clock),
            Shape::Simple | Shape::Cri => plain::simple(&mut fields, random, clock),
            Shape::Wide => plain::wide(&mut fields, random, clock),
            Shape::Demo => plain::demo(&mut fields, random, clock),
            Shape::Mixed => mixed::mixed(&mut fields, random, clock),
        }
        if let Some(stream) = &self.stream {
            fields.raw("stream", stream);
            fields.integer("seq", self.seq);
        }
        fields.close();
    }
}

/// The severity of a generated line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// Draws a level with the shares of the module's doc.
    fn draw(random: &mut Random) -> Level {
        match random.below(100) {
            0..10 => Level::Error,
            10..25 => Level::Warn,
            25..40 => Level::Debug,
            _ => Level::Info,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Level::Debug => "DEBUG",
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        }
    }

    /// An HTTP status that fits the level.
    fn status(self, random: &mut Random) -> u64 {
        match self {
            Level::Error => random.pick(&[500, 502, 503, 504]),
            Level::Warn => random.pick(&[400, 404, 409, 429]),
            Level::Debug | Level::Info => random.pick(&[200, 200, 200, 201, 204, 304]),
        }
    }
}

/// The time of the line being written. The text of the whole second is kept,
/// since thousands of lines share it.
#[derive(Debug)]
struct Clock {
    now_ns: i64,
    second: i64,
    /// `2026-01-02T03:04:05` of `second`.
    prefix: Vec<u8>,
}

const NS_PER_S: i64 = 1_000_000_000;

impl Clock {
    fn new(now_ns: i64) -> Clock {
        let mut clock = Clock {
            now_ns,
            second: 0,
            prefix: Vec::new(),
        };
        clock.render_second();
        clock
    }

    fn advance(&mut self, random: &mut Random) {
        self.now_ns += 1 + random.below(2_000_000) as i64;
        if self.now_ns.div_euclid(NS_PER_S) != self.second {
            self.render_second();
        }
    }

    fn render_second(&mut self) {
        self.second = self.now_ns.div_euclid(NS_PER_S);
        self.prefix.clear();
        tailrace_model::time::write_rfc3339(self.second * NS_PER_S, &mut self.prefix);
        self.prefix.truncate("2026-01-02T03:04:05".len());
    }

    /// `2026-01-02T03:04:05.678Z`.
    fn write_ms(&self, out: &mut Vec<u8>) {
        self.write_fraction(3, out);
    }

    /// `2026-01-02T03:04:05.678901234Z`.
    fn write_ns(&self, out: &mut Vec<u8>) {
        self.write_fraction(9, out);
    }

    fn write_fraction(&self, digits: usize, out: &mut Vec<u8>) {
        let mut rest = self.now_ns.rem_euclid(NS_PER_S) as u32;
        let mut fraction = [b'0'; 9];
        for digit in fraction.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&self.prefix);
        out.push(b'.');
        out.extend_from_slice(&fraction[..digits]);
        out.push(b'Z');
    }
}

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
        let due = u128::from(self.rate.get()) * elapsed.as_nanos() / NS_PER_S as u128;
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
    /// Writes to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs `tailrace generate`. `stdout` is used unless a file is named; a reader
/// that goes away (`| head`) ends the command without an error.
///
/// # Errors
/// When the file cannot be created or a write fails.
pub fn run(args: &Args, stdout: &mut dyn Write) -> anyhow::Result<()> {
    let mut generator = Generator::new(args.shape, args.seed);
    if let Some(stream) = &args.stream {
        generator = generator.with_accounting(stream);
    }
    match &args.output {
        Some(path) => {
            let mut file =
                File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
            write_lines(&mut generator, args, &mut file)
                .with_context(|| format!("cannot write {}", path.display()))
        }
        None => match write_lines(&mut generator, args, stdout) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other.context("cannot write to standard output"),
        },
    }
}

/// Bytes put together before they are written.
const WRITE_BYTES: usize = 1 << 20;

fn write_lines(generator: &mut Generator, args: &Args, out: &mut dyn Write) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(WRITE_BYTES + (1 << 16));
    let mut pacer = args.rate.map(Pacer::new);
    let started = Instant::now();
    while generator.records() < args.lines {
        let left = args.lines - generator.records();
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

#[cfg(test)]
mod tests;
