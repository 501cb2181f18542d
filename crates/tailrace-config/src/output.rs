//! The `outputs` of a pipeline: a name, whether files wait for it, and the options of its type, which stand where the type
//! does.

use std::sync::Arc;

use tailrace_outputs::OUTPUTS;
use tailrace_schema::kind::{Boolean, Kind};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::{Field, Presence, Shape, Tag};
use tailrace_schema::source::Position;

use crate::name::Name;

/// One output of a pipeline.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name, unique in the pipeline: part of the key under which its progress is kept.
    pub name: String,
    /// Whether files are kept for it until it has them.
    pub required: bool,
    /// Where records go.
    pub kind: Arc<dyn tailrace_outputs::Output>,
    /// Where it is written down.
    pub position: Position,
}

/// What it means, wherever it is written down.
impl PartialEq for Output {
    fn eq(&self, other: &Output) -> bool {
        let Output {
            name,
            required,
            kind,
            position: _,
        } = self;
        *name == other.name && *required == other.required && **kind == *other.kind
    }
}

/// Keys of every output.
static COMMON: [Field; 2] = [
    Field::common::<Name>(
        "name",
        &[
            " The name of the output, unique in its pipeline: part of the key under which its progress is kept, so that it should not change.",
        ],
        Presence::Unset {
            meaning: "the type; a pipeline with several outputs must name each",
            example: "main",
        },
    ),
    Field::common::<Boolean>(
        "required",
        &[
            " Whether deleted files are kept on the disk until this output has them, within `limits.held_bytes`. What one that is not required misses is dropped for it and counted.",
        ],
        Presence::Default {
            text: "true",
            example: None,
        },
    ),
];

impl Kind for Output {
    type Value = Output;

    fn shape() -> Shape {
        Tag::shape(&COMMON, OUTPUTS)
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<Output> {
        let tag = reader.tag(node, OUTPUTS)?;
        let name = reader.optional::<Name>(node, "name");
        let required = reader.defaulted::<Boolean>(node, "required", "true");
        let kind = (tag.read)(node, reader, &["type", "name", "required"]);
        Some(Output {
            name: name?.unwrap_or_else(|| tag.name.to_owned()),
            required: required?,
            kind: kind?,
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
        for tag in OUTPUTS {
            let source = Source::new(tag.name, tag.example.to_owned());
            let mut diagnostics = Vec::new();
            let node = tailrace_schema::yaml::parse(&source, &mut diagnostics);
            let env = |_: &str| None;
            let mut reader = Reader::new(&env);
            let output = node.and_then(|node| Output::read(&node, &mut reader));
            diagnostics.extend(reader.finish().0);
            assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", tag.name);
            let output = output.unwrap();
            assert_eq!(
                (output.kind.type_name(), output.name.as_str()),
                (tag.name, tag.name)
            );
        }
    }
}
