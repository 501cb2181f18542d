//! What the benches share: lines cut into chunks, our stages in the worker's order, the rivals, CPU time.
//!
//! Takes generated lines (the very ones of `tailrace generate`) or a file of real ones, gives chunks of about 1 MiB with
//! their records framed and their answers known, so that whoever is timed is checked first. Nothing here ships.
#![allow(clippy::print_stderr)]

#[path = "../../crates/tailrace/src/generate"]
mod generate {
    //! The lines of `tailrace generate`, compiled from the agent's own source.
    pub(crate) mod lines;
}

pub mod corpus;
pub mod cpu;
#[cfg(feature = "stages")]
pub mod reference;
pub mod rivals;
#[cfg(feature = "stages")]
pub mod stages;

pub use generate::lines::{Generator, Shape};
