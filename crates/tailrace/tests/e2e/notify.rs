//! What the agent tells a service manager such as systemd, and in which order.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;

use crate::support::{Agent, Bench, get};

/// A service manager that listens.
struct Manager(UnixDatagram);

impl Manager {
    /// Listens where agents of the bench look for it from now on.
    fn of(bench: &mut Bench) -> Self {
        let path = bench.path("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        // No message takes longer on a machine that is not broken.
        socket
            .set_read_timeout(Some(Duration::from_secs(180)))
            .unwrap();
        bench.set("NOTIFY_SOCKET", path.to_str().unwrap());
        Self(socket)
    }

    /// The next message: the state and the status.
    fn next(&self) -> (String, String) {
        let mut buffer = [0; 4096];
        let len = self.0.recv(&mut buffer).unwrap();
        let message = String::from_utf8(buffer[..len].to_vec()).unwrap();
        let (state, status) = message.split_once("\nSTATUS=").unwrap();
        (state.to_owned(), status.to_owned())
    }

    fn is_told(&self, state: &str, status: &str) {
        let (told, told_status) = self.next();
        assert_eq!(told, state, "{told_status}");
        assert!(told_status.contains(status), "{told_status:?}");
    }

    fn has_nothing_more(&self) {
        self.0.set_nonblocking(true).unwrap();
        assert!(self.0.recv(&mut [0; 4096]).is_err());
    }
}

/// A config whose server is down.
fn config(bench: &Bench, pipelines: &[&str]) {
    let mut text = "admin: {listen: '127.0.0.1:0'}\nshutdown: {grace: 1s}\npipelines:\n".to_owned();
    for name in pipelines {
        text += &format!(
            "  {name}:\n    input: {{type: file, include: ['$DIR/logs/{name}.log']}}\n    \
             output: {{type: otlp, endpoint: 'http://127.0.0.1:1'}}\n"
        );
    }
    bench.config(&text);
}

#[test]
fn start_reloads_and_stop_are_told_in_order() {
    let mut bench = Bench::new();
    let manager = Manager::of(&mut bench);
    config(&bench, &["app", "host"]);
    fs::write(bench.log("app.log"), "never delivered\n").unwrap();
    let agent: Agent = bench.start();
    // The server is down, which keeps nobody waiting.
    manager.is_told("READY=1", "2 pipelines: app, host");
    assert!(get(&agent.admin(), "/readyz").contains("\"ready\":true"));

    config(&bench, &["app"]);
    agent.signal(Signal::HUP);
    manager.is_told("RELOADING=1", "");
    manager.is_told("READY=1", "1 pipeline: app");

    bench.config("pipelines: {app: {nonsense: 1}}\n");
    agent.signal(Signal::HUP);
    manager.is_told("RELOADING=1", "");
    manager.is_told("READY=1", "the last reload failed");
    agent.says("the config was not reloaded");

    agent.terminate();
    manager.is_told("STOPPING=1", "");
    manager.has_nothing_more();
}

#[test]
fn an_agent_whose_input_ends_says_so_and_one_that_cannot_start_is_never_ready() {
    let mut bench = Bench::new();
    let manager = Manager::of(&mut bench);
    bench.config("pipelines:\n  app:\n    input: {type: stdin}\n    output: {type: discard}\n");
    let mut agent = bench.start_with(Stdio::null());
    assert!(agent.end().success());
    manager.is_told("READY=1", "app");
    manager.is_told("STOPPING=1", "");

    bench.config("pipelines: {}\n");
    assert!(!bench.start().end().success());
    manager.has_nothing_more();
}

#[test]
fn a_socket_that_is_not_there_changes_nothing() {
    let mut bench = Bench::new();
    bench.set("NOTIFY_SOCKET", "/nonexistent/notify");
    bench.config("pipelines:\n  app:\n    input: {type: stdin}\n    output: {type: discard}\n");
    assert!(bench.start_with(Stdio::null()).end().success());
}
