//! The socket in the data directory: made for the agent's user alone, and trusted by a client only if the user of that
//! directory listens there.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use tokio::net::{UnixListener, UnixStream};

use crate::admin::listen::{SocketFile, bind_unix};
use crate::admin_client::peer;

/// Its name in the data directory.
const NAME: &str = "tap.sock";
/// The longest path that the system takes.
const PATH_BYTES_MAX: usize = 107;

/// A socket that listens. Dropping it removes the file.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) listener: UnixListener,
    _file: SocketFile,
}

/// Listens in the data directory, which the caller holds: what an earlier agent left there is replaced. Needs to be called
/// in a runtime.
///
/// # Errors
///
/// The path is too long, something else has the name, or the directory cannot be written to.
pub(super) fn listen(data_dir: &Path) -> anyhow::Result<Socket> {
    let path = path(data_dir)?;
    let (listener, file) = bind_unix(&path).with_context(|| path.display().to_string())?;
    Ok(Socket {
        listener,
        _file: file,
    })
}

/// Whether a client is the agent's user, or root.
pub(super) fn is_trusted(client: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    client
        .peer_cred()
        .is_ok_and(|peer| [own, 0].contains(&peer.uid()))
}

/// Connects to the agent that holds a data directory. Needs to be called in a runtime.
///
/// # Errors
///
/// None listens there, or it may not be asked; what to do next is said.
pub(super) async fn connect(data_dir: &Path) -> anyhow::Result<UnixStream> {
    let path = path(data_dir)?;
    let stream = UnixStream::connect(&path).await;
    let stream = stream.map_err(|error| explained(&path, data_dir, &error))?;
    // Others may have made the socket if they may write to the directory.
    peer::check(&stream, &path)?;
    Ok(stream)
}

fn explained(path: &Path, data_dir: &Path, error: &io::Error) -> anyhow::Error {
    let (path, dir) = (path.display(), data_dir.display());
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow!(
            "no agent runs with the data directory {dir}: name another one with -c CONFIG or --data-dir DIR, or start it \
             with `tailrace run`"
        ),
        ErrorKind::PermissionDenied => anyhow!(
            "{path}: permission denied: only the agent's user and root may see its records, so run this command as one of \
             them"
        ),
        _ => anyhow!("{path}: {error}"),
    }
}

fn path(data_dir: &Path) -> anyhow::Result<PathBuf> {
    let path = data_dir.join(NAME);
    let bytes = path.as_os_str().len();
    if bytes > PATH_BYTES_MAX {
        bail!(
            "{} has {bytes} bytes, and the path of a socket at most {PATH_BYTES_MAX}: choose a shorter `data_dir`",
            path.display()
        );
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[tokio::test]
    async fn the_socket_is_its_users_alone_and_replaces_a_dead_one() {
        let dir = tempfile::tempdir().unwrap();
        let error = connect(dir.path()).await.unwrap_err().to_string();
        assert!(
            error.contains("no agent runs") && error.contains("--data-dir"),
            "{error}"
        );
        let socket = listen(dir.path()).unwrap();
        let path = dir.path().join(NAME);
        assert_eq!(mode(&path), 0o600);
        let client = connect(dir.path()).await.unwrap();
        let (served, _) = socket.listener.accept().await.unwrap();
        assert!(is_trusted(&served) && is_trusted(&client));
        // As after kill -9: the file stays, and nobody listens.
        let stale = path.with_extension("kept");
        fs::rename(&path, &stale).unwrap();
        drop(socket);
        fs::rename(&stale, &path).unwrap();
        let error = connect(dir.path()).await.unwrap_err().to_string();
        assert!(error.contains("no agent runs"), "{error}");
        let socket = listen(dir.path()).unwrap();
        connect(dir.path()).await.unwrap();
        drop(socket);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn what_is_no_socket_stays_and_a_long_path_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(NAME);
        let victim = dir.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let error = format!("{:#}", listen(dir.path()).unwrap_err());
        assert!(
            error.contains("that is no socket is at this path"),
            "{error}"
        );
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        let long = dir.path().join("d".repeat(100));
        for error in [
            listen(&long).unwrap_err(),
            connect(&long).await.unwrap_err(),
        ] {
            let text = error.to_string();
            assert!(
                text.contains("at most 107") && text.contains("data_dir"),
                "{text}"
            );
        }
    }
}
