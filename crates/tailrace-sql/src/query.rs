//! A query, compiled: what it needs, what it gives, and how it runs.
//!
//! SQL text and [`Options`] are compiled to a [`Query`]. `SELECT *` is not expanded: it is reported as a star,
//! and the scanner finds the keys. Never evaluates; that is the [`Evaluator`](crate::Evaluator)'s.

mod draft;
mod list;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use self::draft::{Draft, Planner, star_of, unify_types};
use self::list::{Item, list, unify_names};
use crate::analyse::Analysis;
use crate::branch::{Branch, Prepared};
use crate::error::{Error, Position, Positions, Warning, planner_message};
use crate::guard::catching;
use crate::parse::parse;
use crate::plan::on_planning_stack;
use crate::pushdown::Pushdown;
use crate::session::{Clock, Session};
use crate::types::{Column, Options, Star};

/// A compiled query. Cheap to share, planned once.
#[derive(Debug)]
pub struct Query {
    columns: Vec<Column>,
    schema: SchemaRef,
    star: Option<Star>,
    branches: Vec<Branch>,
    pushdown: Option<Pushdown>,
    warnings: Vec<Warning>,
    prepared: Vec<Prepared>,
    constant_bytes: usize,
}

impl Query {
    /// Compiles one SELECT, or a UNION ALL of them, over the table `logs`.
    ///
    /// # Errors
    /// SQL that does not parse, that needs more than one record (aggregates, sorting, limits, joins, subqueries), that
    /// names an unknown function or table, or that leaves an output without a name; with its place and what to do.
    pub fn compile(sql: &str, options: &Options) -> Result<Query, Error> {
        on_planning_stack(|| {
            let planned = catching("planning", || Ok(compile(sql, options)));
            planned.unwrap_or_else(|panic| {
                let error = Position::START.error(planner_message(&panic));
                Err(error.with_hint(
                    "leave out parts of the query until it is accepted, and report this",
                ))
            })
        })
    }

    /// The physical columns a batch has, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The schema of a batch: one nullable field per column.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Set if a branch selects `*`; the keys no branch's star wants are excepted.
    pub fn star(&self) -> Option<&Star> {
        self.star.as_ref()
    }

    /// The SELECTs, in order.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// What can be done before the columns that only outputs read are built. `None` if a branch has no condition, reads
    /// no column in it, or is not row-wise.
    pub fn pushdown(&self) -> Option<&Pushdown> {
        self.pushdown.as_ref()
    }

    /// Whether it makes at most one row of each record.
    pub fn is_one_to_one(&self) -> bool {
        let mut branches = self.prepared.iter();
        self.branches.len() == 1 && !branches.any(|branch| branch.rewritten.unnests())
    }

    /// What may not be as meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What its constants made while it was planned, in bytes: no less than they take in the plan.
    pub fn constant_bytes(&self) -> usize {
        self.constant_bytes
    }

    pub(crate) fn prepared(&self) -> &[Prepared] {
        &self.prepared
    }
}

/// SELECTs of one query; planning takes time that grows with the square of either.
const SELECTS_MAX: usize = 500;
/// Outputs that they compute, all together.
const COMPUTED_MAX: usize = 1000;

/// Refuses a query with more of something than can be planned in seconds.
fn at_most(max: usize, count: usize, what: &str) -> Result<(), Error> {
    if count <= max {
        return Ok(());
    }
    let error = Position::START.error(format!("the query has {count} {what}, more than {max}"));
    Err(error.with_hint("split it into several pipelines"))
}

fn compile(sql: &str, options: &Options) -> Result<Query, Error> {
    let places = Positions::new(sql);
    let parts = parse(sql, &places)?;
    at_most(SELECTS_MAX, parts.len(), "SELECTs")?;
    let session = Session::new(&Clock::default());
    let mut analysis = Analysis::new(&session, options, &places);
    // What is passed through comes first, so that expressions find its columns.
    let mut lists = Vec::with_capacity(parts.len());
    for part in &parts {
        part.table.clone_into(&mut analysis.table);
        lists.push(list(&mut analysis, part)?);
    }
    let items = lists.iter().flat_map(|list| &list.items);
    let computed = items.filter(|item| matches!(item, Item::Computed { .. }));
    at_most(COMPUTED_MAX, computed.count(), "computed outputs")?;
    unify_names(&mut lists)?;
    let mut branches = Vec::with_capacity(parts.len());
    for (part, list) in parts.into_iter().zip(lists) {
        analysis.table.clone_from(&part.table);
        branches.push(Draft::new(&mut analysis, part, list)?);
    }
    analysis.lint_columns();
    let Analysis {
        columns,
        mut warnings,
        ..
    } = analysis;
    let schema = columns.schema();
    let planner = Planner {
        session: &session,
        columns: &columns,
        schema: &schema,
    };
    let mut prepared = planner.prepare_all(&mut branches)?;
    unify_types(&planner, &mut branches, &mut prepared)?;
    let never = branches.iter().zip(&prepared);
    let never = never.filter_map(|(draft, prepared)| draft.warning(prepared));
    // What makes a condition so is said where it is known.
    warnings.extend(never.filter(|_| warnings.is_empty()).collect::<Vec<_>>());
    let star = star_of(&branches);
    let mut branches: Vec<Branch> = branches
        .into_iter()
        .zip(&prepared)
        .map(|(draft, prepared)| draft.finish(prepared))
        .collect();
    let pushdown = Pushdown::new(&mut branches, &prepared);
    Ok(Query {
        columns: columns.into_list(),
        schema,
        star,
        branches,
        pushdown,
        warnings,
        prepared,
        constant_bytes: session.constant_bytes(),
    })
}
