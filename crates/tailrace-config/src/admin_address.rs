//! Where the admin endpoint listens: an IP address and port, or a Unix socket.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tailrace_schema::kind::Kind;
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::Shape;

/// What the path of a Unix socket begins with.
const UNIX: &str = "unix:";
/// The kernel keeps 108 bytes for the path of a socket, with a NUL at its end.
const PATH_BYTES_MAX: usize = 107;
/// What is expected, in errors.
const EXPECTED: &str = "an IP address and port such as `127.0.0.1:9464`, or a socket such as `unix:/run/tailrace/admin.sock`";

/// Where the admin endpoint listens, and where to ask it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminAddress {
    /// HTTP over TCP.
    Tcp(SocketAddr),
    /// HTTP over a Unix socket at this absolute path.
    Unix(PathBuf),
}

impl AdminAddress {
    /// The port, where there is one.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Tcp(address) => Some(address.port()),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

impl From<SocketAddr> for AdminAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<&Self> for AdminAddress {
    fn from(address: &Self) -> Self {
        address.clone()
    }
}

impl FromStr for AdminAddress {
    type Err = String;

    /// Reads `HOST:PORT`, where the host is an IP address, or `unix:/PATH`.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(path) = text.strip_prefix(UNIX) else {
            let address = text.parse().map(Self::Tcp);
            return address.map_err(|_| format!("expected {EXPECTED}"));
        };
        if !Path::new(path).is_absolute() || path.ends_with('/') || path.contains('\0') {
            return Err(
                "expected the absolute path of a socket after `unix:`, such as `unix:/run/tailrace/admin.sock`"
                    .to_owned(),
            );
        }
        if path.len() > PATH_BYTES_MAX {
            return Err(format!(
                "the path of a Unix socket has at most {PATH_BYTES_MAX} bytes, and this one has {}: choose a shorter one",
                path.len()
            ));
        }
        Ok(Self::Unix(path.into()))
    }
}

/// An address of the admin endpoint, as an option.
pub(crate) struct Listen;

impl Kind for Listen {
    type Value = AdminAddress;

    fn shape() -> Shape {
        Shape::Text("address")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<AdminAddress> {
        let resolved = reader.scalar(node, EXPECTED)?;
        let text = &resolved.text;
        match text.parse() {
            Ok(address) => Some(address),
            Err(why) => {
                reader.refuse_text(node, &resolved, EXPECTED, hint(text, why));
                None
            }
        }
    }
}

fn hint(text: &str, why: String) -> Option<String> {
    if text.starts_with(UNIX) {
        return Some(why);
    }
    if let Some(port) = text.strip_prefix("localhost:") {
        return Some(format!("write `127.0.0.1:{port}`"));
    }
    if let Some(port) = text.strip_prefix(':') {
        return Some(format!("write `0.0.0.0:{port}` for every interface"));
    }
    Path::new(text)
        .is_absolute()
        .then(|| format!("write `unix:{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for text in ["127.0.0.1:9464", "[::1]:0", "unix:/run/tailrace/a b.sock"] {
            let read: Result<AdminAddress, _> = text.parse();
            assert_eq!(read.map(|address| address.to_string()), Ok(text.to_owned()));
        }
        let long = format!("unix:/{}", "x".repeat(PATH_BYTES_MAX));
        for (text, why) in [
            ("", "IP address"),
            ("localhost:9464", "IP address"),
            ("/run/admin.sock", "IP address"),
            ("unix:", "absolute path"),
            ("unix:run/admin.sock", "absolute path"),
            ("unix:/run/", "absolute path"),
            ("unix:/run/\0", "absolute path"),
            (&long, "at most 107 bytes, and this one has 108"),
        ] {
            let read: Result<AdminAddress, String> = text.parse();
            assert!(
                read.as_ref().is_err_and(|error| error.contains(why)),
                "{text}: {read:?}"
            );
        }
        assert!(long[..long.len() - 1].parse::<AdminAddress>().is_ok());
    }

    #[test]
    fn a_hint_says_what_was_meant() {
        let hint = |text: &str| hint(text, "why".to_owned());
        assert_eq!(hint("localhost:1").as_deref(), Some("write `127.0.0.1:1`"));
        assert_eq!(hint("/a.sock").as_deref(), Some("write `unix:/a.sock`"));
        assert_eq!(hint("unix:a").as_deref(), Some("why"));
        assert_eq!(hint("any"), None);
    }
}
