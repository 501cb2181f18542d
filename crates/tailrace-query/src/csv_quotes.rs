//! The quotes of a CSV file, as RFC 4180 has them: a field begins with one, and two within it stand for one. One that no other closes
//! would swallow all that follows.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// A file up to this size is looked through.
const BYTES_MAX: u64 = 1 << 30;
const READ_BYTES: usize = 1 << 20;

/// What is known of the quotes of a file so far.
pub(crate) struct Quotes {
    delimiter: u8,
    /// The byte before the next ones. A file begins as a line does.
    before: u8,
    /// It is a quote that closed a value.
    is_closed: bool,
    lines: u64,
    /// The line of a quote that no other has closed.
    begun_in: Option<u64>,
    /// There was no byte yet, so that the next ones may be the mark of UTF-8.
    is_new: bool,
}

impl Quotes {
    pub(crate) fn new(delimiter: u8) -> Quotes {
        Quotes {
            delimiter,
            before: b'\n',
            is_closed: false,
            lines: 0,
            begun_in: None,
            is_new: true,
        }
    }

    /// The line of a quote that is not closed by now.
    pub(crate) fn unclosed_line(&self) -> Option<u64> {
        self.begun_in
    }

    /// What is said of one.
    pub(crate) fn not_closed(line: u64) -> String {
        format!("the quote in line {line} is not closed")
    }

    /// The line of a quote that is not closed, in all bytes of a file.
    pub(crate) fn unclosed(bytes: &[u8], delimiter: u8) -> Option<u64> {
        let mut quotes = Quotes::new(delimiter);
        quotes.add(bytes);
        quotes.begun_in
    }

    /// The same of a file; none of one that is too large to be read for this alone.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn unclosed_in(path: &Path, delimiter: u8) -> io::Result<Option<u64>> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() > BYTES_MAX {
            return Ok(None);
        }
        let mut quotes = Quotes::new(delimiter);
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(quotes.begun_in),
                count => quotes.add(&buffer[..count]),
            }
        }
    }

    /// Goes on with the next bytes up to the end of a record, and gives how many those are; with all of them if there is none.
    pub(crate) fn end_of_record(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        for at in memchr::memchr_iter(b'\n', bytes) {
            self.add(&bytes[from..=at]);
            from = at + 1;
            if self.begun_in.is_none() {
                return Some(from);
            }
        }
        self.add(&bytes[from..]);
        None
    }

    /// Goes on with the next bytes. The mark of UTF-8 is not cut.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let is_new = self.is_new;
        self.is_new &= bytes.is_empty();
        let bytes = match bytes.strip_prefix(b"\xef\xbb\xbf") {
            Some(others) if is_new => others,
            _ => bytes,
        };
        let mut from = 0;
        // Where the quote that closed a value last is followed.
        let mut behind = self.is_closed.then_some(0);
        for at in memchr::memchr_iter(b'"', bytes) {
            let before = match at {
                0 => self.before,
                _ => bytes[at - 1],
            };
            if self.begun_in.is_some() {
                self.begun_in = None;
                behind = Some(at + 1);
                continue;
            }
            // The second of two goes on with the value that the first seemed to end.
            let is_begun = before == self.delimiter || matches!(before, b'\n' | b'\r');
            if is_begun || behind == Some(at) {
                self.lines += memchr::memchr_iter(b'\n', &bytes[from..at]).count() as u64;
                from = at;
                self.begun_in = Some(self.lines + 1);
            }
        }
        self.lines += memchr::memchr_iter(b'\n', &bytes[from..]).count() as u64;
        self.before = bytes.last().copied().unwrap_or(self.before);
        self.is_closed = behind == Some(bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_closed_however_the_file_is_cut() {
        let cases = [
            ("", None),
            ("a,b\n1,\"x\"\n", None),
            ("a,b\n1,\"x\n2,y\n", Some(2)),
            ("\"a\nb\",c\n1,\"x\ny\n", Some(3)),
            ("a\n\"x \"\"y\"\"\"\n\"\"\n", None),
            ("a\n\"x \"\"y\"\"\n", Some(2)),
            // No quote that a value begins with.
            ("size\n5\"\n5\"\"\n3 \"inches\n", None),
            ("a\r\n\"x\"\r\n\"", Some(3)),
            ("\"\"\"", Some(1)),
        ];
        for (text, expected) in cases {
            let bytes = text.as_bytes();
            assert_eq!(Quotes::unclosed(bytes, b','), expected, "{text:?}");
            for cut in 0..=bytes.len() {
                for other in cut..=bytes.len() {
                    let mut quotes = Quotes::new(b',');
                    quotes.add(&bytes[..cut]);
                    quotes.add(&bytes[cut..other]);
                    quotes.add(&bytes[other..]);
                    assert_eq!(quotes.begun_in, expected, "{text:?} at {cut} and {other}");
                }
            }
        }
    }
}
