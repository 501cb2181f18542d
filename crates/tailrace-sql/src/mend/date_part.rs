//! `date_part` without a shortcut of DataFusion's that is wrong: a year that nanoseconds do not reach was NULL for all times compared with it.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::functions::datetime as functions;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};

/// The function, in the place of DataFusion's, which `extract(year FROM ...)` takes without asking for its name.
pub(super) fn replaced(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    let known = functions::date_part();
    Ok(match expr {
        Expr::ScalarFunction(mut call) if call.func == known => {
            call.func = Arc::new(ScalarUDF::new_from_impl(Part { known }));
            Transformed::yes(Expr::ScalarFunction(call))
        }
        other => Transformed::no(other),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Part {
    known: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Part {
    fn name(&self) -> &str {
        self.known.name()
    }

    fn aliases(&self) -> &[String] {
        self.known.aliases()
    }

    fn signature(&self) -> &Signature {
        self.known.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.known.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.known.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.known.invoke_with_args(args)
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        // A bound beyond the type is NULL, or none, which is an error.
        Ok(match self.known.preimage(args, literal, info) {
            Ok(PreimageResult::Range { interval, .. })
                if interval.lower().is_null() || interval.upper().is_null() =>
            {
                PreimageResult::None
            }
            Err(_) => PreimageResult::None,
            Ok(found) => found,
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.known.documentation()
    }
}
