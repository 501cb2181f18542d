//! Functions in FROM as DataFusion has them: with names in small letters, `LATERAL unnest` without that word, and `unnest` and series with a name for
//! their column.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, FunctionArguments, Ident, Join, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, VisitorMut,
};
use tailrace_sql::walk::walk_mut;

use super::{column_of, expr_of};

/// What `unnest` without a name is called, and its column.
const UNNEST: &str = "unnest";
/// The functions of one column, which has the name of the table if that has one.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// Writes them so.
pub(super) fn written(query: &mut ast::Query) {
    let _ = walk_mut(query, &mut Functions);
}

struct Functions;

impl VisitorMut for Functions {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let mut is_named = false;
        for mut tables in std::mem::take(&mut select.from) {
            of_tables(&mut tables, &mut is_named);
            match select.from.last_mut() {
                Some(before) if begins_with_list(&tables) => add(before, tables),
                _ => select.from.push(tables),
            }
        }
        ControlFlow::Continue(())
    }
}

/// Whether an `unnest` of a column is joined with what comes after it, so that each row before it can be joined first.
fn begins_with_list(tables: &TableWithJoins) -> bool {
    let is_of_column = match &tables.relation {
        TableFactor::UNNEST { array_exprs, .. } => {
            array_exprs.iter().any(|it| column_of(it).is_some())
        }
        _ => false,
    };
    // Others keep rows that have no partner before it, or look for the columns of a name there, too.
    let is_possible = |join: &Join| {
        use JoinOperator::{CrossJoin, Inner, Join, Left, LeftOuter};
        let (CrossJoin(constraint)
        | Join(constraint)
        | Inner(constraint)
        | Left(constraint)
        | LeftOuter(constraint)) = &join.join_operator
        else {
            return false;
        };
        matches!(constraint, JoinConstraint::On(_) | JoinConstraint::None)
    };
    is_of_column && !tables.joins.is_empty() && tables.joins.iter().all(is_possible)
}

/// Joins tables to those before them.
fn add(before: &mut TableWithJoins, tables: TableWithJoins) {
    before.joins.push(Join {
        relation: tables.relation,
        global: false,
        join_operator: JoinOperator::CrossJoin(JoinConstraint::None),
    });
    before.joins.extend(tables.joins);
}

/// `is_named`: there is an `unnest` already that is called so.
fn of_tables(tables: &mut TableWithJoins, is_named: &mut bool) {
    let joined = tables.joins.iter_mut().map(|join| &mut join.relation);
    for table in std::iter::once(&mut tables.relation).chain(joined) {
        match table {
            TableFactor::Table {
                name,
                args: Some(_),
                alias,
                ..
            } => {
                in_small_letters(name);
                name_series(name, alias);
            }
            TableFactor::Function {
                name, args, alias, ..
            } => {
                in_small_letters(name);
                name_series(name, alias);
                if name.to_string() == UNNEST {
                    *table = TableFactor::UNNEST {
                        alias: alias.take(),
                        array_exprs: args.iter().filter_map(expr_of).collect(),
                        with_offset: false,
                        with_offset_alias: None,
                        with_ordinality: false,
                    };
                }
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => of_tables(table_with_joins, is_named),
            _ => {}
        }
        if let TableFactor::UNNEST {
            alias, array_exprs, ..
        } = table
            && let [list] = &array_exprs[..]
        {
            name_columns(alias, members_of(list), is_named);
        }
    }
}

/// The members of a struct that is written out, each of which is a column.
fn members_of(list: &Expr) -> Option<Vec<Ident>> {
    let numbered = |count| (0..count).map(|at| Ident::new(format!("c{at}"))).collect();
    match list {
        Expr::Dictionary(members) => Some(members.iter().map(|it| it.key.clone()).collect()),
        Expr::Struct { values, .. } => Some(numbered(values.len())),
        Expr::Function(called) => {
            let FunctionArguments::List(list) = &called.args else {
                return None;
            };
            let args: Vec<_> = list.args.iter().filter_map(expr_of).collect();
            match called.name.to_string().to_ascii_lowercase().as_str() {
                "struct" => Some(numbered(args.len())),
                "named_struct" => args.iter().step_by(2).map(name_in).collect(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The name that a text is.
fn name_in(text: &Expr) -> Option<Ident> {
    let Expr::Value(value) = text else {
        return None;
    };
    let name = value.value.clone().into_string()?;
    Some(Ident::with_quote('"', name))
}

/// Names the column of `unnest` as what it is called, or its columns as the members of a struct.
fn name_columns(alias: &mut Option<TableAlias>, members: Option<Vec<Ident>>, is_named: &mut bool) {
    if alias.is_none() && !std::mem::replace(is_named, true) {
        *alias = Some(TableAlias {
            explicit: true,
            name: Ident::new(UNNEST),
            columns: Vec::new(),
            at: None,
        });
    }
    if let Some(alias) = alias {
        if let Some(members) = members
            && alias.columns.is_empty()
        {
            alias.columns = members.into_iter().map(column).collect();
        }
        as_its_table(alias);
    }
}

/// Names the column of a series as its table is called.
fn name_series(function: &ObjectName, alias: &mut Option<TableAlias>) {
    if SERIES.contains(&function.to_string().as_str()) {
        alias.iter_mut().for_each(as_its_table);
    }
}

fn as_its_table(alias: &mut TableAlias) {
    if alias.columns.is_empty() {
        alias.columns.push(column(alias.name.clone()));
    }
}

fn column(name: Ident) -> TableAliasColumnDef {
    TableAliasColumnDef {
        name,
        data_type: None,
    }
}

fn in_small_letters(name: &mut ObjectName) {
    if let [ObjectNamePart::Identifier(ident)] = &mut name.0[..] {
        ident.value.make_ascii_lowercase();
    }
}
