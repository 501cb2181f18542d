//! The schema that a consumer asks for. It is a wish: types are changed where each column has a cast, and names, order and
//! number of columns never.

use std::sync::Arc;

use arrow::array::{ArrayRef, new_empty_array};
use arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow_pyarrow::FromPyArrow as _;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// A value that the other type cannot hold is an error: as a NULL it would be lost without a word.
const STRICT: CastOptions<'static> = CastOptions {
    safe: false,
    format_options: arrow::util::display::FormatOptions::new(),
};

/// An object of a schema, as which a capsule is read without unsafe code.
#[pyclass(frozen)]
struct Requested(Py<PyCapsule>);

#[pymethods]
impl Requested {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Bound<'py, PyCapsule> {
        self.0.bind(py).clone()
    }
}

/// The columns of `ours` with the types of the schema in `capsule`, or `ours` where these are not types of the same columns,
/// or a column cannot have them.
///
/// # Errors
///
/// The capsule is none of a schema.
pub(crate) fn granted(ours: &SchemaRef, capsule: &Bound<'_, PyCapsule>) -> PyResult<SchemaRef> {
    if !capsule.is_valid_checked(Some(c"arrow_schema")) {
        return Err(PyValueError::new_err(
            "requested_schema is a capsule of something else: pass what __arrow_c_schema__ returns, or None",
        ));
    }
    let requested = Requested(capsule.clone().unbind());
    let object = Bound::new(capsule.py(), requested)?;
    // A type that this version of Arrow does not know is an error, and no reason to give nothing.
    let theirs = Schema::from_pyarrow_bound(object.as_any()).ok();
    let granted = theirs.and_then(|theirs| with_types_of(ours, &theirs));
    Ok(granted.unwrap_or_else(|| Arc::clone(ours)))
}

fn with_types_of(ours: &SchemaRef, theirs: &Schema) -> Option<SchemaRef> {
    if ours.fields().len() != theirs.fields().len() {
        return None;
    }
    let fields = ours.fields().iter().zip(theirs.fields());
    let fields = fields.map(|(ours, theirs)| {
        let is_possible =
            ours.name() == theirs.name() && has_cast(ours.data_type(), theirs.data_type());
        is_possible.then(|| Arc::new(Field::clone(ours).with_data_type(theirs.data_type().clone())))
    });
    let fields: Vec<FieldRef> = fields.collect::<Option<_>>()?;
    let metadata = ours.metadata().clone();
    Some(Arc::new(Schema::new_with_metadata(fields, metadata)))
}

/// Whether there is a cast. Some are only found missing when they are tried.
fn has_cast(from: &DataType, to: &DataType) -> bool {
    from == to
        || (can_cast_types(from, to)
            && cast_with_options(&new_empty_array(from), to, &STRICT).is_ok())
}

/// A batch of the same columns with the types of `schema`.
///
/// # Errors
///
/// A type cannot hold a value, such as 32 bits a large number.
pub(crate) fn cast(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    if batch.schema_ref() == schema {
        return Ok(batch);
    }
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        cast_whole(column, field.data_type()).map_err(|error| {
            let (name, wanted) = (field.name(), field.data_type());
            ArrowError::CastError(format!(
                "the column `{name}` cannot be read as {wanted}: {error}. Ask for another type, or for none and CAST in the query"
            ))
        })
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

/// Values of another type, unless numbers lose a part of them, which the cast of Arrow leaves out without a word. A shorter float has the
/// nearest value, and a time is cut to the unit that is asked for.
fn cast_whole(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    let made = cast_with_options(column, wanted, &STRICT)?;
    let from = column.data_type();
    let is_float = from.is_floating() && wanted.is_floating();
    if from.is_numeric() && wanted.is_numeric() && !is_float {
        let back = cast_with_options(&made, from, &STRICT)?;
        if back.as_ref() != column.as_ref() {
            return Err(ArrowError::CastError(
                "a value would lose a part, such as its fraction".to_owned(),
            ));
        }
    }
    Ok(made)
}
