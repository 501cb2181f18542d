//! What a scan can do with a query's conditions before it builds the other columns (D3 of the design).
//!
//! Derives from compiled branches the columns that their conditions read and the literals of which a record must hold
//! some to meet them, and decides when each conjunct is evaluated. A query is pushed down as a whole: each branch has
//! a condition and is evaluated without operators. Never looks at data.

use std::collections::BTreeSet;

use tailrace_model::needle::Needles;

use crate::branch::{Branch, Prepared, When};

/// The part of a query that needs a few columns only and tells which records need the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pushdown {
    /// Indices of the columns that the conditions of all branches read, ascending; not empty.
    pub columns: Vec<usize>,
    /// Literals that a record must hold to meet the condition: an AND of [`Needles`]. Empty where any record may.
    pub prefilter: Vec<Needles>,
}

impl Pushdown {
    /// What of the query can be pushed down, if it can. The branches' conjuncts say when each could be evaluated were
    /// it for it alone, and afterwards when it is.
    pub(crate) fn new(branches: &mut [Branch], prepared: &[Prepared]) -> Option<Pushdown> {
        let columns = columns(prepared);
        let alone = branches.len() == 1;
        let mut prefilter = Vec::new();
        for conjunct in branches.iter_mut().flat_map(|branch| &mut branch.predicate) {
            match &conjunct.when {
                _ if columns.is_none() => conjunct.when = When::After,
                // What one branch needs another may not.
                When::Prefilter(_) if !alone => conjunct.when = When::PushedDown,
                When::Prefilter(needles) => prefilter.push(needles.clone()),
                When::PushedDown | When::After => {}
            }
        }
        columns.map(|columns| Pushdown { columns, prefilter })
    }
}

/// The columns that the conditions read, as they are planned; `None` where a branch has none that tells records apart.
fn columns(prepared: &[Prepared]) -> Option<Vec<usize>> {
    let mut read = BTreeSet::new();
    for branch in prepared {
        let columns = branch.expressions.predicate.as_ref()?.column_refs();
        if !branch.row_wise || columns.is_empty() {
            return None;
        }
        for column in columns {
            read.insert(branch.expressions.schema.index_of_column(column).ok()?);
        }
    }
    Some(read.into_iter().collect())
}
