//! Dates of CSV files. Arrow's reader takes a time for a date and drops its hours, so dates are read as texts, of which this
//! makes dates.

use std::sync::Arc;

use arrow::array::{AsArray, Date32Array};
use arrow::compute::kernels::cast_utils::Parser;
use arrow::datatypes::{DataType, Date32Type};
use datafusion::common::{Result, ScalarValue, exec_datafusion_err};
use datafusion::logical_expr::{ColumnarValue, Expr, Volatility, create_udf, lit};

/// `YYYY-MM-DD`.
const LEN: usize = 10;

/// The dates of a column of texts.
///
/// Running it fails at a text that is no date alone, such as a date with a time.
pub(super) fn date_of(column: Expr, name: &str) -> Expr {
    let dates = create_udf(
        "csv_date",
        vec![DataType::Utf8View, DataType::Utf8],
        DataType::Date32,
        Volatility::Immutable,
        Arc::new(|args: &[ColumnarValue]| dates(args)),
    );
    dates.call(vec![column, lit(name)])
}

fn dates(args: &[ColumnarValue]) -> Result<ColumnarValue> {
    let [texts, ColumnarValue::Scalar(ScalarValue::Utf8(Some(name)))] = args else {
        return datafusion::common::internal_err!("a column of dates without a name");
    };
    let texts = texts.to_array(1)?;
    let date = |text: &str| {
        let day = Some(text).filter(|text| text.len() == LEN);
        day.and_then(Date32Type::parse).ok_or_else(|| {
            exec_datafusion_err!(
                "the value '{text}' in the column `{name}` of a CSV file is no date, which is its type by the first rows; \
                 `--columns {name}=text` reads the column as text, and `--columns {name}=timestamp` as times"
            )
        })
    };
    let dates = texts
        .as_string_view()
        .iter()
        .map(|text| text.map(date).transpose());
    let dates: Date32Array = dates.collect::<Result<_>>()?;
    Ok(ColumnarValue::Array(Arc::new(dates)))
}
