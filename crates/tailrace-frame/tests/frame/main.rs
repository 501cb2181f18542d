//! Framing from outside. Start with `table.rs`: what goes in and what comes out, format by format.
#![allow(clippy::unwrap_used, missing_docs)]

mod table;

mod hostile;
mod mark;
mod multiline;
mod properties;
mod rest;
mod rotation;
mod traces;

/// Runs a framer over an input and checks what must hold for every input.
mod check;
/// Joining the records that framing gives, the slow way.
mod joined;
/// The same rules written the slow way, over the whole input at once.
mod naive;
