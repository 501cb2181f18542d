//! How many records and bytes may be sampled now. Pure: the caller passes the time.
//!
//! All pipelines together have one budget. It is refilled steadily and saves up a quarter of a second only, so that samples
//! of a fast pipeline are spread over its batches. Each pipeline also has an equal share of its own, so that a loud one
//! leaves room for the others.

use std::time::Duration;

use crate::pipeline_id::PipelineId;

/// What may be sampled in a second.
pub(super) const RECORDS_PER_S: f64 = 100.0;
pub(super) const BYTES_PER_S: f64 = 256.0 * 1024.0;
/// What can be saved up.
pub(super) const RECORDS_SAVED: f64 = 25.0;
/// A pipeline without a batch for so long has no share.
const QUIET: Duration = Duration::from_secs(2);

/// The budgets of all pipelines.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    all: Option<Bucket>,
    of: Vec<(PipelineId, Bucket)>,
}

/// What may be sampled of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) records: usize,
    /// The last record may be longer.
    pub(super) bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    records: f64,
    /// Below zero it is owed.
    bytes: f64,
    /// When that was so.
    at: Duration,
}

impl Budgets {
    /// What may be sampled now of a pipeline that has a batch.
    pub(super) fn room(&mut self, pipeline: PipelineId, now: Duration) -> Room {
        self.of
            .retain(|(known, bucket)| *known == pipeline || now.saturating_sub(bucket.at) < QUIET);
        if !self.of.iter().any(|(known, _)| *known == pipeline) {
            self.of.push((pipeline, Bucket::full(now)));
        }
        let share = 1.0 / self.of.len() as f64;
        let all = self.all.get_or_insert_with(|| Bucket::full(now));
        let mut room = all.refilled(1.0, now);
        if let Some((_, bucket)) = self.of.iter_mut().find(|(known, _)| *known == pipeline) {
            let own = bucket.refilled(share, now);
            room.records = room.records.min(own.records);
            room.bytes = room.bytes.min(own.bytes);
        }
        if room.bytes == 0 {
            room.records = 0;
        }
        room
    }

    /// So much was sampled of a pipeline.
    pub(super) fn take(&mut self, pipeline: PipelineId, records: usize, bytes: usize) {
        let own = self.of.iter_mut().filter(|(known, _)| *known == pipeline);
        let own = own.map(|(_, bucket)| bucket);
        for bucket in own.chain(&mut self.all) {
            bucket.records -= records as f64;
            bucket.bytes -= bytes as f64;
        }
    }
}

impl Bucket {
    fn full(now: Duration) -> Self {
        Self {
            records: RECORDS_SAVED,
            bytes: BYTES_PER_S,
            at: now,
        }
    }

    /// Adds what was earned since the last time, with this share.
    fn refilled(&mut self, share: f64, now: Duration) -> Room {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        // With a small share one record can be saved up all the same.
        let records_max = (RECORDS_SAVED * share).max(1.0);
        self.records = (self.records + seconds * share * RECORDS_PER_S).min(records_max);
        self.bytes = (self.bytes + seconds * share * BYTES_PER_S).min(BYTES_PER_S * share);
        // Negative numbers become zero.
        Room {
            records: self.records as usize,
            bytes: self.bytes as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// What is taken of pipelines that each have a batch of `batch` records of `bytes` bytes every `every` milliseconds.
    fn taken(pipelines: &[(u32, usize)], bytes: usize, seconds: u32) -> Vec<usize> {
        let mut budgets = Budgets::default();
        let mut taken = vec![0; pipelines.len()];
        for now in 0..seconds * 1000 {
            for (at, &(every, batch)) in pipelines.iter().enumerate() {
                if now % every == 0 {
                    let id = PipelineId(at as u64);
                    let room = budgets.room(id, MS * now);
                    let mut records = 0;
                    while records < room.records.min(batch) && records * bytes < room.bytes {
                        records += 1;
                    }
                    budgets.take(id, records, records * bytes);
                    taken[at] += records;
                }
            }
        }
        taken
    }

    #[test]
    fn in_the_long_run_it_is_so_many_records_and_bytes_a_second() {
        assert_eq!(taken(&[(1, 10_000)], 100, 100), [10_024]);
        // 64 KiB each: four in a second, and those of the first one.
        let large = taken(&[(1, 10_000)], 64 * 1024, 100)[0];
        assert!((400..=408).contains(&large), "{large}");
        // One of 1 MiB is paid off in four seconds.
        let huge = taken(&[(1, 10)], 1024 * 1024, 100)[0];
        assert!((24..=26).contains(&huge), "{huge}");
    }

    #[test]
    fn samples_are_spread_over_time() {
        let mut budgets = Budgets::default();
        let (id, mut last) = (PipelineId(1), 0);
        for now in 0..2000 {
            let room = budgets.room(id, MS * now);
            budgets.take(id, room.records, 100);
            if room.records > 0 {
                assert!(now == 0 || room.records == 1, "{now}: {room:?}");
                assert!(now - last <= 11, "{now}: {last}");
                last = now;
            }
        }
    }

    #[test]
    fn a_loud_pipeline_leaves_room_for_the_others() {
        let found = taken(&[(1, 1000), (1, 1000), (500, 1)], 100, 20);
        // The first one may find nothing left.
        assert!(found[2] >= 39, "{found:?}");
        assert!(found[0].abs_diff(found[1]) < 50, "{found:?}");
        assert!(found.iter().sum::<usize>() <= 20 * 100 + 25, "{found:?}");
        // As many that none has a whole record as its share.
        let many = taken(&[(10, 10); 60], 100, 20);
        assert!(many.iter().all(|&it| it > 0), "{many:?}");
        assert!(many.iter().sum::<usize>() <= 20 * 100 + 25, "{many:?}");
    }

    #[test]
    fn a_pipeline_that_was_quiet_gives_its_share_back() {
        let mut budgets = Budgets::default();
        budgets.room(PipelineId(1), Duration::ZERO);
        budgets.take(PipelineId(1), 25, 0);
        budgets.room(PipelineId(2), Duration::ZERO);
        let half = budgets.room(PipelineId(1), MS * 1000);
        assert_eq!(half.records, 12);
        assert_eq!(budgets.room(PipelineId(1), MS * 5000).records, 25);
    }
}
