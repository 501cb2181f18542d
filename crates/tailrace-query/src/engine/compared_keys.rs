//! Comparisons, sums, differences and negatives by which rows are put in order, as in `ORDER BY length(path) > 20`. DataFusion 55 looks at the bounds of both
//! sides to find out what order one of them has; where one side is computed, it takes bounds without a type, fails, and then no longer knows
//! that rows are in the order in which it has put them. As functions they have no bounds.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::compute::{and_kleene, or_kleene};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_err};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{self as physical, Column};
use datafusion::physical_expr_common::datum;
use tailrace_sql::tree::{map_exprs, map_parts, map_steps};

/// The rule that makes functions of them.
#[derive(Debug)]
pub(super) struct ComparedKeys;

impl AnalyzerRule for ComparedKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        map_steps(plan, &mut |step| match step {
            LogicalPlan::Sort(_) => of_step(step, of_key),
            LogicalPlan::Window(_) | LogicalPlan::Aggregate(_) => of_step(step, of_call),
            _ => Ok(Transformed::no(step)),
        })
    }

    fn name(&self) -> &str {
        "compared_keys"
    }
}

/// What becomes of an expression over columns.
type Of = fn(Expr, &DFSchema) -> Result<Transformed<Expr>>;

fn of_step(step: LogicalPlan, of: Of) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&step);
    let schema = merge_schema(&step.inputs());
    let step = map_exprs(step, &mut |expr| {
        let name = names.save(&expr);
        Ok(of(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?;
    match step.transformed {
        true => step.map_data(LogicalPlan::recompute_schema),
        false => Ok(step),
    }
}

/// The keys of a function that takes rows in an order.
fn of_call(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    map_parts(expr, &mut |mut expr| {
        let mut is_other = false;
        let mut change = |key: &mut Expr| -> Result<()> {
            let changed = of_key(std::mem::take(key), schema)?;
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

/// A key without operators over what is computed.
fn of_key(key: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    map_parts(key, &mut |expr| {
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_bounded(op) && (is_computed(&left) || is_computed(&right)) =>
            {
                Transformed::yes(as_function(*left, op, *right, schema)?)
            }
            Expr::Negative(operand) if is_computed(&operand) => {
                let ty = operand.get_type(schema)?;
                Transformed::yes(Operation::call(None, ty, vec![*operand]))
            }
            // It becomes two comparisons.
            Expr::Between(it)
                if [&it.expr, &it.low, &it.high]
                    .iter()
                    .any(|it| is_computed(it)) =>
            {
                let low = as_function((*it.expr).clone(), Operator::GtEq, *it.low, schema)?;
                let high = as_function(*it.expr, Operator::LtEq, *it.high, schema)?;
                let both = as_function(low, Operator::And, high, schema)?;
                Transformed::yes(match it.negated {
                    true => !both,
                    false => both,
                })
            }
            other => Transformed::no(other),
        })
    })
}

fn as_function(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Result<Expr> {
    let operation = BinaryExpr::new(Box::new(left), op, Box::new(right));
    let expr = Expr::BinaryExpr(operation);
    let ty = expr.get_type(schema)?;
    let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = expr else {
        return Ok(expr);
    };
    Ok(Operation::call(Some(op), ty, vec![*left, *right]))
}

/// Whether DataFusion looks at the bounds of its sides, and fails where they have no type.
fn is_bounded(op: Operator) -> bool {
    use Operator::{And, Gt, GtEq, Lt, LtEq, Minus, Or, Plus};
    matches!(op, Gt | GtEq | Lt | LtEq | And | Or | Plus | Minus)
}

fn is_computed(expr: &Expr) -> bool {
    !matches!(expr, Expr::Column(_) | Expr::Literal(..))
}

/// An operation on two values, or the negative of one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Operation {
    op: Option<Operator>,
    /// Of the result.
    ty: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for Operation {
    fn name(&self) -> &str {
        "operation"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn display_name(&self, operands: &[Expr]) -> Result<String> {
        Ok(match (self.op, operands) {
            (Some(op), [left, right]) => format!("{left} {op} {right}"),
            (None, [operand]) => format!("(- {operand})"),
            _ => return internal_err!("an operation has other operands"),
        })
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.ty.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let both = match (self.op, &args.args[..]) {
            (Some(Operator::And), _) => and_kleene,
            (Some(Operator::Or), _) => or_kleene,
            (None | Some(Operator::Plus | Operator::Minus), operands) => {
                return self.computed(operands);
            }
            (Some(op), [left, right]) => return datum::apply_cmp(op, left, right),
            _ => return internal_err!("an operation has other operands"),
        };
        let sides = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = [0, 1].map(|at| sides[at].as_boolean());
        let result: ArrayRef = Arc::new(both(left, right)?);
        Ok(ColumnarValue::Array(result))
    }
}

impl Operation {
    fn call(op: Option<Operator>, ty: DataType, operands: Vec<Expr>) -> Expr {
        let signature = Signature::any(operands.len(), Volatility::Immutable);
        ScalarUDF::new_from_impl(Operation { op, ty, signature }).call(operands)
    }

    /// As DataFusion computes it, which knows of times and intervals.
    fn computed(&self, operands: &[ColumnarValue]) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(operands)?;
        let fields = columns.iter().zip(["left", "right"]);
        let fields =
            fields.map(|(column, name)| Field::new(name, column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let left = Arc::new(Column::new("left", 0));
        let operation: Arc<dyn PhysicalExpr> = match self.op {
            Some(op) => Arc::new(physical::BinaryExpr::new(
                left,
                op,
                Arc::new(Column::new("right", 1)),
            )),
            None => Arc::new(physical::NegativeExpr::new(left)),
        };
        operation.evaluate(&RecordBatch::try_new(schema, columns)?)
    }
}
