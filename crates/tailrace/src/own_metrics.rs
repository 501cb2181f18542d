//! Metrics of the process itself: which build it is, and what it uses. They have the usual names of Prometheus, are read
//! when they are asked for, and are left out where the system does not say.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::sysinfo;

/// Registers them. The process starts at `started`.
pub(crate) fn register(registry: &mut Registry, started: SystemTime) {
    let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
    let tailrace = registry.sub_registry_with_prefix("tailrace");
    tailrace.register("build", "the version of the agent", build);
    registry.register_collector(Box::new(Process { started }));
}

#[derive(Debug)]
struct Process {
    started: SystemTime,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut add = |name: &str, help: &str, unit: Option<&Unit>, metric: &dyn EncodeMetric| {
            let encoder = encoder.encode_descriptor(name, help, unit, metric.metric_type())?;
            metric.encode(encoder)
        };
        let started = self.started.duration_since(UNIX_EPOCH).unwrap_or_default();
        if let Some(cpu) = sysinfo::cpu_time() {
            let cpu = ConstCounter::new(cpu.as_secs_f64());
            let help = "CPU time of the process, user and system";
            add("process_cpu", help, Some(&Unit::Seconds), &cpu)?;
        }
        if let Some(memory) = sysinfo::memory() {
            let help = "resident memory of the process";
            let resident = ConstGauge::new(memory.resident);
            add(
                "process_resident_memory",
                help,
                Some(&Unit::Bytes),
                &resident,
            )?;
        }
        if let Some(open) = sysinfo::open_descriptors() {
            let help = "files, sockets and pipes that the process has open";
            add("process_open_fds", help, None, &ConstGauge::new(open))?;
        }
        let help = "when the process started, since the Unix epoch";
        let started = ConstGauge::new(started.as_secs_f64());
        add("process_start_time", help, Some(&Unit::Seconds), &started)
    }
}
