//! The progress bar of a query, on the standard error: after a second, where it disturbs nothing.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use rustix::fs::{FileType, fstat};
use tailrace_query::{Notes, Progress};

/// A query that is faster has no bar.
const DELAY: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(100);

/// The bar. It is drawn by a thread of its own, since those of the query are busy, and is gone when this is dropped.
pub(super) struct Bar {
    /// Dropped to end the thread.
    running: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
    ends_with_first_row: bool,
}

impl Bar {
    /// A bar for a query that prints rows while it runs, or only at its end. There is none where a bar and rows would be
    /// mixed on a terminal.
    pub(super) fn start(notes: Arc<Notes>, prints_rows: bool) -> Bar {
        let is_shown = io::stderr().is_terminal() && !(prints_rows && io::stdout().is_terminal());
        let mut bar = Bar {
            running: None,
            thread: None,
            // Whoever reads a pipe may print on the same terminal.
            ends_with_first_row: prints_rows && !is_file(),
        };
        if is_shown {
            let (sender, running) = sync_channel(1);
            let thread = thread::Builder::new().name("progress".to_owned());
            // Without the thread the query runs as well.
            bar.thread = thread.spawn(move || draw(&notes, &running)).ok();
            bar.running = Some(sender);
        }
        bar
    }

    /// Rows are about to be printed.
    pub(super) fn before_rows(&mut self) {
        if self.ends_with_first_row {
            self.clear();
        }
    }

    /// Removes the bar from the terminal.
    pub(super) fn clear(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been reported.
            let _ = thread.join();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Whether the standard output is a file.
fn is_file() -> bool {
    fstat(io::stdout()).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::RegularFile)
}

/// Draws the bar until the query has ended.
fn draw(notes: &Notes, running: &Receiver<()>) {
    let started = Instant::now();
    if running.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let bar = ProgressBar::new_spinner();
    loop {
        let progress = notes.progress();
        let template = match progress.file_bytes_total {
            Some(total) => {
                bar.set_length(total);
                bar.set_position(progress.file_bytes.min(total));
                "{spinner} {bar:12} {percent:>3} % {wide_msg}"
            }
            None => "{spinner} {wide_msg}",
        };
        let style = ProgressStyle::with_template(template);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(text(&progress, started.elapsed()));
        bar.tick();
        if running.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
            return bar.finish_and_clear();
        }
    }
}

/// How far a query is after this time.
fn text(progress: &Progress, elapsed: Duration) -> String {
    let read = HumanBytes(progress.file_bytes);
    let read = match progress.file_bytes_total {
        Some(total) => format!("{read} of {}", HumanBytes(total)),
        None => format!("{read} read"),
    };
    let rate = progress.file_bytes as f64 / elapsed.as_secs_f64().max(0.001);
    let kept = match progress.kept {
        1 => "1 row".to_owned(),
        kept => format!("{} rows", HumanCount(kept)),
    };
    format!("{read}, {}/s, {kept} kept", HumanBytes(rate as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_bytes_a_rate_and_rows() {
        let progress = |file_bytes_total, kept| Progress {
            file_bytes: 3 << 29,
            file_bytes_total,
            kept,
        };
        let after = Duration::from_secs(2);
        assert_eq!(
            text(&progress(Some(3 << 30), 12_345), after),
            "1.50 GiB of 3.00 GiB, 768.00 MiB/s, 12,345 rows kept"
        );
        assert_eq!(
            text(&progress(None, 1), after),
            "1.50 GiB read, 768.00 MiB/s, 1 row kept"
        );
    }
}
