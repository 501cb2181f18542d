//! `regexp_match` with all groups of the expression. That of DataFusion leaves out those that took no part in the match, so that the ones
//! behind them move.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewArray, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};
use regex::Regex;

/// What a call gives.
pub(super) fn invoke(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    let is_scalar = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
    let are_scalars = args.args.iter().all(is_scalar);
    let rows = if are_scalars { 1 } else { args.number_rows };
    let texts = args.args.iter().map(|arg| {
        let array = cast(&arg.to_array(rows)?, &DataType::Utf8View)?;
        Ok(array.as_string_view().clone())
    });
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let found = matches(&texts)?;
    let found = cast(&found, args.return_field.data_type())?;
    Ok(match are_scalars {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?),
        false => ColumnarValue::Array(found),
    })
}

/// The groups of each first match; the whole match of an expression without groups.
fn matches(texts: &[StringViewArray]) -> Result<ArrayRef> {
    let [values, patterns, rest @ ..] = texts else {
        return exec_err!("regexp_match takes a text and a regular expression");
    };
    let flags = rest.first();
    // Of the row before, mostly the same.
    let mut last: Option<(&str, Option<&str>, Regex)> = None;
    let mut found = ListBuilder::new(StringViewBuilder::new());
    for row in 0..values.len() {
        if texts.iter().any(|it| it.is_null(row)) {
            found.append_null();
            continue;
        }
        let (pattern, flags) = (patterns.value(row), flags.map(|it| it.value(row)));
        let regex = match last.take() {
            Some((of, with, regex)) if (of, with) == (pattern, flags) => regex,
            _ => compile(pattern, flags)?,
        };
        match regex.captures(values.value(row)) {
            None => found.append_null(),
            Some(groups) => {
                let skipped = usize::from(groups.len() > 1);
                for group in groups.iter().skip(skipped) {
                    found.values().append_option(group.map(|it| it.as_str()));
                }
                found.append(true);
            }
        }
        last = Some((pattern, flags, regex));
    }
    Ok(Arc::new(found.finish()))
}

fn compile(pattern: &str, flags: Option<&str>) -> Result<Regex> {
    let whole = match flags {
        Some(flags) if flags.contains('g') => {
            return exec_err!("regexp_match() does not support the \"global\" option");
        }
        Some(flags) if !flags.is_empty() => format!("(?{flags}){pattern}"),
        _ => pattern.to_owned(),
    };
    Regex::new(&whole)
        .map_err(|error| exec_datafusion_err!("Regular expression did not compile: {error:?}"))
}
