//! The verdict on a run: the outcome of every record, by rotation. Reads bits and counters; it
//! decides nothing about the run.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::agent::Kind;
use super::explained::{Counted, Missing, hidden};
use super::harness::Harness;
use super::record;
use super::sink::State;
use super::stops::{How, Stop};
use super::stream::{Rotation, Truth};

/// The outcomes of the records of one kind of rotation.
#[derive(Clone, Debug)]
pub struct GroupVerdict {
    /// Which.
    pub rotation: Rotation,
    /// How often its files were rotated.
    pub rotations: u64,
    /// Records written.
    pub written: u64,
    /// Records that never arrived although their file was there to read.
    pub lost: u64,
    /// Records that never arrived and whose bytes were destroyed first.
    pub destroyed: u64,
    /// Records the collector rejected.
    pub rejected: u64,
    /// Records in the agent's dead-letter file.
    pub dead_lettered: u64,
    /// Records that arrived again without need.
    pub repeated: u64,
    /// Records that arrived again after an answer that may have been lost.
    pub excused: u64,
    /// Records that arrived and were never written.
    pub torn: u64,
    /// Beginnings of records of which the rest was destroyed.
    pub fragments: u64,
    /// Ends of records that came again after they had arrived whole, marked as truncated: their beginning was deleted.
    pub ends: u64,
    /// Records that arrived after a later one of their stream.
    pub disorder: u64,
    /// Bytes of lost and destroyed records that the agent neither counts as lost nor has within its bound for what a
    /// truncation hides. Of destroyed ones some must be: what came and went between two looks, or while no agent ran.
    pub unexplained_bytes: u64,
    /// Records that the agent's ledger leaves without an outcome when nothing is in flight.
    pub unbalanced: i64,
    /// Some of the lost: stream and sequence.
    pub examples: Vec<String>,
}

/// The outcome of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// One for each kind of rotation.
    pub groups: Vec<GroupVerdict>,
    /// Why the run broke a promise; empty when it did not.
    pub broken: Vec<String>,
    /// What else is worth knowing, such as what was skipped.
    pub notes: Vec<String>,
    pub(crate) stops: Vec<Stop>,
    pub(crate) seconds: f64,
    pub(crate) drained: Duration,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) peak_bytes: u64,
}

impl Truth {
    /// The records of stream `which` that never arrived: how they ended, and which.
    fn missing<'a>(
        &'a self,
        state: &'a State,
        which: usize,
    ) -> impl Iterator<Item = (u64, bool)> + 'a {
        let destroyed = self.destroyed.lock().unwrap()[which].clone();
        let tally = &state.streams[self.stream as usize + which];
        let written = self.written[which].load(Ordering::Acquire);
        (tally.low..written)
            .filter(|seq| !tally.is_resolved(*seq))
            .map(move |seq| (seq, destroyed.iter().any(|range| range.contains(&seq))))
    }

    /// The records of stream `which` that truncations can have hidden: see [`hidden`].
    fn hidden<'a>(&self, state: &'a State, which: usize) -> impl Iterator<Item = u64> + 'a {
        let contents = match self.rotation {
            Rotation::CopyTruncate => self.destroyed.lock().unwrap()[which].clone(),
            _ => Vec::new(),
        };
        let tally = &state.streams[self.stream as usize + which];
        let hidden = move |content| hidden(content, |seq| tally.is_resolved(seq));
        contents.into_iter().flat_map(hidden)
    }

    /// Nothing is missing but what was destroyed.
    pub(crate) fn is_complete(&self, state: &State) -> bool {
        (0..self.written.len()).all(|which| self.missing(state, which).all(|(_, gone)| gone))
    }
}

/// Judges a run that has ended; `last` are the counters of the agent's last life.
pub(crate) fn judge(harness: &Harness<'_>, last: &BTreeMap<(String, String), f64>) -> Outcome {
    let state = harness.sink.lock();
    let mut groups = Vec::new();
    for (index, rotation) in harness.plan.rotations.iter().enumerate() {
        let mut group = GroupVerdict::new(*rotation);
        group.torn = state.torn[index];
        group.ends = state.ends[index];
        if rotation.destroys() {
            group.fragments = state.fragments[index];
        } else {
            group.torn += state.fragments[index];
        }
        let mut missing = Missing::default();
        for truth in harness
            .truths
            .iter()
            .filter(|truth| truth.rotation == *rotation)
        {
            let of_file = group.add(truth, &state);
            missing.bytes += of_file.bytes;
            missing.hidden += of_file.hidden;
        }
        let past = |family| past_bytes(harness, family, rotation.name());
        let counted = Counted {
            lost: past("tailrace_input_lost_bytes_total"),
            kept: kept_bytes(last, rotation.name()),
            truncated_unread: past("tailrace_input_truncated_unread_bytes_total"),
        };
        group.unexplained_bytes = counted.unexplained(missing);
        group.unbalanced = unbalanced(last, rotation.name());
        groups.push(group);
    }
    let mut notes = harness.notes.clone();
    notes.extend(
        harness
            .own_ends
            .iter()
            .map(|(end, count)| format!("the agent ended by itself: {end}, {count} times")),
    );
    notes.extend(
        harness
            .codes
            .iter()
            .map(|(code, count)| format!("SIGTERM, {code}: {count} times")),
    );
    notes.extend(state.samples.iter().map(|text| format!("torn: {text}")));
    if !harness.stops.is_empty() {
        let age = harness.checkpoint_age.as_secs_f64();
        notes.push(format!(
            "the checkpoint was {age:.1} s old at most when the agent was stopped"
        ));
    }
    let mut outcome = Outcome {
        groups,
        broken: Vec::new(),
        notes,
        stops: harness.stops.clone(),
        seconds: harness.started.elapsed().as_secs_f64(),
        drained: harness.drained,
        requests: state.requests,
        refused: state.refused,
        peak_bytes: harness.peak_bytes,
    };
    outcome.broken = outcome.broken_promises(harness);
    outcome
}

impl GroupVerdict {
    fn new(rotation: Rotation) -> GroupVerdict {
        GroupVerdict {
            rotation,
            rotations: 0,
            written: 0,
            lost: 0,
            destroyed: 0,
            rejected: 0,
            dead_lettered: 0,
            repeated: 0,
            excused: 0,
            torn: 0,
            fragments: 0,
            ends: 0,
            disorder: 0,
            unexplained_bytes: 0,
            unbalanced: 0,
            examples: Vec::new(),
        }
    }

    /// Adds one file. Returns the bytes of its missing records.
    fn add(&mut self, truth: &Truth, state: &State) -> Missing {
        self.rotations += truth.rotations.load(Ordering::Relaxed);
        let mut missing = Missing::default();
        for (which, written) in truth.written.iter().enumerate() {
            let written = written.load(Ordering::Acquire);
            let stream = truth.stream + u32::try_from(which).unwrap_or(0);
            let tally = &state.streams[stream as usize];
            self.written += written;
            self.repeated += tally.repeated;
            self.excused += tally.excused;
            self.disorder += tally.disorder;
            let is_rejected = |seq: &u64| tally.rejected.get(*seq) && !tally.arrived.get(*seq);
            self.rejected += (0..written).filter(is_rejected).count() as u64;
            let is_dead_lettered =
                |seq: &u64| tally.dead_lettered.get(*seq) && !tally.arrived.get(*seq);
            self.dead_lettered += (0..written).filter(is_dead_lettered).count() as u64;
            for (seq, gone) in truth.missing(state, which) {
                missing.bytes += line_bytes(stream, seq);
                if gone {
                    self.destroyed += 1;
                } else {
                    self.lost += 1;
                    if self.examples.len() < 5 {
                        self.examples
                            .push(format!("stream {stream} record {seq} of {written}"));
                    }
                }
            }
            missing.hidden += truth
                .hidden(state, which)
                .map(|seq| line_bytes(stream, seq))
                .sum::<u64>();
        }
        missing
    }

    /// In lost, repeated, torn, unexplained bytes: a cell of the matrix.
    pub fn cell(&self) -> String {
        format!(
            "{}/{}/{}/{}",
            self.lost, self.repeated, self.torn, self.unexplained_bytes
        )
    }
}

/// What the agent counted in all its lives, as far as its counters were seen.
fn past_bytes(harness: &Harness<'_>, family: &str, pipeline: &str) -> u64 {
    let key = (family.to_owned(), pipeline.to_owned());
    harness.past.get(&key).copied().unwrap_or(0.0) as u64
}

/// With its newline.
fn line_bytes(stream: u32, sequence: u64) -> u64 {
    record::line(stream, sequence).len() as u64 + 1
}

/// What the agent says it has not read yet, or has in flight.
fn kept_bytes(last: &BTreeMap<(String, String), f64>, pipeline: &str) -> u64 {
    let unread = value(last, "input_unread_bytes", pipeline);
    let (records, read) = (
        value(last, "frame_records_total", pipeline),
        value(last, "input_read_bytes_total", pipeline),
    );
    let in_flight = match value(last, "output_in_flight_requests", pipeline) {
        0 => 0,
        _ => (records - outcomes(last, pipeline)) * read / records.max(1),
    };
    u64::try_from(unread + in_flight).unwrap_or(0)
}

fn value(last: &BTreeMap<(String, String), f64>, family: &str, pipeline: &str) -> i64 {
    let key = (format!("tailrace_{family}"), pipeline.to_owned());
    last.get(&key).copied().unwrap_or(0.0) as i64
}

/// Records without an outcome although nothing is in flight.
fn unbalanced(last: &BTreeMap<(String, String), f64>, pipeline: &str) -> i64 {
    let value = |family: &str| value(last, family, pipeline);
    if value("output_in_flight_requests") != 0 || value("input_unread_bytes") != 0 {
        return 0;
    }
    value("frame_records_total") - outcomes(last, pipeline)
}

/// Records that have an outcome.
fn outcomes(last: &BTreeMap<(String, String), f64>, pipeline: &str) -> i64 {
    let families = [
        "transform_filtered_records_total",
        "output_delivered_records_total",
        "output_rejected_records_total",
        "output_dead_lettered_records_total",
        "output_dropped_records_total",
    ];
    families
        .into_iter()
        .map(|family| value(last, family, pipeline))
        .sum()
}

impl Outcome {
    /// The stops by `kill -9`.
    pub fn kills(&self) -> usize {
        self.stops
            .iter()
            .filter(|stop| stop.how == How::Kill)
            .count()
    }

    fn broken_promises(&self, harness: &Harness<'_>) -> Vec<String> {
        let mut broken = Vec::new();
        for group in &self.groups {
            let name = group.rotation.name();
            if group.lost > 0 {
                let examples = group.examples.join(", ");
                broken.push(format!("{name}: {} records lost: {examples}", group.lost));
            }
            if group.torn > 0 {
                broken.push(format!("{name}: {} records torn", group.torn));
            }
            // What came and went between two looks nobody could have counted.
            if group.unexplained_bytes > 0 && !group.rotation.destroys() {
                let bytes = group.unexplained_bytes;
                broken.push(format!(
                    "{name}: {bytes} missing bytes are not counted as lost"
                ));
            }
            if group.unbalanced != 0 {
                let records = group.unbalanced;
                broken.push(format!(
                    "{name}: the ledger leaves {records} records without an outcome"
                ));
            }
        }
        for stop in self.stops.iter().filter(|stop| stop.bounded) {
            for (group, (repeated, bound)) in self.groups.iter().zip(stop.repeats()) {
                if repeated > bound {
                    let name = group.rotation.name();
                    broken.push(format!(
                        "{name}: {repeated} bytes repeated after a stop, bound {bound}"
                    ));
                }
            }
        }
        let has_failpoints = !harness.plan.environment.is_empty();
        let is_excused = |end: &str, count: u32| {
            // An abort at one record, until that is dead-lettered.
            end.contains("(disk broken)") || has_failpoints && end.contains("SIGABRT") && count <= 3
        };
        let ends = harness.own_ends.iter();
        let unexcused = ends.filter(|(end, count)| !is_excused(end, **count));
        broken.extend(
            unexcused
                .map(|(end, _)| end)
                .map(|end| format!("the agent ended by itself: {end}")),
        );
        if harness.codes.contains_key("ignored SIGTERM") {
            broken.push("the agent did not end on SIGTERM".to_owned());
        }
        let log = std::fs::read_to_string(harness.program.log()).unwrap_or_default();
        let panics = log.lines().filter(|line| line.contains("panicked at"));
        broken.extend(panics.take(3).map(str::to_owned));
        if harness.plan.agent.kind == Kind::Otelcol {
            // Others made no promise to us.
            broken.retain(|what| what.contains("the agent ended"));
        }
        broken
    }
}
