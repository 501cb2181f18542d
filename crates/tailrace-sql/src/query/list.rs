//! SELECT lists, taken apart: stars, keys that are passed through, and expressions with their names.

use std::collections::BTreeSet;

use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, SelectItem, SelectItemQualifiedWildcardKind, Spanned,
    WildcardAdditionalOptions,
};
use tailrace_model::json::Step;

use crate::analyse::{Analysis, bare};
use crate::error::{Error, Position};
use crate::parse::SelectPart;
use crate::types::ColumnSource;

/// An item of a SELECT list.
pub(super) enum Item {
    Passed {
        column: usize,
        name: String,
        place: Position,
    },
    Computed {
        expr: Box<Expr>,
        name: String,
        place: Position,
    },
}

impl Item {
    fn name(&self) -> (&str, Position) {
        match self {
            Item::Passed { name, place, .. } | Item::Computed { name, place, .. } => (name, *place),
        }
    }

    fn rename(&mut self, to: &str) {
        match self {
            Item::Passed { name, .. } | Item::Computed { name, .. } => to.clone_into(name),
        }
    }
}

/// A SELECT list, taken apart.
pub(super) struct List {
    pub(super) items: Vec<Item>,
    pub(super) star: Option<Vec<String>>,
    pub(super) place: Position,
}

/// Takes a SELECT list apart and finds the columns of what is passed through.
pub(super) fn list(analysis: &mut Analysis<'_>, part: &SelectPart) -> Result<List, Error> {
    let place = analysis.places.of(part.select.select_token.0.span);
    let mut list = List {
        items: Vec::new(),
        star: None,
        place,
    };
    for item in &part.select.projection {
        match item {
            SelectItem::Wildcard(options) => star(analysis, &mut list, options)?,
            SelectItem::QualifiedWildcard(kind, options) => {
                let qualifier = match kind {
                    SelectItemQualifiedWildcardKind::ObjectName(name) => name.to_string(),
                    SelectItemQualifiedWildcardKind::Expr(expr) => expr.to_string(),
                };
                if qualifier != part.table {
                    let place = analysis.places.of(item.span());
                    let hint = format!("write `*` or `{}.*`", part.table);
                    return Err(place
                        .error(format!("unknown table `{qualifier}`"))
                        .with_hint(hint));
                }
                star(analysis, &mut list, options)?;
            }
            SelectItem::UnnamedExpr(expr) => unnamed(analysis, &mut list, expr)?,
            SelectItem::ExprWithAlias { expr, alias } => {
                let place = analysis.places.of(item.span());
                let name = alias.value.clone();
                list.items.push(match analysis.key(bare(expr))? {
                    Some(key) => Item::Passed {
                        column: analysis.pass(&key, &item.to_string()),
                        name,
                        place,
                    },
                    None => Item::Computed {
                        expr: Box::new(expr.clone()),
                        name,
                        place,
                    },
                });
            }
            SelectItem::ExprWithAliases { .. } => {
                return Err(analysis
                    .places
                    .of(item.span())
                    .error("an output has one name")
                    .with_hint("write `expression AS name`"));
            }
        }
    }
    Ok(list)
}

fn unnamed(analysis: &mut Analysis<'_>, list: &mut List, expr: &Expr) -> Result<(), Error> {
    let place = analysis.places.of(expr.span());
    let key = analysis.key(expr)?.filter(|key| !key.path);
    let Some(key) = key else {
        // What is wrong with the expression itself comes first: a name would not mend it.
        analysis.output(expr.clone())?;
        let hint = format!("add `AS name`: {expr} AS name");
        return Err(place
            .error(format!("the output `{expr}` has no name"))
            .with_hint(hint));
    };
    let name = match &key.source {
        ColumnSource::Reserved(_, name) => name.clone(),
        ColumnSource::Key(steps) => match steps.first() {
            Some(Step::Key(name)) => name.clone(),
            _ => expr.to_string(),
        },
    };
    let column = analysis.pass(&key, &expr.to_string());
    list.items.push(Item::Passed {
        column,
        name,
        place,
    });
    Ok(())
}

fn star(
    analysis: &Analysis<'_>,
    list: &mut List,
    options: &WildcardAdditionalOptions,
) -> Result<(), Error> {
    let place = analysis.places.of(options.wildcard_token.0.span);
    if list.star.is_some() {
        return Err(place
            .error("a second `*` selects nothing new")
            .with_hint("leave one out"));
    }
    if options.opt_ilike.is_some() || options.opt_replace.is_some() || options.opt_alias.is_some() {
        let hint = "an output named like a key replaces it: `*, upper(level) AS level`";
        return Err(place
            .error("only EXCEPT and EXCLUDE are possible after `*`")
            .with_hint(hint));
    }
    if options.opt_rename.is_some() {
        let hint = "write `* EXCEPT (old), old AS new`";
        return Err(place
            .error("only EXCEPT and EXCLUDE are possible after `*`")
            .with_hint(hint));
    }
    let mut except = Vec::new();
    match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => except.push(name),
        Some(ExcludeSelectItem::Multiple(names)) => except.extend(names),
        None => {}
    }
    let mut names = Vec::new();
    for name in except {
        match name.0.as_slice() {
            [part] => names.extend(part.as_ident().map(|ident| ident.value.clone())),
            _ => {
                let hint = format!("write \"{name}\" for a key with dots in its name");
                return Err(analysis
                    .places
                    .of(name.span())
                    .error("only whole keys can be left out")
                    .with_hint(hint));
            }
        }
    }
    if let Some(except) = &options.opt_except {
        let all = std::iter::once(&except.first_element).chain(&except.additional_elements);
        names.extend(all.map(|ident| ident.value.clone()));
    }
    list.star = Some(names);
    Ok(())
}

/// UNION ALL takes its names from the first SELECT; no SELECT has a name twice.
pub(super) fn unify_names(lists: &mut [List]) -> Result<(), Error> {
    if let [first, others @ ..] = lists {
        for other in others {
            if other.star.is_some() != first.star.is_some() {
                let error = other
                    .place
                    .error("either every SELECT of a UNION ALL selects `*`, or none");
                return Err(error.with_hint("name the outputs, in the same order in each"));
            }
            if other.items.len() != first.items.len() {
                let message = format!(
                    "this SELECT has {} outputs, the first has {}",
                    other.items.len(),
                    first.items.len()
                );
                return Err(other
                    .place
                    .error(message)
                    .with_hint("add `NULL AS name` where one has no value"));
            }
            for (item, first) in other.items.iter_mut().zip(&first.items) {
                item.rename(first.name().0);
            }
        }
    }
    for list in lists {
        let mut seen = BTreeSet::new();
        for item in &list.items {
            let (name, place) = item.name();
            if !seen.insert(name) {
                return Err(place
                    .error(format!("two outputs are named `{name}`"))
                    .with_hint("rename one with AS"));
            }
        }
    }
    Ok(())
}
