//! The agent under torture: its config, its process, its counters. Tailrace or the OpenTelemetry
//! Collector, both as a user would set them up for delivery without loss.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::faults::TIMEOUT;
use super::stream::Rotation;

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ours.
    Tailrace,
    /// The OpenTelemetry Collector: filelog with `file_storage`, `otlp_http` with a persistent queue.
    Otelcol,
}

/// A program to torture.
#[derive(Clone, Debug)]
pub struct Agent {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub binary: PathBuf,
}

/// What a config needs.
pub(crate) struct Setup<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) endpoint: String,
    pub(crate) groups: &'a [Rotation],
    pub(crate) replay_mib: u64,
    pub(crate) concurrency: u32,
    /// Lines of YAML at the top level.
    pub(crate) more: &'a str,
    pub(crate) environment: &'a [(&'static str, String)],
    pub(crate) has_inotify: bool,
    pub(crate) cgroup: Option<PathBuf>,
}

/// One agent with its config; started again and again.
pub(crate) struct Program {
    agent: Agent,
    dir: PathBuf,
    environment: Vec<(&'static str, String)>,
    has_inotify: bool,
    cgroup: Option<PathBuf>,
    pub(crate) admin: SocketAddr,
}

/// A running process.
pub(crate) struct Process {
    child: Child,
}

impl Program {
    pub(crate) fn configure(agent: &Agent, setup: &Setup<'_>) -> io::Result<Program> {
        // Free now; somebody else could take it before the agent does, and the agent would say so.
        let admin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let text = match agent.kind {
            Kind::Tailrace => tailrace_config(setup, admin),
            Kind::Otelcol => otelcol_config(setup),
        };
        std::fs::write(setup.dir.join("agent.yaml"), text)?;
        Ok(Program {
            agent: agent.clone(),
            dir: setup.dir.to_owned(),
            environment: setup.environment.to_vec(),
            has_inotify: setup.has_inotify,
            cgroup: setup.cgroup.clone(),
            admin,
        })
    }

    pub(crate) fn start(&self) -> io::Result<Process> {
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log())?;
        let mut command = match &self.cgroup {
            None if self.has_inotify => Command::new(&self.agent.binary),
            None => {
                let mut space = Command::new("unshare");
                space.args(["--user", "--map-root-user", "sh", "-c", NO_INOTIFY]);
                space.arg(&self.agent.binary);
                space
            }
            Some(cgroup) => {
                // In the group before it is the agent, so that the agent sees its limit.
                let mut shell = Command::new("sh");
                shell.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
                shell
                    .arg(cgroup.join("cgroup.procs"))
                    .arg(&self.agent.binary);
                shell
            }
        };
        for (name, _) in std::env::vars() {
            if name.starts_with("OTEL_") || name.starts_with("TAILRACE_") {
                command.env_remove(name);
            }
        }
        let config = self.dir.join("agent.yaml");
        match self.agent.kind {
            Kind::Tailrace => {
                command.args(["run", "--log-format", "text", "-c"]);
                command.arg(config);
            }
            Kind::Otelcol => {
                command.arg("--config").arg(config);
            }
        }
        let child = command
            .env("NO_COLOR", "1")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(File::options().append(true).open(self.log())?)
            .stderr(log)
            .spawn()?;
        Ok(Process { child })
    }

    /// Where the agent's own log goes, over all its lives.
    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("agent.log")
    }

    /// The agent forgets that it was killed: after a few such deaths it would stay in safe mode, and nothing would show what it
    /// does as usual.
    pub(crate) fn forget_deaths(&self) {
        let _ = std::fs::remove_file(self.dir.join("data/starts"));
    }

    /// How long ago progress was last written to disk, if it ever was.
    pub(crate) fn checkpoint_age(&self) -> Option<Duration> {
        let files = std::fs::read_dir(self.dir.join("data")).ok()?;
        let written = files.flatten().filter_map(|file| {
            let is_checkpoint = file.file_name().to_string_lossy().starts_with("checkpoint");
            is_checkpoint.then(|| file.metadata().ok()?.modified().ok())?
        });
        written.max()?.elapsed().ok()
    }

    /// Counters and gauges by family and pipeline, summed over other labels; empty when the agent
    /// does not answer or has none.
    pub(crate) fn metrics(&self) -> BTreeMap<(String, String), f64> {
        if self.agent.kind == Kind::Otelcol {
            return BTreeMap::new();
        }
        get(self.admin, "/metrics").map_or_else(|_| BTreeMap::new(), |text| parse(&text))
    }
}

impl Process {
    /// kill -9, and wait for the end.
    pub(crate) fn kill(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM; `None` when it has not ended after `timeout` and was killed.
    pub(crate) fn terminate(&mut self, timeout: Duration) -> Option<ExitStatus> {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(Pid::from_raw)?;
        // Fails only when it has ended already.
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if let Some(status) = self.ended() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        None
    }

    /// How it ended, if it did.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Resident bytes, now and at the highest.
    pub(crate) fn memory(&self) -> (u64, u64) {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim()
                .strip_suffix("kB")?
                .trim_end()
                .parse::<u64>()
                .ok()
        };
        let kib = |name| field(name).unwrap_or(0) * 1024;
        (kib("VmRSS:"), kib("VmHWM:"))
    }

    /// User and system time so far.
    pub(crate) fn cpu(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let text = text.unwrap_or_default();
        let fields: Vec<&str> = text
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_ascii_whitespace().collect())
            .unwrap_or_default();
        let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok());
        let ticks = ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0);
        Duration::from_millis(ticks * 10)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ends the shell's user namespace's inotify, and becomes the agent.
const NO_INOTIFY: &str = "echo 0 >/proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";

fn include(dir: &Path, rotation: Rotation) -> (String, &'static str) {
    let dir = dir.join(rotation.name());
    let dir = dir.display();
    if rotation.is_cri() {
        return (
            format!(
                "['{dir}/*/*/*.log', '{dir}/*/*/*.log.*'], exclude: ['{dir}/*/*/*.gz', '{dir}/*/*/*.tmp']"
            ),
            "cri",
        );
    }
    (
        format!("['{dir}/*.log', '{dir}/*.log.*'], exclude: ['{dir}/*.gz', '{dir}/*.tmp']"),
        "json",
    )
}

fn tailrace_config(setup: &Setup<'_>, admin: SocketAddr) -> String {
    let mut text = format!(
        "data_dir: {}/data\nadmin: {{listen: '{admin}'}}\nshutdown: {{grace: 2s}}\n{}pipelines:\n",
        setup.dir.display(),
        setup.more
    );
    for rotation in setup.groups {
        let (include, format) = include(setup.dir, *rotation);
        // What logrotate copies is read where it was written.
        let include = match rotation {
            Rotation::CopyTruncate => include.replace(".log.*'], exclude", ".log'], exclude"),
            _ => include,
        };
        let _ = write!(
            text,
            "  {}:\n    input: {{type: file, include: {include}, format: {format}, discover_interval: 1s}}\n    \
             batch: {{max_wait: 50ms, max_bytes: 512KiB}}\n    limits: {{replay: {}MiB}}\n    output:\n      type: otlp\n      \
             endpoint: {}\n      timeout: {}ms\n      concurrency: {}\n      \
             retry: {{initial: 20ms, max: 300ms}}\n      attributes: {{file_path: true}}\n",
            rotation.name(),
            setup.replay_mib,
            setup.endpoint,
            TIMEOUT.as_millis(),
            setup.concurrency,
        );
    }
    text
}

fn otelcol_config(setup: &Setup<'_>) -> String {
    let dir = setup.dir.display();
    let mut receivers = String::new();
    let mut exporters = String::new();
    let mut pipelines = String::new();
    for rotation in setup.groups {
        let name = rotation.name();
        let (include, format) = include(setup.dir, *rotation);
        let include = match rotation {
            Rotation::CopyTruncate => include.replace(".log.*'], exclude", ".log'], exclude"),
            _ => include,
        };
        let operators = match format {
            "cri" => "[{type: container, format: containerd, add_metadata_from_filepath: false}]",
            _ => "[]",
        };
        let _ = writeln!(
            receivers,
            "  filelog/{name}: {{include: {include}, start_at: beginning, storage: file_storage, \
             poll_interval: 100ms, include_file_path: true, max_log_size: 1MiB, operators: {operators}}}"
        );
        let _ = write!(
            exporters,
            "  otlp_http/{name}:\n    endpoint: {}\n    compression: zstd\n    timeout: {}ms\n    \
             sending_queue: {{storage: file_storage, block_on_overflow: true, queue_size: 1000}}\n    \
             retry_on_failure: {{initial_interval: 20ms, max_interval: 300ms, max_elapsed_time: 0}}\n",
            setup.endpoint,
            TIMEOUT.as_millis()
        );
        let _ = writeln!(
            pipelines,
            "    logs/{name}: {{receivers: [filelog/{name}], exporters: [otlp_http/{name}]}}"
        );
    }
    format!(
        "extensions:\n  file_storage: {{directory: {dir}/data, create_directory: true}}\n\
         receivers:\n{receivers}exporters:\n{exporters}service:\n  extensions: [file_storage]\n  \
         telemetry: {{logs: {{level: warn}}, metrics: {{level: none}}}}\n  pipelines:\n{pipelines}"
    )
}

/// A plain HTTP GET; its body.
pub(crate) fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let timeout = Duration::from_secs(1);
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer
        .split_once("\r\n\r\n")
        .map(|(_, body)| body.to_owned());
    body.ok_or_else(|| io::Error::other("no body"))
}

fn parse(text: &str) -> BTreeMap<(String, String), f64> {
    let mut values = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else {
            continue;
        };
        let (family, labels) = name.split_once('{').unwrap_or((name, ""));
        let pipeline = labels
            .split_once("pipeline=\"")
            .and_then(|(_, rest)| rest.split_once('"'))
            .map_or("", |(pipeline, _)| pipeline);
        let key = (family.to_owned(), pipeline.to_owned());
        *values.entry(key).or_insert(0.0) += value.parse().unwrap_or(0.0);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn counters_are_summed_over_other_labels() {
        let text = "# HELP x y\nlost_total{pipeline=\"a\",reason=\"x\"} 3\n\
                    lost_total{pipeline=\"a\",reason=\"y\"} 4\nage_seconds 2\n# EOF\n";
        let values = parse(text);
        assert_eq!(values[&("lost_total".to_owned(), "a".to_owned())], 7.0);
        assert_eq!(values[&("age_seconds".to_owned(), String::new())], 2.0);
    }
}
