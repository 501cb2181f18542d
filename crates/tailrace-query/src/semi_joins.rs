//! `SEMI JOIN` and `ANTI JOIN`, which keep rows of the table on their left. DataFusion 55 only knows them as `LEFT SEMI JOIN` and `LEFT ANTI
//! JOIN`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, JoinOperator, TableFactor, TableWithJoins, VisitorMut,
};
use tailrace_sql::walk::walk_mut;

/// Writes them in that way.
pub(crate) fn of_left(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Joins);
}

struct Joins;

impl VisitorMut for Joins {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        select.from.iter_mut().for_each(of_tables);
        ControlFlow::Continue(())
    }
}

fn of_tables(tables: &mut TableWithJoins) {
    of_table(&mut tables.relation);
    for join in &mut tables.joins {
        of_table(&mut join.relation);
        join.join_operator = match &join.join_operator {
            JoinOperator::Semi(condition) => JoinOperator::LeftSemi(condition.clone()),
            JoinOperator::Anti(condition) => JoinOperator::LeftAnti(condition.clone()),
            _ => continue,
        };
    }
}

/// Joins in parentheses.
fn of_table(table: &mut TableFactor) {
    if let TableFactor::NestedJoin {
        table_with_joins, ..
    } = table
    {
        of_tables(table_with_joins);
    }
}
