//! The names of the columns that a SELECT has to read, as far as the query and the files tell them.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias,
    TableFactor, TableWithJoins, WildcardAdditionalOptions,
};

use crate::star::excluded;

/// The tables that a query can name.
#[derive(Clone)]
pub(super) struct Known<'t> {
    /// The columns of files.
    files: &'t HashMap<String, Vec<String>>,
    /// The columns of the tables of WITH.
    with: HashMap<String, Outputs>,
}

/// The names of the columns of a table or of several.
#[derive(Clone, Debug, Default)]
pub(super) struct Outputs {
    names: HashSet<String>,
    /// There may be others.
    has_more: bool,
}

impl Outputs {
    fn unknown() -> Outputs {
        Outputs {
            has_more: true,
            ..Outputs::default()
        }
    }

    fn of(names: impl IntoIterator<Item = String>) -> Outputs {
        Outputs {
            names: names.into_iter().collect(),
            has_more: false,
        }
    }

    fn add(&mut self, others: Outputs) {
        self.names.extend(others.names);
        self.has_more |= others.has_more;
    }

    /// Whether there is one of this name; `None`: nobody knows.
    pub(super) fn has(&self, name: &str) -> Option<bool> {
        let has = self.names.contains(name);
        (has || !self.has_more).then_some(has)
    }

    /// What a star gives of them.
    fn by_star(mut self, options: &WildcardAdditionalOptions) -> Outputs {
        // What these do to names is not followed.
        if options.opt_rename.is_some() || options.opt_ilike.is_some() {
            return Outputs::unknown();
        }
        for name in excluded(options) {
            self.names.remove(&name);
        }
        self
    }

    fn called(self, alias: Option<&TableAlias>) -> Outputs {
        match alias {
            Some(alias) if !alias.columns.is_empty() => {
                let columns = alias.columns.iter();
                Outputs::of(columns.map(|column| column.name.value.clone()))
            }
            _ => self,
        }
    }
}

impl<'t> Known<'t> {
    pub(super) fn new(files: &'t HashMap<String, Vec<String>>) -> Known<'t> {
        Known {
            files,
            with: HashMap::new(),
        }
    }

    /// With the tables of the WITH of a query.
    pub(super) fn within(&self, query: &Query) -> Known<'t> {
        let mut known = self.clone();
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let outputs = known.of_query(&table.query).called(Some(&table.alias));
            known.with.insert(table.alias.name.value.clone(), outputs);
        }
        known
    }

    /// All columns of the tables of a FROM.
    pub(super) fn of_tables(&self, from: &[TableWithJoins]) -> Outputs {
        let mut all = Outputs::default();
        for table in factors(from) {
            all.add(self.of_table(table));
        }
        all
    }

    fn of_table(&self, table: &TableFactor) -> Outputs {
        let (columns, alias) = match table {
            TableFactor::Table {
                name,
                alias,
                args: None,
                ..
            } => {
                let last = name.0.last().and_then(|part| part.as_ident());
                let last = last.map_or("", |last| last.value.as_str());
                let columns = match (self.with.get(last), self.files.get(last)) {
                    (Some(outputs), _) => outputs.clone(),
                    (None, Some(columns)) => Outputs::of(columns.iter().cloned()),
                    (None, None) => Outputs::unknown(),
                };
                (columns, alias)
            }
            TableFactor::Derived {
                subquery, alias, ..
            } => (self.of_query(subquery), alias),
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } => (
                self.of_tables(std::slice::from_ref(table_with_joins)),
                alias,
            ),
            // The column is called as what it is made from.
            TableFactor::UNNEST { alias, .. } => (Outputs::default(), alias),
            TableFactor::Table { alias, .. } => (Outputs::unknown(), alias),
            _ => return Outputs::unknown(),
        };
        columns.called(alias.as_ref())
    }

    fn of_query(&self, query: &Query) -> Outputs {
        self.within(query).of_body(&query.body)
    }

    /// Those of a UNION are called as in its first query.
    fn of_body(&self, body: &SetExpr) -> Outputs {
        match body {
            SetExpr::Select(select) => self.of_select(select),
            SetExpr::Query(query) => self.of_query(query),
            SetExpr::SetOperation { left, .. } => self.of_body(left),
            SetExpr::Values(values) => {
                let count = values.rows.first().map_or(0, |row| row.content.len());
                Outputs::of((1..=count).map(|at| format!("column{at}")))
            }
            _ => Outputs::unknown(),
        }
    }

    fn of_select(&self, select: &Select) -> Outputs {
        let mut all = Outputs::default();
        for item in &select.projection {
            let name = match item {
                SelectItem::UnnamedExpr(Expr::Identifier(name)) => name.value.clone(),
                SelectItem::UnnamedExpr(expr) => match expr {
                    Expr::CompoundIdentifier(path) => {
                        path.last().map_or_else(String::new, |it| it.value.clone())
                    }
                    other => other.to_string(),
                },
                SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
                SelectItem::Wildcard(options) => {
                    all.add(self.of_tables(&select.from).by_star(options));
                    continue;
                }
                SelectItem::QualifiedWildcard(of, options) => {
                    all.add(self.of_one(select, of).by_star(options));
                    continue;
                }
                _ => {
                    all.has_more = true;
                    continue;
                }
            };
            all.names.insert(name);
        }
        all
    }

    /// The columns of the table that stands before `.*`.
    fn of_one(&self, select: &Select, of: &SelectItemQualifiedWildcardKind) -> Outputs {
        let SelectItemQualifiedWildcardKind::ObjectName(name) = of else {
            return Outputs::unknown();
        };
        let wanted = name.0.last().and_then(|part| part.as_ident());
        let is_wanted = |table: &&TableFactor| {
            let called = match table {
                TableFactor::Table {
                    alias: Some(alias), ..
                }
                | TableFactor::Derived {
                    alias: Some(alias), ..
                } => Some(&alias.name),
                TableFactor::Table { name, .. } => name.0.last().and_then(|it| it.as_ident()),
                _ => None,
            };
            called.is_some_and(|called| wanted.is_some_and(|it| it.value == called.value))
        };
        let table = factors(&select.from).find(is_wanted);
        table.map_or_else(Outputs::unknown, |table| self.of_table(table))
    }
}

/// The tables of a FROM, one by one.
fn factors(from: &[TableWithJoins]) -> impl Iterator<Item = &TableFactor> {
    from.iter().flat_map(|from| {
        let joined = from.joins.iter().map(|join| &join.relation);
        std::iter::once(&from.relation).chain(joined)
    })
}
