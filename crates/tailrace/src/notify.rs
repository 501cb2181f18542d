//! Notification of the service manager by the protocol of `sd_notify(3)`: datagrams to the socket that `$NOTIFY_SOCKET`
//! names. Without the variable nothing is sent.
//!
//! `READY=1` says that every pipeline reads. A server that is down and a file that may not be read delay nothing: the
//! service manager could only end the agent for them. Each reload is `RELOADING=1` and then `READY=1` again, also when the
//! config was refused, because the agent goes on with the one that it has. `STOPPING=1` is the last message.
//!
//! A message that cannot be sent is a debug line and changes nothing else. The agent starts no other program, so that the
//! variable reaches none.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{env, io};

use tracing::debug;

use crate::printed::shown;

const VARIABLE: &str = "NOTIFY_SOCKET";

/// How long a message waits for a service manager that reads nothing.
const SEND_TIME_MAX: Duration = Duration::from_secs(1);

/// The most characters of a status.
const STATUS_CHARS_MAX: usize = 200;

/// Sends messages to the service manager, if there is one. Clones send in turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notify(Option<Arc<Mutex<Manager>>>);

#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
    phase: Phase,
}

/// Reloads run on a thread of their own: one may begin before the first `READY=1`, and end after `STOPPING=1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Only `READY=1` is sent.
    Starting,
    Running,
    /// Nothing is sent.
    Stopping,
}

impl Notify {
    /// The service manager that the environment names.
    pub(crate) fn of_environment() -> Self {
        let named = env::var_os(VARIABLE).filter(|name| !name.is_empty());
        named.map_or_else(Self::default, |name| Self::to(&name))
    }

    /// The service manager that listens at a path, or at an abstract address, which begins with `@`.
    fn to(name: &OsStr) -> Self {
        match Manager::at(name) {
            Ok(manager) => Self(Some(Arc::new(Mutex::new(manager)))),
            Err(error) => {
                debug!(%error, "{VARIABLE} cannot be used: the service manager is not notified");
                Self::default()
            }
        }
    }

    /// The agent runs, with these pipelines.
    pub(crate) fn ready(&self, pipelines: &[String]) {
        if let Some(mut manager) = self.in_phase(|phase| phase != Phase::Stopping) {
            manager.phase = Phase::Running;
            manager.send("READY=1", &running(pipelines));
        }
    }

    /// A reload begins.
    pub(crate) fn reloading(&self) {
        if let Some(manager) = self.in_phase(|phase| phase == Phase::Running) {
            manager.send("RELOADING=1", "reloading the config");
        }
    }

    /// A reload failed. The agent continues, in all but rare cases with the config that it had.
    pub(crate) fn failed(&self, error: &str) {
        if let Some(manager) = self.in_phase(|phase| phase == Phase::Running) {
            let first = error.lines().next().unwrap_or_default();
            manager.send("READY=1", &format!("the last reload failed: {first}"));
        }
    }

    /// The agent ends. Only the first call sends something.
    pub(crate) fn stopping(&self) {
        if let Some(mut manager) = self.in_phase(|phase| phase != Phase::Stopping) {
            manager.phase = Phase::Stopping;
            manager.send("STOPPING=1", "delivering what was read");
        }
    }

    /// The service manager, if messages are sent in this phase.
    fn in_phase(&self, is_sent: impl Fn(Phase) -> bool) -> Option<MutexGuard<'_, Manager>> {
        let manager = self.0.as_ref()?.lock();
        let manager = manager.unwrap_or_else(PoisonError::into_inner);
        is_sent(manager.phase).then_some(manager)
    }
}

impl Manager {
    fn at(name: &OsStr) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            [b'/', ..] => SocketAddr::from_pathname(name)?,
            _ => {
                let what = "neither an absolute path nor an abstract address";
                return Err(io::Error::new(io::ErrorKind::Unsupported, what));
            }
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(SEND_TIME_MAX))?;
        Ok(Self {
            socket,
            address,
            phase: Phase::Starting,
        })
    }

    fn send(&self, state: &str, status: &str) {
        let message = format!("{state}\nSTATUS={}", cut(&shown(status)));
        let sent = self.socket.send_to_addr(message.as_bytes(), &self.address);
        if let Err(error) = sent {
            debug!(%error, state, "the service manager was not notified");
        }
    }
}

/// The status of an agent with these pipelines.
fn running(pipelines: &[String]) -> String {
    let noun = if pipelines.len() == 1 {
        "pipeline"
    } else {
        "pipelines"
    };
    format!("{} {noun}: {}", pipelines.len(), pipelines.join(", "))
}

/// The beginning of a text.
fn cut(text: &str) -> String {
    match text.char_indices().nth(STATUS_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Listening {
        socket: UnixDatagram,
        notify: Notify,
    }

    fn listening(name: &OsStr) -> Listening {
        let address = Manager::at(name).unwrap().address;
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        socket.set_nonblocking(true).unwrap();
        let notify = Notify::to(name);
        Listening { socket, notify }
    }

    impl Listening {
        /// A datagram is there when the call that sends it returns.
        fn received(&self) -> Vec<String> {
            let mut messages = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(len) = self.socket.recv(&mut buffer) {
                messages.push(String::from_utf8(buffer[..len].to_vec()).unwrap());
            }
            messages
        }
    }

    fn a_life(notify: &Notify) {
        // A signal during the start.
        notify.reloading();
        notify.failed("too early");
        notify.ready(&["app".to_owned(), "host".to_owned()]);
        notify.reloading();
        notify.failed("tailrace.yaml:3:5: no such option\n  hint");
        notify.stopping();
        notify.stopping();
        notify.ready(&["app".to_owned()]);
    }

    const LIFE: [&str; 4] = [
        "READY=1\nSTATUS=2 pipelines: app, host",
        "RELOADING=1\nSTATUS=reloading the config",
        "READY=1\nSTATUS=the last reload failed: tailrace.yaml:3:5: no such option",
        "STOPPING=1\nSTATUS=delivering what was read",
    ];

    #[test]
    fn sends_to_a_path_and_to_an_abstract_address_and_nothing_after_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let by_path = listening(path.as_os_str());
        a_life(&by_path.notify);
        assert_eq!(by_path.received(), LIFE);

        let name = format!("@tailrace-test-{}", std::process::id());
        let by_name = listening(OsStr::new(&name));
        a_life(&by_name.notify);
        assert_eq!(by_name.received(), LIFE);
    }

    #[test]
    fn a_status_is_one_short_line() {
        let dir = tempfile::tempdir().unwrap();
        let there = listening(dir.path().join("notify").as_os_str());
        there.notify.ready(&["a\nSTOPPING=1".to_owned()]);
        there.notify.failed("");
        there.notify.failed(&"ü\u{1b}".repeat(100_000));
        let received = there.received();
        assert_eq!(received.len(), 3);
        for message in &received {
            assert_eq!(message.lines().count(), 2, "{message:?}");
            assert!(!message.contains('\u{1b}'), "{message:?}");
            assert!(message.chars().count() < 240, "{message:?}");
        }
    }

    #[test]
    fn a_manager_that_is_not_there_harms_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let nobody = dir.path().join("nobody");
        let long = format!("/{}", "x".repeat(200));
        let names = [
            nobody.to_str().unwrap(),
            &long,
            "relative",
            "vsock:2:1",
            "@",
        ];
        for name in names {
            a_life(&Notify::to(OsStr::new(name)));
        }
    }

    #[test]
    fn a_manager_that_reads_nothing_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let there = listening(dir.path().join("notify").as_os_str());
        // Fills its queue.
        let address = Manager::at(dir.path().join("notify").as_os_str()).unwrap();
        address.socket.set_nonblocking(true).unwrap();
        while address.socket.send_to_addr(b"x", &address.address).is_ok() {}
        there.notify.ready(&[]);
        assert!(there.received().iter().all(|message| message == "x"));
    }
}
