//! Parses the text of one file into a [`Node`] tree, and reports everything that is wrong with it as YAML: syntax, duplicate
//! keys, tags, anchors out of bounds. Aliases are copied in place and merge keys (`<<`) are applied here. This module gives
//! values no type and does not expand `${...}`.
//!
//! Aliases can make a small file huge (the "billion laughs"): what they copy is counted, and beyond
//! `COPIED_NODES_MAX` nodes or `COPIED_BYTES_MAX` bytes the file is refused.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};
use crate::node::{Entry, Node, Scalar, Value};
use crate::origins::{Origins, trace};
use crate::source::{Position, Source};

/// Nesting beyond this is refused.
const DEPTH_MAX: usize = 48;
const COPIED_NODES_MAX: usize = 20_000;
const COPIED_BYTES_MAX: usize = 1 << 20;
/// Keys and values in one file beyond this are refused: each takes some hundred bytes.
const NODES_MAX: usize = 100_000;

/// Parses one file. The tree is `None` where nothing could be made of the text; an empty file is an
/// empty mapping.
pub fn parse(source: &Arc<Source>, diagnostics: &mut Vec<Diagnostic>) -> Option<Node> {
    if let Some(diagnostic) = forbidden_character(source) {
        diagnostics.push(diagnostic);
        return None;
    }
    let text = source.text();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut builder = Builder {
        source,
        chars: text.chars().collect(),
        diagnostics,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
        documents: 0,
        nodes: 0,
        copied_nodes: 0,
        copied_bytes: 0,
    };
    let mut parser = Parser::new_from_str(text);
    let complete = builder.take_events(&mut parser);
    let root = builder.root.take();
    complete.then(|| root.unwrap_or_else(|| Node::empty(&Position::new(source, 1, 1))))
}

/// YAML knows no control characters but tab and line ends. The parser would take NUL for the end.
fn forbidden_character(source: &Arc<Source>) -> Option<Diagnostic> {
    let (offset, c) = source
        .text()
        .char_indices()
        .find(|(_, c)| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}'))?;
    let (line, column) = source.line_column(offset);
    let message = format!("control character U+{:04X} in a YAML file", c as u32);
    Some(
        Diagnostic::new(&Position::new(source, line, column), 1, message)
            .with_hint("write it as an escape in double quotes, such as \"\\x1b\"".to_owned()),
    )
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    chars: Vec<char>,
    diagnostics: &'a mut Vec<Diagnostic>,
    open: Vec<Open>,
    /// Complete nodes by anchor.
    anchors: HashMap<usize, Node>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    copied_nodes: usize,
    copied_bytes: usize,
}

/// A sequence or mapping whose end has not come.
struct Open {
    position: Position,
    anchor: usize,
    kind: OpenKind,
}

enum OpenKind {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<Entry>,
        /// Their keys.
        keys: HashSet<String>,
        merges: Vec<Node>,
        key: Key,
    },
}

/// What a mapping waits for.
enum Key {
    /// A key.
    Missing,
    /// The value of this key.
    Plain { text: String, position: Position },
    /// The value of `<<`.
    Merge,
    /// A value that is dropped: its key was refused.
    Refused,
}

impl Builder<'_> {
    /// False where the text is not YAML.
    fn take_events(&mut self, parser: &mut Parser<'_, StrInput<'_>>) -> bool {
        loop {
            let (event, span) = match parser.next_event() {
                None => return true,
                Some(Ok(pair)) => pair,
                Some(Err(error)) => {
                    let position = self.position(*error.marker());
                    self.report(
                        &position,
                        1,
                        format!("not valid YAML: {}", error.info()),
                        syntax_hint(&position, error.info()),
                    );
                    return false;
                }
            };
            if !self.take_event(event, span) {
                return false;
            }
        }
    }

    fn take_event(&mut self, event: Event<'_>, span: Span) -> bool {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let position = self.position(span.start);
            let message =
                format!("more than {NODES_MAX} keys and values: this is not a configuration file");
            self.report(&position, 1, message, None);
            return false;
        }
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let position = self.position(span.start);
                    let hint = "put it into a file of its own and give both with -c".to_owned();
                    self.report(
                        &position,
                        3,
                        "a second YAML document in one file",
                        Some(hint),
                    );
                    return false;
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = self.scalar(&text, style, anchor, tag.as_deref(), span);
                return self.complete(scalar, anchor);
            }
            Event::SequenceStart(anchor, tag) => {
                return self.start(OpenKind::Sequence(Vec::new()), anchor, tag.as_deref(), span);
            }
            Event::MappingStart(anchor, tag) => {
                let kind = OpenKind::Mapping {
                    entries: Vec::new(),
                    keys: HashSet::new(),
                    merges: Vec::new(),
                    key: Key::Missing,
                };
                return self.start(kind, anchor, tag.as_deref(), span);
            }
            Event::SequenceEnd | Event::MappingEnd => return self.end(),
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
        true
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: Span,
    ) -> Node {
        let decorated = anchor > 0 || tag.is_some();
        let position = self.position(span.start);
        let mut plain = style == ScalarStyle::Plain;
        if let Some(tag) = tag {
            if tag.is_yaml_core_schema() && tag.suffix == "str" {
                plain = false;
            } else {
                self.refuse_tag(tag, &position);
            }
        }
        let one_line = span.start.line() == span.end.line();
        let origins = if style == ScalarStyle::Plain && one_line && !decorated {
            Origins::verbatim(position.line(), position.column())
        } else {
            trace(
                text,
                style,
                &self.chars,
                span.start.index(),
                position.line(),
                position.column(),
                decorated,
            )
        };
        let length = if one_line {
            span.end.index() - span.start.index()
        } else {
            1
        };
        let scalar = Scalar {
            text: text.to_owned(),
            plain,
            origins,
        };
        Node {
            position,
            length: length.max(1),
            value: Value::Scalar(scalar),
        }
    }

    fn start(&mut self, kind: OpenKind, anchor: usize, tag: Option<&Tag>, span: Span) -> bool {
        let position = self.position(span.start);
        if let Some(tag) = tag {
            self.refuse_tag(tag, &position);
        }
        if self.open.len() >= DEPTH_MAX {
            self.report(
                &position,
                1,
                format!("nested deeper than {DEPTH_MAX} levels"),
                None,
            );
            return false;
        }
        self.open.push(Open {
            position,
            anchor,
            kind,
        });
        true
    }

    fn end(&mut self) -> bool {
        let Some(open) = self.open.pop() else {
            return true;
        };
        let value = match open.kind {
            OpenKind::Sequence(items) => Value::Sequence(items),
            OpenKind::Mapping {
                entries,
                keys,
                merges,
                ..
            } => {
                let (mut entries, mut keys) = (entries, keys);
                for merged in merges {
                    self.merge_key((&mut entries, &mut keys), merged);
                }
                Value::Mapping(entries)
            }
        };
        self.complete(
            Node {
                position: open.position,
                length: 1,
                value,
            },
            open.anchor,
        )
    }

    /// Puts a finished node where it belongs: a list, a key, a value, or the root.
    fn complete(&mut self, node: Node, anchor: usize) -> bool {
        if anchor > 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return true;
        };
        match &mut open.kind {
            OpenKind::Sequence(items) => items.push(node),
            OpenKind::Mapping {
                entries,
                keys,
                merges,
                key,
            } => match std::mem::replace(key, Key::Missing) {
                Key::Missing => {
                    let (next, complaint) = key_of(node, entries, keys);
                    *key = next;
                    self.diagnostics.extend(complaint);
                    return self.diagnostics.len() <= DIAGNOSTICS_MAX;
                }
                Key::Plain { text, position } => {
                    let mut node = node;
                    lift_to_key(&mut node, &text, &position);
                    entries.push(Entry {
                        key: text,
                        key_position: position,
                        value: node,
                    });
                }
                Key::Merge => merges.push(node),
                Key::Refused => {}
            },
        }
        true
    }

    fn alias(&mut self, anchor: usize, span: Span) -> bool {
        let position = self.position(span.start);
        let Some(node) = self.anchors.get(&anchor).cloned() else {
            self.report(
                &position,
                1,
                "an alias inside the value that it stands for",
                Some("write the value out, or name another anchor".to_owned()),
            );
            return false;
        };
        let (nodes, bytes, depth) = measure(&node);
        self.copied_nodes += nodes;
        self.copied_bytes += bytes;
        if self.copied_nodes > COPIED_NODES_MAX || self.copied_bytes > COPIED_BYTES_MAX {
            self.report(&position, 1, "aliases copy too much", None);
            return false;
        }
        if self.open.len() + depth > DEPTH_MAX {
            self.report(
                &position,
                1,
                format!("nested deeper than {DEPTH_MAX} levels"),
                None,
            );
            return false;
        }
        self.complete(node, 0)
    }

    /// `<<: *a` or `<<: [*a, *b]`: adds the entries that are not there yet.
    fn merge_key(
        &mut self,
        (entries, keys): (&mut Vec<Entry>, &mut HashSet<String>),
        merged: Node,
    ) {
        match merged.value {
            Value::Mapping(more) => {
                for entry in more {
                    if keys.insert(entry.key.clone()) {
                        entries.push(entry);
                    }
                }
            }
            Value::Sequence(items)
                if items
                    .iter()
                    .all(|item| matches!(item.value, Value::Mapping(_))) =>
            {
                for item in items {
                    self.merge_key((entries, keys), item);
                }
            }
            _ => {
                let hint = "write `<<: *anchor`".to_owned();
                let complaint = merged
                    .diagnostic("the merge key `<<` takes a mapping")
                    .with_hint(hint);
                self.diagnostics.push(complaint);
            }
        }
    }

    fn refuse_tag(&mut self, tag: &Tag, position: &Position) {
        let known = tag.is_yaml_core_schema()
            && matches!(
                tag.suffix.as_str(),
                "str" | "int" | "float" | "bool" | "null" | "seq" | "map"
            );
        if !known {
            self.report(
                position,
                1,
                format!("the tag `{tag}` has no meaning here"),
                Some(
                    "write the value alone; `${NAME}` and `${file:/path}` take it from elsewhere"
                        .to_owned(),
                ),
            );
        }
    }

    fn report(
        &mut self,
        position: &Position,
        length: usize,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        self.diagnostics
            .push(Diagnostic::new(position, length, message).with_hint(hint));
    }

    fn position(&self, marker: Marker) -> Position {
        Position::new(self.source, marker.line().max(1), marker.col() + 1)
    }
}

/// Nothing at all, and a block that begins below its key, are best shown at the key.
fn lift_to_key(node: &mut Node, key: &str, key_position: &Position) {
    let nothing =
        matches!(&node.value, Value::Scalar(scalar) if scalar.plain && scalar.text.is_empty());
    let block =
        !matches!(node.value, Value::Scalar(_)) && node.position.line() > key_position.line();
    let here = std::ptr::eq(node.position.source().text(), key_position.source().text());
    if here && (nothing || block) {
        node.position = key_position.clone();
        node.length = key.chars().count().max(1);
    }
}

/// A node in the place of a key: what the mapping waits for next, and what is wrong with the key.
fn key_of(node: Node, entries: &[Entry], keys: &mut HashSet<String>) -> (Key, Option<Diagnostic>) {
    let Value::Scalar(scalar) = &node.value else {
        let wrong = node.diagnostic("a key must be a text");
        let hint = "put it in quotes, if it is one".to_owned();
        return (Key::Refused, Some(wrong.with_hint(hint)));
    };
    if scalar.plain && scalar.text == "<<" {
        return (Key::Merge, None);
    }
    if !keys.insert(scalar.text.clone()) {
        let message = format!("key `{}` is here a second time", scalar.text);
        let first = entries.iter().find(|entry| entry.key == scalar.text);
        let hint = first.map(|first| format!("the first one is at {}", first.key_position));
        return (Key::Refused, Some(node.diagnostic(message).with_hint(hint)));
    }
    (
        Key::Plain {
            text: scalar.text.clone(),
            position: node.position,
        },
        None,
    )
}

/// Nodes, bytes of text and depth of a tree.
fn measure(node: &Node) -> (usize, usize, usize) {
    let mut total = (1, 0, 0);
    let mut add = |node: &Node, key_bytes: usize| {
        let (nodes, bytes, depth) = measure(node);
        total = (
            total.0 + nodes,
            total.1 + bytes + key_bytes,
            total.2.max(depth),
        );
    };
    match &node.value {
        Value::Scalar(scalar) => return (1, scalar.text.len(), 0),
        Value::Sequence(items) => items.iter().for_each(|item| add(item, 0)),
        Value::Mapping(entries) => entries
            .iter()
            .for_each(|entry| add(&entry.value, entry.key.len())),
    }
    (total.0, total.1, total.2 + 1)
}

/// The usual slips, by what the parser says and what stands there.
fn syntax_hint(position: &Position, info: &str) -> Option<String> {
    let line = position.line_text();
    let indent = &line[..line.len() - line.trim_start().len()];
    let value = line
        .split_once(": ")
        .map_or("", |(_, value)| value.trim_start());
    let hint = if indent.contains('\t') {
        "YAML is indented with spaces, not with tabs"
    } else if info.contains("unexpected character")
        || (info.contains("mapping values") && value.contains(": "))
    {
        "a text with such characters needs quotes"
    } else if info.contains("expected key") || info.contains("mapping values") {
        "look at the indentation of this line and the one above"
    } else if info.contains("',' or") || info.contains("flow construct") {
        "a bracket before this place is not closed"
    } else if info.contains("unknown anchor") {
        "give a value this name before it is used, such as `x-common: &common {...}`"
    } else if info.contains("byte order mark") {
        "delete the invisible character here, and save the file as UTF-8 without a mark"
    } else if info.contains("found a tab") {
        "write a space in place of the tab"
    } else if info.contains("quoted scalar") {
        "a quote before this place is not closed, or stands for itself: write it twice"
    } else if info.contains("simple key") {
        "a key ends with `:`"
    } else if info.contains("indicator") || info.contains("node content") {
        "look at the indentation, the brackets and the quotes of this line and the one above"
    } else {
        "look at the indentation of this line and the one above"
    };
    Some(hint.to_owned())
}
