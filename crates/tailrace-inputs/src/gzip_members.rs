//! The members of a gzip file, one after the other, as the bytes they were made of.
//!
//! Zeros behind a member are padding, as gzip(1) has it; anything else there must be another member. Never reads what is behind an
//! error.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// The first byte of a member.
const BEGIN: u8 = 0x1f;
/// Deflate expands to no more than so many times.
const EXPANSION_MAX: u64 = 1032;

/// Decompresses what a reader gives.
#[derive(Debug)]
pub(crate) struct GzipMembers<R> {
    /// Of the member at hand. `None`: all is read.
    member: Option<GzDecoder<Counted<R>>>,
    /// How many bytes were given.
    given: u64,
    /// The end of the last member that is whole: in the raw bytes, and in those given.
    whole_to: (u64, u64),
    /// What is behind that is no member.
    is_foreign: bool,
}

impl<R: BufRead> GzipMembers<R> {
    /// A reader at the beginning of a member.
    pub(crate) fn new(raw: R) -> GzipMembers<R> {
        GzipMembers {
            member: Some(GzDecoder::new(Counted { raw, bytes: 0 })),
            given: 0,
            whole_to: (0, 0),
            is_foreign: false,
        }
    }

    /// How many bytes there may be in all, if the raw ones are so many: what the members gave that are whole, and as much as
    /// those behind them can expand to. Bytes that are no member expand to nothing, and count as they are.
    pub(crate) fn bytes_max(&self, raw_bytes: u64) -> u64 {
        let (raw_to, given) = self.whole_to;
        let rest = raw_bytes.saturating_sub(raw_to);
        given.saturating_add(if self.is_foreign {
            rest
        } else {
            expanded_max(rest)
        })
    }
}

/// How many bytes so many compressed ones expand to at most.
pub(crate) fn expanded_max(raw_bytes: u64) -> u64 {
    raw_bytes.saturating_mul(EXPANSION_MAX)
}

/// Counts the bytes that are used.
#[derive(Debug)]
struct Counted<R> {
    raw: R,
    bytes: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.raw.read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.raw.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.bytes += count as u64;
        self.raw.consume(count);
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                self.given += count as u64;
                return Ok(count);
            }
            let next = next(member.get_mut())?;
            self.whole_to = (member.get_ref().bytes, self.given);
            match next {
                None => self.member = None,
                Some(BEGIN) => {
                    let ended = self.member.take();
                    self.member = ended.map(|ended| GzDecoder::new(ended.into_inner()));
                }
                Some(_) => {
                    self.is_foreign = true;
                    let text = "bytes follow that are no gzip";
                    return Err(io::Error::new(ErrorKind::InvalidData, text));
                }
            }
        }
        Ok(0)
    }
}

/// Skips padding, and gives the byte that follows it, unread. `None` at the end.
fn next(raw: &mut impl BufRead) -> io::Result<Option<u8>> {
    loop {
        let bytes = raw.fill_buf()?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let next = bytes.get(zeros).copied();
        raw.consume(zeros);
        if next.is_some() {
            return Ok(next);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{BufReader, Write};

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// What is read of these bytes, and whether that ends with an error.
    fn read(bytes: &[u8]) -> (String, bool) {
        let mut text = String::new();
        let raw = BufReader::with_capacity(7, bytes);
        let ended = GzipMembers::new(raw).read_to_string(&mut text);
        (text, ended.is_err())
    }

    #[test]
    fn zeros_behind_members_are_padding() {
        let (a, b, zeros) = (member("a"), member("b"), vec![0; 100]);
        assert_eq!(read(&[&a[..], &b].concat()), ("ab".to_owned(), false));
        assert_eq!(read(&[&a[..], &zeros].concat()), ("a".to_owned(), false));
        let between = [&a[..], &zeros, &b, &[0]].concat();
        assert_eq!(read(&between), ("ab".to_owned(), false));
        assert_eq!(read(&member("")), (String::new(), false));
    }

    #[test]
    fn other_bytes_behind_members_are_an_error() {
        let a = member("a");
        assert_eq!(read(&[&a[..], b"rest"].concat()), ("a".to_owned(), true));
        let garbage = [&a[..], &[0, 0], b"rest of it"].concat();
        assert_eq!(read(&garbage), ("a".to_owned(), true));
        assert!(read(&a[..a.len() - 1]).1);
    }

    #[test]
    fn what_is_behind_the_last_whole_member_bounds_what_is_missing() {
        let (a, b) = (member("aaa"), member("bb"));
        let bytes_max = |bytes: &[u8]| {
            let mut members = GzipMembers::new(BufReader::with_capacity(7, bytes));
            let _ = members.read_to_string(&mut String::new());
            members.bytes_max(bytes.len() as u64)
        };
        let cut = b.len() - 9;
        for (bytes, expected) in [
            (a.clone(), 3),
            ([&a[..], &b].concat(), 5),
            ([&a[..], &[0; 50], b"foreign"].concat(), 3 + 7),
            ([&a[..], &b[..cut]].concat(), 3 + expanded_max(cut as u64)),
            (b[..cut].to_vec(), expanded_max(cut as u64)),
            (b"foreign".to_vec(), expanded_max(7)),
        ] {
            assert_eq!(bytes_max(&bytes), expected, "{bytes:?}");
        }
    }
}
