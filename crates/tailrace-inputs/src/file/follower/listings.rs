//! What files are called now that were called otherwise before, of many files in few directories.
//!
//! Takes a name that a file had, and its inode; gives the name it has. Lists a directory once for all of them as long as nothing
//! changes there: a start may look for a hundred thousand. A list shows nothing of names that changed since, and not
//! all of those that changed while it was made. So what it does not show is looked for once more where anything did.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use super::missed::{CLOCK_TICK_NS, now_ns};
use crate::identity::Inode;
use crate::meta::{Meta, find_inode};

/// The directories that were listed.
#[derive(Default)]
pub(super) struct Listings {
    by_dir: HashMap<PathBuf, Listing>,
}

/// One of them.
struct Listing {
    by_inode: HashMap<u64, PathBuf>,
    /// When the directory was last changed before that; `None` if it may have been changed in the same tick of the clock.
    changed: Option<u64>,
}

impl Listings {
    /// The name that a file has now: `name`, or another in the same directory.
    pub(super) fn find(&mut self, name: &Path, inode: Inode, created_at: u64) -> Option<PathBuf> {
        // Another file may have the inode now. One that is ours was found by its name.
        if is_at(name, inode, created_at) {
            return Some(name.to_owned());
        }
        let dir = name.parent()?;
        if !self.by_dir.contains_key(dir) {
            self.by_dir.insert(dir.to_owned(), Listing::of(dir));
        }
        let listing = self.by_dir.get(dir)?;
        let listed = listing.by_inode.get(&inode.inode);
        if let Some(path) = listed.filter(|path| is_at(path, inode, created_at)) {
            return Some(path.clone());
        }
        if listing.holds(dir) {
            return None;
        }
        self.by_dir.remove(dir);
        find_inode(dir, inode, created_at)
    }
}

impl Listing {
    fn of(dir: &Path) -> Self {
        let changed = changed(dir);
        let now = now_ns();
        let names = fs::read_dir(dir).into_iter().flatten().flatten();
        let by_inode = names.map(|entry| (entry.ino(), entry.path())).collect();
        Self {
            by_inode,
            // One in the future is of a clock that was set back: what changes now has another.
            changed: changed.filter(|changed| now.abs_diff(*changed) > CLOCK_TICK_NS),
        }
    }

    /// Whether it shows what is there: nothing was changed since.
    fn holds(&self, dir: &Path) -> bool {
        let now = changed(dir);
        // Nothing is in a directory that is not there.
        now.is_none() || now == self.changed
    }
}

/// When a directory was last changed.
fn changed(dir: &Path) -> Option<u64> {
    Meta::of_target(dir).ok().map(|meta| meta.changed)
}

/// Whether a path leads to the file of an inode.
pub(super) fn is_at(path: &Path, inode: Inode, created_at: u64) -> bool {
    Meta::of_target(path).is_ok_and(|meta| meta.is_file() && meta.is_of(inode, created_at))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_is_found_by_the_name_that_it_has_now() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let [a, b] = ["a.log", "b.log"].map(|name| {
            fs::write(path(name), "").unwrap();
            let meta = Meta::of_name(&path(name)).unwrap();
            (meta.inode, meta.created_at)
        });
        let mut listings = Listings::default();
        let mut find = |name: &str, of: (Inode, u64)| listings.find(&path(name), of.0, of.1);
        for number in 1..4 {
            for (name, of) in [("a.log", a), ("b.log", b)] {
                // The other one has been renamed since its directory was listed.
                let renamed = format!("{name}.{number}");
                let now = find(name, of).unwrap();
                fs::rename(&now, path(&renamed)).unwrap();
                assert_eq!(find(name, of), Some(path(&renamed)));
            }
        }
        fs::remove_file(path("a.log.3")).unwrap();
        assert_eq!(find("a.log", a), None);
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(find("b.log", b), None);
    }
}
