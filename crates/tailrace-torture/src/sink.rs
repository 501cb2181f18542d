//! The judge behind the collector: what arrived, how often, and what is answered now. Keeps three
//! bits for a record and the last seconds of arrivals; it never keeps a record.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::faults::{Decision, Mood};
use super::record::{self, Identity};
use tailrace_testkit::{Answer, Judge, Record};

/// An answer given in this time before the listener closed may not have reached the agent.
const DOUBT: Duration = Duration::from_secs(1);
/// Arrivals are remembered for this long, to know what a kill may repeat.
const RECENT: Duration = Duration::from_secs(60);
/// As many torn records are shown.
const SAMPLES_MAX: usize = 5;

/// What has arrived so far; shared by the collector, the writers and who waits for the end.
pub(crate) struct Sink {
    state: Mutex<State>,
    changed: Condvar,
}

pub(crate) struct State {
    pub(crate) mood: Mood,
    pub(crate) streams: Vec<Tally>,
    /// Torn records by group, and some of them.
    pub(crate) torn: Vec<u64>,
    /// Beginnings of records by group: what was read before the rest was destroyed.
    pub(crate) fragments: Vec<u64>,
    /// Ends of records by group, marked as truncated: the file with the beginning was deleted, after it had arrived whole.
    pub(crate) ends: Vec<u64>,
    /// Records that go on from one file to the next, of which the first file is deleted.
    pub(crate) beheaded: Vec<(u32, u64)>,
    pub(crate) samples: Vec<String>,
    groups: Vec<Group>,
    recent: VecDeque<Arrival>,
    /// Bytes repeated since the agent was last stopped, by group.
    pub(crate) repeated_bytes: Vec<u64>,
    pub(crate) arrived: u64,
    pub(crate) requests: u64,
    pub(crate) refused: u64,
    pub(crate) last_new: Instant,
}

/// The streams of one directory and pipeline.
pub(crate) struct Group {
    /// The directory's name, which shows where a torn record came from.
    pub(crate) name: String,
    /// The first stream that is not of this group or one before it.
    pub(crate) end: u32,
}

/// One stream's records.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) arrived: Bits,
    pub(crate) rejected: Bits,
    /// In the agent's dead-letter file.
    pub(crate) dead_lettered: Bits,
    /// Accepted by an answer that the agent may not have seen.
    doubtful: Bits,
    /// How many have arrived, were rejected or dead-lettered.
    pub(crate) resolved: u64,
    pub(crate) repeated: u64,
    pub(crate) excused: u64,
    /// Records that arrived for the first time after a later one.
    pub(crate) disorder: u64,
    /// All records below this one are resolved.
    pub(crate) low: u64,
    high: u64,
}

struct Arrival {
    at: Instant,
    records: Vec<Identity>,
}

impl Sink {
    /// `groups` in the order of their streams.
    pub(crate) fn new(groups: Vec<Group>, mood: Mood) -> Sink {
        let streams = groups.last().map_or(0, |group| group.end);
        let state = State {
            mood,
            streams: (0..streams).map(|_| Tally::default()).collect(),
            torn: vec![0; groups.len()],
            fragments: vec![0; groups.len()],
            ends: vec![0; groups.len()],
            beheaded: Vec::new(),
            samples: Vec::new(),
            repeated_bytes: vec![0; groups.len()],
            groups,
            recent: VecDeque::new(),
            arrived: 0,
            requests: 0,
            refused: 0,
            last_new: Instant::now(),
        };
        Sink {
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Waits until `done` holds; false when `until` came first.
    pub(crate) fn wait(&self, until: Instant, done: impl Fn(&State) -> bool) -> bool {
        let wait = until.saturating_duration_since(Instant::now());
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), wait, |state| !done(state))
            .unwrap();
        done(&state)
    }

    /// The listener closes now: what was just answered may not have got through.
    pub(crate) fn doubt_recent(&self) {
        let mut state = self.lock();
        let State {
            recent, streams, ..
        } = &mut *state;
        for arrival in recent.iter().filter(|arrival| arrival.at.elapsed() < DOUBT) {
            for of in &arrival.records {
                streams[of.stream as usize].doubtful.set(of.sequence);
            }
        }
    }
}

impl State {
    /// Bytes that arrived in the last `time`, by group.
    pub(crate) fn recent_bytes(&self, time: Duration) -> Vec<u64> {
        let mut bytes = vec![0; self.groups.len()];
        let recent = self
            .recent
            .iter()
            .filter(|arrival| arrival.at.elapsed() < time);
        for of in recent.flat_map(|arrival| &arrival.records) {
            bytes[self.group(of.stream)] += of.bytes;
        }
        bytes
    }

    fn group(&self, stream: u32) -> usize {
        self.groups.partition_point(|group| group.end <= stream)
    }

    /// The agent has put these in its dead-letter file.
    pub(crate) fn dead_letter(&mut self, records: &[Identity]) {
        for of in records {
            let Some(tally) = self.streams.get_mut(of.stream as usize) else {
                continue;
            };
            if !tally.is_resolved(of.sequence) {
                tally.dead_lettered.set(of.sequence);
                tally.resolve();
            }
        }
    }

    fn torn(&mut self, record: &Record, text: String) {
        let path = record::path(record);
        let place = |of: &Group| path.contains(&format!("/{}/", of.name));
        let group = self.groups.iter().position(place).unwrap_or(0);
        if record::is_beginning(&text) {
            self.fragments[group] += 1;
            return;
        }
        let mut beheaded = self.beheaded.iter().filter(|of| self.has_arrived(**of));
        if beheaded.any(|of| record::is_marked_end(record, &text, *of)) {
            self.ends[group] += 1;
            return;
        }
        self.torn[group] += 1;
        if self.samples.len() < SAMPLES_MAX {
            let text: String = text.chars().take(300).collect();
            let marked = if record::is_marked(record) {
                ", marked as truncated"
            } else {
                ""
            };
            self.samples.push(format!("{path}{marked}: {text}"));
        }
    }

    fn has_arrived(&self, (stream, sequence): (u32, u64)) -> bool {
        self.streams[stream as usize].arrived.get(sequence)
    }

    fn arrived(&mut self, of: Identity) {
        let group = self.group(of.stream);
        let tally = &mut self.streams[of.stream as usize];
        if !tally.arrived.set(of.sequence) {
            if tally.doubtful.clear(of.sequence) {
                tally.excused += 1;
            } else {
                tally.repeated += 1;
                self.repeated_bytes[group] += of.bytes;
            }
            return;
        }
        self.arrived += 1;
        self.last_new = Instant::now();
        if of.sequence < tally.high {
            tally.disorder += 1;
        }
        tally.high = tally.high.max(of.sequence);
        if !tally.rejected.get(of.sequence) && !tally.dead_lettered.get(of.sequence) {
            tally.resolve();
        }
    }
}

impl Tally {
    /// One more record is resolved.
    fn resolve(&mut self) {
        self.resolved += 1;
        while self.is_resolved(self.low) {
            self.low += 1;
        }
    }

    pub(crate) fn is_resolved(&self, sequence: u64) -> bool {
        [&self.arrived, &self.rejected, &self.dead_lettered]
            .iter()
            .any(|bits| bits.get(sequence))
    }
}

impl Judge for Sink {
    fn refuses(&self) -> Option<Answer> {
        let mut state = self.lock();
        state.requests += 1;
        let refusal = state.mood.refuses();
        state.refused += u64::from(refusal.is_some());
        refusal
    }

    fn accept(&self, records: &[Record]) -> Answer {
        let known: Vec<_> = records.iter().map(record::identify).collect();
        let mut state = self.lock();
        let count = state.streams.len();
        let is_ours = |of: &Identity| (of.stream as usize) < count;
        let identities: Vec<Identity> = known.iter().flatten().copied().filter(is_ours).collect();
        let Decision {
            answer,
            rejected,
            takes,
            doubtful,
        } = state.mood.accepts(&identities);
        if !takes {
            state.refused += 1;
            return answer;
        }
        let taken = records.len().saturating_sub(rejected);
        for (index, (record, of)) in records.iter().zip(known).enumerate() {
            match of {
                Ok(of) if !is_ours(&of) => state.torn(record, "of no stream".to_owned()),
                Ok(of) if index < taken => state.arrived(of),
                Ok(of) => {
                    let tally = &mut state.streams[of.stream as usize];
                    if !tally.is_resolved(of.sequence) {
                        tally.rejected.set(of.sequence);
                        tally.resolve();
                    }
                }
                Err(text) => state.torn(record, text),
            }
        }
        if doubtful {
            for of in &identities {
                state.streams[of.stream as usize].doubtful.set(of.sequence);
            }
        }
        state.recent.retain(|arrival| arrival.at.elapsed() < RECENT);
        state.recent.push_back(Arrival {
            at: Instant::now(),
            records: identities,
        });
        drop(state);
        self.changed.notify_all();
        answer
    }

    fn pause(&self, bytes: usize) -> Duration {
        self.lock().mood.pause(bytes)
    }
}

/// A set of sequence numbers.
#[derive(Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn get(&self, bit: u64) -> bool {
        let (word, mask) = Bits::place(bit);
        self.0.get(word).is_some_and(|bits| bits & mask != 0)
    }

    /// True if it was not set before.
    fn set(&mut self, bit: u64) -> bool {
        let (word, mask) = Bits::place(bit);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & mask == 0;
        self.0[word] |= mask;
        is_new
    }

    /// True if it was set before.
    fn clear(&mut self, bit: u64) -> bool {
        let was_set = self.get(bit);
        if was_set {
            let (word, mask) = Bits::place(bit);
            self.0[word] &= !mask;
        }
        was_set
    }

    fn place(bit: u64) -> (usize, u64) {
        let word = usize::try_from(bit / 64).expect("fewer records than memory");
        (word, 1 << (bit % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
    use opentelemetry_proto::tonic::logs::v1::LogRecord;

    use super::{Group, Sink, record};
    use crate::faults::{Fault, Mood};
    use tailrace_testkit::{Judge, Record};

    fn sink(fault: Fault) -> Sink {
        let mut mood = Mood::new(1);
        (mood.fault, mood.percent) = (fault, 100);
        let groups = [("a", 1), ("b", 2)].map(|(name, end)| Group {
            name: name.to_owned(),
            end,
        });
        Sink::new(groups.into(), mood)
    }

    fn records(texts: &[String]) -> Vec<Record> {
        let of = |text: &String| Record {
            log: LogRecord {
                body: Some(AnyValue {
                    value: Some(Value::StringValue(text.clone())),
                }),
                ..LogRecord::default()
            },
            resource: Arc::default(),
            scope: Arc::default(),
            request: 0,
        };
        texts.iter().map(of).collect()
    }

    fn line(stream: u32, sequence: u64) -> String {
        String::from_utf8_lossy(&record::line(stream, sequence)).into_owned()
    }

    fn lines(sequences: &[u64]) -> Vec<Record> {
        let texts: Vec<String> = sequences.iter().map(|seq| line(1, *seq)).collect();
        records(&texts)
    }

    #[test]
    fn gaps_repeats_disorder_and_torn_records_are_seen() {
        let sink = sink(Fault::None);
        sink.accept(&lines(&[0, 1, 3]));
        sink.accept(&lines(&[2, 3]));
        let broken = &line(1, 4)[1..];
        sink.accept(&records(&[broken.to_owned(), line(9, 0)]));
        let state = sink.lock();
        let tally = &state.streams[1];
        assert_eq!((tally.low, tally.resolved), (4, 4));
        assert_eq!((tally.repeated, tally.excused, tally.disorder), (1, 0, 1));
        assert_eq!(state.repeated_bytes, [0, record::line(1, 3).len() as u64]);
        assert_eq!(state.torn, [2, 0]);
    }

    #[test]
    fn the_end_of_a_record_is_torn_unless_it_arrived_whole_and_is_marked() {
        let sink = sink(Fault::None);
        let end = || {
            let mut records = records(&[line(1, 4)[1..].to_owned()]);
            records[0].log.attributes = vec![KeyValue {
                key: "tailrace.truncated".to_owned(),
                value: Some(AnyValue {
                    value: Some(Value::BoolValue(true)),
                }),
                ..KeyValue::default()
            }];
            records
        };
        let counted = || {
            let state = sink.lock();
            (state.torn[0], state.ends[0])
        };
        sink.accept(&end());
        // Nothing is known to be deleted, then it has not arrived.
        assert_eq!(counted(), (1, 0));
        sink.lock().beheaded.push((1, 4));
        sink.accept(&end());
        assert_eq!(counted(), (2, 0));
        sink.accept(&lines(&[4]));
        sink.accept(&end());
        assert_eq!(counted(), (2, 1));
        let mut unmarked = end();
        unmarked[0].log.attributes.clear();
        sink.accept(&unmarked);
        assert_eq!(counted(), (3, 1));
    }

    #[test]
    fn a_repeat_is_excused_once_when_the_answer_may_be_lost() {
        let sink = sink(Fault::Half);
        sink.accept(&lines(&[0, 1]));
        sink.lock().mood.fault = Fault::None;
        sink.accept(&lines(&[0]));
        sink.accept(&lines(&[0]));
        let state = sink.lock();
        assert_eq!(
            (state.streams[1].excused, state.streams[1].repeated),
            (1, 1)
        );
    }

    #[test]
    fn rejected_records_are_resolved_and_refused_ones_are_not() {
        let sink = sink(Fault::Partial);
        sink.accept(&lines(&[0, 1]));
        assert!(sink.refuses().is_none());
        sink.lock().mood.fault = Fault::Status(503);
        assert!(sink.refuses().is_some());
        let mut state = sink.lock();
        let tally = &state.streams[1];
        assert!(tally.rejected.get(1) && !tally.arrived.get(1) && tally.arrived.get(0));
        assert_eq!((tally.low, tally.resolved), (2, 2));
        state.mood.fault = Fault::None;
        state.mood.poison = Some(|of| of.sequence == 5);
        drop(state);
        sink.accept(&lines(&[4, 5]));
        assert_eq!(sink.lock().streams[1].resolved, 2);
    }
}
