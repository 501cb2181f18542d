//! Lines to standard output, or to any writer. It never formats them.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use super::{WRITTEN, failed};
use crate::Payload;
use crate::outcome::Answered;

/// Writes payloads one after the other and flushes after each. A reader that went away is waited for, as
/// nothing may be skipped.
pub struct StdoutOutput {
    to: Arc<Mutex<dyn Write + Send>>,
}

impl StdoutOutput {
    /// To this process's standard output.
    pub fn new() -> StdoutOutput {
        StdoutOutput::to(std::io::stdout())
    }

    /// To another writer.
    pub fn to(writer: impl Write + Send + 'static) -> StdoutOutput {
        StdoutOutput {
            to: Arc::new(Mutex::new(writer)),
        }
    }
}

impl Default for StdoutOutput {
    fn default() -> StdoutOutput {
        StdoutOutput::new()
    }
}

impl StdoutOutput {
    /// Writes `payload` once.
    pub(crate) async fn attempt(&self, payload: &Payload) -> Answered {
        let (to, bytes) = (Arc::clone(&self.to), payload.bytes.clone());
        let written = tokio::task::spawn_blocking(move || {
            let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
            to.write_all(&bytes)?;
            to.flush()
        });
        let outcome = match written.await {
            Ok(Ok(())) => WRITTEN,
            Ok(Err(error)) => failed("standard output", &error),
            Err(stopped) => failed("standard output", &std::io::Error::other(stopped)),
        };
        outcome.into()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;

    use super::{StdoutOutput, WRITTEN};
    use crate::{Encoding, Outcome, Payload, RetryCause};

    /// Fails as it is told, then keeps what it is given.
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
    async fn a_closed_reader_is_tried_again_as_after_every_error() {
        let pipe = Pipe::default();
        let failures = [io::ErrorKind::StorageFull, io::ErrorKind::BrokenPipe];
        pipe.failures.lock().unwrap().extend(failures);
        let output = StdoutOutput::to(pipe.clone());
        let payload = Payload {
            bytes: Bytes::from_static(b"{\"a\":1}\n"),
            encoding: Encoding::Identity,
            records: 1,
            uncompressed_bytes: 8,
        };
        for _ in failures {
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
        assert_eq!(output.attempt(&payload).await.outcome, WRITTEN);
        assert_eq!(*pipe.written.lock().unwrap(), b"{\"a\":1}\n");
    }
}
