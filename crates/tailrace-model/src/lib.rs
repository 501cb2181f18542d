//! What several stages must agree on: JSON text, times, severities, reserved names, types of columns and the texts of a
//! prefilter, and how long to wait between attempts.
//!
//! Functions read text and return borrowed pieces of it or numbers. Everything here is without a clock and without I/O, and has no dependency on another crate of the workspace. Nothing enters this crate but the modules below.

pub mod backoff;
pub mod json;
pub mod time;

pub mod severity;

pub mod reserved;

pub mod column;
pub mod needle;
