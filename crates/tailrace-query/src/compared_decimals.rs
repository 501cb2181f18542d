//! What decimals are compared with. DataFusion 55 rounds texts to the decimals' places: here they have places of their own. It makes decimals of
//! 15 places of floats, which are other numbers or do not fit: here a number that is written with a point is the decimal that is written, and
//! beside other floats decimals are floats. And there is room for all digits before a point beside all behind it. Times of day of several units,
//! which DataFusion does not compare, are of nanoseconds.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::{EachExpr, written_decimal};

/// The places of a text behind its point.
const PLACES: i8 = 20;

/// Casts what stands there. DataFusion has not made the types agree yet.
pub(crate) fn with_room(plan: LogicalPlan) -> Result<LogicalPlan> {
    EachExpr::new("compared_decimals", of_expr).analyze(plan, &ConfigOptions::default())
}

fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let (mut parts, of): (Vec<&mut Expr>, Of) = match &mut expr {
        Expr::InList(InList { expr, list, .. }) => {
            let parts = std::iter::once(&mut **expr).chain(list);
            (parts.collect(), Of::List)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            IsDistinctFrom | IsNotDistinctFrom => (vec![left, right], Of::Distinct),
            Eq | NotEq | Lt | LtEq | Gt | GtEq => (vec![left, right], Of::Comparison),
            _ => return Ok(Transformed::no(expr)),
        },
        Expr::Between(Between {
            expr, low, high, ..
        }) => (vec![expr, low, high], Of::Comparison),
        Expr::Case(Case {
            expr: Some(expr),
            when_then_expr,
            ..
        }) => {
            let values = when_then_expr.iter_mut().map(|(value, _)| &mut **value);
            let parts = std::iter::once(&mut **expr).chain(values);
            (parts.collect(), Of::Comparison)
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let types = parts.iter().map(|part| part.get_type(schema));
    let Ok(mut types) = types.collect::<Result<Vec<_>>>() else {
        return Ok(Transformed::no(expr));
    };
    let is_written = as_decimals(&mut parts, &mut types);
    let has_room = digits_before(&parts, &types) + i16::from(places_of_all(&types))
        <= i16::from(DECIMAL128_MAX_PRECISION);
    let is_left = of == Of::Comparison && has_room && is_exact(&parts, &types);
    let common = common(&parts, &types, of).filter(|_| !is_left);
    let Some(common) = common else {
        return Ok(Transformed::new_transformed(expr, is_written));
    };
    for part in &mut parts {
        let value = std::mem::take(&mut **part);
        **part = cast(value, common.clone());
    }
    Ok(Transformed::yes(expr))
}

/// Makes decimals of the numbers with a point that are written beside decimals, unless texts or other floats are there too; whether there were
/// any.
fn as_decimals(parts: &mut [&mut Expr], types: &mut [DataType]) -> bool {
    if !types.iter().any(DataType::is_decimal) || types.iter().any(is_text) {
        return false;
    }
    let floats = || types.iter().enumerate().filter(|(_, ty)| ty.is_floating());
    let written = floats().map(|(at, _)| Some((at, written_decimal(parts[at])?)));
    let Some(written) = written.collect::<Option<Vec<_>>>() else {
        return false;
    };
    for (at, value) in &written {
        types[*at] = value.data_type();
        *parts[*at] = Expr::Literal(value.clone(), None);
    }
    !written.is_empty()
}

/// Whether a column of decimals is compared with what is exact in its places, or with a number: it is compared as it is, so that files whose
/// numbers are others are left out.
fn is_exact(parts: &[&mut Expr], types: &[DataType]) -> bool {
    let mut places = parts.iter().zip(types).filter_map(|(part, ty)| {
        let is_column = matches!(**part, Expr::Column(_));
        places(ty).filter(|_| is_column)
    });
    let Some(places) = places.next() else {
        return false;
    };
    let is_exact = |(part, ty): (&&mut Expr, &DataType)| match &**part {
        Expr::Literal(value, _) if is_text(ty) => {
            let text = value.try_as_str().flatten();
            text.is_some_and(|text| has_places(text.trim(), places))
        }
        _ => !is_text(ty) && !ty.is_floating(),
    };
    parts.iter().zip(types).all(is_exact)
}

/// Whether a text is a number of at most so many places behind its point, with no exponent.
fn has_places(text: &str, places: i8) -> bool {
    let behind = text.split_once('.').map_or("", |(_, behind)| behind);
    let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+');
    text.bytes().all(is_plain) && i8::try_from(behind.len()).is_ok_and(|len| len <= places)
}

/// The places of a decimal behind its point.
fn places(ty: &DataType) -> Option<i8> {
    match ty {
        DataType::Decimal32(_, places)
        | DataType::Decimal64(_, places)
        | DataType::Decimal128(_, places)
        | DataType::Decimal256(_, places) => Some(*places),
        _ => None,
    }
}

fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// What compares values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    List,
    Distinct,
    Comparison,
}

/// The most places behind a point.
fn places_of_all(types: &[DataType]) -> i8 {
    let of_type = |ty: &DataType| match places(ty) {
        Some(places) => places,
        None if is_text(ty) => PLACES,
        None => 0,
    };
    types.iter().map(of_type).max().unwrap_or(0)
}

/// The most digits before a point.
fn digits_before(parts: &[&mut Expr], types: &[DataType]) -> i16 {
    let digits_before = |(part, ty): (&&mut Expr, &DataType)| match (&**part, ty) {
        (
            _,
            DataType::Decimal32(all, of)
            | DataType::Decimal64(all, of)
            | DataType::Decimal128(all, of)
            | DataType::Decimal256(all, of),
        ) => i16::from(*all) - i16::from(*of),
        (Expr::Literal(ScalarValue::Int64(Some(it)), _), _) => {
            let digits = it.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
            i16::try_from(digits).unwrap_or(20)
        }
        (_, DataType::Null) => 0,
        (_, DataType::Int8 | DataType::UInt8) => 3,
        (_, DataType::Int16 | DataType::UInt16) => 5,
        (_, DataType::Int32 | DataType::UInt32) => 10,
        _ => 20,
    };
    let each = parts.iter().zip(types).map(digits_before);
    each.max().unwrap_or(0)
}

/// What has all that is compared; `None` where DataFusion finds it.
fn common(parts: &[&mut Expr], types: &[DataType], of: Of) -> Option<DataType> {
    let is_time = |ty: &DataType| matches!(ty, DataType::Time32(_) | DataType::Time64(_));
    if types.iter().all(is_time) && types.iter().any(|ty| *ty != types[0]) {
        return Some(DataType::Time64(TimeUnit::Nanosecond));
    }
    let is_known = |ty: &DataType| ty.is_numeric() || ty.is_null() || is_text(ty);
    if !types.iter().any(DataType::is_decimal)
        || of == Of::Comparison && !types.iter().all(is_known)
    {
        return None;
    }
    if types.iter().any(DataType::is_floating) {
        return Some(DataType::Float64);
    }
    let has_text = types.iter().any(is_text);
    let places = places_of_all(types);
    let digits = digits_before(parts, types) + i16::from(places);
    // More digits than a decimal has.
    if digits > i16::from(DECIMAL256_MAX_PRECISION) {
        return None;
    }
    let is_wide = |ty: &DataType| matches!(ty, DataType::Decimal256(..));
    let has_room = !has_text
        && match of {
            Of::List => places <= 0,
            Of::Distinct | Of::Comparison => {
                digits <= i16::from(DECIMAL128_MAX_PRECISION) || types.iter().any(is_wide)
            }
        };
    (!has_room).then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, places))
}
