//! What decimals are compared with. DataFusion 55 rounds texts to the decimals' places: here they have places of their own. In lists of IN and beside
//! IS DISTINCT FROM it makes decimals of 15 places of floats, which most do not fit into: they stay floats, as beside `=`. And lists have room
//! for 38 digits before a point and others behind it.

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, Case, InList};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::EachExpr;

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
    let Ok(types) = types.collect::<Result<Vec<_>>>() else {
        return Ok(Transformed::no(expr));
    };
    if of == Of::Comparison && is_exact(&parts, &types) {
        return Ok(Transformed::no(expr));
    }
    let Some(common) = common(&types, of) else {
        return Ok(Transformed::no(expr));
    };
    for part in &mut parts {
        let value = std::mem::take(&mut **part);
        **part = cast(value, common.clone());
    }
    Ok(Transformed::yes(expr))
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
        _ => !is_text(ty),
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

/// What has all that is compared; `None` where DataFusion finds it.
fn common(types: &[DataType], of: Of) -> Option<DataType> {
    if !types.iter().any(DataType::is_decimal) {
        return None;
    }
    if types.iter().any(DataType::is_floating) {
        return (of != Of::Comparison).then_some(DataType::Float64);
    }
    let has_text = types.iter().any(is_text);
    let of_type = |ty: &DataType| match places(ty) {
        Some(places) => places,
        None if is_text(ty) => PLACES,
        None => 0,
    };
    let places = types.iter().map(of_type).max().unwrap_or(0);
    let digits_before = |ty: &DataType| match ty {
        DataType::Decimal32(all, of)
        | DataType::Decimal64(all, of)
        | DataType::Decimal128(all, of)
        | DataType::Decimal256(all, of) => i16::from(*all) - i16::from(*of),
        _ => 20,
    };
    let before = types.iter().map(digits_before).max().unwrap_or(0);
    // More digits than a decimal has.
    if before + i16::from(places) > i16::from(DECIMAL256_MAX_PRECISION) {
        return None;
    }
    let has_room = !has_text && (of != Of::List || places <= 0);
    (!has_room).then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, places))
}
