//! The file output: appends lines to a file. It follows the path, not the file: if the file was moved or deleted, it creates
//! a new one. It never rotates. What a failed write left is taken back or, where that fails as well, ended as a line of its
//! own before the next payload.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::OFlags;
use rustix::io::Errno;
use tailrace_otlp::{Encoding, NdjsonEncoding};
use tailrace_schema::kind::FilePath;
use tailrace_schema::section::Section;

use crate::delivery::{Attempt, CompressionSearch, Payload, RetryPolicy, Transport};
use crate::local::{POLICY, UNCOMPRESSED, WRITTEN, failed};
use crate::{Error, Opened, Output, OutputType};

pub(crate) const TYPE: OutputType = OutputType {
    name: "file",
    info: &<FileOutput as Section>::INFO,
    example: "type: file\npath: /var/tmp/records.ndjson\n",
    read: |node, reader, common| {
        let output: FileOutput = reader.section(node, common)?;
        Some(Arc::new(output))
    },
};

section! {
    /// Appends records to a file, one JSON object per line.
    pub struct FileOutput {
        /// The file. If it does not exist, it is created with mode 0640, and its directories with mode 0750. A named pipe
        /// works too: the output waits until somebody reads it. What is in the pipe counts as delivered, so that 64 KiB may be lost when its reader ends.
        path: PathBuf = FilePath, required("/var/tmp/records.ndjson");
    }
}

impl Output for FileOutput {
    fn type_name(&self) -> &'static str {
        TYPE.name
    }

    fn endpoint(&self) -> Option<String> {
        Some(self.path.display().to_string())
    }

    fn encoding(&self) -> Arc<dyn Encoding> {
        Arc::new(NdjsonEncoding::default())
    }

    fn open(&self) -> Result<Opened, Error> {
        Ok(Opened::in_order(Appender::new(&self.path)))
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn writes(&self) -> Option<&Path> {
        Some(&self.path)
    }
}

/// Mode of a file that is made: logs are for their owner and a group, whatever the umask allows beyond it. One that is
/// there keeps its mode.
const FILE_MODE: u32 = 0o640;
/// Mode of directories that are made.
const DIR_MODE: u32 = 0o750;

/// Appends payloads to one file, one after the other. Delivered means synced to disk.
struct Appender {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    file: Slot,
}

/// The file while it is open.
type Slot = Arc<Mutex<Option<File>>>;

/// Of each file the slot that all who append to it share: a write that a reload gave up, since the reader of a named pipe is slow, goes on, and
/// the next one must not begin within its lines.
static SLOTS: Mutex<BTreeMap<PathBuf, Weak<Mutex<Option<File>>>>> = Mutex::new(BTreeMap::new());

fn slot(path: &Path) -> Slot {
    let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    slots.retain(|_, slot| slot.strong_count() > 0);
    if let Some(slot) = slots.get(path).and_then(Weak::upgrade) {
        return slot;
    }
    let slot = Slot::default();
    slots.insert(path.to_owned(), Arc::downgrade(&slot));
    slot
}

impl Appender {
    /// For the file at `path`; it is made, with its folder, at the first write.
    fn new(path: impl Into<PathBuf>) -> Appender {
        let path = path.into();
        let file = slot(&path);
        Appender {
            inner: Arc::new(Inner { path, file }),
        }
    }
}

impl Transport for Appender {
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a> {
        let (inner, bytes) = (Arc::clone(&self.inner), payload.bytes.clone());
        Box::pin(async move {
            let written = tokio::task::spawn_blocking(move || inner.append(&bytes)).await;
            let path = self.inner.path.display().to_string();
            let outcome = match written {
                Ok(Ok(())) => WRITTEN,
                Ok(Err(error)) => failed(&path, &error),
                Err(stopped) => failed(&path, &io::Error::other(stopped)),
            };
            outcome.into()
        })
    }

    fn compression(&self) -> &CompressionSearch {
        &UNCOMPRESSED
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &POLICY
    }
}

impl Inner {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.append_with(bytes, |file, bytes| file.write(bytes))
    }

    fn append_with(
        &self,
        bytes: &[u8],
        write: impl FnMut(&mut File, &[u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        let mut slot = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = match slot.take() {
            Some(file) if self.is_at_path(&file) => file,
            _ => self.open()?,
        };
        write_whole(&mut file, bytes, write)?;
        // After a failure the file is opened anew, which ends a line that could not be taken back.
        *slot = Some(file);
        Ok(())
    }

    /// Whether the path still leads to this file.
    fn is_at_path(&self, file: &File) -> bool {
        match (file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(open), Ok(there)) => (open.dev(), open.ino()) == (there.dev(), there.ino()),
            _ => false,
        }
    }

    fn open(&self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            let mut builder = DirBuilder::new();
            let made = builder.recursive(true).mode(DIR_MODE).create(folder);
            // Of a file there, the system says that it exists.
            made.map_err(|error| match folder.exists() && !folder.is_dir() {
                true => io::Error::other(format!("{} is no directory", folder.display())),
                false => error,
            })?;
        }
        // Opening a named pipe without a reader would block.
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(FILE_MODE)
            // Flags of open(2) fit in the type that it takes.
            .custom_flags(flags.bits() as i32)
            .open(&self.path);
        let mut file = opened.map_err(|error| self.explained(error))?;
        // Writing waits, as the agent then reads no further.
        rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
        if self.ends_within_a_line(&file)? {
            file.write_all(b"\n")?;
        }
        Ok(file)
    }

    fn explained(&self, error: io::Error) -> io::Error {
        let meta = std::fs::metadata(&self.path);
        match meta.map(|meta| meta.file_type()) {
            Ok(kind) if kind.is_fifo() && is(&error, Errno::NXIO) => {
                io::Error::other("it is a named pipe that nobody reads")
            }
            Ok(kind) if kind.is_socket() => io::Error::other("it is a socket, not a file"),
            _ => error,
        }
    }

    /// Whether an earlier process died while it was writing a line, which it then has not acknowledged.
    fn ends_within_a_line(&self, file: &File) -> io::Result<bool> {
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(false);
        }
        let mut last = [0];
        let read = match File::open(&self.path) {
            Ok(readable) => readable.read_exact_at(&mut last, metadata.len() - 1),
            // It may be written to and not be read.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(false),
            Err(error) => Err(error),
        };
        read.map(|()| last != *b"\n")
    }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

/// Writes all of `bytes` and syncs, or, in a regular file, takes back what was written of them.
fn write_whole(
    file: &mut File,
    bytes: &[u8],
    mut write: impl FnMut(&mut File, &[u8]) -> io::Result<usize>,
) -> io::Result<()> {
    let metadata = file.metadata()?;
    let regular = metadata.is_file();
    let mut rest = bytes;
    let written = loop {
        if rest.is_empty() {
            break if regular { file.sync_data() } else { Ok(()) };
        }
        match write(file, rest) {
            Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
            Ok(bytes) => rest = &rest[bytes..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    if written.is_err() && regular {
        let before = metadata.len();
        let after = before + (bytes.len() - rest.len()) as u64;
        // The first failure is the one to report. What cannot be taken back is ended when the file is opened again. Nothing is
        // taken back where somebody else has written to the file or truncated it meanwhile.
        let is_alone = after > before && file.metadata().is_ok_and(|now| now.len() == after);
        let _ = is_alone.then(|| file.set_len(before));
    }
    written
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, Read, Write};
    use std::os::unix::fs::OpenOptionsExt;
    use std::sync::Arc;

    use bytes::Bytes;

    use tailrace_otlp::Compression;

    use super::{Appender, OFlags, WRITTEN, write_whole};
    use crate::delivery::{Outcome, Payload, Transport};

    async fn write(output: &Appender, text: &'static str) -> Outcome {
        let payload = Payload {
            bytes: Bytes::from_static(text.as_bytes()),
            compression: Compression::None,
            records: 1,
            uncompressed_bytes: text.len() as u64,
        };
        output.attempt(&payload).await.outcome
    }

    #[tokio::test]
    async fn a_moved_or_deleted_file_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/out.ndjson");
        let output = Appender::new(&path);
        assert_eq!(write(&output, "1\n").await, WRITTEN);
        assert_eq!(write(&output, "2\n").await, WRITTEN);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n2\n");
        let moved = folder.path().join("out.old");
        std::fs::rename(&path, &moved).unwrap();
        assert_eq!(write(&output, "3\n").await, WRITTEN);
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "1\n2\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "3\n");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(write(&output, "4\n").await, WRITTEN);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "4\n");
    }

    #[tokio::test]
    async fn a_path_that_cannot_be_written_is_tried_again_until_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.ndjson");
        std::fs::create_dir(&path).unwrap();
        let output = Appender::new(&path);
        match write(&output, "1\n").await {
            Outcome::Retry { reason, .. } => assert!(reason.contains("out.ndjson"), "{reason}"),
            other => panic!("{other:?}"),
        }
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(write(&output, "1\n").await, WRITTEN);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[tokio::test]
    async fn a_line_that_a_killed_process_left_unfinished_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.ndjson");
        std::fs::write(&path, "1\n{\"half\":").unwrap();
        assert_eq!(write(&Appender::new(&path), "2\n").await, WRITTEN);
        assert_eq!(write(&Appender::new(&path), "3\n").await, WRITTEN);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "1\n{\"half\":\n2\n3\n");
    }

    /// Writes a half, and then fails.
    fn half() -> impl FnMut(&mut File, &[u8]) -> io::Result<usize> {
        let mut calls = 0;
        move |file, bytes| {
            calls += 1;
            match calls {
                1 => file.write(&bytes[..bytes.len() / 2]),
                _ => Err(io::ErrorKind::StorageFull.into()),
            }
        }
    }

    #[test]
    fn what_another_writes_meanwhile_is_not_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.ndjson");
        let open = || {
            std::fs::OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .unwrap()
        };
        let mut file = open();
        let mut half = half();
        let failed = write_whole(&mut file, b"22222\n", |file, bytes| {
            half(file, bytes).inspect_err(|_| open().write_all(b"\nother\n").unwrap())
        });
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "222\nother\n");
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let mut file = tempfile::tempfile().unwrap();
        write_whole(&mut file, b"1\n", |file, bytes| file.write(bytes)).unwrap();
        let failed = write_whole(&mut file, b"22222\n", half());
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.metadata().unwrap().len(), 2);
    }

    #[test]
    fn a_file_that_was_truncated_during_a_failed_write_gets_no_hole() {
        let mut file = tempfile::tempfile().unwrap();
        write_whole(&mut file, b"111111\n", |file, bytes| file.write(bytes)).unwrap();
        let truncated = |file: &mut File, _: &[u8]| {
            file.set_len(0)?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let failed = write_whole(&mut file, b"2\n", truncated);
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[tokio::test]
    async fn half_a_line_that_cannot_be_taken_back_is_ended_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.ndjson");
        let output = Appender::new(&path);
        assert_eq!(write(&output, "1\n").await, WRITTEN);
        let mut half = half();
        let half = |file: &mut File, bytes: &[u8]| {
            half(file, bytes).inspect_err(|_| {
                // This one cannot be truncated.
                *file = File::open(&path).unwrap();
            })
        };
        let failed = output.inner.append_with(b"22222\n", half);
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(write(&output, "22222\n").await, WRITTEN);
        assert_eq!(write(&output, "3\n").await, WRITTEN);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "1\n222\n22222\n3\n");
    }

    #[tokio::test]
    async fn what_is_made_is_not_for_everybody_and_what_is_there_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
        let path = folder.path().join("deep/er/out.ndjson");
        assert_eq!(write(&Appender::new(&path), "1\n").await, WRITTEN);
        assert_eq!(mode(&path) & 0o027, 0);
        for dir in path.ancestors().skip(1).take(2) {
            assert_eq!(mode(dir) & 0o027, 0, "{}", dir.display());
        }
        let open_to_all = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&path, open_to_all).unwrap();
        assert_eq!(write(&Appender::new(&path), "2\n").await, WRITTEN);
        assert_eq!(mode(&path) & 0o777, 0o666);
    }

    #[tokio::test]
    async fn whole_writes_of_two_outputs_follow_each_other_in_a_named_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        // Reading and writing, so that opening does not wait for the output.
        let mut reader = File::options().read(true).write(true).open(&path).unwrap();
        let line = |letter: &str| letter.repeat(300_000) + "\n";
        let (given_up, next) = (Appender::new(&path), Appender::new(&path));
        let first = Arc::clone(&given_up.inner);
        let first = std::thread::spawn(move || first.append(line("a").as_bytes()));
        // The first one has begun.
        let mut all = vec![0];
        reader.read_exact(&mut all).unwrap();
        let second = Arc::clone(&next.inner);
        let second = std::thread::spawn(move || second.append(line("b").as_bytes()));
        let mut rest = vec![0; 600_001];
        reader.read_exact(&mut rest).unwrap();
        all.extend(rest);
        first.join().unwrap().unwrap();
        second.join().unwrap().unwrap();
        assert!(all == (line("a") + &line("b")).into_bytes());
    }

    #[tokio::test]
    async fn a_named_pipe_waits_for_its_reader_and_survives_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
        let output = Appender::new(&path);
        let nobody = async || match write(&output, "1\n").await {
            Outcome::Retry { reason, .. } => reason,
            other => panic!("{other:?}"),
        };
        assert!(
            nobody()
                .await
                .ends_with("it is a named pipe that nobody reads")
        );
        let reader = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32)
            .open(&path)
            .unwrap();
        for _ in 0..2 {
            assert_eq!(write(&output, "1\n").await, WRITTEN);
        }
        let mut read = [0; 16];
        assert_eq!((&reader).read(&mut read).unwrap(), 4);
        assert_eq!(read[..4], *b"1\n1\n");
        drop(reader);
        assert!(nobody().await.contains("Broken pipe"));
        assert!(
            nobody()
                .await
                .ends_with("it is a named pipe that nobody reads")
        );
    }

    #[tokio::test]
    async fn a_device_is_written_too() {
        let output = Appender::new("/dev/null");
        assert_eq!(write(&output, "1\n").await, WRITTEN);
    }
}
