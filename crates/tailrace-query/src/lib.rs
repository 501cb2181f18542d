//! SQL over log files: the agent's framing and scanning as a table of DataFusion.
//!
//! An [`Engine`] takes files and a query. Each file, or `logs` for all of them, is a table whose columns and types come
//! from a sample of its data (`sample`). A scan of the table reads only the columns that the query needs and
//! evaluates the query's conditions between the scanner's two phases (`scan`). Large files are read in ranges of
//! bytes, one for each processor. Nothing here prints; what could not be read as it should be is counted in [`Notes`].

mod bounds;
mod describe;
mod engine;
mod error;
mod first_rows;
mod follow;
mod input;
mod needles;
mod notes;
mod partition;
mod reader;
mod row_wise;
mod sample;
mod scan;
mod table;

pub use bounds::Bounds;
pub use describe::{Description, Key, describe};
pub use engine::{Engine, Options, Plan};
pub use error::Error;
pub use input::{Input, Lines, expand, open};
pub use notes::{Counts, Notes, Progress};
pub use tailrace_scan::Type;
