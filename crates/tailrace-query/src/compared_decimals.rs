//! What decimals are compared with. DataFusion 55 rounds texts to the decimals' places: here they have places of their own. In lists of IN and beside
//! IS DISTINCT FROM it makes decimals of 15 places of floats, which most do not fit into: they stay floats, as beside `=`. And lists have room
//! for 38 digits before a point and others behind it.

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, cast};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::EachExpr;

/// The places of a text behind its point.
const PLACES: i8 = 20;

/// Casts what stands there. DataFusion has not made the types agree yet.
pub(crate) fn with_room(plan: LogicalPlan) -> Result<LogicalPlan> {
    EachExpr::new("compared_decimals", of_expr).analyze(plan, &ConfigOptions::default())
}

fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    let (mut parts, of): (Vec<&mut Expr>, Of) = match &mut expr {
        Expr::InList(InList { expr, list, .. }) => {
            let parts = std::iter::once(&mut **expr).chain(list);
            (parts.collect(), Of::List)
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            IsDistinctFrom | IsNotDistinctFrom => (vec![left, right], Of::Distinct),
            Eq | NotEq | Lt | LtEq | Gt | GtEq => (vec![left, right], Of::Comparison),
            _ => return Ok(Transformed::no(expr)),
        },
        _ => return Ok(Transformed::no(expr)),
    };
    let types = parts.iter().map(|part| part.get_type(schema));
    let Ok(types) = types.collect::<Result<Vec<_>>>() else {
        return Ok(Transformed::no(expr));
    };
    let of_data = parts.iter().zip(&types);
    let mut of_data = of_data.filter(|(part, _)| part.any_column_refs());
    // A column of decimals is compared as it is, so that files whose numbers are others are left out.
    if of != Of::List && of_data.any(|(_, ty)| ty.is_decimal()) {
        return Ok(Transformed::no(expr));
    }
    let Some(common) = common(&types, of) else {
        return Ok(Transformed::no(expr));
    };
    for part in &mut parts {
        let value = std::mem::take(&mut **part);
        **part = cast(value, common.clone());
    }
    Ok(Transformed::yes(expr))
}

/// What compares values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    List,
    Distinct,
    Comparison,
}

/// What has all that is compared; `None` where DataFusion finds it.
fn common(types: &[DataType], of: Of) -> Option<DataType> {
    let is_text = |ty: &DataType| {
        matches!(
            ty,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        )
    };
    if !types.iter().any(DataType::is_decimal) {
        return None;
    }
    if types.iter().any(DataType::is_floating) {
        return (of != Of::Comparison).then_some(DataType::Float64);
    }
    let has_text = types.iter().any(is_text);
    let places = types.iter().map(|ty| match ty {
        DataType::Decimal128(_, places) => *places,
        ty if is_text(ty) => PLACES,
        _ => 0,
    });
    let places = places.max().unwrap_or(0);
    let has_room = !has_text && (of != Of::List || places <= 0);
    (!has_room).then_some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, places))
}
