//! The files of this machine as an object store that reads where it is asked.
//!
//! That of `object_store` hands each read to another thread. What the page cache holds is read in less time than a thread needs to wake up,
//! which small row groups of Parquet ask for once each; and who asks has nothing else to do.

mod whole;

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path as FilePath, PathBuf};

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{BoxStream, try_unfold};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use self::whole::Whole;

/// Only ranges and whole files are read in its own way.
#[derive(Debug, Default)]
pub(super) struct LocalFiles(LocalFileSystem);

impl fmt::Display for LocalFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What stands in parts of a file.
fn read(path: &FilePath, ranges: &[Range<u64>]) -> std::io::Result<Vec<Bytes>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut read = |range: &Range<u64>| {
        // The numbers of a damaged file may be any.
        let len = range.end.checked_sub(range.start);
        let Some(len) = len.filter(|_| range.end <= size) else {
            return Err(ErrorKind::UnexpectedEof.into());
        };
        file.seek(SeekFrom::Start(range.start))?;
        let mut bytes = Vec::with_capacity(len as usize);
        // Reading to an end clears no memory.
        if (&mut file).take(len).read_to_end(&mut bytes)? as u64 != len {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes.into())
    };
    ranges.iter().map(&mut read).collect()
}

/// What an Arrow file begins with, in either form.
const ARROW: [&[u8]; 2] = [b"ARROW1", &[0xff; 4]];
/// All of a file as it is now.
fn all(file: File, path: PathBuf, size: u64) -> std::io::Result<GetResultPayload> {
    let mut head = [0; 6];
    let read = file.read_at(&mut head, 0)?;
    // Arrow's parts say how long they are, and its reader goes back and forth.
    if ARROW.iter().any(|mark| head[..read].starts_with(mark)) {
        return Ok(GetResultPayload::File(file, path));
    }
    let whole = Whole::new(file, &path, size)?;
    let parts = try_unfold((whole, path), move |(mut whole, path)| async move {
        let part = whole.next().map_err(|error| failed(&path, &error))?;
        Ok((!part.is_empty()).then_some((part, (whole, path))))
    });
    Ok(GetResultPayload::Stream(parts.boxed()))
}

fn failed(path: &FilePath, error: &std::io::Error) -> Error {
    Error::Generic {
        store: "LocalFileSystem",
        source: format!("{}: {error}", path.display()).into(),
    }
}

#[async_trait]
impl ObjectStore for LocalFiles {
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.0.path_to_filesystem(location)?;
        read(&path, ranges).map_err(|error| failed(&path, &error))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_whole = options.range.is_none() && !options.head;
        let got = self.0.get_opts(location, options).await?;
        let payload = match got.payload {
            GetResultPayload::File(file, path) if is_whole => {
                let size = got.meta.size;
                all(file, path.clone(), size).map_err(|error| failed(&path, &error))?
            }
            payload => payload,
        };
        Ok(GetResult { payload, ..got })
    }

    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::ObjectStoreExt;

    use super::whole::READ_BYTES;
    use super::*;

    /// Lines of a file that others write to meanwhile.
    #[tokio::test]
    async fn a_file_that_grows_ends_and_one_that_is_cut_fails() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.csv");
        let location = Path::from_absolute_path(&path).expect("a location");
        let store = LocalFiles::default();
        let line = "x".repeat(READ_BYTES as usize);
        for (text, more, all) in [
            ("a\n", "b\n", "a\n"),
            ("a\nb", "c\nd\n", "a\nbc\n"),
            ("a\nb", "", "a\nb"),
            ("", "a\n", ""),
            (&line, &format!("{line}\nb\n"), &format!("{line}{line}\n")),
            // A line end in quotes ends no record, wherever reading began.
            ("1,\"a\n", "b\"\n2,c\n", "1,\"a\nb\"\n"),
            ("1,\"a\nb\"", "\"\nc\"\n2\n", "1,\"a\nb\"\"\nc\"\n"),
            (
                "\u{feff}\"a;\"",
                "\"\n\";1\n2\n",
                "\u{feff}\"a;\"\"\n\";1\n",
            ),
        ] {
            std::fs::write(&path, text).expect("a file");
            let got = store.get(&location).await.expect("the file");
            std::fs::write(&path, format!("{text}{more}")).expect("a file");
            let bytes = got.bytes().await.expect("its bytes");
            assert!(bytes == all.as_bytes(), "{} bytes", bytes.len());
        }
        let open = format!("a\n\"{line}\n");
        std::fs::write(&path, open).expect("a file");
        let got = store.get(&location).await.expect("the file");
        let error = got.bytes().await.expect_err("it is cut off").to_string();
        assert!(
            error.contains("a.csv: the quote in line 2 is not closed"),
            "{error}"
        );
        std::fs::write(&path, line).expect("a file");
        let got = store.get(&location).await.expect("the file");
        std::fs::write(&path, "a\n").expect("a file");
        let error = got.bytes().await.expect_err("it was cut").to_string();
        assert!(
            error.contains("a.csv: became shorter while it was read"),
            "{error}"
        );
    }

    /// Whether it is longer then or not, and also behind the last part.
    #[tokio::test]
    async fn a_file_that_is_written_again_fails() {
        let directory = tempfile::tempdir().expect("a directory");
        let store = LocalFiles::default();
        let rows = |digit: &str, count: usize| format!("{}\n", digit.repeat(7)).repeat(count);
        let count = READ_BYTES as usize / 8;
        for (name, first, second, parts) in [
            ("a.csv", 3 * count, 4 * count, 1),
            ("a.csv", 3 * count, 3 * count, 2),
            ("a.csv", count, count + 1, 1),
            ("a.log", 3 * count, 5 * count, 1),
        ] {
            let path = directory.path().join(name);
            let location = Path::from_absolute_path(&path).expect("a location");
            std::fs::write(&path, rows("1", first)).expect("a file");
            let mut read = store.get(&location).await.expect("it").into_stream();
            for _ in 0..parts {
                read.next().await.expect("a part").expect("its bytes");
            }
            std::fs::write(&path, rows("2", second)).expect("a file");
            let error = read.next().await.expect("an error").expect_err("changed");
            let error = error.to_string();
            let said = format!("{name}: was changed while it was read");
            assert!(error.contains(&said), "{error}");
        }
    }

    #[tokio::test]
    async fn ranges_are_read_as_the_store_of_the_crate_reads_them() {
        let directory = tempfile::tempdir().expect("a directory");
        // A name that a store writes otherwise.
        let path = directory.path().join("a %25 #b.bin");
        let bytes: Vec<u8> = (0..=255).collect();
        std::fs::write(&path, &bytes).expect("a file");
        let location = Path::from_absolute_path(&path).expect("a location");
        let (ours, theirs) = (LocalFiles::default(), LocalFileSystem::new());
        let ranges = [0..0, 0..256, 200..201, 7..90];
        let read = ours.get_ranges(&location, &ranges).await.expect("ranges");
        assert_eq!(
            read,
            theirs.get_ranges(&location, &ranges).await.expect("ranges")
        );
        assert_eq!(read[3], bytes[7..90]);
        let whole = ours.get(&location).await.expect("the file");
        assert_eq!(whole.bytes().await.expect("its bytes"), bytes);
        let beyond = std::slice::from_ref(&(250..257));
        let error = ours.get_ranges(&location, beyond).await;
        let error = error.expect_err("there are no such bytes").to_string();
        assert!(error.contains("a %25 #b.bin: "), "{error}");
        let (inverted, endless) = (Range { start: 9, end: 3 }, 0..u64::MAX);
        for range in [inverted, endless] {
            let error = ours.get_ranges(&location, &[range]).await;
            let error = error.expect_err("there are no such bytes").to_string();
            assert!(error.contains("unexpected end of file"), "{error}");
        }
        std::fs::remove_file(&path).expect("removed");
        let error = ours.get_ranges(&location, &ranges).await;
        let error = error.expect_err("there is no file").to_string();
        assert!(error.contains("No such file"), "{error}");
    }
}
