//! Functions of DataFusion 55 that are mended. They take the place of those with their names, and are DataFusion's in all that is not mended.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, StructFieldMapping,
};

use super::{
    ceil, counts, date_part, date_trunc, orders, regexp_match, regexp_replace, rounding,
    to_timestamp,
};

/// Puts the mended functions in the place of DataFusion's.
///
/// # Errors
/// The registry refuses a function.
pub fn mend_functions(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for name in registry.udfs() {
        if let Some(mended) = mended(&registry.udf(&name)?) {
            registry.register_udf(mended)?;
        }
    }
    Ok(())
}

/// A call of the mended function, also where a planner takes DataFusion's without asking for its name, as for `extract(year FROM ...)`.
pub(super) fn replaced(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::ScalarFunction(mut call) => {
            let mended = mended(&call.func);
            let is_replaced = mended.is_some();
            call.func = mended.unwrap_or(call.func);
            Transformed::new_transformed(Expr::ScalarFunction(call), is_replaced)
        }
        other => Transformed::no(other),
    })
}

/// The mended `date_trunc`.
pub(super) fn date_trunc() -> ScalarUDF {
    let known = datafusion::functions::datetime::date_trunc();
    let mend = Mend::DateTrunc;
    ScalarUDF::new_from_impl(Mended { known, mend })
}

/// The mended `trunc`.
pub(super) fn trunc() -> ScalarUDF {
    let known = datafusion::functions::math::trunc();
    let mend = Mend::Trunc;
    ScalarUDF::new_from_impl(Mended { known, mend })
}

/// The mended function, if this one is DataFusion's and wrong.
fn mended(known: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    let mend = match known.name() {
        "date_part" => Mend::DatePart,
        "date_trunc" => Mend::DateTrunc,
        "regexp_match" => Mend::RegexpMatch,
        "regexp_replace" => Mend::RegexpReplace,
        "round" => Mend::Round,
        "trunc" => Mend::Trunc,
        "to_timestamp"
        | "to_timestamp_seconds"
        | "to_timestamp_millis"
        | "to_timestamp_micros"
        | "to_timestamp_nanos" => Mend::ToTimestamp,
        "ceil" | "floor" => Mend::Ceil,
        name if counts::FUNCTIONS.contains(&name) => Mend::Count,
        name if orders::FUNCTIONS.contains(&name) => Mend::Order,
        _ => return None,
    };
    let known = Arc::clone(known);
    let is_known = !known.inner().is::<Mended>();
    is_known.then(|| Arc::new(ScalarUDF::new_from_impl(Mended { known, mend })))
}

/// A function that is DataFusion's but for what is mended.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mended {
    known: Arc<ScalarUDF>,
    mend: Mend,
}

/// What is mended; see the modules of these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mend {
    Ceil,
    Count,
    DatePart,
    DateTrunc,
    Order,
    RegexpMatch,
    RegexpReplace,
    Round,
    ToTimestamp,
    Trunc,
}

impl ScalarUDFImpl for Mended {
    fn name(&self) -> &str {
        self.known.name()
    }

    fn aliases(&self) -> &[String] {
        self.known.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.known.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.known.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let ty = self.known.return_type(types)?;
        Ok(match self.mend {
            Mend::Ceil => ceil::wider(&ty),
            Mend::Count => counts::signed(&ty),
            _ => ty,
        })
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = self.known.return_field_from_args(args)?;
        Ok(match self.mend {
            Mend::Ceil => ceil::field(&field),
            Mend::Count => counts::field(&field),
            _ => field,
        })
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let known = Arc::new(self.known.inner().with_updated_config(config)?);
        let mend = self.mend;
        Some(ScalarUDF::new_from_impl(Mended { known, mend }))
    }

    fn is_strict(&self) -> bool {
        self.known.is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // Not by way of `ScalarUDF`, which asserts in debug builds what is mended here.
        let known = self.known.inner();
        match self.mend {
            Mend::Ceil => ceil::invoke(&**known, args),
            Mend::Count => counts::invoke(&**known, args),
            Mend::DatePart => date_part::invoke(&**known, args),
            Mend::Order => known.invoke_with_args(args),
            Mend::DateTrunc => date_trunc::invoke(&**known, args),
            Mend::RegexpMatch => regexp_match::invoke(&args),
            Mend::RegexpReplace => regexp_replace::invoke(&**known, args),
            Mend::Round => rounding::invoke(&**known, args, false),
            Mend::ToTimestamp => to_timestamp::invoke(&**known, args),
            Mend::Trunc => rounding::invoke(&**known, args, true),
        }
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.known.simplify(args, info)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        let found = self.known.preimage(args, literal, info);
        match self.mend {
            Mend::DatePart => Ok(date_part::preimage(found)),
            // It has no wider type in mind.
            Mend::Ceil if info.get_data_type(&args[0])?.is_decimal() => Ok(PreimageResult::None),
            _ => found,
        }
    }

    fn short_circuits(&self) -> bool {
        self.known.short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.known.conditional_arguments(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        let found = self.known.evaluate_bounds(inputs);
        match self.mend {
            Mend::Ceil | Mend::Order => orders::bounds(found),
            _ => found,
        }
    }

    fn propagate_constraints(
        &self,
        interval: &Interval,
        inputs: &[&Interval],
    ) -> Result<Option<Vec<Interval>>> {
        self.known.propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        let found = self.known.output_ordering(inputs);
        match self.mend {
            Mend::Ceil | Mend::Order => Ok(orders::order(found)),
            _ => found,
        }
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.known.preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.known.strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.known.coerce_types(types)
    }

    fn struct_field_mapping(&self, literals: &[Option<ScalarValue>]) -> Option<StructFieldMapping> {
        self.known.struct_field_mapping(literals)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.known.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.known.placement(args)
    }
}
