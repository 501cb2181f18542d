//! `cargo xtask timings`: where the minutes of a first build go. It builds the agent in an empty directory and prints what each
//! crate took.
//!
//! The time of a crate is processor time of its compiler, which other work on the machine hardly changes. What build
//! scripts take (C libraries, mostly) is not of one crate: it is part of the wall time only.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::workspace::{Workspace, run as execute};

/// Stands for rustc, and notes how long it took.
const WRAPPER: &str = include_str!("timings.sh");

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build with this profile
    #[arg(long, default_value = "release", value_name = "NAME")]
    profile: String,
    /// Print this many crates
    #[arg(long, default_value_t = 30, value_name = "N")]
    top: usize,
}

/// What all compilations of one crate took, in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct Spent {
    processor: f64,
    wall: f64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let dir = workspace.target.join("timings");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot empty {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let (wrapper, log) = (dir.join("rustc-timed"), dir.join("crates.txt"));
    write_wrapper(&wrapper)?;

    let arguments = ["build", "--bin", "tailrace", "--profile", &args.profile];
    let mut build = workspace.cargo(&arguments);
    build
        .env("CARGO_TARGET_DIR", &dir)
        .env("RUSTC_WRAPPER", &wrapper)
        .env("TAILRACE_TIMINGS", &log);
    let started = Instant::now();
    execute(&mut build)?;
    let wall = started.elapsed().as_secs_f64();

    let text =
        fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
    print!("{}", report(&parse(&text), wall, args.top));
    fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))
}

fn write_wrapper(path: &Path) -> Result<()> {
    let written = fs::write(path, WRAPPER)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The wrapper's lines, by crate. Two versions of a crate count as one; what is not such a line is left out.
fn parse(text: &str) -> BTreeMap<&str, Spent> {
    let mut crates: BTreeMap<&str, Spent> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, times @ ..] = words.as_slice() else {
            continue;
        };
        let times: Vec<f64> = times.iter().filter_map(|word| word.parse().ok()).collect();
        // `-` is cargo asking rustc for its version.
        if let ([user, system, wall], false) = (times.as_slice(), *name == "-") {
            let spent = crates.entry(name).or_default();
            spent.processor += user + system;
            spent.wall += wall;
        }
    }
    crates
}

/// The table, the most expensive crate first.
fn report(crates: &BTreeMap<&str, Spent>, wall: f64, top: usize) -> String {
    let total: f64 = crates.values().map(|spent| spent.processor).sum();
    let mut sorted: Vec<_> = crates.iter().collect();
    sorted.sort_by(|a, b| b.1.processor.total_cmp(&a.1.processor));
    let mut text = format!(
        "\n{:<40} {:>8} {:>6} {:>8}\n",
        "crate", "CPU s", "share", "wall s"
    );
    for (name, spent) in sorted.iter().take(top) {
        let share = 100.0 * spent.processor / total.max(f64::MIN_POSITIVE);
        text += &format!(
            "{name:<40} {:>8.1} {share:>5.1}% {:>8.1}\n",
            spent.processor, spent.wall
        );
    }
    let rest = sorted.iter().skip(top);
    let (count, seconds) = rest.fold((0, 0.0), |(count, sum), (_, spent)| {
        (count + 1, sum + spent.processor)
    });
    text += &format!("{:<40} {seconds:>8.1}\n", format!("{count} others"));
    text += &format!(
        "{:<40} {total:>8.1}        {wall:>8.1}\n",
        "all, without build scripts"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::{Spent, parse, report};

    #[test]
    fn the_most_expensive_crate_is_first_and_nothing_is_left_out() {
        let text = "- 0.010 0.010 0.020\nsyn 4.000 1.000 6.000\nsyn 2.000 0.000 2.000\nbig 20.000 2.000 15.000\n\
                    noise from somewhere\nsmall 0.500 0.500 1.000\n";
        let crates = parse(text);
        let syn = Spent {
            processor: 7.0,
            wall: 8.0,
        };
        assert_eq!(crates.get("syn"), Some(&syn));
        assert_eq!(crates.len(), 3);
        let lines = report(&crates, 20.0, 2);
        let first: Vec<&str> = lines
            .lines()
            .skip(2)
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert_eq!(first, ["big", "syn", "1", "all,"]);
        assert!(lines.contains("30.0"), "{lines}");
    }
}
