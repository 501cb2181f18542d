//! The `outputs` of a pipeline: their common options. The options of each type are declared beside its implementation.

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
    /// Its name, unique in the pipeline; its progress is stored under this name.
    pub name: String,
    /// Whether deleted files are kept until it has delivered them.
    pub required: bool,
    /// Where records go.
    pub kind: Arc<dyn tailrace_outputs::Output>,
    /// Its position in the configuration.
    pub position: Position,
}

/// Compares the meaning, not the position.
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

/// The options that every output has.
static COMMON: [Field; 2] = [
    Field::common::<Name>(
        "name",
        &[
            " The name of the output, unique in its pipeline. Its progress is stored under this name: do not change it.",
        ],
        Presence::Unset {
            meaning: "the type; a pipeline with several outputs must name each",
            example: "main",
        },
    ),
    Field::common::<Boolean>(
        "required",
        &[
            " Whether deleted files stay on the disk until this output has delivered them, within `limits.held_bytes`. If not, what this output misses is dropped for it and counted.",
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
