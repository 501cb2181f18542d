//! The envelope of a CRI log line: `<RFC 3339 time> stdout|stderr P|F[:tag...] <payload>`.
//!
//! Parses the envelope of one line (without its newline) and returns its fields and where the payload starts. The form
//! is that of Kubernetes' design "CRI: logging"; kubelet reads the tags as here: the first one decides. An empty
//! payload may come without the space before it. Anything else is not CRI.

use memchr::memchr;

use crate::frames::Stream;
use crate::{stamp, text::without_return};

/// What the envelope says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) time_ns: i64,
    pub(crate) stream: Stream,
    /// The last line of its record (F), not a partial one (P).
    pub(crate) full: bool,
    /// Where the payload starts in the line.
    pub(crate) payload_start: usize,
}

/// The longest time there is: nine digits and a numeric zone.
const TIME_BYTES_MAX: usize = "2026-01-02T03:04:05.123456789+00:00".len();

pub(crate) fn read(line: &[u8]) -> Option<Entry> {
    let time_end = memchr(b' ', &line[..line.len().min(TIME_BYTES_MAX + 1)])?;
    let time_ns = stamp::parse(&line[..time_end])?;
    let rest = &line[time_end + 1..];
    let stream = match rest.get(..7)? {
        b"stdout " => Stream::Stdout,
        b"stderr " => Stream::Stderr,
        _ => return None,
    };
    let tags = &rest[7..];
    let (tags, payload) = match memchr(b' ', tags) {
        Some(space) => (&tags[..space], &tags[space + 1..]),
        None => (without_return(tags), &tags[tags.len()..]),
    };
    let full = match tags {
        [b'F'] | [b'F', b':', ..] => true,
        [b'P'] | [b'P', b':', ..] => false,
        _ => return None,
    };
    Some(Entry {
        time_ns,
        stream,
        full,
        payload_start: line.len() - payload.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expect: Option<(Stream, bool, &str)>) {
        let entry = read(line.as_bytes());
        let found = entry.map(|entry| (entry.stream, entry.full, &line[entry.payload_start..]));
        assert_eq!(found, expect, "{line:?}");
    }

    #[test]
    fn lines_of_the_runtimes() {
        check(
            "2026-01-02T03:04:05.678901234Z stdout F hello world",
            Some((Stream::Stdout, true, "hello world")),
        );
        check(
            "2026-01-02T05:04:05.6789+02:00 stderr P  two spaces",
            Some((Stream::Stderr, false, " two spaces")),
        );
        check(
            "2026-01-02T03:04:05Z stdout F:tag:P x",
            Some((Stream::Stdout, true, "x")),
        );
        check(
            "2026-01-02T03:04:05Z stdout P:x ",
            Some((Stream::Stdout, false, "")),
        );
        check(
            "2026-01-02T03:04:05Z stdout F",
            Some((Stream::Stdout, true, "")),
        );
        check(
            "2026-01-02T03:04:05Z stdout F\r",
            Some((Stream::Stdout, true, "")),
        );
    }

    #[test]
    fn what_is_not_cri() {
        for line in [
            "",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05Z ",
            "2026-01-02T03:04:05Z stdout",
            "2026-01-02T03:04:05Z stdout ",
            "2026-01-02T03:04:05Z stdin F x",
            "2026-01-02T03:04:05Z stdout X x",
            "2026-01-02T03:04:05Z stdout PF x",
            "2026-01-02T03:04:05Z stdout f x",
            "2026-01-02T03:04:05Z  stdout F x",
            " 2026-01-02T03:04:05Z stdout F x",
            "2026-13-02T03:04:05Z stdout F x",
            "2026-01-02 03:04:05Z stdout F x",
            "2026-01-02T03:04:05 stdout F x",
            "yesterday stdout F x",
        ] {
            check(line, None);
        }
    }
}
