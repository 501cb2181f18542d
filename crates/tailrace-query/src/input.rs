//! Where the lines of a query come from.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use object_store::ObjectStoreExt;
use tailrace_inputs::Contents;

use crate::store::{self, object::Object};

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// An object of a store.
    Object(Arc<Object>),
    /// Standard input, which can be read once.
    Stdin,
}

impl Input {
    /// What it is called in messages.
    pub fn name(&self) -> String {
        match self {
            Input::File(path) => path.display().to_string(),
            Input::Object(object) => object.name(),
            Input::Stdin => "standard input".to_owned(),
        }
    }

    /// Whether its bytes are gone once they are read: standard input, or a pipe.
    pub fn is_stream(&self) -> bool {
        match self {
            Input::File(path) => std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()),
            Input::Object(_) => false,
            Input::Stdin => true,
        }
    }

    /// Where it is on this machine, if it is.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Input::File(path) => Some(path.clone()),
            Input::Object(object) => object.path(),
            Input::Stdin => None,
        }
    }

    /// Device and inode of a file.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        let meta = std::fs::metadata(self.path()?).ok();
        let meta = meta.filter(|meta| meta.is_file());
        meta.map(|meta| (meta.dev(), meta.ino()))
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is a directory.
    pub fn open(&self) -> anyhow::Result<Lines> {
        let name = self.name();
        let opened = match self {
            Input::File(path) => Contents::open(Some(path)),
            Input::Object(object) => Contents::of(Box::new(object.open()?)),
            Input::Stdin => Contents::open(None),
        };
        let contents = opened.with_context(|| format!("{name}: cannot be read"))?;
        Ok(Lines { contents, name })
    }
}

/// Parts of what can be read more than once.
impl Input {
    /// The first bytes, up to this size.
    pub(crate) fn beginning(&self, size: u64) -> anyhow::Result<Vec<u8>> {
        let name = self.name();
        let mut bytes = Vec::new();
        match self {
            Input::Object(object) => {
                let end = object.meta.size.min(size);
                if end > 0 {
                    bytes = self.part(0..end).with_context(|| name)?;
                }
            }
            Input::File(path) => {
                ensure!(
                    !self.is_stream(),
                    "{name}: a table is read twice, which a pipe cannot be"
                );
                let file = File::open(path).with_context(|| format!("{name}: cannot be read"))?;
                let read = file.take(size).read_to_end(&mut bytes);
                read.with_context(|| format!("{name}: cannot be read"))?;
            }
            Input::Stdin => bail!("standard input is no table"),
        }
        Ok(bytes)
    }

    /// How many bytes there are.
    pub(crate) fn size(&self) -> anyhow::Result<u64> {
        match self {
            Input::Object(object) => Ok(object.meta.size),
            Input::File(path) => Ok(std::fs::metadata(path)?.len()),
            Input::Stdin => bail!("standard input is no table"),
        }
    }

    /// A part of the bytes, within the size.
    pub(crate) fn part(&self, range: Range<u64>) -> anyhow::Result<Vec<u8>> {
        match self {
            Input::Object(object) => {
                let objects = Arc::clone(&object.store.objects);
                let location = object.meta.location.clone();
                let read = async move { objects.get_range(&location, range).await };
                let read = store::wait(read)?.map_err(|error| anyhow!("{}", store::said(&error)));
                Ok(read?.to_vec())
            }
            Input::File(path) => {
                let mut bytes = vec![0; (range.end - range.start) as usize];
                File::open(path)?.read_exact_at(&mut bytes, range.start)?;
                Ok(bytes)
            }
            Input::Stdin => bail!("standard input is no table"),
        }
    }
}

/// The bytes of an input, with its name in errors.
#[derive(Debug)]
pub struct Lines {
    contents: Contents,
    name: String,
}

impl Lines {
    /// Reads the next bytes; 0 is the end.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is damaged.
    pub fn read(&mut self, buffer: &mut [u8]) -> anyhow::Result<usize> {
        let read = self.contents.read(buffer);
        read.with_context(|| format!("{}: cannot be read", self.name))
    }

    /// Reads until the buffer is full or the end is reached; gives how many bytes there are.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> anyhow::Result<usize> {
        let filled = self.contents.fill(buffer);
        filled.with_context(|| format!("{}: cannot be read", self.name))
    }

    /// The bytes read before decompression since the last call.
    pub(crate) fn take_file_bytes(&mut self) -> u64 {
        self.contents.take_stored_bytes()
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.contents.is_compressed()
    }
}
