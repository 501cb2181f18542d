//! Comparisons of a cast with a constant. DataFusion compares what was cast with the constant instead, also where the cast changes
//! values or fails: `TRY_CAST(300 AS TINYINT) > 5` was true, and a time of milliseconds was equal to any within that millisecond.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit, TimestampNanosecondType};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

/// A comparison whose cast stays where it is, if it must.
pub(super) fn kept(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(mut it) if is_comparison(it.op) => {
            let is_kept = replace(&mut it.left, &[&it.right], schema)
                || replace(&mut it.right, &[&it.left], schema);
            Transformed::new_transformed(Expr::BinaryExpr(it), is_kept)
        }
        Expr::Between(mut it) => {
            let is_kept = replace(&mut it.expr, &[&it.low, &it.high], schema);
            Transformed::new_transformed(Expr::Between(it), is_kept)
        }
        Expr::InList(mut it) => {
            let constants: Vec<&Expr> = it.list.iter().collect();
            let is_kept = replace(&mut it.expr, &constants, schema);
            Transformed::new_transformed(Expr::InList(it), is_kept)
        }
        other => Transformed::no(other),
    })
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(
        op,
        Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom
    )
}

/// Puts a step around a cast, or one within it, that DataFusion does not look behind; whether that is needed.
fn replace(side: &mut Expr, others: &[&Expr], schema: &DFSchema) -> bool {
    if others.iter().any(|other| other.any_column_refs()) {
        // They are compared as they are.
        return false;
    }
    let (operand, to) = match side {
        Expr::Cast(cast) => (&mut cast.expr, cast.field.data_type()),
        Expr::TryCast(cast) => (&mut cast.expr, cast.field.data_type()),
        _ => return false,
    };
    let Ok(from) = operand.get_type(schema) else {
        return false;
    };
    if is_reversible(&from, to, others) {
        return replace(operand, others, schema);
    }
    let cast = std::mem::take(side);
    *side = ScalarUDF::new_from_impl(Kept::new()).call(vec![cast]);
    true
}

/// Whether a cast keeps all values and their order, so that constants can be cast back instead.
fn is_reversible(from: &DataType, to: &DataType, constants: &[&Expr]) -> bool {
    if let (DataType::Timestamp(of_from, _), DataType::Timestamp(of_to, _)) = (from, to) {
        let (from, to) = (per_second(*of_from), per_second(*of_to));
        let is_whole = |constant: &&Expr| is_multiple(constant, NANOSECONDS / from);
        return from == to || from < to && constants.iter().all(is_whole);
    }
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

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => NANOSECONDS,
    }
}

/// Whether a constant, if it can be told, is a time of whole `nanoseconds`.
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
    time().is_none_or(|time| time % nanoseconds == 0)
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
