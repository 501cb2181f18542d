//! The whole configuration of the agent: from YAML files to one checked [`Config`].
//!
//! [`load()`] reads YAML files, and looks up environment variables through a function. It returns a [`Config`] in which
//! every value is valid, or every [`Diagnostic`] at once, each with file, line and column. It opens only the files that it
//! is given and those named by `${file:...}`: no log file and no socket. It asks the file system where links in paths lead. It never reads the environment itself and never
//! prints.
//!
//! `tailrace-schema` declares and reads options. Each type of input or output declares its own; this crate reads them
//! through the registries, and checks what must hold between the parts. The reference page, the annotated example and the
//! JSON Schema are generated from the declarations (see [`reference_page`], [`annotated_example`] and [`json_schema`]).

#[macro_use]
extern crate tailrace_schema;

mod admin_address;
mod feedback;
mod input;
mod load;
mod memory;
mod name;
mod once;
mod output;
mod pipeline;
mod root;
mod telemetry;
mod test;
mod text;

pub use crate::admin_address::AdminAddress;
pub use crate::input::Input;
pub use crate::load::{
    Loaded, Places, load, load_effective, load_for_tests, load_once, load_with_files,
};
pub use crate::memory::{MEMORY_BASE, MEMORY_DEFAULT};
pub use crate::once::ReadOnce;
pub use crate::output::Output;
pub use crate::pipeline::{Batch, ColumnType, DeadLetter, OnFull, Pipeline, PipelineLimits, Queue};
pub use crate::root::{Admin, Config, Limits, Shutdown};
pub use crate::telemetry::{LogLevel, Telemetry};
pub use crate::test::{Expect, ExpectedRows, Test, with_rows};
pub use crate::text::load_text;
pub use tailrace_schema::effective::{Effective, Origin, Setting, Written, to_yaml};
pub use tailrace_schema::json::write_text;
pub use tailrace_schema::units::{parse_duration, parse_size};
pub use tailrace_schema::{Diagnostic, Position, Redactor, Secret, Sql, escaped, is_unsafe};

/// The text of `docs/configuration.md`.
pub fn reference_page() -> String {
    tailrace_schema::reference_page(&root::INFO)
}

/// The text of `config/tailrace.yaml`.
pub fn annotated_example() -> String {
    tailrace_schema::annotated_example(&root::INFO)
}

/// The text of `config/tailrace.schema.json`.
pub fn json_schema() -> String {
    tailrace_schema::json_schema(&root::INFO)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_default_and_example_is_valid_and_every_option_documented() {
        let faults = tailrace_schema::section::faults(&crate::root::INFO);
        assert_eq!(faults, Vec::<String>::new());
    }
}
