//! What DataFusion refuses while it plans a query, in words of the query, with the place and a way to ask the same.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::sql::sqlparser::ast::{self, Expr, Spanned, Visitor};
use tailrace_sql::walk::{first, walk};

use super::arguments::{of_arguments, of_signature};
use super::clauses::{found_name, given_name, of_clause};
use super::fields::{of_field, of_unnest};
use super::operators::of_operator;
use super::{Error, word_in};
use crate::sample::reserved_column;

/// Columns that a hint names.
const NAMED_MAX: usize = 12;

/// Refuses an operator with nothing but FROM on its right, which the parser takes for a column of this name, of a query without
/// FROM.
///
/// # Errors
///
/// There is one.
pub(crate) fn check_operands(query: &ast::Query) -> Result<(), Error> {
    let mut operands = Operands(None);
    let _ = walk(query, &mut operands);
    let Some(Expr::BinaryOp { op, right, .. }) = operands.0 else {
        return Ok(());
    };
    Err(Error {
        place: place_of(&*right),
        hint: Some(
            "complete the expression; a column of this name stands in double quotes".to_owned(),
        ),
        ..Error::usage(format!(
            "`{op}` lacks what stands on its right, before FROM"
        ))
    })
}

/// Looks for such an operator.
struct Operands(Option<Expr>);

impl Visitor for Operands {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        let is_one = |expr: &Expr| match expr {
            Expr::BinaryOp { right, .. } => match &**right {
                Expr::Identifier(name) => {
                    name.quote_style.is_none() && name.value.eq_ignore_ascii_case("from")
                }
                _ => false,
            },
            _ => false,
        };
        if select.from.is_empty() {
            self.0 = first(&select.projection, &is_one);
        }
        match self.0 {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

/// A name that no table has; `has_lines`: the query reads log files.
pub(super) fn unknown_column(
    field: &Column,
    valid: &[Column],
    sql: &str,
    has_lines: bool,
) -> Error {
    if let Some(table) = &field.relation
        && !valid.is_empty()
        && !valid.iter().any(|it| it.relation.as_ref() == Some(table))
    {
        let tables = valid.iter().filter_map(|it| it.relation.as_ref());
        let tables = tables.map(|table| format!("`{table}`"));
        let hint = format!("the columns here are those of {}", listed(tables));
        return Error {
            place: place_in(sql, &format!("{table}.")).or_else(|| word_in(sql, table.table())),
            hint: Some(hint),
            ..Error::usage(format!(
                "there is no table `{table}` here, of which `{}` would be a column",
                field.name
            ))
        };
    }
    let name = &field.name;
    let query = tailrace_sql::parse_query(sql).ok();
    if let Some(error) = query.as_ref().and_then(|query| given_name(name, query)) {
        return error;
    }
    let table = field.relation.as_ref();
    let of_table = |query| found_column(query, table?.table(), name);
    let found = query.as_ref().and_then(of_table);
    let found = found.or_else(|| found_name(query.as_ref()?, name));
    let is_of_table = |it: &&Column| table.is_none() || it.relation.as_ref() == table;
    let valid: Vec<_> = valid.iter().filter(is_of_table).cloned().collect();
    Error {
        place: found
            .as_ref()
            .and_then(place_of)
            .or_else(|| word_in(sql, name)),
        hint: Some(hint_for(name, &valid, sql, has_lines)),
        ..Error::usage(format!("there is no column `{name}`"))
    }
}

fn hint_for(name: &str, valid: &[Column], sql: &str, has_lines: bool) -> String {
    if valid.is_empty() && !sql.to_ascii_uppercase().contains("FROM") {
        return "the query reads no table: write FROM".to_owned();
    }
    if has_lines && valid.is_empty() {
        return "the files have no record that has a key".to_owned();
    }
    if reserved_column(name).is_some() && has_lines {
        return format!("`*` does not stand for it: write SELECT *, \"{name}\" where `*` stands");
    }
    let mut known: Vec<_> = valid.iter().map(|it| it.name.as_str()).collect();
    known.sort_unstable();
    known.dedup();
    let mut hints = Vec::new();
    let near = tailrace_sql::nearest(name, known.into_iter());
    let is_near = near.is_some();
    hints.extend(near.map(|near| format!("did you mean `{near}`?")));
    if sql.contains(&format!("\"{name}\"")) {
        let text = name.replace('\'', "''");
        hints.push(format!(
            "In double quotes stands a column; a text stands in single ones: '{text}'."
        ));
    }
    if has_lines {
        hints.push(format!(
            "A key that the beginning of the files lacks becomes a column by `--columns {name}=text`."
        ));
    } else if !is_near {
        let columns = valid.iter().map(|it| format!("`{}`", it.name));
        hints.push(format!("the columns are {}", listed(columns)));
    }
    hints.join(" ")
}

/// Some of the texts, each once.
fn listed(texts: impl Iterator<Item = String>) -> String {
    let mut named: Vec<String> = Vec::new();
    for text in texts {
        if !named.contains(&text) {
            named.push(text);
        }
    }
    let more = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    match more {
        0 => named.join(", "),
        _ => format!("{} and {more} more", named.join(", ")),
    }
}

/// What is refused for a reason that the query shows.
pub(super) fn refused(text: &str, sql: &str, has_lines: bool) -> Option<Error> {
    let query = || tailrace_sql::parse_query(sql).ok();
    if let Some((_, what)) = text.split_once("Physical plan does not support logical expression ")
        && !what.starts_with("WindowFunction")
    {
        return of_subquery(what, &query()?, sql);
    }
    if text.contains("The subquery should only return one column") {
        return Some(of_columns(&query()?));
    }
    if let Some((value, ty)) = unfit(text) {
        return of_literal(value, ty, sql);
    }
    match text.split_once("given name and argument types '") {
        Some((_, call)) => of_arguments(text, call, &query()?, has_lines),
        None => {
            let query = query()?;
            of_clause(text, &query, sql)
                .or_else(|| of_operator(text, &query))
                .or_else(|| of_field(text, &query, has_lines))
                .or_else(|| of_unnest(text, &query, sql))
                .or_else(|| of_signature(text, &query))
        }
    }
}

/// A subquery where DataFusion 55 takes none.
fn of_subquery(what: &str, query: &ast::Query, sql: &str) -> Option<Error> {
    let counted = "as a column it is a count: (SELECT count(*) FROM b WHERE b.k = a.k) > 0";
    let (found, message, hint) = if what.starts_with("InSubquery") {
        let found = find(query, |expr| matches!(expr, Expr::InSubquery { .. }));
        let hint = format!(
            "{counted}; or join it: b.k IS NOT NULL FROM a LEFT JOIN (SELECT DISTINCT k FROM ...) b ON b.k = a.k"
        );
        (
            found,
            "IN with a subquery cannot stand here, only in WHERE",
            hint,
        )
    } else if what.starts_with("Exists") {
        let is_exists = |expr: &Expr| matches!(expr, Expr::Exists { .. });
        let is_in = |expr: &Expr| matches!(expr, Expr::InSubquery { .. });
        match find(query, is_exists) {
            Some(found) => (
                Some(found),
                "EXISTS cannot stand here, only in WHERE",
                counted.to_owned(),
            ),
            // What becomes of it where it reads the query around it.
            None => (
                find(query, is_in),
                "a subquery of IN can read the query around it in its own WHERE only",
                "compare in its WHERE: EXISTS (SELECT 1 FROM b WHERE b.k + a.id = a.k)".to_owned(),
            ),
        }
    } else {
        let column = what
            .rsplit_once("name: \"")
            .and_then(|(_, name)| name.split('"').next());
        let column = column.map_or_else(String::new, |name| format!(", here `{name}`,"));
        let upper = sql.to_ascii_uppercase();
        return Some(Error {
            place: ["LATERAL", "LIMIT"].iter().find_map(|word| word_in(&upper, word)),
            hint: Some("instead of LIMIT, number the rows and join them: JOIN (SELECT *, row_number() OVER (PARTITION BY k ORDER BY t) AS nth FROM b) x ON x.k = a.k AND x.nth <= 1".to_owned()),
            ..Error::usage(format!("a subquery that reads columns of the query around it{column} can compare them for equality in its WHERE only, and has no LIMIT or OFFSET"))
        });
    };
    Some(Error {
        place: found.as_ref().and_then(place_of),
        hint: Some(hint),
        ..Error::usage(message)
    })
}

/// IN with more columns than one.
fn of_columns(query: &ast::Query) -> Error {
    let is_of_tuple = |expr: &Expr| match expr {
        Expr::InSubquery { expr, .. } => matches!(**expr, Expr::Tuple(_)),
        _ => false,
    };
    let found = find(query, is_of_tuple).or_else(|| {
        find(query, |expr| {
            matches!(expr, Expr::InSubquery { .. } | Expr::Subquery(_))
        })
    });
    Error {
        place: found.as_ref().and_then(place_of),
        hint: Some("EXISTS compares several: WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.name = a.name)".to_owned()),
        ..Error::usage("a subquery that is compared has one column, and this one has several")
    }
}

/// Where a query names a column with its table.
fn found_column(query: &ast::Query, table: &str, name: &str) -> Option<Expr> {
    find(query, |expr| match expr {
        Expr::CompoundIdentifier(path) => {
            matches!(&path[..], [.., of, column] if of.value == table && column.value == name)
        }
        _ => false,
    })
}

/// The text that is no value of a type, and the type as Arrow writes it.
pub(super) fn unfit(text: &str) -> Option<(&str, &str)> {
    if let Some((_, rest)) = text.split_once("Error parsing timestamp from '") {
        let (time, _) = rest.rsplit_once("': ")?;
        return Some((time, "Timestamp"));
    }
    let (_, rest) = text
        .split_once("Cannot cast string '")
        .or_else(|| text.split_once("Cannot cast value '"))?;
    let (value, rest) = rest.rsplit_once("' to value of ")?;
    let (ty, _) = rest.rsplit_once(" type")?;
    Some((value, ty))
}

/// A text of the query itself that is no value of a type.
pub(super) fn of_literal(value: &str, ty: &str, sql: &str) -> Option<Error> {
    let literal = format!("'{}'", value.replace('\'', "''"));
    let place = place_in(sql, &literal)?;
    let decimal = decimal_name(ty);
    let (what, hint) = match type_name(ty) {
        "timestamp" => (
            "time",
            "write '2026-03-01T09:00:00Z', '2026-03-01 09:00:00' (in UTC), or a date as '2026-03-01'".to_owned(),
        ),
        other => (
            decimal.as_deref().unwrap_or_else(|| small_type(other)),
            cast_of_literal(value, &literal, sql).unwrap_or_else(|| {
                "compare a column of text with it, or write a value of this type".to_owned()
            }),
        ),
    };
    Some(Error {
        place: Some(place),
        hint: Some(hint),
        ..Error::usage(format!("{literal} is no {what}"))
    })
}

/// What helps where a query casts a text to a type that has no such value.
fn cast_of_literal(value: &str, literal: &str, sql: &str) -> Option<String> {
    let query = tailrace_sql::parse_query(sql).ok()?;
    let is_cast =
        |expr: &Expr| matches!(expr, Expr::Cast { expr, .. } if expr.to_string() == literal);
    let Expr::Cast { data_type, .. } = first(&query, &is_cast)? else {
        return None;
    };
    let name = data_type.to_string();
    let is_fraction = value.contains('.') && value.parse::<f64>().is_ok();
    Some(match is_fraction && name.contains("INT") {
        true => format!(
            "`CAST(CAST({literal} AS DOUBLE) AS {name})` leaves out what stands behind the point"
        ),
        false => format!("`TRY_CAST({literal} AS {name})` is NULL"),
    })
}

/// What a query calls a type that `--columns` has no name for.
fn small_type(ty: &str) -> &str {
    match ty {
        "Int32" => "INT",
        "Int16" => "SMALLINT",
        "Int8" => "TINYINT",
        "Float32" => "REAL",
        "Date32" => "DATE",
        other => other,
    }
}

/// What `json_get` gives.
pub(super) const SEVERAL_KINDS: &str = "values of several kinds";

/// What `--columns` calls a type of Arrow, where it has a name for it.
pub(super) fn type_name(ty: &str) -> &str {
    match ty {
        "Utf8" | "Utf8View" | "LargeUtf8" => "text",
        "Int64" => "int64",
        "Float64" => "float64",
        "Boolean" => "boolean",
        timestamp if timestamp.starts_with("Timestamp") => "timestamp",
        union if union.starts_with("Union") => SEVERAL_KINDS,
        other => other,
    }
}

/// What a query calls a type.
pub(crate) fn name_of_type(ty: &DataType) -> String {
    let text = ty.to_string();
    decimal_name(&text).unwrap_or_else(|| type_name(&text).to_owned())
}

/// What a query calls a type of Arrow, if it is a decimal.
pub(super) fn decimal_name(ty: &str) -> Option<String> {
    let digits = ty.strip_prefix("Decimal128");
    let digits = digits.or_else(|| ty.strip_prefix("Decimal256"))?;
    Some(format!("DECIMAL{digits}"))
}

/// The first expression of this sort: of a list of columns, if there is one, else of any part of the query.
pub(super) fn find(query: &ast::Query, is_it: impl Fn(&Expr) -> bool) -> Option<Expr> {
    let mut of_select = OfSelect(&is_it, None);
    let _ = walk(query, &mut of_select);
    of_select.1.or_else(|| first(query, &is_it))
}

struct OfSelect<'f>(&'f dyn Fn(&Expr) -> bool, Option<Expr>);

impl Visitor for OfSelect<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        self.1 = first(&select.projection, self.0);
        match self.1 {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Where an expression begins, if its tree says so.
pub(crate) fn place_of(part: &impl Spanned) -> Option<(usize, usize)> {
    let start = part.span().start;
    (start.line > 0).then_some((start.line as usize, start.column as usize))
}

/// Where a text stands in the SQL for the first time.
pub(super) fn place_in(sql: &str, text: &str) -> Option<(usize, usize)> {
    let lines = sql.lines().enumerate();
    let mut places = lines.filter_map(|(number, line)| {
        let at = line.find(text)?;
        Some((number + 1, line[..at].chars().count() + 1))
    });
    places.next()
}
