//! The dead-letter file: records that a server will never accept, stored for inspection and for `tailrace replay`. Each
//! line is a JSON object. It has the request of one record in base64, uncompressed, and the name of the request's
//! encoding, so that the same bytes can be sent again.
//!
//! A record that made the agent panic or die has no request. Its entry has the record itself as `crashed`, which can be
//! inspected but not sent.
//!
//! An entry is on disk, synced, before [`DeadLetterFile::add`] returns. If a crash left an incomplete line, it is ended
//! before the next entry is added, and readers skip it. This module never decides which records are bad.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use tracing::warn;

/// One dead-lettered record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetterEntry {
    /// When it was added, RFC 3339 in UTC.
    pub time: String,
    /// The output that could not deliver it.
    pub output: String,
    /// What the server said.
    pub reason: String,
    /// A number for the request that held it, the same for all records of the request.
    pub request: String,
    /// Where it was read; empty if that is no file.
    pub path: String,
    /// The bytes of the file that it was read from: the first, and one past the last.
    pub bytes: Option<(u64, u64)>,
    /// The encoding of `payload`, such as `otlp`; empty if `crashed` is set.
    #[serde(default = "otlp")]
    pub encoding: String,
    /// A request of this record alone, as its output sends it (in OTLP with its resource and scope); empty if `crashed` is
    /// set. Files of earlier versions call it `otlp`.
    #[serde(
        with = "in_base64",
        default,
        skip_serializing_if = "Vec::is_empty",
        alias = "otlp"
    )]
    pub payload: Vec<u8>,
    /// The record itself, where it could not be processed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crashed: Option<CrashedRecord>,
}

impl DeadLetterEntry {
    /// The entry of a line; `None` if it is none.
    pub fn parse(line: &[u8]) -> Option<DeadLetterEntry> {
        serde_json::from_slice(line).ok()
    }
}

/// The encoding of entries without one: earlier versions wrote only OTLP.
fn otlp() -> String {
    "otlp".to_owned()
}

/// A record that could not be processed, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashedRecord {
    /// Its bytes, without a container's envelope, its lines joined.
    #[serde(with = "in_base64")]
    pub line: Vec<u8>,
    /// When the container runtime took it, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// Where the container wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
}

/// Why a record could not be added to the file.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// The file has reached its maximum size.
    #[error(
        "the dead-letter file {} is full ({bytes_max} bytes): send its records again with \
         `tailrace replay`, move it away, or raise dead_letter.max_bytes",
        path.display()
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// Its maximum size, in bytes.
        bytes_max: u64,
    },
    /// The file cannot be written.
    #[error("the dead-letter file {} cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The dead-letter file of one pipeline, shared by its outputs.
#[derive(Debug)]
pub struct DeadLetterFile {
    path: PathBuf,
    bytes_max: u64,
    owner: Option<Owner>,
    lock: Mutex<()>,
}

/// Whom a file belongs to: the ids of a user and a group.
pub type Owner = (u32, u32);

impl DeadLetterFile {
    /// The file at `path`, of at most `bytes_max` bytes. It is created, with its directory, when the first record is added.
    pub fn new(path: impl Into<PathBuf>, bytes_max: u64) -> DeadLetterFile {
        DeadLetterFile {
            path: path.into(),
            bytes_max,
            owner: None,
            lock: Mutex::new(()),
        }
    }

    /// The same; if this process creates the file, it gives it to this owner, which only root can.
    pub fn owned_by(self, owner: Option<Owner>) -> DeadLetterFile {
        DeadLetterFile { owner, ..self }
    }

    /// Adds a record; it is on disk when this returns.
    ///
    /// # Errors
    ///
    /// The file is full or cannot be written; nothing was added then.
    pub fn add(&self, entry: &DeadLetterEntry) -> Result<(), DeadLetterError> {
        let added = self.add_all(std::slice::from_ref(entry));
        added.map_err(|(_, error)| error)
    }

    /// Adds records; they are on disk when this returns.
    ///
    /// # Errors
    ///
    /// The file is full or cannot be written. The number is that of the records that were added, from the first on.
    pub fn add_all(&self, entries: &[DeadLetterEntry]) -> Result<(), (usize, DeadLetterError)> {
        let lines: Result<Vec<_>, _> = entries.iter().map(serde_json::to_vec).collect();
        self.add_lines(&lines.map_err(|error| (0, self.cannot_write(error.into())))?)
    }

    /// Adds lines as they are, without line ends: what a person wrote into the file, and what cannot be read.
    ///
    /// # Errors
    ///
    /// As [`add_all`](Self::add_all).
    pub fn add_lines(&self, lines: &[Vec<u8>]) -> Result<(), (usize, DeadLetterError)> {
        let _one = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let added = self
            .append(lines)
            .map_err(|source| (0, self.cannot_write(source)))?;
        if added == lines.len() {
            return Ok(());
        }
        let full = DeadLetterError::Full {
            path: self.path.clone(),
            bytes_max: self.bytes_max,
        };
        Err((added, full))
    }

    fn cannot_write(&self, source: io::Error) -> DeadLetterError {
        let path = self.path.clone();
        DeadLetterError::Write { path, source }
    }

    /// Opens the file and locks it. While somebody holds the lock, `tailrace replay` cannot move the file aside; if it has
    /// just done so, the file that was opened is not the one to add to.
    fn open_locked(&self) -> io::Result<File> {
        loop {
            let file = open_or_create(&self.path, self.owner)?;
            lock(&file)?;
            if is_at(&file, &self.path)? {
                return Ok(file);
            }
        }
    }

    /// Adds records until the file is full. Returns how many were added.
    fn append(&self, added_lines: &[Vec<u8>]) -> io::Result<usize> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        tailrace_files::create_dir(folder)?;
        let mut file = self.open_locked()?;
        let before = file.metadata()?.len();
        // Only now: until the lock was taken, a replay may have moved the file that was here.
        if before == 0 {
            File::open(folder)?.sync_all()?;
        }
        let mut lines = Vec::new();
        if before > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                lines.push(b'\n');
            }
        }
        let mut added = 0;
        for line in added_lines {
            let end = lines.len();
            lines.extend_from_slice(line);
            lines.push(b'\n');
            if before + lines.len() as u64 > self.bytes_max {
                lines.truncate(end);
                break;
            }
            added += 1;
        }
        if added == 0 {
            return Ok(0);
        }
        let written = file.write_all(&lines).and_then(|()| file.sync_data());
        if written.is_err() {
            // Half a line is useless. If truncation fails as well, readers skip it.
            let _ = file.set_len(before);
        }
        written.map(|()| added)
    }
}

/// Opens a file of the agent to read it and to append to it. If this creates it, it belongs to `owner`.
///
/// # Errors
///
/// It cannot be opened, or not be given to the owner.
pub fn open_or_create(path: &Path, owner: Option<Owner>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    if let Some((user, group)) = owner {
        // Only what was just made: a file that is there may be another one's, by a link.
        match tailrace_files::open(path, options.clone().create_new(true)) {
            Ok(file) => {
                fchown(&file, Some(user), Some(group))?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    tailrace_files::open(path, options.create(true))
}

/// Locks a dead-letter file against others that add to it or move it, until it is closed. The file must be open for
/// writing: NFS demands it. On a file system without locks there is none, and one warning says so.
///
/// # Errors
///
/// The lock cannot be taken.
pub fn lock(file: &File) -> io::Result<()> {
    match file.lock() {
        Err(error) if is_without_locks(&error) => {
            static WARNED: Once = Once::new();
            WARNED.call_once(|| {
                warn!(
                    %error,
                    "the file system of data_dir has no locks: do not run `tailrace replay` while the agent runs"
                );
            });
            Ok(())
        }
        locked => locked,
    }
}

/// Returns whether an error says that this file system has no locks.
fn is_without_locks(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    error.kind() == io::ErrorKind::Unsupported
        || errno.is_some_and(|errno| matches!(errno, Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS))
}

/// Whether this file is still at the path.
///
/// # Errors
///
/// It cannot be found out.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let there = match fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let open = file.metadata()?;
    Ok((open.dev(), open.ino()) == (there.dev(), there.ino()))
}

/// Reads the entries of a dead-letter file, in order. A line that is not an entry is returned as `Err` with its bytes. A file that does not exist has no entries.
///
/// # Errors
///
/// The file cannot be read.
pub fn read_dead_letters(path: &Path) -> io::Result<Vec<Result<DeadLetterEntry, Vec<u8>>>> {
    let file = match tailrace_files::open(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut entries = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        let line = line?;
        if !line.is_empty() {
            entries.push(DeadLetterEntry::parse(&line).ok_or(line));
        }
    }
    Ok(entries)
}

mod in_base64 {
    use super::{Deserialize, Engine, STANDARD};

    pub(super) fn serialize<S: serde::Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        STANDARD
            .decode(text.as_bytes())
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{
        CrashedRecord, DeadLetterEntry, DeadLetterError, DeadLetterFile, Errno, OpenOptions,
        is_without_locks, read_dead_letters,
    };

    fn entry(reason: &str) -> DeadLetterEntry {
        DeadLetterEntry {
            reason: reason.to_owned(),
            bytes: Some((3, 9)),
            encoding: "otlp".to_owned(),
            payload: vec![0, 255, 10],
            ..DeadLetterEntry::default()
        }
    }

    #[test]
    fn what_is_added_is_read_back_and_a_cut_line_harms_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead-letter/app.ndjson");
        assert_eq!(read_dead_letters(&path).unwrap(), []);
        let dead_letters = DeadLetterFile::new(&path, 1 << 20);
        dead_letters.add(&entry("a \"quoted\"\nreason")).unwrap();
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"time\":\"20").unwrap();
        dead_letters.add(&entry("b")).unwrap();
        let read = read_dead_letters(&path).unwrap();
        let expected = [
            Ok(entry("a \"quoted\"\nreason")),
            Err(b"{\"time\":\"20".to_vec()),
            Ok(entry("b")),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn a_file_system_without_locks_is_no_error_and_other_failures_are() {
        for errno in [Errno::NOLCK, Errno::NOTSUP, Errno::NOSYS] {
            assert!(is_without_locks(&errno.into()), "{errno}");
        }
        for errno in [Errno::BADF, Errno::IO, Errno::INTR] {
            assert!(!is_without_locks(&errno.into()), "{errno}");
        }
    }

    #[test]
    fn an_entry_of_an_earlier_version_is_otlp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.ndjson");
        let line = r#"{"time":"","output":"","reason":"x","request":"","path":"","bytes":[3,9],"otlp":"AP8K"}"#;
        std::fs::write(&path, format!("{line}\n")).unwrap();
        assert_eq!(read_dead_letters(&path).unwrap(), [Ok(entry("x"))]);
    }

    #[test]
    fn a_crashed_record_has_its_line_and_no_request() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.ndjson");
        let crashed = CrashedRecord {
            line: b"\xff{\n".to_vec(),
            stream: Some("stderr".to_owned()),
            ..CrashedRecord::default()
        };
        let entry = DeadLetterEntry {
            encoding: String::new(),
            payload: Vec::new(),
            crashed: Some(crashed),
            ..entry("a panic")
        };
        DeadLetterFile::new(&path, 1 << 20).add(&entry).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("payload"), "{text}");
        assert_eq!(read_dead_letters(&path).unwrap(), [Ok(entry)]);
    }

    #[test]
    fn of_several_records_as_many_are_added_as_there_is_room_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.ndjson");
        let all = ["a", "b", "c", "d", "e", "f"].map(entry);
        let file = DeadLetterFile::new(&path, 500);
        let (added, error) = file.add_all(&all).unwrap_err();
        assert!(matches!(error, DeadLetterError::Full { .. }), "{error}");
        assert!((1..6).contains(&added));
        let expect: Vec<_> = all[..added].iter().cloned().map(Ok).collect();
        assert_eq!(read_dead_letters(&path).unwrap(), expect);
        assert_eq!(file.add_all(&all[added..]).unwrap_err().0, 0);
        assert!(file.add_all(&[]).is_ok());
    }

    #[test]
    fn the_size_is_never_exceeded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.ndjson");
        let file = DeadLetterFile::new(&path, 500);
        let mut count = 0;
        let error = loop {
            match file.add(&entry("no")) {
                Ok(()) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, DeadLetterError::Full { .. }), "{error}");
        assert!(count > 1 && std::fs::metadata(&path).unwrap().len() <= 500);
        assert_eq!(read_dead_letters(&path).unwrap().len(), count);
    }
}
