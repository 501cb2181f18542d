//! Which file is which: device, inode, birth time and keyed hashes of some of its bytes.
//!
//! Takes open files, gives [`FileId`]s. Never keeps a log byte: a fingerprint is a length and a
//! hash, and the hash needs the key that stands in the checkpoint file.
//!
//! A fingerprint covers the first `bytes` of a file, at most [`FINGERPRINT_BYTES_MAX`]; a file that
//! is still smaller is fingerprinted by what it has, and again when it has grown. Log files only
//! grow at their end, so the longer fingerprint agrees with the shorter one on the shorter length:
//! that is the check on resume. Files of one program begin alike, and an inode is used again, so two
//! more checks stand beside it: the time the inode was made, and a hash of the last bytes that were read. Whether
//! a file of the same size has to be looked at again, the time says at which it was last changed.

use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::FileExt;

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128};

/// How many bytes at most a fingerprint covers.
pub(crate) const FINGERPRINT_BYTES_MAX: usize = 1024;

/// How many bytes before the offset are compared at each read.
pub(crate) const TAIL_BYTES_MAX: usize = 256;

/// What stays the same when a file is renamed, and differs when another file takes its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// When the inode was made, in nanoseconds since the Unix epoch; 0 where the filesystem does not say.
    pub created_at: u64,
    /// Of the first bytes.
    pub fingerprint: Fingerprint,
    /// Of the last bytes that were read.
    pub tail: Tail,
    /// `st_ctime` when it was last looked at, before those bytes were read, in nanoseconds since the Unix epoch. 0: not known.
    pub changed: u64,
}

impl FileId {
    /// The identity of an input that is no file, such as standard input.
    pub const NONE: Self = Self {
        device: 0,
        inode: 0,
        created_at: 0,
        fingerprint: Fingerprint { bytes: 0, hash: 0 },
        tail: Tail { offset: 0, hash: 0 },
        changed: 0,
    };

    /// The key of one content of this file.
    #[must_use]
    pub const fn key(&self, generation: u32) -> FileKey {
        FileKey {
            device: self.device,
            inode: self.inode,
            generation,
        }
    }

    /// What identifies a record of this file for ever: the same whenever and however often it is read. `end` is the
    /// offset behind its last byte. Its bytes are part of it, because an inode may be used again, and a generation is
    /// counted from when the file became known: two different records never look like duplicates. Never 0.
    #[must_use]
    pub fn record_uid(&self, generation: u32, end: u64, bytes: &[u8]) -> u128 {
        let numbers = [
            self.device,
            self.inode,
            self.created_at,
            u64::from(generation),
            end,
        ];
        let mut key = [0; 48];
        for (to, number) in key
            .chunks_exact_mut(8)
            .zip(numbers.iter().chain([&xxh3_64(bytes)]))
        {
            to.copy_from_slice(&number.to_le_bytes());
        }
        xxh3_128(&key).max(1)
    }
}

/// The part of a file's identity that never changes as long as its content goes on: no two contents that a checkpoint
/// holds at a time have the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileKey {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
    /// How many earlier contents this device and inode had since it is known.
    pub generation: u32,
}

/// A keyed hash of the first `bytes` of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint {
    /// How many bytes the hash covers: 0 to 1024.
    pub bytes: u32,
    /// The hash; 0 where `bytes` is 0.
    pub hash: u64,
}

/// A keyed hash of the bytes just before an offset: as many as there are, at most 256.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tail {
    /// Where the hashed bytes end. 0: nothing is known.
    pub offset: u64,
    /// The hash; 0 where `offset` is 0.
    pub hash: u64,
}

impl Tail {
    /// How many bytes before the offset are hashed.
    pub(crate) fn bytes(self) -> usize {
        usize::try_from(self.offset)
            .unwrap_or(usize::MAX)
            .min(TAIL_BYTES_MAX)
    }
}

/// The key of the fingerprints of one data directory: random, made with the first checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FingerprintKey(pub u64);

impl FingerprintKey {
    /// A new random key, from the operating system's randomness.
    #[must_use]
    pub fn random() -> Self {
        Self(
            std::collections::hash_map::RandomState::new()
                .build_hasher()
                .finish(),
        )
    }

    /// The fingerprint of the first bytes of a file.
    pub(crate) fn fingerprint(self, head: &[u8]) -> Fingerprint {
        let head = &head[..head.len().min(FINGERPRINT_BYTES_MAX)];
        if head.is_empty() {
            return Fingerprint::default();
        }
        Fingerprint {
            bytes: u32::try_from(head.len()).unwrap_or(u32::MAX),
            hash: xxh3_64_with_seed(head, self.0),
        }
    }

    /// The tail at `offset`, of the bytes before it: all of them, or the last 256.
    pub(crate) fn tail(self, before: &[u8], offset: u64) -> Tail {
        if offset == 0 {
            return Tail::default();
        }
        let hash = xxh3_64_with_seed(before, self.0);
        Tail { offset, hash }
    }

    /// Whether a file that begins with `head` is the one `known` was taken of.
    pub(crate) fn matches(self, head: &[u8], known: Fingerprint) -> bool {
        let bytes = known.bytes as usize;
        head.len() >= bytes && self.fingerprint(&head[..bytes]) == known
    }
}

/// Device and inode: the part of a [`FileId`] that a `stat` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Inode {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl From<FileId> for Inode {
    fn from(id: FileId) -> Self {
        Self {
            device: id.device,
            inode: id.inode,
        }
    }
}

/// How much of a file is looked at for the end of a record that began in the one before it: it goes on at once.
const HEAD_BYTES_MAX: u64 = 256 * 1024;

/// How many bytes before `offset` a head has.
pub(crate) fn head_bytes(offset: u64) -> usize {
    usize::try_from(offset.min(HEAD_BYTES_MAX)).unwrap_or(0)
}

/// What a file begins with, before `offset`.
pub(crate) fn read_head(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut head = vec![0; head_bytes(offset)];
    let bytes = read_full_at(file, &mut head, 0)?;
    head.truncate(bytes);
    Ok(head)
}

/// Whether a line goes on behind these bytes, the last ones before an offset. NULs that a line begins with belong to
/// none: behind a hole begins a line. `otherwise` is whether one goes on before these bytes, should they all be NULs.
pub(crate) fn ends_in_line(before: &[u8], otherwise: bool) -> bool {
    let last = before.iter().rev().find(|&&byte| byte != 0);
    last.map_or(otherwise, |&byte| byte != b'\n')
}

/// Reads `buffer.len()` bytes at `offset`, or up to the end of the file. Gives how many.
pub(crate) fn read_full_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_longer_head_still_matches_the_shorter_fingerprint() {
        let key = FingerprintKey(7);
        let head: Vec<u8> = (0..2000_u32).map(|i| (i % 251) as u8).collect();
        for bytes in [0, 1, 2, 100, 1023, 1024, 1500] {
            let known = key.fingerprint(&head[..bytes]);
            assert_eq!(known.bytes as usize, bytes.min(1024));
            assert!(key.matches(&head, known), "{bytes}");
            let mut other = head.clone();
            if bytes > 0 {
                other[bytes.min(1024) - 1] ^= 1;
                assert!(!key.matches(&other, known), "{bytes}");
                assert!(!key.matches(&head[..known.bytes as usize - 1], known));
            }
        }
    }

    #[test]
    fn a_uid_depends_on_place_identity_and_bytes_but_not_on_what_is_learned_later() {
        let id = FileId {
            device: 1,
            inode: 2,
            created_at: 3,
            ..FileId::NONE
        };
        let uid = id.record_uid(4, 5, b"line");
        let others = [
            FileId { device: 9, ..id }.record_uid(4, 5, b"line"),
            FileId { inode: 9, ..id }.record_uid(4, 5, b"line"),
            FileId {
                created_at: 9,
                ..id
            }
            .record_uid(4, 5, b"line"),
            id.record_uid(9, 5, b"line"),
            id.record_uid(4, 9, b"line"),
            id.record_uid(4, 5, b"lime"),
        ];
        assert!(others.iter().all(|&other| other != uid && other != 0));
        let fingerprint = FingerprintKey(7).fingerprint(b"more is known of it");
        assert_eq!(FileId { fingerprint, ..id }.record_uid(4, 5, b"line"), uid);
        // Backends keep what older builds sent: it never changes.
        assert_eq!(format!("{uid:032x}"), "ff5a7144550f7dcf52b17cbaf0189507");
    }

    #[test]
    fn a_line_begins_behind_a_newline_and_behind_a_hole() {
        for (before, expected) in [
            ("", false),
            ("a\n", false),
            ("a", true),
            ("\0\0", false),
            ("a\n\0\0", false),
            ("a\0\0", true),
            ("\0a", true),
        ] {
            assert_eq!(ends_in_line(before.as_bytes(), false), expected);
            let is_all_nul = before.bytes().all(|byte| byte == 0);
            assert_eq!(
                ends_in_line(before.as_bytes(), true),
                expected || is_all_nul
            );
        }
    }

    #[test]
    fn the_hash_depends_on_the_key() {
        let head = b"secret line";
        assert_ne!(
            FingerprintKey(1).fingerprint(head),
            FingerprintKey(2).fingerprint(head)
        );
        assert_ne!(FingerprintKey::random(), FingerprintKey::random());
    }
}
