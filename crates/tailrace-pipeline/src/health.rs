//! Whether a pipeline gets on, and what is in its way.
//!
//! Takes the ledger once a second and what the inputs may not read; gives each [`Trouble`] with its stage and reason.
//! Restarts nothing and stops nothing: in an outage the files are the buffer, and a new process would read
//! them no faster.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tailrace_inputs::Denied;

use crate::ledger::PipelineLedger;

/// Something that keeps a pipeline from doing its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// Name of the pipeline.
    pub pipeline: String,
    /// Where it is stuck.
    pub stage: Stage,
    /// What is stuck there: a path, or the name of an output; else empty.
    pub subject: String,
    /// What happened, and what to do next.
    pub reason: String,
    /// For how many seconds nothing has moved; 0 where that is not the matter.
    pub seconds: u64,
}

/// Where a pipeline is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Files are not read.
    Input,
    /// What was read is not evaluated.
    Transform,
    /// What was sent is not accepted.
    Output,
    /// What was accepted is not written down.
    Checkpoint,
}

impl Stage {
    /// Its name for people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Transform => "transform",
            Self::Output => "output",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// How long something that waits may stand still.
const STALLED_AFTER: Duration = Duration::from_secs(15);
/// As many paths that may not be read are named for each pipeline.
const DENIED_MAX: usize = 20;

/// The health of one pipeline.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By input.
    denied: BTreeMap<usize, Vec<Denied>>,
    /// What has been acknowledged by each output, and what has been read.
    outputs: BTreeMap<String, Progress>,
    read: Progress,
    stalls: Vec<Trouble>,
    looked_at: Option<Instant>,
}

/// A count, and since when it has not changed although something waits.
#[derive(Debug, Default)]
struct Progress {
    count: u64,
    since: Option<Instant>,
}

impl Progress {
    /// How long it stands still.
    fn look(&mut self, count: u64, is_waiting: bool, now: Instant) -> Duration {
        if self.count != count || !is_waiting {
            (self.count, self.since) = (count, None);
        }
        let since = is_waiting.then(|| *self.since.get_or_insert(now));
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

impl Health {
    /// An input may not read these; gives how many paths there are of all inputs.
    pub(crate) fn set_denied(&self, input: usize, denied: Vec<Denied>) -> usize {
        let mut state = self.lock();
        state.denied.insert(input, denied);
        state.denied.values().map(Vec::len).sum()
    }

    /// Looks at the pipeline now; `said` is what the server answered to the last failed attempt of an output. True if it stands
    /// still.
    pub(crate) fn look(
        &self,
        ledger: &PipelineLedger,
        said: impl Fn(usize) -> Option<String>,
        now: Instant,
    ) -> bool {
        let mut state = self.lock();
        let mut stalls = Vec::new();
        let trouble = |stage, subject: &str, reason: String, stood: Duration| Trouble {
            pipeline: ledger.pipeline.clone(),
            stage,
            subject: subject.to_owned(),
            reason,
            seconds: stood.as_secs(),
        };
        let mut acked_by_all = 0;
        for (index, output) in ledger.outputs.iter().enumerate() {
            let acked = output.requests
                + output.delivered
                + output.rejected
                + output.dead_lettered
                + output.dropped;
            acked_by_all += acked;
            // Records that are refused while others are accepted keep nobody waiting, unless reading waits for them.
            let keeps = output.compared == 0 || ledger.unread_bytes > 0;
            let waits = output.in_flight_requests > 0 && keeps;
            let progress = state.outputs.entry(output.output.clone()).or_default();
            let stood = progress.look(acked, waits, now);
            if stood >= STALLED_AFTER {
                let said = said(index).unwrap_or_else(|| "no answer came yet".to_owned());
                let reason = format!(
                    "nothing is accepted, with {} requests in flight: {said}; what is not read waits where it is",
                    output.in_flight_requests
                );
                stalls.push(trouble(Stage::Output, &output.output, reason, stood));
            }
        }
        let read = ledger.read_bytes + ledger.records + ledger.filtered + acked_by_all;
        // What the outputs do not take, or a permission forbids, is not the reader's fault.
        let is_denied = state.denied.values().any(|denied| !denied.is_empty());
        let waits = ledger.unread_bytes > 0 && !is_denied && stalls.is_empty();
        let stood = state.read.look(read, waits, now);
        if stood >= STALLED_AFTER {
            let unread = ledger.unread_bytes;
            let (stage, what) = match ledger.in_flight_bytes {
                0 => (Stage::Input, "and nothing was read"),
                _ => (Stage::Transform, "and what was read is not evaluated"),
            };
            let reason =
                format!("{unread} bytes wait to be read, {what}; the agent's log says more");
            stalls.push(trouble(stage, "", reason, stood));
        }
        state.looked_at = Some(now);
        state.stalls = stalls;
        !state.stalls.is_empty()
    }

    /// Everything that is in the way now.
    pub(crate) fn troubles(&self, pipeline: &str, now: Instant) -> Vec<Trouble> {
        let state = self.lock();
        let mut troubles = state.denied_as_troubles(pipeline);
        troubles.extend(state.stalls.iter().cloned());
        let looked = state
            .looked_at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        if looked >= STALLED_AFTER {
            troubles.push(Trouble {
                pipeline: pipeline.to_owned(),
                stage: Stage::Checkpoint,
                subject: String::new(),
                reason: "writing the checkpoint does not return: does the disk of data_dir answer?"
                    .to_owned(),
                seconds: looked.as_secs(),
            });
        }
        troubles
    }

    /// What may not be read.
    pub(crate) fn denied(&self, pipeline: &str) -> Vec<Trouble> {
        self.lock().denied_as_troubles(pipeline)
    }

    /// The first of these that is not a quiet file.
    pub(crate) fn denied_in_use(&self, pipeline: &str) -> Option<Trouble> {
        let state = self.lock();
        let mut denied = state.denied.values().flatten();
        let first = denied.find(|denied| !denied.is_quiet)?;
        Some(denied_as_trouble(pipeline, first))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn denied_as_troubles(&self, pipeline: &str) -> Vec<Trouble> {
        let denied = self.denied.values().flatten().take(DENIED_MAX);
        denied
            .map(|denied| denied_as_trouble(pipeline, denied))
            .collect()
    }
}

fn denied_as_trouble(pipeline: &str, denied: &Denied) -> Trouble {
    Trouble {
        pipeline: pipeline.to_owned(),
        stage: Stage::Input,
        subject: denied.path.display().to_string(),
        reason: denied.message.clone(),
        seconds: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::OutputLedger;

    fn ledger(unread: u64, in_flight: u64, delivered: u64) -> PipelineLedger {
        let output = OutputLedger {
            output: "otlp".to_owned(),
            delivered,
            in_flight_requests: in_flight,
            ..OutputLedger::default()
        };
        PipelineLedger {
            pipeline: "app".to_owned(),
            unread_bytes: unread,
            outputs: vec![output],
            ..PipelineLedger::default()
        }
    }

    /// What the troubles are after the pipeline was so for so many seconds.
    fn after(
        health: &Health,
        ledger: &PipelineLedger,
        start: Instant,
        seconds: u64,
    ) -> Vec<Trouble> {
        let now = start + Duration::from_secs(seconds);
        health.look(ledger, |_| Some("401 Unauthorized".to_owned()), now);
        health.troubles("app", now)
    }

    #[test]
    fn what_stands_still_is_told_with_its_stage_within_thirty_seconds() {
        let mut decoding = ledger(10, 0, 0);
        decoding.in_flight_bytes = 1;
        let cases = [
            (ledger(0, 2, 5), Stage::Output, "otlp", "401 Unauthorized"),
            (ledger(10, 2, 5), Stage::Output, "otlp", "401 Unauthorized"),
            (
                ledger(10, 0, 0),
                Stage::Input,
                "",
                "10 bytes wait to be read",
            ),
            (decoding, Stage::Transform, "", "not evaluated"),
        ];
        for (ledger, stage, subject, reason) in cases {
            let (health, start) = (Health::default(), Instant::now());
            assert_eq!(after(&health, &ledger, start, 0), []);
            assert_eq!(after(&health, &ledger, start, 14), []);
            let [trouble] = &after(&health, &ledger, start, 16)[..] else {
                panic!("not one trouble: {ledger:?}");
            };
            assert_eq!((trouble.stage, trouble.subject.as_str()), (stage, subject));
            assert_eq!(trouble.seconds, 16);
            assert!(trouble.reason.contains(reason), "{trouble:?}");
        }
    }

    #[test]
    fn what_moves_or_has_nothing_to_do_is_well() {
        let (health, start) = (Health::default(), Instant::now());
        for second in 0..100 {
            // A request every ten seconds is slow, and not still.
            let slow = ledger(10, 2, second / 10);
            assert_eq!(after(&health, &slow, start, second), []);
        }
        let idle = ledger(0, 0, 10);
        assert_eq!(after(&health, &idle, start, 1000), []);
        assert_eq!(after(&health, &idle, start, 2000), []);
        // It stood still, and is well again at once.
        let still = ledger(10, 2, 10);
        after(&health, &still, start, 2001);
        assert_eq!(after(&health, &still, start, 2020).len(), 1);
        assert_eq!(after(&health, &ledger(10, 2, 11), start, 2021), []);
    }

    #[test]
    fn records_that_are_refused_while_others_are_accepted_are_no_stall_unless_reading_waits() {
        let (health, start) = (Health::default(), Instant::now());
        let mut compared = ledger(0, 1, 999);
        compared.outputs[0].compared = 1;
        assert_eq!(after(&health, &compared, start, 0), []);
        assert_eq!(after(&health, &compared, start, 300), []);
        compared.unread_bytes = 10;
        assert_eq!(after(&health, &compared, start, 301), []);
        assert_eq!(after(&health, &compared, start, 317).len(), 1);
    }

    #[test]
    fn a_path_that_may_not_be_read_is_told_at_once_and_is_no_stall() {
        let (health, start) = (Health::default(), Instant::now());
        let of = |path: &str, is_quiet| Denied {
            is_quiet,
            path: path.into(),
            message: "grant it".to_owned(),
        };
        let denied = |path: &str| of(path, false);
        assert_eq!(health.set_denied(0, vec![denied("/a"), denied("/b")]), 2);
        assert_eq!(health.set_denied(1, vec![denied("/c")]), 3);
        let still = ledger(10, 0, 0);
        after(&health, &still, start, 0);
        let troubles = after(&health, &still, start, 100);
        let subjects: Vec<&str> = troubles.iter().map(|t| t.subject.as_str()).collect();
        assert_eq!(subjects, ["/a", "/b", "/c"]);
        assert_eq!(health.denied("app"), troubles);
        health.set_denied(1, Vec::new());
        assert_eq!(health.set_denied(0, Vec::new()), 0);
        assert_eq!(health.denied("app"), []);
        health.set_denied(0, vec![of("/old", true)]);
        assert_eq!(health.denied("app").len(), 1);
        assert_eq!(health.denied_in_use("app"), None);
        health.set_denied(1, vec![denied("/new")]);
        assert_eq!(health.denied_in_use("app").unwrap().subject, "/new");
    }

    #[test]
    fn a_checkpoint_that_hangs_is_told() {
        let (health, start) = (Health::default(), Instant::now());
        after(&health, &ledger(0, 0, 0), start, 0);
        let troubles = health.troubles("app", start + Duration::from_secs(20));
        assert_eq!(troubles[0].stage, Stage::Checkpoint);
    }
}
