//! The members of a gzip file, one after the other, as the bytes they were made of.
//!
//! Zeros behind a member are padding, as gzip(1) has it; anything else there must be another member. Never reads what is behind an
//! error.

use std::io::{self, BufRead, ErrorKind, Read};

use flate2::bufread::GzDecoder;

/// The first byte of a member.
const BEGIN: u8 = 0x1f;

/// Decompresses what a reader gives.
#[derive(Debug)]
pub(crate) struct GzipMembers<R> {
    /// Of the member at hand. `None`: all is read, or what is behind the last member is none.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    /// A reader at the beginning of a member.
    pub(crate) fn new(raw: R) -> GzipMembers<R> {
        GzipMembers {
            member: Some(GzDecoder::new(raw)),
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if is_at_end(member.get_mut())? {
                self.member = None;
            } else {
                let ended = self.member.take();
                self.member = ended.map(|ended| GzDecoder::new(ended.into_inner()));
            }
        }
        Ok(0)
    }
}

/// Skips padding, and says whether nothing follows it.
fn is_at_end(raw: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = raw.fill_buf()?;
        if bytes.is_empty() {
            return Ok(true);
        }
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let next = bytes.get(zeros).copied();
        raw.consume(zeros);
        match next {
            None => {}
            Some(BEGIN) => return Ok(false),
            Some(_) => {
                let text = "bytes follow that are no gzip";
                return Err(io::Error::new(ErrorKind::InvalidData, text));
            }
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
}
