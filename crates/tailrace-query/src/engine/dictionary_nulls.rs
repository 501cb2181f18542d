//! Columns of dictionaries, as Arrow files may have them: a value of the dictionary may be NULL, and rows that refer to it are. DataFusion
//! looks for NULL among the references only, and takes such a row for one with an empty text or 0.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, make_array};
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// Whether a column is one of a dictionary, or has one within it.
pub(super) fn has_dictionary(field: &Field) -> bool {
    let any = |fields: &Fields| fields.iter().any(|field| has_dictionary(field));
    match field.data_type() {
        DataType::Dictionary(..) => true,
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => has_dictionary(of),
        DataType::Struct(fields) => any(fields),
        _ => false,
    }
}

/// The column, whose NULLs are all among the references.
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
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &args.args[0] {
            ColumnarValue::Array(column) => ColumnarValue::Array(of_array(column)?),
            scalar @ ColumnarValue::Scalar(_) => scalar.clone(),
        })
    }
}

fn of_array(column: &ArrayRef) -> Result<ArrayRef> {
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        if dictionary.values().null_count() == 0 {
            return Ok(Arc::clone(column));
        }
        let parts = column.to_data().into_builder();
        return Ok(make_array(parts.nulls(column.logical_nulls()).build()?));
    }
    let fields: Vec<&Arc<Field>> = match column.data_type() {
        DataType::List(of)
        | DataType::LargeList(of)
        | DataType::FixedSizeList(of, _)
        | DataType::Map(of, _) => vec![of],
        DataType::Struct(fields) => fields.iter().collect(),
        _ => Vec::new(),
    };
    // A field that says it has no NULL cannot be given any.
    let is_mended = |field: &&&Arc<Field>| field.is_nullable() || field.data_type().is_nested();
    if !fields.iter().filter(is_mended).any(|it| has_dictionary(it)) {
        return Ok(Arc::clone(column));
    }
    let data = column.to_data();
    let children = data.child_data().iter().zip(&fields);
    let children = children.map(|(child, field)| match is_mended(&field) {
        true => Ok(of_array(&make_array(child.clone()))?.to_data()),
        false => Ok(child.clone()),
    });
    let children = children.collect::<Result<Vec<_>>>()?;
    Ok(make_array(
        data.into_builder().child_data(children).build()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::array::{DictionaryArray, Int8Array, StringArray};

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
}
