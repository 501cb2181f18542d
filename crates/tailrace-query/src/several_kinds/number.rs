//! Values of several kinds as numbers.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, PrimitiveArray, UnionArray,
};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int64Type};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Decimals that hold every whole number of 64 bits, and one value between each two of them.
pub(super) const AMONG_INTEGERS: DataType = DataType::Decimal128(21, 1);

/// The largest of them, for numbers that are larger.
const LARGEST: i128 = 999_999_999_999_999_999_999;

/// Whether values of a type are whole numbers of 64 bits, floats, and others, as those of JSON are.
pub(super) fn has_numbers(ty: &DataType) -> bool {
    let kinds = [Int64Type::DATA_TYPE, Float64Type::DATA_TYPE];
    kinds.iter().all(|kind| kind_of(ty, kind).is_some())
}

/// The number of a kind in a type of several.
fn kind_of(ty: &DataType, kind: &DataType) -> Option<i8> {
    let DataType::Union(kinds, _) = ty else {
        return None;
    };
    let mut kinds = kinds.iter();
    kinds.find_map(|(number, it)| (it.data_type() == kind).then_some(number))
}

/// A value for comparisons with integers: a number between two integers is the middle between them. NULL if it is no number.
pub(super) fn among_integers(value: Expr) -> Expr {
    called(Among::Integers, value)
}

/// A value for comparisons with floats. NULL if it is no number.
pub(super) fn as_float(value: Expr) -> Expr {
    called(Among::Floats, value)
}

fn called(among: Among, value: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::from(Number { among, signature }).call(vec![value])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Among {
    Integers,
    Floats,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Number {
    among: Among,
    signature: Signature,
}

impl ScalarUDFImpl for Number {
    fn name(&self) -> &str {
        match self.among {
            Among::Integers => "among_integers",
            Among::Floats => "as_float",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.among {
            Among::Integers => AMONG_INTEGERS,
            Among::Floats => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = matches!(&args.args[0], ColumnarValue::Scalar(_));
        let values = args.args[0].to_array(args.number_rows)?;
        let whole = Kind::<Int64Type>::of(&values)?;
        let floats = Kind::<Float64Type>::of(&values)?;
        let rows = 0..values.len();
        let numbers: ArrayRef = match self.among {
            Among::Integers => {
                let number = |row| match whole.at(row) {
                    Some(whole) => Some(i128::from(whole) * 10),
                    None => floats.at(row).map(among),
                };
                let numbers: Decimal128Array = rows.map(number).collect();
                Arc::new(numbers.with_data_type(AMONG_INTEGERS))
            }
            Among::Floats => {
                let number = |row| match whole.at(row) {
                    Some(whole) => Some(whole as f64),
                    None => floats.at(row),
                };
                Arc::new(rows.map(number).collect::<Float64Array>())
            }
        };
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(
                &numbers, 0,
            )?),
            false => ColumnarValue::Array(numbers),
        })
    }
}

/// A float in tenths, which are 5 between two integers.
fn among(float: f64) -> i128 {
    let below = float.floor();
    let middle = if float > below { 5 } else { 0 };
    // Beyond the range it becomes the first or last of it.
    let tenths = (below as i128).saturating_mul(10).saturating_add(middle);
    tenths.clamp(-LARGEST, LARGEST)
}

/// The values of one kind in a column of several.
struct Kind<'a, T: ArrowPrimitiveType> {
    union: &'a UnionArray,
    kind: i8,
    values: &'a PrimitiveArray<T>,
}

impl<'a, T: ArrowPrimitiveType> Kind<'a, T> {
    fn of(values: &'a ArrayRef) -> Result<Kind<'a, T>> {
        let found = || {
            let union = values.as_union_opt()?;
            let kind = kind_of(union.data_type(), &T::DATA_TYPE)?;
            Some(Kind {
                union,
                kind,
                values: union.child(kind).as_primitive_opt()?,
            })
        };
        found().ok_or_else(|| internal_datafusion_err!("{} has no numbers", values.data_type()))
    }

    fn at(&self, row: usize) -> Option<T::Native> {
        if self.union.type_id(row) != self.kind {
            return None;
        }
        let at = self.union.value_offset(row);
        self.values.is_valid(at).then(|| self.values.value(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_their_order_among_integers() {
        let floats = [
            f64::MIN,
            -1e19,
            -9_223_372_036_854_775_808.0,
            -2.5,
            -2.0,
            -0.5,
            -0.0,
            0.0,
            1e-300,
            0.5,
            1.0,
            12.5,
            13.0,
            9_007_199_254_740_992.0,
            18_446_744_073_709_551_616.0,
            1e300,
        ];
        for float in floats {
            for integer in [-3_i64, -2, -1, 0, 1, 12, 13, i64::MIN, i64::MAX, 1 << 53] {
                // Exact: an integer of 64 bits is compared with the float's whole and broken parts.
                let whole = (float.floor() as i128).cmp(&i128::from(integer));
                let expected = whole.then(match float > float.floor() {
                    true => std::cmp::Ordering::Greater,
                    false => std::cmp::Ordering::Equal,
                });
                assert_eq!(
                    among(float).cmp(&(i128::from(integer) * 10)),
                    expected,
                    "{float} and {integer}"
                );
            }
        }
    }
}
