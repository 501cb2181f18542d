//! Sums, differences and products of integers, and of decimals of 38 digits. DataFusion 55 wraps around where they do not fit their type,
//! as its planner does not ask for the checked operations of its expressions. A query that computes a number beyond its type ends, as one
//! that divides by zero does.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef};
use arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr_common::datum;
use tailrace_sql::EachExpr;

/// The rule that asks for checked operations.
pub(super) fn rule() -> EachExpr {
    EachExpr::new("checked_arithmetic", of_expr)
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (is_checked, ty) = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let is_checked = Operation::of(*op).is_some()
                && (are(left, right, schema, DataType::is_integer)
                    || are(left, right, schema, |ty| {
                        matches!(ty, DataType::Decimal128(..))
                    }));
            (is_checked, expr.get_type(schema))
        }
        Expr::Negative(operand) => {
            let ty = operand.get_type(schema);
            (ty.as_ref().is_ok_and(DataType::is_integer), ty)
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let ty = match ty {
        Ok(ty) if is_checked && may_be_beyond(&ty) => ty,
        _ => return Ok(Transformed::no(expr)),
    };
    let (operation, left, right) = match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match Operation::of(op) {
            Some(operation) => (operation, *left, *right),
            None => {
                let same = BinaryExpr { left, op, right };
                return Ok(Transformed::no(Expr::BinaryExpr(same)));
            }
        },
        // The negative of the smallest number is beyond them.
        Expr::Negative(operand) => {
            let zero = Expr::Literal(ScalarValue::new_zero(&ty)?, None);
            (Operation::Subtract, zero, *operand)
        }
        other => return Ok(Transformed::no(other)),
    };
    let function = Arc::new(ScalarUDF::new_from_impl(operation.function(ty)));
    let checked = ScalarFunction::new_udf(function, vec![left, right]);
    Ok(Transformed::yes(Expr::ScalarFunction(checked)))
}

/// Both are of such a type: two dates are not, whose difference is an integer.
fn are(left: &Expr, right: &Expr, schema: &DFSchema, is: impl Fn(&DataType) -> bool) -> bool {
    let types = [left, right].map(|it| it.get_type(schema));
    types.iter().all(|ty| ty.as_ref().is_ok_and(&is))
}

/// Whether a number of this type can be beyond it: decimals of fewer digits get more of them.
fn may_be_beyond(ty: &DataType) -> bool {
    ty.is_integer() || matches!(ty, DataType::Decimal128(DECIMAL128_MAX_PRECISION, _))
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

    fn function(self, ty: DataType) -> Function {
        Function {
            operation: self,
            ty,
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

/// A checked operation on two integers of one type, or two decimals.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    operation: Operation,
    /// Of the result.
    ty: DataType,
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

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.ty.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|it| it.is_nullable());
        let field = Field::new(self.name(), self.ty.clone(), is_nullable);
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &args.args[..] else {
            return internal_err!("{} has two operands", self.name());
        };
        let operation = match self.operation {
            Operation::Add => numeric::add,
            Operation::Subtract => numeric::sub,
            Operation::Multiply => numeric::mul,
        };
        datum::apply(left, right, |left, right| {
            let result = operation(left, right)?;
            // Numbers of 39 digits may fit 128 bits.
            if let Some(decimals) = result.as_primitive_opt::<Decimal128Type>() {
                let found = decimals.validate_decimal_precision(decimals.precision());
                found.map_err(|_| {
                    ArrowError::ArithmeticOverflow("Overflow happened on: decimal".to_owned())
                })?;
            }
            Ok(result)
        })
    }
}
