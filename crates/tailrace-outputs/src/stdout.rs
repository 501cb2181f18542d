//! Lines to standard output, or to any writer. It never formats them.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;
use tailrace_otlp::{ConsoleEncoding, Encoding, NdjsonEncoding};
use tailrace_schema::section::Section;
use tracing::warn;

use crate::delivery::{Attempt, CompressionSearch, Outcome, Payload, RetryPolicy, Transport};
use crate::local::{POLICY, UNCOMPRESSED, WRITTEN, failed};
use crate::{Error, Opened, Output, OutputType};

pub(crate) const TYPE: OutputType = OutputType {
    name: "stdout",
    info: &<StdoutOutput as Section>::INFO,
    example: "type: stdout\nformat: console\n",
    read: |node, reader, common| {
        let output: StdoutOutput = reader.section(node, common)?;
        Some(Arc::new(output))
    },
};

section! {
    /// Writes records to the standard output. When nobody reads it any more, as after `| head`, the agent delivers to its
    /// other outputs what it has read, and ends: with exit code 3, because the next start continues.
    pub struct StdoutOutput {
        /// How records look.
        format: StdoutFormat = StdoutFormat, default("json");
    }
}

choice! {
    /// How records look on the standard output.
    pub enum StdoutFormat {
        /// One JSON object per line.
        Json = "json",
        /// For people: time, severity and body first, coloured on a terminal.
        Console = "console",
    }
}

impl Output for StdoutOutput {
    fn type_name(&self) -> &'static str {
        TYPE.name
    }

    fn encoding(&self) -> Arc<dyn Encoding> {
        match self.format {
            StdoutFormat::Json => Arc::new(NdjsonEncoding::default()),
            StdoutFormat::Console => Arc::new(ConsoleEncoding {
                colour: std::io::stdout().is_terminal(),
                ..ConsoleEncoding::default()
            }),
        }
    }

    fn open(&self) -> Result<Opened, Error> {
        if is_closed() {
            warn!("the standard output is closed or goes nowhere: what is written there is gone");
        }
        Ok(Opened::in_order(Writer::stdout()))
    }

    fn is_ordered(&self) -> bool {
        true
    }
}

/// The standard output without a buffer, so that it is known what was written when a write fails.
struct Unbuffered;

impl Write for Unbuffered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let stdout = io::stdout();
        loop {
            match rustix::io::write(stdout.as_fd(), bytes) {
                // The other end may have said that nobody waits on this pipe.
                Err(Errno::AGAIN) => {
                    rustix::event::poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], None)?;
                }
                written => return Ok(written?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether the process was started without a standard output, in whose place Rust's runtime opens /dev/null for reading and writing. A
/// shell that is told to discard opens it for writing alone.
fn is_closed() -> bool {
    let stdout = io::stdout();
    let is_null = || {
        let (found, null) = (rustix::fs::fstat(&stdout)?, rustix::fs::stat("/dev/null")?);
        let flags = rustix::fs::fcntl_getfl(&stdout)?;
        rustix::io::Result::Ok(found.st_rdev == null.st_rdev && flags.contains(OFlags::RDWR))
    };
    is_null().unwrap_or(false)
}

/// The lines of the process: all outputs write them in turn, those of an agent before a reload, too.
static LINES: OnceLock<Arc<Mutex<Lines<Unbuffered>>>> = OnceLock::new();

/// Whether the standard output is a file whose last line has no end: an agent before this one was stopped while the disk was full.
fn begins_in_a_line() -> bool {
    // Opening something else could have an effect.
    let stat = rustix::fs::fstat(io::stdout());
    let is_file = stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    is_file && ends_in_a_line(Path::new("/proc/self/fd/1"))
}

/// Whether the last line of a file has no end.
fn ends_in_a_line(path: &Path) -> bool {
    let last = || {
        let file = File::open(path).ok()?;
        let mut last = [0];
        let end = file.metadata().ok()?.len();
        file.read_exact_at(&mut last, end.checked_sub(1)?).ok()?;
        Some(last)
    };
    last().is_some_and(|last| last != *b"\n")
}

/// Writes payloads one after the other. A reader that went away does not come back.
struct Writer<W> {
    lines: Arc<Mutex<Lines<W>>>,
}

impl Writer<Unbuffered> {
    fn stdout() -> Self {
        let lines = LINES.get_or_init(|| {
            let lines = Lines::to(Unbuffered, begins_in_a_line());
            Arc::new(Mutex::new(lines))
        });
        Writer {
            lines: Arc::clone(lines),
        }
    }
}

/// Whole lines, also after a write that failed in the middle of one, as on a full disk.
struct Lines<W> {
    to: W,
    /// What was written of a payload that was not written to its end.
    begun: Bytes,
}

impl<W: Write> Lines<W> {
    /// `begins_in_a_line`: what is there ends within a line that is not this writer's, so that its first payload begins on another one.
    fn to(to: W, begins_in_a_line: bool) -> Lines<W> {
        // No payload begins so.
        let begun: &[u8] = if begins_in_a_line { b"\0" } else { b"" };
        let begun = Bytes::from_static(begun);
        Lines { to, begun }
    }

    /// Writes a payload, or goes on with it.
    fn write(&mut self, payload: &Bytes) -> io::Result<()> {
        if !payload.starts_with(&self.begun) {
            // Another one: it begins on a line of its own.
            let end = Bytes::from_static(b"\n");
            while self.begun.last().is_some_and(|last| *last != b'\n') {
                if self.write_some(&end)? == end.len() {
                    self.begun = end.clone();
                }
            }
            self.begun.clear();
        }
        let mut written = self.begun.len();
        while written < payload.len() {
            written += self.write_some(&payload[written..])?;
            self.begun = payload.slice(..written);
        }
        self.begun.clear();
        self.to.flush()
    }

    fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.to.write(bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }
}

impl<W: Write + Send + 'static> Transport for Writer<W> {
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a> {
        let (lines, bytes) = (Arc::clone(&self.lines), payload.bytes.clone());
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || {
                let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
                lines.write(&bytes)
            });
            let outcome = match written.await {
                Ok(Ok(())) => WRITTEN,
                Ok(Err(error)) if error.kind() == ErrorKind::BrokenPipe => Outcome::Closed {
                    reason: "nobody reads the standard output any more".to_owned(),
                },
                Ok(Err(error)) => failed("standard output", &error),
                Err(stopped) => failed("standard output", &io::Error::other(stopped)),
            };
            outcome.into()
        })
    }

    fn compression(&self) -> &CompressionSearch {
        &UNCOMPRESSED
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &POLICY
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;

    use tailrace_otlp::Compression;

    use super::{Lines, WRITTEN, Writer, ends_in_a_line};
    use crate::delivery::{Outcome, Payload, RetryCause, Transport};

    /// Fails as scripted, then keeps what is written to it; at most `room` bytes at once.
    #[derive(Clone)]
    struct Pipe {
        failures: Arc<Mutex<Vec<io::ErrorKind>>>,
        written: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Default for Pipe {
        fn default() -> Pipe {
            Pipe {
                failures: Arc::default(),
                written: Arc::default(),
                room: usize::MAX,
            }
        }
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(kind) = self.failures.lock().unwrap().pop() {
                return Err(kind.into());
            }
            let bytes = &bytes[..bytes.len().min(self.room)];
            self.written.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_failed_write_is_repeated_and_a_closed_reader_reported() {
        let pipe = Pipe::default();
        let failures = [
            io::ErrorKind::BrokenPipe,
            io::ErrorKind::StorageFull,
            io::ErrorKind::Other,
        ];
        pipe.failures.lock().unwrap().extend(failures);
        let output = Writer {
            lines: Arc::new(Mutex::new(Lines::to(pipe.clone(), false))),
        };
        let payload = Payload {
            bytes: Bytes::from_static(b"{\"a\":1}\n"),
            compression: Compression::None,
            records: 1,
            uncompressed_bytes: 8,
        };
        for _ in 0..2 {
            match output.attempt(&payload).await.outcome {
                Outcome::Retry { cause, reason, .. } => {
                    assert_eq!(cause, RetryCause::Write);
                    assert!(
                        reason.starts_with("cannot write to standard output"),
                        "{reason}"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        let closed = output.attempt(&payload).await.outcome;
        assert!(matches!(closed, Outcome::Closed { .. }), "{closed:?}");
        assert_eq!(output.attempt(&payload).await.outcome, WRITTEN);
        assert_eq!(*pipe.written.lock().unwrap(), b"{\"a\":1}\n");
    }

    #[test]
    fn a_write_that_fails_in_a_line_tears_none() {
        let (first, other) = (
            Bytes::from_static(b"{\"a\":1}\n"),
            Bytes::from_static(b"{\"b\":2}\n"),
        );
        let pipe = Pipe {
            room: 3,
            ..Pipe::default()
        };
        let mut lines = Lines::to(pipe.clone(), false);
        let fail = || {
            pipe.failures
                .lock()
                .unwrap()
                .push(io::ErrorKind::StorageFull)
        };
        // Three bytes pass, then the disk is full.
        let failing = |lines: &mut Lines<Pipe>, payload: &Bytes| {
            let room = lines.to.room;
            lines.write_some(&payload[..room]).unwrap();
            lines.begun = payload.slice(..room);
            fail();
            lines.write(payload).unwrap_err();
        };
        failing(&mut lines, &first);
        lines.write(&first).unwrap();
        assert_eq!(
            *pipe.written.lock().unwrap(),
            *first,
            "it goes on where it failed"
        );
        pipe.written.lock().unwrap().clear();
        failing(&mut lines, &first);
        lines.write(&other).unwrap();
        assert_eq!(*pipe.written.lock().unwrap(), b"{\"a\n{\"b\":2}\n");
    }

    #[test]
    fn what_an_earlier_agent_left_of_a_line_stays_a_line_of_its_own() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (text, is_torn) in [("", false), ("{}\n", false), ("{}\n{\"a", true)] {
            std::fs::write(file.path(), text).unwrap();
            assert_eq!(ends_in_a_line(file.path()), is_torn, "{text:?}");
        }
        let pipe = Pipe::default();
        let mut lines = Lines::to(pipe.clone(), true);
        for _ in 0..2 {
            lines.write(&Bytes::from_static(b"{}\n")).unwrap();
        }
        assert_eq!(*pipe.written.lock().unwrap(), b"\n{}\n{}\n");
    }
}
