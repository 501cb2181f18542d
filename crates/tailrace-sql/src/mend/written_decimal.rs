//! Numbers with a point beside decimals. They are written as decimals and planned as floats, of which DataFusion 55 makes decimals of 15 places
//! that are other numbers: 548.44 was 548.440000000000057.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, cast};

/// The decimal that is written, if this is a literal float that has one.
#[must_use]
pub fn written_decimal(expr: &Expr) -> Option<ScalarValue> {
    let float = match expr {
        Expr::Literal(ScalarValue::Float64(Some(float)), _) => *float,
        Expr::Negative(of) => match &**of {
            Expr::Literal(ScalarValue::Float64(Some(float)), _) => -*float,
            _ => return None,
        },
        _ => return None,
    };
    // The shortest one that is this float, without an exponent. NaN and infinity are no numbers.
    let text = float.to_string();
    let (before, behind) = text.split_once('.').unwrap_or((&text, ""));
    let value: i128 = format!("{before}{behind}").parse().ok()?;
    let digits = before.trim_start_matches(['-', '0']).len() + behind.len();
    let digits = u8::try_from(digits.max(1)).ok()?;
    let places = i8::try_from(behind.len()).ok()?;
    (digits <= DECIMAL128_MAX_PRECISION).then_some(ScalarValue::Decimal128(
        Some(value),
        digits,
        places,
    ))
}

/// Both sides of a comparison with such a number, as decimals with room for all digits of both. `None` if there is no such number or room.
pub(super) fn sides(left: (&Expr, &DataType), right: (&Expr, &DataType)) -> Option<(Expr, Expr)> {
    let of_side = |(side, ty): (&Expr, &DataType)| match ty.is_floating() {
        true => {
            let written = written_decimal(side)?;
            let ty = written.data_type();
            Some((Expr::Literal(written, None), ty))
        }
        false => Some((side.clone(), ty.clone())),
    };
    let (left, of_left) = of_side(left)?;
    let (right, of_right) = of_side(right)?;
    let (left_before, left_places) = digits(&of_left)?;
    let (right_before, right_places) = digits(&of_right)?;
    let places = left_places.max(right_places);
    let all = left_before.max(right_before) + i16::from(places);
    let is_wide = [&of_left, &of_right]
        .iter()
        .any(|ty| matches!(ty, DataType::Decimal256(..)));
    if all > i16::from(DECIMAL256_MAX_PRECISION) {
        return None;
    }
    if is_wide || all <= i16::from(DECIMAL128_MAX_PRECISION) {
        return Some((left, right));
    }
    let wide = DataType::Decimal256(DECIMAL256_MAX_PRECISION, places);
    Some((cast(left, wide.clone()), cast(right, wide)))
}

/// The digits of a decimal before its point, and the places behind it.
fn digits(ty: &DataType) -> Option<(i16, i8)> {
    match ty {
        DataType::Decimal32(all, places)
        | DataType::Decimal64(all, places)
        | DataType::Decimal128(all, places)
        | DataType::Decimal256(all, places) => {
            Some((i16::from(*all) - i16::from(*places), *places))
        }
        _ => None,
    }
}
