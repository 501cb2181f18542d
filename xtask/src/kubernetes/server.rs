//! The collector that the agents send to: on this machine, at an address that pods reach.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::workspace::Workspace;

const START_MAX: Duration = Duration::from_secs(60);

/// A running collector that writes what it receives to a file. Dropping it ends it.
pub(crate) struct Server {
    process: Child,
    pub(crate) endpoint: String,
    pub(crate) received: PathBuf,
}

/// This machine's address on the way to a node. Nodes that are this machine or its containers reach it there.
pub(crate) fn address_towards(node: &str) -> Result<IpAddr> {
    let node: IpAddr = node
        .parse()
        .with_context(|| format!("{node} is no address"))?;
    let local: SocketAddr = if node.is_ipv4() {
        ([0, 0, 0, 0], 0).into()
    } else {
        ([0_u16; 8], 0).into()
    };
    // Connecting sends nothing; it only asks for the route.
    let socket = UdpSocket::bind(local).context("no socket can be made")?;
    socket
        .connect((node, 9))
        .with_context(|| format!("no route leads to the node's address {node}"))?;
    Ok(socket.local_addr()?.ip())
}

impl Server {
    /// Starts this collector at this address, and waits until it listens.
    pub(crate) fn start(workspace: &Workspace, program: &Path, address: IpAddr) -> Result<Server> {
        let dir = workspace.target.join("kubernetes");
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let received = dir.join("received.json");
        fs::write(&received, "").with_context(|| format!("cannot write {}", received.display()))?;
        let listener = TcpListener::bind((address, 0)).with_context(|| {
            format!("{address} is no address of this machine; name one that pods reach with --collector-address")
        })?;
        let listen = listener.local_addr()?;
        drop(listener);
        let config = dir.join("otelcol.yaml");
        let text = format!(
            "receivers:\n  otlp:\n    protocols:\n      http: {{endpoint: '{listen}'}}\nexporters:\n  \
             file: {{path: '{}', flush_interval: 200ms}}\nservice:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines:\n    logs: {{receivers: [otlp], exporters: [file]}}\n",
            received.display()
        );
        fs::write(&config, text).with_context(|| format!("cannot write {}", config.display()))?;
        let mut command = workspace.command(program, &["--config"]);
        let process = command.arg(&config).stderr(Stdio::piped()).spawn();
        let mut server = Server {
            process: process.context("cannot start the collector")?,
            endpoint: format!("http://{listen}"),
            received,
        };
        server.wait()?;
        Ok(server)
    }

    fn wait(&mut self) -> Result<()> {
        let said = self
            .process
            .stderr
            .take()
            .context("the collector has no standard error")?;
        let (report, reported) = mpsc::sync_channel(1);
        thread::spawn(move || {
            // Read to its end, so that the pipe never fills up.
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if line.contains("Everything is ready") {
                    let _ = report.send(());
                }
            }
        });
        if reported.recv_timeout(START_MAX).is_err() {
            bail!(
                "waited {} s for the collector to say that it is ready, in vain",
                START_MAX.as_secs()
            );
        }
        Ok(())
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_reaches_itself_where_it_is_asked_for() {
        let address = address_towards("127.0.0.1").expect("a route");
        assert_eq!(address, IpAddr::from([127, 0, 0, 1]));
        assert!(address_towards("node-1").is_err());
    }
}
