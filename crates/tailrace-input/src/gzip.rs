//! A compressed file as the bytes it was made of.
//!
//! Takes the path of a `.gz` file, says whether it holds the rest of a file that is known, and gives bytes
//! from any offset of the original. Holds a few buffers, never a file in memory; never believes a name.

use std::fs;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::identity::{
    FINGERPRINT_BYTES_MAX, FileId, FingerprintKey, TAIL_BYTES_MAX, read_full_at,
};

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
    decoder: MultiGzDecoder<BufReader<fs::File>>,
    /// The last bytes given or skipped: as many as a tail covers, or all.
    last: Vec<u8>,
}

impl std::fmt::Debug for GzipReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GzipReader").finish_non_exhaustive()
    }
}

impl GzipReader {
    /// Opens a compressed file at an offset of the original; at its end if it is shorter.
    pub(crate) fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let file = BufReader::with_capacity(STEP_BYTES, fs::File::open(path)?);
        let mut reader = Self {
            decoder: MultiGzDecoder::new(file),
            last: Vec::new(),
        };
        let before = offset.saturating_sub(TAIL_BYTES_MAX as u64);
        io::copy(&mut (&mut reader.decoder).take(before), &mut io::sink())?;
        let mut last = Vec::new();
        (&mut reader.decoder)
            .take(offset - before)
            .read_to_end(&mut last)?;
        reader.last = last;
        Ok(reader)
    }

    /// The bytes just before the next one: as many as a tail covers, or all there are.
    pub(crate) fn last(&self) -> &[u8] {
        &self.last
    }

    /// Fills the buffer from its start. 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = loop {
            match self.decoder.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
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
}

impl Sketch {
    /// Looks at a file.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let end = file.metadata()?.len();
        let mut size = [0; 4];
        let before = end.saturating_sub(size.len() as u64);
        if read_full_at(&file, &mut size, before)? < size.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut head = Vec::new();
        MultiGzDecoder::new(BufReader::new(file))
            .take(FINGERPRINT_BYTES_MAX as u64)
            .read_to_end(&mut head)?;
        Ok(Self {
            head,
            size: u32::from_le_bytes(size),
        })
    }
}

/// Whether a name is that of a compressed file.
pub(crate) fn is_gzip(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
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
    path: &Path,
    id: FileId,
    offset: u64,
    key: FingerprintKey,
) -> io::Result<Option<Original>> {
    let mut reader = GzipReader::open(path, 0)?;
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
        mid_line: last.bytes.last().is_some_and(|&byte| byte != b'\n'),
    }))
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
