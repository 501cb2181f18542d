//! Templates: the orders of keys that lines were seen to have.
//!
//! Walked records are learnt into a tree; others are followed along it. Programs write their keys in one order, the
//! same bytes between two values each time: `,"status":`. So a template is a path through a tree whose nodes are such
//! literals, each with a value after it, and a record has it if each literal stands where the value before it ends,
//! and a brace after the last value. The members of an object inside the record are values by themselves, and what
//! stands before them is text as well: `,"http":{"method":`. Records whose objects have other keys each time would have
//! a template each; after a few of them their objects are values as a whole, as arrays always are.
//!
//! Never holds a template with a duplicate or a bad key, or with one that can have no column where all are wanted: such
//! records are walked. Never grows beyond a few megabytes, whatever the keys are.

mod crowd;
mod learn;

use std::collections::HashMap;

use crate::index::{PROBE_BYTES, Probe};

pub(crate) use crowd::Crowd;

/// When there are so many templates, or so many literals of them, all are forgotten.
const TEMPLATES_MAX: usize = 512;
const LITERALS_MAX: usize = 16 * 1024;
/// The same for the bytes of all literals.
const BYTES_MAX: usize = 1 << 20;
/// Records with longer literals, or with more of them or of their bytes, have none.
const LITERAL_BYTES_MAX: usize = 1024;
const RECORD_LITERALS_MAX: usize = LITERALS_MAX / 8;
const RECORD_BYTES_MAX: usize = BYTES_MAX / 4;
/// How much of a record is looked at in one step: a literal and the beginning of the value after it.
pub(crate) const WINDOW_BYTES: usize = 2 * PROBE_BYTES;
/// How many templates there may be of records with the same outer members, by the members of their objects.
const VARIANTS_MAX: u32 = 8;
/// A value is long if the end of the next one may be further away than one look reaches.
const LONG_BYTES_MIN: usize = PROBE_BYTES * 5 / 8;
/// So many literals in one place are looked up rather than compared one after the other.
const CROWD_MIN: u32 = 12;
/// How many records of one batch are looked at to learn from.
const TRIES_MAX: u32 = 256;
/// No node, no template.
pub(crate) const NONE: u32 = u32::MAX;

/// The templates known.
#[derive(Debug)]
pub(crate) struct Templates {
    nodes: Vec<Node>,
    /// What may follow those nodes after which many literals may stand.
    crowds: Vec<Crowd>,
    templates: Vec<Template>,
    /// Pieces in all templates; there are no more nodes than that, and the root.
    literals: usize,
    /// Their bytes.
    bytes: usize,
    /// The most value spans of a template.
    value_spans_max: usize,
    /// By a hash of the outer members how many templates have them and objects in them.
    variants: HashMap<u64, u32>,
    /// In some of them an object is a value.
    have_whole_objects: bool,
    tries: u32,
}

/// One template: what stands before its values, and what they are.
#[derive(Debug, Default)]
pub(crate) struct Template {
    pub(crate) literals: Vec<Literal>,
    /// What stands after the last value: closing braces, the record's last one among them.
    pub(crate) tail: Box<[u8]>,
    /// The objects that are no values, but made of some.
    pub(crate) objects: Vec<Object>,
    /// The outer members: their keys, and the places of their value spans. Those of objects come after those of values.
    pub(crate) members: Vec<(Box<str>, u32)>,
}

/// An object inside a record, by the first and the last of its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Bytes of it before the first and after the last one.
    pub(crate) before: u32,
    pub(crate) behind: u32,
}

impl Template {
    /// How many value spans a record has: one for each value, and one for each object.
    #[inline]
    pub(crate) fn value_spans(&self) -> usize {
        self.literals.len() + self.objects.len()
    }
}

/// A literal between two values.
#[derive(Clone, Debug)]
pub(crate) struct Literal {
    /// Its first bytes, and which of them count.
    head: [u8; PROBE_BYTES],
    used: u32,
    /// The whole literal's length.
    pub(crate) len: u32,
    text: Box<[u8]>,
    /// The value after it was long where the literal was learnt.
    pub(crate) is_before_long: bool,
}

/// A place in the tree of templates: a literal, with a value after it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) literal: Literal,
    /// There is no value: the record ends with it.
    pub(crate) is_tail: bool,
    /// What may follow it, and what may stand in its place.
    pub(crate) child: u32,
    pub(crate) sibling: u32,
    /// Many may follow it: instead of a list the crowd with this number.
    pub(crate) crowd: u32,
    children: u32,
    /// The template of a record that ends after its value, with a brace, or with this literal.
    pub(crate) template: u32,
}

/// What a key is to whoever learns a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// Its values have a column, or are not wanted.
    Supported,
    /// They have none: a template with it is of no use.
    NoColumn,
}

impl Templates {
    /// None.
    pub(crate) fn new() -> Templates {
        Templates {
            nodes: vec![Node::new(Literal::new(&[]), false)],
            crowds: Vec::new(),
            templates: Vec::new(),
            literals: 0,
            bytes: 0,
            value_spans_max: 0,
            variants: HashMap::new(),
            have_whole_objects: false,
            tries: 0,
        }
    }

    /// Starts a batch. Says whether all templates were forgotten, and their numbers mean nothing any more.
    pub(crate) fn start_batch(&mut self) -> bool {
        let is_full = self.is_full();
        if is_full {
            *self = Templates::new();
        }
        self.tries = 0;
        is_full
    }

    fn is_full(&self) -> bool {
        self.templates.len() >= TEMPLATES_MAX
            || self.literals >= LITERALS_MAX
            || self.bytes >= BYTES_MAX
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.templates.len()
    }

    pub(crate) fn get(&self, number: usize) -> &Template {
        &self.templates[number]
    }

    /// The tree: its root comes first, and a node names others by number.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The crowds, which nodes name by number.
    pub(crate) fn crowds(&self) -> &[Crowd] {
        &self.crowds
    }

    /// The most value spans that a record of any template has.
    pub(crate) fn value_spans_max(&self) -> usize {
        self.value_spans_max
    }

    /// Whether an object that is a value in some template may be split in another one.
    #[inline]
    pub(crate) fn have_whole_objects(&self) -> bool {
        self.have_whole_objects
    }

    /// Adds a template, whose literals and tail are so many bytes.
    fn add(&mut self, template: Template, bytes: usize) {
        let mut node = 0;
        for literal in &template.literals {
            node = self.child(node, literal, false);
        }
        if template.tail.len() > 1 {
            let tail = Literal::new(&template.tail);
            node = self.child(node, &tail, true);
        }
        let end = &mut self.nodes[node].template;
        // A known one is met again where it stands too near to the buffer's end to be followed.
        if *end == NONE {
            *end = self.templates.len() as u32;
            self.value_spans_max = self.value_spans_max.max(template.value_spans());
            // A tail takes a node too.
            self.literals += template.literals.len() + 1;
            self.bytes += bytes;
            self.templates.push(template);
        }
    }

    fn child(&mut self, parent: usize, literal: &Literal, is_tail: bool) -> usize {
        let mut number = *self.list(parent, literal, is_tail);
        let mut last = None;
        while let Some(node) = self.nodes.get(number as usize) {
            if *node.literal.text == *literal.text && node.is_tail == is_tail {
                return number as usize;
            }
            last = Some(number as usize);
            number = node.sibling;
        }
        let new = self.nodes.len();
        self.nodes.push(Node::new(literal.clone(), is_tail));
        match last {
            Some(last) => self.nodes[last].sibling = new as u32,
            None => *self.list(parent, literal, is_tail) = new as u32,
        }
        self.nodes[parent].children += 1;
        if self.nodes[parent].children == CROWD_MIN {
            self.make_crowd(parent);
        }
        new
    }

    /// The list of a node's children to which this literal belongs: its first one.
    fn list(&mut self, parent: usize, literal: &Literal, is_tail: bool) -> &mut u32 {
        let node = &mut self.nodes[parent];
        match self.crowds.get_mut(node.crowd as usize) {
            Some(crowd) => crowd.list_mut(&literal.head, is_tail),
            None => &mut node.child,
        }
    }

    /// Parts the list of a node's children, in order.
    fn make_crowd(&mut self, parent: usize) {
        let mut crowd = Crowd::new();
        let mut number = self.nodes[parent].child;
        let mut last = HashMap::new();
        while let Some(node) = self.nodes.get_mut(number as usize) {
            let next = std::mem::replace(&mut node.sibling, NONE);
            let list = crowd.list_mut(&node.literal.head, node.is_tail);
            if *list == NONE {
                *list = number;
            }
            if let Some(before) = last.insert(*list, number) {
                self.nodes[before as usize].sibling = number;
            }
            number = next;
        }
        let node = &mut self.nodes[parent];
        (node.child, node.crowd) = (NONE, self.crowds.len() as u32);
        self.crowds.push(crowd);
    }
}

impl Node {
    fn new(literal: Literal, is_tail: bool) -> Node {
        Node {
            literal,
            is_tail,
            child: NONE,
            sibling: NONE,
            crowd: NONE,
            children: 0,
            template: NONE,
        }
    }
}

impl Literal {
    fn new(text: &[u8]) -> Literal {
        let len = text.len().min(PROBE_BYTES);
        let mut head = [0; PROBE_BYTES];
        head[..len].copy_from_slice(&text[..len]);
        Literal {
            head,
            used: ((1_u64 << len) - 1) as u32,
            len: text.len() as u32,
            text: text.into(),
            is_before_long: false,
        }
    }

    /// Whether all of it stands at `at`, where its beginning stands.
    #[inline(always)]
    pub(crate) fn goes_on(&self, bytes: &[u8], at: u32) -> bool {
        self.len as usize <= PROBE_BYTES || bytes[at as usize..].starts_with(&self.text)
    }

    /// Whether what is looked at starts with the beginning of the literal.
    #[inline(always)]
    pub(crate) fn starts<P: Probe>(&self, probe: P, window: &[u8; WINDOW_BYTES]) -> bool {
        let bytes = window[..PROBE_BYTES].first_chunk();
        bytes.is_some_and(|bytes| probe.differences(bytes, &self.head) & self.used == 0)
    }
}

#[cfg(test)]
mod tests;
