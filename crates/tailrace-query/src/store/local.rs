//! The files of this machine as an object store that reads where it is asked.
//!
//! That of `object_store` hands each read to another thread. What the page cache holds is read in less time than a thread needs to wake up,
//! which small row groups of Parquet ask for once each; and who asks has nothing else to do.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path as FilePath;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// Only ranges are read in its own way.
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

#[async_trait]
impl ObjectStore for LocalFiles {
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let path = self.0.path_to_filesystem(location)?;
        read(&path, ranges).map_err(|error| Error::Generic {
            store: "LocalFileSystem",
            source: format!("{}: {error}", path.display()).into(),
        })
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(location, options).await
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

    use super::*;

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
