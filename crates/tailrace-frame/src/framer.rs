//! The state of one source between two chunks, and the way of a line through it.
//!
//! A line that lies in one chunk becomes a range of the caller's buffer. A line that is cut is collected in `carry`,
//! never more than its limit: what is longer becomes a truncated record at once and the rest is skipped as it comes.
//!
//! Why the cuts do not matter: every decision is made on a whole line, or on a head of a fixed length once it is sure
//! that the line is longer (`is_overlong`). Neither depends on how many bytes have been read beyond that point; only
//! the length of a skip does, and the skips of one line follow each other without a gap.

mod rest;
mod stow;

use std::ops::Range;

use memchr::memchr_iter;

use crate::chain::{Chains, Part};
use crate::multiline::join::{Chunk, Joins};
use crate::text::{cut_length, emptied, is_blank, is_overlong, nuls_before, without_return};
use crate::{Config, Flags, Format, Frames, Piece, Record, SIDE, SkipReason, Stream, cri, docker};

/// What a line of CRI or docker may be longer than the longest record: room for the envelope and for escapes. docker
/// cuts at 16 KiB, which escapes make 96 KiB at most, so that none of its lines is ever cut here.
const ENVELOPE_BYTES_MAX: usize = 128 << 10;

/// So many NULs at the beginning of a line are a hole in the file; fewer are bytes of the line.
const HOLE_BYTES_MIN: usize = 16;

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
    /// Offset behind its newline, or behind what has been read of it.
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

    /// The line, which begins with a byte order mark, without it; if it goes on behind `limit`, only what stands before
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

/// What became of a record that began in an earlier source, in an earlier run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was settled with bytes of this source.
    Settled,
    /// It ended before this source.
    Given,
    /// It had not ended.
    Open,
}

impl Framer {
    /// A framer for a source whose first pushed byte is at `offset`. With `mid_line`, the byte before it is not a
    /// newline: everything up to the next newline is skipped as oversize.
    pub fn new(config: &Config, offset: u64, mid_line: bool) -> Framer {
        let flags = match config.format {
            Format::Json => Flags::NONE,
            Format::Raw => Flags::TEXT,
            Format::Cri | Format::Docker | Format::Container | Format::Auto => Flags::TEXT_ALLOWED,
        };
        let record_bytes_max = config.record_bytes_max.max(1);
        let span_max = config.chain_span_max;
        let multiline = config.multiline.as_ref();
        let joins = multiline.map(|how| Box::new(Joins::new(how, record_bytes_max, span_max)));
        Framer {
            source: 0,
            format: config.format,
            flags,
            record_bytes_max,
            // Where lines are joined, chains and joins expire together: see `settle`.
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

    /// This source goes on where `earlier` ended: records that began there end here. What the earlier one holds of
    /// partial lines and joins is held here from now on; an unterminated line stays there.
    pub fn continue_from(&mut self, earlier: &mut Framer) {
        if matches!(self.format, Format::Auto | Format::Container) {
            self.format = earlier.format;
        }
        let (end, start) = (earlier.offset, self.offset);
        self.chains.continue_from(&mut earlier.chains, end, start);
        if let (Some(joins), Some(earlier_joins)) = (&mut self.joins, &mut earlier.joins) {
            joins.continue_from(earlier_joins, (earlier.source, end), start);
        }
    }

    /// After [`Framer::continue_from`], where this source is not read from its first byte: what it begins with, as much
    /// as there is before its offset or a good part of that, which an earlier run settled. What is held of a record that
    /// has bytes in `head` is skipped: it was settled with them. One that ends before `head` is given out.
    pub fn skip_settled(&mut self, head: &[u8], out: &mut Frames) {
        out.begin_push();
        self.chains.rewind();
        if let Some(joins) = &mut self.joins {
            joins.rewind(self.offset);
            joins.begin(out);
        }
        let (mut again, mut frames) = (self.clone(), Frames::default());
        again.offset = 0;
        again.skipping = false;
        again.push(head, 0, 0, &mut frames);
        // What decided how lines are read may stand there.
        (self.format, self.flags) = (again.format, again.flags);
        let fate = |held: &Piece| {
            let given = (0..frames.records.len()).map(|record| frames.pieces_of(record));
            let open = again.chains.open();
            let joined = again.joins.iter().flat_map(|joins| joins.open());
            let has = |pieces: &[Piece]| {
                let mut pieces = pieces.iter().filter(|piece| piece.source == held.source);
                pieces.any(|piece| (piece.start..piece.end).contains(&held.start))
            };
            let of = |pieces: &[Piece], otherwise| match pieces
                .iter()
                .any(|piece| piece.source == self.source)
            {
                true => Fate::Settled,
                false => otherwise,
            };
            if let Some(pieces) = open.chain(joined).find(|pieces| has(pieces)) {
                return of(pieces, Fate::Open);
            }
            let pieces = given.into_iter().find(|pieces| has(pieces));
            pieces.map_or(Fate::Settled, |pieces| of(pieces, Fate::Given))
        };
        if let Some(joins) = &mut self.joins {
            joins.skip_settled(fate, out);
        }
        self.chains
            .skip_settled(&again.chains, fate, self.flags, out);
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
    /// `base + bytes.len()` must fit a `u32`, and `buffer` must not be [`SIDE`].
    pub fn push(&mut self, bytes: &[u8], buffer: u32, base: u32, out: &mut Frames) {
        self.push_lines(
            bytes,
            memchr_iter(b'\n', bytes),
            (buffer, base),
            usize::MAX,
            out,
        );
    }

    /// [`Framer::push`] where all places of newlines in `bytes`, ascending, are known. It ends behind the line with which
    /// `out` has `records_max` records; returns how many bytes it took.
    pub fn push_lines(
        &mut self,
        bytes: &[u8],
        mut newlines: impl Iterator<Item = usize>,
        (buffer, base): (u32, u32),
        records_max: usize,
        out: &mut Frames,
    ) -> usize {
        let origin = self.offset;
        out.begin_push();
        if self.joins.is_some() {
            return self.push_joined(bytes, newlines, (buffer, base), records_max, out);
        }
        let mut start = if self.skipping || !self.carry.is_empty() {
            self.continue_line(bytes, newlines.next(), out)
        } else {
            0
        };
        for newline in newlines {
            if bytes[start] == 0 {
                start = self.skip_nuls((&bytes[..newline], false), start, origin, Chunk::NONE, out);
            }
            let line = Line {
                text: &bytes[start..newline],
                start: origin + start as u64,
                end: origin + newline as u64 + 1,
                place: Some((buffer, base + start as u32)),
            };
            self.line(&line, out);
            start = newline + 1;
            if out.records.len() >= records_max {
                return self.took(start, out);
            }
        }
        if bytes.get(start) == Some(&0) {
            start = self.skip_nuls((bytes, true), start, origin, Chunk::NONE, out);
        }
        if start < bytes.len() {
            self.hold(&bytes[start..], origin + start as u64, Chunk::NONE, out);
        }
        self.took(bytes.len(), out)
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
        (buffer, base): (u32, u32),
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
                start = self.skip_nuls((&bytes[..newline], false), start, origin, chunk, out);
            }
            let line = Line {
                text: &bytes[start..newline],
                start: origin + start as u64,
                end: origin + newline as u64 + 1,
                place: Some((buffer, base + start as u32)),
            };
            self.line(&line, out);
            self.settle(line.end, chunk, out);
            start = newline + 1;
            if out.records.len() >= records_max {
                break;
            }
        }
        let is_full = out.records.len() >= records_max && start > 0;
        let taken = if is_full { start } else { bytes.len() };
        if start < taken && bytes[start] == 0 {
            start = self.skip_nuls((bytes, true), start, origin, chunk, out);
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
    /// a line that begins in these bytes and ends behind them is passed over to its end.
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
            joins.flush(self.offset, out);
        }
    }

    /// The source has been quiet: multi-line records that its next line might go on with are given out. An unfinished
    /// line and partial lines stay.
    pub fn flush_joins(&mut self, out: &mut Frames) {
        if let Some(joins) = &mut self.joins {
            joins.begin(out);
            joins.flush(self.offset, out);
        }
    }

    /// Whether a record is held that the next line might go on with.
    pub fn has_open_join(&self) -> bool {
        self.joins.as_ref().is_some_and(|joins| joins.is_open())
    }

    /// The lowest offset of a byte that is held: of a line that has not ended, or of a chain or join that is not complete.
    /// All bytes before it are in pieces and skips that were given out.
    pub fn unsettled_from(&self) -> Option<u64> {
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
            self.settle(end, Chunk::NONE, out);
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

    /// Skips the NULs that a line begins with, from `start` to the end of `bytes` at most, if they are so many that they
    /// are a hole; returns where the line goes on. A hole in a file reads as NULs: a writer that does not append leaves
    /// one when its file is cut. Where the line `goes_on` behind `bytes`, so many are left to be held that whoever begins
    /// to read there knows the hole for one.
    #[cold]
    fn skip_nuls(
        &mut self,
        (bytes, goes_on): (&[u8], bool),
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
    fn continue_nuls(
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

    fn skip_hole(&mut self, hole: Range<u64>, chunk: Chunk<'_>, out: &mut Frames) {
        let end = hole.end;
        out.skip(self.source, hole, SkipReason::Nul);
        self.chains
            .expire(end, self.chain_span_max, self.flags, out);
        self.settle(end, chunk, out);
    }

    /// How many NULs are a hole. Fewer have to be held until it is known, within the limit of a line.
    fn hole_bytes_min(&self) -> usize {
        HOLE_BYTES_MIN.min(self.record_bytes_max)
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

    /// The longest line that is read whole, line ending not counted.
    fn line_bytes_max(&self) -> usize {
        match self.format {
            Format::Json | Format::Raw => self.record_bytes_max,
            Format::Cri | Format::Docker | Format::Container | Format::Auto => {
                self.record_bytes_max.saturating_add(ENVELOPE_BYTES_MAX)
            }
        }
    }

    /// How many bytes of a line decide whether it is overlong: one for a carriage return and one more.
    fn held_bytes_max(&self) -> usize {
        self.line_bytes_max().saturating_add(2)
    }

    /// Deals with a line that had to be carried.
    fn carried_line(&mut self, line: &Line<'_>, chunk: Chunk<'_>, out: &mut Frames) {
        self.line(line, out);
        self.settle(line.end, chunk, out);
    }

    /// Makes a record, a part of a chain or a skip of a line.
    fn line(&mut self, line: &Line<'_>, out: &mut Frames) {
        if matches!(self.format, Format::Auto | Format::Container) {
            let marked = line.has_mark().then(|| line.without_mark(None));
            let line = marked.as_ref().unwrap_or(line);
            let head = &line.text[..line.text.len().min(self.line_bytes_max())];
            if !is_blank(head) || head.len() < line.text.len() {
                self.format = detect(head, self.format);
            }
        }
        let limit = self.line_bytes_max();
        let overlong = is_overlong(line.text, limit);
        let kept_end = if overlong {
            line.start + limit as u64
        } else {
            line.end
        };
        let piece = Piece {
            source: self.source,
            start: line.start,
            end: kept_end,
        };
        let marked = line
            .has_mark()
            .then(|| line.without_mark(overlong.then_some(limit)));
        let line = marked.as_ref().unwrap_or(line);
        let head = &line.text[..line.text.len().min(limit)];
        match self.format {
            Format::Cri => self.cri_line(line, head, piece, overlong, out),
            Format::Docker => self.docker_line(line, head, piece, overlong, out),
            Format::Container => self.plain(line, piece, Flags::BROKEN, overlong, out),
            Format::Json | Format::Raw | Format::Auto => {
                self.plain(line, piece, Flags::NONE, overlong, out)
            }
        }
        if overlong {
            out.skip(self.source, kept_end..line.end, SkipReason::Oversize);
        }
        self.chains
            .expire(line.end, self.chain_span_max, self.flags, out);
    }

    /// A line, or more of one that is skipped, was dealt with up to `end`: its records are joined, and what is held too
    /// long is given out, what began first at first.
    fn settle(&mut self, end: u64, chunk: Chunk<'_>, out: &mut Frames) {
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

    /// The whole line, up to the limit, as a record.
    fn plain(&self, line: &Line<'_>, piece: Piece, flags: Flags, cut: bool, out: &mut Frames) {
        let content = if cut {
            line.text
        } else {
            without_return(line.text)
        };
        self.record(line, 0, content, piece, Stream::None, 0, (flags, cut), out);
    }

    fn cri_line(
        &mut self,
        line: &Line<'_>,
        head: &[u8],
        piece: Piece,
        cut: bool,
        out: &mut Frames,
    ) {
        let Some(entry) = cri::read(head) else {
            return self.plain(line, piece, Flags::BROKEN, cut, out);
        };
        let payload = &head[entry.payload_start..];
        if entry.full && self.chains.is_closed(entry.stream) {
            let content = without_return(payload);
            let (stream, time_ns) = (entry.stream, entry.time_ns);
            return self.record(
                line,
                entry.payload_start,
                content,
                piece,
                stream,
                time_ns,
                (Flags::NONE, cut),
                out,
            );
        }
        let part = Part {
            payload,
            piece,
            full: entry.full,
            cut,
            stream: entry.stream,
            time_ns: entry.time_ns,
        };
        self.chains
            .add(&part, self.record_bytes_max, self.flags, out);
    }

    fn docker_line(
        &mut self,
        line: &Line<'_>,
        head: &[u8],
        piece: Piece,
        cut: bool,
        out: &mut Frames,
    ) {
        let entry = if cut { None } else { docker::read(head) };
        let Some(docker::Entry {
            log,
            stream,
            time_ns,
        }) = entry
        else {
            return self.plain(line, piece, Flags::BROKEN, cut, out);
        };
        let raw = &head[log.clone()];
        let closed = self.chains.is_closed(stream);
        if closed && let Some(content) = docker::plain_line(raw) {
            let content = without_return(content);
            return self.record(
                line,
                log.start,
                content,
                piece,
                stream,
                time_ns,
                (Flags::NONE, false),
                out,
            );
        }
        let start = out.side_end();
        let side_start = out.side.len();
        if !docker::unescape(raw, &mut out.side) {
            out.side.truncate(side_start);
            return self.plain(line, piece, Flags::BROKEN, cut, out);
        }
        let text = &out.side[side_start..];
        let full = text.last() == Some(&b'\n');
        if full && closed {
            let content = without_return(&text[..text.len() - 1]);
            let truncated = content.len() > self.record_bytes_max;
            if is_blank(content) && !truncated {
                out.side.truncate(side_start);
                return out.skip(piece.source, piece.start..piece.end, SkipReason::Blank);
            }
            let length = cut_length(content, self.record_bytes_max);
            out.side.truncate(side_start + length);
            let flags = self.flags | Flags::TRUNCATED.when(truncated);
            return out.seal_line(out.side_record(start, flags, stream, time_ns), piece);
        }
        // The chains write to `side` themselves when one is complete, behind what is there now: `scratch` lends them
        // this part's text meanwhile.
        let mut scratch = self.chains.take_scratch();
        scratch.extend_from_slice(text);
        out.side.truncate(side_start);
        let payload = scratch.strip_suffix(b"\n").unwrap_or(&scratch);
        let part = Part {
            payload,
            piece,
            full,
            cut: false,
            stream,
            time_ns,
        };
        self.chains
            .add(&part, self.record_bytes_max, self.flags, out);
        self.chains.return_scratch(scratch);
    }

    /// One line's `content`, which starts at `line.text[at]`, as a record. `cut` says that it goes on behind its end.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call per envelope; a struct would only rename them"
    )]
    fn record(
        &self,
        line: &Line<'_>,
        at: usize,
        content: &[u8],
        piece: Piece,
        stream: Stream,
        time_ns: i64,
        (flags, cut): (Flags, bool),
        out: &mut Frames,
    ) {
        let truncated = cut || content.len() > self.record_bytes_max;
        if is_blank(content) && !truncated {
            return out.skip(piece.source, piece.start..piece.end, SkipReason::Blank);
        }
        let content = &content[..cut_length(content, self.record_bytes_max)];
        let (buffer, start) = match line.place {
            Some((buffer, start)) => (buffer, start + at as u32),
            None => {
                let start = out.side_end();
                out.side.extend_from_slice(content);
                (SIDE, start)
            }
        };
        let flags = self.flags | flags | Flags::TRUNCATED.when(truncated);
        let end = start + content.len() as u32;
        let record = Record {
            buffer,
            start,
            end,
            flags,
            stream,
            time_ns,
        };
        out.seal_line(record, piece);
    }
}

/// The format of a source whose first line this is, as far as that is left open: a container's log that begins with
/// neither envelope waits for a line that has one.
fn detect(line: &[u8], open: Format) -> Format {
    if cri::read(line).is_some() {
        return Format::Cri;
    }
    let is_object = line.trim_ascii_start().first() == Some(&b'{');
    let entry = if is_object { docker::read(line) } else { None };
    let is_docker = entry.is_some_and(|entry| entry.stream != Stream::None && entry.time_ns != 0);
    match open {
        _ if is_docker => Format::Docker,
        Format::Container => Format::Container,
        _ if is_object => Format::Json,
        _ => Format::Raw,
    }
}

#[cfg(test)]
mod tests;
