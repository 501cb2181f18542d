//! The type in which decimals are compared with other numbers and with texts, with room for all of their digits.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;

/// The places of a text behind its point.
const PLACES: i8 = 20;

/// What looks at values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// IN finds one of them.
    List,
    /// IS DISTINCT FROM compares them, as joins do for which NULLs are equal.
    Distinct,
    Comparison,
    /// CASE, `coalesce` and the like, or UNION, give one of them.
    Choice,
}

/// Whether all digits of all that is compared fit a decimal of 128 bits.
pub(super) fn has_room(parts: &[&mut Expr], types: &[DataType]) -> bool {
    digits_before(parts, types) + i16::from(places_of_all(types))
        <= i16::from(DECIMAL128_MAX_PRECISION)
}

/// Whether a column of decimals is compared with what is exact in its places, or with a number: it is compared as it is, so that files whose
/// numbers are others are left out.
pub(super) fn is_exact(parts: &[&mut Expr], types: &[DataType]) -> bool {
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

pub(super) fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
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

fn is_number(ty: &DataType) -> bool {
    ty.is_numeric() || ty.is_null()
}

/// What has all that is compared; `None` where DataFusion finds it.
pub(super) fn common(parts: &[&mut Expr], types: &[DataType], of: Of) -> Option<DataType> {
    let is_time = |ty: &DataType| matches!(ty, DataType::Time32(_) | DataType::Time64(_));
    if types.iter().all(is_time) && types.iter().any(|ty| *ty != types[0]) {
        return Some(DataType::Time64(TimeUnit::Nanosecond));
    }
    let is_known = |ty: &DataType| match of {
        Of::List | Of::Distinct => true,
        Of::Comparison => is_number(ty) || is_text(ty),
        Of::Choice => is_number(ty),
    };
    if !types.iter().any(DataType::is_decimal) || !types.iter().all(is_known) {
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
            Of::Distinct | Of::Comparison | Of::Choice => {
                digits <= i16::from(DECIMAL128_MAX_PRECISION) || types.iter().any(is_wide)
            }
        };
    (!has_room).then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, places))
}
