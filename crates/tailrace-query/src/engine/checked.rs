//! Sums, differences and products of integers. DataFusion 55 wraps around where they do not fit their type, as its planner does not ask for
//! the checked operations of its expressions. A query that computes a number beyond its type ends, as one that divides by zero does.

use std::sync::Arc;

use arrow::compute::kernels::numeric;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum;

/// The rule that asks for checked operations.
#[derive(Debug)]
pub(super) struct Checked;

impl AnalyzerRule for Checked {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(of_step)?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "checked_arithmetic"
    }
}

fn of_step(step: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&step);
    let mut schema = merge_schema(&step.inputs());
    if let LogicalPlan::TableScan(scan) = &step {
        schema.merge(&scan.projected_schema);
    }
    let step = step.map_expressions(|expr| {
        let name = names.save(&expr);
        let expr = expr.transform_up(|expr| of_expr(expr, &schema))?;
        Ok(expr.update_data(|expr| name.restore(expr)))
    })?;
    step.map_data(LogicalPlan::recompute_schema)
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operation, left, right) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match Operation::of(op) {
            Some(operation) if is_integer(&left, schema) && is_integer(&right, schema) => {
                (operation, *left, *right)
            }
            _ => {
                let same = BinaryExpr { left, op, right };
                return Ok(Transformed::no(Expr::BinaryExpr(same)));
            }
        },
        // The negative of the smallest number is beyond them.
        Expr::Negative(operand) if is_integer(&operand, schema) => {
            let zero = ScalarValue::new_zero(&operand.get_type(schema)?)?;
            (Operation::Subtract, Expr::Literal(zero, None), *operand)
        }
        other => return Ok(Transformed::no(other)),
    };
    let function = Arc::new(ScalarUDF::new_from_impl(operation.function()));
    let checked = ScalarFunction::new_udf(function, vec![left, right]);
    Ok(Transformed::yes(Expr::ScalarFunction(checked)))
}

fn is_integer(expr: &Expr, schema: &dyn ExprSchema) -> bool {
    expr.get_type(schema).is_ok_and(|ty| ty.is_integer())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
}

impl Operation {
    fn of(operator: Operator) -> Option<Operation> {
        match operator {
            Operator::Plus => Some(Operation::Add),
            Operator::Minus => Some(Operation::Subtract),
            Operator::Multiply => Some(Operation::Multiply),
            _ => None,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Operation::Add => "+",
            Operation::Subtract => "-",
            Operation::Multiply => "*",
        }
    }

    fn function(self) -> Function {
        Function {
            operation: self,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

/// A checked operation on two integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    operation: Operation,
    signature: Signature,
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Add => "checked_add",
            Operation::Subtract => "checked_subtract",
            Operation::Multiply => "checked_multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn display_name(&self, operands: &[Expr]) -> Result<String> {
        let [left, right] = operands else {
            return internal_err!("{} has two operands", self.name());
        };
        Ok(format!("{left} {} {right}", self.operation.sign()))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [left, right] if left == right => Ok(left.clone()),
            _ => internal_err!("{} of {types:?}", self.name()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types = args.arg_fields.iter().map(|it| it.data_type().clone());
        let ty = self.return_type(&types.collect::<Vec<_>>())?;
        let is_nullable = args.arg_fields.iter().any(|it| it.is_nullable());
        Ok(Arc::new(Field::new(self.name(), ty, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &args.args[..] else {
            return internal_err!("{} has two operands", self.name());
        };
        match self.operation {
            Operation::Add => datum::apply(left, right, numeric::add),
            Operation::Subtract => datum::apply(left, right, numeric::sub),
            Operation::Multiply => datum::apply(left, right, numeric::mul),
        }
    }
}
