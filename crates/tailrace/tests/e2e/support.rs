//! Starts the agent as a process of its own in a directory of its own, and ends it with the
//! test, whatever happens.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A directory with a config, logs, and the agent's data and own logs.
pub(crate) struct Bench {
    dir: TempDir,
    /// More environment for the agent.
    environment: Vec<(String, String)>,
    starts: std::cell::Cell<u32>,
}

/// A running agent.
pub(crate) struct Agent {
    child: Child,
    own_log: PathBuf,
}

/// Nothing here takes longer on a machine that is not broken.
const TIMEOUT: Duration = Duration::from_secs(180);

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("logs")).unwrap();
        Self {
            dir,
            environment: Vec::new(),
            starts: std::cell::Cell::new(0),
        }
    }

    /// Agents that are started from now on have this in their environment.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// From now on they have nothing more.
    pub(crate) fn unset(&mut self) {
        self.environment.clear();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A log file's path.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.dir.path().join("logs").join(name)
    }

    /// Writes the config. `$DIR` is this directory.
    pub(crate) fn config(&self, text: &str) -> PathBuf {
        let path = self.path("tailrace.yaml");
        let text = text.replace("$DIR", &self.dir.path().display().to_string());
        fs::write(
            &path,
            format!("data_dir: {}\n{text}", self.path("data").display()),
        )
        .unwrap();
        path
    }

    /// A config of one pipeline that reads `logs/*.log` and sends to `endpoint`; `more` is
    /// appended to the pipeline.
    pub(crate) fn pipeline(&self, endpoint: &str, format: &str, more: &str) -> PathBuf {
        self.config(&format!(
            "pipelines:\n  app:\n    input: {{type: file, include: ['$DIR/logs/*.log'], \
             format: {format}}}\n    batch: {{max_wait: 50ms}}\n    output:\n      type: otlp\n      \
             endpoint: {endpoint}\n      retry: {{initial: 50ms, max: 200ms}}\n{more}"
        ))
    }

    /// Starts the agent with the config written last.
    pub(crate) fn start(&self) -> Agent {
        self.start_with(Stdio::null())
    }

    /// Starts the agent with this standard input.
    pub(crate) fn start_with(&self, stdin: impl Into<Stdio>) -> Agent {
        self.spawn(&[], &self.path("tailrace.yaml"), stdin)
    }

    /// Starts the agent with more arguments and another config.
    pub(crate) fn start_args(&self, args: &[&str], config: &Path) -> Agent {
        self.spawn(args, config, Stdio::null())
    }

    /// Starts the agent where inotify is not to be had; `None` if such a place cannot be made.
    pub(crate) fn start_without_inotify(&self) -> Option<Agent> {
        let make = "echo 0 >/proc/sys/user/max_inotify_instances";
        let place = ["--user", "--map-root-user", "sh", "-c"];
        let can = Command::new("unshare").args(place).arg(make).status();
        can.ok().filter(ExitStatus::success)?;
        let mut command = Command::new("unshare");
        command
            .args(place)
            .arg(format!("{make} && exec \"$0\" \"$@\""));
        command.arg(env!("CARGO_BIN_EXE_tailrace"));
        let config = self.path("tailrace.yaml");
        Some(self.spawn_as(command, &[], &config, Stdio::null()))
    }

    fn spawn(&self, args: &[&str], config: &Path, stdin: impl Into<Stdio>) -> Agent {
        self.spawn_as(tailrace(), args, config, stdin)
    }

    fn spawn_as(
        &self,
        mut command: Command,
        args: &[&str],
        config: &Path,
        stdin: impl Into<Stdio>,
    ) -> Agent {
        self.starts.set(self.starts.get() + 1);
        let own_log = self.path(&format!("own-{}.log", self.starts.get()));
        let child = command
            .args(["run", "--log-format", "text", "-c"])
            .arg(config)
            .args(args)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(Stdio::inherit())
            .stderr(File::create(&own_log).unwrap())
            .spawn()
            .unwrap();
        Agent { child, own_log }
    }
}

/// The binary under test, without the environment's own ideas.
pub(crate) fn tailrace() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tailrace"));
    for (name, _) in std::env::vars() {
        if name.starts_with("OTEL_") || name.starts_with("TAILRACE_") {
            command.env_remove(name);
        }
    }
    command.env("NO_COLOR", "1");
    command
}

impl Agent {
    /// kill -9, and wait for the end.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the exit status.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.end()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The way to its standard input, if that is a pipe.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// Waits for the end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// How it ended, if it has.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits until the agent's own log holds a text.
    pub(crate) fn says(&self, text: &str) {
        until(
            || self.own_log().contains(text),
            || {
                format!(
                    "the agent did not say {text:?}; its log:\n{}",
                    self.own_log()
                )
            },
        );
    }

    /// Where its admin endpoint listens.
    pub(crate) fn admin(&self) -> String {
        self.says("admin endpoint");
        let log = self.own_log();
        let address = log.split("address=").nth(1).unwrap();
        address.split_whitespace().next().unwrap().to_owned()
    }

    /// Where its own log is, also after its end.
    pub(crate) fn log_path(&self) -> PathBuf {
        self.own_log.clone()
    }

    pub(crate) fn own_log(&self) -> String {
        fs::read_to_string(&self.own_log).unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the agent's own log:\n{}", self.own_log());
        }
    }
}

/// Waits for something another process does and does not announce.
pub(crate) fn until(mut done: impl FnMut() -> bool, otherwise: impl Fn() -> String) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < TIMEOUT, "{}", otherwise());
        std::thread::sleep(Duration::from_millis(5)); // tidy: another process, no event to await
    }
}

/// Real log files, if this machine has them.
pub(crate) fn data(name: &str) -> Option<Vec<u8>> {
    tailrace_testkit::data(name).map(|path: PathBuf| fs::read(path).unwrap())
}

/// Appends to a file, making it if need be.
pub(crate) fn append(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

/// Writes all bytes and closes the pipe.
pub(crate) fn write(mut pipe: ChildStdin, bytes: &[u8]) {
    std::io::Write::write_all(&mut pipe, bytes).unwrap();
}

/// A plain HTTP GET.
pub(crate) fn get(address: &str, path: &str) -> String {
    request("GET", address, path).1
}

/// A plain HTTP POST: the status and the body.
pub(crate) fn post(address: &str, path: &str) -> (u16, String) {
    request("POST", address, path)
}

/// The status and the body of an answer.
pub(crate) fn request(method: &str, address: &str, path: &str) -> (u16, String) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let body = answer.split_once("\r\n\r\n");
    (
        status,
        body.map_or(String::new(), |(_, body)| body.to_owned()),
    )
}
