//! Parts of a query that stand in a clause where they cannot, and names that mean nothing or several things.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr, SelectItem, SetExpr, TableFactor, Visitor};
use tailrace_sql::walk::{first, walk};

use super::Error;
use super::planning::{find, place_of};
use super::words::of_words;
use crate::unsupported::name_of;

/// Functions that are called with OVER only.
const WINDOWS: [&str; 11] = [
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Functions of many rows that people write in the wrong place.
const AGGREGATES: [&str; 11] = [
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "avg",
    "count",
    "max",
    "mean",
    "median",
    "min",
    "percentile_cont",
    "sum",
];

const IN_SUBQUERY: &str = "in a subquery: SELECT * FROM (SELECT *, row_number() OVER (ORDER BY ...) AS n FROM ...) WHERE n = 1";

/// What DataFusion's text says of a clause or a name.
pub(super) fn of_clause(text: &str, query: &ast::Query, sql: &str) -> Option<Error> {
    ungrouped(text, query)
        .or_else(|| aggregates(text, query))
        .or_else(|| unknown_function(text, query))
        .or_else(|| ambiguous(text, query))
        .or_else(|| one_name_twice(text, query))
        .or_else(|| places_of_columns(text, query))
        .or_else(|| of_words(text, sql))
}

/// A name that SELECT gives, in a clause that knows only the columns of tables.
pub(super) fn given_name(name: &str, query: &ast::Query) -> Option<Error> {
    let expr = aliased(name, query)?;
    let is_itself = |expr: &Expr| matches!(expr, Expr::Identifier(known) if known.value == name);
    if first(&expr, &is_itself).is_some() {
        // What is named has a column of that name in it, which is the one that is missing.
        return None;
    }
    let place = found_name(query, name).as_ref().and_then(place_of);
    let is_window = |expr: &Expr| matches!(expr, Expr::Function(called) if called.over.is_some());
    let hint = match first(&expr, &is_window).is_some() {
        true => IN_SUBQUERY.to_owned(),
        false => format!("write `{expr}` instead of `{name}`"),
    };
    Some(Error {
        place,
        hint: Some(hint),
        ..Error::usage(format!(
            "`{name}` is a name that SELECT gives, and cannot be used here"
        ))
    })
}

/// The expression that some SELECT calls so.
fn aliased(name: &str, query: &ast::Query) -> Option<Expr> {
    let mut aliases = Aliases(name, None);
    let _ = walk(query, &mut aliases);
    aliases.1
}

struct Aliases<'n>(&'n str, Option<Expr>);

impl Visitor for Aliases<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        let named = select.projection.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value == self.0 => Some(expr),
            _ => None,
        });
        self.1 = self.1.take().or_else(|| named.cloned());
        ControlFlow::Continue(())
    }
}

/// Where a query names a column, with or without its table.
pub(super) fn found_name(query: &ast::Query, name: &str) -> Option<Expr> {
    let is_of = |ident: &ast::Ident| {
        let before = name.strip_suffix(ident.value.as_str());
        before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    find(query, |expr| match expr {
        Expr::Identifier(ident) => is_of(ident),
        Expr::CompoundIdentifier(idents) => idents.last().is_some_and(is_of),
        _ => false,
    })
}

/// A column that is not in GROUP BY, and stands where one of groups must.
fn ungrouped(text: &str, query: &ast::Query) -> Option<Error> {
    let (clause, rest) = text.split_once(" must be in GROUP BY or an aggregate function: ")?;
    let clause = clause.rsplit_once(" in ").map_or("SELECT", |(_, it)| it);
    let (_, rest) = rest.split_once("column \"")?;
    let (column, _) = rest.split_once("\" must appear")?;
    let Some(found) = found_name(query, column) else {
        return Some(Error {
            hint: Some("name the columns of GROUP BY instead of `*`".to_owned()),
            ..Error::usage(format!(
                "`*` has the column `{column}`, which is not in GROUP BY"
            ))
        });
    };
    Some(Error {
        place: place_of(&found),
        hint: Some(format!(
            "add it to GROUP BY, or take one value of each group, as `max({found})` does"
        )),
        ..Error::usage(format!(
            "`{found}` stands in {clause} beside groups, and is not in GROUP BY"
        ))
    })
}

/// Aggregates and windows in WHERE, or in one another.
fn aggregates(text: &str, query: &ast::Query) -> Option<Error> {
    let is_call = |expr: &Expr| match expr {
        Expr::Function(called) => {
            let name = called.name.to_string().to_ascii_lowercase();
            called.over.is_none() && (AGGREGATES.contains(&name.as_str()) || name.contains("_agg"))
        }
        _ => false,
    };
    if text.starts_with("Aggregate functions are not allowed in the WHERE clause") {
        let condition = condition(query);
        let found = condition.as_ref().and_then(|it| first(it, &is_call));
        return Some(Error {
            place: found.as_ref().and_then(place_of),
            hint: Some("HAVING compares groups: GROUP BY ... HAVING count(*) > 1".to_owned()),
            ..Error::usage("an aggregate function cannot stand in WHERE")
        });
    }
    if text.contains("does not support logical expression WindowFunction") {
        let is_window = |expr: &Expr| matches!(expr, Expr::Function(it) if it.over.is_some());
        let condition = condition(query);
        let found = condition.as_ref().and_then(|it| first(it, &is_window));
        return Some(Error {
            place: found.as_ref().and_then(place_of),
            hint: Some(IN_SUBQUERY.to_owned()),
            ..Error::usage("a window function cannot stand here, only in SELECT and ORDER BY")
        });
    }
    text.starts_with("Aggregate function calls cannot be nested")
        .then(|| Error {
            place: find(query, is_call).as_ref().and_then(place_of),
            hint: Some(
                "aggregate in a subquery: SELECT max(n) FROM (SELECT count(*) AS n FROM ... GROUP BY ...)"
                    .to_owned(),
            ),
            ..Error::usage("an aggregate function cannot stand in another")
        })
}

/// The first WHERE.
fn condition(query: &ast::Query) -> Option<Expr> {
    struct Conditions(Option<Expr>);
    impl Visitor for Conditions {
        type Break = ();

        fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
            self.0 = self.0.take().or_else(|| select.selection.clone());
            ControlFlow::Continue(())
        }
    }
    let mut conditions = Conditions(None);
    let _ = walk(query, &mut conditions);
    conditions.0
}

fn unknown_function(text: &str, query: &ast::Query) -> Option<Error> {
    let (_, rest) = text.split_once("Invalid function '")?;
    let (name, rest) = rest.split_once('\'')?;
    let near = rest
        .split_once("Did you mean '")
        .and_then(|(_, rest)| rest.split('\'').next());
    let found = find(query, |expr| match expr {
        Expr::Function(called) => called.name.to_string().eq_ignore_ascii_case(name),
        _ => false,
    });
    let place = found.as_ref().and_then(place_of);
    if WINDOWS.contains(&name.to_ascii_lowercase().as_str()) {
        return Some(Error {
            place,
            hint: Some(format!("write {name}(...) OVER (ORDER BY ...)")),
            ..Error::usage(format!("`{name}` is a function of windows, and needs OVER"))
        });
    }
    let instead =
        tailrace_sql::other_function(name).or_else(|| tailrace_sql::other_aggregate(name));
    let near = near.and_then(|near| tailrace_sql::nearest(name, std::iter::once(near)));
    let near = near.map(|near| format!("did you mean `{near}`?"));
    Some(Error {
        place,
        hint: instead.map(|instead| format!("write `{instead}`")).or(near),
        ..Error::usage(format!("there is no function `{name}`"))
    })
}

fn ambiguous(text: &str, query: &ast::Query) -> Option<Error> {
    let (_, name) = text.split_once("Ambiguous reference to unqualified field ")?;
    let name = name.trim_matches('"');
    let mut tables = Tables(Vec::new());
    let _ = walk(query, &mut tables);
    // A file has no name that could stand before a column.
    let names = tables.0.iter().filter(|table| !table.starts_with('\''));
    let names = names.map(|table| format!("`{table}.{name}`")).take(3);
    let names: Vec<_> = names.collect();
    Some(Error {
        place: found_name(query, name).as_ref().and_then(place_of),
        hint: Some(match names.is_empty() {
            true => format!("name the files, and then the column: FROM '...' a, and `a.{name}`"),
            false => format!("name its table: {}", names.join(" or ")),
        }),
        ..Error::usage(format!("`{name}` is a column of several tables"))
    })
}

/// What tables are called.
struct Tables(Vec<String>);

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        let name = name_of(table);
        self.0.extend(name.filter(|name| !self.0.contains(name)));
        ControlFlow::Continue(())
    }
}

fn one_name_twice(text: &str, query: &ast::Query) -> Option<Error> {
    let name = if let Some((_, rest)) = text.split_once("and unqualified field name ") {
        rest.split_once(" which would be ambiguous")?.0
    } else if let Some((_, rest)) = text.split_once("duplicate unqualified field name ") {
        rest
    } else {
        let (_, rest) = text
            .split_once("expressions names but the expression \"")
            .or_else(|| text.split_once("unique expression names but the expression \""))?;
        rest.split_once("\" at position")?.0
    };
    let name = name.trim_matches('"');
    let name = name.rsplit_once(" AS ").map_or(name, |(_, it)| it);
    if let Some(key) = order_by_column(query, name) {
        return Some(Error {
            place: place_of(&key),
            hint: Some("give the computed column another name".to_owned()),
            ..Error::usage(format!(
                "`{key}` in ORDER BY is a column, and `{name}` a computed one of the result"
            ))
        });
    }
    Some(Error {
        place: found_name(query, name).as_ref().and_then(place_of),
        hint: Some("give one another name, as in `x AS other`".to_owned()),
        ..Error::usage(format!("two columns of the result are called `{name}`"))
    })
}

/// A column with its table in ORDER BY, of whose name the result has one column that is another.
fn order_by_column(query: &ast::Query, name: &str) -> Option<Expr> {
    let (SetExpr::Select(select), Some(order)) = (&*query.body, &query.order_by) else {
        return None;
    };
    let is_named = |item: &&SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias.value == name);
    let is_plain = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    let items = &select.projection;
    if items.iter().filter(is_named).count() != 1 || !items.iter().all(is_plain) {
        return None;
    }
    first(
        order,
        &|expr| matches!(expr, Expr::CompoundIdentifier(path) if path.last().is_some_and(|it| it.value == name)),
    )
}

/// Numbers of columns in ORDER BY and GROUP BY.
fn places_of_columns(text: &str, query: &ast::Query) -> Option<Error> {
    let (clause, number, count) =
        if let Some((_, rest)) = text.split_once("Order by column out of bounds, specified: ") {
            let (number, count) = rest.split_once(", max: ")?;
            ("ORDER BY", number, count)
        } else {
            let (_, rest) = text.split_once("Cannot find column with position ")?;
            let (number, rest) = rest.split_once(" in SELECT clause. Valid columns: 1 to ")?;
            ("GROUP BY", number, rest)
        };
    let order = query.order_by.as_ref();
    let found = order
        .filter(|_| clause == "ORDER BY")
        .and_then(|order| first(order, &|expr| expr.to_string() == number));
    Some(Error {
        place: found.as_ref().and_then(place_of),
        hint: Some("a number there is the place of a column in SELECT, from 1".to_owned()),
        ..Error::usage(format!("{clause} {number}: SELECT has {count} column(s)"))
    })
}
