//! How large the values of an array are.
//!
//! Decides whether a value that a call built, or all of them together, are too large. The usual batch is measured by
//! the length of its buffers alone; values are measured one by one only when together they could be too large.

use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::ColumnarValue;

use super::batch;

/// The largest value that an expression may make: text or list, in bytes. A larger one fails, so that it is NULL and
/// its record counted.
pub(crate) const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// What one call may build for several rows; above it, the batch is tried in halves.
pub(super) const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Whether no value exceeds [`VALUE_BYTES_MAX`], and several together [`BATCH_BYTES_MAX`].
///
/// # Errors
/// If one does.
pub(super) fn check(name: &str, made: &ColumnarValue) -> Result<()> {
    match made {
        ColumnarValue::Array(array) => check_array(name, array.as_ref()),
        ColumnarValue::Scalar(scalar) => match nested(scalar) {
            Some(array) => check_array(name, array.as_ref()),
            None => too_large(name, text(scalar).map_or(0, str::len)),
        },
    }
}

/// What a call built takes, in bytes.
pub(super) fn made_bytes(made: &ColumnarValue) -> usize {
    match made {
        ColumnarValue::Array(array) => array.get_array_memory_size(),
        ColumnarValue::Scalar(scalar) => scalar.size(),
    }
}

fn check_array(name: &str, array: &dyn Array) -> Result<()> {
    if let Some(fields) = array.as_struct_opt() {
        let mut columns = fields.columns().iter();
        return columns.try_for_each(|column| check_array(name, column.as_ref()));
    }
    let bytes = bound(array);
    let (largest, all) = match views(array) {
        // Many views may be of the same bytes, so the buffers say nothing.
        Some(views) => views.iter().fold((0, 0_usize), |(largest, all), &view| {
            let length = view as u32;
            (length.max(largest), all.saturating_add(length as usize))
        }),
        None if bytes <= VALUE_BYTES_MAX => return batch::spend(bytes, array.len()),
        None => sizes(array).iter().fold((0, 0), |(largest, all), &size| {
            let size32 = u32::try_from(size).unwrap_or(u32::MAX);
            (size32.max(largest), usize::saturating_add(all, size))
        }),
    };
    too_large(name, largest as usize)?;
    if all > BATCH_BYTES_MAX && array.len() > 1 {
        // Whoever can cut the batch does it; else the evaluator tries halves.
        batch::spend(usize::MAX, 1)?;
        return exec_err!("`{name}` makes {all} bytes for one batch");
    }
    batch::spend(all, array.len())
}

/// The views of an array of views; the low 32 bits of each are a length.
fn views(array: &dyn Array) -> Option<&[u128]> {
    match array.data_type() {
        DataType::Utf8View => Some(array.as_string_view().views()),
        DataType::BinaryView => Some(array.as_binary_view().views()),
        _ => None,
    }
}

/// # Errors
/// If a value of so many bytes is too large.
pub(super) fn too_large(name: &str, bytes: usize) -> Result<()> {
    if bytes > VALUE_BYTES_MAX {
        return exec_err!(
            "`{name}` makes a value of {bytes} bytes, more than the {VALUE_BYTES_MAX} that one may have"
        );
    }
    Ok(())
}

/// The array of a scalar that is a list, map or struct.
pub(super) fn nested(scalar: &ScalarValue) -> Option<ArrayRef> {
    let is_nested = scalar.data_type().is_nested();
    is_nested.then(|| scalar.to_array().ok()).flatten()
}

/// The text or bytes of a scalar.
fn text(scalar: &ScalarValue) -> Option<&str> {
    scalar.try_as_str().flatten()
}

/// No fewer than the bytes of all values together, from the buffers' lengths.
fn bound(array: &dyn Array) -> usize {
    let rows = array.len();
    match array.data_type() {
        DataType::Utf8 => span(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => span(array.as_string::<i64>().value_offsets()),
        DataType::Binary => span(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => span(array.as_binary::<i64>().value_offsets()),
        ty => match ty.primitive_width() {
            Some(width) => width.saturating_mul(rows),
            None if *ty == DataType::Boolean || *ty == DataType::Null => rows,
            None => usize::MAX,
        },
    }
}

fn span<O: OffsetSizeTrait>(offsets: &[O]) -> usize {
    match (offsets.first(), offsets.last()) {
        (Some(first), Some(last)) => last.as_usize() - first.as_usize(),
        _ => 0,
    }
}

/// The bytes of each value; of an element of a list, at least as much as its place takes.
pub(super) fn sizes(array: &dyn Array) -> Vec<usize> {
    let rows = 0..array.len();
    match array.data_type() {
        DataType::Utf8View | DataType::BinaryView => {
            let views = views(array).unwrap_or_default().iter();
            views.map(|&view| view as u32 as usize).collect()
        }
        DataType::Utf8 => spans(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => spans(array.as_string::<i64>().value_offsets()),
        DataType::Binary => spans(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => spans(array.as_binary::<i64>().value_offsets()),
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            of_lists(list.value_offsets(), list.values().as_ref())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            of_lists(list.value_offsets(), list.values().as_ref())
        }
        DataType::Map(..) => {
            let map = array.as_map();
            of_lists(map.value_offsets(), map.entries())
        }
        DataType::FixedSizeList(_, length) => {
            let length = usize::try_from(*length).unwrap_or(0);
            let elements = sizes(array.as_fixed_size_list().values().as_ref());
            let list = |row: usize| elements.iter().skip(row * length).take(length).sum();
            rows.map(list).collect()
        }
        DataType::Struct(_) => {
            let mut sums = vec![0_usize; array.len()];
            for column in array.as_struct().columns() {
                let sizes = sizes(column.as_ref());
                sums.iter_mut()
                    .zip(sizes)
                    .for_each(|(sum, size)| *sum += size);
            }
            sums
        }
        ty => {
            let width = ty.primitive_width();
            vec![width.unwrap_or_else(|| flat_share(array)); array.len()]
        }
    }
}

/// For types that no function grows: an equal share of all bytes.
fn flat_share(array: &dyn Array) -> usize {
    match array.data_type() {
        DataType::Null | DataType::Boolean => 1,
        _ => array.get_buffer_memory_size() / array.len().max(1),
    }
}

fn spans<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<usize> {
    let pairs = offsets.windows(2);
    pairs
        .map(|pair| pair[1].as_usize() - pair[0].as_usize())
        .collect()
}

/// An element takes the bytes of its value and of its place in the list's array.
fn of_lists<O: OffsetSizeTrait>(offsets: &[O], elements: &dyn Array) -> Vec<usize> {
    let fixed = elements.data_type().primitive_width().is_some();
    let place = if fixed { 0 } else { PLACE_BYTES };
    let sizes = sizes(elements);
    let list = |pair: &[O]| {
        let sizes = &sizes[pair[0].as_usize()..pair[1].as_usize()];
        sizes.iter().map(|size| size + place).sum()
    };
    offsets.windows(2).map(list).collect()
}

/// What an offset or a view takes, beside the bytes that it is about.
pub(super) const PLACE_BYTES: usize = 8;
