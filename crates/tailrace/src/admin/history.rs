//! The recent past of the agent: what it had counted every five seconds of the last quarter of an hour, in memory. The thread
//! of the admin endpoint takes the samples; nothing else does anything for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tailrace_pipeline::{PipelineLedger, View};
use tokio::time::{MissedTickBehavior, interval};

use crate::sysinfo;

/// The time between two samples.
pub(super) const INTERVAL: Duration = Duration::from_secs(5);
/// A quarter of an hour.
const POINTS_MAX: usize = 180;
/// Of further pipelines there is no history: with these it takes at most about 2 MiB.
const PIPELINES_MAX: usize = 64;
/// Of further outputs of a pipeline there is none.
const OUTPUTS_MAX: usize = 16;

/// What was counted at some moments.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<VecDeque<Point>>);

/// What was counted at one moment.
#[derive(Debug, Clone)]
struct Point {
    at: SystemTime,
    cpu: Duration,
    resident_bytes: u64,
    pipelines: Vec<OfPipeline>,
}

#[derive(Debug, Clone)]
struct OfPipeline {
    /// Shared by all points.
    name: Arc<str>,
    read_bytes: u64,
    records: u64,
    filtered: u64,
    delivered: Vec<u64>,
    unread_bytes: u64,
    delay_total: Duration,
    delay_batches: u64,
}

/// Takes samples until the future is dropped.
pub(super) async fn sample(history: &History, view: &View) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let cpu = sysinfo::cpu_time().unwrap_or_default();
        let resident_bytes = sysinfo::memory().map_or(0, |memory| memory.resident);
        history.add(SystemTime::now(), cpu, resident_bytes, &view.ledgers());
    }
}

impl History {
    fn add(&self, at: SystemTime, cpu: Duration, resident_bytes: u64, ledgers: &[PipelineLedger]) {
        let mut points = self.lock();
        let before = points.back().map_or(&[][..], |point| &point.pipelines);
        let name = |wanted: &str| {
            let known = before.iter().find(|known| *known.name == *wanted);
            known.map_or_else(|| wanted.into(), |known| Arc::clone(&known.name))
        };
        let pipeline = |ledger: &PipelineLedger| {
            let outputs = ledger.outputs.iter();
            OfPipeline {
                name: name(&ledger.pipeline),
                read_bytes: ledger.read_bytes,
                records: ledger.records,
                filtered: ledger.filtered,
                delivered: outputs
                    .clone()
                    .take(OUTPUTS_MAX)
                    .map(|output| output.delivered)
                    .collect(),
                unread_bytes: ledger.unread_bytes,
                delay_total: outputs.clone().map(|output| output.delay.total).sum(),
                delay_batches: outputs.map(|output| output.delay.batches).sum(),
            }
        };
        let pipelines = ledgers.iter().take(PIPELINES_MAX).map(pipeline).collect();
        if points.len() >= POINTS_MAX {
            points.pop_front();
        }
        points.push_back(Point {
            at,
            cpu,
            resident_bytes,
            pipelines,
        });
    }

    /// All of it, the oldest first.
    pub(super) fn report(&self) -> Value {
        let points = self.lock();
        let pipeline = |pipeline: &OfPipeline| {
            json!({
                "name": &*pipeline.name,
                "read_bytes": pipeline.read_bytes,
                "records": pipeline.records,
                "filtered": pipeline.filtered,
                "delivered": pipeline.delivered,
                "unread_bytes": pipeline.unread_bytes,
                "delay_total_s": pipeline.delay_total.as_secs_f64(),
                "delay_batches": pipeline.delay_batches,
            })
        };
        let point = |point: &Point| {
            let at = point.at.duration_since(UNIX_EPOCH).unwrap_or_default();
            json!({
                "unix_s": at.as_secs_f64(),
                "cpu_seconds": point.cpu.as_secs_f64(),
                "resident_bytes": point.resident_bytes,
                "pipelines": point.pipelines.iter().map(pipeline).collect::<Vec<_>>(),
            })
        };
        json!({
            "interval_s": INTERVAL.as_secs(),
            "points": points.iter().map(point).collect::<Vec<_>>(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Point>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use tailrace_pipeline::OutputLedger;

    use super::*;

    fn ledger(pipeline: String, records: u64) -> PipelineLedger {
        let output = |delivered| OutputLedger {
            delivered,
            ..OutputLedger::default()
        };
        PipelineLedger {
            pipeline,
            records,
            outputs: vec![output(records), output(1)],
            ..PipelineLedger::default()
        }
    }

    fn add(history: &History, second: u64, ledgers: &[PipelineLedger]) {
        let at = UNIX_EPOCH + Duration::from_secs(second);
        history.add(at, Duration::from_millis(second), 4096, ledgers);
    }

    #[test]
    fn the_last_points_stay_with_what_was_counted() {
        let history = History::default();
        for n in 0..1000 {
            add(&history, 5 * n, &[ledger("app".to_owned(), n)]);
        }
        let report = history.report();
        let points = report["points"].as_array().unwrap();
        assert_eq!(
            (&report["interval_s"], points.len()),
            (&json!(5), POINTS_MAX)
        );
        assert_eq!(points[0]["unix_s"], json!(4100.0));
        let last = &points[POINTS_MAX - 1];
        assert_eq!(
            (&last["unix_s"], &last["cpu_seconds"]),
            (&json!(4995.0), &json!(4.995))
        );
        let pipeline = &last["pipelines"][0];
        assert_eq!(
            (&pipeline["name"], &pipeline["records"]),
            (&json!("app"), &json!(999))
        );
        assert_eq!(pipeline["delivered"], json!([999, 1]));
    }

    #[test]
    fn many_pipelines_are_bounded_and_share_their_names() {
        let history = History::default();
        let many: Vec<_> = (0..1000).map(|n| ledger(format!("p{n:04}"), n)).collect();
        add(&history, 1, &many);
        add(&history, 2, &many);
        let points = history.lock();
        assert_eq!(points[1].pipelines.len(), PIPELINES_MAX);
        let name = |at: usize| Arc::clone(&points[at].pipelines[7].name);
        assert!(Arc::ptr_eq(&name(0), &name(1)));
    }
}
