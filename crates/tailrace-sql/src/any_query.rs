//! Queries of any kind, for whoever plans them with DataFusion: aggregates, joins, windows.
//!
//! The text is read in the dialect of pipelines, and means what it means there. Nothing is planned.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Query, Spanned, TableFactor, Visitor};

use crate::analyse::similar::replace_similar_to;
use crate::error::{Error, Positions};
use crate::parse::{ONLY_SELECT, one_query};
use crate::walk::walk;

/// Parses a query of any kind, in the dialect of pipelines and within its bounds: what is parsed can be walked. SIMILAR
/// TO is a match of a regular expression in the result, since DataFusion would take its pattern for one.
///
/// # Errors
///
/// The text is no query, or too long, or a pattern is none of SIMILAR TO, or a table is sampled.
pub fn parse_query(sql: &str) -> Result<Query, Error> {
    let places = Positions::new(sql);
    let mut query = one_query(sql, &places).map_err(|error| match error.message.as_str() {
        ONLY_SELECT => error.with_hint(
            "a query reads rows; `--explain` shows how it runs, and `-o parquet` or `--to` keeps its result",
        ),
        _ => error,
    })?;
    let mut refused = Refused {
        places: &places,
        error: None,
    };
    let _ = walk(&query, &mut refused);
    if let Some(error) = refused.error {
        return Err(error);
    }
    replace_similar_to(&mut query, &places)?;
    Ok(query)
}

/// Refuses what DataFusion would pass over without a word.
struct Refused<'p> {
    places: &'p Positions,
    error: Option<Error>,
}

impl Visitor for Refused<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let (what, hint) = match table {
            TableFactor::Table {
                sample: Some(_), ..
            }
            | TableFactor::Derived {
                sample: Some(_), ..
            } => (
                "tables cannot be sampled",
                "`WHERE random() < 0.1` keeps about a tenth of the rows",
            ),
            TableFactor::Pivot { .. } => (
                "PIVOT is not supported",
                "`sum(n) FILTER (WHERE key = 'a') AS a` makes a column of a value",
            ),
            TableFactor::Unpivot { .. } => (
                "UNPIVOT is not supported",
                "UNION ALL puts a SELECT for each column together",
            ),
            TableFactor::MatchRecognize { .. } => (
                "MATCH_RECOGNIZE is not supported",
                "`lag` and `lead` look at the rows before and after",
            ),
            _ => return ControlFlow::Continue(()),
        };
        let error = self.places.of(table.span()).error(what);
        self.error = Some(error.with_hint(hint));
        ControlFlow::Break(())
    }
}
