//! Layouts: the orders of keys that lines were seen to have.
//!
//! Takes records as they are met, gives the layout each has, if it is known. Programs write their keys in one order,
//! the same bytes between two values each time: `,"status":`. So a layout is a path through a tree whose nodes are such
//! pieces of text, and a record has it if each piece stands behind the value before: one compare of 16 bytes for a short
//! key. What follows from a match: the piece starts at a comma outside strings (or at the first brace), so that its
//! quotes are those of the member's key and its colon is the next structural character; and as the piece behind the
//! value starts with a comma two structural characters further on (or the record ends there), none lies in the value
//! but what is nested.
//!
//! A path ends where a record ends, or, unless all keys are wanted, where all keys wanted by name were met: what comes
//! behind cannot matter, as of duplicates the first counts. Never holds a layout with a duplicate or a bad key, or with
//! one that has no column where all are wanted: such records are walked. Never grows beyond a few megabytes, whatever the
//! keys are.

use std::ops::Range;

use crate::keys::{Keys, Star};
use crate::shape::NESTED;
use crate::token::skip_whitespace;
use crate::walker;

/// When there are so many layouts, or so many pieces of them, all are forgotten.
const LAYOUTS_MAX: usize = 512;
const PIECES_MAX: usize = 16 * 1024;
/// Records with longer pieces have none.
const PIECE_BYTES_MAX: usize = 1024;
/// How many records of one batch are looked at to learn from.
const TRIES_MAX: u32 = 256;
/// How many layouts are guessed without a walk through the tree; a power of two.
const GUESSES: usize = 64;
/// No node, no layout.
const NONE: u32 = u32::MAX;

/// The layouts known.
#[derive(Debug)]
pub(crate) struct Layouts {
    nodes: Vec<Node>,
    layouts: Vec<Layout>,
    /// Pieces in all layouts; there are no more nodes than that, and the root.
    pieces: usize,
    tries: u32,
    /// Which layout a record probably has, by its first piece and the number of its members.
    guesses: [u32; GUESSES],
    /// The layout found last, if the one before was the same: it is tried first.
    repeated: u32,
    last: u32,
}

/// One layout: where in a record the wanted values are.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) wanted: Vec<Member>,
    /// The first bytes of all pieces.
    heads: Vec<Head>,
    /// The whole of the pieces that are longer, by number.
    long: Vec<(usize, Box<[u8]>)>,
    /// It ends before the record may end.
    is_early: bool,
}

/// One wanted member of a layout.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The place of the comma or brace before it among the record's structural characters; the colon stands at the next
    /// one, what ends the value at the one behind.
    pub(crate) place: u32,
    /// Bytes from the comma or brace before it to its value.
    pub(crate) skip: u32,
    /// The targets of its value, in the plan's list.
    pub(crate) targets: Range<usize>,
    pub(crate) star: Star,
}

/// A piece of text between two values.
#[derive(Debug)]
struct Node {
    head: Head,
    text: Box<[u8]>,
    /// What may follow it, and what may stand in its place.
    child: u32,
    sibling: u32,
    /// The layout that ends here, for any record or for one that has no more members.
    early: u32,
    whole: u32,
}

impl Layouts {
    /// None.
    pub(crate) fn new() -> Layouts {
        let root = Node::new(&[]);
        Layouts {
            nodes: vec![root],
            layouts: Vec::new(),
            pieces: 0,
            tries: 0,
            guesses: [NONE; GUESSES],
            repeated: NONE,
            last: NONE,
        }
    }

    /// Starts a batch.
    pub(crate) fn start_batch(&mut self) {
        self.tries = 0;
        if self.is_full() {
            *self = Layouts::new();
        }
    }

    fn is_full(&self) -> bool {
        self.layouts.len() >= LAYOUTS_MAX || self.pieces >= PIECES_MAX
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.layouts.len()
    }

    #[inline(always)]
    pub(crate) fn get(&self, number: usize) -> &Layout {
        &self.layouts[number]
    }

    /// The number of the layout of the record in the buffer `bytes` whose outermost braces, and the colons and commas
    /// directly inside them, these are. `to_the_end` says that no layout ends early, so that the number of members tells
    /// something of it.
    #[inline(always)]
    pub(crate) fn find(
        &mut self,
        bytes: &[u8],
        structurals: &[u32],
        to_the_end: bool,
    ) -> Option<usize> {
        if let Some(layout) = self.layouts.get(self.repeated as usize)
            && layout.matches(bytes, structurals)
        {
            return Some(self.repeated as usize);
        }
        let found = self.find_another(bytes, structurals, to_the_end)?;
        self.repeated = if self.last == found { found } else { NONE };
        self.last = found;
        Some(found as usize)
    }

    fn find_another(&mut self, bytes: &[u8], structurals: &[u32], to_the_end: bool) -> Option<u32> {
        let first = *structurals.first()? as usize;
        let [low, high] = words(bytes.get(first..)?.first_chunk()?);
        let count = if to_the_end { structurals.len() } else { 0 };
        let slot = (low ^ high.rotate_left(32) ^ count as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> (u64::BITS - GUESSES.trailing_zeros());
        let guess = self.guesses[slot as usize % GUESSES];
        if let Some(layout) = self.layouts.get(guess as usize)
            && layout.matches(bytes, structurals)
        {
            return Some(guess);
        }
        let found = self.walk(bytes, structurals)? as u32;
        self.guesses[slot as usize % GUESSES] = found;
        Some(found)
    }

    fn walk(&self, bytes: &[u8], structurals: &[u32]) -> Option<usize> {
        let mut node = &self.nodes[0];
        for (i, member) in structurals.as_chunks::<2>().0.iter().enumerate() {
            let reach = bytes.get(member[0] as usize..)?;
            let head = reach.first_chunk::<16>()?;
            let mut number = node.child;
            loop {
                node = self.nodes.get(number as usize)?;
                if node.head.differs(head) == 0 && reach.starts_with(&node.text) {
                    break;
                }
                number = node.sibling;
            }
            if node.early != NONE {
                return ends_well(bytes, structurals.get(2 * i + 2).copied())
                    .then_some(node.early as usize);
            }
        }
        // One is left: the brace that ends the record.
        (node.whole != NONE && structurals.len() % 2 == 1).then_some(node.whole as usize)
    }

    /// Learns the layout of a record that was walked, if it can be one.
    pub(crate) fn learn(&mut self, bytes: &[u8], structurals: &[u32], keys: &Keys, named: usize) {
        // A member takes two structural characters.
        let is_long = structurals.len() / 2 > PIECES_MAX / 8;
        if self.tries >= TRIES_MAX || self.is_full() || is_long {
            return;
        }
        self.tries += 1;
        let Some((pieces, layout)) = read(bytes, structurals, keys, named) else {
            return;
        };
        let count = pieces.len();
        let mut node = 0;
        for piece in pieces {
            node = self.child(node, piece);
        }
        let node = &mut self.nodes[node];
        let end = if layout.is_early {
            &mut node.early
        } else {
            &mut node.whole
        };
        // A known one was walked where it stands too near to the buffer's end to be compared.
        if *end == NONE {
            *end = self.layouts.len() as u32;
            self.layouts.push(layout);
            self.pieces += count;
        }
    }

    fn child(&mut self, parent: usize, text: &[u8]) -> usize {
        let mut number = self.nodes[parent].child;
        let mut last = None;
        while let Some(node) = self.nodes.get(number as usize) {
            if *node.text == *text {
                return number as usize;
            }
            last = Some(number as usize);
            number = node.sibling;
        }
        let new = self.nodes.len();
        self.nodes.push(Node::new(text));
        match last {
            Some(last) => self.nodes[last].sibling = new as u32,
            None => self.nodes[parent].child = new as u32,
        }
        new
    }
}

/// The first 16 bytes of a text, and which of them count.
#[derive(Clone, Copy, Debug)]
struct Head {
    bytes: [u64; 2],
    mask: [u64; 2],
}

impl Head {
    fn new(text: &[u8]) -> Head {
        let mut bytes = [0; 16];
        let mut mask = [0; 16];
        for (i, &byte) in text.iter().take(16).enumerate() {
            bytes[i] = byte;
            mask[i] = 0xff;
        }
        Head {
            bytes: words(&bytes),
            mask: words(&mask),
        }
    }

    /// 0 if these bytes start with the text.
    #[inline(always)]
    fn differs(&self, bytes: &[u8; 16]) -> u64 {
        let [low, high] = words(bytes);
        (low ^ self.bytes[0]) & self.mask[0] | (high ^ self.bytes[1]) & self.mask[1]
    }
}

impl Node {
    fn new(text: &[u8]) -> Node {
        Node {
            head: Head::new(text),
            text: text.into(),
            child: NONE,
            sibling: NONE,
            early: NONE,
            whole: NONE,
        }
    }
}

impl Layout {
    /// Whether a record with these structural characters has this layout.
    #[inline(always)]
    fn matches(&self, bytes: &[u8], structurals: &[u32]) -> bool {
        let end = 2 * self.heads.len();
        if structurals.len() != end + 1
            && !(self.is_early && ends_well(bytes, structurals.get(end).copied()))
        {
            return false;
        }
        let mut differs = 0;
        for (head, member) in self.heads.iter().zip(structurals.as_chunks::<2>().0) {
            let at = member[0] as usize;
            let Some(block) = bytes.get(at..).and_then(<[u8]>::first_chunk) else {
                return false;
            };
            differs |= head.differs(block);
        }
        let starts = |(number, text): &(usize, Box<[u8]>)| {
            bytes[structurals[2 * number] as usize..].starts_with(text)
        };
        differs == 0 && self.long.iter().all(starts)
    }
}

#[inline(always)]
fn words(bytes: &[u8; 16]) -> [u64; 2] {
    let both = u128::from_le_bytes(*bytes);
    [both as u64, (both >> 64) as u64]
}

/// Whether what ends the last member of a layout that ends early is a comma or brace: another colon would be part of the
/// value.
#[inline(always)]
fn ends_well(bytes: &[u8], end: Option<u32>) -> bool {
    end.is_some_and(|end| end != NESTED && bytes[end as usize] != b':')
}

/// The pieces of text before a record's values, and what they mean.
fn read<'a>(
    bytes: &'a [u8],
    structurals: &[u32],
    keys: &Keys,
    named: usize,
) -> Option<(Vec<&'a [u8]>, Layout)> {
    let mut pieces = Vec::new();
    let mut layout = Layout {
        wanted: Vec::new(),
        heads: Vec::new(),
        long: Vec::new(),
        is_early: false,
    };
    let mut seen = Vec::new();
    let mut missing = named;
    for place in (0..structurals.len() - 1).step_by(2) {
        let [at, _, end] = *structurals.get(place..)?.first_chunk::<3>()?;
        if at == NESTED || end == NESTED {
            return None;
        }
        let (at, end) = (at as usize, end as usize);
        if !matches!(bytes[end], b',' | b'}') {
            return None;
        }
        let mut unescaped = Vec::new();
        let (name, skip) = key(std::str::from_utf8(&bytes[at..end]).ok()?, &mut unescaped)?;
        let piece = &bytes[at..at + skip];
        if skip > PIECE_BYTES_MAX {
            return None;
        }
        if skip > 16 {
            layout.long.push((pieces.len(), piece.into()));
        }
        layout.heads.push(Head::new(piece));
        pieces.push(piece);
        let Some(id) = keys.find(name) else {
            if keys.wants_all() {
                return None;
            }
            continue;
        };
        let (targets, star) = keys.wanted(id);
        if seen.contains(&id) || matches!(star, Star::Unmet | Star::Overflow) && keys.wants_all() {
            return None;
        }
        seen.push(id);
        missing -= usize::from(!targets.is_empty());
        if !targets.is_empty() || star != Star::Out {
            layout.wanted.push(Member {
                place: place as u32,
                skip: skip as u32,
                targets,
                star,
            });
        }
        if missing == 0 && !keys.wants_all() {
            layout.is_early = true;
            break;
        }
    }
    Some((pieces, layout))
}

/// The key of a member, from the comma or brace before it on; and the bytes up to its value.
fn key<'a>(member: &'a str, unescaped: &'a mut Vec<u8>) -> Option<(&'a str, usize)> {
    let (name, len) = walker::read_key(member.get(1..)?, unescaped)?;
    Some((name, skip_whitespace(member.as_bytes(), 1 + len)))
}

#[cfg(test)]
mod tests;
