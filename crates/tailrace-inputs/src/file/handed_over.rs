//! Open files that one follower hands to the next in the same process.
//!
//! A deleted file is there only for whoever holds it open. Files that have a name are found by it, and may lose it at any
//! moment.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::file::tracked::File;
use crate::identity::Inode;
use crate::meta::Meta;

/// Open files by inode, shared by the followers that may go on with them; closed with the last of these.
#[derive(Clone, Debug, Default)]
pub struct HandedOver(Arc<Mutex<HashMap<Inode, Handle>>>);

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) file: fs::File,
    /// Its names, if it is deleted and was never reported: no resume entry will ask for it.
    pub(crate) unreported: Option<Names>,
}

/// The names of a deleted file.
#[derive(Debug)]
pub(crate) struct Names {
    /// Its last one.
    pub(crate) path: Arc<Path>,
    /// The path of its input that it had.
    pub(crate) origin: Arc<Path>,
}

impl Names {
    pub(crate) fn of(file: &File) -> Self {
        Self {
            path: Arc::clone(&file.path),
            origin: Arc::clone(&file.origin),
        }
    }
}

impl HandedOver {
    pub(crate) fn new(handles: HashMap<Inode, Handle>) -> Self {
        Self(Arc::new(Mutex::new(handles)))
    }

    /// Adds those of another follower.
    pub fn extend(&self, other: &Self) {
        let others = std::mem::take(&mut *other.lock());
        self.lock().extend(others);
    }

    /// Takes the file of this inode, unless it was made at another time: then it is another one, for somebody else.
    pub(crate) fn take(&self, inode: Inode, created_at: u64) -> Option<fs::File> {
        let mut handles = self.lock();
        let is_it = Meta::of_file(&handles.get(&inode)?.file)
            .map_or(true, |meta| meta.is_of(inode, created_at));
        let handle = is_it.then(|| handles.remove(&inode)).flatten();
        handle.map(|handle| handle.file)
    }

    /// Takes deleted files that were never reported and that had such a path of an input.
    pub(crate) fn take_unreported(
        &self,
        mut had: impl FnMut(&Path) -> bool,
    ) -> Vec<(Inode, fs::File, Names)> {
        let mut handles = self.lock();
        let wanted = |_: &Inode, handle: &mut Handle| {
            let names = handle.unreported.as_ref();
            names.is_some_and(|names| had(&names.origin))
        };
        let taken = handles.extract_if(wanted);
        let taken =
            taken.filter_map(|(inode, handle)| Some((inode, handle.file, handle.unreported?)));
        taken.collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Inode, Handle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
