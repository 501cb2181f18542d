//! Metrics of what the agent sends about itself. They are there while it does, so that an agent that sends nothing has
//! none of them.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::registry::Registry;
use tailrace_outputs::Signal;

use super::outbox::OUTBOX;

/// Why lines were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// They could not be sent before sending ended.
    Ended,
    /// The buffer was full.
    Full,
    /// The server will never accept them.
    Refused,
}

/// All of them, in their order, with the values of the label.
const REASONS: [(Reason, &str); 3] = [
    (Reason::Ended, "ended"),
    (Reason::Full, "full"),
    (Reason::Refused, "refused"),
];

/// What became of lines and requests. Every number only grows.
#[derive(Debug)]
pub(crate) struct Counts {
    is_shown: AtomicBool,
    delivered: AtomicU64,
    dropped: [AtomicU64; REASONS.len()],
    /// By signal; those that failed first.
    requests: [[AtomicU64; 2]; 2],
}

impl Counts {
    pub(super) const fn new() -> Self {
        Self {
            is_shown: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
            dropped: [const { AtomicU64::new(0) }; REASONS.len()],
            requests: [const { [const { AtomicU64::new(0) }; 2] }; 2],
        }
    }

    /// From now on the metrics are there.
    pub(crate) fn show(&self) {
        self.is_shown.store(true, Ordering::Relaxed);
    }

    pub(super) fn delivered(&self, lines: u64) {
        self.delivered.fetch_add(lines, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self, reason: Reason, lines: u64) {
        self.dropped[reason as usize].fetch_add(lines, Ordering::Relaxed);
    }

    pub(super) fn request(&self, signal: Signal, is_delivered: bool) {
        let counter = &self.requests[signal as usize][usize::from(is_delivered)];
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn delivered_lines(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub(super) fn dropped_for(&self, reason: Reason) -> u64 {
        self.dropped[reason as usize].load(Ordering::Relaxed)
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        if !self.is_shown.load(Ordering::Relaxed) {
            return Ok(());
        }
        let counter = MetricType::Counter;
        let name = "tailrace_telemetry_delivered_records";
        let help = "lines of the own log that the server of `telemetry` accepted";
        let metric = encoder.encode_descriptor(name, help, None, counter)?;
        ConstCounter::new(self.delivered_lines()).encode(metric)?;
        let name = "tailrace_telemetry_dropped_records";
        let help = "lines of the own log that were to be sent and were not";
        let mut metric = encoder.encode_descriptor(name, help, None, counter)?;
        for (reason, text) in REASONS {
            let labels = [("reason", text)];
            let value = ConstCounter::new(self.dropped_for(reason));
            value.encode(metric.encode_family(&labels)?)?;
        }
        let name = "tailrace_telemetry_requests";
        let help = "attempts to send own logs and metrics, by what came of them";
        let mut metric = encoder.encode_descriptor(name, help, None, counter)?;
        for signal in [Signal::Logs, Signal::Metrics] {
            for (index, result) in ["failure", "success"].into_iter().enumerate() {
                let labels = [("signal", signal.as_str()), ("result", result)];
                let count = self.requests[signal as usize][index].load(Ordering::Relaxed);
                ConstCounter::new(count).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

/// Registers the metrics of this process.
pub(crate) fn register(registry: &mut Registry) {
    registry.register_collector(Box::new(OfProcess));
}

#[derive(Debug)]
struct OfProcess;

impl Collector for OfProcess {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        OUTBOX.counts.encode(&mut encoder)
    }
}

/// Registers the metrics as they are while the agent sends something, for the page that lists all metrics.
#[cfg(test)]
pub(crate) fn register_example(registry: &mut Registry) {
    #[derive(Debug)]
    struct Example(Counts);

    impl Collector for Example {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            self.0.encode(&mut encoder)
        }
    }

    let counts = Counts::new();
    counts.show();
    registry.register_collector(Box::new(Example(counts)));
}
