//! A log file as a container runtime or logrotate treats it. Lines are written to a real file without a buffer. It reads no
//! clock: rotated names count seconds from a fixed day.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Which stream a CRI line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// `stdout`
    Stdout,
    /// `stderr`
    Stderr,
}

/// Writes one log file through its rotations.
pub struct Writer {
    path: PathBuf,
    file: File,
    /// How often the file was rotated or copied; it makes the rotated name.
    rotations: u32,
}

impl Writer {
    /// Opens `path` for appending, making it and its folder if they are missing.
    pub fn open(path: impl Into<PathBuf>) -> Writer {
        let path = path.into();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).unwrap();
        }
        Writer {
            file: append(&path),
            path,
            rotations: 0,
        }
    }

    /// Where the live file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `text` and a newline in one write.
    pub fn line(&mut self, text: &str) {
        let mut line = Vec::with_capacity(text.len() + 1);
        line.extend_from_slice(text.as_bytes());
        line.push(b'\n');
        self.bytes(&line);
    }

    /// Writes every line of `lines`.
    pub fn lines<T: AsRef<str>>(&mut self, lines: impl IntoIterator<Item = T>) {
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(line.as_ref().as_bytes());
            text.push(b'\n');
        }
        self.bytes(&text);
    }

    /// Writes `bytes` as they are: half lines, no newline, anything.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.file.write_all(bytes).unwrap();
    }

    /// Writes one CRI line. `full` gives the tag: `F` ends a record, `P` says that more follows.
    pub fn cri(&mut self, time: &str, stream: Stream, full: bool, text: &str) {
        let stream = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        let tag = if full { 'F' } else { 'P' };
        self.line(&format!("{time} {stream} {tag} {text}"));
    }

    /// Rotates as the kubelet does: renames `0.log` to `0.log.YYYYMMDD-HHMMSS`, then a new empty file
    /// takes its place. Gives the renamed file's path.
    pub fn rotate(&mut self) -> PathBuf {
        let rotated = self.rename();
        self.reopen();
        rotated
    }

    /// The first half of a rotation: what is written now still goes to the renamed file.
    pub fn rename(&mut self) -> PathBuf {
        let rotated = self.rotated_path();
        self.rename_to(rotated)
    }

    /// The same, to a path of its own choice.
    pub fn rename_to(&mut self, rotated: PathBuf) -> PathBuf {
        std::fs::rename(&self.path, &rotated).unwrap();
        rotated
    }

    /// The second half of a rotation: makes the live file anew and writes there from now on.
    pub fn reopen(&mut self) {
        self.file = append(&self.path);
    }

    /// Rotates as logrotate's `copytruncate` does: copies the file, then cuts it to nothing in place.
    pub fn copytruncate(&mut self) -> PathBuf {
        let rotated = self.rotated_path();
        std::fs::copy(&self.path, &rotated).unwrap();
        self.truncate();
        rotated
    }

    /// Cuts the file to nothing in place; the next write goes to its start.
    pub fn truncate(&mut self) {
        self.file.set_len(0).unwrap();
    }

    /// Removes the live file's name. Writes go on into the nameless file until [`Writer::reopen`].
    pub fn delete(&mut self) {
        std::fs::remove_file(&self.path).unwrap();
    }

    fn rotated_path(&mut self) -> PathBuf {
        let second = self.rotations % 86_400;
        let day = self.rotations / 86_400 + 1;
        self.rotations += 1;
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".202601{day:02}-{hour:02}{minute:02}{second:02}"));
        PathBuf::from(name)
    }
}

fn append(path: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap()
}

#[cfg(test)]
mod tests {
    use super::{Stream, Writer};

    fn text(path: impl AsRef<std::path::Path>) -> String {
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn a_rotation_keeps_the_old_text_under_a_dated_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path().join("pod/0.log"));
        writer.line("one");
        let first = writer.rename();
        writer.line("late");
        writer.reopen();
        writer.cri("2026-01-02T03:04:05Z", Stream::Stderr, false, "two");
        let second = writer.rotate();
        assert_eq!(first.file_name().unwrap(), "0.log.20260101-000000");
        assert_eq!(second.file_name().unwrap(), "0.log.20260101-000001");
        assert_eq!(text(first), "one\nlate\n");
        assert_eq!(text(second), "2026-01-02T03:04:05Z stderr P two\n");
        assert_eq!(text(writer.path()), "");
    }

    #[test]
    fn copytruncate_keeps_the_same_file_and_starts_it_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path().join("app.log"));
        writer.lines(["one", "two"]);
        let copy = writer.copytruncate();
        writer.line("three");
        assert_eq!(text(copy), "one\ntwo\n");
        assert_eq!(text(writer.path()), "three\n");
        writer.delete();
        assert!(!writer.path().exists());
    }
}
