//! Starts that ended soon or without progress, counted on disk, and the safe mode that a series of them leads to.
//!
//! *Counting.* `DATA_DIR/starts` holds two numbers, the present start included: how many starts in a row have shown no
//! progress, and how many have not shown that they last, with or without progress. It is
//! written before anything is loaded. The first progress in a checkpoint on disk sets the first number to 0; the file is removed
//! when the process has made progress and is [`LASTING`] old, or ends by
//! itself. So it counts deaths that nobody could report, whatever their cause: out of memory, an abort, `kill -9`. And one
//! pipeline that makes a little progress before each death does not hide that another one is the cause of all of them.
//!
//! *Safe mode.* After [`DEATHS_MAX`] deaths without progress, or [`SOON_MAX`] soon after the start, the agent needs as little
//! as it can: one worker, batches of
//! [`BATCH_BYTES_MAX`], half of what may be in flight. After some time with progress it leaves safe mode, without a
//! restart; another death soon after that leads back at once. Each relapse doubles the time.
//!
//! Takes the data directory, news of progress and the time. Never decides what progress is, and starts no thread.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tracing::{info, warn};

use crate::sizes::Sizes;

/// After so many starts without progress the next one is in safe mode.
const DEATHS_MAX: u32 = 3;
/// After so many starts that did not last, it is as well, whatever progress they made: more, since whoever kills an agent
/// in mid-stream a few times wants it to go on as before.
const SOON_MAX: u32 = 5;
/// A process that has lived so long and made progress has shown that it lasts.
const LASTING: Duration = Duration::from_secs(60);
/// Bytes of records in a batch, at most: no config may ask for less.
const BATCH_BYTES_MAX: usize = 64 * 1024;
/// How long safe mode lasts at least. As long, and no shorter than [`LASTING`], the agent then runs as usual until the deaths
/// are forgotten.
const STAY: Duration = Duration::from_secs(10);
/// Neither is longer.
const STAY_MAX: Duration = Duration::from_secs(3600);
const NAME: &str = "starts";

/// Whether the agent is in safe mode, and the deaths that led to it.
#[derive(Debug)]
pub(crate) struct SafeMode {
    path: PathBuf,
    /// Before this start.
    deaths: Deaths,
    is_active: AtomicBool,
    stage: Mutex<Stage>,
    /// When the process has shown that it lasts, if there is progress.
    lasts_at: Instant,
    /// Notified when safe mode is left.
    left: Notify,
}

/// Starts in a row that ended by a death.
#[derive(Clone, Copy, Debug, Default)]
struct Deaths {
    /// Without progress.
    idle: u32,
    /// Before they had shown that they last.
    soon: u32,
}

/// What is still to be shown.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Any progress, and that the process lasts.
    Starting,
    /// That it lasts.
    Progressed,
    /// Any progress.
    Lasting,
    /// Progress in safe mode at this moment or later.
    Safe(Instant),
    /// Progress without safe mode at this moment or later.
    OnTrial(Instant),
    /// Nothing: the deaths are forgotten.
    Proven,
}

impl Deaths {
    /// Of a file as [`Self::write`] makes it, or with one number, as earlier builds did.
    fn read(path: &Path) -> Self {
        let bytes = tailrace_files::read(path).unwrap_or_default();
        let text = std::str::from_utf8(&bytes).unwrap_or_default();
        let numbers: Result<Vec<u32>, _> = text.split_whitespace().map(str::parse).collect();
        match numbers.as_deref() {
            Ok(&[idle]) => Self { idle, soon: idle },
            Ok(&[idle, soon]) => Self { idle, soon },
            _ => Self::default(),
        }
    }

    fn write(self, path: &Path) -> std::io::Result<()> {
        use std::io::Write;
        let mut file = tailrace_files::create(path)?;
        writeln!(file, "{} {}", self.idle, self.soon)
    }

    fn and_one(self) -> Self {
        Self {
            idle: self.idle.saturating_add(1),
            soon: self.soon.saturating_add(1),
        }
    }

    /// How often safe mode did not help; `None` if there is no reason for it.
    fn relapses(self) -> Option<u32> {
        let idle = self.idle.checked_sub(DEATHS_MAX);
        idle.max(self.soon.checked_sub(SOON_MAX))
    }
}

impl SafeMode {
    /// Counts a start. Where the directory cannot be written nothing is counted.
    pub(crate) fn begin(data_dir: &Path, now: Instant) -> Self {
        let path = data_dir.join(NAME);
        let deaths = Deaths::read(&path);
        let relapses = deaths.relapses();
        if relapses.is_some() {
            warn!(
                deaths = deaths.idle.max(deaths.soon),
                "safe mode: the last starts ended without progress or soon; one worker, small batches and half the \
                 memory, until there is some for a while"
            );
        }
        if let Err(error) = deaths.and_one().write(&path) {
            warn!(path = %path.display(), %error, "starts cannot be counted: safe mode will not be entered");
        }
        Self {
            path,
            deaths,
            is_active: AtomicBool::new(relapses.is_some()),
            stage: Mutex::new(match relapses {
                Some(relapses) => Stage::Safe(now + stay(relapses)),
                None => Stage::Starting,
            }),
            lasts_at: now + LASTING,
            left: Notify::new(),
        }
    }

    /// Whether the agent is in safe mode now.
    pub(crate) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// How many starts in a row ended soon or without progress, if the agent is in safe mode.
    pub(crate) fn deaths(&self) -> Option<u32> {
        let deaths = self.deaths.idle.max(self.deaths.soon);
        self.is_active().then_some(deaths)
    }

    /// What the machine affords now.
    pub(crate) fn sizes(&self, sizes: Sizes) -> Sizes {
        if self.is_active() {
            reduced(sizes)
        } else {
            sizes
        }
    }

    /// Bytes of records in a batch now, of those that the config allows.
    pub(crate) fn batch_bytes_max(&self, configured: usize) -> usize {
        if self.is_active() {
            configured.min(BATCH_BYTES_MAX)
        } else {
            configured
        }
    }

    /// Ready when safe mode is left.
    pub(crate) async fn left(&self) {
        self.left.notified().await;
    }

    /// The process lives at this moment: looked at again and again, and after [`Self::progressed`].
    pub(crate) fn lives(&self, now: Instant) {
        if now < self.lasts_at {
            return;
        }
        let mut stage = self.stage();
        match *stage {
            Stage::Progressed => self.forget(&mut stage),
            Stage::Starting => {
                *stage = Stage::Lasting;
                let soon = 0;
                self.note(Deaths {
                    soon,
                    ..self.deaths.and_one()
                });
            }
            Stage::Lasting | Stage::Safe(_) | Stage::OnTrial(_) | Stage::Proven => {}
        }
    }

    /// A checkpoint that acknowledges more than the one before it is on disk.
    pub(crate) fn progressed(&self, now: Instant) {
        let mut stage = self.stage();
        match *stage {
            Stage::Safe(until) if now >= until => {
                self.is_active.store(false, Ordering::Relaxed);
                let stay = stay(self.deaths.relapses().unwrap_or_default());
                *stage = Stage::OnTrial(now + stay.max(LASTING));
                self.left.notify_one();
                info!("safe mode has ended: there is progress");
            }
            Stage::OnTrial(until) if now >= until => self.forget(&mut stage),
            Stage::Lasting => self.forget(&mut stage),
            Stage::Starting => {
                *stage = Stage::Progressed;
                let idle = 0;
                self.note(Deaths {
                    idle,
                    ..self.deaths.and_one()
                });
            }
            Stage::Progressed | Stage::Safe(_) | Stage::OnTrial(_) | Stage::Proven => {}
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

    /// What is counted if the process dies now.
    fn note(&self, deaths: Deaths) {
        // On a disk that cannot be written the count stays, and is too high.
        let _ = deaths.write(&self.path);
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

/// How long safe mode lasts after so many relapses.
fn stay(relapses: u32) -> Duration {
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

        /// Without progress, and soon.
        fn count(&self) -> Option<(u32, u32)> {
            let text = std::fs::read_to_string(self.dir.path().join(NAME)).ok()?;
            let (idle, soon) = text.trim().split_once(' ').unwrap();
            Some((idle.parse().unwrap(), soon.parse().unwrap()))
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
    fn lasting_progress_or_an_end_makes_up_for_deaths() {
        let mut bench = Bench::new();
        for ends in [true, false] {
            for _ in 0..3 {
                bench.start();
                bench.start();
                assert_eq!(bench.count(), Some((2, 2)));
                let start = bench.start();
                if ends {
                    start.ended()
                } else {
                    start.progressed(bench.now);
                    assert_eq!(bench.count(), Some((0, 3)));
                    bench.wait(LASTING);
                    start.lives(bench.now);
                }
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
    fn a_neighbour_that_progresses_before_each_death_hides_none() {
        let mut bench = Bench::new();
        for deaths in 1..=SOON_MAX {
            let start = bench.start();
            assert!(!start.is_active());
            start.progressed(bench.now);
            bench.wait(LASTING - Duration::from_nanos(1));
            start.lives(bench.now);
            start.progressed(bench.now);
            assert_eq!(bench.count(), Some((0, deaths)));
        }
        let start = bench.start();
        assert_eq!(start.deaths(), Some(SOON_MAX));
        // It is left with progress, and one more death within a minute leads back to it.
        bench.wait(STAY);
        start.progressed(bench.now);
        assert!(!start.is_active());
        bench.wait(LASTING - Duration::from_nanos(1));
        start.progressed(bench.now);
        assert!(bench.start().is_active());
    }

    #[test]
    fn whoever_lives_long_without_anything_to_do_did_not_die_soon() {
        let mut bench = Bench::new();
        for idle in 1..=DEATHS_MAX {
            let start = bench.start();
            bench.wait(LASTING);
            start.lives(bench.now);
            start.lives(bench.now);
            assert_eq!(bench.count(), Some((idle, 0)));
        }
        let start = bench.start();
        assert!(start.is_active(), "none of them had any progress");
        start.ended();
        let start = bench.start();
        bench.wait(LASTING);
        start.lives(bench.now);
        start.progressed(bench.now);
        assert_eq!(bench.count(), None);
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
        bench.wait(STAY * 8 - Duration::from_nanos(1));
        start.progressed(bench.now);
        assert!(bench.count().is_some());
        bench.wait(Duration::from_nanos(1));
        start.progressed(bench.now);
        assert_eq!(bench.count(), None);
        assert!(!bench.start().is_active());
        assert_eq!(stay(u32::MAX), STAY_MAX);
    }

    #[test]
    fn a_count_that_is_no_number_counts_as_none() {
        let bench = Bench::new();
        let write = |text: &[u8]| std::fs::write(bench.dir.path().join(NAME), text).unwrap();
        for text in [
            &b""[..],
            b"x",
            b"-1",
            b"99999999999",
            b"\xff",
            b"1 2 3",
            b"4 x",
        ] {
            write(text);
            assert!(!bench.start().is_active());
            assert_eq!(bench.count(), Some((1, 1)));
        }
        // As earlier builds wrote it.
        write(b"2\n");
        assert!(!bench.start().is_active());
        assert_eq!(bench.count(), Some((3, 3)));
        write(format!("{} 0", u32::MAX).as_bytes());
        assert!(bench.start().is_active());
        assert_eq!(bench.count(), Some((u32::MAX, 1)));
        let nowhere = SafeMode::begin(&bench.dir.path().join("none"), bench.now);
        assert!(!nowhere.is_active());
        nowhere.progressed(bench.now);
        nowhere.lives(bench.now + LASTING);
    }
}
