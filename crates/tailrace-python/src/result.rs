//! `tailrace.Result`: what a query gives, through the Arrow PyCapsule interface.

use std::sync::Arc;

use arrow::ffi::FFI_ArrowSchema;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use tailrace_query::Counts;

use crate::query::Query;
use crate::requested;
use crate::stream::Batches;

/// The result of a query, which is an Arrow stream.
///
/// Pass it to what reads Arrow streams: `pyarrow.table(result)`, `polars.DataFrame(result)`, `duckdb.sql("FROM result")`. Each
/// of them runs the query, and each time anew, over the same files, as long as they were when `tailrace.query` was called.
/// Only standard input and pipes can be read once.
#[pyclass(name = "Result", module = "tailrace", frozen)]
pub(crate) struct QueryResult {
    query: Arc<Query>,
}

impl QueryResult {
    pub(crate) fn new(query: Arc<Query>) -> QueryResult {
        QueryResult { query }
    }
}

#[pymethods]
impl QueryResult {
    /// The stream of batches, for consumers of the Arrow PyCapsule interface. The query begins when the first batch is read.
    ///
    /// Where `requested_schema` has the same columns with other types, and each column has a cast, the batches have these
    /// types; else they have those of `__arrow_c_schema__`.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = match requested_schema {
            Some(capsule) => requested::granted(&self.query.schema, capsule)?,
            None => Arc::clone(&self.query.schema),
        };
        let batches = Batches::new(Arc::clone(&self.query), schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns, for consumers of the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.query.schema.as_ref());
        let schema = schema.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// What was read so far, by all streams of this result, and what of it could not be read as it should be: a dict of
    /// counts.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let notes = PyDict::new(py);
        for (name, count) in named(&self.query.engine.notes().counts()) {
            notes.set_item(name, count)?;
        }
        Ok(notes)
    }

    fn __repr__(&self) -> String {
        let columns = self.query.schema.fields().iter();
        let columns: Vec<_> = columns
            .map(|field| format!("{}: {}", field.name(), field.data_type()))
            .collect();
        format!("tailrace.Result({})", columns.join(", "))
    }
}

/// The counters with the names that Python sees.
fn named(counts: &Counts) -> [(&'static str, u64); 15] {
    let Counts {
        bytes,
        records,
        kept,
        prefiltered,
        untimed,
        unleveled,
        keyless,
        files,
        pruned,
        parquet_files,
        parquet_pruned,
        malformed,
        repaired,
        truncated,
        unfit,
    } = *counts;
    [
        ("files", files),
        ("files_too_old", pruned),
        ("parquet_files", parquet_files),
        ("parquet_files_left_out", parquet_pruned),
        ("bytes", bytes),
        ("records", records),
        ("records_kept", kept),
        ("records_prefiltered", prefiltered),
        ("records_without_time", untimed),
        ("records_without_severity", unleveled),
        ("records_malformed", malformed),
        ("records_repaired", repaired),
        ("records_truncated", truncated),
        ("values_unfit", unfit),
        ("values_without_column", keyless),
    ]
}
