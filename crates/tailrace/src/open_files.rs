//! The limit on files that the process may hold open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tailrace_config::Config;
use tracing::warn;

/// What the agent opens besides log files: its own files, connections, inotify and epoll.
const OWN_FILES: u64 = 64;
/// What one input of files opens at least, where there are as many files: one log file each.
const FILES_PER_INPUT: u64 = 64;

/// Raises the soft limit to the hard one. It is low by default for programs that call `select`, and this is none.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(%error, "the limit on open files cannot be raised; it stays as it is");
    }
}

/// Warns where the limit is too small for the inputs of this config.
pub(crate) fn warn_if_few(config: &Config) {
    let inputs = config.pipelines.values().flat_map(|it| &it.inputs);
    let inputs = inputs.filter(|input| input.files().is_some()).count();
    let limit = getrlimit(Resource::Nofile).current;
    if let Some((limit, wanted)) = too_few(limit, inputs as u64) {
        warn!(
            limit,
            wanted,
            "the limit on open files is too small for this config: files are opened late, and one that is deleted by then \
             is missed; raise it: `ulimit -n 65536` in a shell, `LimitNOFILE=65536` in a systemd unit"
        );
    }
}

/// A limit that is too small for so many inputs of files, and the least that is enough.
fn too_few(limit: Option<u64>, inputs: u64) -> Option<(u64, u64)> {
    let wanted = OWN_FILES + FILES_PER_INPUT * inputs;
    let limit = limit?;
    (limit < wanted).then_some((limit, wanted))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_limit_is_too_small_for_so_many_inputs() {
        assert_eq!(too_few(Some(64), 1), Some((64, 128)));
        assert_eq!(too_few(Some(128), 1), None);
        assert_eq!(too_few(Some(1024), 20), Some((1024, 1344)));
        assert_eq!(too_few(None, 20), None);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let lower = Rlimit {
            current: maximum.map(|maximum| maximum - 1),
            maximum,
        };
        setrlimit(Resource::Nofile, lower).unwrap();
        assert_ne!(getrlimit(Resource::Nofile).current, maximum);
        for _ in 0..2 {
            raise_limit();
            assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        }
    }
}
