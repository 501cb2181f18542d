//! Starts that ended without progress, counted on disk, and the safe mode that a series of them leads to.
//!
//! *Counting.* `DATA_DIR/starts` holds how many starts in a row have shown no progress, the present one included. It is
//! written before anything is loaded, and removed once a checkpoint with progress is on disk, or the agent ends by
//! itself. So it counts deaths that nobody could report, whatever their cause: out of memory, an abort, `kill -9`.
//!
//! *Safe mode.* After [`DEATHS_MAX`] of them the agent needs as little as it can: one worker, batches of
//! [`BATCH_BYTES_MAX`], half of what may be in flight. After some time with progress it leaves safe mode, without a
//! restart; another death without progress after that leads back at once. Each relapse doubles the time.
//!
//! Takes the data directory, news of progress and the time. Never decides what progress is, and starts no thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tracing::{info, warn};

use crate::agent::Sizes;

/// After so many starts without progress the next one is in safe mode.
const DEATHS_MAX: u32 = 3;
/// Bytes of records in a batch, at most: no config may ask for less.
const BATCH_BYTES_MAX: usize = 64 * 1024;
/// How long safe mode lasts at least, and how long the agent then runs as usual until the deaths are forgotten.
const STAY: Duration = Duration::from_secs(10);
/// Neither is longer.
const STAY_MAX: Duration = Duration::from_secs(3600);
const NAME: &str = "starts";

/// Whether the agent is in safe mode, and the deaths that led to it.
#[derive(Debug)]
pub(crate) struct SafeMode {
    path: PathBuf,
    deaths: u32,
    is_active: AtomicBool,
    stage: Mutex<Stage>,
    /// Told when safe mode is left.
    left: Notify,
}

/// What is still to be shown.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Any progress.
    Starting,
    /// Progress in safe mode at this moment or later.
    Safe(Instant),
    /// Progress without safe mode at this moment or later.
    OnTrial(Instant),
    /// Nothing: the deaths are forgotten.
    Proven,
}

impl SafeMode {
    /// Counts a start. Where the directory cannot be written nothing is counted.
    pub(crate) fn begin(data_dir: &Path, now: Instant) -> Self {
        let path = data_dir.join(NAME);
        let deaths = tailrace_files::read(&path)
            .ok()
            .and_then(|bytes| std::str::from_utf8(&bytes).ok()?.trim().parse().ok())
            .unwrap_or(0);
        let is_active = deaths >= DEATHS_MAX;
        if is_active {
            warn!(
                deaths,
                "safe mode: the last starts ended without progress; one worker, small batches and half the memory, \
                 until there is some"
            );
        }
        let started = tailrace_files::create(&path).and_then(|mut file| {
            use std::io::Write;
            writeln!(file, "{}", u32::saturating_add(deaths, 1))
        });
        if let Err(error) = started {
            warn!(path = %path.display(), %error, "starts cannot be counted: safe mode will not be entered");
        }
        Self {
            path,
            deaths,
            is_active: AtomicBool::new(is_active),
            stage: Mutex::new(match is_active {
                true => Stage::Safe(now + stay(deaths)),
                false => Stage::Starting,
            }),
            left: Notify::new(),
        }
    }

    /// Whether the agent is in safe mode now.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// How many starts in a row ended without progress, if the agent is in safe mode.
    pub(crate) fn deaths(&self) -> Option<u32> {
        self.is_active().then_some(self.deaths)
    }

    /// What the machine affords now.
    pub(crate) fn sizes(&self, sizes: Sizes) -> Sizes {
        match self.is_active() {
            true => reduced(sizes),
            false => sizes,
        }
    }

    /// Bytes of records in a batch now, of those that the config allows.
    pub(crate) fn batch_bytes_max(&self, configured: usize) -> usize {
        match self.is_active() {
            true => configured.min(BATCH_BYTES_MAX),
            false => configured,
        }
    }

    /// Ready when safe mode is left.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }

    /// A checkpoint that settles more than the one before it is on disk.
    pub(crate) fn progressed(&self, now: Instant) {
        let mut stage = self.stage();
        match *stage {
            Stage::Safe(until) if now >= until => {
                self.is_active.store(false, Ordering::Relaxed);
                *stage = Stage::OnTrial(now + stay(self.deaths));
                self.left.notify_one();
                info!("safe mode has ended: there is progress");
            }
            Stage::OnTrial(until) if now >= until => self.forget(&mut stage),
            Stage::Starting => self.forget(&mut stage),
            Stage::Safe(_) | Stage::OnTrial(_) | Stage::Proven => {}
        }
    }

    /// The agent ends by itself, or refuses to start: that is no death.
    pub(crate) fn ended(&self) {
        self.forget(&mut self.stage());
    }

    fn forget(&self, stage: &mut Stage) {
        *stage = Stage::Proven;
        // On a disk that cannot be written it stays, and counts too much.
        let _ = std::fs::remove_file(&self.path);
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an agent needs at least, of what the machine affords.
fn reduced(sizes: Sizes) -> Sizes {
    Sizes {
        workers: 1,
        queue_bytes: sizes.queue_bytes / 2,
    }
}

/// How long safe mode lasts after so many deaths.
fn stay(deaths: u32) -> Duration {
    let relapses = deaths.saturating_sub(DEATHS_MAX);
    let factor = 1_u32.checked_shl(relapses).unwrap_or(u32::MAX);
    STAY.saturating_mul(factor).min(STAY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        dir: tempfile::TempDir,
        now: Instant,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                dir: tempfile::tempdir().unwrap(),
                now: Instant::now(),
            }
        }

        fn start(&self) -> SafeMode {
            SafeMode::begin(self.dir.path(), self.now)
        }

        fn count(&self) -> Option<u32> {
            let text = std::fs::read_to_string(self.dir.path().join(NAME)).ok()?;
            Some(text.trim().parse().unwrap())
        }

        fn wait(&mut self, time: Duration) {
            self.now += time;
        }
    }

    const SIZES: Sizes = Sizes {
        workers: 4,
        queue_bytes: 16 << 20,
    };

    #[test]
    fn the_fourth_start_after_three_deaths_needs_little() {
        let bench = Bench::new();
        for _ in 0..3 {
            let start = bench.start();
            assert!(!start.is_active() && start.deaths().is_none());
            assert_eq!(start.sizes(SIZES).workers, 4);
            assert_eq!(start.batch_bytes_max(1 << 20), 1 << 20);
        }
        let start = bench.start();
        assert_eq!(start.deaths(), Some(3));
        let sizes = start.sizes(SIZES);
        assert_eq!((sizes.workers, sizes.queue_bytes), (1, 8 << 20));
        assert_eq!(start.batch_bytes_max(1 << 20), 64 << 10);
        assert_eq!(start.batch_bytes_max(1 << 10), 1 << 10);
    }

    #[test]
    fn progress_or_an_end_makes_up_for_deaths() {
        let bench = Bench::new();
        for ends in [SafeMode::ended, |start: &SafeMode| {
            start.progressed(Instant::now())
        }] {
            for _ in 0..3 {
                bench.start();
                bench.start();
                assert_eq!(bench.count(), Some(2));
                ends(&bench.start());
                assert_eq!(bench.count(), None);
            }
        }
        // It ends in safe mode, too.
        (0..3).for_each(|_| drop(bench.start()));
        let start = bench.start();
        assert!(start.is_active());
        start.ended();
        assert!(!bench.start().is_active());
    }

    #[test]
    fn safe_mode_is_left_after_a_while_with_progress_and_a_relapse_lasts_longer() {
        let mut bench = Bench::new();
        (0..3).for_each(|_| drop(bench.start()));
        for relapses in 0..3 {
            let start = bench.start();
            let stay = STAY * 2_u32.pow(relapses);
            assert!(start.is_active(), "one death is enough now");
            start.progressed(bench.now);
            bench.wait(stay - Duration::from_nanos(1));
            start.progressed(bench.now);
            assert!(start.is_active());
            bench.wait(Duration::from_nanos(1));
            assert!(start.is_active(), "time alone does not end it");
            start.progressed(bench.now);
            assert!(!start.is_active());
            start.progressed(bench.now);
            assert!(bench.count().is_some(), "not forgotten yet");
        }
        let start = bench.start();
        bench.wait(STAY * 8);
        start.progressed(bench.now);
        bench.wait(STAY * 8);
        start.progressed(bench.now);
        assert_eq!(bench.count(), None);
        assert!(!bench.start().is_active());
        assert_eq!(stay(u32::MAX), STAY_MAX);
    }

    #[test]
    fn a_count_that_is_no_number_counts_as_none() {
        let bench = Bench::new();
        for text in [&b""[..], b"x", b"-1", b"99999999999", b"\xff"] {
            std::fs::write(bench.dir.path().join(NAME), text).unwrap();
            assert!(!bench.start().is_active());
            assert_eq!(bench.count(), Some(1));
        }
        std::fs::write(bench.dir.path().join(NAME), u32::MAX.to_string()).unwrap();
        assert!(bench.start().is_active());
        assert_eq!(bench.count(), Some(u32::MAX));
        let nowhere = SafeMode::begin(&bench.dir.path().join("none"), bench.now);
        assert!(!nowhere.is_active());
        nowhere.progressed(bench.now);
    }
}
