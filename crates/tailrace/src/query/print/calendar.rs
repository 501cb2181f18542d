//! Times and dates that no calendar and no clock has. Columns of seconds, milliseconds and microseconds hold more than the years that a text of them can
//! have; a wrong unit leads to such a time, and databases write infinite ones so.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt64Array, make_array};
use arrow::compute::{cast, nullif, take};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};

const SECONDS_PER_DAY: i64 = 86_400;
/// Days since 1970 of the years -262143 to 262142, which are those of chrono, without the first and the last: times may be those of a zone.
const DAYS: (i64, i64) = (-96_465_291, 95_026_235);

/// The batch with NULL in the place of such times, and how many there are.
///
/// # Errors
///
/// They lie in something that has no NULL.
pub(super) fn within(batch: &RecordBatch) -> Result<(RecordBatch, usize), ArrowError> {
    let mut beyond = 0;
    let columns = batch.columns().iter();
    let columns = columns.map(|column| of_array(column, &mut beyond));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    if beyond == 0 {
        return Ok((batch.clone(), 0));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    // A column that had no NULL may have one now.
    let fields = batch.schema_ref().fields().iter().zip(&columns);
    let fields = fields.map(|(field, column)| {
        let ty = column.data_type().clone();
        Field::new(field.name(), ty, true).with_metadata(field.metadata().clone())
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch = RecordBatch::try_new_with_options(schema, columns, &options)?;
    Ok((batch, beyond))
}

fn of_array(array: &ArrayRef, beyond: &mut usize) -> Result<ArrayRef, ArrowError> {
    let days = |unit: i64| (DAYS.0.saturating_mul(unit), DAYS.1.saturating_mul(unit));
    let of_seconds = |per_second: i64| days(SECONDS_PER_DAY * per_second);
    let of_day = |per_second: i64| (0, SECONDS_PER_DAY * per_second - 1);
    let (first, last) = match array.data_type() {
        DataType::Date32 => days(1),
        DataType::Timestamp(TimeUnit::Second, _) => of_seconds(1),
        DataType::Timestamp(TimeUnit::Millisecond, _) | DataType::Date64 => of_seconds(1_000),
        DataType::Timestamp(TimeUnit::Microsecond, _) => of_seconds(1_000_000),
        DataType::Time32(TimeUnit::Second) => of_day(1),
        DataType::Time32(_) => of_day(1_000),
        DataType::Time64(TimeUnit::Microsecond) => of_day(1_000_000),
        DataType::Time64(_) => of_day(1_000_000_000),
        _ => return of_parts(array, beyond),
    };
    let numbers = match array.data_type() {
        DataType::Date32 | DataType::Time32(_) => {
            cast(&cast(array, &DataType::Int32)?, &DataType::Int64)?
        }
        _ => cast(array, &DataType::Int64)?,
    };
    let numbers: &Int64Array = numbers.as_primitive::<Int64Type>();
    let is_beyond = |number: i64| number < first || number > last;
    let count = numbers.iter().flatten().filter(|it| is_beyond(*it)).count();
    if count == 0 {
        return Ok(Arc::clone(array));
    }
    *beyond += count;
    nullif(array, &BooleanArray::from_unary(numbers, is_beyond))
}

/// Of the members of objects and the items of lists.
fn of_parts(array: &ArrayRef, beyond: &mut usize) -> Result<ArrayRef, ArrowError> {
    if !has_times(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    let before = *beyond;
    // Without the items of rows that are not in this batch.
    let rows = UInt64Array::from_iter_values(0..array.len() as u64);
    let data = take(array, &rows, None)?.to_data();
    let parts = data.child_data().iter();
    let parts = parts.map(|part| Ok(of_array(&make_array(part.clone()), beyond)?.to_data()));
    let parts = parts.collect::<Result<Vec<_>, ArrowError>>()?;
    if *beyond == before {
        return Ok(Arc::clone(array));
    }
    let data = data.into_builder().child_data(parts).build()?;
    Ok(make_array(data))
}

/// Whether an object or a list has times in it.
fn has_times(ty: &DataType) -> bool {
    let is_time = |field: &FieldRef| {
        let ty = field.data_type();
        ty.is_temporal() || has_times(ty)
    };
    match ty {
        DataType::Struct(fields) => fields.iter().any(is_time),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_time(field),
        _ => false,
    }
}
