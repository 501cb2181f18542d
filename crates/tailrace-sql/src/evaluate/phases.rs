//! A query in two phases: conditions on the few columns that they read, then the rest for the rows that are left.
//!
//! The first batch has the columns of [`Pushdown`](crate::Pushdown), the second one all columns with the selected
//! rows only; together they give what one evaluation gives, with rows counted in the second batch. No condition
//! is evaluated twice: a volatile one may say something else.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;

use crate::failures::{Failure, Failures};
use crate::query::Query;
use crate::row_wise::RowWise;
use crate::selected::Rows;
use crate::value::counts::Counts;

/// The conditions of all branches, over the columns of the pushdown.
#[derive(Debug)]
pub(super) struct Conditions {
    pub(super) schema: SchemaRef,
    pub(super) predicates: Vec<Arc<dyn PhysicalExpr>>,
}

/// Which rows of a batch a query keeps.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Those that some branch keeps.
    pub rows: Rows,
    /// By branch: those that it keeps, as positions in `rows`.
    pub(super) branches: Vec<Rows>,
    pub(super) failures: Failures,
    pub(super) counts: Counts,
}

impl Conditions {
    /// # Errors
    /// When a condition reads a column that the pushdown has not, which compiling the query excludes.
    pub(super) fn new<'r>(
        query: &Query,
        branches: impl Iterator<Item = &'r RowWise>,
    ) -> Result<Option<Conditions>> {
        let Some(pushdown) = query.pushdown() else {
            return Ok(None);
        };
        let schema = Arc::new(query.schema().project(&pushdown.columns)?);
        let predicates = branches
            .filter_map(|row_wise| row_wise.predicate_over(&schema))
            .collect::<Result<_>>()?;
        Ok(Some(Conditions { schema, predicates }))
    }
}

impl Selection {
    /// How many rows a condition failed for, which was NULL there, and the conditions.
    pub fn failures(&self) -> (u64, Vec<Failure>) {
        let (rows, failures) = self.failures.clone().take();
        (rows + self.counts.failed, failures)
    }
}

/// The rows that at least one branch keeps.
pub(super) fn union(branches: &[Rows], count: usize) -> Rows {
    let mut kept: Vec<bool> = Vec::new();
    for branch in branches {
        match branch {
            Rows::All => return Rows::All,
            Rows::Some(rows) if branches.len() == 1 => return Rows::Some(rows.clone()),
            Rows::Some(rows) => {
                kept.resize(count, false);
                rows.iter().for_each(|&row| kept[row as usize] = true);
            }
        }
    }
    let numbers = (0_u32..).zip(&kept).filter(|(_, kept)| **kept);
    let rows: Vec<u32> = numbers.map(|(row, _)| row).collect();
    if rows.len() == count {
        return Rows::All;
    }
    Rows::Some(rows)
}

/// Where the rows of a branch stand in a union that holds them all.
pub(super) fn positions(branch: Rows, union: &Rows) -> Rows {
    let (mut rows, union) = match (branch, union) {
        (rows, Rows::All) => return rows,
        // Then the union was all, too.
        (Rows::All, Rows::Some(_)) => return Rows::All,
        (Rows::Some(rows), Rows::Some(union)) if rows.len() == union.len() => return Rows::All,
        (Rows::Some(rows), Rows::Some(union)) => (rows, union),
    };
    let mut numbered = (0_u32..).zip(union);
    for row in &mut rows {
        let found = numbered.find(|(_, other)| *other == row);
        *row = found.expect("both ascend, and the union holds every row").0;
    }
    Rows::Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unions_and_positions() {
        let some = |rows: &[u32]| Rows::Some(rows.to_vec());
        let check = |branches: &[Rows], expect: Rows, places: &[Rows]| {
            let union = union(branches, 5);
            assert_eq!(union, expect);
            let found = branches.iter().map(|rows| positions(rows.clone(), &union));
            assert_eq!(found.collect::<Vec<_>>(), places);
        };
        check(&[some(&[1, 3])], some(&[1, 3]), &[Rows::All]);
        check(&[Rows::All], Rows::All, &[Rows::All]);
        check(&[some(&[]), some(&[])], some(&[]), &[Rows::All, Rows::All]);
        check(
            &[some(&[0, 3]), some(&[]), some(&[3, 4])],
            some(&[0, 3, 4]),
            &[some(&[0, 1]), some(&[]), some(&[1, 2])],
        );
        check(
            &[some(&[1]), Rows::All],
            Rows::All,
            &[some(&[1]), Rows::All],
        );
        check(
            &[some(&[0, 2, 4]), some(&[1, 3])],
            Rows::All,
            &[some(&[0, 2, 4]), some(&[1, 3])],
        );
    }
}
