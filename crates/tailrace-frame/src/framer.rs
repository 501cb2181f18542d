//! The state of one source between two chunks, and the way of a line through it.
//!
//! A line that lies in one chunk becomes a range of the caller's buffer. A line that is cut is collected in `carry`,
//! never more than its limit: what is longer becomes a truncated record at once and the rest is skipped as it comes.
//!
//! Why the cuts do not matter: every decision is made on a whole line, or on a head of a fixed length once it is sure
//! that the line is longer (`is_overlong`). Neither depends on how many bytes have been read beyond that point; only
//! the length of a skip does, and the skips of one line follow each other without a gap.

mod holes;
mod lines;
mod reframe;
mod rest;
mod resume;
mod runs;
mod stow;

use memchr::memchr_iter;

use crate::chain::Chains;
use crate::config::{Config, Content, Format};
use crate::frames::{Flags, Frames, SkipReason};
use crate::multiline::join::{Chunk, Joins};
use crate::text::{cut_length, emptied, is_overlong, nuls_before};
pub use lines::ENVELOPE_BYTES_MAX;
use runs::Push;

/// Cuts one source (one generation of a file, or one pipe) into records. Push its bytes in order.
#[derive(Clone, Debug)]
pub struct Framer {
    /// The caller's number of it.
    source: u32,
    /// `Auto` until the first line that is not blank, `Container` until the first one with an envelope.
    format: Format,
    /// What every record of the source is flagged with.
    flags: Flags,
    record_bytes_max: usize,
    chain_span_max: u64,
    /// The offset of the byte that comes next.
    offset: u64,
    /// The start of a line that has not ended; it ends at `offset`. Empty if no line is open or if `skipping`.
    carry: Vec<u8>,
    /// All bytes to the next newline are skipped: the line's start was given out, or was before the first offset.
    skipping: bool,
    /// Chains of partial lines; every one starts before `carry`.
    chains: Chains,
    /// Open multi-line records, if lines are joined; every one starts before `carry`.
    joins: Option<Box<Joins>>,
    /// How many bytes of each text were taken out by [`Framer::stow`], in its order.
    stowed: Option<Vec<u32>>,
}

/// A line, or as much of it as is known to be too long.
#[derive(Clone, Copy)]
struct Line<'a> {
    /// Its bytes without the newline. If they are overlong there may be more in the source.
    text: &'a [u8],
    /// Offset of its first byte.
    start: u64,
    /// Offset after its newline, or after what has been read of it.
    end: u64,
    /// Buffer and place in it of `text[0]`; none for a line that had to be carried.
    place: Option<(u32, u32)>,
}

/// What a source may begin with, and is in no record.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

impl<'a> Line<'a> {
    #[inline(always)]
    fn has_mark(&self) -> bool {
        self.start == 0 && self.text.starts_with(BYTE_ORDER_MARK)
    }

    /// The line, which begins with a byte order mark, without it; if it continues after `limit`, only what stands before
    /// that: more of it may not be known.
    #[cold]
    fn without_mark(&self, limit: Option<usize>) -> Line<'a> {
        let end = limit.map_or(self.text.len(), |limit| cut_length(self.text, limit));
        let skipped = BYTE_ORDER_MARK.len();
        Line {
            text: &self.text[skipped.min(end)..end],
            place: self.place.map(|(buffer, at)| (buffer, at + skipped as u32)),
            ..*self
        }
    }
}

impl Framer {
    /// A framer for a source whose first pushed byte is at `offset`. With `mid_line`, the byte before it is not a
    /// newline: everything up to the next newline is skipped as oversize.
    pub fn new(config: &Config, offset: u64, mid_line: bool) -> Framer {
        let record_bytes_max = config.record_bytes_max.max(1);
        let span_max = config.chain_span_max;
        let multiline = config.multiline.as_ref();
        let joins = multiline.map(|how| Box::new(Joins::new(how, record_bytes_max, span_max)));
        Framer {
            source: 0,
            format: config.format,
            flags: flags_of(config),
            record_bytes_max,
            // Where lines are joined, chains and joins expire together: see `ack`.
            chain_span_max: if joins.is_some() { u64::MAX } else { span_max },
            offset,
            carry: Vec::new(),
            skipping: mid_line,
            chains: Chains::default(),
            joins,
            stowed: None,
        }
    }

    /// The same with the caller's number of the source, which stands in its pieces. Default: 0.
    #[must_use]
    pub fn numbered(self, source: u32) -> Framer {
        Framer { source, ..self }
    }

    /// The lowest offset of a byte that is held of another source than this one.
    pub fn held_from(&self, source: u32) -> Option<u64> {
        let join = self
            .joins
            .as_ref()
            .and_then(|joins| joins.held_from(source));
        self.chains.held_from(source).into_iter().chain(join).min()
    }

    /// Frames the next bytes of the source. They are `buffer`'s bytes from `base` on: records that lie in one piece
    /// in them are given as ranges of that buffer. `out` is added to, not cleared.
    ///
    /// `base + bytes.len()` must fit a `u32`, and `buffer` must not be [`SIDE`](crate::SIDE).
    pub fn push(&mut self, bytes: &[u8], buffer: u32, base: u32, out: &mut Frames) {
        self.push_lines(
            bytes,
            memchr_iter(b'\n', bytes),
            buffer,
            base,
            usize::MAX,
            out,
        );
    }

    /// [`Framer::push`] where all places of newlines in `bytes`, ascending, are known. It ends after the line with which
    /// `out` has `records_max` records; returns how many bytes it took.
    pub fn push_lines(
        &mut self,
        bytes: &[u8],
        mut newlines: impl Iterator<Item = usize>,
        buffer: u32,
        base: u32,
        records_max: usize,
        out: &mut Frames,
    ) -> usize {
        let origin = self.offset;
        out.begin_push();
        if self.joins.is_some() {
            return self.push_joined(bytes, newlines, buffer, base, records_max, out);
        }
        let mut start = if self.skipping || !self.carry.is_empty() {
            self.continue_line(bytes, newlines.next(), out)
        } else {
            0
        };
        let push = Push {
            bytes,
            buffer,
            base,
            origin,
        };
        let mut is_bare = self.is_bare();
        loop {
            let newline = if is_bare {
                let room = records_max.saturating_sub(out.records.len()).max(1);
                let run = self.whole_lines(push, &mut newlines, start, room, out);
                start = run.end;
                if run.is_last {
                    break;
                }
                run.unusual
            } else {
                let Some(newline) = newlines.next() else {
                    break;
                };
                Some(newline)
            };
            if let Some(newline) = newline {
                self.unusual_line(push, start, newline, out);
                start = newline + 1;
                is_bare = self.is_bare();
            }
            if out.records.len() >= records_max {
                return self.took(start, out);
            }
        }
        if bytes.get(start) == Some(&0) {
            start = self.skip_nuls(bytes, true, start, origin, Chunk::NONE, out);
        }
        if start < bytes.len() {
            self.hold(&bytes[start..], origin + start as u64, Chunk::NONE, out);
        }
        self.took(bytes.len(), out)
    }

    /// Deals with a line of a push that may be of any kind.
    #[inline]
    fn unusual_line(&mut self, push: Push<'_>, start: usize, newline: usize, out: &mut Frames) {
        let (bytes, origin) = (push.bytes, push.origin);
        let start = match bytes[start] {
            0 => self.skip_nuls(&bytes[..newline], false, start, origin, Chunk::NONE, out),
            _ => start,
        };
        let line = Line {
            text: &bytes[start..newline],
            start: origin + start as u64,
            end: origin + newline as u64 + 1,
            place: Some((push.buffer, push.base + start as u32)),
        };
        self.line(&line, out);
    }

    /// So many bytes of a push are framed.
    #[inline]
    fn took(&mut self, bytes: usize, out: &mut Frames) -> usize {
        self.offset += bytes as u64;
        out.stats.bytes += bytes as u64;
        bytes
    }

    /// [`Framer::push`] where lines are joined. A function of its own, so that others pay nothing.
    #[inline(never)]
    fn push_joined(
        &mut self,
        bytes: &[u8],
        mut newlines: impl Iterator<Item = usize>,
        buffer: u32,
        base: u32,
        records_max: usize,
        out: &mut Frames,
    ) -> usize {
        let origin = self.offset;
        if let Some(joins) = &mut self.joins {
            joins.begin(out);
        }
        let mut start = if self.skipping || !self.carry.is_empty() {
            self.continue_line(bytes, newlines.next(), out)
        } else {
            0
        };
        let chunk = Chunk { bytes, base };
        for newline in newlines {
            if bytes[start] == 0 {
                start = self.skip_nuls(&bytes[..newline], false, start, origin, chunk, out);
            }
            let line = Line {
                text: &bytes[start..newline],
                start: origin + start as u64,
                end: origin + newline as u64 + 1,
                place: Some((buffer, base + start as u32)),
            };
            self.line(&line, out);
            self.ack(line.end, chunk, out);
            start = newline + 1;
            if out.records.len() >= records_max {
                break;
            }
        }
        let is_full = out.records.len() >= records_max && start > 0;
        let taken = if is_full { start } else { bytes.len() };
        if start < taken && bytes[start] == 0 {
            start = self.skip_nuls(bytes, true, start, origin, chunk, out);
        }
        if start < taken {
            self.hold(&bytes[start..], origin + start as u64, chunk, out);
        }
        if let Some(joins) = &mut self.joins {
            joins.keep(chunk, out);
        }
        self.took(taken, out)
    }

    /// Passes over the next bytes of the source without making records of them. What was held becomes records first;
    /// a line that begins in these bytes and ends after them is passed over to its end.
    pub fn pass_over(&mut self, bytes: &[u8], out: &mut Frames) {
        let Some(last) = bytes.last() else { return };
        self.finish(out);
        let start = self.offset;
        self.offset += bytes.len() as u64;
        self.skipping = *last != b'\n';
        out.stats.bytes += bytes.len() as u64;
        out.skip(self.source, start..self.offset, SkipReason::Excluded);
    }

    /// The source has ended for good: an unterminated last line, open chains and joins become records.
    pub fn finish(&mut self, out: &mut Frames) {
        self.end(Flags::NONE, out);
    }

    /// The same of a source of which bytes are lost that came next: what they may have belonged to is truncated.
    pub fn finish_cut(&mut self, out: &mut Frames) {
        self.end(Flags::TRUNCATED, out);
    }

    /// Gives out what is held, with these flags.
    fn end(&mut self, flags: Flags, out: &mut Frames) {
        let own_flags = self.flags;
        self.flags |= flags;
        self.give_held(flags, out);
        self.flags = own_flags;
    }

    fn give_held(&mut self, flags: Flags, out: &mut Frames) {
        out.begin_push();
        if let Some(joins) = &mut self.joins {
            joins.begin(out);
        }
        if !self.carry.is_empty() {
            let carry = std::mem::take(&mut self.carry);
            let start = self.offset - carry.len() as u64;
            let nuls = nuls_before(&carry);
            if nuls == carry.len() && nuls >= self.hole_bytes_min() {
                self.skip_hole(start..self.offset, Chunk::NONE, out);
            } else {
                let line = Line {
                    text: &carry,
                    start,
                    end: self.offset,
                    place: None,
                };
                self.carried_line(&line, Chunk::NONE, out);
            }
            self.carry = emptied(carry);
        }
        self.skipping = false;
        self.chains.finish(self.offset, self.flags, out);
        if let Some(joins) = &mut self.joins {
            joins.absorb(Chunk::NONE, out);
            joins.flush(self.offset, flags, out);
        }
    }

    /// The source has been quiet: multi-line records that its next line might continue are given out. An unfinished
    /// line and partial lines stay.
    pub fn flush_joins(&mut self, out: &mut Frames) {
        if let Some(joins) = &mut self.joins {
            joins.begin(out);
            joins.flush(self.offset, Flags::NONE, out);
        }
    }

    /// Whether a record is held that the next line might continue.
    pub fn has_open_join(&self) -> bool {
        self.joins.as_ref().is_some_and(|joins| joins.is_open())
    }

    /// The lowest offset of a byte that is held: of a line that has not ended, or of a chain or join that is not complete.
    /// All bytes before it are in pieces and skips that were given out.
    pub fn unacked_from(&self) -> Option<u64> {
        let stowed = self.stowed.iter().flatten().next();
        let carried = stowed.map_or(self.carry.len() as u64, |&len| u64::from(len));
        let line = (carried > 0).then(|| self.offset - carried);
        self.held_from(self.source).or(line)
    }

    /// The offset of the byte that is expected next.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How lines are read; `Auto` or `Container` as long as that is not decided.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Deals with the line that was open before `bytes`, which ends at the first newline in them; returns where the next
    /// line starts.
    fn continue_line(&mut self, bytes: &[u8], newline: Option<usize>, out: &mut Frames) -> usize {
        if self.carry.first() == Some(&0)
            && let Some(length) = self.continue_nuls(bytes, newline, out)
        {
            return length;
        }
        let length = newline.map_or(bytes.len(), |newline| newline + 1);
        let end = self.offset + length as u64;
        if self.skipping {
            self.skipping = newline.is_none();
            out.skip(self.source, self.offset..end, SkipReason::Oversize);
            self.chains
                .expire(end, self.chain_span_max, self.flags, out);
            self.ack(end, Chunk::NONE, out);
        } else if let Some(newline) = newline {
            let mut carry = std::mem::take(&mut self.carry);
            let start = self.offset - carry.len() as u64;
            let missing = self.held_bytes_max().saturating_sub(carry.len());
            carry.extend_from_slice(&bytes[..newline.min(missing)]);
            self.carried_line(
                &Line {
                    text: &carry,
                    start,
                    end,
                    place: None,
                },
                Chunk::NONE,
                out,
            );
            self.carry = emptied(carry);
        } else {
            self.hold(bytes, self.offset, Chunk::NONE, out);
        }
        length
    }

    /// Keeps `bytes`, the source's from `offset` on, as more of a line that has not ended; or, if the line has become
    /// too long, gives out what there is.
    fn hold(&mut self, bytes: &[u8], offset: u64, chunk: Chunk<'_>, out: &mut Frames) {
        let start = offset - self.carry.len() as u64;
        let missing = self.held_bytes_max().saturating_sub(self.carry.len());
        self.carry
            .extend_from_slice(&bytes[..bytes.len().min(missing)]);
        if is_overlong(&self.carry, self.line_bytes_max()) {
            let carry = std::mem::take(&mut self.carry);
            self.carried_line(
                &Line {
                    text: &carry,
                    start,
                    end: offset + bytes.len() as u64,
                    place: None,
                },
                chunk,
                out,
            );
            self.carry = emptied(carry);
            self.skipping = true;
        }
    }

    /// Deals with a line that had to be carried.
    fn carried_line(&mut self, line: &Line<'_>, chunk: Chunk<'_>, out: &mut Frames) {
        self.line(line, out);
        self.ack(line.end, chunk, out);
    }

    /// A line, or more of one that is skipped, was dealt with up to `end`: its records are joined, and what is held too
    /// long is given out, what began first at first.
    fn ack(&mut self, end: u64, chunk: Chunk<'_>, out: &mut Frames) {
        let Some(joins) = &mut self.joins else {
            return;
        };
        joins.absorb(chunk, out);
        while let Some(longest) = joins.longest(end)
            && longest.0 > joins.span_max
        {
            // Chains that began before it are due before it.
            self.chains.expire(end, longest.0, self.flags, out);
            joins.absorb(chunk, out);
            if joins.longest(end) == Some(longest) {
                joins.give(longest.1, Flags::TRUNCATED, out);
            }
        }
        self.chains.expire(end, joins.span_max, self.flags, out);
        joins.absorb(chunk, out);
    }
}

/// What every record of a source is flagged with.
fn flags_of(config: &Config) -> Flags {
    match (config.format, config.content) {
        (Format::Json, _) => Flags::NONE,
        (Format::Raw, _) => Flags::TEXT,
        (_, Content::Any) => Flags::TEXT_ALLOWED,
        (_, Content::Json) => Flags::NONE,
        (_, Content::Raw) => Flags::TEXT,
    }
}

#[cfg(test)]
mod tests;
