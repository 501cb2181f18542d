//! Integers as keys of frames: with a whole distance they stay 64-bit integers, whose windows take a third of the time of those of decimals.
//! A step says so where one is nearer to the end of its type than the distance.

use arrow::array::AsArray;
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The longest distance that is added to integers: the sum of two is no integer's end yet.
pub(super) const REACH_MAX: i64 = 1 << 62;

/// The key, which is an error where a value is not so far from both ends of its type.
pub(super) fn checked(key: Expr, reach: i64) -> Expr {
    let signature = Signature::exact(vec![DataType::Int64], Volatility::Immutable);
    ScalarUDF::new_from_impl(Room { reach, signature }).call(vec![key])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Room {
    reach: i64,
    signature: Signature,
}

impl ScalarUDFImpl for Room {
    fn name(&self) -> &str {
        "with_room"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let key = args.args.swap_remove(0);
        let ends = match &key {
            ColumnarValue::Array(keys) => {
                let keys = keys.as_primitive::<Int64Type>();
                [min(keys), max(keys)]
            }
            ColumnarValue::Scalar(ScalarValue::Int64(key)) => [*key, *key],
            ColumnarValue::Scalar(_) => [None, None],
        };
        for end in ends.into_iter().flatten() {
            if end.checked_add(self.reach).is_none() || end.checked_sub(self.reach).is_none() {
                return exec_err!(
                    "{end} and the distance of RANGE are beyond the type together: order by `CAST(x AS DECIMAL(38, 0))`"
                );
            }
        }
        Ok(key)
    }
}
