//! Whom a client of a Unix socket trusts: whoever could take the path while the agent is down would be sent the token.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, bail};
use tokio::net::UnixStream;

/// Checks who listens on a socket, before anything is sent.
///
/// # Errors
///
/// It is not root, this user or the owner of the directory of the socket.
pub(crate) fn check(stream: &UnixStream, socket: &Path) -> anyhow::Result<()> {
    let shown = || socket.display().to_string();
    let peer = stream.peer_cred().with_context(shown)?.uid();
    let directory = socket.parent().unwrap_or(Path::new("/"));
    let owner = fs::metadata(directory).with_context(shown)?.uid();
    let own = rustix::process::geteuid().as_raw();
    if !is_trusted(peer, own, owner) {
        bail!(
            "user {peer} listens on {}, and is neither root nor this user nor the owner of that directory: find out who \
             that is; if it is the agent's user, make it the owner of the directory",
            socket.display()
        );
    }
    Ok(())
}

fn is_trusted(peer: u32, own: u32, owner: u32) -> bool {
    [0, own, owner].contains(&peer)
}

#[cfg(test)]
mod tests {
    use super::is_trusted;

    #[test]
    fn root_this_user_and_the_owner_of_the_directory_are_trusted() {
        for (peer, own, owner, expect) in [
            (0, 1000, 500, true),
            (1000, 1000, 500, true),
            (500, 0, 500, true),
            (501, 0, 500, false),
            // As in /tmp.
            (501, 1000, 0, false),
            (501, 0, 0, false),
        ] {
            assert_eq!(is_trusted(peer, own, owner), expect, "{peer} {own} {owner}");
        }
    }
}
