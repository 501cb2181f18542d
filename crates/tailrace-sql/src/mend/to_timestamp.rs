//! `to_timestamp` and its like with the type that they announce: of texts DataFusion 55 gives times without the zone, which nothing can be done with.

use std::sync::Arc;

use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};

/// A call, in the place of DataFusion's.
pub(super) fn replaced(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::ScalarFunction(mut call) if call.func.name().starts_with("to_timestamp") => {
            let known = call.func;
            call.func = Arc::new(ScalarUDF::new_from_impl(Zoned { known }));
            Transformed::yes(Expr::ScalarFunction(call))
        }
        other => Transformed::no(other),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Zoned {
    known: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Zoned {
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
        let ty = args.return_field.data_type().clone();
        // Without the check that fails.
        let times = self.known.inner().invoke_with_args(args)?;
        Ok(match times {
            times if times.data_type() == ty => times,
            ColumnarValue::Array(times) => ColumnarValue::Array(cast(&times, &ty)?),
            ColumnarValue::Scalar(time) => ColumnarValue::Scalar(time.cast_to(&ty)?),
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.known.documentation()
    }
}
