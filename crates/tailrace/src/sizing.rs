//! How many workers and how much in flight this machine affords: from the memory to plan with and the CPU quota.

use tailrace_config::Config;
use tailrace_pipeline::Sizes;

use crate::sysinfo::{self, Cgroup};

const MIB: u64 = 1024 * 1024;

/// Memory to plan with where the config names none: 64 MiB, or half the cgroup's limit if less.
pub(crate) fn memory(config: &Config) -> u64 {
    memory_of(config.limits.memory, &sysinfo::cgroup())
}

/// Workers: what the config says, else as many as memory and the CPU quota allow. In flight: the memory that is left.
pub(crate) fn sizes(config: &Config) -> Sizes {
    let memory = memory(config);
    let workers = workers_of(config.workers, memory, &sysinfo::cgroup());
    Sizes {
        workers,
        queue_bytes: queue_bytes_of(memory, workers),
    }
}

fn memory_of(configured: Option<u64>, cgroup: &Cgroup) -> u64 {
    configured.unwrap_or_else(|| {
        let half = cgroup.memory_limit.map_or(u64::MAX, |limit| limit / 2);
        half.min(64 * MIB)
    })
}

/// What the agent takes without a batch, and what each worker holds: a batch, its columns and its request.
const BASE: u64 = 24 * MIB;
const WORKER: u64 = 12 * MIB;

/// However little there is, batches must move.
fn queue_bytes_of(memory: u64, workers: usize) -> u64 {
    let others = BASE + WORKER.saturating_mul(workers as u64);
    memory.saturating_sub(others).max(4 * MIB)
}

fn workers_of(configured: Option<usize>, memory: u64, cgroup: &Cgroup) -> usize {
    configured.unwrap_or_else(|| {
        let affordable = memory.saturating_sub(BASE) / WORKER;
        let cores = cgroup.cpu_quota.map_or(2.0, f64::ceil).max(1.0) as u64;
        usize::try_from(affordable.min(cores).max(1)).unwrap_or(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cgroup(cpu_quota: Option<f64>, memory_limit: Option<u64>) -> Cgroup {
        Cgroup {
            cpu_quota,
            memory_limit,
        }
    }

    #[test]
    fn workers_follow_memory_and_quota() {
        let workers = |memory, quota| workers_of(None, memory * MIB, &cgroup(quota, None));
        assert_eq!(workers(64, None), 2);
        assert_eq!(workers(64, Some(0.5)), 1);
        assert_eq!(workers(64, Some(8.0)), 3);
        assert_eq!(workers(32, Some(8.0)), 1);
        assert_eq!(workers(256, Some(1.5)), 2);
        assert_eq!(workers_of(Some(7), 0, &cgroup(None, None)), 7);
    }

    #[test]
    fn what_is_left_is_in_flight() {
        assert_eq!(queue_bytes_of(64 * MIB, 2), 16 * MIB);
        assert_eq!(queue_bytes_of(32 * MIB, 1), 4 * MIB);
        assert_eq!(queue_bytes_of(MIB, 256), 4 * MIB);
        assert_eq!(queue_bytes_of(1024 * MIB, 4), 952 * MIB);
    }

    #[test]
    fn memory_is_half_of_a_small_limit() {
        assert_eq!(memory_of(None, &cgroup(None, None)), 64 * MIB);
        assert_eq!(memory_of(None, &cgroup(None, Some(100 * MIB))), 50 * MIB);
        assert_eq!(memory_of(Some(96 * MIB), &cgroup(None, Some(1))), 96 * MIB);
    }
}
