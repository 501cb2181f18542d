//! Comparisons by which rows are put in order, as in `ORDER BY length(path) > 20`. DataFusion 55 looks at the bounds of both sides to find out
//! what order a comparison has; where one of them is computed, it takes bounds without a type, fails, and then no longer knows that rows are
//! in the order in which it has put them. As functions they have no bounds.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::{and_kleene, or_kleene};
use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::{ScalarFunction, Sort};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum;

/// The rule that makes functions of them.
#[derive(Debug)]
pub(super) struct ComparedKeys;

impl AnalyzerRule for ComparedKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|step| match step {
            LogicalPlan::Sort(_) => of_step(step, of_key),
            LogicalPlan::Window(_) | LogicalPlan::Aggregate(_) => of_step(step, of_call),
            _ => Ok(Transformed::no(step)),
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "compared_keys"
    }
}

fn of_step(
    step: LogicalPlan,
    of: fn(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&step);
    let step = step.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(of(expr)?.update_data(|expr| name.restore(expr)))
    })?;
    match step.transformed {
        true => step.map_data(LogicalPlan::recompute_schema),
        false => Ok(step),
    }
}

/// The keys of a function that takes rows in an order.
fn of_call(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|mut expr| {
        let mut is_other = false;
        let mut change = |key: &mut Expr| -> Result<()> {
            let changed = of_key(std::mem::take(key))?;
            is_other |= changed.transformed;
            *key = changed.data;
            Ok(())
        };
        let order_by = match &mut expr {
            Expr::AggregateFunction(it) => &mut it.params.order_by,
            Expr::WindowFunction(it) => {
                it.params
                    .partition_by
                    .iter_mut()
                    .try_for_each(&mut change)?;
                &mut it.params.order_by
            }
            _ => return Ok(Transformed::no(expr)),
        };
        let mut keys = order_by.iter_mut().map(|Sort { expr, .. }| expr);
        keys.try_for_each(change)?;
        Ok(Transformed::new_transformed(expr, is_other))
    })
}

/// A key without comparisons of what is computed.
fn of_key(key: Expr) -> Result<Transformed<Expr>> {
    key.transform_up(|expr| {
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_bounded(op) && (is_computed(&left) || is_computed(&right)) =>
            {
                let signature = Signature::any(2, Volatility::Immutable);
                let function = Arc::new(ScalarUDF::new_from_impl(Compared { op, signature }));
                let called = ScalarFunction::new_udf(function, vec![*left, *right]);
                Transformed::yes(Expr::ScalarFunction(called))
            }
            other => Transformed::no(other),
        })
    })
}

/// Whether DataFusion looks at the bounds of its sides, and fails where they have no type.
fn is_bounded(op: Operator) -> bool {
    use Operator::{And, Gt, GtEq, Lt, LtEq, Or};
    matches!(op, Gt | GtEq | Lt | LtEq | And | Or)
}

fn is_computed(expr: &Expr) -> bool {
    !matches!(expr, Expr::Column(_) | Expr::Literal(..))
}

/// A comparison, or both or one of two conditions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Compared {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for Compared {
    fn name(&self) -> &str {
        "compared"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn display_name(&self, operands: &[Expr]) -> Result<String> {
        let [left, right] = operands else {
            return internal_err!("a comparison has two sides");
        };
        Ok(format!("{left} {} {right}", self.op))
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &args.args[..] else {
            return internal_err!("a comparison has two sides");
        };
        let both = match self.op {
            Operator::And => and_kleene,
            Operator::Or => or_kleene,
            op => return datum::apply_cmp(op, left, right),
        };
        let sides = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = [0, 1].map(|at| sides[at].as_boolean());
        let result: ArrayRef = Arc::new(both(left, right)?);
        Ok(ColumnarValue::Array(result))
    }
}
