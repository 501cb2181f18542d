//! Fields of objects, as SQL writes them: `http.status` and `http['status']`. Of lines, objects are JSON, which `->` reaches into.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, AccessExpr, Expr, Subscript, TableFactor, Visitor};
use tailrace_sql::walk::walk;

use super::planning::{find, place_of};
use super::{Error, word_in};

/// A field of what has none, as DataFusion says it.
pub(super) fn of_field(text: &str, query: &ast::Query, has_lines: bool) -> Option<Error> {
    if !text.contains("Cannot access field at argument") {
        return None;
    }
    // The first part may be a table.
    let tables = tables(query);
    let is_one = |(object, _): (String, String)| !tables.contains(&object);
    let found = find(query, |expr| reached(expr).is_some_and(is_one));
    let reached = found.as_ref().and_then(reached);
    let hint = match &reached {
        Some((object, field)) if has_lines => format!(
            "write {object}->>'{field}' for its text, and {object}->'{field}' for its value"
        ),
        _ => "`->` reaches into JSON: column->>'field'".to_owned(),
    };
    let object = reached.map_or_else(|| "this".to_owned(), |(object, _)| format!("`{object}`"));
    Some(Error {
        place: found.as_ref().and_then(place_of),
        hint: Some(hint),
        ..Error::usage(format!("{object} has no fields that `.` and `[...]` reach"))
    })
}

/// `unnest` of what is no list, as DataFusion says it.
pub(super) fn of_unnest(text: &str, query: &ast::Query, sql: &str) -> Option<Error> {
    if !text.starts_with("unnest() can only be applied to array, struct and null") {
        return None;
    }
    let found = find(query, |expr| match expr {
        Expr::Function(called) => called.name.to_string().eq_ignore_ascii_case("unnest"),
        _ => false,
    });
    Some(Error {
        place: found
            .as_ref()
            .and_then(place_of)
            .or_else(|| word_in(&sql.to_ascii_lowercase(), "unnest")),
        hint: Some(
            "of a JSON array, unnest(json_get_array(x)) gives the members, each as JSON".to_owned(),
        ),
        ..Error::usage("`unnest` takes a list")
    })
}

/// The names of tables in a query, and what else they are called there.
fn tables(query: &ast::Query) -> Vec<String> {
    let mut tables = Tables(Vec::new());
    let _ = walk(query, &mut tables);
    tables.0
}

struct Tables(Vec<String>);

impl Visitor for Tables {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, .. } = table {
            self.0.push(name.to_string());
            self.0
                .extend(alias.iter().map(|alias| alias.name.to_string()));
        }
        ControlFlow::Continue(())
    }
}

/// An object and the field of it that an expression asks for.
fn reached(expr: &Expr) -> Option<(String, String)> {
    match expr {
        Expr::CompoundIdentifier(parts) => {
            let (field, object) = parts.split_last()?;
            Some((object.last()?.to_string(), field.value.clone()))
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = match access_chain.first()? {
                AccessExpr::Dot(Expr::Identifier(field)) => field.value.clone(),
                AccessExpr::Subscript(Subscript::Index {
                    index: Expr::Value(value),
                }) => value.value.clone().into_string()?,
                _ => return None,
            };
            Some((root.to_string(), field))
        }
        _ => None,
    }
}
