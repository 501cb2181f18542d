//! The listener of the admin endpoint: TCP, or a Unix socket that only its user may connect to.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, fchmod};
use socket2::{Domain, SockAddr, Socket, Type};
use tailrace_config::AdminAddress;
use tailrace_files::Access;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 256;
/// What the kernel keeps for a connection over TCP, in each direction.
const SOCKET_BYTES: u32 = 32 * 1024;

/// Who sends a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peer {
    /// Somebody at this address.
    Tcp(SocketAddr),
    /// A process on this machine that may open the socket: its mode is 0600.
    Unix,
}

/// A connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What connections are accepted from.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

impl Listener {
    /// Binds an address. Needs to be called in a runtime.
    ///
    /// # Errors
    ///
    /// Those of the system; for a Unix socket, that something else is at its path or its directory is open to everybody.
    pub(super) fn bind(address: &AdminAddress) -> io::Result<Self> {
        match address {
            AdminAddress::Tcp(address) => Ok(Self::Tcp(bind_tcp(*address)?)),
            AdminAddress::Unix(path) => {
                check_mount(path)?;
                let (listener, file) = bind_unix(path)?;
                Ok(Self::Unix(listener, file))
            }
        }
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(super) fn address(&self) -> io::Result<AdminAddress> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(AdminAddress::Tcp),
            Self::Unix(_, file) => Ok(AdminAddress::Unix(file.path.clone())),
        }
    }

    /// The next connection.
    ///
    /// # Errors
    ///
    /// Those of the system.
    pub(super) async fn accept(&self) -> io::Result<(Box<dyn Stream>, Peer)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Box::new(stream), Peer::Tcp(peer)))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), Peer::Unix))
            }
        }
    }
}

/// The name of a socket. Dropping it removes the name, unless somebody else has it by now.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if id_of(&self.path).is_ok_and(|id| id == self.id) {
            // The next start replaces what stays.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn id_of(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Listens on a Unix socket that only its user may connect to. Needs to be called in a runtime.
///
/// # Errors
///
/// Those of the system, and those of [`can_bind`], except that the root of a mount may be open to everybody.
pub(crate) fn bind_unix(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    if look(path)? == Found::Stale {
        fs::remove_file(path)?;
    }
    let socket = UnixSocket::new_stream()?;
    // The name gets this mode when it is made. It is made anew: nothing at the path is followed or replaced.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    socket.bind(path)?;
    let file = SocketFile {
        path: path.to_owned(),
        id: id_of(path)?,
    };
    Ok((socket.listen(BACKLOG)?, file))
}

/// What is at the path of a socket that may be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// A socket that nobody listens on: an earlier agent left it.
    Stale,
}

/// Whether a socket could be bound to this path. Changes nothing.
///
/// # Errors
///
/// Something else is there, or the directory is missing or open to everybody. [`ErrorKind::AddrInUse`]: a process listens
/// there.
pub(crate) fn can_bind(path: &Path) -> io::Result<Found> {
    check_mount(path)?;
    look(path)
}

fn look(path: &Path) -> io::Result<Found> {
    check_directory(directory_of(path))?;
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    if !meta.file_type().is_socket() {
        let text = "something that is no socket is at this path: remove it, or choose another path";
        return Err(refused(text));
    }
    let user = rustix::process::geteuid();
    if meta.uid() != user.as_raw() && !user.is_root() {
        return Err(refused(format_args!(
            "the socket at this path belongs to user {}: remove it, or choose another path",
            meta.uid()
        )));
    }
    match try_connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Found::Stale),
        // A full backlog is a listener, too.
        Ok(()) => Err(in_use()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(in_use()),
        Err(error) => Err(error),
    }
}

/// Connects and closes. Does not wait where the backlog is full, as that of a process that hangs: that is
/// [`ErrorKind::WouldBlock`].
fn try_connect(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&SockAddr::unix(path)?)
}

fn directory_of(socket: &Path) -> &Path {
    socket.parent().unwrap_or(Path::new("/"))
}

/// Whoever may write to the directory of a socket can put another one in its place, or take it while nobody listens:
/// that it is sticky, as /tmp is, does not help.
fn check_directory(directory: &Path) -> io::Result<()> {
    let access = tailrace_files::access(directory).map_err(|error| {
        let text = format!(
            "its directory {} cannot be used: {error}",
            directory.display()
        );
        io::Error::new(error.kind(), text)
    })?;
    match access {
        Access::Everybody => Err(is_open(directory)),
        Access::Limited | Access::EverybodyByMount => Ok(()),
    }
}

/// The root of a mount may be open because its user cannot choose, as in a pod. If it is sticky, it is made for many
/// users, as /tmp is.
fn check_mount(socket: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    let directory = directory_of(socket);
    let is_sticky = fs::metadata(directory).is_ok_and(|meta| meta.mode() & STICKY != 0);
    match tailrace_files::access(directory) {
        Ok(Access::EverybodyByMount) if is_sticky => Err(is_open(directory)),
        // What else is wrong with it is found next.
        _ => Ok(()),
    }
}

fn is_open(directory: &Path) -> io::Error {
    refused(format_args!(
        "everybody may write to its directory {}, so that another user can take this path: choose a directory that only \
         the agent's user may write to, such as `data_dir`",
        directory.display()
    ))
}

fn in_use() -> io::Error {
    io::Error::new(ErrorKind::AddrInUse, "a process listens on this socket")
}

fn refused(why: impl fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn bind(path: &Path) -> io::Result<Listener> {
        Listener::bind(&AdminAddress::Unix(path.to_owned()))
    }

    #[tokio::test]
    async fn a_socket_is_for_its_user_alone_and_goes_with_its_listener() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let listener = bind(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let (client, accepted) =
            tokio::join!(tokio::net::UnixStream::connect(&path), listener.accept());
        assert_eq!((client.is_ok(), accepted.unwrap().1), (true, Peer::Unix));
        drop(listener);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_that_was_left_is_replaced_and_one_in_use_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        // Its name stays.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert_eq!(can_bind(&path).unwrap(), Found::Stale);
        let first = bind(&path).unwrap();
        assert_eq!(bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        assert!(tokio::net::UnixStream::connect(&path).await.is_ok());
        // Somebody else's name at the path is not removed.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "other").unwrap();
        drop(first);
        assert_eq!(fs::read(&path).unwrap(), b"other");
    }

    #[tokio::test]
    async fn nothing_else_is_replaced_or_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let why = |name: &str| bind(&at(name)).unwrap_err().to_string();
        fs::write(at("file"), "x").unwrap();
        fs::create_dir(at("dir")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(at("left.sock")).unwrap());
        symlink(at("left.sock"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        for name in ["file", "dir", "link", "dangling"] {
            assert!(why(name).contains("no socket"), "{name}: {}", why(name));
        }
        assert!(!at("nothing").exists());
        assert!(why("missing/a.sock").contains("its directory"));
        fs::set_permissions(at("dir"), PermissionsExt::from_mode(0o777)).unwrap();
        assert!(why("dir/a.sock").contains("everybody may write"));
        // That it is sticky keeps nobody from taking the path first.
        fs::set_permissions(at("dir"), PermissionsExt::from_mode(0o1777)).unwrap();
        assert!(why("dir/a.sock").contains("such as `data_dir`"));
        assert!(can_bind(&at("dir/a.sock")).is_err());
        fs::set_permissions(at("dir"), PermissionsExt::from_mode(0o770)).unwrap();
        assert!(bind(&at("dir/a.sock")).is_ok());
        // Where they are, whether they are mounts or not.
        for shared in ["/tmp", "/dev/shm"] {
            if fs::metadata(shared).is_ok_and(|meta| meta.mode() & 0o1002 == 0o1002) {
                let error = can_bind(&Path::new(shared).join("tailrace-none.sock")).unwrap_err();
                assert!(error.to_string().contains("everybody may write"), "{error}");
            }
        }
    }

    #[tokio::test]
    async fn a_process_that_hangs_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("admin.sock");
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(&path).unwrap();
        let _never_accepts = socket.listen(1).unwrap();
        while try_connect(&path).is_ok() {}
        assert_eq!(
            try_connect(&path).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        assert_eq!(can_bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
        assert_eq!(bind(&path).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
