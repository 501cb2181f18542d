//! Queries of any kind, for whoever plans them with DataFusion: aggregates, joins, windows.
//!
//! The text is read in the dialect of pipelines, and means what it means there. Nothing is planned.

use datafusion::sql::sqlparser::ast::Query;

use crate::analyse::similar::replace_similar_to;
use crate::error::{Error, Positions};
use crate::parse::one_query;

/// Parses a query of any kind, in the dialect of pipelines and within its bounds: what is parsed can be walked. SIMILAR
/// TO is a match of a regular expression in the result, since DataFusion would take its pattern for one.
///
/// # Errors
///
/// The text is no query, or too long, or a pattern is none of SIMILAR TO.
pub fn parse_query(sql: &str) -> Result<Query, Error> {
    let places = Positions::new(sql);
    let mut query = one_query(sql, &places)?;
    replace_similar_to(&mut query, &places)?;
    Ok(query)
}
