//! Own logs to a file descriptor that nobody may be reading: a pipe that is full, a terminal that was stopped.
//!
//! Delivery does not wait for a reader of the logs. A line that would wait for long is left out, and counted: the next one that
//! can be written has a line before it that says so. Nothing here allocates or waits while all goes well, but for one `poll`.

use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// So much is written at a time. A pipe that can be written to has room for it (`PIPE_BUF` of Linux), if nobody else writes to it.
const PIECE_BYTES: usize = 4096;
/// How long a line waits for a reader that read the ones before.
const TIMEOUT: Duration = Duration::from_millis(200);

/// Writes to `out` what can be written.
#[derive(Debug)]
pub(super) struct Unwaited<F> {
    out: F,
    json: bool,
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Lines, since the last one that was written.
    left_out: u64,
    /// What was written last is the beginning of a line.
    is_in_line: bool,
}

impl<F: AsFd> Unwaited<F> {
    /// Of lines that are JSON objects or text.
    pub(super) fn new(out: F, json: bool) -> Unwaited<F> {
        Unwaited {
            out,
            json,
            timeout: TIMEOUT,
            state: Mutex::default(),
        }
    }

    /// Writes one line, or several, or leaves all of it out.
    pub(super) fn write_line(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let timeout = match state.left_out {
            0 => self.timeout,
            lines => {
                let note = self.note(lines, state.is_in_line);
                if !self.put(note.as_bytes(), Duration::ZERO, &mut state) {
                    state.left_out += 1;
                    return;
                }
                state.left_out = 0;
                Duration::ZERO
            }
        };
        if !self.put(line, timeout, &mut state) {
            state.left_out += 1;
        }
    }

    /// Whether all of it could be written. What fails otherwise than by waiting is as good as written: there is nobody to tell.
    fn put(&self, text: &[u8], timeout: Duration, state: &mut State) -> bool {
        let mut rest = text;
        while !rest.is_empty() && self.is_ready(timeout) {
            let piece = &rest[..rest.len().min(PIECE_BYTES)];
            match rustix::io::write(&self.out, piece) {
                Ok(count) => rest = &rest[count..],
                Err(Errno::INTR) => {}
                // Somebody else was faster.
                Err(Errno::AGAIN) => break,
                Err(_) => rest = &[],
            }
        }
        if rest.len() < text.len() {
            state.is_in_line = !rest.is_empty();
        }
        rest.is_empty()
    }

    /// Whether something can be written without waiting for longer.
    fn is_ready(&self, timeout: Duration) -> bool {
        let timeout = Timespec::try_from(timeout).ok();
        let mut out = [PollFd::new(&self.out, PollFlags::OUT)];
        loop {
            match poll(&mut out, timeout.as_ref()) {
                Ok(count) => return count > 0,
                Err(Errno::INTR) => {}
                // What cannot be polled cannot be waited for either.
                Err(_) => return true,
            }
        }
    }

    fn note(&self, lines: u64, is_in_line: bool) -> String {
        let message = "lines of the own log were left out, because nobody read it";
        let mut time = String::new();
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let end = if is_in_line { "\n" } else { "" };
        match self.json {
            true => format!(
                "{end}{{\"timestamp\":\"{time}\",\"level\":\"WARN\",\"message\":\"{message}\",\"lines\":{lines},\"target\":\"{TARGET}\"}}\n"
            ),
            false => format!("{end}{time}  WARN {TARGET}: {message} lines={lines}\n"),
        }
    }
}

/// A descriptor for standard error that never waits, where there can be one: a pipe or a terminal is opened once more, so that for
/// other processes that have it nothing changes.
///
/// # Errors
///
/// There is no descriptor left.
pub(super) fn stderr() -> io::Result<OwnedFd> {
    let stderr = io::stderr();
    let kind = rustix::fs::fstat(&stderr).map(|stat| FileType::from_raw_mode(stat.st_mode));
    if matches!(kind, Ok(FileType::Fifo | FileType::CharacterDevice)) {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        if let Ok(own) = rustix::fs::open("/proc/self/fd/2", flags, Mode::empty()) {
            return Ok(own);
        }
    }
    stderr.as_fd().try_clone_to_owned()
}

const TARGET: &str = "tailrace::logging";

impl<F: AsFd> Write for &Unwaited<F> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_line(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::sync::Arc;

    use super::*;

    fn pipe(json: bool) -> (io::PipeReader, Arc<Unwaited<io::PipeWriter>>) {
        let (read, write) = io::pipe().unwrap();
        let unwaited = Unwaited {
            timeout: Duration::ZERO,
            ..Unwaited::new(write, json)
        };
        (read, Arc::new(unwaited))
    }

    fn left_out(log: &Unwaited<io::PipeWriter>) -> u64 {
        log.state.lock().unwrap().left_out
    }

    #[test]
    fn what_nobody_reads_is_left_out_and_counted() {
        let (mut read, log) = pipe(true);
        let mut written = 0;
        while left_out(&log) < 3 {
            (&*log).write_all(b"{\"a line\":1}\n").unwrap();
            written += 1;
        }
        let kept = written - 3;
        let mut text = vec![0; kept * 13];
        read.read_exact(&mut text).unwrap();
        assert_eq!(text, b"{\"a line\":1}\n".repeat(kept));
        (&*log).write_all(b"{\"again\":1}\n").unwrap();
        drop(log);
        let lines: Vec<_> = BufReader::new(read).lines().map(Result::unwrap).collect();
        let note: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            (&note["lines"], &note["level"]),
            (&3.into(), &"WARN".into())
        );
        assert_eq!(lines[1..], [r#"{"again":1}"#]);
    }

    #[test]
    fn a_line_of_which_a_part_was_written_is_ended() {
        let (mut read, log) = pipe(false);
        let long = [b"x".repeat(1 << 20), b"\n".to_vec()].concat();
        (&*log).write_all(&long).unwrap();
        assert_eq!(left_out(&log), 1);
        let mut begun = vec![0; 1 << 14];
        read.read_exact(&mut begun).unwrap();
        (&*log).write_all(b"again\n").unwrap();
        drop(log);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        let lines: Vec<_> = text
            .lines()
            .skip_while(|line| line.starts_with('x'))
            .collect();
        assert!(lines[0].ends_with("nobody read it lines=1"), "{lines:?}");
        assert_eq!(lines[1..], ["again"]);
    }

    #[test]
    fn a_reader_that_is_gone_stops_nothing() {
        let (read, log) = pipe(false);
        drop(read);
        (&*log).write_all(b"line\n").unwrap();
        assert_eq!(left_out(&log), 0);
    }
}
