//! The arguments of a call, by row.
//!
//! Reads texts, counts, instants and sizes of one row from constants and columns; `None` for NULL and for values that
//! are none of these.

use std::cell::OnceCell;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Int64Type, IntervalMonthDayNanoType, TimeUnit, TimestampNanosecondType,
};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ColumnarValue;

use super::size::{self, PLACE_BYTES, sizes};

const NANOSECONDS_PER_DAY: i128 = 86_400_000_000_000;

/// An argument, by row.
pub(super) enum Argument {
    Constant(ScalarValue, Option<ArrayRef>),
    /// With the bytes of each row's value, where something asks for them.
    Column(ArrayRef, OnceCell<Vec<usize>>),
}

impl Argument {
    pub(super) fn new(value: &ColumnarValue) -> Argument {
        match value {
            ColumnarValue::Scalar(scalar) => {
                Argument::Constant(scalar.clone(), size::nested(scalar))
            }
            ColumnarValue::Array(array) => Argument::Column(Arc::clone(array), OnceCell::new()),
        }
    }

    pub(super) fn text(&self, row: usize) -> Option<&str> {
        match self {
            Argument::Constant(scalar, _) => scalar.try_as_str().flatten(),
            Argument::Column(array, _) if array.is_null(row) => None,
            Argument::Column(array, _) => match array.data_type() {
                DataType::Utf8View => Some(array.as_string_view().value(row)),
                DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
                DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
                _ => None,
            },
        }
    }

    /// A count of things; 0 if it is negative.
    pub(super) fn length(&self, row: usize) -> Option<usize> {
        let number = self.instant(row)?;
        Some(usize::try_from(number.max(0)).unwrap_or(usize::MAX))
    }

    /// A number, or a point in time as nanoseconds since the Unix epoch.
    pub(super) fn instant(&self, row: usize) -> Option<i128> {
        let array = self.at(row)?;
        let days = |array: &ArrayRef| {
            let days = cast(array, &DataType::Date32).ok()?;
            Some(i128::from(days.as_primitive::<Date32Type>().value(0)) * NANOSECONDS_PER_DAY)
        };
        match array.data_type() {
            DataType::Date32 | DataType::Date64 => days(&array),
            DataType::Timestamp(_, zone) => {
                let unit = TimeUnit::Nanosecond;
                let ns = cast(&array, &DataType::Timestamp(unit, zone.clone())).ok()?;
                let ns = ns.as_primitive::<TimestampNanosecondType>();
                ns.is_valid(0).then(|| i128::from(ns.value(0)))
            }
            ty if ty.is_integer() => {
                let number = cast(&array, &DataType::Int64).ok()?;
                let number = number.as_primitive::<Int64Type>();
                number.is_valid(0).then(|| i128::from(number.value(0)))
            }
            _ => None,
        }
    }

    /// The least distance between two elements of a series, with its sign; `Some(None)` if its parts point both ways.
    pub(super) fn step(&self, row: usize) -> Option<Option<i128>> {
        let array = self.at(row)?;
        let Some(steps) = array.as_primitive_opt::<IntervalMonthDayNanoType>() else {
            return self.instant(row).map(Some);
        };
        let (months, days, ns) = IntervalMonthDayNanoType::to_parts(steps.value(0));
        let parts = [
            i128::from(months) * 28 * NANOSECONDS_PER_DAY,
            i128::from(days) * (NANOSECONDS_PER_DAY - 2 * 3_600_000_000_000),
            i128::from(ns),
        ];
        let both = parts.iter().any(|part| *part > 0) && parts.iter().any(|part| *part < 0);
        Some((!both).then(|| parts.iter().sum()))
    }

    /// One row as an array of one; `None` for NULL.
    fn at(&self, row: usize) -> Option<ArrayRef> {
        match self {
            Argument::Constant(scalar, _) if scalar.is_null() => None,
            Argument::Constant(scalar, _) => scalar.to_array().ok(),
            Argument::Column(array, _) => array.is_valid(row).then(|| array.slice(row, 1)),
        }
    }

    /// How many elements a list has.
    pub(super) fn elements(&self, row: usize) -> Option<usize> {
        let (array, row) = match self {
            Argument::Constant(_, array) => (array.as_ref()?, 0),
            Argument::Column(array, _) => (array, row),
        };
        if array.is_null(row) {
            return None;
        }
        match array.data_type() {
            DataType::List(_) => usize::try_from(array.as_list::<i32>().value_length(row)).ok(),
            DataType::LargeList(_) => {
                usize::try_from(array.as_list::<i64>().value_length(row)).ok()
            }
            DataType::FixedSizeList(_, length) => usize::try_from(*length).ok(),
            _ => None,
        }
    }

    /// The bytes of a value.
    pub(super) fn size(&self, row: usize) -> Option<usize> {
        match self {
            Argument::Constant(scalar, None) => Some(match scalar.try_as_str().flatten() {
                Some(text) => text.len(),
                None => scalar.data_type().primitive_width().unwrap_or(PLACE_BYTES),
            }),
            Argument::Constant(_, Some(array)) => sizes(array.as_ref()).first().copied(),
            Argument::Column(array, all) => {
                let all = all.get_or_init(|| sizes(array.as_ref()));
                all.get(row).copied()
            }
        }
    }
}
