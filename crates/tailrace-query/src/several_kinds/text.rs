//! Values of several kinds as texts. Beside a text, and where a function wants one, DataFusion casts such a value to text, and that cast keeps
//! what is a text and loses all else: 7 was NULL. Its JSON functions look for casts before that one is there. Here such a value is the text
//! that `->>` gives. What a regular expression is compared with has to be one before the types are known: that is planned here.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, AsArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, internal_datafusion_err};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, binary_expr, cast,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use datafusion_functions_json::udfs::json_as_text_udf;
use datafusion_functions_json::{JSON_UNION_DATA_TYPE, JsonUnionEncoder, JsonUnionValue};
use tailrace_sql::EachExpr;

/// The rule that casts them, once DataFusion has made the types agree.
pub(crate) fn rule() -> EachExpr {
    EachExpr::new("several_kinds_as_texts", of_expr)
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (operand, to) = match &expr {
        Expr::Cast(it) => (&it.expr, it.field.data_type()),
        Expr::TryCast(it) => (&it.expr, it.field.data_type()),
        _ => return Ok(Transformed::no(expr)),
    };
    let ty = operand.get_type(schema);
    if !to.is_string() || !ty.is_ok_and(|ty| is_json(&ty)) {
        return Ok(Transformed::no(expr));
    }
    let to = to.clone();
    let operand = match expr {
        Expr::Cast(it) => it.expr,
        Expr::TryCast(it) => it.expr,
        other => return Ok(Transformed::no(other)),
    };
    let text = text_of(*operand);
    let is_same = text.get_type(schema)? == to;
    Ok(Transformed::yes(match is_same {
        true => text,
        false => cast(text, to),
    }))
}

/// Plans regular expressions over such values.
#[derive(Debug)]
pub(crate) struct Planner;

impl ExprPlanner for Planner {
    fn plan_binary_op(
        &self,
        expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let op = match expr.op {
            BinaryOperator::PGRegexMatch => Operator::RegexMatch,
            BinaryOperator::PGRegexIMatch => Operator::RegexIMatch,
            BinaryOperator::PGRegexNotMatch => Operator::RegexNotMatch,
            BinaryOperator::PGRegexNotIMatch => Operator::RegexNotIMatch,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let is_json = |side: &Expr| side.get_type(schema).is_ok_and(|ty| is_json(&ty));
        if !is_json(&expr.left) && !is_json(&expr.right) {
            return Ok(PlannerResult::Original(expr));
        }
        let text = |side: Expr| match is_json(&side) {
            true => text_of(side),
            false => side,
        };
        let (left, right) = (text(expr.left), text(expr.right));
        Ok(PlannerResult::Planned(binary_expr(left, op, right)))
    }
}

/// Whether values of this type are those of JSON.
pub(super) fn is_json(ty: &DataType) -> bool {
    *ty == *JSON_UNION_DATA_TYPE
}

/// The text of a value of several kinds.
pub(super) fn text_of(mut value: Expr) -> Expr {
    while let Expr::Alias(named) = value {
        value = *named.expr;
    }
    match value {
        Expr::ScalarFunction(call) if call.func.name() == "json_get" => {
            json_as_text_udf().call(call.args)
        }
        // A column of a subquery, or one value of two.
        other => {
            let signature = Signature::any(1, Volatility::Immutable);
            ScalarUDF::new_from_impl(AsText(signature)).call(vec![other])
        }
    }
}

/// The text of a value of several kinds.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AsText(Signature);

impl ScalarUDFImpl for AsText {
    fn name(&self) -> &str {
        "as_text"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = args.args[0].to_array(args.number_rows)?;
        let union = values.as_union_opt().cloned();
        let union = union.and_then(JsonUnionEncoder::from_union);
        let union =
            union.ok_or_else(|| internal_datafusion_err!("{} is not JSON", values.data_type()))?;
        let mut texts = StringBuilder::with_capacity(union.len(), 0);
        for row in 0..union.len() {
            match union.get_value(row) {
                JsonUnionValue::JsonNull => {
                    texts.append_null();
                    continue;
                }
                JsonUnionValue::Bool(it) => write!(texts, "{it}"),
                JsonUnionValue::Int(it) => write!(texts, "{it}"),
                // As DataFusion writes it, with a point or an exponent.
                JsonUnionValue::Float(it) => write!(texts, "{it:?}"),
                JsonUnionValue::Str(it)
                | JsonUnionValue::Array(it)
                | JsonUnionValue::Object(it) => write!(texts, "{it}"),
            }
            .map_err(|_| internal_datafusion_err!("a text cannot be written"))?;
            texts.append_value("");
        }
        Ok(ColumnarValue::Array(Arc::new(texts.finish())))
    }
}
