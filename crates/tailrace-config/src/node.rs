//! The tree a YAML file becomes. Every node and every key knows its position; nothing is typed yet and
//! nothing is expanded. Pure data.

use crate::diagnostic::Diagnostic;
use crate::origins::Origins;
use crate::source::Position;

/// A YAML value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) position: Position,
    /// Characters on the first line, for carets.
    pub(crate) length: usize,
    pub(crate) value: Value,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A scalar as written, with quotes, escapes and folding undone.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Written without quotes and not as a block, so that `true`, `1` and nothing at all have a type.
    pub(crate) plain: bool,
    /// Where each character of `text` stands in the file.
    pub(crate) origins: Origins,
}

/// One `key: value`. Keys of a mapping are unique, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_position: Position,
    pub(crate) value: Node,
}

impl Node {
    /// A mapping without entries.
    pub(crate) fn empty(position: &Position) -> Node {
        Node {
            position: position.clone(),
            length: 1,
            value: Value::Mapping(Vec::new()),
        }
    }

    /// Nothing at all: `key:` or `key: null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.plain && matches!(scalar.text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The value of a key, where this is a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The keys, where this is a mapping.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.value {
            Value::Mapping(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|entry| entry.key.as_str())
    }

    /// An item, where this is a list; one value alone is a list of one.
    pub(crate) fn item(&self, index: usize) -> Option<&Node> {
        match &self.value {
            Value::Sequence(items) => items.get(index),
            _ => (index == 0).then_some(self),
        }
    }

    /// The deepest node on the way along `path`: where a complaint about that option belongs, whether
    /// it is written down or a default.
    pub(crate) fn nearest(&self, path: &[&str]) -> &Node {
        match path.split_first() {
            Some((key, rest)) => self.get(key).map_or(self, |node| node.nearest(rest)),
            None => self,
        }
    }

    /// A diagnostic that marks this node.
    pub(crate) fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(&self.position, self.length, message)
    }
}

impl Entry {
    /// A diagnostic that marks the key.
    pub(crate) fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(&self.key_position, self.key.chars().count(), message)
    }
}
