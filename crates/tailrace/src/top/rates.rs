//! From cumulative counters to rates: those of the last seconds from overviews, those of the last 15 minutes from the
//! agent's history. It knows no clock: callers pass times.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::answer::{list, number, sum_of_outputs};

/// Rates are of so long, so that they are calm.
const WINDOW: Duration = Duration::from_secs(5);
const HISTORY_S: f64 = 900.0;
/// CPU per record is of six points: half a minute.
const CPU_POINTS: usize = 6;
/// Fewer records say nothing about the cost of a million.
const RECORDS_MIN: f64 = 200.0;

/// The overviews of the last seconds.
#[derive(Debug, Default)]
pub(super) struct Samples(VecDeque<(Instant, Value)>);

impl Samples {
    pub(super) fn push(&mut self, at: Instant, overview: Value) {
        let started = &overview["started_unix_s"];
        let is_restarted = self
            .last()
            .is_some_and(|last| last["started_unix_s"] != *started);
        if is_restarted {
            self.0.clear();
        }
        self.0.push_back((at, overview));
        // One that is older than the window stays, to cover it.
        while self.0.len() > 2 && at.saturating_duration_since(self.0[1].0) >= WINDOW {
            self.0.pop_front();
        }
    }

    /// The last overview.
    pub(super) fn last(&self) -> Option<&Value> {
        self.0.back().map(|(_, overview)| overview)
    }

    /// What a counter of a pipeline grows by in a second; NaN while that is unknown.
    fn rate(&self, name: &str, counter: impl Fn(&Value) -> f64) -> f64 {
        let mut known = self.0.iter().filter_map(|(at, overview)| {
            let pipelines = list(&overview["pipelines"]);
            let found = pipelines.iter().find(|one| one["name"] == name)?;
            Some((*at, counter(found)))
        });
        let (Some((start, from)), Some((end, to))) = (known.next(), known.next_back()) else {
            return f64::NAN;
        };
        let rate = (to - from) / end.saturating_duration_since(start).as_secs_f64();
        if rate >= 0.0 && rate.is_finite() {
            rate
        } else {
            f64::NAN
        }
    }

    /// What an output delivers in a second, in records and in bytes; both are names as in the overview.
    pub(super) fn output_rates(&self, pipeline: &Value, output: &Value) -> (f64, f64) {
        let rate = |key: &'static str| {
            self.rate(pipeline.as_str().unwrap_or(""), |one| {
                let outputs = list(&one["outputs"]);
                let found = outputs.iter().find(|one| one["name"] == *output);
                found.map_or(f64::NAN, |one| number(&one[key]))
            })
        };
        (rate("delivered"), rate("sent_bytes"))
    }

    /// The rates of a pipeline.
    pub(super) fn rates(&self, name: &str) -> Rates {
        let stage = |key: &'static str| self.rate(name, move |one| number(&one["stages"][key]));
        let output = |key: &'static str| self.rate(name, move |one| sum_of_outputs(one, key));
        Rates {
            read: stage("read_bytes"),
            records: stage("records"),
            filtered: stage("filtered"),
            encoded: output("encoded_bytes"),
            sent: output("sent_bytes"),
            delivered: output("delivered"),
        }
    }
}

/// What a pipeline does in a second; NaN is unknown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rates {
    /// Bytes read.
    pub(super) read: f64,
    /// Records framed.
    pub(super) records: f64,
    /// Records that the query removes.
    pub(super) filtered: f64,
    /// Bytes before compression.
    pub(super) encoded: f64,
    /// Bytes of requests.
    pub(super) sent: f64,
    /// Records accepted.
    pub(super) delivered: f64,
}

impl Rates {
    /// The share of records that the query keeps: now, else since the start.
    pub(super) fn kept(&self, stages: &Value) -> f64 {
        if self.records > 0.0 {
            1.0 - self.filtered / self.records
        } else {
            1.0 - number(&stages["filtered"]) / number(&stages["records"])
        }
    }
}

/// The points of the last 15 minutes, by their time in milliseconds, also across restarts of the agent.
#[derive(Debug, Default)]
pub(super) struct History(BTreeMap<u64, (Value, Value)>);

/// Values by time, the oldest first; NaN is unknown.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Bytes read in a second.
    pub(super) throughput: Vec<f64>,
    /// CPU seconds for a million records.
    pub(super) cpu: Vec<f64>,
    /// Resident bytes.
    pub(super) memory: Vec<f64>,
    /// Seconds from reading to acknowledgement.
    pub(super) delay: Vec<f64>,
}

impl History {
    /// Adds the points of an answer. Those of other starts stay.
    pub(super) fn merge(&mut self, answer: &Value, started: &Value) {
        for point in list(&answer["points"]) {
            let at_ms = number(&point["unix_s"]) * 1000.0;
            if at_ms.is_finite() && at_ms > 0.0 {
                let at_ms = at_ms as u64;
                self.0.insert(at_ms, (started.clone(), point.clone()));
            }
        }
        let newest = self.0.last_key_value().map_or(0, |(at, _)| *at);
        let oldest = newest.saturating_sub((HISTORY_S * 1000.0) as u64);
        self.0 = self.0.split_off(&oldest);
    }

    /// The series of a pipeline, as many values as a sparkline has columns.
    pub(super) fn series(&self, name: &str, columns: usize) -> Series {
        let points: Vec<_> = self.0.iter().collect();
        let newest = points.last().map_or(0.0, |(at, _)| **at as f64 / 1000.0);
        let mut series = Series::default();
        for (n, &(&at, (started, to))) in points.iter().enumerate() {
            let age = newest - at as f64 / 1000.0;
            let column = columns.saturating_sub(1) as f64 * (1.0 - age / HISTORY_S);
            let column = column.max(0.0) as usize;
            let before = |back: usize| {
                let (_, (other, from)) = points.get(n.checked_sub(back)?)?;
                (other == started).then_some(from)
            };
            let seconds = |from: &Value| number(&to["unix_s"]) - number(&from["unix_s"]);
            let grown = |from: &Value, key: &str| of(to, name, key) - of(from, name, key);
            let one = before(1);
            let throughput = one.map_or(f64::NAN, |from| grown(from, "read_bytes") / seconds(from));
            let delay = one.map_or(f64::NAN, |from| {
                grown(from, "delay_total_s") / grown(from, "delay_batches")
            });
            let cpu = before(CPU_POINTS).map_or(f64::NAN, |from| cpu_per_million(from, to));
            put(&mut series.throughput, column, throughput);
            put(&mut series.delay, column, delay);
            put(&mut series.cpu, column, cpu);
            put(&mut series.memory, column, number(&to["resident_bytes"]));
        }
        series
    }
}

fn cpu_per_million(from: &Value, to: &Value) -> f64 {
    let records = |point: &Value| -> f64 {
        let pipelines = list(&point["pipelines"]).iter();
        pipelines.map(|one| number(&one["records"])).sum()
    };
    let records = records(to) - records(from);
    if records < RECORDS_MIN {
        return f64::NAN;
    }
    (number(&to["cpu_seconds"]) - number(&from["cpu_seconds"])) / records * 1e6
}

/// A number of a pipeline at a point.
fn of(point: &Value, name: &str, key: &str) -> f64 {
    let pipelines = list(&point["pipelines"]);
    let found = pipelines.iter().find(|one| one["name"] == name);
    found.map_or(f64::NAN, |one| number(&one[key]))
}

/// The last known value of a column stays.
fn put(values: &mut Vec<f64>, column: usize, value: f64) {
    if values.len() <= column {
        values.resize(column + 1, f64::NAN);
    }
    if value.is_finite() && value >= 0.0 {
        values[column] = value;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn overview(started: u64, records: u64) -> Value {
        json!({"started_unix_s": started, "pipelines": [
            {"name": "app", "stages": {"records": records, "filtered": 0}, "outputs": [{"sent_bytes": records}, {"sent_bytes": 0}]},
        ]})
    }

    #[test]
    fn rates_are_of_the_last_seconds_and_of_one_start() {
        let mut samples = Samples::default();
        let start = Instant::now();
        for second in 0..20 {
            samples.push(
                start + Duration::from_secs(second),
                overview(1, second * second),
            );
        }
        let rates = samples.rates("app");
        // From 14² to 19² in five seconds.
        assert_eq!((rates.records, rates.sent), (33.0, 33.0));
        assert!(rates.read.is_nan());
        assert!(samples.rates("other").records.is_nan());
        samples.push(start + Duration::from_secs(21), overview(2, 7));
        assert!(samples.rates("app").records.is_nan());
        samples.push(start + Duration::from_secs(22), overview(2, 3));
        assert!(samples.rates("app").records.is_nan());
    }

    #[test]
    fn a_restart_leaves_a_hole_and_no_negative_value() {
        let point = |at: u64, bytes: u64| {
            json!({"unix_s": at, "resident_bytes": 5, "cpu_seconds": at, "pipelines": [
                {"name": "app", "read_bytes": bytes, "records": bytes, "delay_total_s": at as f64 / 2.0, "delay_batches": at},
            ]})
        };
        let mut history = History::default();
        let points: Vec<_> = (0..8).map(|n| point(1000 + 5 * n, 1000 * n)).collect();
        history.merge(&json!({"points": points}), &json!(1));
        history.merge(
            &json!({"points": [point(1040, 0), point(1045, 50)]}),
            &json!(2),
        );
        let series = history.series("app", 181);
        let last = &series.throughput[170..];
        assert!(last[1].is_nan() && last[9].is_nan(), "{last:?}");
        assert_eq!((last[2], last[8], last[10]), (200.0, 200.0, 10.0));
        assert_eq!(series.delay[180], 0.5);
        assert_eq!(series.memory[179], 5.0);
        // 30 seconds for 6,000 records.
        assert_eq!(series.cpu[178], 5000.0);
        // After a quarter of an hour nothing of it is left.
        history.merge(&json!({"points": [point(5000, 0)]}), &json!(2));
        assert_eq!(history.0.len(), 1);
    }

    #[test]
    fn nonsense_is_unknown() {
        let mut history = History::default();
        for points in [
            json!(7),
            json!([{"unix_s": "x"}, {"unix_s": -1}, 3, {"unix_s": 1e300}]),
        ] {
            history.merge(&json!({"points": points}), &Value::Null);
        }
        history.series("app", 0);
        let mut samples = Samples::default();
        samples.push(Instant::now(), json!([1]));
        assert!(samples.rates("app").records.is_nan());
    }
}
