//! `SELECT *` of a table with many columns. DataFusion 55 compares each column of a SELECT with each one before it, by names that it puts together
//! every time: with 4,000 columns that takes seconds. So one column stands for all of them while it plans, and they take its place in the plan.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::sql::sqlparser::ast::{
    self, Expr as Ast, GroupByExpr, Ident, OrderByKind, SelectItem, SetExpr, TableFactor, Value,
};

use crate::repeated_names::Columns;
use crate::star::excluded;

/// With fewer columns it takes no time.
const COLUMNS_MIN: usize = 100;
/// What the column is called.
const STAR: &str = "*";

/// The columns that the star leaves out whose place one column has taken.
#[derive(Debug)]
pub(crate) struct Star {
    excluded: Vec<String>,
}

/// Puts one column in the place of the star of a query, if it is nothing but a star over one table with many columns.
pub(crate) fn folded(query: &mut ast::Query, tables: &Columns) -> Option<Star> {
    let SetExpr::Select(select) = &mut *query.body else {
        return None;
    };
    // A number would be the place of a column.
    let has_places = query.order_by.as_ref().is_some_and(|order| {
        let OrderByKind::Expressions(keys) = &order.kind else {
            return true;
        };
        keys.iter().any(|key| matches!(key.expr, Ast::Value(_)))
    });
    let groups = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => !keys.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let is_plain = !has_places
        && !groups
        && query.with.is_none()
        && select.distinct.is_none()
        && select.having.is_none()
        && select.qualify.is_none();
    let [tables_of] = &select.from[..] else {
        return None;
    };
    let TableFactor::Table {
        name, args: None, ..
    } = &tables_of.relation
    else {
        return None;
    };
    let name = name.0.last()?.as_ident()?;
    let is_wide = tables.get(&name.value)?.len() >= COLUMNS_MIN;
    let [SelectItem::Wildcard(options)] = &select.projection[..] else {
        return None;
    };
    let has_others = options.opt_ilike.is_some()
        || options.opt_replace.is_some()
        || options.opt_rename.is_some();
    if !is_plain || !is_wide || has_others || !tables_of.joins.is_empty() {
        return None;
    }
    let excluded = excluded(options);
    let columns = tables.get(&name.value)?;
    if excluded.iter().any(|name| !columns.contains(name)) {
        // DataFusion says which one there is not.
        return None;
    }
    let value = Value::SingleQuotedString(STAR.to_owned());
    select.projection = vec![SelectItem::ExprWithAlias {
        expr: Ast::Value(value.into()),
        alias: Ident::with_quote('"', STAR),
    }];
    Some(Star { excluded })
}

impl Star {
    /// The plan with all columns in the place of the one.
    pub(crate) fn unfolded(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let mut all: Vec<Expr> = Vec::new();
        let plan = plan.transform_up(|step| {
            let LogicalPlan::Projection(projection) = step else {
                return step.recompute_schema().map(Transformed::yes);
            };
            let mut columns = match projection.expr.first() {
                Some(Expr::Alias(alias)) if alias.name == STAR => {
                    let columns = rows_of(&projection.input).schema().columns().into_iter();
                    let columns = columns.filter(|it| !self.excluded.contains(&it.name));
                    all = columns.map(Expr::Column).collect();
                    all.clone()
                }
                // What the rows were put in order by is left out again.
                Some(Expr::Column(column)) if column.name == STAR => all.clone(),
                _ => return Ok(Transformed::no(LogicalPlan::Projection(projection))),
            };
            let others = projection.expr.into_iter().skip(1);
            columns.extend(others.filter(|expr| !all.contains(expr)));
            let made = Projection::try_new(columns, projection.input)?;
            Ok(Transformed::yes(LogicalPlan::Projection(made)))
        })?;
        Ok(plan.data)
    }
}

/// What windows of ORDER BY look at: each of them adds a column, which the star does not have.
fn rows_of(step: &LogicalPlan) -> &LogicalPlan {
    match step {
        LogicalPlan::Window(window) => rows_of(&window.input),
        other => other,
    }
}
