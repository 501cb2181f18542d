//! Chains of partial lines: parts of one record, joined per stream.
//!
//! Takes parts in the order of the source, gives the joined record when its full (last) part comes. What a chain holds
//! is bounded: past the record limit it is given out truncated and the remaining parts are skipped; past the span
//! limit it is given out truncated too, and the next part starts anew. Never mixes streams, never reorders parts.

use crate::text::{cut_length, emptied, is_blank, without_return};
use crate::{Flags, Frames, Piece, SkipReason, Stream};

/// One line's share of a record.
pub(crate) struct Part<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) piece: Piece,
    /// No part follows.
    pub(crate) full: bool,
    /// The line was cut: what is behind `payload` is lost.
    pub(crate) cut: bool,
    pub(crate) stream: Stream,
    pub(crate) time_ns: i64,
}

/// The chains of one source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chains {
    /// Indexed by [`Stream`].
    by_stream: [Chain; 3],
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
}

impl Chains {
    /// Whether no part of this stream is held or to be discarded.
    pub(crate) fn is_closed(&self, stream: Stream) -> bool {
        let chain = &self.by_stream[stream as usize];
        chain.pieces.is_empty() && !chain.discarding
    }

    /// The lowest offset that is held.
    pub(crate) fn first_start(&self) -> Option<u64> {
        self.by_stream.iter().filter_map(Chain::start).min()
    }

    /// Adds a part to its stream's chain.
    pub(crate) fn add(
        &mut self,
        part: &Part<'_>,
        record_bytes_max: usize,
        flags: Flags,
        out: &mut Frames,
    ) {
        let chain = &mut self.by_stream[part.stream as usize];
        if chain.discarding {
            chain.discarding = !part.full;
            return out.skip(part.piece.start..part.piece.end, SkipReason::Oversize);
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
        while let Some(start) = self.first_start()
            && offset - start > span_max
        {
            self.give_first(flags | Flags::TRUNCATED, out);
        }
    }

    /// Gives out what is held, in the order of the source, and starts anew.
    pub(crate) fn finish(&mut self, flags: Flags, out: &mut Frames) {
        while self.first_start().is_some() {
            self.give_first(flags, out);
        }
        self.by_stream
            .iter_mut()
            .for_each(|chain| chain.discarding = false);
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
        let chains = self
            .by_stream
            .iter()
            .flat_map(|chain| [chain.pieces.capacity(), chain.content.capacity()]);
        chains.chain([self.scratch.capacity()]).collect()
    }

    fn give_first(&mut self, flags: Flags, out: &mut Frames) {
        let first = self.first_start();
        for stream in [Stream::None, Stream::Stdout, Stream::Stderr] {
            let chain = &mut self.by_stream[stream as usize];
            if chain.start() == first {
                return chain.give(stream, flags, out);
            }
        }
    }
}

impl Chain {
    fn start(&self) -> Option<u64> {
        self.pieces.first().map(|piece| piece.start)
    }

    fn append(&mut self, part: &Part<'_>, record_bytes_max: usize) {
        if self.pieces.is_empty() {
            self.time_ns = part.time_ns;
            self.parts = 0;
        }
        self.parts += 1;
        match self.pieces.last_mut() {
            Some(last) if last.end == part.piece.start => last.end = part.piece.end,
            _ => self.pieces.push(part.piece),
        }
        // Two bytes too many tell that the record is too long, whether or not it ends in a carriage return.
        let room = record_bytes_max.saturating_add(2) - self.content.len();
        self.content
            .extend_from_slice(&part.payload[..part.payload.len().min(room)]);
    }

    /// Gives out the record and closes the chain.
    fn give(&mut self, stream: Stream, flags: Flags, out: &mut Frames) {
        if is_blank(&self.content) && !flags.contains(Flags::TRUNCATED) {
            for piece in &self.pieces {
                out.skip(piece.start..piece.end, SkipReason::Blank);
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
