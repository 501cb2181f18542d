//! What is measured: CPU time of the thread, not the time that passed, so that other programs on the machine (a second
//! bench, a build) move the figures little. Everything timed here runs on one thread.

use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};

use crate::corpus::Corpus;

/// CPU time of the current thread.
#[derive(Clone, Copy, Debug)]
pub struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = ThreadTime;
    type Value = Duration;

    fn start(&self) -> ThreadTime {
        ThreadTime::now()
    }

    fn end(&self, started: ThreadTime) -> Duration {
        started.elapsed()
    }

    fn add(&self, one: &Duration, other: &Duration) -> Duration {
        *one + *other
    }

    fn zero(&self) -> Duration {
        Duration::ZERO
    }

    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        // Nanoseconds all the same.
        const { &WallTime }.formatter()
    }
}

/// Few samples of many megabytes: what varies is the machine, not the code.
pub fn criterion() -> Criterion<CpuTime> {
    Criterion::default()
        .with_measurement(CpuTime)
        .sample_size(10)
        .warm_up_time(Duration::from_millis(150))
        .measurement_time(Duration::from_millis(600))
        .nresamples(1000)
        .without_plots()
}

/// A group whose results are told in lines and bytes of a corpus.
pub fn group<'a>(
    criterion: &'a mut Criterion<CpuTime>,
    name: &str,
    lines: u64,
    bytes: u64,
) -> BenchmarkGroup<'a, CpuTime> {
    let mut group = criterion.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group.throughput(Throughput::ElementsAndBytes {
        elements: lines,
        bytes,
    });
    group
}

/// As [`group`], for all of a corpus.
pub fn group_of<'a>(
    criterion: &'a mut Criterion<CpuTime>,
    name: &str,
    corpus: &Corpus,
) -> BenchmarkGroup<'a, CpuTime> {
    group(criterion, name, corpus.lines, corpus.bytes)
}
