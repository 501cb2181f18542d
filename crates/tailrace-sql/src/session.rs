//! DataFusion as queries see it: its functions, its planner, and the table `logs`.
//!
//! Finds types and makes plans for parts of the parser's tree that speak of physical columns. `now()` and its kin
//! are replaced by functions that read a [`Clock`], which the evaluator sets to the observed time of each batch: a
//! plan made once would freeze DataFusion's own. Never reads the machine's clock.

use std::cell::{Cell, OnceCell};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::Optimizer;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;

use crate::tree::map_parts;
use futures::FutureExt;

use crate::guard::budget::{self, CONSTANT_BYTES_MAX};
use crate::guard::{self, GuardAll};
use crate::mend::{
    SimplifiedApart, compared_decimals, mend_functions, mending_planner, mending_rules, with_room,
};
use crate::sha256::sha256;
use crate::value;

const NANOSECONDS_PER_DAY: i64 = 86_400_000_000_000;

/// The observed time that `now()` gives, in nanoseconds since the Unix epoch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock(Arc<AtomicI64>);

impl Clock {
    pub(crate) fn set(&self, observed_ns: i64) {
        self.0.store(observed_ns, Ordering::Relaxed);
    }

    fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a function name stands for.
pub(crate) enum Function {
    Scalar(Arc<ScalarUDF>),
    /// Turns a list into rows.
    Unnest,
    /// Aggregate or window function: needs many rows.
    ManyRows,
    /// No such function; the nearest name, if one is near.
    Unknown(Option<String>),
}

/// A DataFusion session with our functions, made when something is first planned: it takes memory that a query which passes
/// records through has no use for.
pub(crate) struct Session {
    clock: Clock,
    made: OnceCell<Made>,
    /// What constants may still make.
    constant_bytes_left: Cell<usize>,
}

/// What DataFusion plans with.
struct Made {
    context: SessionContext,
    state: SessionState,
}

impl Made {
    fn new(clock: &Clock) -> Result<Made> {
        let mut config = SessionConfig::new()
            .with_target_partitions(1)
            .with_information_schema(false);
        let options = config.options_mut();
        options.sql_parser.enable_ident_normalization = false;
        options.execution.time_zone = Some("UTC".to_owned());
        let mut context = SessionContext::new_with_config(config);
        datafusion_functions_json::register_all(&mut context)?;
        for udf in Observed::all(clock) {
            context.register_udf(ScalarUDF::from(udf));
        }
        for udf in value::all() {
            context.register_udf(udf);
        }
        context.register_udf(sha256());
        // These tell of files, which a batch has none of.
        for name in ["input_file_name", "file_row_index"] {
            context.deregister_udf(name);
        }
        mend_functions(&mut context)?;
        for rule in mending_rules() {
            context.add_analyzer_rule(rule);
        }
        context.register_expr_planner(mending_planner())?;
        guard::install(&context);
        let state = context.state();
        Ok(Made { context, state })
    }
}

impl Session {
    pub(crate) fn new(clock: &Clock) -> Session {
        Session {
            clock: clock.clone(),
            made: OnceCell::new(),
            constant_bytes_left: Cell::new(CONSTANT_BYTES_MAX),
        }
    }

    fn made(&self) -> Result<&Made> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = Made::new(&self.clock)?;
        Ok(self.made.get_or_init(|| made))
    }

    /// # Errors
    /// When DataFusion refuses one of our functions, which it does not.
    pub(crate) fn context(&self) -> Result<&SessionContext> {
        Ok(&self.made()?.context)
    }

    /// # Errors
    /// As [`Self::context`].
    pub(crate) fn state(&self) -> Result<&SessionState> {
        Ok(&self.made()?.state)
    }

    /// Looks up a function by its lowercase name.
    pub(crate) fn function(&self, name: &str) -> Function {
        if name == "unnest" {
            return Function::Unnest;
        }
        let Ok(state) = self.state() else {
            return Function::Unknown(None);
        };
        if let Some(udf) = state.scalar_functions().get(name)
            && !name.starts_with('#')
        {
            return Function::Scalar(Arc::clone(udf));
        }
        let aggregates = state.aggregate_functions();
        if aggregates.contains_key(name) || state.window_functions().contains_key(name) {
            return Function::ManyRows;
        }
        let names = state
            .scalar_functions()
            .keys()
            .map(String::as_str)
            .filter(|name| !name.starts_with('#'))
            .chain(["unnest"]);
        Function::Unknown(nearest(name, names))
    }

    /// The type DataFusion gives an expression over physical columns.
    ///
    /// # Errors
    /// When the expression has no meaning: wrong number or types of arguments.
    pub(crate) fn type_of(&self, expr: &ast::Expr, schema: &DFSchema) -> Result<DataType> {
        let expr = ast::ExprWithAlias {
            expr: expr.clone(),
            alias: None,
        };
        let state = self.state()?;
        guard::catching("planning", || {
            state
                .create_logical_expr_from_sql_expr(expr, schema)?
                .get_type(schema)
        })
    }

    /// What the constants of the query have made so far, in bytes.
    pub(crate) fn constant_bytes(&self) -> usize {
        CONSTANT_BYTES_MAX - self.constant_bytes_left.get()
    }

    /// The value of an expression without columns.
    ///
    /// # Errors
    /// What fails in it, or all constants of the query make too much.
    pub(crate) fn constant(&self, expr: &ast::Expr) -> Result<ScalarValue> {
        let left = self.constant_bytes_left.get();
        let (value, left) = budget::within(left, || self.evaluate(expr));
        self.constant_bytes_left.set(left);
        value
    }

    fn evaluate(&self, expr: &ast::Expr) -> Result<ScalarValue> {
        let expr = ast::ExprWithAlias {
            expr: expr.clone(),
            alias: None,
        };
        let state = self.state()?;
        guard::catching("planning", || {
            let schema = DFSchema::empty();
            let expr = state.create_logical_expr_from_sql_expr(expr, &schema)?;
            let expr = map_parts(expr, &mut |part| compared_decimals::of_expr(part, &schema))?;
            let expr = as_cases(guard::guarded(expr.data)?.data, state)?;
            let expr = state.create_physical_expr(expr, &schema)?;
            let options = RecordBatchOptions::new().with_row_count(Some(1));
            let row =
                RecordBatch::try_new_with_options(schema.inner().clone(), Vec::new(), &options)?;
            ScalarValue::try_from_array(&expr.evaluate(&row)?.into_array(1)?, 0)
        })
    }

    /// Plans a rewritten query over `logs`, whose columns and rows are those of `source`.
    ///
    /// # Errors
    /// What DataFusion's planner refuses.
    pub(crate) fn plan(
        &self,
        query: ast::Query,
        source: Arc<dyn PartitionStream>,
    ) -> Result<LogicalPlan> {
        let schema: SchemaRef = Arc::clone(source.schema());
        let Made { context, state } = self.made()?;
        let _ = context.deregister_table("logs")?;
        context.register_table(
            "logs",
            Arc::new(StreamingTable::try_new(schema, vec![source])?),
        )?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        // The only table is in memory, so this future never waits.
        let planned = state.statement_to_plan(statement).now_or_never();
        planned.unwrap_or_else(|| {
            datafusion::common::internal_err!("planning waited for a table in memory")
        })
    }

    /// Types coerced, functions rewritten, constants folded; the shape of the plan stays.
    ///
    /// # Errors
    /// What DataFusion's analyzer refuses.
    pub(crate) fn simplify(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let state = self.state()?;
        let options = state.config_options();
        let plan = state
            .analyzer()
            .execute_and_check(with_room(plan)?, options, |_, _| {})?;
        let optimizer = Optimizer::with_rules(vec![
            Arc::new(SimplifiedApart::default()),
            Arc::new(GuardAll),
        ]);
        optimizer.optimize(plan, state, |_, _| {})
    }
}

/// An expression without columns, in which functions that compute one of their arguments only, as `coalesce`, are the CASE that they stand for: by
/// themselves they compute nothing.
fn as_cases(expr: Expr, state: &SessionState) -> Result<Expr> {
    let is_case =
        |part: &Expr| Ok(matches!(part, Expr::ScalarFunction(it) if it.func.short_circuits()));
    if !expr.exists(is_case)? {
        return Ok(expr);
    }
    let schema = DFSchema::empty();
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .build();
    let simplifier = ExprSimplifier::new(context);
    let expr = simplifier.coerce(expr, &schema)?;
    simplifier.simplify(expr)
}

/// The candidate most like `name`, if it is alike at all.
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    let scored =
        candidates.map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate));
    let (distance, candidate) = scored.min()?;
    let near = distance <= 1.max(name.chars().count() / 3);
    near.then(|| candidate.to_owned())
}

/// The same expression with every clock function reading `clock`.
///
/// # Errors
/// Never in practice: the closure does not fail.
pub(crate) fn with_clock(expr: Expr, clock: &Clock) -> Result<Expr> {
    let transformed = expr.transform(|expr| {
        let Expr::ScalarFunction(mut function) = expr else {
            return Ok(Transformed::no(expr));
        };
        let Some(observed) = function.func.inner().downcast_ref::<Observed>() else {
            return Ok(Transformed::no(Expr::ScalarFunction(function)));
        };
        let observed = Observed {
            clock: clock.clone(),
            ..observed.clone()
        };
        function.func = Arc::new(ScalarUDF::from(observed));
        Ok(Transformed::yes(Expr::ScalarFunction(function)))
    })?;
    Ok(transformed.data)
}

/// `now()`, `current_date` or `current_time`: the clock's time as one Arrow type.
#[derive(Clone, Debug)]
struct Observed {
    name: &'static str,
    aliases: Vec<String>,
    ty: DataType,
    signature: Signature,
    clock: Clock,
}

impl Observed {
    fn all(clock: &Clock) -> [Observed; 3] {
        let new = |name, aliases: &[&str], ty| Observed {
            name,
            aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
            ty,
            // Volatile, or the planner would take the time of planning for a constant.
            signature: Signature::nullary(Volatility::Volatile),
            clock: clock.clone(),
        };
        [
            new(
                "now",
                &["current_timestamp"],
                DataType::Timestamp(TimeUnit::Nanosecond, Some(Arc::from("UTC"))),
            ),
            new("current_date", &["today"], DataType::Date32),
            new("current_time", &[], DataType::Time64(TimeUnit::Nanosecond)),
        ]
    }
}

impl PartialEq for Observed {
    fn eq(&self, other: &Observed) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.clock.0, &other.clock.0)
    }
}

impl Eq for Observed {}

impl Hash for Observed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Observed {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.ty.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ns = self.clock.get();
        Ok(ColumnarValue::Scalar(match self.name {
            "current_date" => {
                let days = ns.div_euclid(NANOSECONDS_PER_DAY);
                // i64 nanoseconds span 213,000 days.
                ScalarValue::Date32(i32::try_from(days).ok())
            }
            "current_time" => {
                ScalarValue::Time64Nanosecond(Some(ns.rem_euclid(NANOSECONDS_PER_DAY)))
            }
            _ => ScalarValue::TimestampNanosecond(Some(ns), Some(Arc::from("UTC"))),
        }))
    }
}
