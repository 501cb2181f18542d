//! The form of a segment: one file, written once, whole or not at all.
//!
//! Takes bytes, gives a file that shows whether it is what was written; takes a file, gives its bytes or
//! [`Damage`]. Never guesses: a segment that does not check gives no byte.
//!
//! ```text
//! 0   8  magic "TRQUEUE1"
//! 8   8  stream, little endian as all numbers: when the run that wrote it began, in nanoseconds since the Unix epoch
//! 16  8  offset of the first byte in its stream
//! 24  8  flags: 1 is "the byte before the first one is not a newline", 2 is "the stream ended behind the last one",
//!        4 is "if it did, 2 says so", which earlier agents did not
//! 32  8  xxh3 of the rest, seeded with the xxh3 of the 32 bytes above
//! 40     the bytes
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// How many bytes of a segment's file are not the stream's.
pub(crate) const HEADER_BYTES: u64 = 40;

const MAGIC: &[u8; 8] = b"TRQUEUE1";
const MID_LINE: u64 = 1;
const LAST: u64 = 2;
const SAYS_LAST: u64 = 4;
const SUFFIX: &str = ".segment";
const QUARANTINED_SUFFIX: &str = ".corrupt";
const TEMPORARY: &str = "segment.tmp";

/// Where a segment stands: in which stream, and at which of its bytes it begins. In the order they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId {
    pub(crate) stream: u64,
    pub(crate) offset: u64,
}

/// What a file of a queue's directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    Segment(SegmentId),
    Quarantined(SegmentId),
    /// A segment that was never finished: it was never reported as safe.
    Temporary,
}

/// The content of a segment that checks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) around: Around,
}

/// What is around the bytes of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    /// The byte before the first one is not a newline.
    pub(crate) mid_line: bool,
    /// How the stream goes on behind the last one.
    pub(crate) end: End,
}

/// How a stream goes on behind a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// An earlier agent wrote it, which did not say.
    #[default]
    Unknown,
    /// With the next segment, or in what no agent read.
    GoesOn,
    /// It ended: whoever wrote to it was done. Not where only the agent ended.
    Last,
}

impl Around {
    fn flags(self) -> u64 {
        let end = match self.end {
            End::Unknown => 0,
            End::GoesOn => SAYS_LAST,
            End::Last => SAYS_LAST | LAST,
        };
        (u64::from(self.mid_line) * MID_LINE) | end
    }

    fn of(flags: u64) -> Self {
        Self {
            mid_line: flags & MID_LINE != 0,
            end: match (flags & SAYS_LAST != 0, flags & LAST != 0) {
                (false, _) => End::Unknown,
                (true, false) => End::GoesOn,
                (true, true) => End::Last,
            },
        }
    }
}

/// Why a segment gives no bytes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Damage {
    #[error("cannot be read")]
    Read(#[source] io::Error),
    #[error("is shorter than its header")]
    Short,
    #[error("is no segment of a queue, or its first bytes are damaged")]
    Magic,
    #[error("has a checksum that does not fit its content")]
    Checksum,
    #[error("is a sound segment under another one's name")]
    OtherName,
}

impl Damage {
    /// Whether there is no such file.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Read(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl SegmentId {
    /// The name of its file; names sort as ids do.
    pub(crate) fn name(self) -> String {
        format!("{:020}-{:020}{SUFFIX}", self.stream, self.offset)
    }

    /// The name of its file once it was found damaged.
    pub(crate) fn quarantined_name(self) -> String {
        format!("{}{QUARANTINED_SUFFIX}", self.name())
    }
}

impl Named {
    /// What a file name says; `None` for a file that is not the queue's.
    pub(crate) fn of(name: &str) -> Option<Self> {
        if name == TEMPORARY {
            return Some(Self::Temporary);
        }
        let (name, is_quarantined) = match name.strip_suffix(QUARANTINED_SUFFIX) {
            Some(name) => (name, true),
            None => (name, false),
        };
        let (stream, offset) = name.strip_suffix(SUFFIX)?.split_once('-')?;
        let id = SegmentId {
            stream: stream.parse().ok()?,
            offset: offset.parse().ok()?,
        };
        if id.name() != name {
            return None;
        }
        Some(if is_quarantined {
            Self::Quarantined(id)
        } else {
            Self::Segment(id)
        })
    }
}

/// Writes a segment so that it is there whole, or not at all, also after a power cut: write, fsync, rename, fsync of
/// the directory. Gives the size of its file.
pub(crate) fn write(dir: &Path, id: SegmentId, around: Around, bytes: &[u8]) -> io::Result<u64> {
    let temporary = dir.join(TEMPORARY);
    let header = header(id, around, bytes);
    let written = tailrace_files::create(&temporary)
        .and_then(|mut file| {
            file.write_all(&header)?;
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, dir.join(id.name())));
    if let Err(error) = written {
        // A full disk should not hold half a segment.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(dir)?.sync_all()?;
    Ok(HEADER_BYTES + bytes.len() as u64)
}

/// Reads a segment.
pub(crate) fn read(dir: &Path, id: SegmentId) -> Result<Content, Damage> {
    let file = tailrace_files::read(&dir.join(id.name())).map_err(Damage::Read)?;
    decode(id, file)
}

fn decode(id: SegmentId, mut file: Vec<u8>) -> Result<Content, Damage> {
    let header_bytes = HEADER_BYTES as usize;
    let Some((header, bytes)) = file.split_at_checked(header_bytes) else {
        return Err(Damage::Short);
    };
    if !header.starts_with(MAGIC) {
        return Err(Damage::Magic);
    }
    let number = |at: usize| {
        let mut number = [0; 8];
        number.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(number)
    };
    if hash(&header[..header_bytes - 8], bytes) != number(32) {
        return Err(Damage::Checksum);
    }
    let found = SegmentId {
        stream: number(8),
        offset: number(16),
    };
    if found != id {
        return Err(Damage::OtherName);
    }
    let around = Around::of(number(24));
    file.drain(..header_bytes);
    Ok(Content {
        bytes: file,
        around,
    })
}

fn header(id: SegmentId, around: Around, bytes: &[u8]) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&id.stream.to_le_bytes());
    header.extend_from_slice(&id.offset.to_le_bytes());
    header.extend_from_slice(&around.flags().to_le_bytes());
    let hash = hash(&header, bytes);
    header.extend_from_slice(&hash.to_le_bytes());
    header
}

fn hash(header: &[u8], bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, xxh3_64(header))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ID: SegmentId = SegmentId {
        stream: 1_700_000_000_000_000_000,
        offset: 77,
    };

    #[test]
    fn a_segment_gives_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        for (mid_line, end) in [
            (false, End::Unknown),
            (true, End::Unknown),
            (false, End::GoesOn),
            (true, End::Last),
        ] {
            let around = Around { mid_line, end };
            let size = write(dir.path(), ID, around, b"one\ntwo\n").unwrap();
            let path = dir.path().join(ID.name());
            assert_eq!(fs::metadata(path).unwrap().len(), size);
            let content = read(dir.path(), ID).unwrap();
            let expected = Content {
                bytes: b"one\ntwo\n".to_vec(),
                around,
            };
            assert_eq!(content, expected);
        }
    }

    #[test]
    fn every_truncation_and_every_flipped_bit_is_damage() {
        let bytes = b"{\"seq\":1}\n{\"seq\":2}\n";
        let mut whole = header(ID, Around::default(), bytes);
        whole.extend_from_slice(bytes);
        assert!(decode(ID, whole.clone()).is_ok());
        for len in 0..whole.len() {
            assert!(decode(ID, whole[..len].to_vec()).is_err(), "{len}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[at] ^= 1 << bit;
                assert!(decode(ID, flipped).is_err(), "byte {at}, bit {bit}");
            }
        }
        let mut longer = whole;
        longer.push(b'\n');
        assert!(decode(ID, longer).is_err());
    }

    #[test]
    fn a_sound_segment_under_another_name_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), ID, Around::default(), b"x\n").unwrap();
        let other = SegmentId { offset: 5, ..ID };
        fs::rename(dir.path().join(ID.name()), dir.path().join(other.name())).unwrap();
        assert!(matches!(read(dir.path(), other), Err(Damage::OtherName)));
    }

    #[test]
    fn names_are_read_back_and_others_are_left_alone() {
        assert_eq!(Named::of(&ID.name()), Some(Named::Segment(ID)));
        let quarantined = Named::of(&ID.quarantined_name());
        assert_eq!(quarantined, Some(Named::Quarantined(ID)));
        assert_eq!(Named::of(TEMPORARY), Some(Named::Temporary));
        for name in ["", "notes.txt", "1-2.segment", "a-b.segment", ".segment"] {
            assert_eq!(Named::of(name), None, "{name}");
        }
    }
}
