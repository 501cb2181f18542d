//! `sum` of whole numbers, decimals and durations. DataFusion 55 wraps around where a sum does not fit its type. Here it is counted in
//! 128 bits, so that parts of a sum may be beyond the type, and a sum that is ends the query.

mod distinct;
mod groups;

use std::fmt::Debug;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, DecimalType,
    DurationMicrosecondType, DurationMillisecondType, DurationNanosecondType, DurationSecondType,
    Field, FieldRef, Int64Type, TimeUnit, UInt64Type,
};
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::StateFieldsArgs;
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, GroupsAccumulator};

use self::distinct::{Counted, Distinct};
use self::groups::Groups;

/// What is added up.
trait Whole: ArrowPrimitiveType<Native: Into<i128> + TryFrom<i128> + Hash + Eq> + Send + Debug {}

impl<T: ArrowPrimitiveType<Native: Into<i128> + TryFrom<i128> + Hash + Eq> + Send + Debug> Whole
    for T
{
}

/// What `$make` makes for the type of a sum, if it is one of those.
macro_rules! of_type {
    ($ty:expr, $make:ident) => {
        match $ty {
            DataType::Int64 => Some($make!(Int64Type)),
            DataType::UInt64 => Some($make!(UInt64Type)),
            DataType::Decimal128(..) => Some($make!(Decimal128Type)),
            DataType::Duration(TimeUnit::Second) => Some($make!(DurationSecondType)),
            DataType::Duration(TimeUnit::Millisecond) => Some($make!(DurationMillisecondType)),
            DataType::Duration(TimeUnit::Microsecond) => Some($make!(DurationMicrosecondType)),
            DataType::Duration(TimeUnit::Nanosecond) => Some($make!(DurationNanosecondType)),
            _ => None,
        }
    };
}

/// An accumulator of one sum, also of one in a window.
pub(super) fn plain(ty: &DataType) -> Option<Box<dyn Accumulator>> {
    macro_rules! make {
        ($kind:ty) => {
            Box::new(Total::<$kind>::new(ty)) as Box<dyn Accumulator>
        };
    }
    of_type!(ty, make)
}

/// An accumulator of the sum of distinct values, which `known`, DataFusion's, collects.
pub(super) fn distinct(known: Box<dyn Accumulator>, ty: &DataType) -> Box<dyn Accumulator> {
    // Whether it is one of those types.
    match plain(ty) {
        Some(_) => Box::new(Distinct::new(known, ty)),
        None => known,
    }
}

/// An accumulator of the sum of distinct values in a window.
pub(super) fn distinct_in_window(ty: &DataType) -> Option<Box<dyn Accumulator>> {
    macro_rules! make {
        ($kind:ty) => {
            Box::new(Counted::<$kind>::new(ty)) as Box<dyn Accumulator>
        };
    }
    of_type!(ty, make)
}

/// An accumulator of the sums of groups.
pub(super) fn groups(ty: &DataType) -> Option<Box<dyn GroupsAccumulator>> {
    macro_rules! make {
        ($kind:ty) => {
            Box::new(Groups::<$kind>::new(ty)) as Box<dyn GroupsAccumulator>
        };
    }
    of_type!(ty, make)
}

/// What is known of a sum before its end.
pub(super) fn state(args: &StateFieldsArgs<'_>) -> Option<FieldRef> {
    let ty = args.return_type();
    if args.is_distinct || plain(ty).is_none() {
        return None;
    }
    let name = format_state_name(args.name, "sum");
    Some(Arc::new(Field::new(name, state_of(ty), true)))
}

/// The type of what is known of a sum of type `ty` before its end.
fn state_of(ty: &DataType) -> DataType {
    match ty {
        DataType::Decimal128(..) => ty.clone(),
        _ => DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0),
    }
}

/// The sum of an array.
///
/// # Errors
///
/// It is beyond 128 bits.
fn total_of<T: Whole>(values: &PrimitiveArray<T>) -> Result<i128> {
    let total = if values.null_count() == 0 {
        let mut values = values.values().iter();
        values.try_fold(0_i128, |sum, &value| sum.checked_add(value.into()))
    } else {
        let mut values = values.iter().flatten();
        values.try_fold(0_i128, |sum, value| sum.checked_add(value.into()))
    };
    total.ok_or_else(beyond)
}

/// A sum as its type.
///
/// # Errors
///
/// It does not fit.
fn fit<T: Whole>(total: i128, ty: &DataType) -> Result<T::Native> {
    if let DataType::Decimal128(precision, scale) = *ty {
        Decimal128Type::validate_decimal_precision(total, precision, scale)
            .map_err(|_| beyond())?;
    }
    T::Native::try_from(total).map_err(|_| beyond())
}

/// A sum that does not fit its type.
fn beyond() -> DataFusionError {
    let text = "Overflow happened on: sum".to_owned();
    ArrowError::ArithmeticOverflow(text).into()
}

/// One sum.
#[derive(Debug)]
struct Total<T> {
    total: i128,
    /// How many values it is of.
    values: usize,
    ty: DataType,
    of: PhantomData<fn() -> T>,
}

impl<T: Whole> Total<T> {
    fn new(ty: &DataType) -> Total<T> {
        Total {
            total: 0,
            values: 0,
            ty: ty.clone(),
            of: PhantomData,
        }
    }

    fn add<U: Whole>(&mut self, values: &PrimitiveArray<U>) -> Result<()> {
        self.values += values.len() - values.null_count();
        let total = self.total.checked_add(total_of(values)?);
        self.total = total.ok_or_else(beyond)?;
        Ok(())
    }
}

impl<T: Whole> Accumulator for Total<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values[0].as_primitive::<T>())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.add(states[0].as_primitive::<Decimal128Type>())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.values -= values.len() - values.null_count();
        let total = self.total.checked_sub(total_of(values)?);
        self.total = total.ok_or_else(beyond)?;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = state_of(&self.ty);
        Ok(vec![match self.values {
            0 => ScalarValue::try_from(&state)?,
            _ => ScalarValue::new_primitive::<Decimal128Type>(Some(self.total), &state)?,
        }])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.values {
            0 => ScalarValue::try_from(&self.ty),
            _ => ScalarValue::new_primitive::<T>(Some(fit::<T>(self.total, &self.ty)?), &self.ty),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}
