//! The encoders against slow references: generated columns, rows and kinds, decoded by prost and
//! serde_json.
#![allow(clippy::unwrap_used)]

#[path = "encode/drafts.rs"]
mod drafts;
#[path = "encode/failed.rs"]
mod failed;
#[path = "encode/fixed.rs"]
mod fixed;
#[path = "encode/lines.rs"]
mod lines;
#[path = "encode/malformed.rs"]
mod malformed;
#[path = "encode/nested.rs"]
mod nested;
#[path = "encode/property.rs"]
mod property;
#[path = "encode/reference.rs"]
mod reference;
#[path = "encode/table.rs"]
mod table;
#[path = "encode/types.rs"]
mod types;
