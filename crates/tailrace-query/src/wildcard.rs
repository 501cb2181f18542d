//! What `*` stands for: the keys of the records, and not the reserved columns that a table has because the query names them.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    SelectItem, SelectItemQualifiedWildcardKind, TableFactor, TableWithJoins, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

use crate::error::Error;

/// Leaves the columns that were `added` to tables, by the names of these, out of every `*`.
pub(crate) fn without_added(query: &mut ast::Query, added: HashMap<String, Vec<String>>) {
    if added.values().all(Vec::is_empty) {
        return;
    }
    let mut wildcards = Wildcards {
        added,
        shadows: Vec::new(),
    };
    let _ = VisitMut::visit(query, &mut wildcards);
}

struct Wildcards {
    added: HashMap<String, Vec<String>>,
    /// The names that WITH gives, of each query around.
    shadows: Vec<Vec<String>>,
}

impl VisitorMut for Wildcards {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        self.shadows.push(Vec::new());
        // What a name means in the query that WITH gives it to is what it means before.
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            let _ = VisitMut::visit(&mut cte.query, self);
            if let Some(names) = self.shadows.last_mut() {
                names.push(cte.alias.name.value.clone());
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.shadows.pop();
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

/// Refuses `count(DISTINCT *)`, which DataFusion takes for the count of one constant.
///
/// # Errors
///
/// The query has it.
pub(crate) fn check_counts(query: &ast::Query) -> Result<(), Error> {
    let found = ast::visit_expressions(query, |expr| match expr {
        ast::Expr::Function(called) if counts_distinct_rows(called) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    match found {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error {
            hint: Some("SELECT count(*) FROM (SELECT DISTINCT * FROM logs) does".to_owned()),
            ..Error::usage("count(DISTINCT *) does not count rows")
        }),
    }
}

fn counts_distinct_rows(called: &ast::Function) -> bool {
    let ast::FunctionArguments::List(list) = &called.args else {
        return false;
    };
    let is_distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
    let all = ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard);
    is_distinct && list.args.contains(&all)
}

/// The options of a wildcard that leaves out these columns as well.
fn excluding(
    mut options: WildcardAdditionalOptions,
    added: &[String],
) -> WildcardAdditionalOptions {
    if added.is_empty() {
        return options;
    }
    let given = match options.opt_exclude.take() {
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => Vec::new(),
    };
    let except = options.opt_except.iter();
    let except = except.flat_map(|it| {
        [
            vec![&it.first_element],
            it.additional_elements.iter().collect(),
        ]
    });
    let except = except.flatten().map(|ident| ident.value.as_str());
    let known: BTreeSet<_> = given.iter().filter_map(value_of).chain(except).collect();
    let added = added.iter().filter(|name| !known.contains(name.as_str()));
    let added: Vec<_> = added
        .map(|name| {
            ObjectName(vec![ObjectNamePart::Identifier(Ident::with_quote(
                '"', name,
            ))])
        })
        .collect();
    let excluded = [given, added].concat();
    options.opt_exclude = (!excluded.is_empty()).then_some(ExcludeSelectItem::Multiple(excluded));
    options
}
