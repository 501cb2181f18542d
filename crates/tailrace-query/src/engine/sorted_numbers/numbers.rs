//! Keys of two numbers as one number, and rows in its order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::SortColumn;
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_expr::LexOrdering;

/// What is sorted: a key, and the number of its row.
type Key = (u128, u32);

/// Whether an order is of two numbers or times of at most 64 bits, and the rows have nothing but numbers and times.
pub(super) fn are_numbers(order: &LexOrdering, schema: &Schema) -> Result<bool> {
    let mut fields = schema.fields().iter();
    let is_of_numbers = fields.all(|field| field.data_type().primitive_width().is_some());
    if !is_of_numbers || order.len() != 2 {
        return Ok(false);
    }
    for key in order {
        let ty = key.expr.data_type(schema)?;
        // Of numbers of several parts, such as intervals, no value is one word.
        let is_word = (ty.is_numeric() || ty.is_temporal() && !is_interval(&ty))
            && (ty.primitive_width()).is_some_and(|width| width <= size_of::<u64>());
        if !is_word {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_interval(ty: &DataType) -> bool {
    matches!(ty, DataType::Interval(_))
}

/// Whether every row has both keys.
pub(super) fn are_there(batch: &RecordBatch, order: &LexOrdering) -> Result<bool> {
    for key in order {
        if key.evaluate_to_sort_column(batch)?.values.null_count() > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What putting the rows of a batch in order takes: they as they come, joined, their keys as bytes, as words and as one number, and a part
/// of them in order.
pub(super) fn bytes_for(batch: &RecordBatch) -> usize {
    let schema = batch.schema();
    let widths = schema.fields().iter();
    let row: usize = widths.filter_map(|f| f.data_type().primitive_width()).sum();
    let key = size_of::<Key>() + 2 * size_of::<u64>();
    batch.get_array_memory_size() + batch.num_rows() * (row + key)
}

/// The numbers of the rows in order.
pub(super) fn numbers_in_order(all: &RecordBatch, order: &LexOrdering) -> Result<UInt32Array> {
    let mut keys = order.iter();
    let mut next = || match keys.next() {
        Some(key) => words(&key.evaluate_to_sort_column(all)?),
        None => Err(DataFusionError::Internal("no key".to_owned())),
    };
    let (first, second) = (next()?, next()?);
    let both = first.into_iter().zip(second);
    let both = both.map(|(a, b)| (u128::from(a) << u64::BITS) | u128::from(b));
    let mut keys: Vec<Key> = both.zip(0_u32..).collect();
    keys.sort_unstable();
    let numbers = keys.into_iter().map(|(_, number)| number);
    Ok(UInt32Array::from_iter_values(numbers))
}

/// The values of a key, which are all there, as numbers in the same order.
fn words(column: &SortColumn) -> Result<Vec<u64>> {
    let values: &ArrayRef = &column.values;
    let options = column.options.unwrap_or_default();
    let key = SortField::new_with_options(values.data_type().clone(), options);
    let rows = RowConverter::new(vec![key])?.convert_columns(&[Arc::clone(values)])?;
    let words = rows.iter().map(|row| {
        // Behind the byte that tells that there is a value, the value, its most significant byte first.
        let value = &row.data()[1..];
        let mut word = [0; 8];
        word[8 - value.len()..].copy_from_slice(value);
        u64::from_be_bytes(word)
    });
    Ok(words.collect())
}
