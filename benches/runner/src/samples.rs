//! The memory of a process over time, sampled from `/proc` every 50 ms. Resident memory holds the pages of the
//! binary that were touched; anonymous memory does not, and is what a leak would make grow.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, bail};

/// Resident and anonymous bytes at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) resident: u64,
    pub(super) anonymous: u64,
}

/// Samples a process until it is stopped or dropped.
pub(super) struct Sampler {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Sample>>>,
}

impl Sampler {
    pub(super) fn start(pid: u32) -> Sampler {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let path = format!("/proc/{pid}/status");
        let thread = thread::spawn(move || {
            let mut samples = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let text = fs::read_to_string(&path).unwrap_or_default();
                samples.extend(parse(&text));
                thread::sleep(Duration::from_millis(50));
            }
            samples
        });
        Sampler {
            stop,
            thread: Some(thread),
        }
    }

    /// What was seen; no samples are an error.
    pub(super) fn stop(mut self) -> Result<Vec<Sample>> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(samples)) if !samples.is_empty() => Ok(samples),
            _ => bail!("no samples of memory were taken"),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// `VmRSS` and `RssAnon` of `/proc/PID/status`.
fn parse(text: &str) -> Option<Sample> {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        Some(kib * 1024)
    };
    Some(Sample {
        resident: field("VmRSS:")?,
        anonymous: field("RssAnon:")?,
    })
}

/// The highest of some samples.
pub(super) fn peak(samples: &[Sample], of: impl Fn(&Sample) -> u64) -> u64 {
    samples.iter().map(of).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_memory_are_read() {
        let text = "VmHWM:\t 9 kB\nVmRSS:\t    20 kB\nRssAnon:\t 5 kB\n";
        let sample = Sample {
            resident: 20 << 10,
            anonymous: 5 << 10,
        };
        assert_eq!(parse(text), Some(sample));
        assert_eq!(parse("VmRSS:\t20 kB\n"), None);
    }
}
