//! Chains of partial lines: parts of one record, joined per stream.
//!
//! Parts arrive in the order of the source; the joined record is emitted when its full (last) part arrives. What a
//! chain holds is bounded: past the record limit it is given out truncated and the remaining parts are skipped; past
//! the span limit it is given out truncated too, and the next part starts anew. A chain may continue in the next source,
//! where a log was rotated in the middle of a record. Never mixes streams, never reorders parts.

use crate::frames::{Flags, Frames, Piece, SkipReason, Stream};
use crate::text::{cut_length, emptied, is_blank, without_return};

/// What became of a record that began in an earlier source, in an earlier run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainOutcome {
    /// It was acknowledged with bytes of this source.
    Acked,
    /// It ended before this source.
    Given,
    /// It had not ended.
    Open,
}

/// One line's share of a record.
pub(crate) struct Fragment<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) piece: Piece,
    /// No part follows.
    pub(crate) full: bool,
    /// The line was cut: what is after `payload` is lost.
    pub(crate) cut: bool,
    pub(crate) stream: Stream,
    pub(crate) time_ns: i64,
}

/// The chains of one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    /// Indexed by [`Stream`]; none until there is a first part, as in most sources there never is one.
    by_stream: Option<Box<[Chain; 3]>>,
    /// Lent out for unescaping; empty in between.
    scratch: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct Chain {
    /// The spans of the parts so far, neighbours merged. The chain is open exactly if there is one.
    pieces: Vec<Piece>,
    /// The payloads so far; at most the record limit, and two bytes while a part is being added.
    content: Vec<u8>,
    /// The first part's.
    time_ns: i64,
    parts: u64,
    /// The record was given out, truncated: parts are skipped up to the full one. Then `pieces` is empty.
    discarding: bool,
    /// Bytes of earlier sources that it spans.
    span_before: u64,
    /// Where in the current source its span begins.
    since: u64,
    /// What comes next, if nothing is held, is the rest of a record that began in an earlier source.
    rest: Option<Rest>,
    /// The beginning of what is held is missing.
    headless: bool,
    /// The record that is held or skipped began in an earlier source.
    began_before: bool,
    /// Where in this source such a record ended.
    rest_end: Option<u64>,
}

/// What becomes of the rest of a record whose beginning cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// It is a truncated record.
    Truncated,
    /// The whole record was acknowledged: it is skipped.
    Acked,
}

impl Chains {
    /// Whether no part of this stream is held or to be discarded.
    pub(crate) fn is_closed(&self, stream: Stream) -> bool {
        let chain = self.all().get(stream as usize);
        chain.is_none_or(|chain| {
            chain.pieces.is_empty() && !chain.discarding && chain.rest.is_none()
        })
    }

    /// Whether there ever was a part of a record.
    #[inline]
    pub(crate) fn are_made(&self) -> bool {
        self.by_stream.is_some()
    }

    fn all(&self) -> &[Chain] {
        self.by_stream.as_deref().map_or(&[], |chains| chains)
    }

    fn all_mut(&mut self) -> &mut [Chain] {
        self.by_stream
            .as_deref_mut()
            .map_or(&mut [], |chains| chains)
    }

    fn make(&mut self) -> &mut [Chain; 3] {
        self.by_stream.get_or_insert_default()
    }

    /// The payloads of each open chain.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.all().iter().map(|chain| &chain.content)
    }

    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        self.all_mut().iter_mut().map(|chain| &mut chain.content)
    }

    /// The lowest offset of a source that is held.
    pub(crate) fn held_from(&self, source: u32) -> Option<u64> {
        let pieces = self.all().iter().flat_map(|chain| &chain.pieces);
        let pieces = pieces.filter(|piece| piece.source == source);
        pieces.map(|piece| piece.start).min()
    }

    /// Continues the chains of the source that ended at `end`, where this one begins at `start`.
    pub(crate) fn continue_from(&mut self, earlier: &mut Chains, end: u64, start: u64) {
        let Some(earlier) = &mut earlier.by_stream else {
            return;
        };
        for (chain, earlier) in self.make().iter_mut().zip(&mut **earlier) {
            if !chain.pieces.is_empty() || chain.discarding {
                continue;
            }
            let rest = chain.rest;
            *chain = std::mem::take(earlier);
            chain.span_before = chain.span(end);
            chain.since = start;
            chain.rest = rest.or(chain.rest);
            chain.began_before = !chain.pieces.is_empty() || chain.discarding;
            chain.rest_end = None;
        }
    }

    /// The first part of a stream belongs to a record that began in an earlier source.
    pub(crate) fn begin_within(&mut self, stream: Stream, is_acked: bool) {
        let rest = match is_acked {
            true => Rest::Acked,
            false => Rest::Truncated,
        };
        self.make()[stream as usize].rest = Some(rest);
    }

    /// For each stream where a record ends that began in an earlier source; [`u64::MAX`] as long as it has not ended.
    pub(crate) fn rest_ends(&self) -> [Option<u64>; 3] {
        let mut ends = [None; 3];
        for (end, chain) in ends.iter_mut().zip(self.all()) {
            let is_open = chain.began_before || chain.rest.is_some();
            *end = chain.rest_end.or(is_open.then_some(u64::MAX));
        }
        ends
    }

    /// The source began before its offset, at 0.
    pub(crate) fn rewind(&mut self) {
        self.all_mut().iter_mut().for_each(|chain| chain.since = 0);
    }

    /// The pieces of each open chain.
    pub(crate) fn open(&self) -> impl Iterator<Item = &[Piece]> {
        self.all().iter().map(|chain| &chain.pieces[..])
    }

    /// Skips or gives out the chains from earlier sources that are acknowledged or have ended; `again` has read on, up to where this
    /// source is read from if it `is_whole`.
    pub(crate) fn skip_acked(
        &mut self,
        again: &Chains,
        is_whole: bool,
        outcome: impl Fn(&Piece) -> ChainOutcome,
        flags: Flags,
        out: &mut Frames,
    ) {
        if self.by_stream.is_none() && again.by_stream.is_none() {
            return;
        }
        for stream in [Stream::None, Stream::Stdout, Stream::Stderr] {
            let read_on = again.all().get(stream as usize);
            let chain = &mut self.make()[stream as usize];
            let outcome = chain.pieces.first().map_or(ChainOutcome::Acked, &outcome);
            match outcome {
                ChainOutcome::Open => continue,
                ChainOutcome::Given => chain.give(stream, flags | Flags::TRUNCATED, out),
                ChainOutcome::Acked => {
                    skip_pieces(&mut chain.pieces, out);
                    chain.content = emptied(std::mem::take(&mut chain.content));
                }
            }
            if let Some(read_on) = read_on.filter(|read_on| read_on.pieces.is_empty()) {
                // What began in the source before, or in one before that, ended there. Of what ends behind, nobody knows: a record
                // that is whole may be marked, but none is skipped.
                chain.rest = match read_on.rest {
                    Some(Rest::Acked) if !is_whole => Some(Rest::Truncated),
                    rest => rest,
                };
            }
            chain.discarding = read_on.is_some_and(|chain| chain.discarding);
            chain.began_before = chain.discarding;
        }
    }

    /// Adds a part to its stream's chain.
    pub(crate) fn add(
        &mut self,
        part: &Fragment<'_>,
        record_bytes_max: usize,
        flags: Flags,
        out: &mut Frames,
    ) {
        let chain = &mut self.make()[part.stream as usize];
        let Piece { source, start, end } = part.piece;
        if !chain.discarding && chain.pieces.is_empty() {
            let rest = chain.rest.take();
            chain.headless = rest == Some(Rest::Truncated);
            chain.began_before |= rest.is_some();
            if rest == Some(Rest::Acked) {
                chain.rest = rest.filter(|_| !part.full);
                chain.note_end(part);
                return out.skip(source, start..end, SkipReason::Acked);
            }
        }
        chain.note_end(part);
        if chain.discarding {
            chain.discarding = !part.full;
            if part.full {
                // It was of this record, which is read from its beginning again.
                chain.rest = None;
            }
            return out.skip(source, start..end, SkipReason::Oversize);
        }
        chain.append(part, record_bytes_max);
        let end = if part.full {
            without_return(&chain.content).len()
        } else {
            chain.content.len()
        };
        let truncated = part.cut || end > record_bytes_max;
        if truncated || part.full {
            chain.content.truncate(end);
            let length = cut_length(&chain.content, record_bytes_max);
            chain.content.truncate(length);
            chain.give(part.stream, flags | Flags::TRUNCATED.when(truncated), out);
            chain.discarding = !part.full;
        }
    }

    /// Gives out the chains that start more than `span_max` bytes before `offset`.
    #[inline]
    pub(crate) fn expire(&mut self, offset: u64, span_max: u64, flags: Flags, out: &mut Frames) {
        while let Some((span, stream)) = self.longest(offset)
            && span > span_max
        {
            let chain = &mut self.make()[stream as usize];
            chain.give(stream, flags | Flags::TRUNCATED, out);
            chain.began_before = false;
        }
    }

    /// Gives out what is held, in the order of the source, and starts anew.
    pub(crate) fn finish(&mut self, offset: u64, flags: Flags, out: &mut Frames) {
        while let Some((_, stream)) = self.longest(offset) {
            self.make()[stream as usize].give(stream, flags, out);
        }
        let chains = self.all_mut().iter_mut();
        chains.for_each(|chain| (chain.discarding, chain.rest) = (false, None));
    }

    /// An empty vector to work in; hand it back with [`Chains::return_scratch`].
    pub(crate) fn take_scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    pub(crate) fn return_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = emptied(scratch);
    }

    /// The memory of everything that grows.
    #[cfg(test)]
    pub(crate) fn capacities(&self) -> Vec<usize> {
        let chains = (self.all().iter())
            .flat_map(|chain| [chain.pieces.capacity(), chain.content.capacity()]);
        chains.chain([self.scratch.capacity()]).collect()
    }

    /// The open chain that began first, and how many bytes it spans up to `offset`.
    fn longest(&self, offset: u64) -> Option<(u64, Stream)> {
        let streams = [Stream::Stderr, Stream::Stdout, Stream::None].into_iter();
        let chains = streams.filter_map(|stream| Some((self.all().get(stream as usize)?, stream)));
        let open = chains.filter(|(chain, _)| !chain.pieces.is_empty());
        let spans = open.map(|(chain, stream)| (chain.span(offset), stream));
        spans.max_by_key(|(span, _)| *span)
    }
}

/// Passes over what is held of a record.
pub(crate) fn skip_pieces(pieces: &mut Vec<Piece>, out: &mut Frames) {
    for piece in pieces.drain(..) {
        out.skip(piece.source, piece.start..piece.end, SkipReason::Acked);
    }
}

impl Chain {
    /// Bytes from its beginning to `offset`.
    fn span(&self, offset: u64) -> u64 {
        self.span_before + (offset - self.since)
    }

    /// A record that began in an earlier source may end here.
    fn note_end(&mut self, part: &Fragment<'_>) {
        if part.full && std::mem::take(&mut self.began_before) {
            self.rest_end = Some(part.piece.end);
        }
    }

    fn append(&mut self, part: &Fragment<'_>, record_bytes_max: usize) {
        if self.pieces.is_empty() {
            self.time_ns = part.time_ns;
            self.parts = 0;
            (self.span_before, self.since) = (0, part.piece.start);
        }
        self.parts += 1;
        match self.pieces.last_mut() {
            Some(last) if (last.source, last.end) == (part.piece.source, part.piece.start) => {
                last.end = part.piece.end;
            }
            _ => self.pieces.push(part.piece),
        }
        // Two bytes too many tell that the record is too long, whether or not it ends in a carriage return.
        let room = record_bytes_max.saturating_add(2) - self.content.len();
        self.content
            .extend_from_slice(&part.payload[..part.payload.len().min(room)]);
    }

    /// Gives out the record and closes the chain.
    fn give(&mut self, stream: Stream, flags: Flags, out: &mut Frames) {
        let is_headless = std::mem::take(&mut self.headless);
        let flags = flags | Flags::TRUNCATED.when(is_headless);
        self.rest = None;
        if is_blank(&self.content) && !flags.contains(Flags::TRUNCATED) {
            for piece in &self.pieces {
                out.skip(piece.source, piece.start..piece.end, SkipReason::Blank);
            }
        } else {
            let start = out.side_end();
            out.side.extend_from_slice(&self.content);
            let record = out.side_record(start, flags, stream, self.time_ns);
            out.seal(record, &self.pieces);
            out.stats.joined += u64::from(self.parts > 1);
        }
        self.pieces.clear();
        self.content = emptied(std::mem::take(&mut self.content));
    }
}
