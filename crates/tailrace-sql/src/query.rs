//! A query, compiled: what it needs, what it gives, and how it runs.
//!
//! Takes SQL text and [`Options`], gives a [`Query`]. `SELECT *` is expanded by nobody: it is reported as a star, and
//! the scanner finds the keys. Never evaluates; that is the [`Evaluator`]'s.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::logical_expr_common::type_coercion::binary::type_union_coercion;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, ExcludeSelectItem, Expr, SelectItem, SelectItemQualifiedWildcardKind, Spanned,
    WildcardAdditionalOptions, visit_expressions,
};

use crate::analyse::{Analysis, arrow_cast, bare};
use crate::error::{Error, Place, Places, Warning, planner_message, type_name};
use crate::evaluate::Evaluator;
use crate::general::General;
use crate::parse::{Part, parse};
use crate::plan::{
    Computed, Expressions, NoRows, Outputs, Rewritten, on_planning_stack, plan, row_wise,
    table_schema,
};
use crate::row_wise::RowWise;
use crate::session::{Clock, Session};
use crate::types::{Column, Columns, Options, Source, Star};

/// A compiled query. Cheap to share, planned once.
#[derive(Debug)]
pub struct Query {
    columns: Vec<Column>,
    schema: SchemaRef,
    star: Option<Star>,
    branches: Vec<Branch>,
    warnings: Vec<Warning>,
    prepared: Vec<Prepared>,
}

/// One SELECT of the query; several are joined by UNION ALL.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// The outputs that the query names, in order; a star's keys come besides.
    pub outputs: Vec<Output>,
    /// The parts of WHERE that are joined by AND; empty without WHERE.
    pub predicate: Vec<Conjunct>,
    /// Whether the branch is evaluated without DataFusion's operators.
    pub row_wise: bool,
    /// Why it is not row-wise.
    pub reason: Option<String>,
    /// Whether every key of the record is an output too, but those in `star_except` and those named like an output.
    pub star: bool,
    /// Keys that this branch's star leaves out.
    pub star_except: Vec<String>,
    /// The branch's computed outputs and WHERE, over physical columns.
    pub sql: String,
}

/// A condition that every row of a branch meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conjunct {
    /// As the user wrote it.
    pub text: String,
    /// Indices of the columns it reads, ascending.
    pub columns: Vec<usize>,
}

/// One named output.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Its name, unique in the branch.
    pub name: String,
    /// Where its values are.
    pub value: OutputValue,
}

/// Where an output's values are.
#[derive(Clone, Debug, PartialEq)]
pub enum OutputValue {
    /// In this column of the batch as it was scanned.
    Column(usize),
    /// In the next array of [`Selected::computed`](crate::Selected::computed), of this type.
    Computed(DataType),
}

/// What an evaluator needs of a branch.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) rewritten: Rewritten,
    /// The condition and the outputs without unnest.
    pub(crate) expressions: Expressions,
    /// Types of the computed outputs.
    pub(crate) types: Vec<DataType>,
    pub(crate) row_wise: bool,
}

impl Query {
    /// Compiles one SELECT, or a UNION ALL of them, over the table `logs`.
    ///
    /// # Errors
    /// SQL that does not parse, that needs more than one record (aggregates, sorting, limits, joins, subqueries), that
    /// names an unknown function or table, or that leaves an output without a name; with its place and what to do.
    pub fn compile(sql: &str, options: &Options) -> Result<Query, Error> {
        on_planning_stack(|| compile(sql, options))
    }

    /// The physical columns a batch has, in order.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The schema of a batch: one nullable field per column.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Set if a branch selects `*`; the keys no branch's star wants are excepted.
    pub fn star(&self) -> Option<&Star> {
        self.star.as_ref()
    }

    /// The SELECTs, in order.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// What may not be as meant.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// A new evaluator, one for each worker.
    pub fn evaluator(&self) -> Evaluator {
        Evaluator::new(self)
    }

    pub(crate) fn prepared(&self) -> &[Prepared] {
        &self.prepared
    }
}

/// An item of a SELECT list.
enum Item {
    Passed {
        column: usize,
        name: String,
        place: Place,
    },
    Computed {
        expr: Expr,
        name: String,
        place: Place,
    },
}

impl Item {
    fn name(&self) -> (&str, Place) {
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
struct List {
    items: Vec<Item>,
    star: Option<Vec<String>>,
    place: Place,
}

fn compile(sql: &str, options: &Options) -> Result<Query, Error> {
    let places = Places::new(sql);
    let parts = parse(sql, &places)?;
    let internal = |error: DataFusionError| {
        Place::START
            .error(planner_message(&error))
            .with_hint("this is a defect of Tailrace: report it")
    };
    let session = Session::new(&Clock::default()).map_err(internal)?;
    let mut analysis = Analysis::new(&session, options, &places);
    // What is passed through comes first, so that expressions find its columns.
    let mut lists = Vec::with_capacity(parts.len());
    for part in &parts {
        part.table.clone_into(&mut analysis.table);
        lists.push(list(&mut analysis, part)?);
    }
    unify_names(&mut lists)?;
    let mut branches = Vec::with_capacity(parts.len());
    for (part, list) in parts.into_iter().zip(lists) {
        analysis.table.clone_from(&part.table);
        branches.push(Draft::new(&mut analysis, part, list)?);
    }
    let Analysis {
        columns, warnings, ..
    } = analysis;
    let schema = columns.schema();
    let planner = Planner {
        session: &session,
        columns: &columns,
        schema: &schema,
    };
    let mut prepared = planner.prepare_all(&mut branches)?;
    unify_types(&planner, &mut branches, &mut prepared)?;
    let star = star_of(&branches);
    let branches = branches
        .into_iter()
        .zip(&prepared)
        .map(|(draft, prepared)| draft.finish(prepared))
        .collect();
    Ok(Query {
        columns: columns.into_list(),
        schema,
        star,
        branches,
        warnings,
        prepared,
    })
}

fn list(analysis: &mut Analysis<'_>, part: &Part) -> Result<List, Error> {
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
                        expr: expr.clone(),
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
        let hint = format!("add `AS name`: {expr} AS name");
        return Err(place
            .error(format!("the output `{expr}` has no name"))
            .with_hint(hint));
    };
    let name = match &key.source {
        Source::Reserved(_, name) => name.clone(),
        Source::Key(steps) => match steps.first() {
            Some(tailrace_model::json::Step::Key(name)) => name.clone(),
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
            .error("only EXCEPT and EXCLUDE are possible behind `*`")
            .with_hint(hint));
    }
    if options.opt_rename.is_some() {
        let hint = "write `* EXCEPT (old), old AS new`";
        return Err(place
            .error("only EXCEPT and EXCLUDE are possible behind `*`")
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
fn unify_names(lists: &mut [List]) -> Result<(), Error> {
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

/// A branch on its way to a plan.
struct Draft {
    rewritten: Rewritten,
    outputs: Vec<(String, Slot)>,
    /// Places of the computed outputs.
    places: Vec<Place>,
    predicate: Vec<Conjunct>,
    star: Option<Vec<String>>,
    place: Place,
}

/// Where a draft's output comes from.
enum Slot {
    Column(usize),
    Computed,
}

impl Draft {
    fn new(analysis: &mut Analysis<'_>, part: Part, list: List) -> Result<Draft, Error> {
        let mut outputs = Vec::with_capacity(list.items.len());
        let mut computed = Vec::new();
        let mut places = Vec::new();
        for item in list.items {
            match item {
                Item::Passed { column, name, .. } => outputs.push((name, Slot::Column(column))),
                Item::Computed { expr, name, place } => {
                    let expr = analysis.output(expr)?;
                    computed.push(Computed {
                        expr,
                        name: name.clone(),
                        unnests: analysis.unnest_found,
                    });
                    places.push(place);
                    outputs.push((name, Slot::Computed));
                }
            }
        }
        let original = part.select.selection.clone();
        let condition = original
            .clone()
            .map(|condition| analysis.condition(condition))
            .transpose()?;
        let mut predicate = Vec::new();
        if let (Some(original), Some(condition)) = (&original, &condition) {
            conjuncts(original, condition, &analysis.columns, &mut predicate);
        }
        let rewritten = Rewritten {
            select: part.select,
            computed,
            condition,
        };
        Ok(Draft {
            rewritten,
            outputs,
            places,
            predicate,
            star: list.star,
            place: list.place,
        })
    }

    fn finish(self, prepared: &Prepared) -> Branch {
        let mut types = prepared.types.iter();
        let mut output = |(name, slot)| {
            let value = match slot {
                Slot::Column(index) => OutputValue::Column(index),
                Slot::Computed => {
                    OutputValue::Computed(types.next().cloned().unwrap_or(DataType::Null))
                }
            };
            Output { name, value }
        };
        let outputs = self.outputs.into_iter().map(&mut output).collect();
        let kind = if prepared.row_wise {
            Outputs::Scalar
        } else {
            Outputs::Numbered
        };
        Branch {
            outputs,
            predicate: self.predicate,
            row_wise: prepared.row_wise,
            reason: (!prepared.row_wise).then(|| "unnest makes several rows of one".to_owned()),
            star: self.star.is_some(),
            star_except: self.star.unwrap_or_default(),
            sql: prepared.rewritten.query(kind).to_string(),
        }
    }
}

/// The parts joined by AND, with the columns that the rewritten twin of each reads.
fn conjuncts(original: &Expr, rewritten: &Expr, columns: &Columns, found: &mut Vec<Conjunct>) {
    match (original, rewritten) {
        (
            Expr::BinaryOp {
                left: a,
                op: BinaryOperator::And,
                right: b,
            },
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            },
        ) => {
            conjuncts(a, left, columns, found);
            conjuncts(b, right, columns, found);
        }
        (Expr::Nested(a), Expr::Nested(b))
            if matches!(
                **a,
                Expr::BinaryOp {
                    op: BinaryOperator::And,
                    ..
                }
            ) =>
        {
            conjuncts(a, b, columns, found);
        }
        _ => {
            let mut read = BTreeSet::new();
            let _: ControlFlow<()> = visit_expressions(rewritten, |expr| {
                if let Expr::Identifier(ident) = expr {
                    read.extend(columns.position(&ident.value));
                }
                ControlFlow::Continue(())
            });
            found.push(Conjunct {
                text: original.to_string(),
                columns: read.into_iter().collect(),
            });
        }
    }
}

struct Planner<'a> {
    session: &'a Session,
    columns: &'a Columns,
    schema: &'a Schema,
}

impl Planner<'_> {
    fn prepare_all(&self, drafts: &mut [Draft]) -> Result<Vec<Prepared>, Error> {
        drafts.iter().map(|draft| self.prepare(draft)).collect()
    }

    fn prepare(&self, draft: &Draft) -> Result<Prepared, Error> {
        let place = draft.places.first().copied().unwrap_or(draft.place);
        self.try_prepare(&draft.rewritten).map_err(|error| {
            let mut message = planner_message(&error);
            for column in self.columns.list() {
                message = message.replace(&column.name, &column.label);
            }
            place
                .error(message)
                .with_hint("check what each function and cast of this SELECT is given")
        })
    }

    fn try_prepare(&self, rewritten: &Rewritten) -> Result<Prepared, DataFusionError> {
        let source = || Arc::new(NoRows(table_schema(self.schema)));
        let scalar = plan(self.session, rewritten.query(Outputs::Scalar), source())?;
        let Some(expressions) = row_wise(self.session, scalar)? else {
            return datafusion::common::plan_err!("the query is no selection of rows");
        };
        let numbered = self.session.simplify(plan(
            self.session,
            rewritten.query(Outputs::Numbered),
            source(),
        )?)?;
        let fields = numbered.schema().fields().iter().skip(1);
        let types = fields.map(|field| field.data_type().clone()).collect();
        let row_wise = !rewritten.unnests();
        let rewritten = rewritten.clone();
        let prepared = Prepared {
            rewritten,
            expressions,
            types,
            row_wise,
        };
        // What an evaluator will do later must not be the first to fail.
        let clock = Clock::default();
        let runner = RowWise::new(&prepared, &clock)?;
        if !row_wise {
            let schema = Arc::new(self.schema.clone());
            General::new(&prepared, &schema, runner, &clock)?;
        }
        Ok(prepared)
    }
}

/// Computed outputs of several branches get the type DataFusion's UNION ALL would give them.
fn unify_types(
    planner: &Planner<'_>,
    drafts: &mut [Draft],
    prepared: &mut [Prepared],
) -> Result<(), Error> {
    let count = drafts.first().map_or(0, |draft| draft.outputs.len());
    let mut changed = BTreeSet::new();
    for output in 0..count {
        let mut common: Option<DataType> = None;
        let mut members = Vec::new();
        for (index, draft) in drafts.iter().enumerate() {
            let slots = &draft.outputs[..=output];
            if matches!(slots[output].1, Slot::Column(_)) {
                continue;
            }
            let computed = slots
                .iter()
                .filter(|(_, slot)| matches!(slot, Slot::Computed))
                .count()
                - 1;
            let ty = &prepared[index].types[computed];
            common = Some(match &common {
                None => ty.clone(),
                Some(common) => type_union_coercion(common, ty).ok_or_else(|| {
                    let name = &slots[output].0;
                    let message = format!(
                        "the output `{name}` is {} in one SELECT and {} in this",
                        type_name(common),
                        type_name(ty)
                    );
                    draft.places[computed]
                        .error(message)
                        .with_hint("cast one of them")
                })?,
            });
            members.push((index, computed));
        }
        for (index, computed) in members {
            if let Some(common) = common
                .as_ref()
                .filter(|common| **common != prepared[index].types[computed])
            {
                let computed = &mut drafts[index].rewritten.computed[computed];
                computed.expr = arrow_cast(computed.expr.clone(), common);
                changed.insert(index);
            }
        }
    }
    for index in changed {
        prepared[index] = planner.prepare(&drafts[index])?;
    }
    Ok(())
}

/// One star for the scanner: it leaves out what every branch's star leaves out.
fn star_of(drafts: &[Draft]) -> Option<Star> {
    let mut stars = drafts.iter().filter_map(|draft| draft.star.as_ref());
    let first = stars.next()?;
    let others: Vec<_> = stars.collect();
    let every = |name: &&String| others.iter().all(|except| except.contains(name));
    Some(Star {
        except: first.iter().filter(every).cloned().collect(),
    })
}
