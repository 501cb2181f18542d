//! Defaults of `lag` and `lead`: DataFusion 55 casts them to the type of the values, which may not have them.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use tailrace_sql::tree::each_part;

use crate::error::{Error, word_in};

/// A default of which a part would be cut off.
pub(super) fn cut_default(call: &Expr, input: &DFSchema, sql: &str) -> Option<Error> {
    let mut error = None;
    // The closure gives no error.
    let _ = each_part(call, &mut |expr| {
        if let Expr::WindowFunction(called) = expr
            && let name @ ("lag" | "lead") = called.fun.name()
            && let [value, _, default] = &called.params.args[..]
            && let Ok(ty) = value.get_type(input)
            && let Some(default) = constant(default)
            && is_cut(&default, &ty)
            && let Ok(shown) = default.cast_to(&DataType::Utf8)
        {
            error = Some(Error {
                place: word_in(sql, name),
                hint: Some(format!(
                    "write {name}(CAST(x AS {}), ...), or a default of the type of x",
                    wider(&default)
                )),
                ..Error::usage(format!(
                    "{shown} cannot be the default of `{name}`: the type of its values does not have it"
                ))
            });
        }
        Ok(TreeNodeRecursion::Continue)
    });
    error
}

/// The value of an expression without columns.
pub(super) fn constant(default: &Expr) -> Option<ScalarValue> {
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let default = simplifier
        .coerce(default.clone(), &DFSchema::empty())
        .ok()?;
    match simplifier.simplify(default).ok()?.unalias() {
        Expr::Literal(value, _) => Some(value),
        _ => None,
    }
}

/// Whether numbers and times lose something on the way to such a type. Floats have about what is written.
fn is_cut(default: &ScalarValue, ty: &DataType) -> bool {
    let from = default.data_type();
    let is_exact = (from.is_numeric() && (ty.is_integer() || ty.is_decimal()))
        || matches!(
            (&from, ty),
            (DataType::Timestamp(..), DataType::Date32)
                | (DataType::Timestamp(..), DataType::Timestamp(..))
        );
    is_exact
        && default
            .cast_to(ty)
            .and_then(|cast| cast.cast_to(&from))
            .is_ok_and(|back| back != *default)
}

/// A type that has such a value.
fn wider(default: &ScalarValue) -> &'static str {
    match default.data_type() {
        DataType::Timestamp(..) => "TIMESTAMP",
        _ => "DOUBLE",
    }
}
