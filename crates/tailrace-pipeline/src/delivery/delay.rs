//! How long it took from reading a batch to the acknowledgement of an output: a histogram for Prometheus, and its sums
//! for the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::labels::OutputLabels;

/// Seconds: from the answer of a near receiver to an outage of a day.
const BOUNDS: [f64; 14] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0, 86_400.0,
];

/// The delays of one output.
#[derive(Debug, Clone)]
pub(crate) struct Delays {
    histogram: Histogram,
    sums: Arc<Sums>,
}

/// The delays of all outputs: one goes on with its own when its pipeline is built anew.
#[derive(Debug, Clone)]
pub(crate) struct DelayFamily {
    /// What is registered.
    pub(crate) histograms: Family<OutputLabels, Histogram>,
    sums: Family<OutputLabels, Arc<Sums>>,
}

#[derive(Debug, Default)]
struct Sums {
    batches: AtomicU64,
    total_us: AtomicU64,
    max_us: AtomicU64,
}

/// The delays of the batches that an output acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DelaySums {
    /// How many batches.
    pub batches: u64,
    /// Their delays together.
    pub total: Duration,
    /// The longest.
    pub max: Duration,
}

// A histogram has no default.
impl Default for DelayFamily {
    fn default() -> Self {
        Self {
            histograms: Family::new_with_constructor(|| Histogram::new(BOUNDS)),
            sums: Family::default(),
        }
    }
}

impl DelayFamily {
    /// Those of one output.
    pub(crate) fn of(&self, labels: &OutputLabels) -> Delays {
        Delays {
            histogram: self.histograms.get_or_create_owned(labels),
            sums: self.sums.get_or_create_owned(labels),
        }
    }
}

impl Delays {
    /// A batch was acknowledged so long after it was read.
    pub(crate) fn observe(&self, delay: Duration) {
        self.histogram.observe(delay.as_secs_f64());
        let us = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        self.sums.batches.fetch_add(1, Ordering::Relaxed);
        self.sums.total_us.fetch_add(us, Ordering::Relaxed);
        self.sums.max_us.fetch_max(us, Ordering::Relaxed);
    }

    /// What was observed so far.
    pub(crate) fn sums(&self) -> DelaySums {
        let us = |n: &AtomicU64| Duration::from_micros(n.load(Ordering::Relaxed));
        DelaySums {
            batches: self.sums.batches.load(Ordering::Relaxed),
            total: us(&self.sums.total_us),
            max: us(&self.sums.max_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_goes_on_with_its_delays_when_it_is_built_anew() {
        let family = DelayFamily::default();
        let labels = |output: &str| OutputLabels {
            pipeline: "app".to_owned(),
            output: output.to_owned(),
        };
        let second = Duration::from_secs(1);
        family.of(&labels("a")).observe(second);
        let anew = family.of(&labels("a"));
        anew.observe(3 * second);
        let expected = DelaySums {
            batches: 2,
            total: 4 * second,
            max: 3 * second,
        };
        assert_eq!(anew.sums(), expected);
        assert_eq!(family.of(&labels("b")).sums(), DelaySums::default());
    }
}
