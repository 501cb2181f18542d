//! Clauses that DataFusion 55 reads and then leaves out: the answer would be that of a query without them.

use std::ops::ControlFlow;

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    self, DuplicateTreatment, Expr, FunctionArgumentClause, FunctionArguments, NullTreatment,
    SelectItem, TableFactor, Visitor,
};
use tailrace_sql::other_format;
use tailrace_sql::walk::walk;

use crate::error::{Error, place_of, word_in};

/// Aggregates that take every value where DISTINCT is asked for.
const OF_ALL_VALUES: [&str; 17] = [
    "approx_median",
    "approx_percentile_cont",
    "approx_percentile_cont_with_weight",
    "corr",
    "covar",
    "covar_pop",
    "covar_samp",
    "nth_value",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
];

/// Refuses them.
///
/// # Errors
///
/// The query has one.
pub(crate) fn check_clauses(
    query: &ast::Query,
    state: &SessionState,
    sql: &str,
) -> Result<(), Error> {
    let sql = sql.to_ascii_lowercase();
    let mut clauses = Clauses {
        state,
        sql: &sql,
        error: None,
    };
    let _ = walk(query, &mut clauses);
    clauses.error.map_or(Ok(()), Err)
}

struct Clauses<'q> {
    state: &'q SessionState,
    /// In small letters.
    sql: &'q str,
    error: Option<Error>,
}

impl Clauses<'_> {
    fn found(&mut self, error: Option<Error>) -> ControlFlow<()> {
        self.error = error;
        match self.error {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// What is said of a clause that begins with a word.
    fn clause(&self, what: &str, word: &str) -> Option<Error> {
        Some(Error {
            place: word_in(self.sql, word),
            ..Error::usage(format!("{what} is not supported"))
        })
    }

    fn of_table(&self, table: &TableFactor) -> Option<Error> {
        let TableFactor::Table {
            with_hints,
            version,
            with_ordinality,
            partitions,
            index_hints,
            ..
        } = table
        else {
            let is_numbered = match table {
                TableFactor::UNNEST {
                    with_offset,
                    with_ordinality,
                    ..
                } => *with_offset || *with_ordinality,
                TableFactor::Function {
                    with_ordinality, ..
                } => *with_ordinality,
                _ => false,
            };
            return is_numbered.then(|| self.numbered()).flatten();
        };
        if *with_ordinality {
            return self.numbered();
        }
        if !partitions.is_empty() {
            let hint = "directories such as dt=2026-11-27 are columns: WHERE dt = '2026-11-27'";
            return self.clause("PARTITION", "partition").map(|error| Error {
                hint: Some(hint.to_owned()),
                ..error
            });
        }
        if !with_hints.is_empty() || !index_hints.is_empty() || version.is_some() {
            return self.clause("what follows the table", "from");
        }
        None
    }

    fn numbered(&self) -> Option<Error> {
        let hint = "row_number() OVER () numbers rows";
        let error = self.clause("WITH ORDINALITY", "ordinality")?;
        Some(Error {
            hint: Some(hint.to_owned()),
            ..error
        })
    }

    fn of_call(&self, called: &ast::Function) -> Option<Error> {
        let [part] = called.name.0.as_slice() else {
            return None;
        };
        let name = part.as_ident()?.value.to_ascii_lowercase();
        let is_aggregate = self.state.aggregate_functions().contains_key(&name);
        if is_aggregate || self.state.window_functions().contains_key(&name) {
            let takes_all = !is_aggregate || OF_ALL_VALUES.contains(&name.as_str());
            let is_refused = is_distinct(called) && takes_all;
            return is_refused.then(|| Error {
                place: place_of(&called.name),
                hint: Some(
                    "call it without DISTINCT, over a subquery with SELECT DISTINCT".to_owned(),
                ),
                ..Error::usage(format!("`{name}` does not look for distinct values"))
            });
        }
        if !self.state.scalar_functions().contains_key(&name) {
            // An unknown function, or one that the planner makes something else of.
            return None;
        }
        let Some(clause) = clause_of_rows(called) else {
            return of_format(&name, called);
        };
        Some(Error {
            place: place_of(&called.name),
            hint: Some(format!(
                "{clause} belongs to aggregates and window functions"
            )),
            ..Error::usage(format!(
                "`{name}` is a function of single values, which cannot have {clause}"
            ))
        })
    }
}

impl Visitor for Clauses<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        let error = match query.locks.is_empty() && query.for_clause.is_none() {
            true => None,
            false => self.clause("FOR", "for"),
        };
        self.found(error)
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        let is_chosen = |item: &SelectItem| match item {
            SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                options.opt_ilike.is_some()
            }
            _ => false,
        };
        let error = if select.projection.iter().any(is_chosen) {
            self.clause("* ILIKE", "ilike").map(|error| Error {
                hint: Some("name the columns; * EXCLUDE (a, b) leaves some out".to_owned()),
                ..error
            })
        } else if !select.connect_by.is_empty() {
            self.clause("CONNECT BY", "connect").map(|error| Error {
                hint: Some("WITH RECURSIVE goes from row to row".to_owned()),
                ..error
            })
        } else {
            None
        };
        self.found(error)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let error = self.of_table(table);
        self.found(error)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let error = match expr {
            Expr::Function(called) => self.of_call(called),
            _ => None,
        };
        self.found(error)
    }
}

/// A format of times that is that of another database. DataFusion would write its letters.
fn of_format(name: &str, called: &ast::Function) -> Option<Error> {
    let takes_formats =
        matches!(name, "to_char" | "date_format" | "to_date") || name.starts_with("to_timestamp");
    let other = other_format(called).filter(|_| takes_formats)?;
    Some(Error {
        place: place_of(other.argument),
        hint: Some(other.hint),
        ..Error::usage(other.message)
    })
}

fn is_distinct(called: &ast::Function) -> bool {
    matches!(&called.args, FunctionArguments::List(list)
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct))
}

/// The clause of a call that is about several rows.
fn clause_of_rows(called: &ast::Function) -> Option<&'static str> {
    let FunctionArguments::List(list) = &called.args else {
        return called.over.is_some().then_some("OVER");
    };
    let is_order = |it: &FunctionArgumentClause| matches!(it, FunctionArgumentClause::OrderBy(_));
    let nulls = list.clauses.iter().find_map(|it| match it {
        FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => Some(*treatment),
        _ => None,
    });
    if is_distinct(called) {
        Some("DISTINCT")
    } else if list.clauses.iter().any(is_order) {
        Some("ORDER BY")
    } else if called.filter.is_some() {
        Some("FILTER")
    } else if !called.within_group.is_empty() {
        Some("WITHIN GROUP")
    } else if called.over.is_some() {
        Some("OVER")
    } else {
        match called.null_treatment.or(nulls)? {
            NullTreatment::IgnoreNulls => Some("IGNORE NULLS"),
            NullTreatment::RespectNulls => Some("RESPECT NULLS"),
        }
    }
}
