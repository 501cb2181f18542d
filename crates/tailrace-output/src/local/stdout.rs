//! Lines to standard output, or to any writer. It never formats them.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use super::{PATIENCE, WRITTEN, failed};
use crate::deliver::{Attempt, deliver};
use crate::outcome::Answered;
use crate::search::Search;
use crate::{Delivered, Encoding, Observer, Payload, Recode};

/// Writes payloads one after the other and flushes after each. A reader that went away is held, as
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

    /// Writes until all is written.
    pub async fn deliver(
        &self,
        payload: Payload,
        recode: &Recode<'_>,
        observer: &dyn Observer,
    ) -> Delivered {
        let search = Search::fixed(Encoding::Identity);
        deliver(self, &search, &PATIENCE, payload, recode, observer).await
    }
}

impl Default for StdoutOutput {
    fn default() -> StdoutOutput {
        StdoutOutput::new()
    }
}

impl Attempt for StdoutOutput {
    async fn attempt(&self, payload: &Payload) -> Answered {
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

    use super::StdoutOutput;
    use crate::{Encoding, Observer, Payload};

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

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Observer for Heard {
        fn retrying(&self, cause: crate::RetryCause, reason: &str, _: std::time::Duration) {
            let text = format!("retry {}: {reason}", cause.as_str());
            self.0.lock().unwrap().push(text);
        }

        fn holding(&self, reason: &str, _: std::time::Duration) {
            self.0.lock().unwrap().push(format!("hold: {reason}"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_reader_is_held_and_other_errors_are_retried() {
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
        let heard = Heard::default();
        let delivered = output
            .deliver(payload, &|payload, _| payload.clone(), &heard)
            .await;
        assert_eq!(delivered.attempts, 3);
        assert_eq!(*pipe.written.lock().unwrap(), b"{\"a\":1}\n");
        let heard = heard.0.lock().unwrap();
        assert!(
            heard[0].starts_with("hold: cannot write to standard output"),
            "{heard:?}"
        );
        assert!(
            heard[1].starts_with("retry write: cannot write to"),
            "{heard:?}"
        );
    }
}
