//! The tree a YAML file becomes. Every node and every key knows its position; nothing is typed yet and
//! nothing is expanded. Pure data.

use crate::diagnostic::Diagnostic;
use crate::origins::Origins;
use crate::source::Position;

/// A YAML value and where it stands.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where it begins.
    pub position: Position,
    /// Characters on the first line, for carets.
    pub length: usize,
    /// What it is.
    pub value: Value,
}

/// The three kinds of YAML values.
#[derive(Clone, Debug)]
pub enum Value {
    /// A text, number, boolean or nothing.
    Scalar(Scalar),
    /// A list.
    Sequence(Vec<Node>),
    /// Keys and values.
    Mapping(Vec<Entry>),
}

/// A scalar as written, with quotes, escapes and folding undone.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The text.
    pub text: String,
    /// Written without quotes and not as a block, so that `true`, `1` and nothing at all have a type.
    pub plain: bool,
    /// Where each character of `text` stands in the file.
    pub origins: Origins,
}

/// One `key: value`. Keys of a mapping are unique, in the order of the file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_position: Position,
    /// Its value.
    pub value: Node,
}

impl Node {
    /// A mapping without entries.
    pub fn empty(position: &Position) -> Node {
        Node {
            position: position.clone(),
            length: 1,
            value: Value::Mapping(Vec::new()),
        }
    }

    /// Nothing at all: `key:` or `key: null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.plain && matches!(scalar.text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The value of a key, where this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The key and its value, where this is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.value {
            Value::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The keys, where this is a mapping.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = match &self.value {
            Value::Mapping(entries) => entries.as_slice(),
            _ => &[],
        };
        entries.iter().map(|entry| entry.key.as_str())
    }

    /// An item, where this is a list; one value alone is a list of one.
    pub fn item(&self, index: usize) -> Option<&Node> {
        match &self.value {
            Value::Sequence(items) => items.get(index),
            _ => (index == 0).then_some(self),
        }
    }

    /// The deepest node on the way along `path`: where a complaint about that option belongs, whether
    /// it is written down or a default.
    pub fn nearest(&self, path: &[&str]) -> &Node {
        match path.split_first() {
            Some((key, rest)) => self.get(key).map_or(self, |node| node.nearest(rest)),
            None => self,
        }
    }

    /// A diagnostic that marks this node.
    pub fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(&self.position, self.length, message)
    }
}

impl Entry {
    /// A diagnostic that marks the key.
    pub fn diagnostic(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(&self.key_position, self.key.chars().count(), message)
    }
}
