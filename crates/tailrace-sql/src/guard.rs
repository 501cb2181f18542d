//! Functions that cannot crash the process, hang it or take all of its memory.
//!
//! Rewrites analysed plans: every scalar function is wrapped in a [`Guard`], and every `||` in a [`Checked`]. A guard
//! looks at what a call would build before it is made (`growth`) and at what it built (`size`), and turns a panic into
//! an error. An error costs one row its value: the evaluator tries a failing batch on its halves. Planning evaluates
//! constants through the same guards. It looks once per batch at most functions, and never changes what a call
//! returns.

mod argument;
pub(crate) mod batch;
pub(crate) mod budget;
mod growth;
pub(crate) mod size;

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::prelude::SessionContext;

use crate::tree::map_exprs;

thread_local! {
    /// Whether a panic on this thread is caught and becomes an error.
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// What `work` gives; an error if it panics. Such a panic is not printed.
///
/// # Errors
/// Those of `work`, and the text of a panic.
pub(crate) fn catching<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(work).unwrap_or_else(|text| exec_err!("{what} panicked: {text}"))
}

/// What `work` gives. If it panics, that is not printed, and what `work` changed may be half done.
///
/// # Errors
/// The text of a panic.
pub fn caught<T>(work: impl FnOnce() -> T) -> std::result::Result<T, String> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !CATCHING.get() {
                before(info);
            }
        }));
    });
    let outer = CATCHING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    result.map_err(|panic| text_of(panic.as_ref()).to_owned())
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

/// Makes all plans of a context guarded.
pub(crate) fn install(context: &SessionContext) {
    context.add_analyzer_rule(Arc::new(GuardAll));
    context.add_optimizer_rule(Arc::new(GuardAll));
}

/// The rule that puts guards into plans. The analyzer runs it last, so that constants are folded through guards; the
/// optimizer, for functions that its other rules bring in.
#[derive(Debug)]
pub(crate) struct GuardAll;

impl AnalyzerRule for GuardAll {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(guarded_plan(plan)?.data)
    }

    fn name(&self) -> &str {
        "guard_functions"
    }
}

impl OptimizerRule for GuardAll {
    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        guarded_plan(plan)
    }

    fn name(&self) -> &str {
        "guard_functions"
    }
}

fn guarded_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up(|node| map_exprs(node, &mut guarded))
}

/// The same expression with guards. Those that are there stay.
pub(crate) fn guarded(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_down(|expr| match expr {
        Expr::ScalarFunction(call) if call.func.inner().is::<Checked>() => {
            // Its argument is the `||`: only what that has below is looked at.
            let checked = Expr::ScalarFunction(call);
            let below = checked.map_children(|concat| concat.map_children(guarded))?;
            Ok(Transformed::new(
                below.data,
                below.transformed,
                TreeNodeRecursion::Jump,
            ))
        }
        Expr::ScalarFunction(mut call) if !is_guarded(&call) => {
            call.func = guard(call.func);
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        Expr::BinaryExpr(binary) if binary.op == Operator::StringConcat => {
            let concat = Expr::BinaryExpr(binary).map_children(guarded)?.data;
            let checked = ScalarFunction::new_udf(
                Arc::new(ScalarUDF::from(Checked::default())),
                vec![concat],
            );
            Ok(Transformed::new(
                Expr::ScalarFunction(checked),
                true,
                TreeNodeRecursion::Jump,
            ))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// The same function with its calls checked.
pub(crate) fn guard(function: Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Guard { inner: function }))
}

/// What takes nothing builds nothing large; among these are the clocks, which the evaluator looks for.
fn is_guarded(call: &ScalarFunction) -> bool {
    call.args.is_empty() || call.func.inner().is::<Guard>()
}

/// A function, its calls checked.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Guard {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Guard {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        catching(self.name(), || self.inner.return_type(types))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        catching(self.name(), || self.inner.return_field_from_args(args))
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let updated = self.inner.inner().with_updated_config(config)?;
        let inner = Arc::new(updated);
        Some(ScalarUDF::from(Guard { inner }))
    }

    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        batch::check()?;
        growth::check(self.name(), &mut args)?;
        let made = catching(self.name(), || self.inner.invoke_with_args(args))?;
        size::check(self.name(), &made)?;
        if budget::is_limited() {
            budget::spend(self.name(), size::made_bytes(&made))?;
        }
        Ok(made)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        catching(self.name(), || self.inner.simplify(args, info))
    }

    fn preimage(
        &self,
        args: &[Expr],
        literal: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        let inner = self.inner.inner();
        catching(self.name(), || inner.preimage(args, literal, info))
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        catching(self.name(), || self.inner.coerce_types(types))
    }
}

/// Gives its one argument, an error if a value of it is too large.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    signature: Signature,
}

impl Default for Checked {
    fn default() -> Checked {
        Checked {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        "checked"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        args.iter()
            .map(|arg| arg.schema_name().to_string())
            .next()
            .map_or_else(|| exec_err!("an argument is missing"), Ok)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let value = args.args.swap_remove(0);
        size::check("||", &value)?;
        if budget::is_limited() {
            budget::spend("||", size::made_bytes(&value))?;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        let of_text = catching("f", || -> Result<()> { panic!("boom") }).unwrap_err();
        assert_eq!(
            of_text.strip_backtrace(),
            "Execution error: f panicked: boom"
        );
        let made = String::from("7");
        let made = catching("f", || -> Result<()> { panic!("boom {made}") }).unwrap_err();
        assert_eq!(
            made.strip_backtrace(),
            "Execution error: f panicked: boom 7"
        );
        // A panic that nobody here catches is printed again.
        assert!(!CATCHING.get());
        assert_eq!(catching("f", || Ok(1)).unwrap(), 1);
    }
}
