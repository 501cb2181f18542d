//! NULs that a line begins with: a hole in the file, or what a crash left.

use std::ops::Range;

use super::{Framer, Line};
use crate::frames::{Frames, SkipReason};
use crate::multiline::join::Chunk;
use crate::text::nuls_before;

/// So many NULs at the beginning of a line are a hole in the file; fewer are bytes of the line.
const HOLE_BYTES_MIN: usize = 16;

impl Framer {
    /// Skips the NULs that a line begins with, from `start` to the end of `bytes` at most, if they are so many that they
    /// are a hole; returns where the line continues. A hole in a file reads as NULs: a writer that does not append leaves
    /// one when its file is cut. Where the line `goes_on` after `bytes`, so many are left to be held that whoever begins
    /// to read there knows the hole for one.
    #[cold]
    pub(super) fn skip_nuls(
        &mut self,
        bytes: &[u8],
        goes_on: bool,
        start: usize,
        origin: u64,
        chunk: Chunk<'_>,
        out: &mut Frames,
    ) -> usize {
        let (nuls, min) = (nuls_before(&bytes[start..]), self.hole_bytes_min());
        if nuls < min {
            return start;
        }
        let is_all = goes_on && start + nuls == bytes.len();
        let end = start + nuls - if is_all { min } else { 0 };
        self.skip_hole(origin + start as u64..origin + end as u64, chunk, out);
        end
    }

    /// The same for a line of which NULs are held: `None` if it does not begin with a hole, else how many bytes it
    /// took, as [`Framer::continue_line`] does.
    #[cold]
    pub(super) fn continue_nuls(
        &mut self,
        bytes: &[u8],
        newline: Option<usize>,
        out: &mut Frames,
    ) -> Option<usize> {
        let (held, length) = (self.carry.len(), newline.map_or(bytes.len(), |end| end + 1));
        let line = &bytes[..newline.unwrap_or(bytes.len())];
        let nuls = nuls_before(line);
        if nuls_before(&self.carry) < held || held + nuls < self.hole_bytes_min() {
            return None;
        }
        let (from, text) = (self.offset - held as u64, &line[nuls..]);
        let goes_on = newline.is_none() && text.is_empty();
        let kept = if goes_on { self.hole_bytes_min() } else { 0 };
        self.carry.clear();
        self.carry.resize(kept, 0);
        let start = self.offset + nuls as u64;
        self.skip_hole(from..start - kept as u64, Chunk::NONE, out);
        if newline.is_some() {
            let end = self.offset + length as u64;
            let place = None;
            self.carried_line(
                &Line {
                    text,
                    start,
                    end,
                    place,
                },
                Chunk::NONE,
                out,
            );
        } else if !goes_on {
            self.hold(text, start, Chunk::NONE, out);
        }
        Some(length)
    }

    pub(super) fn skip_hole(&mut self, hole: Range<u64>, chunk: Chunk<'_>, out: &mut Frames) {
        let end = hole.end;
        out.skip(self.source, hole, SkipReason::Nul);
        self.chains
            .expire(end, self.chain_span_max, self.flags, out);
        self.ack(end, chunk, out);
    }

    /// How many NULs are a hole. Fewer have to be held until it is known, within the limit of a line.
    pub(super) fn hole_bytes_min(&self) -> usize {
        HOLE_BYTES_MIN.min(self.record_bytes_max)
    }
}
