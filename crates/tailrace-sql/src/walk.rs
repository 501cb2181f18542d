//! Walks over the tree of a query. The parser's own walk is compiled for each visitor, a tenth of a megabyte every time; these
//! are compiled once.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, TableFactor, Visit, VisitMut, Visitor, VisitorMut,
};

type Flow = ControlFlow<()>;

/// Shows a visitor all parts of a tree: queries, SELECTs, tables and expressions.
pub fn walk(node: &impl Visit, visitor: &mut dyn Visitor<Break = ()>) -> Flow {
    node.visit(&mut Any(visitor))
}

/// Shows a visitor all parts of a tree, which it may replace.
pub fn walk_mut(node: &mut impl VisitMut, visitor: &mut dyn VisitorMut<Break = ()>) -> Flow {
    node.visit(&mut AnyMut(visitor))
}

/// Shows all expressions of a tree, each before those that it holds.
pub fn expressions(node: &impl Visit, look: &mut dyn FnMut(&Expr) -> Flow) -> Flow {
    walk(node, &mut Each(look))
}

/// Shows all expressions of a tree, each after those that it holds.
pub fn expressions_mut(
    node: &mut impl VisitMut,
    change: &mut dyn FnMut(&mut Expr) -> Flow,
) -> Flow {
    walk_mut(node, &mut EachMut(change))
}

/// The first expression of a tree of this sort.
pub fn first(node: &impl Visit, is_it: &dyn Fn(&Expr) -> bool) -> Option<Expr> {
    let mut found = None;
    let _ = expressions(node, &mut |expr| {
        if !is_it(expr) {
            return ControlFlow::Continue(());
        }
        found = Some(expr.clone());
        ControlFlow::Break(())
    });
    found
}

struct Any<'v>(&'v mut dyn Visitor<Break = ()>);

impl Visitor for Any<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> Flow {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &Query) -> Flow {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &Select) -> Flow {
        self.0.pre_visit_select(select)
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> Flow {
        self.0.pre_visit_table_factor(table)
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        self.0.pre_visit_expr(expr)
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> Flow {
        self.0.post_visit_expr(expr)
    }
}

struct AnyMut<'v>(&'v mut dyn VisitorMut<Break = ()>);

impl VisitorMut for AnyMut<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> Flow {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &mut Query) -> Flow {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Flow {
        self.0.pre_visit_select(select)
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        self.0.post_visit_expr(expr)
    }
}

struct Each<'f>(&'f mut dyn FnMut(&Expr) -> Flow);

impl Visitor for Each<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> Flow {
        (self.0)(expr)
    }
}

struct EachMut<'f>(&'f mut dyn FnMut(&mut Expr) -> Flow);

impl VisitorMut for EachMut<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        (self.0)(expr)
    }
}
