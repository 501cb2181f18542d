//! What several stages must agree on: JSON text, times, severities, reserved names, types of columns and the texts of a
//! prefilter.
//!
//! Functions read text and return borrowed pieces of it or numbers. Everything here is a pure function: no clock, no
//! I/O, no state, no dependency on another crate of the workspace. Nothing enters this crate but the modules below.

pub mod json;
pub mod time;

pub mod severity;

pub mod reserved;

pub mod column;
pub mod needle;
