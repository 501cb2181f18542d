//! The newline search: where the lines of a buffer end and, in the same pass, where the prefilter's texts stand.
//!
//! Yields places in a buffer, ascending. Of each text two bytes, those that promise to be the rarest, are looked for in
//! 64 places at once (W. Muła's generic SIMD substring search); where both stand, all of it is compared. It continues as
//! newlines are asked for, a few KiB at a time, so that whoever frames the lines meets them in the nearest cache. Tells
//! on the way whether all bytes are ASCII. Never knows records: a place may lie in none.

mod texts;

pub(crate) use texts::Texts;

use texts::{Pair, TEXTS_MAX};

use bytes::Bytes;

use crate::index::{Indexer, Probe, STRING_BYTES, Task};

/// How many blocks are looked at before what was seen is given out.
const BLOCKS: usize = 64;
/// The last bytes, which are not enough for a block and what stands after it, are fewer blocks than these.
const REST_BLOCKS: usize = 5;
/// Where more than one place for so many bytes has to be looked at twice, searching record by record is cheaper.
const BYTES_PER_PLACE_MIN: usize = 16;

/// What to look for, and the instructions to do it with.
#[derive(Clone, Copy, Debug)]
pub struct NewlineSearcher<'a> {
    pub(crate) indexer: Indexer,
    /// At most [`TEXTS_MAX`].
    pub(crate) texts: Option<&'a Texts>,
}

/// A search under way: an iterator of newlines.
#[derive(Debug)]
pub struct NewlineSearch<'a> {
    searcher: NewlineSearcher<'a>,
    buffer: &'a Bytes,
    /// How many bytes have been looked at.
    looked: usize,
    /// Where the last blocks begin, and their newlines that were not given out yet.
    at: usize,
    newlines: Masks,
    /// Places where a pair stands, and of those the ones where a whole text does.
    seen: usize,
    hits: Vec<u32>,
    /// 0 if no byte was passed over, and all that were looked at are ASCII.
    not_ascii: u64,
}

/// A mask for each of some blocks.
#[derive(Debug)]
struct Masks {
    /// Bit `i`: block `i` has a one.
    blocks: u64,
    of_block: [u64; BLOCKS],
}

/// What a newline search over a buffer found besides newlines.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Kept, so that no other buffer can stand in its place.
    buffer: Bytes,
    is_ascii: bool,
    hits: Option<Hits>,
}

/// Where in a buffer the texts of a prefilter stand: the place of the first byte of each one's pair, ascending.
#[derive(Clone, Debug)]
pub(crate) struct Hits {
    places: Vec<u32>,
}

impl<'a> NewlineSearcher<'a> {
    /// Searches a buffer.
    ///
    /// # Panics
    /// If it has 4 GiB or more.
    pub fn over(self, buffer: &'a Bytes) -> NewlineSearch<'a> {
        assert!(buffer.len() <= u32::MAX as usize, "a buffer is below 4 GiB");
        NewlineSearch {
            searcher: self,
            buffer,
            looked: 0,
            at: 0,
            newlines: Masks::EMPTY,
            seen: 0,
            hits: Vec::new(),
            not_ascii: 0,
        }
    }
}

impl NewlineSearch<'_> {
    /// The next newline that stands before `end`.
    #[inline]
    pub fn next_before(&mut self, end: usize) -> Option<usize> {
        while self.newlines.blocks == 0 {
            if self.looked >= end.min(self.buffer.len()) {
                return None;
            }
            self.go_on();
        }
        let place = self.at + self.newlines.first();
        (place < end).then(|| {
            self.newlines.take_first();
            place
        })
    }

    /// Passes over what stands before `place`, where no record lies.
    pub fn skip_to(&mut self, place: usize) {
        if place > self.looked {
            self.not_ascii = u64::MAX;
        }
        if place >= self.looked {
            self.newlines.blocks = 0;
            self.looked = place.min(self.buffer.len());
        }
        while self.newlines.blocks != 0 && self.at + self.newlines.first() < place {
            self.newlines.take_first();
        }
    }

    /// Searches to the buffer's end if texts are looked for; gives where they stand, unless that is everywhere.
    pub fn finish(mut self) -> Searched {
        while self.searcher.texts.is_some() && self.looked < self.buffer.len() {
            self.go_on();
        }
        // Not before: they may have been given up just now.
        let hits = self.searcher.texts.map(|_| Hits { places: self.hits });
        Searched {
            buffer: self.buffer.clone(),
            is_ascii: self.not_ascii == 0 && self.looked == self.buffer.len(),
            hits,
        }
    }

    /// Looks at more bytes; there are some.
    #[inline(never)]
    fn go_on(&mut self) {
        self.at = self.looked;
        let bytes = &self.buffer[self.at..];
        let mut hits = Masks::EMPTY;
        let looking = Looking {
            bytes,
            texts: self.searcher.texts,
            newlines: &mut self.newlines,
            hits: &mut hits,
            not_ascii: &mut self.not_ascii,
        };
        self.looked += match self.searcher.indexer.run(looking) {
            0 => {
                self.newlines.look_at_rest(bytes, |&byte| byte == b'\n');
                hits.look_at_rest(bytes, |_| true);
                self.not_ascii |= u64::from(!bytes.is_ascii());
                bytes.len()
            }
            blocks => blocks * STRING_BYTES,
        };
        let Some(texts) = self.searcher.texts else {
            return;
        };
        while hits.blocks != 0 {
            let place = self.at + hits.first();
            if texts.stand_at(self.buffer, place) {
                self.hits.push(place as u32);
            }
            self.seen += 1;
            hits.take_first();
        }
        if self.seen > self.buffer.len() / BYTES_PER_PLACE_MIN + STRING_BYTES * REST_BLOCKS {
            (self.searcher.texts, self.hits) = (None, Vec::new());
        }
    }
}

impl Masks {
    const EMPTY: Masks = Masks {
        blocks: 0,
        of_block: [0; BLOCKS],
    };

    /// The place of the first one; there is one.
    #[inline(always)]
    fn first(&self) -> usize {
        let block = self.blocks.trailing_zeros() as usize % BLOCKS;
        block * STRING_BYTES + self.of_block[block].trailing_zeros() as usize
    }

    /// Takes the first one away. Without a branch: whether it is a block's last one is not to be foreseen.
    #[inline(always)]
    fn take_first(&mut self) {
        let block = self.blocks.trailing_zeros() as usize % BLOCKS;
        let mask = &mut self.of_block[block];
        *mask &= mask.wrapping_sub(1);
        self.blocks &= !(u64::from(*mask == 0) << block);
    }

    #[inline(always)]
    fn set(&mut self, block: usize, mask: u64) {
        self.of_block[block] = mask;
        self.blocks |= u64::from(mask != 0) << block;
    }

    /// The last bytes of a buffer, which are not enough for a block and what stands after it.
    fn look_at_rest(&mut self, bytes: &[u8], is_one: impl Fn(&u8) -> bool) {
        for (number, block) in bytes.chunks(STRING_BYTES).enumerate() {
            let bits = block.iter().zip(0..);
            self.set(
                number,
                bits.map(|(byte, place)| u64::from(is_one(byte)) << place)
                    .sum(),
            );
        }
    }
}

impl Searched {
    /// Whether all bytes of this buffer were looked at, and are ASCII.
    pub(crate) fn is_ascii(&self, buffer: &Bytes) -> bool {
        self.is_ascii && self.is_of(buffer)
    }

    /// Where the texts of a prefilter stand in this buffer.
    pub(crate) fn hits(&self, buffer: &Bytes) -> Option<&Hits> {
        self.hits.as_ref().filter(|_| self.is_of(buffer))
    }

    /// Whether the buffer is the one that was searched: the same memory, which nobody can have changed.
    fn is_of(&self, buffer: &Bytes) -> bool {
        std::ptr::eq::<[u8]>(&*self.buffer, &**buffer)
    }
}

impl Hits {
    /// The places from `start` on.
    pub(crate) fn from(&self, start: usize) -> &[u32] {
        let before = self.places.partition_point(|&hit| (hit as usize) < start);
        &self.places[before..]
    }
}

/// A look at as many blocks as there is room for; gives how many those were.
struct Looking<'a> {
    bytes: &'a [u8],
    texts: Option<&'a Texts>,
    newlines: &'a mut Masks,
    hits: &'a mut Masks,
    not_ascii: &'a mut u64,
}

impl Task for Looking<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) -> usize {
        match self.texts.map(Texts::pairs) {
            None => self.look(probe, []),
            // The last one is that of escapes.
            Some([a, b]) => self.look(probe, [*a, *b]),
            Some([a, b, c]) => self.look(probe, [*a, *b, *c]),
            Some([a, b, c, d]) => self.look(probe, [*a, *b, *c, *d]),
            Some(pairs) => unreachable!("{} pairs, not 2 to {TEXTS_MAX} + 1", pairs.len()),
        }
    }
}

impl Looking<'_> {
    #[inline(always)]
    fn look<P: Probe, const N: usize>(self, probe: P, pairs: [Pair; N]) -> usize {
        let blocks = |at: usize| -> &[[u8; STRING_BYTES]] {
            self.bytes.get(at..).unwrap_or_default().as_chunks().0
        };
        let reach = pairs.iter().map(|pair| pair.behind).max();
        let count = blocks(reach.unwrap_or(0)).len().min(BLOCKS);
        let firsts = &blocks(0)[..count];
        let seconds = pairs.map(|pair| &blocks(pair.behind)[..count]);
        let ahead = blocks(BLOCKS * STRING_BYTES);
        let mut not_ascii = 0;
        for (block, first) in firsts.iter().enumerate() {
            if let Some(next) = ahead.get(block) {
                probe.prefetch(next);
            }
            self.newlines.set(block, probe.equal(first, b'\n'));
            not_ascii |= probe.not_ascii(first);
            let mut hits = 0;
            for (pair, second) in pairs.iter().zip(seconds) {
                hits |= probe.equal_both(first, pair.first, &second[block], pair.second);
            }
            self.hits.set(block, hits);
        }
        *self.not_ascii |= not_ascii;
        count
    }
}

#[cfg(test)]
mod tests;
