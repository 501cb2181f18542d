//! Comparisons of a cast with a constant. DataFusion compares what was cast with the constant instead, also where the cast changes
//! values or fails: `TRY_CAST(300 AS TINYINT) > 5` was true, and a time of milliseconds was equal to any within that millisecond.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit, TimestampNanosecondType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::functions::datetime::date_bin;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, lit,
};

use super::is_comparison;

/// A comparison whose cast stays where it is, if it must.
pub(super) fn kept(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(mut it) => {
            let Some(swapped) = it.op.swap().filter(|_| is_comparison(it.op)) else {
                return Ok(Transformed::no(Expr::BinaryExpr(it)));
            };
            let is_kept = of_side(&mut it.left, &mut [(it.op, &mut it.right)], schema)
                || of_side(&mut it.right, &mut [(swapped, &mut it.left)], schema);
            Transformed::new_transformed(Expr::BinaryExpr(it), is_kept)
        }
        Expr::Between(mut it) => {
            let bounds = &mut [
                (Operator::GtEq, &mut *it.low),
                (Operator::LtEq, &mut *it.high),
            ];
            let is_kept = of_side(&mut it.expr, bounds, schema);
            Transformed::new_transformed(Expr::Between(it), is_kept)
        }
        Expr::InList(mut it) => {
            let constants = it.list.iter_mut().map(|constant| (Operator::Eq, constant));
            let is_kept = of_side(&mut it.expr, &mut constants.collect::<Vec<_>>(), schema);
            Transformed::new_transformed(Expr::InList(it), is_kept)
        }
        other => Transformed::no(other),
    })
}

/// Mends one side, with what it is compared with and how; whether that was needed. What has columns is compared as it is.
fn of_side(side: &mut Expr, others: &mut [(Operator, &mut Expr)], schema: &DFSchema) -> bool {
    let is_try = matches!(side, Expr::TryCast(_));
    let (operand, to) = match side {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return false,
    };
    let is_constant = |(_, other): &(Operator, &mut Expr)| !other.any_column_refs();
    let (true, Ok(from)) = (others.iter().any(is_constant), operand.get_type(schema)) else {
        return false;
    };
    let is_whole = match (&from, to) {
        (DataType::Timestamp(from, _), DataType::Timestamp(unit, _)) => {
            // DataFusion leaves alone what loses digits.
            let is_coarse = per_second(*from) < per_second(*unit);
            if is_coarse && is_try {
                // A time that the finer unit does not reach is NULL.
                keep(side);
                return true;
            }
            return is_coarse && of_times(side, others, *from);
        }
        _ => is_reversible(&from, to),
    };
    if is_whole {
        return of_side(operand, others, schema);
    }
    keep(side);
    true
}

/// A step around a cast that DataFusion does not look behind.
fn keep(cast: &mut Expr) {
    let known = std::mem::take(cast);
    *cast = ScalarUDF::new_from_impl(Kept::new()).call(vec![known]);
}

/// A column of coarse times and constants that are finer, which DataFusion cuts towards zero. Before that, a bound becomes one of the times
/// that the column may have, so that nothing is lost; what asks for one time is compared as it is.
fn of_times(side: &mut Expr, others: &mut [(Operator, &mut Expr)], column: TimeUnit) -> bool {
    let nanoseconds = NANOSECONDS / per_second(column);
    let (mut is_mended, mut asks_for_one) = (false, false);
    for (op, other) in others {
        if other.any_column_refs() || is_multiple(other, nanoseconds) {
            continue;
        }
        let next = match op {
            Operator::GtEq | Operator::Lt => nanoseconds - 1,
            Operator::Gt | Operator::LtEq => 0,
            _ => {
                asks_for_one = true;
                continue;
            }
        };
        let span = |nanoseconds| {
            let span = IntervalMonthDayNano::new(0, 0, nanoseconds);
            lit(ScalarValue::IntervalMonthDayNano(Some(span)))
        };
        let constant = std::mem::take(&mut **other);
        // Before 1970 only this one rounds down.
        **other = date_bin().call(vec![span(nanoseconds), constant + span(next)]);
        is_mended = true;
    }
    if asks_for_one {
        keep(side);
    }
    is_mended || asks_for_one
}

/// Whether a cast keeps all values and their order, so that constants can be cast back instead.
fn is_reversible(from: &DataType, to: &DataType) -> bool {
    match (exact(from), exact(to)) {
        (Some(from), Some(to)) => {
            to.min <= from.min && from.max <= to.max && from.behind <= to.behind
        }
        // DataFusion does not compare others without their cast, or looks whether the constant comes back.
        _ => true,
    }
}

/// What a type of exact numbers holds: whole numbers from `min` to `max`, and so many digits behind the point.
struct Exact {
    min: i128,
    max: i128,
    behind: i32,
}

fn exact(ty: &DataType) -> Option<Exact> {
    let integer = |min: i64, max: u64| Exact {
        min: min.into(),
        max: max.into(),
        behind: 0,
    };
    let signed = |min: i64, max: i64| integer(min, max.unsigned_abs());
    Some(match ty {
        DataType::Int8 => signed(i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => signed(i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => signed(i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => signed(i64::MIN, i64::MAX),
        DataType::UInt8 => integer(0, u8::MAX.into()),
        DataType::UInt16 => integer(0, u16::MAX.into()),
        DataType::UInt32 => integer(0, u32::MAX.into()),
        DataType::UInt64 => integer(0, u64::MAX),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            let whole = i32::from(*precision) - i32::from(*scale);
            let whole = u32::try_from(whole).unwrap_or(0);
            let max = 10_i128.checked_pow(whole).unwrap_or(i128::MAX) - 1;
            Exact {
                min: -max,
                max,
                behind: i32::from(*scale),
            }
        }
        _ => return None,
    })
}

const NANOSECONDS: i64 = 1_000_000_000;

pub(super) fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOSECONDS,
    }
}

/// Whether a constant is known to be a time of whole `nanoseconds`.
fn is_multiple(constant: &Expr, nanoseconds: i64) -> bool {
    let time = || {
        let array = cast(
            &value(constant)?,
            &DataType::Timestamp(TimeUnit::Nanosecond, None),
        );
        let array = array.ok()?;
        let times = array.as_primitive::<TimestampNanosecondType>();
        times.is_valid(0).then(|| times.value(0))
    };
    time().is_some_and(|time| time % nanoseconds == 0)
}

/// The value of a literal, perhaps in casts.
fn value(constant: &Expr) -> Option<ArrayRef> {
    match constant {
        Expr::Literal(literal, _) => literal.to_array().ok(),
        Expr::Cast(it) => cast(&value(&it.expr)?, it.field.data_type()).ok(),
        Expr::TryCast(it) => cast(&value(&it.expr)?, it.field.data_type()).ok(),
        _ => None,
    }
}

/// Gives what it is given.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kept {
    signature: Signature,
}

impl Kept {
    fn new() -> Kept {
        Kept {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        "as_cast"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args[0].clone())
    }
}
