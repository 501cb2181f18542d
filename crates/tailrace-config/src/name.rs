//! Names of pipelines and outputs.

use tailrace_schema::kind::{Key, Kind};
use tailrace_schema::node::Node;
use tailrace_schema::reader::Reader;
use tailrace_schema::section::Shape;

/// Names of pipelines and outputs: they become metric labels and parts of keys.
pub(crate) struct Name;

impl Key for Name {
    const WHAT: &'static str = "name";

    fn check(key: &str) -> Result<String, (String, Option<String>)> {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        if (1..=NAME_CHARS_MAX).contains(&key.len()) && key.chars().all(fits) {
            return Ok(key.to_owned());
        }
        let hint = format!("1 to {NAME_CHARS_MAX} of a-z, 0-9, `_` and `-`");
        Err((format!("`{key}` cannot be a name"), Some(hint)))
    }
}

const NAME_CHARS_MAX: usize = 64;

impl Kind for Name {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text("name")
    }

    fn read(node: &Node, reader: &mut Reader<'_>) -> Option<String> {
        let resolved = reader.scalar(node, "a name")?;
        if resolved.is_hidden {
            // It is a label of metrics and the key of progress: shown, and the same on every machine.
            let message = format!(
                "{}: a name cannot come from `{}`",
                reader.path(),
                resolved.shown
            );
            let hint = "write the name itself: metrics and progress are kept under it".to_owned();
            reader.report(node.diagnostic(message).with_hint(hint));
            return None;
        }
        match Name::check(&resolved.text) {
            Ok(name) => Some(name),
            Err((what, hint)) => {
                reader.refuse(node, Some(&resolved), what, hint);
                None
            }
        }
    }
}
