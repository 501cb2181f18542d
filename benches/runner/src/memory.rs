//! `cargo xtask bench --memory`: resident memory of `tailrace run`, sampled every 50 ms in a fresh process, over one
//! large file and over many small ones.
//!
//! Flat means that the last quarter of the samples peaks no higher than the second.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::agents::{self, log_file, scratch_dir, stripped};
use crate::child::Child;
use crate::data::DataFile;
use crate::receiver::Receiver;
use crate::results::{Csv, machine, publish};
use crate::samples::{Sample, Sampler, peak};
use xtask::workspace::Workspace;

#[derive(clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Size of the large file in GiB
    #[arg(long, default_value_t = 10.0, requires = "memory")]
    gib: f64,
    /// Number of small files
    #[arg(long, default_value_t = 5000, requires = "memory")]
    files: u64,
    /// The shape of the lines
    #[arg(long, default_value = "simple", requires = "memory")]
    shape: String,
    /// Files that attack the memory instead
    #[arg(long, requires = "memory")]
    hostile: bool,
    /// Mixtures of hostile files by chance, besides those with a name
    #[arg(long, default_value_t = 10, requires = "hostile")]
    mixtures: u64,
}

/// Lines of each of the many files.
const LINES_PER_FILE: u64 = 400;
/// Bytes of a line, at least: for the number of lines that fill the large file.
const LINE_BYTES: [(&str, f64); 4] = [
    ("narrow", 65.0),
    ("simple", 164.0),
    ("wide", 537.0),
    ("mixed", 254.0),
];

pub(crate) fn run(
    workspace: &Workspace,
    agents: &agents::Args,
    args: &Args,
    is_public: bool,
) -> Result<()> {
    if args.hostile {
        return super::hostile::run(workspace, agents, args.mixtures, is_public);
    }
    let tailrace = stripped(workspace, agents.binary.as_deref())?;
    let dir = scratch_dir(workspace)?;
    let known = LINE_BYTES.iter().find(|(shape, _)| *shape == args.shape);
    let (_, line_bytes) = known.with_context(|| format!("no sizes for {} lines", args.shape))?;
    let timeout = Duration::from_secs(agents.timeout);
    let columns = "input,lines,bytes,samples,peak_resident_bytes,peak_anonymous_bytes,second_quarter_bytes,last_quarter_bytes";
    let mut csv = Csv::create(workspace, "-memory", columns)?;
    println!("{}\n", machine(workspace));

    let lines = (args.gib * f64::from(1 << 30) / line_bytes) as u64;
    let path = dir.join("memory.ndjson");
    let file = DataFile::generate(workspace, &tailrace, &args.shape, lines, path)?;
    let samples = sample(workspace, &tailrace, &file.path, lines, timeout)?;
    let name = format!(
        "one file of {:.1} GiB",
        file.bytes as f64 / f64::from(1 << 30)
    );
    let one = Peaks::of(name, lines, file.bytes, &samples);
    println!("{one}");
    csv.push(&one.csv())?;
    drop(file);

    let lines = args.files * LINES_PER_FILE;
    let path = dir.join("memory.ndjson");
    let file = DataFile::generate(workspace, &tailrace, &args.shape, lines, path)?;
    let many = dir.join("many");
    split(&file, &many)?;
    let samples = sample(workspace, &tailrace, &many.join("*.ndjson"), lines, timeout)?;
    let name = format!("{} files", args.files);
    let many_files = Peaks::of(name, lines, file.bytes, &samples);
    println!("{many_files}");
    csv.push(&many_files.csv())?;
    if is_public {
        let text = format!("{}\n\n- {one}\n- {many_files}", machine(workspace));
        publish(workspace, "memory", &text)?;
    }
    fs::remove_dir_all(&many).context("cannot remove the many files")?;
    println!("written: {}", csv.name(workspace));
    Ok(())
}

/// The lines of a file in files of their own.
fn split(file: &DataFile, dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).context("cannot empty the directory of many files")?;
    }
    fs::create_dir_all(dir).context("cannot create the directory of many files")?;
    let mut reader = BufReader::with_capacity(1 << 20, File::open(&file.path)?);
    let mut line = Vec::new();
    for number in 0..file.lines / LINES_PER_FILE {
        let mut out = BufWriter::new(File::create(dir.join(format!("{number}.ndjson")))?);
        for _ in 0..LINES_PER_FILE {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            out.write_all(&line)?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Runs the agent over files until all their lines have arrived.
fn sample(
    workspace: &Workspace,
    tailrace: &Path,
    files: &Path,
    lines: u64,
    timeout: Duration,
) -> Result<Vec<Sample>> {
    let receiver = Receiver::start(tailrace, lines)?;
    let data_dir: PathBuf = scratch_dir(workspace)?.join("data");
    let _ = fs::remove_dir_all(&data_dir);
    fs::create_dir_all(&data_dir).context("cannot create the data directory")?;
    let mut command = workspace.command(tailrace, &["run", "-c"]);
    command
        .arg(workspace.root.join("benches/peers/tailrace-all.yaml"))
        .env("BENCH_COMPRESSION", "zstd")
        .env("BENCH_FILE", files)
        .env("BENCH_DATA_DIR", &data_dir)
        .env("BENCH_ENDPOINT", format!("http://{}", receiver.address))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log_file(&scratch_dir(workspace)?)?);
    let agent = Child::start(command)?;
    let sampler = Sampler::start(agent.id());
    let received = receiver.wait(timeout, &agent);
    let samples = sampler.stop();
    let usage = agent.stop(timeout)?;
    println!("{}: {usage}", files.display());
    if received?.records != lines {
        bail!("not all {lines} records arrived");
    }
    samples
}

/// The highest samples of a run.
#[derive(Debug, PartialEq)]
struct Peaks {
    name: String,
    lines: u64,
    bytes: u64,
    samples: usize,
    resident: u64,
    anonymous: u64,
    /// Anonymous bytes in the second quarter of the samples, and in the last.
    second: u64,
    last: u64,
}

impl Peaks {
    fn of(name: String, lines: u64, bytes: u64, samples: &[Sample]) -> Peaks {
        let quarter = samples.len() / 4;
        Peaks {
            name,
            lines,
            bytes,
            samples: samples.len(),
            resident: peak(samples, |sample| sample.resident),
            anonymous: peak(samples, |sample| sample.anonymous),
            second: peak(&samples[quarter..2 * quarter], |sample| sample.anonymous),
            last: peak(&samples[3 * quarter..], |sample| sample.anonymous),
        }
    }

    fn csv(&self) -> Vec<String> {
        let mut fields = vec![self.name.clone()];
        let numbers = [
            self.lines,
            self.bytes,
            self.samples as u64,
            self.resident,
            self.anonymous,
            self.second,
            self.last,
        ];
        fields.extend(numbers.map(|number| number.to_string()));
        fields
    }
}

impl fmt::Display for Peaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{}, {} lines: peak {:.1} MiB resident, {:.1} MiB anonymous ({:.1} in the second quarter of {} samples, \
             {:.1} in the last)",
            self.name,
            self.lines,
            mib(self.resident),
            mib(self.anonymous),
            mib(self.second),
            self.samples,
            mib(self.last),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_shows_in_the_last_quarter() {
        let samples: Vec<Sample> = (1..=8)
            .map(|n| Sample {
                resident: 10 * n,
                anonymous: n,
            })
            .collect();
        assert_eq!(
            Peaks::of("x".to_owned(), 1, 2, &samples).csv(),
            ["x", "1", "2", "8", "80", "8", "4", "8"]
        );
    }
}
