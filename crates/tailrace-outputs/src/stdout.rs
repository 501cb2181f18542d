//! Lines to standard output, or to any writer. It never formats them.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tailrace_otlp::{ConsoleEncoding, Encoding, NdjsonEncoding};
use tailrace_schema::section::Section;

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
        Ok(Opened::in_order(Writer::to(std::io::stdout())))
    }

    fn is_ordered(&self) -> bool {
        true
    }
}

/// Writes payloads one after the other and flushes after each. A reader that went away does not come back.
struct Writer {
    to: Arc<Mutex<dyn Write + Send>>,
}

impl Writer {
    fn to(writer: impl Write + Send + 'static) -> Writer {
        Writer {
            to: Arc::new(Mutex::new(writer)),
        }
    }
}

impl Transport for Writer {
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a> {
        let (to, bytes) = (Arc::clone(&self.to), payload.bytes.clone());
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || {
                let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                to.write_all(&bytes)?;
                to.flush()
            });
            let outcome = match written.await {
                Ok(Ok(())) => WRITTEN,
                Ok(Err(error)) if error.kind() == ErrorKind::BrokenPipe => Outcome::Closed {
                    reason: "nobody reads the standard output any more".to_owned(),
                },
                Ok(Err(error)) => failed("standard output", &error),
                Err(stopped) => failed("standard output", &std::io::Error::other(stopped)),
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

    use super::{WRITTEN, Writer};
    use crate::delivery::{Outcome, Payload, RetryCause, Transport};

    /// Fails as scripted, then keeps what is written to it.
    #[derive(Clone, Default)]
    struct Pipe {
        failures: Arc<Mutex<Vec<io::ErrorKind>>>,
        written: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Pipe {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(kind) = self.failures.lock().unwrap().pop() {
                return Err(kind.into());
            }
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
        let output = Writer::to(pipe.clone());
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
}
