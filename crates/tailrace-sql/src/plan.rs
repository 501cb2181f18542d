//! One SELECT over physical columns as a logical plan, and what kind of plan it is.
//!
//! Turns rewritten clauses into a checked plan: only projections, filters and unnests over one scan, and scalar
//! expressions only (D7). A projection of a filter of the scan is row-wise and comes apart into expressions.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result, plan_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::EmptyRecordBatchStream;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::sql::sqlparser::ast::{
    self, Ident, ObjectName, ObjectNamePart, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins,
};
use datafusion::sql::sqlparser::tokenizer::Span;

use crate::tree::each_part;

use crate::session::Session;
use crate::types::ROW;

/// Stack of the thread that plans: DataFusion plans by recursion, in debug builds with large frames.
const PLANNING_STACK_BYTES: usize = 32 * 1024 * 1024;

/// A rewritten SELECT: what is computed, and from which rows.
#[derive(Clone, Debug)]
pub(crate) struct Rewritten {
    /// The SELECT as parsed, for the clauses that stay empty and the condition as it was written.
    pub(crate) select: Select,
    /// Computed outputs in order: expression over physical columns, name, and whether it holds an unnest.
    pub(crate) computed: Vec<Computed>,
    /// The condition over physical columns.
    pub(crate) condition: Option<ast::Expr>,
}

#[derive(Clone, Debug)]
pub(crate) struct Computed {
    pub(crate) expr: ast::Expr,
    pub(crate) name: String,
    pub(crate) unnests: bool,
}

/// Which outputs of a [`Rewritten`] a plan has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outputs {
    /// Those without unnest; the plan is row-wise.
    Scalar,
    /// All, after the number of the row.
    Numbered,
    /// Those with unnest, after the number of the row.
    NumberedUnnests,
}

/// The expressions of a row-wise plan.
#[derive(Clone, Debug)]
pub(crate) struct Expressions {
    pub(crate) predicate: Option<Expr>,
    pub(crate) computed: Vec<Expr>,
    /// Schema the expressions refer to.
    pub(crate) schema: DFSchemaRef,
}

impl Expressions {
    /// Those of a query that passes every record through.
    ///
    /// # Errors
    /// Two columns have one name, which those of a query do not.
    pub(crate) fn none(physical: &Schema) -> Result<Expressions> {
        let schema = DFSchema::try_from_qualified_schema("logs", &table_schema(physical))?;
        Ok(Expressions {
            predicate: None,
            computed: Vec::new(),
            schema: Arc::new(schema),
        })
    }
}

impl Rewritten {
    /// Whether there is nothing to evaluate.
    pub(crate) fn is_empty(&self) -> bool {
        self.computed.is_empty() && self.condition.is_none()
    }

    /// The query over the table `logs` of physical columns.
    pub(crate) fn query(&self, outputs: Outputs) -> ast::Query {
        let mut select = self.select.clone();
        let quoted = |name: &str| Ident {
            value: name.to_owned(),
            quote_style: Some('"'),
            span: Span::empty(),
        };
        let wanted = |computed: &&Computed| match outputs {
            Outputs::Numbered => true,
            Outputs::Scalar => !computed.unnests,
            Outputs::NumberedUnnests => computed.unnests,
        };
        let item = |computed: &Computed| SelectItem::ExprWithAlias {
            expr: computed.expr.clone(),
            alias: quoted(&computed.name),
        };
        select.projection = self.computed.iter().filter(wanted).map(item).collect();
        if outputs != Outputs::Scalar {
            select.projection.insert(
                0,
                SelectItem::UnnamedExpr(ast::Expr::Identifier(quoted(ROW))),
            );
        }
        if select.projection.is_empty() {
            let expr = ast::Expr::value(ast::Value::Boolean(true));
            select.projection.push(SelectItem::ExprWithAlias {
                expr,
                alias: quoted("#none"),
            });
        }
        select.selection = self.condition.clone();
        let logs = Ident {
            value: "logs".to_owned(),
            quote_style: None,
            span: Span::empty(),
        };
        if let Some(TableWithJoins {
            relation: TableFactor::Table { name, alias, .. },
            ..
        }) = select.from.first_mut()
        {
            *name = ObjectName(vec![ObjectNamePart::Identifier(logs)]);
            *alias = None;
        }
        ast::Query {
            with: None,
            body: Box::new(SetExpr::Select(Box::new(select))),
            order_by: None,
            limit_clause: None,
            fetch: None,
            locks: Vec::new(),
            for_clause: None,
            settings: None,
            format_clause: None,
            pipe_operators: Vec::new(),
        }
    }

    /// The condition as it was written, and as it was rewritten; `None` without one.
    pub(crate) fn conditions(&self) -> Option<(&ast::Expr, &ast::Expr)> {
        self.select.selection.as_ref().zip(self.condition.as_ref())
    }

    pub(crate) fn unnests(&self) -> bool {
        self.computed.iter().any(|computed| computed.unnests)
    }
}

/// Physical columns and the number of the row after them: the schema of the table that plans scan.
pub(crate) fn table_schema(physical: &Schema) -> SchemaRef {
    let row = Arc::new(Field::new(ROW, DataType::UInt32, false));
    Arc::new(Schema::new(
        physical
            .fields()
            .iter()
            .cloned()
            .chain([row])
            .collect::<Vec<_>>(),
    ))
}

/// Plans the query and checks what is in the plan.
///
/// # Errors
/// What DataFusion refuses, and every plan node or expression that needs more than one row.
pub(crate) fn plan(
    session: &Session,
    query: ast::Query,
    source: Arc<dyn PartitionStream>,
) -> Result<LogicalPlan> {
    let plan = session.plan(query, source)?;
    check(&plan)?;
    Ok(plan)
}

fn check(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|node| {
        match node {
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::Unnest(_) => {}
            other => return plan_err!("{} needs more than one record", other.display()),
        }
        node.apply_expressions(|expr| {
            each_part(expr, &mut |expr| match expr {
                Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::Exists(_)
                | Expr::OuterReferenceColumn(..)
                | Expr::GroupingSet(_) => plan_err!("{expr} needs more than one record"),
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(())
}

/// The expressions of a plan that is a projection of at most a filter of the scan; `None` for any other plan.
///
/// # Errors
/// What DataFusion's analyzer refuses.
pub(crate) fn row_wise(session: &Session, plan: LogicalPlan) -> Result<Option<Expressions>> {
    let LogicalPlan::Projection(projection) = session.simplify(plan)? else {
        return Ok(None);
    };
    let (predicate, scan) = match projection.input.as_ref() {
        LogicalPlan::Filter(filter) => (Some(filter.predicate.clone()), filter.input.as_ref()),
        other => (None, other),
    };
    if !matches!(scan, LogicalPlan::TableScan(_)) {
        return Ok(None);
    }
    let computed = projection
        .expr
        .iter()
        .map(|expr| expr.clone().unalias_nested().data)
        .collect();
    Ok(Some(Expressions {
        predicate,
        computed,
        schema: Arc::clone(scan.schema()),
    }))
}

/// A table without rows, to plan with.
#[derive(Debug)]
pub(crate) struct NoRows(pub(crate) SchemaRef);

impl PartitionStream for NoRows {
    fn schema(&self) -> &SchemaRef {
        &self.0
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        Box::pin(EmptyRecordBatchStream::new(Arc::clone(&self.0)))
    }
}

thread_local! {
    static PLANNING_TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The time of a processor that planning took so far, on behalf of the calling thread: it has threads of its own, whose time
/// the system does not count for the caller. Zero where the system does not count by thread.
pub fn planning_time() -> Duration {
    PLANNING_TIME.get()
}

/// The time that the calling thread was on a processor.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Runs `work` on a thread with a stack for planning, and gives what it gives.
pub(crate) fn on_planning_stack<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let timed = move || {
        let result = work();
        // What it planned for, it planned on other threads.
        (result, thread_time() + planning_time())
    };
    let (result, taken) = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("plan".to_owned())
            .stack_size(PLANNING_STACK_BYTES);
        let handle = thread
            .spawn_scoped(scope, timed)
            .expect("the system has a thread to plan with");
        match handle.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    });
    PLANNING_TIME.set(PLANNING_TIME.get() + taken);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planning_is_counted_for_the_thread_that_asked() {
        let before = planning_time();
        let counted = on_planning_stack(|| {
            // Until the kernel has counted it, if it counts at all: a new thread has used nothing yet.
            let mut counted = (0..1_000_000).map(|_| thread_time());
            counted.find(|counted| !counted.is_zero())
        });
        assert_eq!(planning_time() > before, counted.is_some());
        std::thread::spawn(|| assert_eq!(planning_time(), Duration::ZERO))
            .join()
            .expect("no panic");
    }
}
