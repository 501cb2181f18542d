//! The limit on files that the process may hold open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

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
