//! Lines that are records as they stand, many at a time: the short way of almost every line.

use super::{BYTE_ORDER_MARK, Framer};
use crate::frames::{Frames, Piece, Record, Stream};

/// Lines that are looked at before records are made of them.
const RUN: usize = 64;

/// What is pushed.
#[derive(Clone, Copy)]
pub(super) struct Push<'a> {
    pub(super) bytes: &'a [u8],
    /// The caller's number of the buffer that holds them.
    pub(super) buffer: u32,
    /// The place of the first of them in it.
    pub(super) base: u32,
    /// The offset of the first of them in the source.
    pub(super) origin: u64,
}

/// Where a run of such lines ended.
pub(super) struct Run {
    /// After the last of them.
    pub(super) end: usize,
    /// The newline of the line that follows and needs more care, if one was looked at.
    pub(super) unusual: Option<usize>,
    /// No newline is left.
    pub(super) is_last: bool,
}

impl Framer {
    /// Makes records of the lines from `start` on, `lines_max` at most, up to one from which something is to be taken.
    #[inline(always)]
    pub(super) fn whole_lines(
        &self,
        push: Push<'_>,
        newlines: &mut impl Iterator<Item = usize>,
        start: usize,
        lines_max: usize,
        out: &mut Frames,
    ) -> Run {
        let mut lines = [(0, 0); RUN];
        let mut count = 0;
        let mut run = Run {
            end: start,
            unusual: None,
            is_last: false,
        };
        while count < lines_max.min(RUN) {
            let Some(newline) = newlines.next() else {
                run.is_last = true;
                break;
            };
            if !self.is_whole(&push.bytes[run.end..newline]) {
                run.unusual = Some(newline);
                break;
            }
            lines[count] = (run.end as u32, newline as u32);
            count += 1;
            run.end = newline + 1;
        }
        self.make_records(push, &lines[..count], out);
        run
    }

    /// Whether a line without envelope is neither blank nor NULs, and has no byte order mark, no carriage return, and no
    /// byte too many.
    #[inline(always)]
    fn is_whole(&self, line: &[u8]) -> bool {
        let (Some(&first), Some(&last)) = (line.first(), line.last()) else {
            return false;
        };
        first > b' '
            && first != BYTE_ORDER_MARK[0]
            && last != b'\r'
            && line.len() <= self.record_bytes_max
    }

    /// Makes records of lines, each from its first byte to its newline.
    #[inline(always)]
    fn make_records(&self, push: Push<'_>, lines: &[(u32, u32)], out: &mut Frames) {
        let (flags, source) = (self.flags, self.source);
        let records = lines.iter().map(|&(start, end)| Record {
            buffer: push.buffer,
            start: push.base + start,
            end: push.base + end,
            flags,
            stream: Stream::None,
            time_ns: 0,
        });
        let pieces = lines.iter().map(|&(start, end)| Piece {
            source,
            start: push.origin + u64::from(start),
            end: push.origin + u64::from(end) + 1,
        });
        out.seal_lines(records, pieces, flags);
    }
}
