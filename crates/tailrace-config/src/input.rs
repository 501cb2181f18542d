//! The `inputs` of a pipeline. The options of each type are declared beside its implementation.

use std::ops::Deref;
use std::sync::Arc;

use tailrace_inputs::{INPUTS, InputOptions};
use tailrace_schema::kind::Kind;
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::{Shape, Tag};
use tailrace_schema::source::Position;

/// One input of a pipeline.
#[derive(Clone, Debug)]
pub struct Input {
    /// Where records come from.
    pub kind: Arc<dyn InputOptions>,
    /// Its position in the configuration.
    pub position: Position,
}

/// Compares the meaning, not the position.
impl PartialEq for Input {
    fn eq(&self, other: &Input) -> bool {
        *self.kind == *other.kind
    }
}

/// The options of its type.
impl Deref for Input {
    type Target = dyn InputOptions;

    fn deref(&self) -> &Self::Target {
        &*self.kind
    }
}

impl Kind for Input {
    type Value = Input;

    fn shape() -> Shape {
        Tag::shape(&[], INPUTS)
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Input> {
        let tag = reader.tag(node, INPUTS)?;
        Some(Input {
            kind: (tag.read)(node, reader, &["type"])?,
            position: node.position.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailrace_schema::source::Source;

    #[test]
    fn the_example_of_every_type_is_valid() {
        for tag in INPUTS {
            let source = Source::new(tag.name, tag.example.to_owned());
            let mut diagnostics = Vec::new();
            let node = tailrace_schema::yaml::parse(&source, &mut diagnostics);
            let env = |_: &str| None;
            let mut reader = Reader::new(&env);
            let input = node.and_then(|node| Input::read(&node, &mut reader));
            diagnostics.extend(reader.finish().0);
            assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", tag.name);
            assert_eq!(input.unwrap().type_name(), tag.name);
        }
    }
}
