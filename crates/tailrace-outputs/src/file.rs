//! The file output: appends lines to a file. It follows the path, not the file: if the file was moved or deleted, it creates
//! a new one. It never rotates. What a failed write left is taken back or, where that fails as well, ended as a line of its
//! own before the next payload.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
        /// The file. If it does not exist, it is created with mode 0640, and its directories with mode 0750.
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
    file: Mutex<Option<File>>,
}

impl Appender {
    /// For the file at `path`; it is made, with its folder, at the first write.
    fn new(path: impl Into<PathBuf>) -> Appender {
        Appender {
            inner: Arc::new(Inner {
                path: path.into(),
                file: Mutex::new(None),
            }),
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
        self.append_with(bytes, File::write_all)
    }

    fn append_with(
        &self,
        bytes: &[u8],
        write: impl FnOnce(&mut File, &[u8]) -> io::Result<()>,
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
            builder.recursive(true).mode(DIR_MODE).create(folder)?;
        }
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(FILE_MODE)
            .open(&self.path)?;
        if self.ends_within_a_line(&file)? {
            file.write_all(b"\n")?;
        }
        Ok(file)
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

/// Writes all of `bytes` and syncs, or, in a regular file, takes back what was written of them.
fn write_whole(
    file: &mut File,
    bytes: &[u8],
    write: impl FnOnce(&mut File, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let metadata = file.metadata()?;
    let before = metadata.len();
    let regular = metadata.is_file();
    let written = write(file, bytes).and_then(|()| if regular { file.sync_data() } else { Ok(()) });
    if written.is_err() && regular {
        // The first failure is the one to report. What cannot be taken back is ended when the file is opened again. A file
        // that somebody truncated meanwhile is not made longer.
        let is_longer = file.metadata().is_ok_and(|now| now.len() > before);
        let _ = is_longer.then(|| file.set_len(before));
    }
    written
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{self, Write};

    use bytes::Bytes;

    use tailrace_otlp::Compression;

    use super::{Appender, WRITTEN, write_whole};
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

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let mut file = tempfile::tempfile().unwrap();
        write_whole(&mut file, b"1\n", File::write_all).unwrap();
        let half = |file: &mut File, bytes: &[u8]| {
            file.write_all(&bytes[..bytes.len() / 2])?;
            Err(io::ErrorKind::StorageFull.into())
        };
        let failed = write_whole(&mut file, b"22222\n", half);
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(file.metadata().unwrap().len(), 2);
    }

    #[test]
    fn a_file_that_was_truncated_during_a_failed_write_gets_no_hole() {
        let mut file = tempfile::tempfile().unwrap();
        write_whole(&mut file, b"111111\n", File::write_all).unwrap();
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
        let half = |file: &mut File, bytes: &[u8]| {
            file.write_all(&bytes[..3])?;
            // This one cannot be truncated.
            *file = File::open(&path)?;
            Err(io::ErrorKind::StorageFull.into())
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
    async fn a_device_is_written_too() {
        let output = Appender::new("/dev/null");
        assert_eq!(write(&output, "1\n").await, WRITTEN);
    }
}
