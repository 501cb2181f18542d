//! What this process uses and what it may use: CPU time, memory, cgroup limits.
//!
//! The numbers come from `/proc` and `/sys/fs/cgroup`. A number that the system
//! does not provide is `None`, never an error and never a guess. The parsers are pure.

use std::fs;
use std::path::Path;
use std::time::Duration;

mod cgroup;

pub use cgroup::Cgroup;

/// Memory of this process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Resident now.
    pub resident: u64,
    /// The part of `resident` that no file backs: heap and stacks.
    pub anonymous: u64,
    /// The highest `resident` so far.
    pub peak: u64,
}

/// CPU time of this process so far, user and system, all threads, in steps of
/// 10 ms.
pub fn cpu_time() -> Option<Duration> {
    parse_stat(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Memory of this process now.
pub fn memory() -> Option<Memory> {
    parse_status(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Files, sockets and pipes that this process has open.
pub fn open_descriptors() -> Option<u64> {
    // The directory itself is open while it is counted.
    let entries = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    Some(entries.saturating_sub(1))
}

/// The limits of the cgroup this process runs in.
pub fn cgroup() -> Cgroup {
    Cgroup::read(Path::new("/"))
}

/// The kernel reports CPU time in ticks of this length on every architecture we
/// build for (`USER_HZ` is 100, whatever the kernel's own tick).
const TICK: Duration = Duration::from_millis(10);

/// utime and stime of `/proc/PID/stat`: fields 14 and 15, counted behind the
/// command's name, which may itself hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<Duration> {
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * user.checked_add(system)?)
}

/// `VmRSS`, `RssAnon` and `VmHWM` of `/proc/PID/status`.
fn parse_status(text: &str) -> Option<Memory> {
    let field = |name: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
        kib.checked_mul(1024)
    };
    Some(Memory {
        resident: field("VmRSS")?,
        anonymous: field("RssAnon")?,
        peak: field("VmHWM")?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_any_command_name() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194304 3 0 0 0 250 75 9 9 20 0 1 0 5 0 0";
        assert_eq!(parse_stat(stat), Some(Duration::from_millis(3250)));
        assert_eq!(parse_stat("12 (short) S 1"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    300 kB\nVmRSS:\t    200 kB\nRssAnon:\t      50 kB\n";
        let expected = Memory {
            resident: 200 << 10,
            anonymous: 50 << 10,
            peak: 300 << 10,
        };
        assert_eq!(parse_status(status), Some(expected));
        assert_eq!(parse_status("VmRSS:\t200 kB\n"), None);
        assert_eq!(
            parse_status("VmRSS: x kB\nRssAnon: 1 kB\nVmHWM: 1 kB\n"),
            None
        );
    }

    #[test]
    fn this_process_has_both() {
        let memory = memory().unwrap();
        assert!(memory.anonymous > 0 && memory.resident <= memory.peak);
        let before = cpu_time().unwrap();
        let mut sum = 0u64;
        while cpu_time().unwrap() == before {
            sum = std::hint::black_box(sum + 1);
        }
    }
}
