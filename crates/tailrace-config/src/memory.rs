//! The memory that a configuration needs, beyond what the process takes before it has read anything.
//!
//! [`check`] computes the sum for a [`Config`] and refuses one that is above `limits.memory`. The factors were measured with
//! hostile input; `cargo xtask bench --memory --hostile` measures them again. This module never asks the machine.

use crate::root::Config;
use tailrace_schema::kind::MIB;
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::units::write_size;

/// `limits.memory` where the configuration names none, and the machine does not have less.
pub const MEMORY_DEFAULT: u64 = 64 * MIB;
/// What is resident before anything is read: pages of the program, the prepared queries, threads. At most, and not part
/// of `limits.memory`.
pub const MEMORY_BASE: u64 = 40 * MIB;

/// What all workers keep for each pipeline between batches, with the buffers of its reader; at least that of so many.
const EACH_PIPELINE: u64 = 512 * 1024;
const PIPELINES_MIN: u64 = 16;
/// Columns, tables and a request of a batch, however small it is.
const WORKER: u64 = 16 * MIB;
/// A batch is held as it was read, repaired, unescaped, encoded and compressed.
const TIMES_BATCH: u64 = 4;
/// A record that is longer than a batch is also put together from parts, and every step needs it in one piece.
const TIMES_RECORD: u64 = 24;
/// However little there is, batches must move.
const IN_FLIGHT_MIN: u64 = 4 * MIB;

impl Config {
    /// What one worker may take, with this much memory to plan with.
    #[must_use]
    pub fn worker_memory(&self, memory: u64) -> u64 {
        let pipelines = self.pipelines.values();
        let batch = pipelines.clone().map(|it| it.batch.max_bytes).max();
        let batch = batch.unwrap_or(MIB).min(in_flight_max(memory) / 2);
        let records = pipelines.flat_map(|it| {
            it.inputs
                .iter()
                .map(|input| input.records().max_record_bytes)
        });
        let record = records.max().unwrap_or(0).saturating_sub(MIB);
        WORKER + TIMES_BATCH * batch + TIMES_RECORD * record
    }

    /// How many bytes may be in flight, with this much memory and so many workers.
    #[must_use]
    pub fn in_flight_memory(&self, memory: u64, workers: u64) -> u64 {
        let others = self.worker_memory(memory).saturating_mul(workers) + self.kept_memory();
        let left = memory.saturating_sub(others).min(in_flight_max(memory));
        left.max(IN_FLIGHT_MIN)
    }

    /// How many workers this much memory is enough for; at least one.
    #[must_use]
    pub fn workers_that_fit(&self, memory: u64) -> u64 {
        let others = in_flight_max(memory) + self.kept_memory();
        let for_workers = memory.saturating_sub(others);
        (for_workers / self.worker_memory(memory)).max(1)
    }

    /// What is kept between batches.
    fn kept_memory(&self) -> u64 {
        EACH_PIPELINE * (self.pipelines.len() as u64).max(PIPELINES_MIN)
    }

    /// The least that `limits.memory` can be.
    #[must_use]
    pub fn memory_min(&self) -> u64 {
        let memory = self.limits.memory.unwrap_or(MEMORY_DEFAULT);
        let workers = self.workers.unwrap_or(1) as u64;
        workers.saturating_mul(self.worker_memory(memory)) + self.kept_memory() + IN_FLIGHT_MIN
    }
}

/// Most of the memory is for the workers.
fn in_flight_max(memory: u64) -> u64 {
    (memory / 4).max(IN_FLIGHT_MIN)
}

/// Refuses a config that does not fit, with the sum. Returns whether it fits.
pub(crate) fn check(config: &Config, node: &Node, reader: &mut Reader<'_>) -> bool {
    let memory = config.limits.memory.unwrap_or(MEMORY_DEFAULT);
    let needed = config.memory_min();
    if needed <= memory {
        return true;
    }
    let each = config.worker_memory(memory);
    let workers = config.workers.unwrap_or(1);
    let s = if workers == 1 { "" } else { "s" };
    let rounded = needed.next_multiple_of(MIB);
    let message = format!(
        "limits.memory: {} is not enough: {workers} worker{s} of {}, {} kept between batches and {} in flight are {}",
        write_size(memory),
        write_size(each.next_multiple_of(MIB)),
        write_size(config.kept_memory().next_multiple_of(MIB)),
        write_size(IN_FLIGHT_MIN),
        write_size(rounded),
    );
    let hint = "what a worker takes grows with batch.max_bytes (4 times) and with max_record_bytes above 1MiB (24 times), what is \
                kept by 512KiB for each pipeline beyond 16: lower them, or workers, or set limits.memory to the sum"
        .to_owned();
    let place = match config.limits.memory {
        Some(_) => node.nearest(&["limits", "memory"]),
        None if config.workers.is_some_and(|workers| workers > 1) => node.nearest(&["workers"]),
        None => node.nearest(&["pipelines"]),
    };
    reader.report(place.diagnostic(message).with_hint(hint));
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> Config {
        let text = format!(
            "pipelines: {{app: {{input: {{type: stdin{more}}}, limits: {{replay: 1GiB}}, output: {{type: stdout}}}}}}"
        );
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("c.yaml");
        std::fs::write(&path, text).expect("a file");
        crate::load(&[path], &|_| None).expect("valid")
    }

    #[test]
    fn workers_and_what_is_in_flight_share_the_memory() {
        let usual = config("");
        for (memory, workers, in_flight) in [(32, 1, 4), (50, 1, 12), (64, 2, 16), (256, 9, 64)] {
            assert_eq!(usual.workers_that_fit(memory * MIB), workers, "{memory}");
            let got = usual.in_flight_memory(memory * MIB, workers) / MIB;
            assert_eq!(got, in_flight, "{memory}");
            let workers = workers * usual.worker_memory(memory * MIB);
            let sum = workers + usual.kept_memory() + in_flight * MIB;
            assert!(sum <= memory * MIB, "{memory}");
        }
        assert_eq!(usual.in_flight_memory(MIB, 256), IN_FLIGHT_MIN);
    }

    #[test]
    fn what_is_not_enough_is_refused_with_the_sum() {
        let refused = |limits: &str, pipelines: usize| {
            let one = |n| {
                format!(
                    "p{n}: {{input: {{type: file, include: [/{n}]}}, output: {{type: stdout}}}}"
                )
            };
            let all: Vec<String> = (0..pipelines).map(one).collect();
            let text = format!("limits: {{{limits}}}\npipelines: {{{}}}", all.join(", "));
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("c.yaml");
            std::fs::write(&path, text).expect("a file");
            let loaded = crate::load(&[path], &|_| None);
            loaded.err().map(|wrong| wrong[0].to_string())
        };
        assert_eq!(refused("memory: 32MiB", 16), None);
        assert_eq!(refused("", 80), None);
        let said = refused("memory: 31MiB", 1).expect("refused");
        let sum = "1 worker of 20MiB, 8MiB kept between batches and 4MiB in flight are 32MiB";
        assert!(said.contains(sum), "{said}");
        let said = refused("", 81).expect("refused");
        assert!(said.contains("41MiB kept between batches"), "{said}");
    }

    #[test]
    fn long_records_take_many_times_their_length() {
        let usual = config("").worker_memory(64 * MIB);
        let long = config(", max_record_bytes: 2MiB").worker_memory(64 * MIB);
        assert_eq!(long - usual, 24 * MIB);
    }
}
