//! What the file system says of a file, birth time included: one `statx(2)`.
//!
//! The standard library gives no birth time where it is linked with musl, as the binary that ships is, and much
//! rests on it: whether an inode is used again, and in which order files were made.

use std::fs;
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, statx};
use rustix::io::Errno;

use crate::identity::{FileId, Inode};

/// What is known of a file at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) inode: Inode,
    /// When it was made, as [`FileId::created_at`](crate::FileId::created_at) has it.
    pub(crate) created_at: u64,
    pub(crate) bytes: u64,
    /// Modification time: seconds and nanoseconds since 1970.
    pub(crate) mtime: (i64, i64),
    /// When its content, name or mode was last changed, in nanoseconds since the Unix epoch: nobody can set that time.
    pub(crate) changed: u64,
    /// Names it has.
    pub(crate) links: u64,
    pub(crate) kind: FileType,
}

impl Meta {
    /// Of an open file.
    pub(crate) fn of_file(file: &fs::File) -> io::Result<Self> {
        let found = statx(file, "", AtFlags::EMPTY_PATH, WANTED);
        Self::from(found, || file.metadata())
    }

    /// Of what a path leads to.
    pub(crate) fn of_target(path: &Path) -> io::Result<Self> {
        let found = statx(CWD, path, AtFlags::empty(), WANTED);
        Self::from(found, || fs::metadata(path))
    }

    /// Of what stands at a path, be it a link.
    pub(crate) fn of_name(path: &Path) -> io::Result<Self> {
        let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, WANTED);
        Self::from(found, || fs::symlink_metadata(path))
    }

    /// Whether this is of the file that has this inode and was created then, and not of another one to which the inode was
    /// given since. Where a birth time is not known (0), the inode decides.
    pub(crate) fn is_of(&self, inode: Inode, created_at: u64) -> bool {
        let is_other = created_at != 0 && self.created_at != 0 && created_at != self.created_at;
        self.inode == inode && !is_other
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    pub(crate) fn is_link(&self) -> bool {
        self.kind.is_symlink()
    }

    /// When it was last written to; `None` if that was before 1970.
    pub(crate) fn modified(&self) -> Option<SystemTime> {
        let seconds = u64::try_from(self.mtime.0).ok()?;
        let nanos = u64::try_from(self.mtime.1).ok()?;
        SystemTime::UNIX_EPOCH
            .checked_add(Duration::from_secs(seconds) + Duration::from_nanos(nanos))
    }

    /// Kernels before 4.11 have no `statx`, and old sandboxes forbid what they do not know: then no file has a birth time.
    fn from(
        found: Result<Statx, Errno>,
        without: impl FnOnce() -> io::Result<fs::Metadata>,
    ) -> io::Result<Self> {
        match found {
            Ok(found) => Ok(Self::of_statx(&found)),
            Err(Errno::NOSYS | Errno::PERM) => Ok(Self::of_stat(&without()?)),
            Err(error) => Err(error.into()),
        }
    }

    fn of_statx(found: &Statx) -> Self {
        let has_birth_time =
            StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
        Self {
            inode: Inode {
                device: makedev(found.stx_dev_major, found.stx_dev_minor),
                inode: found.stx_ino,
            },
            created_at: if has_birth_time {
                nanoseconds(found.stx_btime.tv_sec, found.stx_btime.tv_nsec.into())
            } else {
                0
            },
            bytes: found.stx_size,
            mtime: (found.stx_mtime.tv_sec, i64::from(found.stx_mtime.tv_nsec)),
            changed: nanoseconds(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec.into()),
            links: u64::from(found.stx_nlink),
            kind: FileType::from_raw_mode(found.stx_mode.into()),
        }
    }

    fn of_stat(found: &fs::Metadata) -> Self {
        Self {
            inode: Inode {
                device: found.dev(),
                inode: found.ino(),
            },
            created_at: 0,
            bytes: found.len(),
            mtime: (found.mtime(), found.mtime_nsec()),
            changed: nanoseconds(found.ctime(), found.ctime_nsec()),
            links: found.nlink(),
            kind: FileType::from_raw_mode(found.mode()),
        }
    }
}

impl FileId {
    /// The size of this file in bytes, whether a path leads to it or it has another name in the directory of the path: the next
    /// run finds it there. `None` where it is gone.
    #[must_use]
    pub fn size_at(&self, path: &Path) -> Option<u64> {
        let inode = Inode::from(*self);
        let of = |path: &Path| {
            let meta = Meta::of_target(path).ok();
            meta.filter(|meta| meta.is_of(inode, self.created_at))
        };
        let renamed = || of(&find_inode(path.parent()?, inode, self.created_at)?);
        Some(of(path).or_else(renamed)?.bytes)
    }
}

/// The path of a file in a directory, by its inode and, where that is known, its birth time. A name that changes while
/// the directory is listed may be left out, so it is listed until nothing changes.
pub(crate) fn find_inode(dir: &Path, inode: Inode, created_at: u64) -> Option<PathBuf> {
    let mut before = Vec::new();
    for _ in 0..LISTINGS_MAX {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).ok()?.flatten() {
            if entry.ino() == inode.inode {
                let path = entry.path();
                let found = Meta::of_name(&path)
                    .ok()
                    .filter(|meta| meta.is_file() && meta.is_of(inode, created_at));
                if found.is_some() {
                    return Some(path);
                }
            }
            names.push((entry.file_name(), entry.ino()));
        }
        names.sort();
        if names == before {
            return None;
        }
        before = names;
    }
    None
}

/// Since the Unix epoch; 0 for what was before.
fn nanoseconds(seconds: i64, nanos: i64) -> u64 {
    let nanos = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
}

/// How often a directory is listed at most while its names change.
pub(crate) const LISTINGS_MAX: usize = 16;
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_renamed_file_is_found_in_its_directory_and_one_that_took_its_path_is_not_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "abc").unwrap();
        let meta = Meta::of_target(&path).unwrap();
        let id = FileId {
            device: meta.inode.device,
            inode: meta.inode.inode,
            created_at: meta.created_at,
            ..FileId::NONE
        };
        assert_eq!(id.size_at(&path), Some(3));
        fs::rename(&path, dir.path().join("a.1")).unwrap();
        assert_eq!(id.size_at(&path), Some(3));
        fs::write(&path, "another").unwrap();
        assert_eq!(id.size_at(&path), Some(3));
        fs::remove_file(dir.path().join("a.1")).unwrap();
        assert_eq!(id.size_at(&path), None);
    }

    #[test]
    fn it_says_what_the_standard_library_says_and_the_birth_time() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&path, "abc").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let of_stat = Meta::of_stat(&fs::metadata(&path).unwrap());
        let of_target = Meta::of_target(&link).unwrap();
        assert_eq!(
            Meta {
                created_at: 0,
                ..of_target
            },
            of_stat
        );
        assert_eq!(Meta::of_name(&path).unwrap(), of_target);
        assert_eq!(
            Meta::of_file(&fs::File::open(&path).unwrap()).unwrap(),
            of_target
        );
        assert!(of_target.is_file() && Meta::of_name(&link).unwrap().is_link());
        assert_eq!(
            of_target.modified(),
            fs::metadata(&path).unwrap().modified().ok()
        );
        // Neither this nor anything below it is true of what the standard library says under musl.
        let age = u128::from(of_target.created_at);
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap()
            .as_nanos();
        assert!(age > now - 3_600_000_000_000 && age <= now, "{age}");
        let missing = Meta::of_name(&dir.path().join("c")).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn without_statx_there_is_no_birth_time() {
        let dir = tempfile::tempdir().unwrap();
        let said = |error| Meta::from(Err(error), || fs::metadata(dir.path()));
        assert_eq!(said(Errno::NOSYS).unwrap().created_at, 0);
        assert_eq!(
            said(Errno::ACCESS).unwrap_err().kind(),
            io::ErrorKind::PermissionDenied
        );
    }
}
