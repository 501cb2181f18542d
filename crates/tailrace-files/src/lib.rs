//! Opens and creates the files that the agent keeps for itself: checkpoint, lock, queue, marks, dead letters.
//!
//! It never follows a link in the last part of a path, never waits for the other end of a pipe, and never opens a device:
//! a file of the agent is a regular file. If others may write to its directory, it must also belong to this user, to root
//! or to the owner of the directory, and have only one name if it is written to. Files and directories are created with a
//! fixed mode, [`FILE_MODE`] or [`DIR_MODE`], even if the umask allows more. Files that others provide may be links, and
//! are read up to a bound.

mod dir;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

pub use dir::{Access, DIR_MODE, access, create_dir};

/// Mode of the files of the agent.
pub const FILE_MODE: u32 = 0o600;

/// Opens a file of the agent as `options` say; one that is made has [`FILE_MODE`]. `options` must not truncate: what
/// is at the path is checked only once it is open.
///
/// # Errors
/// It cannot be opened, or it is not acceptable as a file of the agent.
pub fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    open_as(path, options, Links::One)
}

/// How many names (hard links) a file may have if others may write to its directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Links {
    /// One: writing to it must not change a file elsewhere.
    One,
    /// It is only read. The agent itself leaves a second name if it dies while it replaces a file.
    Any,
}

fn open_as(path: &Path, options: &mut OpenOptions, links: Links) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    // Flags of open(2) fit in the type that it takes.
    let opened = options
        .mode(FILE_MODE)
        .custom_flags(flags.bits() as i32)
        .open(path);
    let file = opened.map_err(|error| explained(path, error))?;
    check(path, &file.metadata()?, links)?;
    Ok(file)
}

/// Creates a file of the agent, replacing whatever is at the path, and opens it for writing.
///
/// # Errors
/// What is at the path cannot be removed, or the file cannot be created.
pub fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(FILE_MODE)
        .open(path)
}

/// Moves a directory that stands in place of a file of the agent to a free name beside it: what it holds may be of use to
/// somebody. Gives that name; `None` if no directory is there.
///
/// # Errors
/// It cannot be moved.
pub fn move_dir_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    if !fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir()) {
        return Ok(None);
    }
    let mut number = 1;
    let aside = loop {
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".aside-{number}"));
        if fs::symlink_metadata(&aside).is_err() {
            break PathBuf::from(aside);
        }
        number += 1;
    };
    fs::rename(path, &aside)?;
    Ok(Some(aside))
}

/// Reads a file of the agent.
///
/// # Errors
/// It cannot be read, or it is not acceptable as a file of the agent.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_as(path, OpenOptions::new().read(true), Links::Any)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file that somebody else provides, such as a certificate: a regular file of at most so many bytes. Links are
/// followed.
///
/// # Errors
/// It cannot be read, is larger, or is no regular file.
pub fn read_provided(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(refused("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        Err(refused(format!("it is larger than {bytes_max} bytes")))
    } else {
        Ok(bytes)
    }
}

/// Why a file could not be opened, where what stands there says more than the system does.
fn explained(path: &Path, error: io::Error) -> io::Error {
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => not_a_file(&meta),
        _ => error,
    }
}

/// Whether what was opened can be a file of the agent.
fn check(path: &Path, meta: &Metadata, links: Links) -> io::Result<()> {
    if !meta.is_file() {
        return Err(not_a_file(meta));
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let dir = fs::metadata(parent.unwrap_or(Path::new(".")))?;
    if !dir::is_shared(dir.mode()) {
        return Ok(());
    }
    let user = rustix::process::geteuid().as_raw();
    if ![user, 0, dir.uid()].contains(&meta.uid()) {
        return Err(refused(format!(
            "it belongs to user {}, and others may write to its directory: remove it, or let only its owner write there",
            meta.uid()
        )));
    }
    if links == Links::One && meta.nlink() > 1 {
        return Err(refused(
            "it has a second name (a hard link), and others may write to its directory: remove it, or let only its \
             owner write there"
                .to_owned(),
        ));
    }
    Ok(())
}

fn not_a_file(meta: &Metadata) -> io::Error {
    let kind = rustix::fs::FileType::from_raw_mode(meta.mode());
    let what = match kind {
        rustix::fs::FileType::Symlink => "a symbolic link",
        rustix::fs::FileType::Directory => "a directory",
        rustix::fs::FileType::Fifo => "a named pipe",
        rustix::fs::FileType::Socket => "a socket",
        _ => "a device",
    };
    refused(format!("it is {what}, not a regular file: remove it"))
}

fn refused(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests;
