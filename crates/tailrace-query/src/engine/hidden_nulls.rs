//! NULLs of Arrow files that DataFusion does not see.
//!
//! A value of a dictionary may be NULL, and rows that refer to it are: DataFusion looks for NULL among the references only, and takes
//! such a row for one with an empty text or 0. Where a struct is NULL its members may hold any value: DataFusion takes `s['a']` from
//! the member alone. So NULLs are written where it looks for them. Fields within such columns may be NULL afterwards, whatever the
//! file says of them.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, GenericListArray, MapArray, OffsetSizeTrait,
    StructArray, make_array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Whether NULLs may be hidden in a column: in a dictionary, or in a struct that may be NULL.
pub(super) fn may_hide_nulls(field: &Field) -> bool {
    match field.data_type() {
        DataType::Dictionary(..) => true,
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => may_hide_nulls(of),
        DataType::Struct(fields) => {
            field.is_nullable() || fields.iter().any(|field| may_hide_nulls(field))
        }
        _ => false,
    }
}

/// The column, whose NULLs are all where they are looked for.
pub(super) fn with_nulls(column: Expr) -> Expr {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(WithNulls { signature }).call(vec![column])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WithNulls {
    signature: Signature,
}

impl ScalarUDFImpl for WithNulls {
    fn name(&self) -> &str {
        "with_nulls"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(nullable(&types[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &args.args[0] {
            ColumnarValue::Array(column) => ColumnarValue::Array(of_array(column)?),
            scalar @ ColumnarValue::Scalar(_) => scalar.clone(),
        })
    }
}

/// The type, whose fields may be NULL but for keys of maps.
pub(super) fn nullable(ty: &DataType) -> DataType {
    let field = |field: &FieldRef| {
        let inner = nullable(field.data_type());
        let field = Field::clone(field).with_data_type(inner);
        Arc::new(field.with_nullable(true))
    };
    match ty {
        DataType::List(of) => DataType::List(field(of)),
        DataType::LargeList(of) => DataType::LargeList(field(of)),
        DataType::FixedSizeList(of, len) => DataType::FixedSizeList(field(of), *len),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, is_sorted) => {
            let DataType::Struct(pair) = entries.data_type() else {
                return ty.clone();
            };
            let key = pair.iter().take(1).cloned();
            let pair: Fields = key.chain(pair.iter().skip(1).map(field)).collect();
            let entries = Field::clone(entries).with_data_type(DataType::Struct(pair));
            DataType::Map(Arc::new(entries), *is_sorted)
        }
        ty => ty.clone(),
    }
}

/// Whether a column hides a NULL, at any depth.
fn hides_null(column: &dyn Array) -> bool {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        return dictionary.values().null_count() > 0;
    }
    match column.data_type() {
        DataType::Struct(_) => {
            let of = column.as_struct();
            of.null_count() > 0 || of.columns().iter().any(|it| hides_null(it))
        }
        DataType::List(_) => hides_null(column.as_list::<i32>().values()),
        DataType::LargeList(_) => hides_null(column.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => hides_null(column.as_fixed_size_list().values()),
        DataType::Map(..) => hides_null(column.as_map().entries()),
        _ => false,
    }
}

/// The column with the type that [`nullable`] makes of its own.
fn of_array(column: &ArrayRef) -> Result<ArrayRef> {
    let ty = nullable(column.data_type());
    if ty == *column.data_type() && !hides_null(column) {
        return Ok(Arc::clone(column));
    }
    if let DataType::Dictionary(..) = ty {
        let parts = column.to_data().into_builder();
        return Ok(make_array(parts.nulls(column.logical_nulls()).build()?));
    }
    Ok(match ty {
        DataType::Struct(_) => of_struct(column.as_struct())?,
        DataType::List(of) => Arc::new(of_list(column.as_list::<i32>(), of)?),
        DataType::LargeList(of) => Arc::new(of_list(column.as_list::<i64>(), of)?),
        DataType::FixedSizeList(..) => {
            let data = column.to_data();
            let values = of_array(&make_array(data.child_data()[0].clone()))?;
            let parts = data.into_builder().data_type(ty);
            make_array(parts.child_data(vec![values.to_data()]).build()?)
        }
        DataType::Map(of, is_sorted) => {
            let map = column.as_map();
            let entries = of_entries(map.entries(), &of)?;
            let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
            Arc::new(MapArray::try_new(of, offsets, entries, nulls, is_sorted)?)
        }
        _ => Arc::clone(column),
    })
}

fn of_list<O: OffsetSizeTrait>(
    list: &GenericListArray<O>,
    of: FieldRef,
) -> Result<GenericListArray<O>> {
    let values = of_array(list.values())?;
    let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
    Ok(GenericListArray::try_new(of, offsets, values, nulls)?)
}

/// The entries of a map, whose keys stay as they are.
fn of_entries(entries: &StructArray, of: &Field) -> Result<StructArray> {
    let DataType::Struct(fields) = of.data_type() else {
        return Ok(entries.clone());
    };
    let columns = entries.columns().iter().enumerate();
    let columns = columns.map(|(at, column)| match at {
        0 => Ok(Arc::clone(column)),
        _ => of_array(column),
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let nulls = entries.nulls().cloned();
    Ok(StructArray::try_new(fields.clone(), columns, nulls)?)
}

fn of_struct(column: &StructArray) -> Result<ArrayRef> {
    let DataType::Struct(fields) = nullable(column.data_type()) else {
        return Ok(Arc::new(column.clone()));
    };
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    let columns = column.columns().iter();
    let columns = columns.map(|member| of_array(&masked(member, nulls)?));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let (len, nulls) = (column.len(), column.nulls().cloned());
    let made = StructArray::try_new_with_length(fields, columns, nulls, len)?;
    Ok(Arc::new(made))
}

/// A member that is NULL where its struct is. Members whose type has no place for that stay as they are.
fn masked(member: &ArrayRef, nulls: Option<&NullBuffer>) -> Result<ArrayRef> {
    let Some(nulls) = nulls else {
        return Ok(Arc::clone(member));
    };
    match member.data_type() {
        DataType::Null | DataType::Union(..) | DataType::RunEndEncoded(..) => {
            Ok(Arc::clone(member))
        }
        _ => {
            let is_null = BooleanArray::new(!nulls.inner(), None);
            Ok(nullif(member, &is_null)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{DictionaryArray, Int8Array, Int32Array, StringArray};

    #[test]
    fn null_values_are_null() {
        let keys = Int8Array::from(vec![Some(0), Some(1), None, Some(2)]);
        let values = StringArray::from(vec![Some("x"), None, Some("y")]);
        let column: ArrayRef = Arc::new(DictionaryArray::new(keys, Arc::new(values)));
        assert_eq!(column.null_count(), 1);
        let mended = of_array(&column).expect("its parts are sound");
        assert_eq!(mended.data_type(), column.data_type());
        let nulls: Vec<bool> = (0..4).map(|row| mended.is_null(row)).collect();
        assert_eq!(nulls, [false, true, true, false]);
        let tail = of_array(&column.slice(1, 3)).expect("its parts are sound");
        let nulls: Vec<bool> = (0..3).map(|row| tail.is_null(row)).collect();
        assert_eq!(nulls, [true, true, false]);
    }

    #[test]
    fn members_of_a_null_struct_are_null() {
        let number = Arc::new(Field::new("number", DataType::Int32, false));
        let inner_fields = Fields::from(vec![number]);
        let values: ArrayRef = Arc::new(Int32Array::from(vec![7, 8, 9]));
        let inner = StructArray::new(inner_fields.clone(), vec![values], None);
        let inner_field = Field::new("inner", DataType::Struct(inner_fields), false);
        let nulls = NullBuffer::from(vec![true, false, true]);
        let fields = Fields::from(vec![inner_field]);
        let outer: ArrayRef =
            Arc::new(StructArray::new(fields, vec![Arc::new(inner)], Some(nulls)));

        for (column, expected) in [
            (Arc::clone(&outer), vec![Some(7), None, Some(9)]),
            (outer.slice(1, 2), vec![None, Some(9)]),
        ] {
            let mended = of_array(&column).expect("its parts are sound");
            assert_eq!(*mended.data_type(), nullable(column.data_type()));
            let numbers = mended.as_struct().column(0).as_struct().column(0);
            let numbers: Vec<Option<i32>> = numbers
                .as_primitive::<arrow::datatypes::Int32Type>()
                .iter()
                .collect();
            assert_eq!(numbers, expected);
        }
    }
}
