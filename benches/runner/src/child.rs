//! The agent of one run, whose use of the machine is read from `/proc`. A
//! process that has ended but was not waited for still shows its CPU time there,
//! to 10 ms; its peak memory must be read before that.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{self, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// What one run of an agent cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// User and system time of the whole process.
    pub(crate) cpu_seconds: f64,
    /// Highest resident memory.
    pub(crate) peak_bytes: u64,
    /// From the agent's start until all had arrived.
    pub(crate) wall_seconds: f64,
    /// Request bodies as sent.
    pub(crate) wire_bytes: u64,
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.peak_bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{:.2} CPU s, {mib:.0} MiB, {:.1} s, {} bytes sent",
            self.cpu_seconds, self.wall_seconds, self.wire_bytes
        )
    }
}

/// An agent that runs. Dropping it kills it.
pub(crate) struct Child {
    process: process::Child,
    started: Instant,
}

impl Child {
    pub(crate) fn start(mut command: Command) -> Result<Child> {
        let program = command.get_program().to_owned();
        let process = command
            .spawn()
            .with_context(|| format!("cannot start {}", Path::new(&program).display()))?;
        Ok(Child {
            process,
            started: Instant::now(),
        })
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.stat().is_ok_and(|(ended, _)| ended)
    }

    /// User and system time so far.
    pub(crate) fn cpu_seconds(&self) -> Result<f64> {
        Ok(self.stat()?.1)
    }

    /// Ends the agent by SIGTERM and gives what it used.
    pub(crate) fn stop(mut self, timeout: Duration) -> Result<Usage> {
        let wall_seconds = self.started.elapsed().as_secs_f64();
        let peak_bytes = self.peak_bytes().context("the agent ended by itself")?;
        let pid = self.process.id().to_string();
        let sent = Command::new("sh")
            .args(["-c", "kill -TERM \"$1\"", "sh", &pid])
            .status();
        if !sent.context("cannot start sh")?.success() {
            bail!("cannot send SIGTERM to the agent");
        }
        let deadline = Instant::now() + timeout;
        let cpu_seconds = loop {
            match self.stat()? {
                (true, cpu_seconds) => break cpu_seconds,
                (false, _) if Instant::now() > deadline => bail!("the agent ignores SIGTERM"),
                (false, _) => thread::sleep(Duration::from_millis(5)),
            }
        };
        let status = self.process.wait().context("cannot wait for the agent")?;
        if !status.success() {
            bail!("the agent ended with {status}");
        }
        Ok(Usage {
            cpu_seconds,
            peak_bytes,
            wall_seconds,
            wire_bytes: 0,
        })
    }

    /// Whether the process has ended, and its CPU seconds so far.
    fn stat(&self) -> Result<(bool, f64)> {
        let path = format!("/proc/{}/stat", self.process.id());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        parse_stat(&text).with_context(|| format!("cannot understand {path}"))
    }

    fn peak_bytes(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.process.id());
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        parse_peak(&text).with_context(|| format!("{path} holds no VmHWM"))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The state, and fields 14 and 15 in ticks of 10 ms, of `/proc/PID/stat`.
fn parse_stat(text: &str) -> Option<(bool, f64)> {
    let (_, fields) = text.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some((fields.first() == Some(&"Z"), ticks as f64 / 100.0))
}

fn parse_peak(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_still_tells_its_time() {
        let stat = "7 (a) b) Z 1 7 7 0 -1 4 3 0 0 0 150 50 9 9 20 0 1 0 5 0 0";
        assert_eq!(parse_stat(stat), Some((true, 2.0)));
        assert_eq!(parse_stat("7 (x) R 1"), None);
    }

    #[test]
    fn peak_memory_is_in_bytes() {
        assert_eq!(
            parse_peak("VmPeak:\t9 kB\nVmHWM:\t    20 kB\n"),
            Some(20 << 10)
        );
        assert_eq!(parse_peak("VmRSS:\t20 kB\n"), None);
    }

    #[test]
    fn a_process_is_measured_and_ended() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap 'exit 0' TERM; while :; do :; done"]);
        let child = Child::start(command).expect("sh starts");
        while child.stat().is_ok_and(|(_, cpu)| cpu < 0.05) {
            thread::yield_now();
        }
        let usage = child
            .stop(Duration::from_secs(30))
            .expect("it ends on SIGTERM");
        assert!(
            usage.cpu_seconds >= 0.05 && usage.peak_bytes > 0,
            "{usage:?}"
        );
    }
}
