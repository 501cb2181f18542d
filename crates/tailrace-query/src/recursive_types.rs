//! The types of recursive queries: the first SELECT of `WITH RECURSIVE` says what its columns are. DataFusion 55 casts what the second one gives to
//! them, and cuts what they cannot hold: `0.9` becomes 0, and a query that counts to 3 by halves never ends. Such a query is refused. A cast
//! that the query writes itself stands.
//!
//! In the plan a cast of the query looks as one of DataFusion. So each column of the second SELECT is put into a call first, which gives what it is
//! given: what stands around the call is DataFusion's. The checked plan is without them.

use std::ops::ControlFlow;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, RecursiveQuery, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, SelectItem, SetExpr, VisitorMut};
use tailrace_sql::tree::{each_step, map_exprs, map_parts, map_steps};
use tailrace_sql::walk::walk_mut;

use crate::error::{Error, name_of_type};

/// The operator by which the planner is asked for the call.
const OPERATOR: &str = "recursive column";

/// Puts the columns of second SELECTs into calls.
pub(crate) fn marked(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Marks);
}

struct Marks;

impl VisitorMut for Marks {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let Some(with) = query.with.as_mut().filter(|with| with.recursive) else {
            return ControlFlow::Continue(());
        };
        for table in &mut with.cte_tables {
            if let SetExpr::SetOperation { right, .. } = &mut *table.query.body {
                mark_all(right);
            }
        }
        ControlFlow::Continue(())
    }
}

fn mark_all(second: &mut SetExpr) {
    match second {
        SetExpr::Select(select) => select.projection.iter_mut().for_each(mark),
        SetExpr::Query(query) => mark_all(&mut query.body),
        _ => {}
    }
}

fn mark(item: &mut SelectItem) {
    let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
        return;
    };
    let null = ast::Expr::value(ast::Value::Null);
    let column = std::mem::replace(expr, null.clone());
    *expr = ast::Expr::BinaryOp {
        left: Box::new(column),
        op: BinaryOperator::Custom(OPERATOR.to_owned()),
        right: Box::new(null),
    };
}

/// Makes the calls.
#[derive(Debug)]
pub(crate) struct Planner;

impl ExprPlanner for Planner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        _: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        match &expr.op {
            BinaryOperator::Custom(name) if name == OPERATOR => {
                let signature = Signature::any(1, Volatility::Immutable);
                let column = ScalarUDF::new_from_impl(RecursiveColumn(signature));
                Ok(PlannerResult::Planned(column.call(vec![expr.left])))
            }
            _ => Ok(PlannerResult::Original(expr)),
        }
    }
}

/// The plan without the calls.
///
/// # Errors
///
/// A column of a second SELECT does not fit that of the first one.
pub(crate) fn checked(plan: LogicalPlan) -> std::result::Result<LogicalPlan, Error> {
    let mut error = None;
    let mut has_some = false;
    // The closure gives no error.
    let _ = each_step(&plan, &mut |step| {
        if let LogicalPlan::RecursiveQuery(query) = step {
            has_some = true;
            error = error.take().or_else(|| of_query(query));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    match error {
        Some(error) => Err(error),
        None if has_some => unmarked(plan).map_err(|error| Error::failed(&error.into())),
        None => Ok(plan),
    }
}

fn unmarked(plan: LogicalPlan) -> Result<LogicalPlan> {
    map_steps(plan, &mut |step| {
        let names = NamePreserver::new(&step);
        map_exprs(step, &mut |expr| {
            let name = names.save(&expr);
            let expr = map_parts(expr, &mut |expr| {
                Ok(match expr {
                    Expr::ScalarFunction(mut call) if call.func.inner().is::<RecursiveColumn>() => {
                        Transformed::yes(call.args.remove(0))
                    }
                    other => Transformed::no(other),
                })
            })?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })
    })
}

fn of_query(query: &RecursiveQuery) -> Option<Error> {
    let LogicalPlan::Projection(second) = &*query.recursive_term else {
        return None;
    };
    let fields = query.static_term.schema().fields().iter();
    fields.zip(&second.expr).find_map(|(field, expr)| {
        let given = given(expr)?.get_type(second.input.schema()).ok()?;
        let wanted = field.data_type();
        if !is_cut(&given, wanted) {
            return None;
        }
        let [wanted, given] = [wanted, &given].map(name_of_type);
        Some(Error {
            hint: Some("cast it in the first SELECT".to_owned()),
            ..Error::usage(format!(
                "column `{}` of the recursive query `{}` is {wanted} in its first SELECT and {given} in the second",
                field.name(),
                query.name
            ))
        })
    })
}

/// What the second SELECT gives for a column, if DataFusion casts it.
fn given(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Alias(alias) => given(&alias.expr),
        Expr::Cast(cast) => match &*cast.expr {
            Expr::ScalarFunction(call) => call
                .func
                .inner()
                .is::<RecursiveColumn>()
                .then_some(&*cast.expr),
            // Of a star, or of rows that are distinct.
            column @ Expr::Column(_) => Some(column),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a cast loses a part of a value, and does not say so.
fn is_cut(given: &DataType, wanted: &DataType) -> bool {
    use DataType::{Date32, Date64, Timestamp};
    let scale = |ty: &DataType| match ty {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        integer if integer.is_integer() => Some(0),
        _ => None,
    };
    match (given, wanted) {
        (Timestamp(..), Date32 | Date64) => true,
        (Timestamp(given, _), Timestamp(wanted, _)) => digits(*given) > digits(*wanted),
        (float, wanted) if float.is_floating() => scale(wanted).is_some(),
        (given, wanted) => match (scale(given), scale(wanted)) {
            (Some(given), Some(wanted)) => given > wanted,
            _ => false,
        },
    }
}

/// Of seconds, behind the point.
fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// Gives what it is given.
#[derive(Debug, PartialEq, Eq, Hash)]
struct RecursiveColumn(Signature);

impl ScalarUDFImpl for RecursiveColumn {
    fn name(&self) -> &str {
        "recursive_column"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.pop() {
            Some(column) => Ok(column),
            None => internal_err!("a call without an argument"),
        }
    }
}
