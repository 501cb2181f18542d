//! The program and the machine: versions, limits, and which variables are set. Never their values, and not the host's name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::archive::Bundle;
use crate::printed;
use crate::sysinfo;

/// Files of the kernel that say what this process may use.
const LIMITS: [&str; 8] = [
    "/proc/self/limits",
    "/proc/self/cgroup",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/inotify/max_user_instances",
    "/proc/sys/fs/inotify/max_user_watches",
    "/proc/pressure/io",
];
/// Files of a cgroup, below its directory.
const CGROUP: [&str; 7] = [
    "cpu.max",
    "cpu.stat",
    "memory.current",
    "memory.max",
    "memory.events",
    "memory.pressure",
    "pids.max",
];
/// Of a file of the kernel no more is taken.
const FILE_BYTES_MAX: usize = 64 << 10;
/// Variables that the agent reads begin so.
const PREFIXES: [&str; 6] = [
    "TAILRACE_",
    "OTEL_",
    "K8S_",
    "KUBERNETES_",
    "SSL_CERT_",
    "NO_COLOR",
];

/// Adds all of it.
pub(super) fn add(bundle: &mut Bundle) {
    bundle.add("version.txt", "the program and the kernel", Ok(version()));
    bundle.add("limits.txt", "what the process may use", Ok(limits()));
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let what = "names of the variables that are set";
    bundle.add("variables.txt", what, Ok(variables(names)));
}

fn version() -> String {
    let kernel = rustix::system::uname();
    let parts = [
        kernel.sysname(),
        kernel.release(),
        kernel.version(),
        kernel.machine(),
    ];
    let parts = parts.map(|part| part.to_string_lossy().into_owned());
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    format!(
        "tailrace {}, for {} {}\nkernel {}\nsystem {}\nprocessors {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        parts.join(" "),
        printed::shown(system.unwrap_or("unknown").trim_matches('"')),
        std::thread::available_parallelism().map_or(0, usize::from),
    )
}

fn limits() -> String {
    let cgroup = sysinfo::cgroup();
    let mut text = format!(
        "limits of the cgroup that count: {:?} CPUs, {:?} bytes of memory\n",
        cgroup.cpu_quota, cgroup.memory_limit
    );
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = own
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap_or("");
    let root = Path::new("/sys/fs/cgroup");
    // In a container the path leads to nowhere, and the root is its own.
    let dir = Some(root.join(own)).filter(|dir| dir.is_dir());
    let dir = dir.unwrap_or_else(|| root.to_owned());
    let of_kernel = LIMITS.iter().map(|path| Path::new(path).to_owned());
    for path in of_kernel.chain(CGROUP.iter().map(|name| dir.join(name))) {
        let Ok(content) = fs::read_to_string(&path) else {
            continue;
        };
        let end = content.floor_char_boundary(FILE_BYTES_MAX);
        text.push_str(&format!("\n{}\n{}", path.display(), &content[..end]));
    }
    text
}

/// The names among them that the agent reads.
fn variables(names: impl Iterator<Item = String>) -> String {
    let is_read = |name: &String| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let names: BTreeSet<String> = names.filter(is_read).collect();
    names
        .into_iter()
        .map(|name| format!("{}\n", printed::shown(&name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_named() {
        let names = ["PATH", "OTEL_B", "TAILRACE_A\n", "HOME"].map(str::to_owned);
        assert_eq!(variables(names.into_iter()), "OTEL_B\nTAILRACE_A\\n\n");
    }

    #[test]
    fn the_machine_is_described_without_its_name() {
        let text = version() + &limits();
        let name = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        for part in ["kernel Linux", "Max open files", "limits of the cgroup"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(!version().contains(&name) || name.len() < 4);
    }
}
