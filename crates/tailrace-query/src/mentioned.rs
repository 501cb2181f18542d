//! The columns that a query names.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Visitor};

use tailrace_sql::walk::walk;

use crate::wildcard::constraint_of;

/// The columns that a query names: of reserved columns only those become columns of the table that it speaks of.
pub(crate) fn mentioned(query: &ast::Query) -> Vec<String> {
    let mut names = Names::default();
    let _ = walk(query, &mut names);
    let Names(mut names) = names;
    names.sort_unstable();
    names.dedup();
    names
}

#[derive(Default)]
struct Names(Vec<String>);

impl Visitor for Names {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Identifier(name) => self.0.push(name.value.clone()),
            ast::Expr::CompoundIdentifier(path) => {
                self.0.extend(path.iter().map(|it| it.value.clone()));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        for join in select.from.iter().flat_map(|it| &it.joins) {
            if let Some(ast::JoinConstraint::Using(columns)) = constraint_of(&join.join_operator) {
                let parts = columns.iter().flat_map(|name| &name.0);
                let idents = parts.filter_map(ast::ObjectNamePart::as_ident);
                self.0.extend(idents.map(|ident| ident.value.clone()));
            }
        }
        ControlFlow::Continue(())
    }
}
