//! A path as text that can be turned back, byte for byte.
//!
//! Takes any path, gives UTF-8 in which `%` and the bytes that are not UTF-8 stand as `%XX`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

pub(super) fn encode(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

pub(super) fn decode(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn readable_names_stay_readable() {
        assert_eq!(encode(Path::new("/var/log/grün.log")), "/var/log/grün.log");
        let bytes = OsString::from_vec(b"/a/\xff%\n.log".to_vec());
        assert_eq!(encode(Path::new(&bytes)), "/a/%FF%25\n.log");
        assert_eq!(decode("%4"), None);
        assert_eq!(decode("%zz"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let path = PathBuf::from(OsString::from_vec(bytes));
            prop_assert_eq!(decode(&encode(&path)).unwrap(), path);
        }
    }
}
