//! Bytes of unfinished records beyond what may lie in memory: in a file that has no name.
//!
//! Takes what the framers of idle sources hold when all of them together hold too much, and gives it back when the
//! source goes on. Only this process reads the file, and nothing outlives it: what it holds is unacknowledged, so that
//! the next run reads it again. Never decides which source is idle.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, Mode, OFlags};

/// Where the bytes of unfinished records may lie.
#[derive(Debug)]
pub(crate) struct Overflow {
    /// In memory; more is moved to the file.
    bytes_max: usize,
    /// The directory of the file.
    dir: PathBuf,
    /// Made when it is first needed.
    file: Option<File>,
    /// Where the next bytes go.
    end: u64,
    /// How many bytes are in use.
    used: u64,
    #[cfg(test)]
    writes: u64,
}

impl Overflow {
    /// So many bytes in memory, all else in a file in this directory.
    pub(crate) fn new(bytes_max: usize, dir: PathBuf) -> Self {
        Self {
            bytes_max,
            dir,
            file: None,
            end: 0,
            used: 0,
            #[cfg(test)]
            writes: 0,
        }
    }

    #[cfg(test)]
    pub(super) fn writes(&self) -> u64 {
        self.writes
    }

    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Writes bytes, and says where they are.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<Range<u64>> {
        if self.file.is_none() {
            self.file = Some(self.create()?);
        }
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let range = self.end..self.end + bytes.len() as u64;
        file.write_all_at(bytes, range.start)?;
        self.end = range.end;
        self.used += bytes.len() as u64;
        #[cfg(test)]
        {
            self.writes += 1;
        }
        Ok(range)
    }

    /// Reads bytes back; their range is free afterwards.
    pub(super) fn read(&mut self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.read_exact_at(&mut bytes, range.start)?;
        self.free(range);
        Ok(bytes)
    }

    /// Gives a range back to the disk. Where that fails it is given back with the last one.
    pub(super) fn free(&mut self, range: Range<u64>) {
        let len = range.end - range.start;
        self.used -= len;
        let Some(file) = &self.file else { return };
        if self.used == 0 {
            self.end = 0;
            let _ = file.set_len(0);
        } else {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            let _ = rustix::fs::fallocate(file, hole, range.start, len);
        }
    }

    /// A file of our own that is gone when this process is.
    fn create(&self) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::open(&self.dir, flags | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(file.into()),
            Err(error) if self.dir.as_os_str().is_empty() => return Err(error.into()),
            // Not every file system can make files without a name.
            Err(_) => {}
        }
        let path = self.dir.join(format!("unfinished-{}", std::process::id()));
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags, mode)?;
        std::fs::remove_file(&path)?;
        Ok(file.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_leave_no_name() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let mut overflow = Overflow::new(0, dir.path().to_owned());
        let texts: Vec<Vec<u8>> = (0..20_u8).map(|n| vec![n; 5000 + usize::from(n)]).collect();
        for _ in 0..2 {
            let written = texts.iter().map(|text| overflow.write(text));
            let ranges = written.collect::<io::Result<Vec<_>>>()?;
            assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
            for (range, text) in ranges.into_iter().zip(&texts) {
                assert_eq!(&overflow.read(range)?, text);
            }
            assert_eq!((overflow.used, overflow.end), (0, 0));
        }
        Ok(())
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let mut overflow = Overflow::new(0, PathBuf::from("/nonexistent/tailrace"));
        assert!(overflow.write(b"x").is_err());
        assert_eq!(overflow.used, 0);
    }
}
