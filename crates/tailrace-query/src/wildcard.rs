//! What `*` stands for: the keys of the records, and not the reserved columns that a table has because the query names them.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    SelectItem, SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitorMut,
    WildcardAdditionalOptions,
};
use tailrace_sql::walk::walk_mut;

use crate::error::Error;
use crate::star::excluded;

/// Leaves the columns that were `added` to tables, by the names of these, out of every `*`.
///
/// # Errors
///
/// A NATURAL JOIN would compare such columns.
pub(crate) fn without_added(
    query: &mut ast::Query,
    added: HashMap<String, Vec<String>>,
) -> Result<(), Error> {
    if added.values().all(Vec::is_empty) {
        return Ok(());
    }
    let mut wildcards = Wildcards {
        added,
        shadows: Vec::new(),
        tables: Vec::new(),
        error: None,
    };
    let _ = walk_mut(query, &mut wildcards);
    wildcards.error.map_or(Ok(()), Err)
}

struct Wildcards {
    added: HashMap<String, Vec<String>>,
    /// The names that WITH gives, of each query around.
    shadows: Vec<Vec<String>>,
    /// What WITH gives names to in each of them, once it has been visited.
    tables: Vec<Vec<ast::Cte>>,
    error: Option<Error>,
}

impl VisitorMut for Wildcards {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        self.shadows.push(Vec::new());
        let with = query.with.as_mut();
        let mut tables = with.map_or_else(Vec::new, |with| std::mem::take(&mut with.cte_tables));
        // What a name means in the query that WITH gives it to is what it means before.
        for table in &mut tables {
            walk_mut(&mut *table.query, self)?;
            if let Some(names) = self.shadows.last_mut() {
                names.push(table.alias.name.value.clone());
            }
        }
        // Once is enough: they would be visited again, each level of them twice as often as the one around.
        self.tables.push(tables);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        self.shadows.pop();
        let tables = self.tables.pop().unwrap_or_default();
        if let Some(with) = &mut query.with {
            with.cte_tables = tables;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let mut relations = Vec::new();
        let is_known = select
            .from
            .iter()
            .all(|tables| self.add_relations(tables, &mut relations).is_some());
        if !is_known {
            return ControlFlow::Continue(());
        }
        let joins = select.from.iter().flat_map(|it| &it.joins);
        let is_merged = joins
            .clone()
            .any(|join| merges_columns(&join.join_operator));
        if joins.clone().any(|join| is_natural(&join.join_operator))
            && let Some(column) = common(&relations)
        {
            self.error = Some(Error {
                hint: Some("write JOIN ... USING and the names of the keys".to_owned()),
                ..Error::usage(format!(
                    "NATURAL JOIN would compare `{column}` as well, which both sides have because the query names it"
                ))
            });
            return ControlFlow::Break(());
        }
        let is_single = joins.count() == 0 && relations.len() == 1;
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) if is_single => {
                    let options = excluding(options, &relations[0].1);
                    items.push(SelectItem::Wildcard(options));
                }
                SelectItem::Wildcard(options)
                    if !is_merged && options == WildcardAdditionalOptions::default() =>
                {
                    items.extend(relations.iter().map(|(name, added)| {
                        let kind = SelectItemQualifiedWildcardKind::ObjectName(name.clone());
                        SelectItem::QualifiedWildcard(kind, excluding(options.clone(), added))
                    }));
                }
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    options,
                ) => {
                    let value = value_of(&name);
                    let named = relations.iter().find(|(it, _)| value_of(it) == value);
                    let options = match named {
                        Some((_, added)) => excluding(options, added),
                        None => options,
                    };
                    let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
                    items.push(SelectItem::QualifiedWildcard(kind, options));
                }
                other => items.push(other),
            }
        }
        select.projection = items;
        ControlFlow::Continue(())
    }
}

impl Wildcards {
    fn added_to(&self, table: &str) -> Option<&Vec<String>> {
        let is_shadowed = self.shadows.iter().flatten().any(|name| name == table);
        self.added.get(table).filter(|_| !is_shadowed)
    }

    /// Adds the relations whose columns `*` stands for. `None` if one of them has no name.
    fn add_relations(
        &self,
        tables: &TableWithJoins,
        relations: &mut Vec<(ObjectName, Vec<String>)>,
    ) -> Option<()> {
        let first = relations.len();
        self.add_relation(&tables.relation, relations)?;
        for join in &tables.joins {
            use JoinOperator as Join;
            match &join.join_operator {
                Join::Semi(_) | Join::Anti(_) | Join::LeftSemi(_) | Join::LeftAnti(_) => {}
                Join::RightSemi(_) | Join::RightAnti(_) => {
                    relations.truncate(first);
                    self.add_relation(&join.relation, relations)?;
                }
                _ => self.add_relation(&join.relation, relations)?,
            }
        }
        Some(())
    }

    fn add_relation(
        &self,
        factor: &TableFactor,
        relations: &mut Vec<(ObjectName, Vec<String>)>,
    ) -> Option<()> {
        match factor {
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => {
                let joins = &table_with_joins.joins;
                if joins.iter().any(|join| merges_columns(&join.join_operator)) {
                    return None;
                }
                self.add_relations(table_with_joins, relations)
            }
            other => {
                relations.push(self.relation(other)?);
                Some(())
            }
        }
    }

    /// How a relation is called in the query, and the columns that were added to it. `None` if it has no name.
    fn relation(&self, factor: &TableFactor) -> Option<(ObjectName, Vec<String>)> {
        let (name, alias, added) = match factor {
            TableFactor::Table { name, alias, .. } => {
                let added = value_of(name).and_then(|name| self.added_to(name));
                (Some(name), alias, added)
            }
            TableFactor::Derived { alias, .. } => (None, alias, None),
            _ => return None,
        };
        let alias = alias.as_ref().map(|alias| {
            let name = ObjectNamePart::Identifier(alias.name.clone());
            ObjectName(vec![name])
        });
        let name = alias.or_else(|| name.cloned())?;
        Some((name, added.cloned().unwrap_or_default()))
    }
}

/// The only part of a name.
fn value_of(name: &ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] => Some(&ident.value),
        _ => None,
    }
}

/// What the rows of both sides have in common.
pub(crate) fn constraint_of(operator: &JoinOperator) -> Option<&JoinConstraint> {
    match operator {
        JoinOperator::Join(it)
        | JoinOperator::Inner(it)
        | JoinOperator::Left(it)
        | JoinOperator::LeftOuter(it)
        | JoinOperator::Right(it)
        | JoinOperator::RightOuter(it)
        | JoinOperator::FullOuter(it)
        | JoinOperator::Semi(it)
        | JoinOperator::LeftSemi(it)
        | JoinOperator::RightSemi(it)
        | JoinOperator::Anti(it)
        | JoinOperator::LeftAnti(it)
        | JoinOperator::RightAnti(it) => Some(it),
        _ => None,
    }
}

/// Whether `*` has columns of both sides once.
fn merges_columns(operator: &JoinOperator) -> bool {
    matches!(
        constraint_of(operator),
        Some(JoinConstraint::Using(_) | JoinConstraint::Natural)
    )
}

fn is_natural(operator: &JoinOperator) -> bool {
    matches!(constraint_of(operator), Some(JoinConstraint::Natural))
}

/// A column that was added to several relations.
fn common(relations: &[(ObjectName, Vec<String>)]) -> Option<&String> {
    let mut seen = BTreeSet::new();
    let mut added = relations.iter().flat_map(|(_, added)| added);
    added.find(|name| !seen.insert(*name))
}

/// The options of a wildcard that leaves out these columns as well.
pub(crate) fn excluding(
    mut options: WildcardAdditionalOptions,
    added: &[String],
) -> WildcardAdditionalOptions {
    if added.is_empty() {
        return options;
    }
    let known: BTreeSet<String> = excluded(&options).into_iter().collect();
    let given = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    let added = added.iter().filter(|name| !known.contains(*name));
    let added: Vec<_> = added
        .map(|name| {
            ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote(
                '"', name,
            ))])
        })
        .collect();
    let all = [given, added].concat();
    options.opt_exclude = (!all.is_empty()).then_some(ExcludeSelectItem::Multiple(all));
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is left of the query where `timestamp` was added to `logs`.
    fn without(sql: &str) -> String {
        let mut query = tailrace_sql::parse_query(sql).unwrap();
        let added = HashMap::from([("logs".to_owned(), vec!["timestamp".to_owned()])]);
        without_added(&mut query, added).unwrap();
        query.to_string()
    }

    #[test]
    fn names_that_with_gives_hide_tables_from_there_on() {
        assert_eq!(
            without("WITH logs AS (SELECT * FROM logs), b AS (SELECT * FROM logs) SELECT * FROM b"),
            "WITH logs AS (SELECT * EXCLUDE (\"timestamp\") FROM logs), b AS (SELECT * FROM logs) SELECT * FROM b"
        );
        assert_eq!(
            without("SELECT * FROM (WITH logs AS (SELECT 1) SELECT * FROM logs) a, logs"),
            "SELECT a.*, logs.* EXCLUDE (\"timestamp\") FROM (WITH logs AS (SELECT 1) SELECT * FROM logs) a, logs"
        );
    }

    /// Each query that WITH gives a name to is looked at once, however deep it is.
    #[test]
    fn with_within_with_takes_no_time() {
        let nested = (0..40).fold("SELECT * FROM logs".to_owned(), |sql, level| {
            format!("WITH c{level} AS ({sql}) SELECT * FROM c{level}")
        });
        let excluded = "SELECT * EXCLUDE (\"timestamp\") FROM logs";
        assert_eq!(
            without(&nested),
            nested.replace("SELECT * FROM logs", excluded)
        );
    }
}
