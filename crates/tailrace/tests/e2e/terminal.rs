//! A pseudo-terminal, with a command at its other end.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use nix::pty::{Winsize, openpty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Nothing here takes longer on a machine that is not broken.
const TIMEOUT: Timespec = Timespec {
    tv_sec: 180,
    tv_nsec: 0,
};

/// The end of a terminal at which a person sits.
pub(crate) struct Terminal {
    master: File,
    /// What was printed and not yet waited for.
    unseen: String,
}

impl Terminal {
    /// A terminal of 80 columns, and its other end.
    pub(crate) fn open() -> (Terminal, OwnedFd) {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let ends = openpty(&size, None).unwrap();
        let terminal = Terminal {
            master: ends.master.into(),
            unseen: String::new(),
        };
        (terminal, ends.slave)
    }

    /// Starts a command whose standard input, output and error are the terminal.
    pub(crate) fn start(command: &mut Command) -> (Terminal, Child) {
        let (terminal, other) = Terminal::open();
        let side = || Stdio::from(other.try_clone().unwrap());
        command.stdin(side()).stdout(side()).stderr(side());
        let child = command.env("TERM", "xterm").spawn().unwrap();
        // The command would keep its end open in this process.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null());
        (terminal, child)
    }

    /// Types.
    pub(crate) fn write(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is printed; gives what came up to its end.
    pub(crate) fn until(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.unseen.find(text) {
                let rest = self.unseen.split_off(at + text.len());
                return std::mem::replace(&mut self.unseen, rest);
            }
            let is_open = self.read();
            assert!(is_open, "{text:?} was not printed: {:?}", self.unseen);
        }
    }

    /// What is printed until nobody has the other end.
    pub(crate) fn rest(mut self) -> String {
        while self.read() {}
        self.unseen
    }

    /// Reads what there is; false at the end.
    fn read(&mut self) -> bool {
        let mut fds = [PollFd::new(&self.master, PollFlags::IN)];
        let ready = poll(&mut fds, Some(&TIMEOUT)).unwrap();
        assert!(ready > 0, "nothing more was printed: {:?}", self.unseen);
        let mut bytes = [0; 4096];
        // An error is what a terminal gives when its other end is closed.
        let count = self.master.read(&mut bytes).unwrap_or(0);
        self.unseen += &String::from_utf8_lossy(&bytes[..count]);
        count > 0
    }
}
