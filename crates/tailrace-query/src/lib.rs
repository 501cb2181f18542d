//! SQL over log files: the agent's framing and scanning as a table of DataFusion.
//!
//! An [`Engine`] takes files and a query. Each file, or `logs` for all of them, is a table whose columns and types come
//! from a sample of its data (`sample`). A scan of the table reads only the columns that the query needs and
//! evaluates the query's conditions between the scanner's two phases (`scan`). Large files are read in ranges of
//! bytes, one for each processor. Nothing here prints; what could not be read as it should be is counted in [`Notes`].

mod aggregate_orders;
mod aggregates;
mod archive;
mod arguments;
mod bounds;
mod casts_apart;
mod csv_head;
mod csv_quotes;
mod describe;
mod encode;
mod engine;
mod error;
mod expand;
mod first_rows;
mod follow;
mod footers;
mod frame_distances;
mod group_keys;
mod hive;
mod in_subquery;
mod input;
mod kind;
mod lateral_unnest;
mod leads;
mod like_escape;
mod like_operators;
mod mentioned;
mod merge;
mod multiset;
mod names;
mod natural;
mod needles;
mod notes;
mod one_nan;
mod order;
mod order_names;
mod parquet_table;
mod partition;
mod pruning;
mod reader;
mod recursive_clauses;
mod recursive_types;
mod repeated_names;
mod row_wise;
mod sample;
mod scan;
mod semi_joins;
mod set_comparison;
mod several_kinds;
mod star;
mod store;
mod struct_names;
mod table;
mod table_functions;
mod threads;
mod unseen_nan;
mod unsupported;
mod using;
mod values_queries;
mod wide_literals;
mod wide_star;
mod wildcard;
mod window_frames;
mod windows;

pub use archive::{Archive, Written};
pub use arguments::{severity_of, time_of, type_of};
pub use bounds::Bounds;
pub use describe::{Description, Key, describe};
pub use encode::Encoder;
pub use engine::{Engine, Options, Plan, Temporary};
pub use error::Error;
pub use expand::expand;
pub use input::{Input, Lines};
pub use notes::{Counts, LATE_KEYS_MAX, Notes, Progress};
pub use pruning::Pruning;
pub use store::object::Object;
pub use tailrace_scan::Type;
pub use threads::{STACK_BYTES, THREAD_NAME, runtime};
