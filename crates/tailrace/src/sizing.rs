//! How many workers and how much in flight this machine affords: from the memory to plan with and the CPU quota.

use tailrace_config::{Config, MEMORY_DEFAULT};
use tailrace_pipeline::Sizes;

use crate::sysinfo::{self, Cgroup};

/// Memory to plan with where the config names none: 64 MiB, or half the cgroup's limit if less.
pub(crate) fn memory(config: &Config) -> u64 {
    memory_of(config.limits.memory, &sysinfo::cgroup())
}

/// Workers: what the config says, else as many as memory and the CPU quota allow. In flight: the memory that is left.
pub(crate) fn sizes(config: &Config) -> Sizes {
    let memory = memory(config);
    let workers = workers_of(config, memory, &sysinfo::cgroup());
    Sizes {
        workers,
        queue_bytes: config.in_flight_memory(memory, workers as u64),
    }
}

fn memory_of(configured: Option<u64>, cgroup: &Cgroup) -> u64 {
    configured.unwrap_or_else(|| {
        let half = cgroup.memory_limit.map_or(u64::MAX, |limit| limit / 2);
        half.min(MEMORY_DEFAULT)
    })
}

fn workers_of(config: &Config, memory: u64, cgroup: &Cgroup) -> usize {
    config.workers.unwrap_or_else(|| {
        let cores = cgroup.cpu_quota.map_or(2.0, f64::ceil).max(1.0) as u64;
        usize::try_from(config.workers_that_fit(memory).min(cores)).unwrap_or(1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn config() -> Config {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("c.yaml");
        let text = "pipelines: {app: {input: {type: stdin}, output: {type: stdout}}}";
        std::fs::write(&path, text).expect("a file");
        tailrace_config::load(&[path], &|_| None).expect("valid")
    }

    fn cgroup(cpu_quota: Option<f64>, memory_limit: Option<u64>) -> Cgroup {
        Cgroup {
            cpu_quota,
            memory_limit,
        }
    }

    #[test]
    fn workers_follow_memory_and_quota() {
        let mut config = config();
        let workers =
            |config: &Config, memory, quota| workers_of(config, memory * MIB, &cgroup(quota, None));
        assert_eq!(workers(&config, 64, None), 2);
        assert_eq!(workers(&config, 64, Some(0.5)), 1);
        assert_eq!(workers(&config, 96, Some(8.0)), 3);
        assert_eq!(workers(&config, 32, Some(8.0)), 1);
        assert_eq!(workers(&config, 256, Some(1.5)), 2);
        config.workers = Some(7);
        assert_eq!(workers(&config, 64, None), 7);
    }

    #[test]
    fn memory_is_half_of_a_small_limit() {
        assert_eq!(memory_of(None, &cgroup(None, None)), 64 * MIB);
        assert_eq!(memory_of(None, &cgroup(None, Some(100 * MIB))), 50 * MIB);
        assert_eq!(memory_of(Some(96 * MIB), &cgroup(None, Some(1))), 96 * MIB);
    }
}
