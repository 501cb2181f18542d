//! What the benchmark found: lines while it runs, a Markdown table at its end, a row of a CSV for each agent.

use std::fmt;

use super::logs::Logs;
use super::node::Arrived;
use crate::child::Usage;
use crate::results::median;
use crate::samples::{Sample, peak};

/// An agent's runs.
pub(super) struct Contender {
    name: &'static str,
    pub(super) peaks: Vec<Peak>,
    pub(super) rate: Option<Rate>,
}

/// Logs that were there, read by an agent on one processor.
pub(super) struct Peak {
    records_per_second: f64,
    /// For a million records.
    cpu_seconds: f64,
    arrived: Arrived,
    resident: u64,
    anonymous: u64,
}

/// Logs that grew at a steady rate.
pub(super) struct Rate {
    /// Of one core.
    cpu_share: f64,
    arrived: Arrived,
    resident: Level,
    anonymous: Level,
}

/// Bytes over time.
struct Level {
    median: f64,
    peak: u64,
}

impl Peak {
    pub(super) fn new(logs: &Logs, usage: &Usage, arrived: Arrived, samples: &[Sample]) -> Peak {
        Peak {
            records_per_second: logs.records as f64 / usage.wall_seconds,
            cpu_seconds: usage.cpu_seconds * 1e6 / logs.records as f64,
            arrived,
            resident: usage.peak_bytes,
            anonymous: peak(samples, |sample| sample.anonymous),
        }
    }
}

impl Rate {
    pub(super) fn new(cpu_share: f64, arrived: Arrived, samples: &[Sample]) -> Rate {
        let level = |of: fn(&Sample) -> u64| Level {
            median: median(
                &samples
                    .iter()
                    .map(|sample| of(sample) as f64)
                    .collect::<Vec<f64>>(),
            ),
            peak: peak(samples, of),
        };
        Rate {
            cpu_share,
            arrived,
            resident: level(|sample| sample.resident),
            anonymous: level(|sample| sample.anonymous),
        }
    }
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

impl fmt::Display for Peak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} records/s, {:.2} CPU s per million, {:.0} MiB, {} bytes sent, {} records too many",
            self.records_per_second,
            self.cpu_seconds,
            mib(self.resident as f64),
            self.arrived.wire_bytes,
            self.arrived.excess
        )
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.4} core, {:.1} MiB resident, {:.1} MiB anonymous, {} bytes sent, {} records too many",
            self.cpu_share,
            mib(self.resident.median),
            mib(self.anonymous.median),
            self.arrived.wire_bytes,
            self.arrived.excess
        )
    }
}

/// One row per agent; figures of the peak are medians of its runs.
pub(super) const CSV_COLUMNS: &str = "agent,records,peak_records_per_second,peak_cpu_seconds_per_million_records,\
     peak_wire_bytes,peak_excess_records,peak_resident_bytes,peak_anonymous_bytes,steady_core,steady_wire_bytes,steady_excess_records,\
     steady_resident_median_bytes,steady_resident_peak_bytes,steady_anonymous_median_bytes,\
     steady_anonymous_peak_bytes,load_before";

impl Contender {
    pub(super) fn new(name: &'static str) -> Contender {
        Contender {
            name,
            peaks: Vec::new(),
            rate: None,
        }
    }

    fn median(&self, of: impl Fn(&Peak) -> f64) -> f64 {
        median(&self.peaks.iter().map(of).collect::<Vec<f64>>())
    }

    /// Records too many in the worst run at the peak.
    fn excess(&self) -> u64 {
        let runs = self.peaks.iter().map(|peak| peak.arrived.excess);
        runs.max().unwrap_or(0)
    }

    pub(super) fn csv(&self, records: u64, load: &str) -> Vec<String> {
        let of_rate = |of: &dyn Fn(&Rate) -> String| self.rate.as_ref().map_or(String::new(), of);
        vec![
            self.name.replace(',', ";"),
            records.to_string(),
            format!("{:.0}", self.median(|peak| peak.records_per_second)),
            format!("{:.3}", self.median(|peak| peak.cpu_seconds)),
            format!("{:.0}", self.median(|peak| peak.arrived.wire_bytes as f64)),
            self.excess().to_string(),
            format!("{:.0}", self.median(|peak| peak.resident as f64)),
            format!("{:.0}", self.median(|peak| peak.anonymous as f64)),
            of_rate(&|rate| format!("{:.4}", rate.cpu_share)),
            of_rate(&|rate| rate.arrived.wire_bytes.to_string()),
            of_rate(&|rate| rate.arrived.excess.to_string()),
            of_rate(&|rate| format!("{:.0}", rate.resident.median)),
            of_rate(&|rate| rate.resident.peak.to_string()),
            of_rate(&|rate| format!("{:.0}", rate.anonymous.median)),
            of_rate(&|rate| rate.anonymous.peak.to_string()),
            load.to_owned(),
        ]
    }
}

/// The table: the peak's columns first, then those of the steady rate.
pub(super) fn markdown(contenders: &[Contender], runs: u32) -> String {
    let mut text = format!(
        "Peaks are medians of {runs} runs, in turns. Of memory at the peak the highest, at the steady rate the median (highest) sample.\n\n\
         | agent | peak lines/s | CPU s per 1 M lines | records too many | MiB | anonymous MiB | core at 10,000 lines/s | MiB | anonymous MiB |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    );
    let level = |level: &Level| format!("{:.1} ({:.1})", mib(level.median), mib(level.peak as f64));
    for contender in contenders {
        let steady = match &contender.rate {
            None => " |  | ".to_owned(),
            Some(rate) => format!(
                "{:.3} | {} | {}",
                rate.cpu_share,
                level(&rate.resident),
                level(&rate.anonymous)
            ),
        };
        text.push_str(&format!(
            "| {} | {:.0} | {:.2} | {} | {:.0} | {:.0} | {steady} |\n",
            contender.name,
            contender.median(|peak| peak.records_per_second),
            contender.median(|peak| peak.cpu_seconds),
            contender.excess(),
            mib(contender.median(|peak| peak.resident as f64)),
            mib(contender.median(|peak| peak.anonymous as f64)),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peak_of(wall_seconds: f64) -> Peak {
        let logs = Logs {
            dir: "nowhere, so that nothing is removed".into(),
            records: 500_000,
            bytes: 1,
        };
        let usage = Usage {
            cpu_seconds: 1.0,
            peak_bytes: 64 << 20,
            wall_seconds,
            wire_bytes: 0,
        };
        let arrived = Arrived {
            wire_bytes: 7,
            excess: 3,
        };
        let sample = Sample {
            resident: 60 << 20,
            anonymous: 20 << 20,
        };
        Peak::new(&logs, &usage, arrived, &[sample])
    }

    #[test]
    fn a_contender_is_a_row() {
        let mut contender = Contender::new("A, B");
        contender.peaks = vec![peak_of(2.0), peak_of(1.0), peak_of(4.0)];
        let row = "| A, B | 250000 | 2.00 | 3 | 64 | 20 |";
        let table = markdown(&[contender], 3);
        assert_eq!(
            table.lines().last(),
            Some(format!("{row}  |  |  |").as_str())
        );

        let mut contender = Contender::new("A, B");
        contender.peaks = vec![peak_of(2.0)];
        let samples = [1, 2, 6].map(|n| Sample {
            resident: n << 21,
            anonymous: n << 20,
        });
        contender.rate = Some(Rate::new(0.0201, contender.peaks[0].arrived, &samples));
        let table = markdown(std::slice::from_ref(&contender), 1);
        let steady = format!("{row} 0.020 | 4.0 (12.0) | 2.0 (6.0) |");
        assert_eq!(table.lines().last(), Some(steady.as_str()));
        let csv = contender.csv(500_000, "1 2 3");
        assert_eq!(csv.len(), CSV_COLUMNS.split(',').count());
        assert_eq!(csv[0], "A; B");
    }
}
