//! The native part of the Python package `tailrace`: a query over log files as an Arrow stream.
//!
//! Takes SQL and paths, and gives a `Result` that pyarrow, pandas, Polars and DuckDB read through the Arrow PyCapsule
//! interface, without a copy. A query runs on threads of its own, which never call Python. Nothing here parses a log or
//! evaluates SQL: that is `tailrace-query`.

mod arguments;
mod background;
mod errors;
mod query;
mod requested;
mod result;
mod stream;
mod views;

/// The module `tailrace._tailrace`.
#[pyo3::pymodule]
mod _tailrace {
    #[pymodule_export]
    use crate::errors::{QueryError, ReadError};
    #[pymodule_export]
    use crate::query::{query, schema};
    #[pymodule_export]
    use crate::result::QueryResult;

    #[pymodule_export]
    #[allow(non_upper_case_globals)]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
