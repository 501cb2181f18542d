//! YAML to a checked [`Config`].
//!
//! Takes paths of YAML files and a way to look up environment variables; gives either a [`Config`] in
//! which every value is valid, or every [`Diagnostic`] at once, each with file, line and column. Reads
//! the files it is given and those named by `${file:...}`; never opens a log file or a socket, never
//! reads the process environment by itself, never prints.
//!
//! The way of a value: [`load()`] reads the files, `yaml` turns each into a tree that knows the position
//! of every key and value, `merge` lays the trees over one another, `reader` and `kind` read typed
//! fields (expanding `${...}` on the way), and `pipeline` and `root` check what belongs together.
//! The structs are declared with the `section!` macro: type, default, example and documentation of an
//! option stand in one place, and the reference page, the annotated example and the JSON Schema are
//! printed from there (see [`reference_page`], [`annotated_example`] and [`json_schema`]).

mod diagnostic;
mod interpolate;
mod load;
mod memory;
mod merge;
mod node;
mod origins;
mod printable;
mod redact;
mod secret;
mod source;
mod units;
mod yaml;
#[macro_use]
mod section;
mod annotated;
mod endpoint;
mod input;
mod kind;
mod multiline;
mod otel_env;
mod output;
mod pipeline;
mod reader;
mod reference;
mod root;
mod schema;
mod sql;

pub use crate::annotated::annotated_example;
pub use crate::diagnostic::Diagnostic;
pub use crate::input::{
    ContainerFormat, ContainerNames, DiskQueue, FileInput, Format, Input, KubernetesInput,
    Metadata, StartAt, StdinInput, StdinQueue, Timezone,
};
pub use crate::load::{Loaded, Places, load, load_with_files};
pub use crate::memory::{MEMORY_BASE, MEMORY_DEFAULT};
pub use crate::multiline::{Multiline, MultilineBy, MultilinePreset, StartExpression};
pub use crate::output::{
    Attributes, Compression, Fields, FileOutput, OnRefused, OtlpOutput, Output, OutputKind,
    Protocol, Retry, StdoutFormat, StdoutOutput, Tls,
};
pub use crate::pipeline::{Batch, ColumnType, DeadLetter, OnFull, Pipeline, PipelineLimits, Queue};
pub use crate::printable::{escaped, is_unsafe};
pub use crate::redact::Redactor;
pub use crate::reference::reference_page;
pub use crate::root::{Admin, Config, Limits, Shutdown};
pub use crate::schema::json_schema;
pub use crate::secret::Secret;
pub use crate::source::Position;
pub use crate::sql::Sql;
