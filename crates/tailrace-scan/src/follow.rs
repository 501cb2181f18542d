//! Following records along the layouts that are known, without an index.
//!
//! Takes records and the tree of layouts, gives for each the layout it has and where the values of its members
//! are, or says that it has none. From the piece of text before a value follows where the value starts, from the value
//! itself where it ends, and there the next piece must stand: a string is searched for its end, of anything else every
//! byte is read. So what was followed to its last brace is a JSON object to its bottom, but for the escapes in its strings.
//! Never decides anything of a record that it cannot follow.

mod mark;
mod nested;
mod order;
mod value;

pub(crate) use mark::{Found, Mark, Marks};

use value::VALUE_BYTES;

use crate::index::{Indexer, Probe, Task};
use crate::layout::{Layout, Layouts, NONE, Node, Piece, WINDOW_BYTES};
use crate::lots::LOT_MAX;
use crate::records::{BROKEN, Record, TEXT};
use crate::text::Span;
use crate::token::is_whitespace;

/// Records that are longer are not followed: a value's length has 24 bits.
const RECORD_BYTES_MAX: usize = (1 << 24) - 1;
/// Nor are those that end where the place behind a piece of text might not be a `u32`.
const END_MAX: usize = u32::MAX as usize - 4096;

impl Marks {
    /// Follows records of the buffer `bytes`, which lie in these spans.
    pub(crate) fn follow(
        &mut self,
        indexer: Indexer,
        layouts: &Layouts,
        bytes: &[u8],
        records: &[Record],
        spans: &[Span],
    ) {
        indexer.run(Follow {
            bytes,
            records,
            spans,
            layouts,
            marks: self,
        });
    }
}

struct Follow<'f> {
    bytes: &'f [u8],
    records: &'f [Record],
    spans: &'f [Span],
    layouts: &'f Layouts,
    marks: &'f mut Marks,
}

impl Task for Follow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) {
        let Follow {
            bytes,
            records,
            spans,
            layouts,
            ..
        } = self;
        let Marks {
            marks,
            count,
            found,
        } = self.marks;
        let room = 2 * layouts.members_max();
        let is_json = |at: u8| {
            let (record, span) = (&records[at as usize], &spans[at as usize]);
            record.flags & (TEXT | BROKEN) == 0
                && span.len() <= RECORD_BYTES_MAX
                && span.end() <= END_MAX
        };
        let base = found.len();
        found.resize(base + spans.len(), Found::default());
        let found = &mut found[base..];
        let mut order = [0; LOT_MAX];
        let mut rest = order::by_beginning(bytes, spans, &mut order);
        // The layout that the last two records had: the next ones are likely to have it too.
        let (mut last, mut repeated) = (NONE, None);
        while let Some((&at, others)) = rest.split_first() {
            rest = others;
            let first = *count;
            if marks.len() < first + room {
                marks.resize((first + room).next_power_of_two(), Mark::default());
            }
            let slots = &mut marks[first..first + room];
            let span = &spans[at as usize];
            let mut layout = NONE;
            if is_json(at) {
                if let Some(repeated) = repeated
                    && let Some((&next, others)) = rest.split_first()
                    && is_json(next)
                    && let two = [span, &spans[next as usize]]
                    && along(probe, bytes, two, repeated, slots).is_some()
                {
                    let len = repeated.pieces.len();
                    let place = |first| Found {
                        layout: last,
                        first: first as u32,
                    };
                    found[at as usize] = place(first);
                    found[next as usize] = place(first + len);
                    *count += 2 * len;
                    rest = others;
                    continue;
                }
                layout = through(probe, bytes, span, layouts.nodes(), slots).unwrap_or(NONE);
            }
            found[at as usize] = Found {
                layout,
                first: first as u32,
            };
            repeated = None;
            if layout != NONE {
                let known = layouts.get(layout as usize);
                repeated = Some(known).filter(|_| layout == last);
                *count += known.pieces.len();
            }
            last = layout;
        }
    }
}

/// Follows two records along one layout, step by step together: neither waits for what the other one looks up.
#[inline(always)]
fn along<P: Probe>(
    probe: P,
    bytes: &[u8],
    spans: [&Span; 2],
    layout: &Layout,
    marks: &mut [Mark],
) -> Option<()> {
    let bytes = spans.map(|span| near(bytes, span));
    let mut at = spans.map(|span| span.start() as u32);
    let (first, second) = marks.split_at_mut(layout.pieces.len());
    for ((piece, first), second) in layout.pieces.iter().zip(first).zip(second) {
        (*first, at[0]) = step(probe, bytes[0], piece, at[0])?;
        (*second, at[1]) = step(probe, bytes[1], piece, at[1])?;
    }
    let is_end = |i: usize| ends_at(bytes[i], at[i] as usize, spans[i].end());
    (is_end(0) && is_end(1)).then_some(())
}

/// The value behind the piece of text at `at`, and the place behind it.
#[inline(always)]
fn step<P: Probe>(probe: P, bytes: &[u8], piece: &Piece, at: u32) -> Option<(Mark, u32)> {
    let window: &[u8; WINDOW_BYTES] = window(bytes, at)?;
    if !piece.starts(probe, window) {
        return None;
    }
    let start = at + piece.len;
    let block = match window.get(piece.len as usize..piece.len as usize + VALUE_BYTES) {
        Some(block) => block,
        None if piece.goes_on(bytes, at) => {
            bytes.get(start as usize..start as usize + VALUE_BYTES)?
        }
        None => return None,
    };
    value::read(probe, bytes, block.first_chunk()?, start)
}

/// Follows the record in this span through the tree of all layouts; gives the one it has.
#[inline(always)]
fn through<P: Probe>(
    probe: P,
    bytes: &[u8],
    span: &Span,
    nodes: &[Node],
    marks: &mut [Mark],
) -> Option<u32> {
    let bytes = near(bytes, span);
    let mut at = span.start() as u32;
    let mut node = nodes.first()?;
    let mut marks = marks.iter_mut();
    loop {
        let window = window(bytes, at)?;
        let Some(next) = next(probe, nodes, node.child, bytes, window, at) else {
            let is_end = node.layout != NONE && ends_at(bytes, at as usize, span.end());
            return is_end.then_some(node.layout);
        };
        node = next;
        let start = at + node.piece.len;
        let block = bytes.get(start as usize..start as usize + VALUE_BYTES)?;
        let (mark, behind) = value::read(probe, bytes, block.first_chunk()?, start)?;
        *marks.next()? = mark;
        at = behind;
    }
}

/// The node, this one or one that may stand in its place, whose text stands at `at`.
#[inline(always)]
fn next<'n, P: Probe>(
    probe: P,
    nodes: &'n [Node],
    number: u32,
    bytes: &[u8],
    window: &[u8; WINDOW_BYTES],
    at: u32,
) -> Option<&'n Node> {
    let mut node = nodes.get(number as usize)?;
    // Of two pieces, one of which goes on with whitespace, that one is right where whitespace stands.
    let is_blank = |at: u32| {
        bytes
            .get(at as usize)
            .is_none_or(|&byte| is_whitespace(byte))
    };
    while !(node.piece.starts(probe, window)
        && node.piece.goes_on(bytes, at)
        && !is_blank(at + node.piece.len))
    {
        node = nodes.get(node.sibling as usize)?;
    }
    Some(node)
}

/// The bytes up to the record's end, and what a last look at them may take: a record that does not end is not followed
/// through its neighbours.
#[inline(always)]
fn near<'a>(bytes: &'a [u8], span: &Span) -> &'a [u8] {
    &bytes[..bytes.len().min(span.end() + WINDOW_BYTES)]
}

#[inline(always)]
fn window(bytes: &[u8], at: u32) -> Option<&[u8; WINDOW_BYTES]> {
    bytes
        .get(at as usize..at as usize + WINDOW_BYTES)?
        .first_chunk()
}

/// Whether the brace that ends a record stands at `at`, with nothing but whitespace behind it.
#[inline(always)]
fn ends_at(bytes: &[u8], at: usize, end: usize) -> bool {
    at < end && bytes[at] == b'}' && (at + 1 == end || is_blank(&bytes[at + 1..end]))
}

#[cold]
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| is_whitespace(byte))
}
