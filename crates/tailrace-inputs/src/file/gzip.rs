//! A compressed file as the bytes it was made of.
//!
//! Takes an open `.gz` file, says whether it holds the rest of a file that is known, and gives bytes from any offset of the
//! original. Knows no names: which file is opened is `file/compressed_file.rs`'s affair. Holds a few buffers, never a
//! file in memory; and never decompresses without end: a file may expand to
//! [`EXPANDED_BYTES_FREE`], or to [`RATIO_MAX`] times its size, at most to [`EXPANDED_BYTES_MAX`]. Beyond that it is an
//! error of the kind `FileTooLarge`.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::gzip_members::{GzipMembers, expanded_max};
use crate::identity::{
    FINGERPRINT_BYTES_MAX, FileId, FingerprintKey, TAIL_BYTES_MAX, ends_in_line, read_full_at,
};

/// A file may expand to so many bytes, whatever its own size is.
const EXPANDED_BYTES_FREE: u64 = 256 << 20;
/// Beyond that, to so many times its size. Logs are seldom compressed to less than a hundredth.
const RATIO_MAX: u64 = 200;
/// No file may expand to more.
const EXPANDED_BYTES_MAX: u64 = 64 << 30;
/// How many bytes are decompressed at once while looking for something.
const STEP_BYTES: usize = 64 * 1024;

/// What a compressed file was found to hold of a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Original {
    /// Its size.
    pub(crate) size: u64,
    /// Whether the byte before the offset asked for is something else than a newline.
    pub(crate) mid_line: bool,
}

/// Reads the original bytes.
pub(crate) struct GzipReader {
    decoder: GzipMembers<BufReader<Whole>>,
    /// The size of the compressed file.
    file_bytes: u64,
    /// How many bytes it may still give.
    left: u64,
    /// The last bytes given or skipped: as many as a tail covers, or all.
    last: Vec<u8>,
}

/// A file that is read from its first byte, whoever reads it beside.
struct Whole {
    file: Arc<fs::File>,
    offset: u64,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.file.read_at(buffer, self.offset)?;
        self.offset += bytes as u64;
        Ok(bytes)
    }
}

impl std::fmt::Debug for GzipReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GzipReader").finish_non_exhaustive()
    }
}

impl GzipReader {
    /// Begins at an offset of the original; at its end if it is shorter.
    pub(crate) fn new(file: Arc<fs::File>, offset: u64) -> io::Result<Self> {
        let file_bytes = file.metadata()?.len();
        let left = expanded_bytes_max(file_bytes);
        let file = BufReader::with_capacity(STEP_BYTES, Whole { file, offset: 0 });
        let mut reader = Self {
            decoder: GzipMembers::new(file),
            file_bytes,
            left,
            last: Vec::new(),
        };
        let mut step = [0; 4096];
        let mut before = offset;
        while before > 0 {
            let want = usize::try_from(before)
                .unwrap_or(usize::MAX)
                .min(step.len());
            match reader.read(&mut step[..want])? {
                0 => break,
                bytes => before -= bytes as u64,
            }
        }
        Ok(reader)
    }

    /// How large the original is at most, as far as it was read.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.decoder.bytes_max(self.file_bytes)
    }

    /// The bytes just before the next one: as many as a tail covers, or all there are.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// Fills the whole buffer, or as much of it as there is. Gives how much.
    pub(crate) fn read_full(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut bytes = 0;
        while bytes < buffer.len() {
            match self.read(&mut buffer[bytes..])? {
                0 => break,
                more => bytes += more,
            }
        }
        Ok(bytes)
    }

    /// Fills the buffer from its start. 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = loop {
            match self.decoder.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.left = match self.left.checked_sub(bytes as u64) {
            Some(left) => left,
            None => return Err(too_large()),
        };
        let data = &buffer[..bytes];
        self.last
            .extend_from_slice(&data[bytes.saturating_sub(TAIL_BYTES_MAX)..]);
        let over = self.last.len().saturating_sub(TAIL_BYTES_MAX);
        self.last.drain(..over);
        Ok(bytes)
    }
}

/// What a compressed file says of itself, and shows at its beginning, without being decompressed whole.
pub(crate) struct Sketch {
    /// The first bytes of the original, as many as a fingerprint covers.
    pub(crate) head: Vec<u8>,
    /// The size of the original modulo 2^32, as the last member says; of no use where the file is cut off.
    pub(crate) size: u32,
    /// The size of the compressed file.
    file_bytes: u64,
}

impl Sketch {
    /// Looks at a file.
    pub(crate) fn of(file: &Arc<fs::File>) -> io::Result<Self> {
        let end = file.metadata()?.len();
        let mut size = [0; 4];
        let before = end.saturating_sub(size.len() as u64);
        if read_full_at(file, &mut size, before)? < size.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut reader = GzipReader::new(Arc::clone(file), 0)?;
        let mut head = vec![0; FINGERPRINT_BYTES_MAX];
        let bytes = reader.read_full(&mut head)?;
        head.truncate(bytes);
        Ok(Self {
            head,
            size: u32::from_le_bytes(size),
            file_bytes: end,
        })
    }

    /// The size of the original, as far as it is stated: the last bytes may be no size, so it is no more than what so large a
    /// file can expand to.
    pub(crate) fn stated_bytes(&self) -> u64 {
        expanded_max(self.file_bytes).min(self.size.into())
    }
}

/// How much a compressed file expands to, if it is whole: its checksums are right. It is decompressed once.
pub(crate) fn expanded_bytes(file: &Arc<fs::File>) -> io::Result<u64> {
    let mut reader = GzipReader::new(Arc::clone(file), 0)?;
    let (mut step, mut size) = (vec![0; STEP_BYTES], 0);
    loop {
        match reader.read(&mut step)? {
            0 => return Ok(size),
            bytes => size += bytes as u64,
        }
    }
}

/// Whether a name is that of a compressed file.
pub(crate) fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

/// Whether a name is that of a file that is compressed in any way.
pub(crate) fn is_compressed(path: &Path) -> bool {
    is_gzip(path) || is_otherwise_compressed(path)
}

/// Whether a name is that of a file that is compressed in another way, which is not read.
pub(crate) fn is_otherwise_compressed(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|it| ["zst", "xz", "bz2", "lz4", "lzma"].contains(&it))
}

/// The name that a file had before it was compressed; its own, if it was not.
pub(crate) fn uncompressed(path: &Path) -> Cow<'_, Path> {
    if is_gzip(path) {
        Cow::Owned(path.with_extension(""))
    } else {
        Cow::Borrowed(path)
    }
}

/// The name that a file has when it is compressed.
pub(crate) fn compressed_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    name.into()
}

/// Whether a compressed file holds the file of this identity, whole: the same first bytes, and the same
/// bytes where reading stopped; and more than `offset`. It is decompressed once.
pub(crate) fn holds(
    file: &Arc<fs::File>,
    id: FileId,
    offset: u64,
    key: FingerprintKey,
) -> io::Result<Option<Original>> {
    let mut reader = GzipReader::new(Arc::clone(file), 0)?;
    let mut head = Vec::with_capacity(FINGERPRINT_BYTES_MAX);
    let mut tails = [Window::new(id.tail.offset), Window::new(offset)];
    let mut step = vec![0; STEP_BYTES];
    let mut size = 0;
    loop {
        let room = FINGERPRINT_BYTES_MAX - head.len();
        // Most are another one by their first bytes: no more of them is decompressed.
        let want = if room > 0 { room } else { STEP_BYTES };
        let bytes = reader.read(&mut step[..want])?;
        let step = &step[..bytes];
        head.extend_from_slice(&step[..bytes.min(room)]);
        let head_is_full = head.len() == FINGERPRINT_BYTES_MAX || bytes == 0;
        if head_is_full && !key.matches(&head, id.fingerprint) {
            return Ok(None);
        }
        tails.iter_mut().for_each(|tail| tail.push(size, step));
        size += bytes as u64;
        if bytes == 0 {
            break;
        }
    }
    let [tail, last] = tails;
    let same_tail = key.tail(&tail.bytes, id.tail.offset) == id.tail && size >= id.tail.offset;
    Ok((same_tail && size >= offset).then(|| Original {
        size,
        mid_line: ends_in_line(&last.bytes, false),
    }))
}

fn expanded_bytes_max(file_bytes: u64) -> u64 {
    let by_ratio = file_bytes.saturating_mul(RATIO_MAX);
    by_ratio.clamp(EXPANDED_BYTES_FREE, EXPANDED_BYTES_MAX)
}

fn too_large() -> io::Error {
    let reason = "it expands to more than 200 times its size";
    io::Error::new(ErrorKind::FileTooLarge, reason)
}

/// The bytes just before an offset of a stream.
struct Window {
    start: u64,
    end: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn new(end: u64) -> Self {
        Self {
            start: end.saturating_sub(TAIL_BYTES_MAX as u64),
            end,
            bytes: Vec::new(),
        }
    }

    fn push(&mut self, at: u64, bytes: &[u8]) {
        let index = |offset: u64| {
            let index = offset.saturating_sub(at);
            usize::try_from(index).map_or(bytes.len(), |index| index.min(bytes.len()))
        };
        self.bytes
            .extend_from_slice(&bytes[index(self.start)..index(self.end)]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// A file that expands to so many MiB of zeros.
    fn zeros(path: &Path, mib: usize) {
        let mut encoder = GzEncoder::new(fs::File::create(path).unwrap(), Compression::best());
        let step = vec![0; 1 << 20];
        (0..mib).for_each(|_| encoder.write_all(&step).unwrap());
        encoder.finish().unwrap();
    }

    #[test]
    fn a_bomb_ends_at_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.gz");
        zeros(&path, 300);
        let file = Arc::new(fs::File::open(&path).unwrap());
        assert!(file.metadata().unwrap().len() < 1 << 20);
        let mut reader = GzipReader::new(Arc::clone(&file), 0).unwrap();
        let (mut step, mut given) = (vec![0; STEP_BYTES], 0);
        let error = loop {
            match reader.read(&mut step) {
                Ok(bytes) => given += bytes as u64,
                Err(error) => break error,
            }
            assert!(given <= EXPANDED_BYTES_FREE, "no end");
        };
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        let far = GzipReader::new(Arc::clone(&file), 290 << 20).unwrap_err();
        assert_eq!(far.kind(), ErrorKind::FileTooLarge);
        // What is within the limit is read whole.
        assert!(GzipReader::new(file, 200 << 20).is_ok());
        assert_eq!(expanded_bytes_max(0), EXPANDED_BYTES_FREE);
        assert_eq!(expanded_bytes_max(10 << 20), 2000 << 20);
        assert_eq!(expanded_bytes_max(u64::MAX), EXPANDED_BYTES_MAX);
    }
}
