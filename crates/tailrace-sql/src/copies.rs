//! How large an expression becomes while it is planned.
//!
//! DataFusion writes some operations out in others that name an argument twice: `coalesce(a, b)` becomes `CASE WHEN a IS
//! NOT NULL THEN a ELSE b END`, `x BETWEEN a AND b` two comparisons, a short `IN` one for each value. Nested in each other,
//! every level doubles what is below it: twenty levels of `coalesce` are a million copies and gigabytes. This counts them
//! before anything is planned.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Visitor};

use crate::walk::walk;

/// The most parts that an expression may have when all is written out. So many are planned within half a second.
const PARTS_MAX: u64 = 50_000;
/// A longer list of `IN` is not written out as comparisons.
const INLINE_LIST_MAX: usize = 3;
/// Functions that are written out with all arguments but the last one twice.
const TWICE: [&str; 4] = ["coalesce", "nvl", "ifnull", "nvl2"];

/// The first expression that is too large when it is written out.
pub(crate) fn too_many(query: &Query) -> Option<Expr> {
    let mut parts = Parts::default();
    let _ = walk(query, &mut parts);
    parts.found
}

/// Adds up the parts of expressions from the innermost ones on.
#[derive(Default)]
struct Parts {
    /// Of each expression around the one that is looked at, the sizes of what it holds.
    open: Vec<Vec<u64>>,
    found: Option<Expr>,
}

impl Visitor for Parts {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
        self.open.push(Vec::new());
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let held = self.open.pop().unwrap_or_default();
        let size = size(expr, &held);
        if size > PARTS_MAX {
            self.found = Some(expr.clone());
            return ControlFlow::Break(());
        }
        if let Some(around) = self.open.last_mut() {
            around.push(size);
        }
        ControlFlow::Continue(())
    }
}

/// The size of an expression with those that it holds, in their order.
fn size(expr: &Expr, held: &[u64]) -> u64 {
    let all: u64 = held.iter().sum();
    let first = held.first().copied().unwrap_or(0);
    let last = held.last().copied().unwrap_or(0);
    let again = match expr {
        Expr::Function(call) if is_written_twice(&call.name.to_string()) => all - last,
        Expr::Between { .. } => first,
        Expr::InList { list, .. } if list.len() <= INLINE_LIST_MAX => {
            first * list.len().saturating_sub(1) as u64
        }
        _ => 0,
    };
    1 + all + again
}

fn is_written_twice(name: &str) -> bool {
    TWICE.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use crate::any_query;
    use crate::error::Error;
    use crate::plan::on_planning_stack;

    /// As all queries are parsed: with a stack for deep ones.
    fn parsed(sql: &str) -> Result<(), Error> {
        on_planning_stack(|| any_query::parse_query(sql).map(|_| ()))
    }

    fn nested(depth: usize, around: impl Fn(String) -> String) -> String {
        let inner = (0..depth).fold("a".to_owned(), |inner, _| around(inner));
        format!("SELECT {inner} FROM logs")
    }

    #[test]
    fn what_doubles_at_each_level_is_refused_and_what_does_not_is_planned() {
        let first = |depth| nested(depth, |inner| format!("coalesce({inner}, 1)"));
        let last = |depth| nested(depth, |inner| format!("coalesce(b, {inner})"));
        let between = |depth| nested(depth, |inner| format!("({inner} BETWEEN 1 AND 2)"));
        let listed = |depth| nested(depth, |inner| format!("({inner} IN (1, 2, 3))"));
        let functions = |depth| nested(depth, |inner| format!("lower(NVL({inner}, 'x'))"));
        for sql in [first(20), between(20), listed(12), functions(20)] {
            let error = parsed(&sql).unwrap_err();
            assert!(error.message.contains("written out"), "{error:?}");
        }
        for sql in [first(10), last(60), between(10), listed(6), functions(10)] {
            assert!(parsed(&sql).is_ok(), "{sql}");
        }
        let long = vec!["(a BETWEEN 1 AND 2 OR coalesce(a, b) IN (1, 2, 3))"; 180].join(" AND ");
        assert!(parsed(&format!("SELECT * FROM logs WHERE {long}")).is_ok());
    }
}
