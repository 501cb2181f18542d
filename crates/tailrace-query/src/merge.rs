//! The columns of a table of several files that were written at different times: a column has a type that takes the values of
//! all of them.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema, TimeUnit};

/// The columns of all schemas, in the order of their first files. Types that differ become the wider number, the finer time,
/// or text.
///
/// # Errors
///
/// The name of a column whose types have nothing in common: a list in one file and a number in another.
pub(crate) fn merged(schemas: impl IntoIterator<Item = Arc<Schema>>) -> Result<Schema, String> {
    let mut fields: Vec<Field> = Vec::new();
    for schema in schemas {
        for field in schema.fields() {
            let ty = viewed(field.data_type());
            match fields.iter_mut().find(|known| known.name() == field.name()) {
                Some(known) => {
                    let common =
                        common(known.data_type(), &ty).ok_or_else(|| field.name().clone())?;
                    *known = Field::new(known.name(), common, true);
                }
                // A file may lack any column.
                None => fields.push(Field::new(field.name(), ty, true)),
            }
        }
    }
    Ok(Schema::new(fields))
}

/// The name that several columns have.
pub(crate) fn named_twice(schema: &Schema) -> Option<&str> {
    let mut known = HashSet::new();
    let mut names = schema.fields().iter().map(|field| field.name().as_str());
    names.find(|name| !known.insert(*name))
}

/// Text and bytes are read as views.
pub(crate) fn viewed(ty: &DataType) -> DataType {
    match ty {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => viewed(values),
        other => other.clone(),
    }
}

/// A type that takes the values of both.
fn common(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType::{
        Boolean, Date32, Decimal128, Float64, Int64, Null, Timestamp, UInt64, Utf8View,
    };
    if one == other || *other == Null {
        return Some(one.clone());
    }
    let is_number = |ty: &DataType| ty.is_integer() || ty.is_floating();
    let is_plain = |ty: &DataType| {
        ty.is_numeric() || matches!(ty, Boolean | Date32 | Timestamp(..) | Utf8View)
    };
    match (one, other) {
        (Null, other) => Some(other.clone()),
        (one, other) if one.is_integer() && other.is_integer() => {
            // Of unsigned numbers only the widest has values that Int64 has not.
            match *one == UInt64 || *other == UInt64 {
                true if one.is_unsigned_integer() && other.is_unsigned_integer() => Some(UInt64),
                true => Some(Utf8View),
                false => Some(Int64),
            }
        }
        (Decimal128(digits, one_scale), Decimal128(other_digits, other_scale)) => {
            let scale = *one_scale.max(other_scale);
            let whole = |digits: u8, scale: i8| i16::from(digits) - i16::from(scale);
            let whole = whole(*digits, *one_scale).max(whole(*other_digits, *other_scale));
            let digits = u8::try_from(whole + i16::from(scale))
                .ok()
                .filter(|digits| *digits <= DECIMAL128_MAX_PRECISION);
            Some(digits.map_or(Utf8View, |digits| Decimal128(digits, scale)))
        }
        // As everywhere in SQL: of whole numbers above 2^53 the last digits are lost.
        (one, other) if is_number(one) && is_number(other) => Some(Float64),
        (Timestamp(unit, zone), Timestamp(other_unit, other_zone))
            if zone.is_some() == other_zone.is_some() =>
        {
            let finer = unit.max(other_unit);
            let zone = if zone == other_zone {
                zone.clone()
            } else {
                Some("UTC".into())
            };
            Some(Timestamp(*finer, zone))
        }
        (Date32, Timestamp(unit, None)) | (Timestamp(unit, None), Date32) => {
            Some(Timestamp(*unit.max(&TimeUnit::Microsecond), None))
        }
        (one, other) if is_plain(one) && is_plain(other) => Some(Utf8View),
        (DataType::Struct(one), DataType::Struct(other)) => {
            let both = [one, other].map(|fields| Arc::new(Schema::new(fields.clone())));
            merged(both)
                .ok()
                .map(|schema| DataType::Struct(schema.fields))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use DataType::{Boolean, Date32, Float32, Float64, Int32, Int64, Null, UInt64, Utf8, Utf8View};

    #[test]
    fn types_take_the_values_of_both() {
        let ns =
            |zone: Option<&str>| DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into));
        let us =
            |zone: Option<&str>| DataType::Timestamp(TimeUnit::Microsecond, zone.map(Into::into));
        let list = DataType::new_list(Int64, true);
        let cases = [
            (Int32, Int64, Some(Int64)),
            (Int32, Float64, Some(Float64)),
            (Int64, Float64, Some(Float64)),
            (Int64, UInt64, Some(Utf8View)),
            (Float32, Float64, Some(Float64)),
            (
                DataType::Decimal128(10, 2),
                DataType::Decimal128(12, 3),
                Some(DataType::Decimal128(12, 3)),
            ),
            (
                DataType::Decimal128(38, 2),
                DataType::Decimal128(12, 10),
                Some(Utf8View),
            ),
            (Null, Int64, Some(Int64)),
            (Int64, Null, Some(Int64)),
            (Int64, Utf8View, Some(Utf8View)),
            (Boolean, Utf8View, Some(Utf8View)),
            (us(Some("UTC")), ns(Some("UTC")), Some(ns(Some("UTC")))),
            (
                us(Some("Europe/Paris")),
                ns(Some("UTC")),
                Some(ns(Some("UTC"))),
            ),
            (us(None), ns(Some("UTC")), Some(Utf8View)),
            (Date32, us(None), Some(us(None))),
            (list.clone(), list.clone(), Some(list.clone())),
            (list, Int64, None),
        ];
        for (one, other, want) in cases {
            assert_eq!(common(&one, &other), want, "{one} and {other}");
            assert_eq!(common(&other, &one), want, "{other} and {one}");
        }
    }

    #[test]
    fn columns_are_those_of_all_files() {
        let schema = |fields: &[(&str, DataType)]| {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, ty)| Field::new(*name, ty.clone(), false))
                .collect();
            Arc::new(Schema::new(fields))
        };
        let made = merged([
            schema(&[("a", Int32), ("b", Utf8)]),
            schema(&[("c", Boolean), ("a", Int64)]),
        ]);
        let made = made.expect("they have a common type");
        let fields: Vec<_> = made
            .fields()
            .iter()
            .map(|field| (field.name().as_str(), field.data_type().clone()))
            .collect();
        assert_eq!(fields, [("a", Int64), ("b", Utf8View), ("c", Boolean)]);
        assert!(made.fields().iter().all(|field| field.is_nullable()));
        let of_list = schema(&[("a", DataType::new_list(Int64, true))]);
        assert_eq!(
            merged([schema(&[("a", Int32)]), of_list]),
            Err("a".to_owned())
        );
    }
}
