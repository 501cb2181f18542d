//! The compressed files of a directory, each known by its inode and birth time.
//!
//! Takes a directory, gives its compressed files, and opens one of them later: that one or none, whatever its name is by
//! then. In a rotation chain a name leads to another file every moment. Looks into no content, and at no file that is not
//! compressed.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::event::SourceId;
use crate::file::gzip;
use crate::identity::Inode;
use crate::meta::{LISTINGS_MAX, Meta, find_inode};

/// How often a file is looked for at most while it is renamed.
const TRIES_MAX: usize = 16;
/// How many compressed files are remembered for which it is known whose they are.
const OWNED_MAX: usize = 8192;

/// What a rename does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CopyId {
    pub(crate) inode: Inode,
    /// When it was made, in nanoseconds since the Unix epoch.
    pub(crate) made: u64,
}

/// A compressed file.
#[derive(Clone, Debug)]
pub(crate) struct CompressedFile {
    path: PathBuf,
    id: CopyId,
    /// While it is held open: it may be deleted before its turn.
    held: Option<(Arc<fs::File>, Permit)>,
}

/// Counts the descriptors that copies hold.
pub(crate) type Permit = Arc<()>;

impl CompressedFile {
    pub(crate) fn new(path: PathBuf, meta: &Meta) -> Self {
        Self {
            path,
            id: id(meta),
            held: None,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn id(&self) -> CopyId {
        self.id
    }

    pub(crate) fn inode(&self) -> Inode {
        self.id.inode
    }

    /// When it was made, in nanoseconds since the Unix epoch.
    pub(crate) fn made(&self) -> u64 {
        self.id.made
    }

    /// Opens it by `open`, under the name that it has now. `NotFound` if it is no longer in its directory.
    pub(crate) fn open(
        &mut self,
        open: impl Fn(&Path) -> io::Result<fs::File>,
    ) -> io::Result<Arc<fs::File>> {
        if let Some((file, _)) = &self.held {
            return Ok(Arc::clone(file));
        }
        let CopyId { inode, made } = self.id;
        for _ in 0..TRIES_MAX {
            match open(&self.path) {
                Ok(file) => {
                    let meta = Meta::of_file(&file)?;
                    if id(&meta) == self.id {
                        return Ok(Arc::new(file));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Another file may have its name, and be one that may not be opened.
                Err(error) if self.has_its_name() => return Err(error),
                Err(_) => {}
            }
            let dir = self.path.parent();
            match dir.and_then(|dir| find_inode(dir, inode, made)) {
                Some(path) => self.path = path,
                None => break,
            }
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            "it is not there any more",
        ))
    }

    /// Keeps it open from now on.
    pub(crate) fn hold(&mut self, file: Arc<fs::File>, permit: Permit) {
        self.held = Some((file, permit));
    }

    fn has_its_name(&self) -> bool {
        Meta::of_name(&self.path).is_ok_and(|meta| id(&meta) == self.id)
    }
}

/// Where there are no birth times, the time when it was last written to stands for it.
fn id(meta: &Meta) -> CopyId {
    let (seconds, nanos) = meta.mtime;
    let seconds = u64::try_from(seconds).unwrap_or(0);
    let written = seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(nanos).unwrap_or(0));
    let made = if meta.created_at == 0 {
        written
    } else {
        meta.created_at
    };
    CopyId {
        inode: meta.inode,
        made,
    }
}

/// The compressed files of a directory of which `wants` says so by name. A file that is renamed while the directory is
/// listed may be left out, so it is listed until nothing changes.
pub(crate) fn list(dir: &Path, wants: impl Fn(&Path) -> bool) -> Vec<CompressedFile> {
    let mut copies: HashMap<CopyId, CompressedFile> = HashMap::new();
    let mut before = None;
    for _ in 0..LISTINGS_MAX {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if gzip::is_gzip(&path)
                && wants(&path)
                && let Ok(meta) = Meta::of_name(&path)
                && meta.is_file()
            {
                let copy = CompressedFile::new(path.clone(), &meta);
                names.insert((path, copy.id));
                copies.insert(copy.id, copy);
            }
        }
        #[cfg(test)]
        crate::file::follower::tests::between_looks();
        if before.as_ref() == Some(&names) {
            break;
        }
        before = Some(names);
    }
    copies.into_values().collect()
}

/// The compressed files for which it is known whose they are: each is one file's, and read once at most.
#[derive(Debug, Default)]
pub(crate) struct Owned(HashMap<CopyId, SourceId>);

impl Owned {
    /// `number` is that of the file ([`File::number`](crate::file::tracked::File)); those made before `since` may be forgotten.
    pub(crate) fn add(&mut self, copy: CopyId, number: SourceId, since: u64) {
        if self.0.len() >= OWNED_MAX {
            self.0.retain(|known, _| known.made >= since);
        }
        self.0.insert(copy, number);
    }

    pub(crate) fn owner(&self, copy: CopyId) -> Option<SourceId> {
        self.0.get(&copy).copied()
    }
}
