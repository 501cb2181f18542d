//! Branches on their way from analysed expressions to checked plans.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Expr::Literal;
use datafusion::logical_expr_common::type_coercion::binary::type_union_coercion;
use datafusion::sql::sqlparser::ast::{Expr, Spanned};

use super::list::{Item, List};
use crate::analyse::{Analysis, arrow_cast, as_value};
use crate::branch::{Branch, Conjunct, Output, OutputValue, Prepared, When, pairs};
use crate::error::{Error, Position, Warning, planner_message, type_name};
use crate::general::General;
use crate::needles::needles;
use crate::parse::SelectPart;
use crate::plan::{
    Computed, Expressions, NoRows, Outputs, Rewritten, plan, row_wise, table_schema,
};
use crate::row_wise::RowWise;
use crate::session::{Clock, Session};
use crate::types::{Columns, Star};
use crate::value::array;
use crate::walk::expressions;

/// A branch on its way to a plan.
pub(super) struct Draft {
    rewritten: Rewritten,
    outputs: Vec<(String, DraftValue)>,
    /// Places of the computed outputs.
    places: Vec<Position>,
    predicate: Vec<Conjunct>,
    star: Option<Vec<String>>,
    place: Position,
    condition_place: Option<Position>,
}

/// Where a draft's output comes from.
enum DraftValue {
    Column(usize),
    Computed,
}

impl Draft {
    pub(super) fn new(
        analysis: &mut Analysis<'_>,
        part: SelectPart,
        list: List,
    ) -> Result<Draft, Error> {
        let mut outputs = Vec::with_capacity(list.items.len());
        let mut computed = Vec::new();
        let mut places = Vec::new();
        for item in list.items {
            match item {
                Item::Passed { column, name, .. } => {
                    outputs.push((name, DraftValue::Column(column)))
                }
                Item::Computed { expr, name, place } => {
                    let expr = analysis.output(*expr)?;
                    computed.push(Computed {
                        expr,
                        name: name.clone(),
                        unnests: analysis.unnest_found,
                    });
                    places.push(place);
                    outputs.push((name, DraftValue::Computed));
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
        let condition_place = original
            .as_ref()
            .map(|original| analysis.places.of(original.span()));
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
            condition_place,
        })
    }

    /// A condition that no record can meet, whatever is in it.
    pub(super) fn warning(&self, prepared: &Prepared) -> Option<Warning> {
        let never = match prepared.expressions.predicate.as_ref()? {
            Literal(ScalarValue::Boolean(value), _) => !value.unwrap_or(false),
            Literal(value, _) => value.is_null(),
            _ => false,
        };
        let Position { line, column, .. } = self.condition_place.filter(|_| never)?;
        Some(Warning {
            line,
            column,
            message: "this condition is never true: no record passes".to_owned(),
        })
    }

    pub(super) fn finish(self, prepared: &Prepared) -> Branch {
        let mut types = prepared.types.iter();
        let mut output = |(name, slot)| {
            let value = match slot {
                DraftValue::Column(index) => OutputValue::Column(index),
                DraftValue::Computed => {
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
    pairs(original, rewritten, &mut |original, rewritten| {
        let mut read = BTreeSet::new();
        let _ = expressions(rewritten, &mut |expr| {
            if let Expr::Identifier(ident) = expr {
                read.extend(columns.position(&ident.value));
            }
            ControlFlow::Continue(())
        });
        found.push(Conjunct {
            text: original.to_string(),
            columns: read.into_iter().collect(),
            when: needles(rewritten, columns).map_or(When::PushedDown, When::Prefilter),
        });
    });
}

/// Plans drafts over the columns of the whole query.
pub(super) struct Planner<'a> {
    pub(super) session: &'a Session,
    pub(super) columns: &'a Columns,
    pub(super) schema: &'a Schema,
}

impl Planner<'_> {
    pub(super) fn prepare_all(&self, drafts: &mut [Draft]) -> Result<Vec<Prepared>, Error> {
        drafts.iter().map(|draft| self.prepare(draft)).collect()
    }

    fn prepare(&self, draft: &Draft) -> Result<Prepared, Error> {
        self.try_prepare(&draft.rewritten).map_err(|error| {
            let mut message = planner_message(&error);
            for column in self.columns.list() {
                message = message.replace(&column.name, &column.label);
            }
            let hint = "check what each function and cast of this expression is given";
            self.culprit(draft).error(message).with_hint(hint)
        })
    }

    /// The place of the expression that cannot be planned even alone.
    fn culprit(&self, draft: &Draft) -> Position {
        let whole = &draft.rewritten;
        let alone = |computed, condition| Rewritten {
            select: whole.select.clone(),
            computed,
            condition,
        };
        for (computed, place) in whole.computed.iter().zip(&draft.places) {
            if self
                .try_prepare(&alone(vec![computed.clone()], None))
                .is_err()
            {
                return *place;
            }
        }
        match draft.condition_place {
            Some(place)
                if self
                    .try_prepare(&alone(Vec::new(), whole.condition.clone()))
                    .is_err() =>
            {
                place
            }
            _ => draft.place,
        }
    }

    fn try_prepare(&self, rewritten: &Rewritten) -> Result<Prepared, DataFusionError> {
        if rewritten.is_empty() {
            return Ok(Prepared {
                rewritten: rewritten.clone(),
                expressions: Expressions::none(self.schema)?,
                types: Vec::new(),
                row_wise: true,
            });
        }
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
pub(super) fn unify_types(
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
            if matches!(slots[output].1, DraftValue::Column(_)) {
                continue;
            }
            let computed = slots
                .iter()
                .filter(|(_, slot)| matches!(slot, DraftValue::Computed))
                .count()
                - 1;
            let ty = &prepared[index].types[computed];
            common = Some(match &common {
                None => ty.clone(),
                // A number or a value of any kind takes in every other.
                Some(common) if array::is_value(common) || array::is_value(ty) => {
                    array::data_type()
                }
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
                computed.expr = if array::is_value(common) {
                    as_value(computed.expr.clone())
                } else {
                    arrow_cast(computed.expr.clone(), common)
                };
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
pub(super) fn star_of(drafts: &[Draft]) -> Option<Star> {
    let mut stars = drafts.iter().filter_map(|draft| draft.star.as_ref());
    let first = stars.next()?;
    let others: Vec<_> = stars.collect();
    let every = |name: &&String| others.iter().all(|except| except.contains(name));
    Some(Star {
        except: first.iter().filter(every).cloned().collect(),
    })
}
