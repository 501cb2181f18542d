//! Whole numbers of 20 to 38 digits in the query itself. DataFusion 55 makes floats of them, which round them; decimals have all digits.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, CastKind, DataType, ExactNumberInfo, Expr, Value};
use tailrace_sql::walk::expressions_mut;

/// The most digits that a decimal has.
const DIGITS_MAX: usize = 38;

/// Writes such numbers as casts of texts.
pub(crate) fn as_decimals(query: &mut ast::Query) {
    let _ = expressions_mut(query, &mut |expr| {
        if let Expr::Value(value) = expr
            && let Value::Number(number, false) = &value.value
            && is_wide(number)
        {
            let text = Value::SingleQuotedString(number.clone());
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(text.with_span(value.span))),
                data_type: DataType::Decimal(ExactNumberInfo::PrecisionAndScale(
                    DIGITS_MAX as u64,
                    0,
                )),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    });
}

/// Whether it has digits alone, beyond 64 bits.
fn is_wide(number: &str) -> bool {
    number.bytes().all(|byte| byte.is_ascii_digit())
        && number.trim_start_matches('0').len() <= DIGITS_MAX
        && number.parse::<u64>().is_err()
}
