//! The buffers of a batch of an Arrow file: whether each lies within the batch, and whether a compressed one can have the length
//! that it says it has. Arrow's reader panics where one does not, and makes room for the length before it decompresses.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::{Result, ensure};
use arrow::ipc::{CompressionType, Message, RecordBatch};

/// What is read at once: the lengths of small buffers stand side by side.
const READ_BYTES: u64 = 8 << 10;
/// Room for so many bytes does no harm, whatever is decompressed into it.
const ROOM_BYTES: u64 = 1 << 20;
/// Stands before a compressed buffer: its length, or this one where it is not compressed after all.
const PREFIX_BYTES: u64 = 8;
const UNCOMPRESSED: i64 = -1;

const BEYOND: &str = "it is damaged: a column of it is longer than its batch";
const TOO_LONG: &str = "it is damaged: a compressed column says that it is longer than it can be";

/// A file that is read at some places, from its beginning to its end.
pub(super) struct Places {
    file: File,
    pub(super) size: u64,
    /// A part of it, and where that begins.
    read: Vec<u8>,
    start: u64,
}

impl Places {
    pub(super) fn open(path: &Path) -> Result<Places> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Places {
            file,
            size,
            read: Vec::new(),
            start: 0,
        })
    }

    /// So many bytes at a place, or as many as there are.
    pub(super) fn at(&mut self, place: u64, len: u64) -> Result<&[u8]> {
        let len = len.min(self.size.saturating_sub(place));
        let end = self.start + self.read.len() as u64;
        if place < self.start || place + len > end {
            let read = len.max(READ_BYTES).min(self.size.saturating_sub(place));
            self.read.resize(read as usize, 0);
            self.start = place;
            self.file.read_exact_at(&mut self.read, place)?;
        }
        let from = (place - self.start) as usize;
        Ok(&self.read[from..from + len as usize])
    }

    /// A number of up to 8 bytes, the lowest first. Bytes behind the end are 0.
    fn number(&mut self, place: u64, len: u64) -> Result<u64> {
        let bytes = self.at(place, len)?;
        let number = bytes.iter().rev();
        Ok(number.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// The buffers of a message, and how they are compressed.
pub(super) struct Buffers {
    /// Where each begins in the body, and its length.
    parts: Vec<(u64, u64)>,
    codec: Option<CompressionType>,
}

impl Buffers {
    /// Those of a message that has so long a body.
    ///
    /// # Errors
    /// One of them is longer than the body.
    pub(super) fn of(message: &Message<'_>, body: u64) -> Result<Buffers> {
        let mut parts = Vec::new();
        let Some(batch) = batch_of(message) else {
            return Ok(Buffers { parts, codec: None });
        };
        // The first column has as many rows as the batch.
        let nodes = batch.nodes();
        let rows = nodes.and_then(|nodes| nodes.iter().next());
        let is_whole = rows.is_none_or(|node| node.length() == batch.length());
        ensure!(is_whole && batch.length() >= 0, BEYOND);
        for buffer in batch.buffers().into_iter().flatten() {
            let (start, len) = (buffer.offset(), buffer.length());
            let part = u64::try_from(start).ok().zip(u64::try_from(len).ok());
            let part = part.filter(|(start, len)| {
                let end = start.checked_add(*len);
                end.is_some_and(|end| end <= body)
            });
            let Some(part) = part else {
                anyhow::bail!(BEYOND);
            };
            parts.push(part);
        }
        let codec = batch.compression().map(|compression| compression.codec());
        Ok(Buffers { parts, codec })
    }

    /// Checks the lengths of compressed ones, where the body begins at a place of the file.
    pub(super) fn check(&self, file: &mut Places, body: u64) -> Result<()> {
        let Some(codec) = self.codec else {
            return Ok(());
        };
        for (start, len) in self.parts.iter().filter(|(_, len)| *len > 0) {
            ensure!(*len >= PREFIX_BYTES, TOO_LONG);
            let place = body + start;
            let claimed = file.number(place, PREFIX_BYTES)?;
            let compressed = place + PREFIX_BYTES..place + len;
            if claimed <= ROOM_BYTES || claimed as i64 == UNCOMPRESSED {
                continue;
            }
            let most = match codec {
                CompressionType::ZSTD => most_of_zstd(file, compressed)?,
                CompressionType::LZ4_FRAME => most_of_lz4(file, compressed)?,
                // The reader refuses others.
                _ => continue,
            };
            ensure!(claimed <= most, TOO_LONG);
        }
        Ok(())
    }
}

/// The batch of a message, or of the values of a dictionary.
fn batch_of<'m>(message: &Message<'m>) -> Option<RecordBatch<'m>> {
    let of_dictionary = || message.header_as_dictionary_batch()?.data();
    message.header_as_record_batch().or_else(of_dictionary)
}

type Range = std::ops::Range<u64>;

/// The most bytes that frames of Zstandard become: RFC 8878, 3.1.1. Each block says its length, or becomes 128 KiB at most.
fn most_of_zstd(file: &mut Places, Range { start, end }: Range) -> Result<u64> {
    const MARK: u64 = 0xfd2f_b528;
    const SKIPPED: u64 = 0x184d_2a50;
    const BLOCK_BYTES_MAX: u64 = 128 << 10;
    let (mut at, mut most) = (start, 0_u64);
    while at < end {
        let mark = file.number(at, 4)?;
        if mark & !0xf == SKIPPED {
            at += 8 + file.number(at + 4, 4)?;
            continue;
        }
        if mark != MARK {
            break;
        }
        let head = file.number(at + 4, 1)?;
        let is_single = head & 0x20 != 0;
        let size_bytes = match head >> 6 {
            0 => u64::from(is_single),
            power => 1 << power,
        };
        let dictionary_bytes = [0, 1, 2, 4][(head & 3) as usize];
        at += 5 + u64::from(!is_single) + dictionary_bytes + size_bytes;
        let mut is_last = false;
        while !is_last && at < end {
            let block = file.number(at, 3)?;
            is_last = block & 1 != 0;
            let size = block >> 3;
            let (stored, becomes) = match block >> 1 & 3 {
                0 => (size, size),
                // One byte, so many times.
                1 => (1, size),
                _ => (size, BLOCK_BYTES_MAX),
            };
            at += 3 + stored;
            most = most.saturating_add(becomes.min(BLOCK_BYTES_MAX));
        }
        if head & 4 != 0 {
            at += 4;
        }
    }
    Ok(most)
}

/// The most bytes that frames of LZ4 become: lz4_Frame_format.md and lz4_Block_format.md of LZ4. A byte of a block becomes 255 at most, and
/// the frame says how long a block may be.
fn most_of_lz4(file: &mut Places, Range { start, end }: Range) -> Result<u64> {
    const MARK: u64 = 0x184d_2204;
    const SKIPPED: u64 = 0x184d_2a50;
    const UNCOMPRESSED: u64 = 1 << 31;
    const RATIO_MAX: u64 = 255;
    let (mut at, mut most) = (start, 0_u64);
    while at < end {
        let mark = file.number(at, 4)?;
        if mark & !0xf == SKIPPED {
            at += 8 + file.number(at + 4, 4)?;
            continue;
        }
        if mark != MARK {
            break;
        }
        let (flags, block) = (file.number(at + 4, 1)?, file.number(at + 5, 1)?);
        let block_bytes_max = (64 << 10) << (2 * (block >> 4 & 7).saturating_sub(4));
        let has = |flag: u64, bytes: u64| if flags & flag == 0 { 0 } else { bytes };
        at += 7 + has(0x08, 8) + has(0x01, 4);
        while at < end {
            let size = file.number(at, 4)?;
            at += 4;
            if size == 0 {
                break;
            }
            let stored = size & !UNCOMPRESSED;
            let becomes = match size & UNCOMPRESSED {
                0 => (stored * RATIO_MAX).min(block_bytes_max),
                _ => stored,
            };
            at += stored + has(0x10, 4);
            most = most.saturating_add(becomes);
        }
        at += has(0x04, 4);
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::Write;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::ipc::reader::StreamReader;
    use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
    use arrow::record_batch::RecordBatch;

    /// What a file holds as one buffer.
    fn most(codec: CompressionType, bytes: &[u8]) -> u64 {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("written");
        let mut places = Places::open(file.path()).expect("opened");
        let all = 0..bytes.len() as u64;
        match codec {
            CompressionType::ZSTD => most_of_zstd(&mut places, all),
            _ => most_of_lz4(&mut places, all),
        }
        .expect("read")
    }

    /// Bytes of which some parts repeat and some do not.
    fn mixed(len: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let byte = |at: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match at >> 16 & 1 {
                0 => (state >> 24) as u8,
                _ => 7,
            }
        };
        (0..len).map(byte).collect()
    }

    #[test]
    fn what_is_compressed_becomes_no_more_than_is_said() {
        for len in [0, 1, 1000, 200_000, 9_000_000] {
            for bytes in [vec![0; len], mixed(len)] {
                let mut frames = zstd::bulk::compress(&bytes, 3).expect("compressed");
                let of_one = most(CompressionType::ZSTD, &frames);
                assert!(of_one >= len as u64, "{of_one} {len}");
                assert!(of_one <= (len as u64).next_multiple_of(128 << 10).max(128 << 10));
                // As some write them: without their length, and several one after the other.
                let streamed = zstd::stream::encode_all(&bytes[..], 1).expect("compressed");
                frames.extend([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
                frames.extend(streamed);
                let of_two = most(CompressionType::ZSTD, &frames);
                assert!(of_two >= 2 * len as u64, "{of_two} {len}");
            }
        }
        assert_eq!(most(CompressionType::ZSTD, b"no frame"), 0);
        assert_eq!(most(CompressionType::LZ4_FRAME, b"no frame"), 0);
    }

    /// As Arrow writes them, of which the first buffer with rows is found by the mark of the frame.
    #[test]
    fn lz4_becomes_no_more_than_is_said() {
        for (count, is_mixed) in [(1000, false), (2_000_000, false), (2_000_000, true)] {
            let values: Vec<i64> = match is_mixed {
                true => mixed(count).into_iter().map(|it| it.into()).collect(),
                false => vec![5; count],
            };
            let column: ArrayRef = Arc::new(Int64Array::from(values));
            let batch = RecordBatch::try_from_iter([("a", column)]).expect("a batch");
            let options = IpcWriteOptions::default()
                .try_with_compression(Some(CompressionType::LZ4_FRAME))
                .expect("known");
            let mut writer =
                StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options)
                    .expect("begun");
            writer.write(&batch).expect("written");
            let bytes = writer.into_inner().expect("ended");
            let mark = [0x04, 0x22, 0x4d, 0x18];
            let at = bytes.windows(4).position(|part| part == mark);
            let at = at.expect("a frame");
            let most = most(CompressionType::LZ4_FRAME, &bytes[at..]);
            let len = count as u64 * 8;
            assert!(most >= len, "{most} {len}");
            assert!(most <= 2 * len.next_multiple_of(4 << 20), "{most} {len}");
            assert_eq!(
                StreamReader::try_new(&bytes[..], None)
                    .expect("sound")
                    .count(),
                1
            );
        }
    }
}
