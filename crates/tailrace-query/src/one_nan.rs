//! One NaN. Arrow compares floats in total order, in which a NaN with the sign bit is less than every number, and another value than one without
//! it. On x86 what has no value (0.0 / 0.0, infinity minus infinity) has that bit, where a literal has not. What may give such a NaN gives
//! the one without it here, so that NaN is greater than every number, and equal to itself, wherever a query looks at it.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, FieldRef, Float16Type, Float32Type, Float64Type,
};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, WindowFunctionDefinition,
};
use tailrace_sql::EachExpr;

/// The functions that give NaN for what is none, or give one the sign bit.
const FUNCTIONS: [&str; 20] = [
    "acos",
    "acosh",
    "array_avg",
    "array_distance",
    "array_product",
    "array_sum",
    "asin",
    "atanh",
    "cos",
    "cosine_distance",
    "cot",
    "inner_product",
    "ln",
    "log",
    "log10",
    "log2",
    "power",
    "sin",
    "sqrt",
    "tan",
];

/// The aggregates for which all NaN are the same, and which give the one: those of `aggregates.rs`, and `count`.
const AGGREGATES: [&str; 10] = [
    "avg",
    "corr",
    "count",
    "covar_pop",
    "covar_samp",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

/// The rule for operators and functions.
pub(crate) fn rule() -> EachExpr {
    EachExpr::new("one_nan", of_expr)
}

fn of_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let takes_any = match &mut expr {
        Expr::AggregateFunction(it) if AGGREGATES.contains(&it.func.name()) => {
            (!it.params.distinct).then_some(&mut it.params.args)
        }
        Expr::WindowFunction(it) => match &it.fun {
            WindowFunctionDefinition::AggregateUDF(fun) if AGGREGATES.contains(&fun.name()) => {
                (!it.params.distinct).then_some(&mut it.params.args)
            }
            _ => None,
        },
        _ => None,
    };
    if let Some(args) = takes_any {
        let bared = args.iter_mut().map(bare).filter(|is| *is).count();
        return Ok(Transformed::new_transformed(expr, bared > 0));
    }
    let may_give_one = match &expr {
        Expr::BinaryExpr(it) => is_arithmetic(it.op),
        // Nor can files leave out what the negative of a column cannot be, whose NaN their least values do not tell.
        Expr::Negative(operand) => !matches!(**operand, Expr::Literal(..)),
        Expr::ScalarFunction(it) => FUNCTIONS.contains(&it.func.name()),
        _ => false,
    };
    if !may_give_one || !expr.get_type(schema)?.is_floating() {
        return Ok(Transformed::no(expr));
    }
    match &mut expr {
        Expr::BinaryExpr(it) => {
            bare(&mut it.left);
            bare(&mut it.right);
        }
        Expr::Negative(operand) => {
            bare(operand);
        }
        _ => {}
    }
    let signature = Signature::any(1, Volatility::Immutable);
    let function = ScalarUDF::new_from_impl(OneNan(signature));
    Ok(Transformed::yes(function.call(vec![expr])))
}

fn is_arithmetic(op: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

/// Takes the step away again, where another one behind it makes it needless; whether there was one.
fn bare(expr: &mut Expr) -> bool {
    let Expr::ScalarFunction(call) = expr else {
        return false;
    };
    if !call.func.inner().is::<OneNan>() {
        return false;
    }
    let Some(operand) = call.args.pop() else {
        return false;
    };
    *expr = operand;
    true
}

/// Gives the floats that it is given, and the one NaN for every NaN.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OneNan(Signature);

impl ScalarUDFImpl for OneNan {
    fn name(&self) -> &str {
        "one_nan"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = &args.arg_fields[0];
        let field = Field::new(self.name(), of.data_type().clone(), of.is_nullable());
        Ok(Arc::new(field))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &args.args[0] {
            ColumnarValue::Array(floats) => ColumnarValue::Array(of_array(floats)),
            ColumnarValue::Scalar(float) => ColumnarValue::Scalar(of_scalar(float.clone())),
        })
    }
}

/// Floats with the one NaN; other values as they are.
pub(crate) fn of_array(floats: &ArrayRef) -> ArrayRef {
    macro_rules! one_nan {
        ($kind:ty) => {{
            type Float = <$kind as ArrowPrimitiveType>::Native;
            let known = floats.as_primitive::<$kind>();
            // Looking for one is much cheaper than a copy, and there is almost never one. Without a branch, several are looked at at once.
            let values = known.values().iter();
            match values.fold(false, |is, float| is | float.is_nan()) {
                true => Arc::new(known.unary::<_, $kind>(|float| match float.is_nan() {
                    true => Float::NAN,
                    false => float,
                })),
                false => Arc::clone(floats),
            }
        }};
    }
    match floats.data_type() {
        DataType::Float16 => one_nan!(Float16Type),
        DataType::Float32 => one_nan!(Float32Type),
        DataType::Float64 => one_nan!(Float64Type),
        _ => Arc::clone(floats),
    }
}

/// As [`of_array`], for one value.
pub(crate) fn of_scalar(float: ScalarValue) -> ScalarValue {
    match float {
        ScalarValue::Float32(Some(it)) if it.is_nan() => ScalarValue::Float32(Some(f32::NAN)),
        ScalarValue::Float64(Some(it)) if it.is_nan() => ScalarValue::Float64(Some(f64::NAN)),
        other => other,
    }
}
