//! Rotated files of one log: compresses them, moves them along their chain, and deletes those of which everything has
//! arrived. Never touches the live file, and never a record.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Rotated files, oldest first.
pub(crate) struct Rotated {
    live: PathBuf,
    files: VecDeque<RotatedFile>,
}

struct RotatedFile {
    path: PathBuf,
    /// Its records are below these, by stream.
    end: Vec<u64>,
    /// When it was rotated.
    at: Instant,
}

impl Rotated {
    /// None yet, of the log at `live`.
    pub(crate) fn new(live: PathBuf) -> Rotated {
        Rotated {
            live,
            files: VecDeque::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// Adds the youngest one, whose records are below `end`.
    pub(crate) fn push(&mut self, path: PathBuf, end: Vec<u64>) {
        let at = Instant::now();
        self.files.push_back(RotatedFile { path, end, at });
    }

    /// Compresses all but the youngest, as the kubelet does: the compressed file is whole before it has its name.
    pub(crate) fn compress_older(&mut self) {
        let older = self.files.len().saturating_sub(1);
        for file in self.files.iter_mut().take(older) {
            if file
                .path
                .extension()
                .is_none_or(|extension| extension != "gz")
            {
                let to = named(&file.path, ".gz");
                let temporary = to.with_extension("tmp");
                compress(&file.path, &temporary).unwrap();
                std::fs::rename(&temporary, &to).unwrap();
                std::fs::remove_file(&file.path).unwrap();
                file.path = to;
            }
        }
    }

    /// Makes room for a new `.1`: `.1.gz` becomes `.2.gz` and so on, the oldest first.
    pub(crate) fn shift(&mut self) {
        let count = self.files.len();
        for (index, file) in self.files.iter_mut().enumerate() {
            let to = named(&self.live, &format!(".{}.gz", count - index + 1));
            std::fs::rename(&file.path, &to).unwrap();
            file.path = to;
        }
    }

    /// Where the live file is moved to, after [`Rotated::shift`].
    pub(crate) fn first(&self) -> PathBuf {
        named(&self.live, ".1")
    }

    /// Compresses the youngest as `gzip` and `logrotate` do: the compressed file grows beside it.
    pub(crate) fn compress_youngest(&mut self) {
        if let Some(file) = self.files.back_mut() {
            let to = named(&file.path, ".gz");
            compress(&file.path, &to).unwrap();
            std::fs::remove_file(&file.path).unwrap();
            file.path = to;
        }
    }

    /// How many of the oldest files may go: as long as `is_read` says so of their ends, and they were rotated so long ago,
    /// but leaves `kept`.
    pub(crate) fn done(
        &self,
        kept: usize,
        age: Duration,
        is_read: impl Fn(&[u64]) -> bool,
    ) -> usize {
        let is_done = |file: &&RotatedFile| is_read(&file.end) && file.at.elapsed() >= age;
        let read = self.files.iter().take_while(is_done);
        read.count().min(self.files.len().saturating_sub(kept))
    }

    /// Deletes the oldest files.
    pub(crate) fn delete(&mut self, count: usize) {
        for file in self.files.drain(..count) {
            std::fs::remove_file(file.path).unwrap();
        }
    }
}

fn named(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut gzip = flate2::write::GzEncoder::new(File::create(to)?, flate2::Compression::fast());
    io::copy(&mut File::open(from)?, &mut gzip)?;
    gzip.finish()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn text(path: &Path) -> String {
        let mut text = String::new();
        let mut file = flate2::read::GzDecoder::new(File::open(path).unwrap());
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_chain_is_shifted_and_its_oldest_file_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("a.log");
        let mut rotated = Rotated::new(live.clone());
        for number in 1..4 {
            std::fs::write(&live, format!("number {number}\n")).unwrap();
            rotated.shift();
            std::fs::rename(&live, rotated.first()).unwrap();
            rotated.push(rotated.first(), vec![number]);
            rotated.compress_youngest();
        }
        let at = |number: u32| dir.path().join(format!("a.log.{number}.gz"));
        let texts = [1, 2, 3].map(|number| text(&at(number)));
        assert_eq!(texts, ["number 3\n", "number 2\n", "number 1\n"]);
        rotated.delete(rotated.done(0, Duration::ZERO, |end| end[0] <= 1));
        assert!(!at(3).exists() && at(2).exists());
        assert_eq!(rotated.done(0, Duration::from_secs(3600), |_| true), 0);
        rotated.delete(rotated.done(2, Duration::ZERO, |_| true));
        assert_eq!(rotated.len(), 2);
    }
}
