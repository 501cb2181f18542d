//! The processes of one run: the receiver, which tells when everything arrived,
//! and the agent, whose use of the machine is read from `/proc`. A process that
//! has ended but was not waited for still shows its CPU time there, to 10 ms;
//! its peak memory must be read before that.

use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{self, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver as Lines, RecvTimeoutError, sync_channel};
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

impl Usage {
    /// The run in the middle by CPU time; of two, the lower.
    pub(crate) fn median(usages: &[Usage]) -> Usage {
        let mut sorted = usages.to_vec();
        sorted.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
        sorted
            .get(sorted.len().saturating_sub(1) / 2)
            .copied()
            .unwrap_or_default()
    }
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

    fn has_ended(&self) -> bool {
        self.stat().is_ok_and(|(ended, _)| ended)
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

/// `tailrace blackhole`, which ends when the expected records have arrived.
pub(crate) struct Receiver {
    process: process::Child,
    lines: Lines<String>,
    /// Where it listens.
    pub(crate) address: String,
}

/// What the receiver counted.
pub(crate) struct Received {
    pub(crate) records: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) refused: u64,
}

impl Receiver {
    pub(crate) fn start(tailrace: &Path, expected: u64) -> Result<Receiver> {
        let expected = expected.to_string();
        let mut process = Command::new(tailrace)
            .args([
                "blackhole",
                "--listen",
                "127.0.0.1:0",
                "--decode",
                "--summary",
                "json",
            ])
            .args(["--idle-exit", "30", "--exit-after-records", &expected])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start `tailrace blackhole`")?;
        let stdout = process
            .stdout
            .take()
            .context("the receiver has no standard output")?;
        let lines = lines_of(stdout);
        let mut receiver = Receiver {
            process,
            lines,
            address: String::new(),
        };
        let first = receiver
            .lines
            .recv_timeout(Duration::from_secs(10))
            .context("the receiver does not say where it listens")?;
        receiver.address = text_field(&first, "listening")
            .with_context(|| format!("the receiver's first line is {first}"))?;
        Ok(receiver)
    }

    /// Waits for the totals. An agent that ends before them is an error.
    pub(crate) fn wait(mut self, timeout: Duration, agent: &Child) -> Result<Received> {
        let deadline = Instant::now() + timeout;
        let line = loop {
            match self.lines.recv_timeout(Duration::from_millis(50)) {
                Ok(line) => break line,
                Err(RecvTimeoutError::Disconnected) => bail!("the receiver ended without totals"),
                Err(RecvTimeoutError::Timeout) if agent.has_ended() => {
                    bail!("the agent ended before everything had arrived")
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                    bail!("not everything arrived within {} s", timeout.as_secs())
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        self.process
            .wait()
            .context("cannot wait for the receiver")?;
        let field = |name| {
            number_field(&line, name).with_context(|| format!("no `{name}` in the totals {line}"))
        };
        Ok(Received {
            records: field("records")?,
            wire_bytes: field("wire_bytes")?,
            refused: field("refused")?,
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The lines of a pipe, read by a thread of their own so that waiting for one
/// can end.
fn lines_of(stdout: ChildStdout) -> Lines<String> {
    let (sender, lines) = sync_channel(16);
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// The value of `"name":` in one line of the receiver's flat JSON, whose texts
/// hold no escapes.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\":"))?;
    rest.split([',', '}']).next()
}

fn number_field(line: &str, name: &str) -> Option<u64> {
    field(line, name)?.parse().ok()
}

fn text_field(line: &str, name: &str) -> Option<String> {
    Some(
        field(line, name)?
            .strip_prefix('"')?
            .strip_suffix('"')?
            .to_owned(),
    )
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
    fn the_receivers_lines_are_read() {
        assert_eq!(
            text_field(r#"{"listening":"127.0.0.1:4318"}"#, "listening").as_deref(),
            Some("127.0.0.1:4318")
        );
        let totals = r#"{"message_bytes":1,"records":20,"refused":0,"wire_bytes":7}"#;
        assert_eq!(number_field(totals, "records"), Some(20));
        assert_eq!(number_field(totals, "wire_bytes"), Some(7));
        assert_eq!(number_field(totals, "nothing"), None);
    }

    #[test]
    fn the_median_is_a_run_that_happened() {
        let usage = |cpu_seconds| Usage {
            cpu_seconds,
            ..Usage::default()
        };
        assert_eq!(
            Usage::median(&[usage(3.0), usage(1.0), usage(2.0)]),
            usage(2.0)
        );
        assert_eq!(Usage::median(&[usage(3.0), usage(1.0)]), usage(1.0));
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
