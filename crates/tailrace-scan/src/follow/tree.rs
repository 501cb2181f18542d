//! Following one record through the tree of all templates.
//!
//! Finds the template that a record has, and the spans of its values. At each place the literal that stands there
//! decides which way to go; it is never gone back. Never follows two records: that is done along one template.

use super::step::{ends_at, near, put_objects, window};
use super::value::{self, VALUE_BYTES};
use super::value_span::ValueSpan;
use crate::index::{Probe, Task};
use crate::template::{Crowd, NONE, Node, Templates, WINDOW_BYTES};
use crate::text::Span;
use crate::token::is_whitespace;

/// Follows the record in this span through the tree of all templates; gives the one it has.
#[inline(always)]
pub(super) fn through<P: Probe>(
    probe: P,
    bytes: &[u8],
    span: &Span,
    templates: &Templates,
    objects: Objects,
    value_spans: &mut [ValueSpan],
) -> Option<u32> {
    let bytes = near(bytes, span);
    let mut at = span.start() as u32;
    let nodes = templates.nodes();
    let mut node = nodes.first()?;
    let mut slots = value_spans.iter_mut();
    loop {
        let window = window(bytes, at)?;
        let mut found = next(probe, nodes, node.child, bytes, window, at, objects);
        if found.is_none()
            && let Some(crowd) = templates.crowds().get(node.crowd as usize)
        {
            found = probe.apart(Among {
                nodes,
                crowd,
                bytes,
                window,
                at,
                objects,
            });
        }
        if let Some(next) = found {
            node = next;
            at += node.literal.len;
            if !node.is_tail {
                let block = bytes.get(at as usize..at as usize + VALUE_BYTES)?;
                let block = block.first_chunk()?;
                let (value_span, behind) =
                    value::read(probe, bytes, block, at, node.literal.is_before_long)?;
                *slots.next()? = value_span;
                at = behind;
                continue;
            }
            at -= 1;
        }
        let is_end = node.template != NONE && ends_at(bytes, at as usize, span.end());
        if is_end {
            put_objects(templates.get(node.template as usize), value_spans);
        }
        return is_end.then_some(node.template);
    }
}

/// How an object inside a record is followed where both ways are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Objects {
    /// Member by member.
    Split,
    /// As one value: its members may be other ones each time.
    Whole,
}

/// The node of a crowd whose text stands at `at`.
struct Among<'n, 'r> {
    nodes: &'n [Node],
    crowd: &'n Crowd,
    bytes: &'r [u8],
    window: &'r [u8; WINDOW_BYTES],
    at: u32,
    objects: Objects,
}

impl<'n> Task for Among<'n, '_> {
    type Output = Option<&'n Node>;

    #[inline(always)]
    fn run<P: Probe>(self, probe: P) -> Option<&'n Node> {
        let Among {
            nodes,
            crowd,
            bytes,
            window,
            at,
            objects,
        } = self;
        let quotes = probe.equal(window, b'"') as u32;
        let list = crowd.list(window.first_chunk()?, quotes);
        let found = next(probe, nodes, list, bytes, window, at, objects);
        found.or_else(|| next(probe, nodes, crowd.tails(), bytes, window, at, objects))
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
    objects: Objects,
) -> Option<&'n Node> {
    let mut number = number;
    let (mut whole, mut split) = (None, None);
    while let Some(node) = nodes.get(number as usize) {
        if node.literal.starts(probe, window) && node.literal.goes_on(bytes, at) {
            // Of two literals, one of which continues whitespace, or into an object, that one is right where such stands.
            match bytes.get((at + node.literal.len) as usize) {
                _ if node.is_tail => return Some(node),
                Some(b'{') => whole = Some(node),
                Some(byte) if !is_whitespace(*byte) => match objects {
                    Objects::Split => return Some(node),
                    Objects::Whole => split = Some(node),
                },
                _ => {}
            }
        }
        number = node.sibling;
    }
    whole.or(split)
}
