//! Limits set by the cgroup of this process, version 2 or 1.
//!
//! A limit may stand at any level above the process, so the lowest on the way
//! up to the root of the hierarchy counts. In a container the path that
//! `/proc/self/cgroup` names is often not visible; then only the root is asked,
//! which is the container's own.

use std::fs;
use std::path::{Path, PathBuf};

/// What the cgroup allows; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cgroup {
    /// CPU seconds per second.
    pub cpu_quota: Option<f64>,
    /// Bytes of memory.
    pub memory_limit: Option<u64>,
}

impl Cgroup {
    /// Reads `proc/self/cgroup` and `sys/fs/cgroup` below `root`.
    pub(super) fn read(root: &Path) -> Cgroup {
        let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
        let mount = root.join("sys/fs/cgroup");
        // A mixed host lists both; the controllers are where version 1 names them.
        let quota_v1 = path_of(&text, "cpu").map(|path| {
            lowest(&mount.join("cpu"), path, |dir| {
                quota_v1(
                    &read(dir, "cpu.cfs_quota_us")?,
                    &read(dir, "cpu.cfs_period_us")?,
                )
            })
        });
        let memory_v1 = path_of(&text, "memory").map(|path| {
            lowest(&mount.join("memory"), path, |dir| {
                memory_v1(&read(dir, "memory.limit_in_bytes")?)
            })
        });
        let unified = path_of(&text, "").unwrap_or("/");
        Cgroup {
            cpu_quota: quota_v1
                .unwrap_or_else(|| lowest(&mount, unified, |dir| quota_v2(&read(dir, "cpu.max")?))),
            memory_limit: memory_v1.unwrap_or_else(|| {
                lowest(&mount, unified, |dir| {
                    read(dir, "memory.max")?.trim().parse().ok()
                })
            }),
        }
    }
}

fn read(dir: &Path, name: &str) -> Option<String> {
    fs::read_to_string(dir.join(name)).ok()
}

/// The path of a controller in `/proc/self/cgroup`, whose lines are
/// `id:controller,controller:/path`; version 2 has no controllers there.
fn path_of<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let controllers = parts.next()?;
        let path = parts.next()?;
        controllers
            .split(',')
            .any(|name| name == controller)
            .then_some(path)
    })
}

/// The lowest value on the way from `path` up to the mount itself.
fn lowest<T: PartialOrd>(
    mount: &Path,
    path: &str,
    value: impl Fn(&Path) -> Option<T>,
) -> Option<T> {
    let relative = PathBuf::from(path.trim_start_matches('/'));
    let dirs = relative.ancestors().map(|dir| mount.join(dir));
    dirs.filter_map(|dir| value(&dir))
        .reduce(|a, b| if b < a { b } else { a })
}

/// `max 100000` or `150000 100000`: microseconds per period.
fn quota_v2(text: &str) -> Option<f64> {
    let mut parts = text.split_ascii_whitespace();
    share(parts.next()?.parse().ok()?, parts.next()?.parse().ok()?)
}

/// The quota is -1 where there is none.
fn quota_v1(quota: &str, period: &str) -> Option<f64> {
    share(quota.trim().parse().ok()?, period.trim().parse().ok()?)
}

fn share(quota_us: i64, period_us: i64) -> Option<f64> {
    (quota_us > 0 && period_us > 0).then(|| quota_us as f64 / period_us as f64)
}

/// No limit is the largest multiple of the page size in an i64; nothing near
/// it is a real limit.
fn memory_v1(text: &str) -> Option<u64> {
    text.trim()
        .parse()
        .ok()
        .filter(|&bytes: &u64| bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Writes files below a new directory and reads the limits from there.
    fn check_cgroup(files: &[(&str, &str)]) -> Cgroup {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Cgroup::read(root.path())
    }

    #[test]
    fn version_2_takes_the_lowest_on_the_way_up() {
        let limits = check_cgroup(&[
            ("proc/self/cgroup", "0::/kubepods/pod1/c\n"),
            ("sys/fs/cgroup/kubepods/pod1/c/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/kubepods/pod1/cpu.max", "150000 100000\n"),
            ("sys/fs/cgroup/kubepods/cpu.max", "400000 100000\n"),
            ("sys/fs/cgroup/kubepods/pod1/c/memory.max", "67108864\n"),
            ("sys/fs/cgroup/kubepods/pod1/memory.max", "max\n"),
        ]);
        assert_eq!(
            limits,
            Cgroup {
                cpu_quota: Some(1.5),
                memory_limit: Some(64 << 20)
            }
        );
    }

    #[test]
    fn a_path_that_is_not_visible_leaves_the_root() {
        let limits = check_cgroup(&[
            ("proc/self/cgroup", "0::/not/here\n"),
            ("sys/fs/cgroup/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/memory.max", "1048576\n"),
        ]);
        assert_eq!(
            limits,
            Cgroup {
                cpu_quota: Some(0.5),
                memory_limit: Some(1 << 20)
            }
        );
    }

    #[test]
    fn version_1_keeps_its_controllers_apart() {
        let limits = check_cgroup(&[
            (
                "proc/self/cgroup",
                "4:memory:/m\n3:cpu,cpuacct:/docker/a\n1:name=systemd:/x\n0::/\n",
            ),
            ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "200000\n"),
            ("sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            (
                "sys/fs/cgroup/memory/m/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ]);
        assert_eq!(
            limits,
            Cgroup {
                cpu_quota: Some(2.0),
                memory_limit: None
            }
        );
    }

    #[test]
    fn no_files_and_nonsense_are_no_limits() {
        assert_eq!(check_cgroup(&[]), Cgroup::default());
        let nonsense = check_cgroup(&[
            ("proc/self/cgroup", "what\n::\n0::/\n"),
            ("sys/fs/cgroup/cpu.max", "fast\n"),
            ("sys/fs/cgroup/memory.max", "-5\n"),
        ]);
        assert_eq!(nonsense, Cgroup::default());
        assert_eq!(quota_v2("100000 0"), None);
    }
}
