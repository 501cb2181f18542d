//! Layouts: the orders of keys that lines were seen to have.
//!
//! Takes records that were walked, gives the tree that others are followed along. Programs write their keys in one
//! order, the same bytes between two values each time: `,"status":`. So a layout is a path through a tree whose nodes are
//! such pieces of text, each with a value behind it, and a record has it if each piece stands where the value before it
//! ends, and a brace behind the last value.
//!
//! Never holds a layout with a duplicate or a bad key, or with one that can have no column where all are wanted: such
//! records are walked. Never grows beyond a few megabytes, whatever the keys are.

use std::collections::HashSet;

use crate::index::{PROBE_BYTES, Probe};
use crate::shape::NESTED;
use crate::token::skip_whitespace;
use crate::walker;

/// When there are so many layouts, or so many pieces of them, all are forgotten.
const LAYOUTS_MAX: usize = 512;
const PIECES_MAX: usize = 16 * 1024;
/// The same for the bytes of all pieces.
const BYTES_MAX: usize = 1 << 20;
/// Records with longer pieces, or with more bytes of them, have none.
const PIECE_BYTES_MAX: usize = 1024;
const RECORD_BYTES_MAX: usize = BYTES_MAX / 4;
/// How much of a record is looked at in one step: a piece of text and the beginning of the value behind it.
pub(crate) const WINDOW_BYTES: usize = 2 * PROBE_BYTES;
/// How many records of one batch are looked at to learn from.
const TRIES_MAX: u32 = 256;
/// No node, no layout.
pub(crate) const NONE: u32 = u32::MAX;

/// The layouts known.
#[derive(Debug)]
pub(crate) struct Layouts {
    nodes: Vec<Node>,
    layouts: Vec<Layout>,
    /// Pieces in all layouts; there are no more nodes than that, and the root.
    pieces: usize,
    /// Their bytes.
    bytes: usize,
    /// The most members of a layout.
    members_max: usize,
    tries: u32,
}

/// One layout: what stands before the values of its members, and their keys.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) keys: Vec<Box<str>>,
}

/// A piece of text between two values.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// Its first bytes, and which of them count.
    head: [u8; PROBE_BYTES],
    used: u32,
    /// The whole piece's length.
    pub(crate) len: u32,
    text: Box<[u8]>,
}

/// A place in the tree of layouts: a piece of text, with a value behind it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) piece: Piece,
    /// What may follow it, and what may stand in its place.
    pub(crate) child: u32,
    pub(crate) sibling: u32,
    /// The layout of a record that ends behind its value.
    pub(crate) layout: u32,
}

/// What a key is to whoever learns a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Its values have a column, or are not wanted.
    Settled,
    /// They have none: a layout with it is of no use.
    Homeless,
}

impl Layouts {
    /// None.
    pub(crate) fn new() -> Layouts {
        Layouts {
            nodes: vec![Node::new(&[])],
            layouts: Vec::new(),
            pieces: 0,
            bytes: 0,
            members_max: 0,
            tries: 0,
        }
    }

    /// Starts a batch. Says whether all layouts were forgotten, and their numbers mean nothing any more.
    pub(crate) fn start_batch(&mut self) -> bool {
        let is_full = self.is_full();
        if is_full {
            *self = Layouts::new();
        }
        self.tries = 0;
        is_full
    }

    fn is_full(&self) -> bool {
        self.layouts.len() >= LAYOUTS_MAX || self.pieces >= PIECES_MAX || self.bytes >= BYTES_MAX
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.layouts.len()
    }

    pub(crate) fn get(&self, number: usize) -> &Layout {
        &self.layouts[number]
    }

    /// The tree: its root comes first, and a node names others by number.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The most members that a record of any layout has.
    pub(crate) fn members_max(&self) -> usize {
        self.members_max
    }

    /// Learns the layout of a record of the buffer `bytes`, if it can be one; its outermost braces, and the colons and
    /// commas directly inside them, are these.
    pub(crate) fn learn(&mut self, bytes: &[u8], structurals: &[u32], wish: impl Fn(&str) -> Wish) {
        // A member takes two structural characters.
        let is_long = structurals.len() / 2 > PIECES_MAX / 8;
        if self.tries >= TRIES_MAX || self.is_full() || is_long {
            return;
        }
        self.tries += 1;
        let Some((texts, layout)) = read(bytes, structurals, wish) else {
            return;
        };
        let count = texts.len();
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        if bytes > RECORD_BYTES_MAX {
            return;
        }
        let mut node = 0;
        for text in texts {
            node = self.child(node, text);
        }
        let end = &mut self.nodes[node].layout;
        // A known one is met again where it stands too near to the buffer's end to be followed.
        if *end == NONE {
            *end = self.layouts.len() as u32;
            self.members_max = self.members_max.max(count);
            self.layouts.push(layout);
            self.pieces += count;
            self.bytes += bytes;
        }
    }

    fn child(&mut self, parent: usize, text: &[u8]) -> usize {
        let mut number = self.nodes[parent].child;
        let mut last = None;
        while let Some(node) = self.nodes.get(number as usize) {
            if *node.piece.text == *text {
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

impl Node {
    fn new(text: &[u8]) -> Node {
        Node {
            piece: Piece::new(text),
            child: NONE,
            sibling: NONE,
            layout: NONE,
        }
    }
}

impl Piece {
    fn new(text: &[u8]) -> Piece {
        let len = text.len().min(PROBE_BYTES);
        let mut head = [0; PROBE_BYTES];
        head[..len].copy_from_slice(&text[..len]);
        Piece {
            head,
            used: ((1_u64 << len) - 1) as u32,
            len: text.len() as u32,
            text: text.into(),
        }
    }

    /// Whether all of it stands at `at`, where its beginning stands.
    #[inline(always)]
    pub(crate) fn goes_on(&self, bytes: &[u8], at: u32) -> bool {
        self.len as usize <= PROBE_BYTES || bytes[at as usize..].starts_with(&self.text)
    }

    /// Whether what is looked at starts with the beginning of the piece.
    #[inline(always)]
    pub(crate) fn starts<P: Probe>(&self, probe: P, window: &[u8; WINDOW_BYTES]) -> bool {
        let bytes = window[..PROBE_BYTES].first_chunk();
        bytes.is_some_and(|bytes| probe.differences(bytes, &self.head) & self.used == 0)
    }
}

/// The pieces of text before a record's values, and the layout they make.
fn read<'a>(
    bytes: &'a [u8],
    structurals: &[u32],
    wish: impl Fn(&str) -> Wish,
) -> Option<(Vec<&'a [u8]>, Layout)> {
    let (mut texts, mut layout) = (Vec::new(), Layout::default());
    let mut seen = HashSet::new();
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
        let (key, len) = key(std::str::from_utf8(&bytes[at..end]).ok()?, &mut unescaped)?;
        if len > PIECE_BYTES_MAX || wish(key) == Wish::Homeless || !seen.insert(key.to_owned()) {
            return None;
        }
        let text = &bytes[at..at + len];
        texts.push(text);
        layout.pieces.push(Piece::new(text));
        layout.keys.push(key.into());
    }
    (!texts.is_empty()).then_some((texts, layout))
}

/// The key of a member, from the comma or brace before it on; and the bytes up to its value.
fn key<'a>(member: &'a str, unescaped: &'a mut Vec<u8>) -> Option<(&'a str, usize)> {
    let (name, len) = walker::read_key(member.get(1..)?, unescaped)?;
    Some((name, skip_whitespace(member.as_bytes(), 1 + len)))
}

#[cfg(test)]
mod tests;
