//! What the agent says of a source besides its records: resource attributes from the config, and
//! `log.*` attributes from the file's path. Computed once per source, never per record.

use std::path::Path;

use tailrace_otlp::{SourceFacts, Value};

/// Which facts are attached to records.
#[derive(Debug, Clone)]
pub(crate) struct FactsConfig {
    /// Resource attributes of every record.
    pub resource: Vec<(String, Value)>,
    /// The attributes that each encoding wants.
    pub encodings: Vec<FileAttributes>,
    /// Whether the input's sources are files: if not there is no `log.file.*`.
    pub files: bool,
}

/// Which attributes of the file become attributes of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileAttributes {
    /// `log.file.name`.
    pub name: bool,
    /// `log.file.path`.
    pub path: bool,
}

/// What is known of a source and the same for all its records.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Ready to be copied into requests, one for each encoding.
    pub encoded: Vec<SourceFacts>,
    /// `log.file.name`; `None` where the source is not a file.
    pub file_name: Option<String>,
    /// `log.file.path`; `None` where the source is not a file.
    pub file_path: Option<String>,
}

impl FactsConfig {
    /// The facts of a source with this path.
    pub(crate) fn of(&self, path: &Path) -> Facts {
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let file_path = self.files.then(|| text(path.as_os_str()));
        let file_name = path.file_name().filter(|_| self.files).map(text);
        let encode = |wanted: &FileAttributes| {
            let facts = [
                ("log.file.name", wanted.name, &file_name),
                ("log.file.path", wanted.path, &file_path),
            ];
            let attributes: Vec<(String, Value)> = facts
                .into_iter()
                .filter(|(_, wanted, _)| *wanted)
                .filter_map(|(key, _, value)| Some((key.to_owned(), Value::Str(value.clone()?))))
                .collect();
            SourceFacts::new(&self.resource, &attributes)
        };
        Facts {
            encoded: self.encodings.iter().map(encode).collect(),
            file_name,
            file_path,
        }
    }
}
