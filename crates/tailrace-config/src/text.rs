//! A configuration that is in no file, such as one made for a query of the command line.

use tailrace_schema::diagnostic::Diagnostic;
use tailrace_schema::reader::Reader;
use tailrace_schema::source::Source;
use tailrace_schema::yaml;

use crate::root::{self, Config};

/// Reads a configuration from a text; `name` is what it is called in messages. `env` looks up environment variables. What
/// must hold between pipelines is not checked.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn load_text(
    name: &str,
    text: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Config, Vec<Diagnostic>> {
    let source = Source::new(name, text.to_owned());
    let mut diagnostics = Vec::new();
    let node = yaml::parse(&source, &mut diagnostics);
    let mut reader = Reader::new(env);
    let config = node.and_then(|node| root::read(&node, &mut reader));
    diagnostics.extend(reader.finish().0);
    match config {
        Some(config) if diagnostics.is_empty() => Ok(config),
        _ => Err(diagnostics),
    }
}
