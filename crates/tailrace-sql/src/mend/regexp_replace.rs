//! `regexp_replace` whose replacement has a `$`. DataFusion takes what follows for a group, so that text is left out: `\1` stands for a group,
//! and `$` for itself.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl};

/// What a call gives.
pub(super) fn invoke(
    known: &dyn ScalarUDFImpl,
    mut args: ScalarFunctionArgs,
) -> Result<ColumnarValue> {
    if let Some(replacement) = args.args.get_mut(2) {
        let doubled = match &*replacement {
            ColumnarValue::Scalar(value) => {
                let text = value.try_as_str().flatten();
                let text = text.filter(|text| text.contains('$')).map(doubled);
                let value =
                    text.map(|text| ScalarValue::Utf8(Some(text)).cast_to(&value.data_type()));
                value.transpose()?.map(ColumnarValue::Scalar)
            }
            ColumnarValue::Array(texts) => Some(ColumnarValue::Array(of_array(texts)?)),
        };
        if let Some(doubled) = doubled {
            *replacement = doubled;
        }
    }
    known.invoke_with_args(args)
}

fn of_array(texts: &ArrayRef) -> Result<ArrayRef> {
    let views = cast(texts, &DataType::Utf8View)?;
    let views = views.as_string_view();
    if !views.iter().flatten().any(|text| text.contains('$')) {
        return Ok(Arc::clone(texts));
    }
    let doubled: StringViewArray = views.iter().map(|text| text.map(doubled)).collect();
    Ok(cast(&doubled, texts.data_type())?)
}

/// `$$` is the only way to write one.
fn doubled(text: &str) -> String {
    text.replace('$', "$$")
}
