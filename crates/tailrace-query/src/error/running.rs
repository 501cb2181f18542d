//! What goes wrong while a query runs, with the column or the expression that it is about.

use std::ops::ControlFlow;
use std::path::Path;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::default_table_source::source_as_provider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{self as logical, ExprSchemable, LogicalPlan};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Value};
use tailrace_sql::tree::{each_part, each_step};
use tailrace_sql::walk::expressions;

use super::Error;
use super::patterns::refused_regex;
use super::planning::{decimal_name, of_literal, place_in, place_of, type_name, unfit};
use super::values::of_value;
use crate::csv_head::QUOTES;
use crate::table::Table;

/// A query that was running.
pub(crate) struct Ran<'a> {
    pub(crate) sql: &'a str,
    pub(crate) plan: &'a LogicalPlan,
    pub(crate) state: &'a SessionState,
}

impl Ran<'_> {
    /// What is to be said of an error with this text, if it is one that the query shows more of.
    pub(super) fn explained(&self, text: &str) -> Option<Error> {
        of_text(text, self)
            .or_else(|| of_division(text, self))
            .or_else(|| of_overflow(text))
            .or_else(|| of_value(text))
            .or_else(|| of_unit(text, self.sql))
            .or_else(|| of_time(text))
            .or_else(|| refused_regex(text, self.sql))
            .or_else(|| of_csv_value(text, self))
            .or_else(|| of_csv_line(text, self))
            .or_else(|| of_file_written_to(text))
    }

    /// The texts that the query makes values of this type of, each with what becomes of it.
    fn cast_to(&self, ty: &str) -> Vec<(logical::Expr, DataType)> {
        let mut found: Vec<(logical::Expr, DataType)> = Vec::new();
        let analyzer = self.state.analyzer();
        let options = self.state.config_options();
        let Ok(plan) = analyzer.execute_and_check(self.plan.clone(), options, |_, _| {}) else {
            return found;
        };
        // The closures give no error.
        let _ = each_step(&plan, &mut |node| {
            let schema = merge_schema(&node.inputs());
            for expr in node.expressions() {
                let _ = each_part(&expr, &mut |expr| {
                    if let Some((text, made)) = made_of_text(expr)
                        && is_of_type(&made, ty)
                        && !is_number(text)
                        && text.get_type(&schema).is_ok_and(|it| it.is_string())
                        && !found.iter().any(|(known, _)| known == text)
                    {
                        found.push((text.clone(), made));
                    }
                    Ok(TreeNodeRecursion::Continue)
                });
            }
            Ok(TreeNodeRecursion::Continue)
        });
        found
    }

    /// A text that is no value of a type that the query makes of it.
    fn unfit(&self, text: &str, ty: &str) -> Error {
        let all = self.cast_to(ty);
        // The error has the places of any decimal.
        let written = all.first().map(|(_, ty)| ty.to_string());
        let decimal =
            decimal_name(ty).map(|any| written.and_then(|it| decimal_name(&it)).unwrap_or(any));
        let sql_type = match ty {
            "Int64" => "BIGINT",
            "Float64" => "DOUBLE",
            "Timestamp" => "TIMESTAMP",
            _ if ty.starts_with("Int") => "INT",
            _ if ty.starts_with("Date") => "DATE",
            _ => decimal.as_deref().unwrap_or(ty),
        };
        let ours = type_name(ty);
        let shown = if ours == ty { sql_type } else { ours };
        let names: Vec<_> = all.iter().map(|(expr, _)| named(expr)).collect();
        let name = match all.first() {
            Some((logical::Expr::Column(column), _)) => &column.name,
            _ => "x",
        };
        let columns = match &all[..] {
            [(logical::Expr::Column(_), _)] if reads_lines(self.plan) && ours != ty => {
                format!(", and so does the column with `--columns {name}={ours}`")
            }
            _ => String::new(),
        };
        let place = match names.len() {
            0 => String::new(),
            _ => format!(" in {}", names.join(" or ")),
        };
        Error {
            hint: Some(format!(
                "`TRY_CAST({name} AS {sql_type})` gives NULL for such a text{columns}"
            )),
            ..Error::failure(format!("the text '{text}'{place} is no {shown}"))
        }
    }
}

/// How a person is told of an expression: by its columns.
fn named(expr: &logical::Expr) -> String {
    let columns = expr.column_refs().into_iter();
    let mut columns: Vec<_> = columns.map(|it| format!("`{}`", it.name)).collect();
    columns.sort();
    columns.dedup();
    match expr {
        logical::Expr::Column(column) => format!("`{}`", column.name),
        _ if columns.is_empty() => "an expression".to_owned(),
        _ => format!("an expression of {}", columns.join(" and ")),
    }
}

/// What a cast, or `to_timestamp` and its like, makes a value of, and the type of that.
fn made_of_text(expr: &logical::Expr) -> Option<(&logical::Expr, DataType)> {
    match expr {
        logical::Expr::Cast(cast) => Some((&cast.expr, cast.field.data_type().clone())),
        logical::Expr::ScalarFunction(call) if call.name().starts_with("to_timestamp") => {
            let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
            Some((call.args.first()?, time))
        }
        _ => None,
    }
}

/// A date that no time with nanoseconds is, and a local time that a zone has twice or never.
fn of_time(text: &str) -> Option<Error> {
    if let Some((_, rest)) = text.split_once("Cannot cast Date32 value ") {
        let days = rest.split(' ').next()?.parse().ok()?;
        let date = chrono::NaiveDate::from_epoch_days(days)?;
        return Some(Error {
            hint: Some("compare it with a date, as `d < DATE '2026-06-01'`, or take times of microseconds: `arrow_cast(d, 'Timestamp(Microsecond, None)')`".to_owned()),
            ..Error::failure(format!(
                "the date {date} becomes a time here, and times have nanoseconds: they are of the years 1677 to 2262"
            ))
        });
    }
    text.contains("Cannot cast timezone to different timezone")
        .then(|| Error {
            hint: Some(
                "write its offset, as in '2026-10-25T02:30:00+02:00', or leave such times out"
                    .to_owned(),
            ),
            ..Error::failure(
                "a local time is not there in its time zone, or twice, as when clocks change",
            )
        })
}

/// Whether it is a literal, as it stands or as a number that has another type.
fn is_number(expr: &logical::Expr) -> bool {
    match expr {
        logical::Expr::Literal(..) => true,
        logical::Expr::Negative(inner) => is_number(inner),
        logical::Expr::Cast(cast) => is_number(&cast.expr),
        _ => false,
    }
}

/// Whether it is the type that an error names; of times and decimals it does not say which.
fn is_of_type(ty: &DataType, name: &str) -> bool {
    match ty {
        DataType::Timestamp(..) => name == "Timestamp",
        DataType::Decimal128(..) => name.starts_with("Decimal128("),
        DataType::Decimal256(..) => name.starts_with("Decimal256("),
        other => other.to_string() == name,
    }
}

/// Whether a query reads log files.
pub(crate) fn reads_lines(plan: &LogicalPlan) -> bool {
    let mut found = false;
    each_scan(plan, |scan| {
        let provider = source_as_provider(&scan.source);
        found |= provider.is_ok_and(|it| it.downcast_ref::<Table>().is_some());
    });
    found
}

/// Calls `each` with every table that is read.
fn each_scan(plan: &LogicalPlan, mut each: impl FnMut(&logical::TableScan)) {
    // The closure gives no error.
    let _ = each_step(plan, &mut |node| {
        if let LogicalPlan::TableScan(scan) = node {
            each(scan);
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// A text that is no value of a type: one of the query itself, or of the data.
fn of_text(text: &str, ran: &Ran<'_>) -> Option<Error> {
    let (value, ty) = unfit(text)?;
    // What the query compares with may stand in the data, too: it is of the query only where nothing else becomes such a value.
    let is_of_data = !ran.cast_to(ty).is_empty();
    let of_query = || of_literal(value, ty, ran.sql).filter(|_| !is_of_data);
    Some(of_query().unwrap_or_else(|| ran.unfit(value, ty)))
}

/// A division by zero.
fn of_division(text: &str, ran: &Ran<'_>) -> Option<Error> {
    // The second is that of a condition that Parquet's reader looks at.
    if !text.contains("Divide by zero") && !text.contains("DivideByZero") {
        return None;
    }
    let query = tailrace_sql::parse_query(ran.sql).ok()?;
    let mut found = Vec::new();
    let _ = expressions(&query, &mut |expr| {
        if let Expr::BinaryOp { op, right, .. } = expr
            && matches!(op, BinaryOperator::Divide | BinaryOperator::Modulo)
            && literal(right).is_none_or(|number| number == 0.0)
        {
            found.push(expr.clone());
        }
        ControlFlow::Continue(())
    });
    let named: Vec<_> = found.iter().map(|expr| format!("`{expr}`")).collect();
    let Some(Expr::BinaryOp { left, op, right }) = found.first() else {
        return Some(Error {
            hint: Some("`x / nullif(y, 0)` is NULL there".to_owned()),
            ..Error::failure("a division by zero")
        });
    };
    let error = match found.len() {
        1 => format!("{} divides by zero", named[0]),
        _ => format!("a division by zero, in {}", named.join(" or ")),
    };
    if literal(right).is_some() {
        return Some(Error {
            place: place_of(&**left),
            hint: Some("divide by another number".to_owned()),
            ..Error::usage(error)
        });
    }
    Some(Error {
        hint: Some(format!("`{left} {op} nullif({right}, 0)` gives NULL there")),
        ..Error::failure(error)
    })
}

/// A unit of time that there is not.
fn of_unit(text: &str, sql: &str) -> Option<Error> {
    const UNITS: [&str; 10] = [
        "microsecond",
        "millisecond",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
    ];
    let (_, rest) = text.split_once("Unsupported date_trunc granularity: '")?;
    let (unit, _) = rest.split_once('\'')?;
    let place = place_in(sql, &format!("'{unit}'"));
    Some(Error {
        hint: Some(match tailrace_sql::nearest(unit, UNITS.into_iter()) {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("the units are {}", UNITS.join(", ")),
        }),
        is_usage: place.is_some(),
        place,
        ..Error::usage(format!("'{unit}' is no unit of time"))
    })
}

/// A number that is beyond its type. Arrow says which numbers led to it, and of a sum that it is one.
fn of_overflow(text: &str) -> Option<Error> {
    let (_, rest) = text.split_once("Overflow happened on: ")?;
    let numbers = rest.lines().next().unwrap_or_default();
    let (what, casted) = match numbers {
        "sum" => ("a sum", "sum(CAST(x AS DECIMAL(38, 0)))"),
        "decimal" => ("a decimal", "CAST(x AS DECIMAL(38, 0))"),
        _ => (numbers, "CAST(x AS DECIMAL(38, 0))"),
    };
    let rounded = casted.replace("DECIMAL(38, 0)", "DOUBLE");
    Some(Error {
        hint: Some(format!("`{casted}` has 38 digits, and `{rounded}` rounds")),
        ..Error::failure(format!("{what} is beyond its type"))
    })
}

/// The number that an expression is.
fn literal(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.parse().ok(),
            _ => None,
        },
        Expr::Nested(inner) => literal(inner),
        _ => None,
    }
}

/// A value of a CSV file that does not fit its column. The line that Arrow names counts from somewhere in the file.
fn of_csv_value(text: &str, ran: &Ran<'_>) -> Option<Error> {
    let (_, rest) = text.split_once("Error while parsing value '")?;
    let (value, rest) = rest.split_once("' as type '")?;
    let (ty, rest) = rest.split_once("' for column ")?;
    let (column, _) = rest.split_once(' ')?;
    let column: usize = column.parse().ok()?;
    let mut files = Vec::new();
    let mut name = None;
    each_scan(ran.plan, |scan| {
        let schema = scan.source.schema();
        let field = schema.fields().get(column);
        if let Some(field) = field.filter(|it| it.data_type().to_string() == ty)
            && is_csv(scan)
        {
            push_new(&mut files, scan.table_name.table());
            name.get_or_insert_with(|| field.name().clone());
        }
    });
    let (file, name) = (files.join(" or "), name?);
    Some(Error {
        hint: Some(match value.parse::<f64>() {
            Ok(_) if ty == "Int64" && value.contains('.') => {
                format!("`--columns {name}=float64` reads the column as fractions")
            }
            _ => format!("`--columns {name}=text` reads the column as text"),
        }),
        ..Error::failure(format!(
            "{file}: the value '{value}' in the column `{name}` is no {}, which is its type by the first rows or by `--columns`",
            type_name(ty)
        ))
    })
}

/// A line of a CSV file with more or fewer fields than the others.
fn of_csv_line(text: &str, ran: &Ran<'_>) -> Option<Error> {
    let (_, rest) = text.split_once("incorrect number of fields for line ")?;
    let (_, rest) = rest.split_once(", expected ")?;
    let (expected, got) = rest.split_once(" got ")?;
    let mut files = Vec::new();
    each_scan(ran.plan, |scan| {
        if is_csv(scan) {
            push_new(&mut files, scan.table_name.table());
        }
    });
    let file = files.join(" or ");
    Some(Error {
        hint: Some(super::CSV_LINE.to_owned()),
        ..Error::failure(format!(
            "{file}: a line does not have as many fields as the header: {got} instead of {expected}"
        ))
    })
}

/// A file of this machine that others wrote to while it was read.
fn of_file_written_to(text: &str) -> Option<Error> {
    let (_, said) = text.split_once("Generic LocalFileSystem error: ")?;
    if said.ends_with(" is not closed") {
        return Some(Error {
            hint: Some(QUOTES.to_owned()),
            ..Error::failure(said)
        });
    }
    said.ends_with(" while it was read")
        .then(|| Error::failure(said))
}

fn is_csv(scan: &logical::TableScan) -> bool {
    let name = scan.table_name.table();
    crate::kind::is_csv(name) || Path::new(name).is_dir()
}

fn push_new(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}
