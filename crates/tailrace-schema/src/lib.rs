//! How options are declared, read and documented.
//!
//! YAML texts become typed values, each with its position, or every [`Diagnostic`] is reported at once. This crate knows no
//! option of Tailrace: other crates declare theirs with [`section!`], [`choice!`] and [`tagged!`], and the reference page,
//! the annotated example and the JSON Schema are generated from the same declarations. It reads only the files that
//! `${file:...}` names, and never prints.
//!
//! In the order of processing: [`yaml`] turns a text into a tree with the position of every key and value, [`merge`]
//! combines trees, [`reader`] and [`kind`] read typed fields and expand `${...}`.

pub mod diagnostic;
pub mod edit;
pub mod effective;
pub mod glob;
pub mod interpolate;
pub mod json;
pub mod kind;
pub mod merge;
pub mod node;
pub mod origins;
pub mod printable;
pub mod reader;
pub mod redact;
pub mod secret;
#[macro_use]
pub mod section;
pub mod source;
pub mod sql;
pub mod units;
pub mod yaml;

mod annotated;
mod dyn_eq;
mod reference;
mod schema;

pub use annotated::annotated_example;
pub use diagnostic::Diagnostic;
pub use dyn_eq::DynEq;
pub use printable::{escaped, is_unsafe};
pub use redact::Redactor;
pub use reference::reference_page;
pub use schema::json_schema;
pub use secret::Secret;
pub use source::Position;
pub use sql::Sql;
