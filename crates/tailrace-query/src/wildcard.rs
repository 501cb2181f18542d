//! What `*` stands for: the keys of the records, and not the reserved columns that a table has because the query names them.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    SelectItem, SelectItemQualifiedWildcardKind, TableFactor, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};

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
        let joins = select.from.iter().flat_map(|it| &it.joins);
        let is_merged = joins
            .clone()
            .any(|join| merges_columns(&join.join_operator));
        let factors = select.from.iter().map(|it| &it.relation);
        let factors = factors.chain(joins.map(|join| &join.relation));
        let Some(relations) = factors
            .map(|it| self.relation(it))
            .collect::<Option<Vec<_>>>()
        else {
            return ControlFlow::Continue(());
        };
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            match item {
                SelectItem::Wildcard(options) if relations.len() == 1 => {
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

/// Whether `*` has columns of both sides once.
fn merges_columns(operator: &JoinOperator) -> bool {
    let constraint = match operator {
        JoinOperator::Join(it)
        | JoinOperator::Inner(it)
        | JoinOperator::Left(it)
        | JoinOperator::LeftOuter(it)
        | JoinOperator::Right(it)
        | JoinOperator::RightOuter(it)
        | JoinOperator::FullOuter(it) => it,
        JoinOperator::CrossJoin(_) => return false,
        // The columns of one side are gone.
        _ => return true,
    };
    matches!(
        constraint,
        JoinConstraint::Using(_) | JoinConstraint::Natural
    )
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
