//! Open joins: the record of a stream to which its next line may yet be added.
//!
//! Withdraws the records that framing has just emitted, and emits them again when it is known that they are complete.
//! A record that nothing was added to stays a range of the caller's buffer, and so does a join of lines that lie one
//! after the other there. Bounded like the chains of partial lines: by the record limit and, where other streams'
//! lines lie between, by the span limit.

use std::ops::Range;

use super::Multiline;
use super::preset::Traces;
use crate::chain::{ChainOutcome, skip_pieces};
use crate::frames::{Flags, Frames, Piece, Record, SIDE, Stream};
use crate::text::emptied;

/// The open joins of one source.
#[derive(Clone, Debug)]
pub(crate) struct Joins {
    multiline: Multiline,
    record_bytes_max: usize,
    /// How many bytes of the source a join or a chain of partial lines may span.
    pub(crate) span_max: u64,
    /// Indexed by [`Stream`].
    by_stream: [Join; 3],
    /// Where in the log the source begins, less the offset of its first byte; wraps around. A log is all sources that continue
    /// each other.
    base: u64,
    /// Earlier sources of which a record may still have bytes.
    earlier: Vec<Earlier>,
    /// How many records of the frames are given out for good.
    given: usize,
    /// Taken back from the frames; empty in between.
    records: Vec<Taken>,
    pieces: Vec<Piece>,
}

/// The bytes that are being framed, and where they lie in the caller's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) base: u32,
}

impl Chunk<'_> {
    /// No bytes: everything lies elsewhere.
    pub(crate) const NONE: Chunk<'static> = Chunk {
        bytes: &[],
        base: 0,
    };
}

/// A source that this one continues.
#[derive(Clone, Debug)]
struct Earlier {
    source: u32,
    base: u64,
    /// Where in the log it ended.
    end: u64,
}

/// A record taken back from the frames.
#[derive(Clone, Debug)]
struct Taken {
    record: Record,
    /// Its pieces, of those that were taken back.
    pieces: Range<usize>,
}

#[derive(Clone, Debug)]
struct Join {
    /// The spans of the lines so far, neighbours merged. The join is open exactly if there is one.
    pieces: Vec<Piece>,
    /// The record so far. Its range is only meant if `content` is empty; of a buffer it is valid until the push ends.
    record: Record,
    /// The bytes so far, as soon as they are no range.
    content: Vec<u8>,
    lines: u64,
    /// Where in the log it begins.
    began: u64,
    /// Where in a trace the stream is, whether or not the join is open.
    traces: Traces,
}

impl Joins {
    pub(crate) fn new(multiline: &Multiline, record_bytes_max: usize, span_max: u64) -> Joins {
        let join = |stream| Join {
            pieces: Vec::new(),
            record: Record {
                buffer: SIDE,
                start: 0,
                end: 0,
                flags: Flags::NONE,
                stream,
                time_ns: 0,
            },
            content: Vec::new(),
            lines: 0,
            began: 0,
            traces: Traces::default(),
        };
        Joins {
            multiline: multiline.clone(),
            record_bytes_max,
            span_max,
            by_stream: [Stream::None, Stream::Stdout, Stream::Stderr].map(join),
            base: 0,
            earlier: Vec::new(),
            given: 0,
            records: Vec::new(),
            pieces: Vec::new(),
        }
    }

    /// Whether a record is held.
    pub(crate) fn is_open(&self) -> bool {
        self.by_stream.iter().any(Join::is_open)
    }

    /// The bytes of each open join; between two pushes they are no ranges.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.by_stream.iter().map(|join| &join.content)
    }

    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.by_stream.iter_mut().map(|join| &mut join.content)
    }

    /// The lowest offset of a source that is held.
    pub(crate) fn held_from(&self, source: u32) -> Option<u64> {
        let pieces = self.by_stream.iter().flat_map(|join| &join.pieces);
        let pieces = pieces.filter(|piece| piece.source == source);
        pieces.map(|piece| piece.start).min()
    }

    /// The open join that began first, by its stream, and how many bytes it spans up to `offset`.
    pub(crate) fn longest(&self, offset: u64) -> Option<(u64, Stream)> {
        let open = self.by_stream.iter().filter(|join| join.is_open());
        let now = self.base.wrapping_add(offset);
        let spans = open.map(|join| (now.wrapping_sub(join.began), join.record.stream));
        spans.max_by_key(|(span, _)| *span)
    }

    /// Continues the joins of the source with this number, which ended at `end`, where this one begins at `start`.
    pub(crate) fn continue_from(
        &mut self,
        earlier: &mut Joins,
        (source, end): (u32, u64),
        start: u64,
    ) {
        let now = earlier.base.wrapping_add(end);
        let moved = now.wrapping_sub(start).wrapping_sub(self.base);
        self.base = self.base.wrapping_add(moved);
        self.earlier = std::mem::take(&mut earlier.earlier);
        self.earlier
            .retain(|earlier| now.wrapping_sub(earlier.end) <= self.span_max);
        if self.earlier.last().is_none_or(|last| last.end != now) {
            self.earlier.push(Earlier {
                source,
                base: earlier.base,
                end: now,
            });
        }
        for (join, earlier) in self.by_stream.iter_mut().zip(&mut earlier.by_stream) {
            if join.is_open() {
                join.began = join.began.wrapping_add(moved);
            } else {
                std::mem::swap(join, earlier);
            }
        }
    }

    /// Takes the place of `before`, which holds nothing, in the same source.
    pub(crate) fn stand_where(&mut self, before: Joins) {
        self.base = before.base;
        self.earlier = before.earlier;
    }

    /// The source, of which `offset` is expected next, began at 0.
    pub(crate) fn rewind(&mut self, offset: u64) {
        self.base = self.base.wrapping_add(offset);
    }

    /// The pieces of each open join.
    pub(crate) fn open(&self) -> impl Iterator<Item = &[Piece]> {
        self.by_stream.iter().map(|join| &join.pieces[..])
    }

    /// Skips or gives out the joins from earlier sources that are acknowledged or have ended.
    pub(crate) fn skip_acked(
        &mut self,
        outcome: impl Fn(&Piece) -> ChainOutcome,
        out: &mut Frames,
    ) {
        for join in &mut self.by_stream {
            match join.pieces.first().map(&outcome) {
                Some(ChainOutcome::Acked) => {
                    skip_pieces(&mut join.pieces, out);
                    join.content = emptied(std::mem::take(&mut join.content));
                }
                Some(ChainOutcome::Given) => join.give(out),
                Some(ChainOutcome::Open) | None => continue,
            }
            join.traces = Traces::default();
        }
        self.given = out.records.len();
    }

    /// Where in the log a piece begins.
    fn position(&self, piece: &Piece) -> u64 {
        let mut earlier = self.earlier.iter();
        let earlier = earlier.find(|earlier| earlier.source == piece.source);
        let base = earlier.map_or(self.base, |earlier| earlier.base);
        base.wrapping_add(piece.start)
    }

    /// What `out` holds now is given out for good.
    pub(crate) fn begin(&mut self, out: &Frames) {
        self.given = out.records.len();
    }

    /// Deals with the records that were given out since the last call.
    #[inline]
    pub(crate) fn absorb(&mut self, chunk: Chunk<'_>, out: &mut Frames) {
        match out.records.len() - self.given {
            0 => return,
            1 if out.pieces.len() == first_piece(self.given, out) + 1 => {
                if let (Some(record), Some(piece)) = (out.records.pop(), out.pieces.pop()) {
                    out.piece_ends.pop();
                    uncount(&record, out);
                    self.add(record, &[piece], chunk, out);
                }
            }
            _ => self.absorb_several(chunk, out),
        }
        self.given = out.records.len();
    }

    /// Several records, or one of several pieces.
    fn absorb_several(&mut self, chunk: Chunk<'_>, out: &mut Frames) {
        self.take_back(out);
        let mut records = std::mem::take(&mut self.records);
        let mut pieces = std::mem::take(&mut self.pieces);
        for taken in records.drain(..) {
            self.add(taken.record, &pieces[taken.pieces], chunk, out);
        }
        pieces.clear();
        (self.records, self.pieces) = (records, pieces);
    }

    /// Gives out the open join of a stream. `flags` says more of it.
    pub(crate) fn give(&mut self, stream: Stream, flags: Flags, out: &mut Frames) {
        let join = &mut self.by_stream[stream as usize];
        join.record.flags |= flags;
        join.give(out);
        self.given = out.records.len();
    }

    /// Gives out all joins, in the order of the source, of which all bytes up to `offset` were framed. `flags` says more of
    /// them.
    pub(crate) fn flush(&mut self, offset: u64, flags: Flags, out: &mut Frames) {
        while let Some((_, stream)) = self.longest(offset) {
            self.give(stream, flags, out);
        }
    }

    /// The pushed bytes and the side buffer go away: keeps copies of what is held.
    pub(crate) fn keep(&mut self, chunk: Chunk<'_>, out: &mut Frames) {
        for join in &mut self.by_stream {
            if join.is_open() {
                join.own(chunk, out);
            }
        }
    }

    /// Undoes what [`Frames::seal`] did since the last call.
    fn take_back(&mut self, out: &mut Frames) {
        let first_piece = first_piece(self.given, out);
        let mut start = 0;
        for index in self.given..out.records.len() {
            let record = out.records[index];
            let end = out.piece_ends[index] as usize - first_piece;
            self.records.push(Taken {
                record,
                pieces: start..end,
            });
            start = end;
            uncount(&record, out);
        }
        self.pieces.extend_from_slice(&out.pieces[first_piece..]);
        out.records.truncate(self.given);
        out.piece_ends.truncate(self.given);
        out.pieces.truncate(first_piece);
    }

    /// Adds a line's record to the open join of its stream, or gives that out and begins another one.
    fn add(&mut self, mut record: Record, pieces: &[Piece], chunk: Chunk<'_>, out: &mut Frames) {
        if record.buffer == SIDE && record.start == record.end {
            // A record without a byte is nowhere: memory may be given back before the place where it would be.
            (record.start, record.end) = (0, 0);
        }
        let began = self.position(&pieces[0]);
        let join = &mut self.by_stream[record.stream as usize];
        let line = content_of(&record, chunk, out);
        let before = join.content(chunk, out).len();
        let is_text = || {
            join.is_open()
                && before + 1 + line.len() <= self.record_bytes_max
                && is_part_of_object(&record, line)
                && self.multiline.joins_what_is_no_object(line)
        };
        if record.flags.contains(Flags::BROKEN) || is_json(&record, line) && !is_text() {
            join.traces = Traces::default();
            join.give(out);
            return out.seal(record, pieces);
        }
        let mut traces = std::mem::take(&mut join.traces);
        let before = join.content(chunk, out);
        let length = before.len() + 1 + line.len();
        let continues = self.multiline.continues(&mut traces, line, before);
        join.traces = traces;
        if !continues || !join.is_open() {
            join.give(out);
            join.begin(record, pieces, began);
        } else if length > self.record_bytes_max {
            join.record.flags |= Flags::TRUNCATED;
            join.give(out);
            join.begin(record, pieces, began);
        } else {
            join.append(record, pieces, chunk, out);
        }
        if record.flags.contains(Flags::TRUNCATED) {
            // What follows in the source is not what follows in the record; and it may be far away.
            join.give(out);
        }
    }

    /// The memory of everything that grows.
    #[cfg(test)]
    pub(crate) fn capacities(&self) -> Vec<usize> {
        let joins = self.by_stream.iter();
        let joins = joins.flat_map(|join| [join.pieces.capacity(), join.content.capacity()]);
        joins
            .chain([self.records.capacity(), self.pieces.capacity()])
            .collect()
    }
}

impl Join {
    fn is_open(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// What is held so far.
    fn content<'a>(&'a self, chunk: Chunk<'a>, out: &'a Frames) -> &'a [u8] {
        if !self.is_open() {
            &[]
        } else if self.content.is_empty() {
            content_of(&self.record, chunk, out)
        } else {
            &self.content
        }
    }

    fn begin(&mut self, record: Record, pieces: &[Piece], began: u64) {
        self.record = record;
        self.pieces.extend_from_slice(pieces);
        self.lines = 1;
        self.began = began;
    }

    fn append(&mut self, record: Record, pieces: &[Piece], chunk: Chunk<'_>, out: &mut Frames) {
        // Nothing but the newline lies between.
        let is_next = record.buffer != SIDE
            && record.buffer == self.record.buffer
            && record.start == self.record.end + 1;
        if self.content.is_empty() && is_next {
            self.record.end = record.end;
        } else {
            let held = self.record;
            if self.content.is_empty() {
                self.content
                    .extend_from_slice(content_of(&held, chunk, out));
            }
            self.content.push(b'\n');
            self.content
                .extend_from_slice(content_of(&record, chunk, out));
            reclaim(&record, out);
            reclaim(&held, out);
            self.record.buffer = SIDE;
            (self.record.start, self.record.end) = (0, 0);
        }
        self.record.flags |= record.flags;
        self.lines += 1;
        for piece in pieces {
            match self.pieces.last_mut() {
                Some(last) if (last.source, last.end) == (piece.source, piece.start) => {
                    last.end = piece.end;
                }
                _ => self.pieces.push(*piece),
            }
        }
    }

    /// Copies what is held, if it is a range.
    fn own(&mut self, chunk: Chunk<'_>, out: &mut Frames) {
        if self.content.is_empty() {
            let held = self.record;
            self.content
                .extend_from_slice(content_of(&held, chunk, out));
            reclaim(&held, out);
            self.record.buffer = SIDE;
            (self.record.start, self.record.end) = (0, 0);
        }
    }

    /// Gives out the record, if there is one, and closes the join.
    fn give(&mut self, out: &mut Frames) {
        if !self.is_open() {
            return;
        }
        let mut record = self.record;
        if !self.content.is_empty() {
            record.start = out.side_end();
            out.side.extend_from_slice(&self.content);
            record.end = out.side_end();
            self.content = emptied(std::mem::take(&mut self.content));
        }
        out.seal(record, &self.pieces);
        out.stats.multiline += u64::from(self.lines > 1);
        self.pieces.clear();
    }
}

/// The index of the first piece of a record that is given out next, where so many are given out.
fn first_piece(given: usize, out: &Frames) -> usize {
    match given {
        0 => 0,
        given => out.piece_ends[given - 1] as usize,
    }
}

/// A record is taken back: it counts when it is given out again.
fn uncount(record: &Record, out: &mut Frames) {
    out.stats.records -= 1;
    out.stats.truncated -= u64::from(record.flags.contains(Flags::TRUNCATED));
    out.stats.broken -= u64::from(record.flags.contains(Flags::BROKEN));
}

/// Whether the record will be read as JSON.
fn is_json(record: &Record, line: &[u8]) -> bool {
    let text = match line.first() {
        Some(b' ' | b'\t' | b'\r') => line.trim_ascii_start(),
        _ => line,
    };
    text.first() == Some(&b'{') && !record.flags.contains(Flags::TEXT)
}

/// Whether what begins as an object does not end as one: it is a line of one that was printed over several lines, or no
/// JSON. Of a line that is cut the end is not known.
fn is_part_of_object(record: &Record, line: &[u8]) -> bool {
    !line.trim_ascii_end().ends_with(b"}") && !record.flags.contains(Flags::TRUNCATED)
}

fn content_of<'a>(record: &Record, chunk: Chunk<'a>, out: &'a Frames) -> &'a [u8] {
    let (bytes, base) = match record.buffer {
        SIDE => (&out.side[..], 0),
        _ => (chunk.bytes, chunk.base),
    };
    &bytes[(record.start - base) as usize..(record.end - base) as usize]
}

/// Gives back the memory of a record that was copied, if nothing lies after it.
fn reclaim(record: &Record, out: &mut Frames) {
    if record.buffer == SIDE && record.end as usize == out.side.len() {
        out.side.truncate(record.start as usize);
    }
}
