//! How the kubelet treats logs, as it tells itself.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::cluster::NAME;

pub(crate) struct Kubelet {
    /// Bytes at which it rotates a log.
    pub(crate) rotate_bytes: u64,
    /// Seconds in which a fast writer fills that.
    pub(crate) rotate_seconds: u64,
    /// The file of a static pod, where it reads such files from a directory of this machine.
    pub(crate) static_pod: Option<PathBuf>,
}

impl Kubelet {
    /// Takes its configuration; what that does not say is as Kubernetes has it by default.
    pub(crate) fn new(config: &Value) -> Kubelet {
        let text = |key: &str| config[key].as_str();
        let looks = text("containerLogMonitorInterval")
            .and_then(seconds)
            .unwrap_or(10);
        let pods = text("staticPodPath")
            .map(Path::new)
            .filter(|dir| dir.is_dir());
        Kubelet {
            rotate_bytes: text("containerLogMaxSize")
                .and_then(bytes)
                .unwrap_or(10 << 20),
            // It looks a few times while a file grows to its size: no file becomes much longer.
            rotate_seconds: (3 * looks).max(8),
            static_pod: pods.map(|dir| dir.join(format!("{NAME}.json"))),
        }
    }
}

/// A size as Kubernetes writes it: `10Mi`.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|one: char| one.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return None,
    };
    Some(digits.parse::<u64>().ok()? * unit)
}

/// A time as Kubernetes writes it, if it is whole seconds: `10s`.
fn seconds(text: &str) -> Option<u64> {
    text.strip_suffix('s')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read_as_kubernetes_writes_them() {
        assert_eq!(
            [bytes("1Mi"), bytes("512Ki"), bytes("7"), bytes("1Xi")],
            [Some(1 << 20), Some(512 << 10), Some(7), None]
        );
        assert_eq!(
            [seconds("3s"), seconds("1m0s"), seconds("x")],
            [Some(3), None, None]
        );
    }
}
