//! The receiver of one run: `tailrace blackhole`, which decodes what arrives,
//! counts it and tells when everything is there. What it uses is not counted.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{self, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver as Lines, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::child::Child;

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
        let first: Value = serde_json::from_str(&first)
            .with_context(|| format!("the receiver's first line is {first}"))?;
        let address = first["listening"].as_str();
        receiver.address = address.context("the receiver listens nowhere")?.to_owned();
        Ok(receiver)
    }

    /// Waits for the totals. An agent that ends before them is an error.
    pub(crate) fn wait(mut self, timeout: Duration, agent: &Child) -> Result<Received> {
        let line = next_line(&self.lines, timeout, agent)?;
        self.process
            .wait()
            .context("cannot wait for the receiver")?;
        Received::parse(&line)
    }
}

impl Received {
    fn parse(line: &str) -> Result<Received> {
        let totals: Value = serde_json::from_str(line)
            .with_context(|| format!("the totals are no JSON: {line}"))?;
        let field = |name| {
            let number = totals[name].as_u64();
            number.with_context(|| format!("no `{name}` in the totals {line}"))
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

/// The next line of what an agent sends to. An agent that ends before it is an error.
pub(super) fn next_line(lines: &Lines<String>, timeout: Duration, agent: &Child) -> Result<String> {
    let deadline = Instant::now() + timeout;
    loop {
        match lines.recv_timeout(Duration::from_millis(50)) {
            Ok(line) => return Ok(line),
            Err(RecvTimeoutError::Disconnected) => bail!("the receiver ended without totals"),
            Err(RecvTimeoutError::Timeout) if agent.has_ended() => {
                bail!("the agent ended before everything had arrived")
            }
            Err(RecvTimeoutError::Timeout) if Instant::now() > deadline => {
                bail!("not everything arrived within {} s", timeout.as_secs())
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The lines of a pipe, read by a thread of their own so that waiting for one
/// can end.
pub(super) fn lines_of(stdout: ChildStdout) -> Lines<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_receivers_totals_are_read() {
        let totals = r#"{"message_bytes":1,"records":20,"refused":0,"wire_bytes":7}"#;
        let received = Received::parse(totals).expect("totals");
        let counts = (received.records, received.wire_bytes, received.refused);
        assert_eq!(counts, (20, 7, 0));
        assert!(Received::parse("{}").is_err());
        assert!(Received::parse("records: 20").is_err());
    }
}
