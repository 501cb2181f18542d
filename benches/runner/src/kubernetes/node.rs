//! What the agents talk to: `kubernetes-node` of `tailrace-testkit` as a process of its own, which serves the pods,
//! takes the records and checks them.

use std::fs;
use std::path::Path;
use std::process::{self, Command, Stdio};
use std::sync::mpsc::Receiver as Lines;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::pods::{PODS, Pod};
use crate::child::Child;
use crate::receiver::{lines_of, next_line};

/// The stand-in of API server and backend. Dropping it ends it.
pub(super) struct Node {
    process: process::Child,
    lines: Lines<String>,
    /// Where records are taken.
    pub(super) address: String,
}

impl Node {
    /// Starts it, on one processor or on any; it expects so many records of each pod. Afterwards a kubeconfig is in
    /// `dir`.
    pub(super) fn start(
        program: &Path,
        dir: &Path,
        pods: &[Pod],
        records: u64,
        cpu: Option<u32>,
    ) -> Result<Node> {
        let path = dir.join("pods.json");
        let expected: Vec<Value> = pods.iter().map(Pod::expected).collect();
        fs::write(&path, Value::Array(expected).to_string())
            .with_context(|| format!("cannot write {}", path.display()))?;
        let mut command = match cpu {
            None => Command::new(program),
            Some(cpu) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cpu.to_string()]).arg(program);
                command
            }
        };
        command.arg("--pods").arg(path).arg("--dir").arg(dir);
        command.args(["--records", &records.to_string()]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().context("cannot start kubernetes-node")?;
        let stdout = process.stdout.take();
        let mut node = Node {
            process,
            lines: lines_of(stdout.context("kubernetes-node has no standard output")?),
            address: String::new(),
        };
        let first = node.line(Duration::from_secs(10))?;
        let address = first["listening"].as_str();
        node.address = address
            .context("kubernetes-node listens nowhere")?
            .to_owned();
        Ok(node)
    }

    /// Waits until as many records have arrived as are expected. An agent that ends before is an error.
    pub(super) fn wait_complete(&self, timeout: Duration, agent: &Child) -> Result<()> {
        let line = next_line(&self.lines, timeout, agent)?;
        ensure!(
            line == r#"{"complete":true}"#,
            "kubernetes-node says {line}"
        );
        Ok(())
    }

    /// Ends it and gives what arrived. Too few records, or one without what is known of its pod, are an error.
    pub(super) fn end(mut self, records: u64) -> Result<Arrived> {
        drop(self.process.stdin.take());
        let totals = self.line(Duration::from_secs(10))?;
        Arrived::check(&totals, records)
    }

    fn line(&self, timeout: Duration) -> Result<Value> {
        let line = self.lines.recv_timeout(timeout);
        let line = line.context("kubernetes-node says nothing")?;
        serde_json::from_str(&line).with_context(|| format!("no JSON: {line}"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a node took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Arrived {
    /// Bytes of the requests.
    pub(super) wire_bytes: u64,
    /// Records beyond those that were written: repeated, or in pieces.
    pub(super) excess: u64,
}

impl Arrived {
    fn check(totals: &Value, records: u64) -> Result<Arrived> {
        let of = |name: &str| {
            totals[name]
                .as_u64()
                .with_context(|| format!("no {name}: {totals}"))
        };
        let arrived = of("records")?;
        let all = arrived >= records && of("labelled")? == arrived && of("refused")? == 0;
        // As many as were written, but not each pod's own, are not what was written.
        ensure!(
            all && (arrived > records || of("complete_pods")? == PODS),
            "not each of {records} records of {PODS} pods arrived with what is known of its pod: {totals}"
        );
        Ok(Arrived {
            wire_bytes: of("wire_bytes")?,
            excess: arrived - records,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_total_must_be_right() {
        let good = json!({
            "records": 200, "labelled": 200, "complete_pods": 100, "refused": 0, "wire_bytes": 9,
        });
        let excess = |totals: &Value, records| Some(Arrived::check(totals, records).ok()?.excess);
        assert_eq!(excess(&good, 200), Some(0));
        assert_eq!(excess(&good, 201), None);
        assert_eq!(excess(&good, 199), Some(1));
        for (name, value) in [("labelled", 199), ("complete_pods", 99), ("refused", 1)] {
            let mut bad = good.clone();
            bad[name] = json!(value);
            assert_eq!(excess(&bad, 200), None, "{name}");
        }
    }
}
