//! `regexp_replace` whose replacement has a `$`, or digits behind a group. DataFusion takes what follows `$` for a group, and all digits for its
//! number, so that text is left out: `\1` stands for a group, what is behind its digit for itself, and so does `$`.

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
                let text = text.filter(|text| needs_other(text)).map(other);
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
    if !views.iter().flatten().any(needs_other) {
        return Ok(Arc::clone(texts));
    }
    let doubled: StringViewArray = views.iter().map(|text| text.map(other)).collect();
    Ok(cast(&doubled, texts.data_type())?)
}

fn needs_other(text: &str) -> bool {
    let digits = |pair: &[u8]| matches!(pair, [b'\\', b'0'..=b'9', b'0'..=b'9']);
    text.contains('$') || text.as_bytes().windows(3).any(digits)
}

/// What DataFusion takes for the same: `$$` is the only way to write `$`, and `${1}` a group with a digit behind it.
fn other(text: &str) -> String {
    let mut other = String::with_capacity(text.len() + 8);
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match (next, rest.peek().copied()) {
            ('$', _) => other.push_str("$$"),
            // Two of them are as good as one.
            ('\\', Some('\\')) if rest.clone().nth(1).is_some_and(|it| it.is_ascii_digit()) => {}
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                rest.next();
                other.extend(['$', '{', digit, '}']);
            }
            (next, _) => other.push(next),
        }
    }
    other
}
