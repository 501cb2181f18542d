//! Values of several kinds beside numbers. DataFusion compares such a value as one of the number's kind: 12.5 was neither more nor less than 3,
//! and a text is read for a number. Here it is the number that it is, and NULL if it is none.
//!
//! Each side becomes one value, so that a comparison can be the key of a join. A pattern is for its text.

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList};
use datafusion::logical_expr::utils::disjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Like, LogicalPlan, LogicalPlanBuilder, Operator, Subquery,
    binary_expr, cast, lit, not,
};
use datafusion::optimizer::AnalyzerRule;
use tailrace_sql::{EachExpr, is_comparison};

use super::number::{AMONG_INTEGERS, among_integers, as_float, has_numbers};
use super::text::{is_json, text_of};

/// Compares them with numbers, and matches them with patterns. DataFusion has not made the types agree yet.
pub(crate) fn compared(plan: LogicalPlan) -> Result<LogicalPlan> {
    EachExpr::new("several_kinds", of_expr).analyze(plan, &ConfigOptions::default())
}

fn of_expr(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let ty = |expr: &Expr| expr.get_type(schema).unwrap_or(DataType::Null);
    Ok(match expr {
        Expr::BinaryExpr(it) if is_comparison(it.op) => {
            let types = [&it.left, &it.right].map(|side| ty(side));
            match kind(&types[0], &types[1]) {
                Some(kind) => Transformed::yes(comparison(it, kind, &types)),
                None => Transformed::no(Expr::BinaryExpr(it)),
            }
        }
        Expr::Like(mut it) => {
            let is_mended = are_texts(&mut it, schema);
            Transformed::new_transformed(Expr::Like(it), is_mended)
        }
        Expr::SimilarTo(mut it) => {
            let is_mended = are_texts(&mut it, schema);
            Transformed::new_transformed(Expr::SimilarTo(it), is_mended)
        }
        Expr::Between(it) => {
            let bounds = [&it.low, &it.high].map(|bound| ty(bound));
            match are_mixed(&ty(&it.expr), &bounds) {
                true => Transformed::yes(between(it, schema)?),
                false => Transformed::no(Expr::Between(it)),
            }
        }
        Expr::InList(it) => {
            let elements: Vec<_> = it.list.iter().map(ty).collect();
            let value = ty(&it.expr);
            match are_mixed(&value, &elements) {
                true if has_numbers(&value) && elements.iter().all(DataType::is_integer) => {
                    Transformed::yes(in_integers(it))
                }
                true => Transformed::yes(in_list(it, schema)?),
                false => Transformed::no(Expr::InList(it)),
            }
        }
        Expr::Case(it) => {
            let values = it.when_then_expr.iter().map(|(value, _)| ty(value));
            let values: Vec<_> = values.collect();
            match &it.expr {
                Some(operand) if are_mixed(&ty(operand), &values) => {
                    Transformed::yes(Expr::Case(searched(it, schema)?))
                }
                _ => Transformed::no(Expr::Case(it)),
            }
        }
        Expr::InSubquery(mut it) => {
            let is_mended = of_subquery(&mut it.expr, &mut it.subquery, schema)?;
            Transformed::new_transformed(Expr::InSubquery(it), is_mended)
        }
        Expr::SetComparison(mut it) => {
            let is_mended = of_subquery(&mut it.expr, &mut it.subquery, schema)?;
            Transformed::new_transformed(Expr::SetComparison(it), is_mended)
        }
        other => Transformed::no(other),
    })
}

/// Both sides of a pattern become texts where they are values of several kinds; whether one is.
fn are_texts(it: &mut Like, schema: &DFSchema) -> bool {
    let is_value = as_text(&mut it.expr, schema);
    as_text(&mut it.pattern, schema) || is_value
}

/// A value of several kinds becomes its text; whether it is one.
fn as_text(value: &mut Expr, schema: &DFSchema) -> bool {
    let is_of_several = value.get_type(schema).is_ok_and(|ty| is_json(&ty));
    if is_of_several {
        *value = text_of(std::mem::take(value));
    }
    is_of_several
}

/// As what a value of several kinds and a number are compared.
#[derive(Clone, Copy)]
enum Kind {
    /// As decimals that hold every whole number, and between them what is none.
    Integers,
    Floats,
}

/// For a value of several kinds on one side, and a number on the other.
fn kind(one: &DataType, other: &DataType) -> Option<Kind> {
    let number = match (has_numbers(one), has_numbers(other)) {
        (true, false) => other,
        (false, true) => one,
        _ => return None,
    };
    match number {
        number if number.is_integer() => Some(Kind::Integers),
        number if number.is_numeric() => Some(Kind::Floats),
        _ => None,
    }
}

/// Whether a value is compared with others of which one is a number where it has several kinds, or the other way around.
fn are_mixed(value: &DataType, others: &[DataType]) -> bool {
    let are_both_several = |other: &DataType| has_numbers(value) && has_numbers(other);
    others.iter().any(|other| kind(value, other).is_some()) && !others.iter().any(are_both_several)
}

impl Kind {
    fn side(self, side: Expr, ty: &DataType) -> Expr {
        match self {
            Kind::Integers if has_numbers(ty) => among_integers(side),
            Kind::Integers => cast(side, AMONG_INTEGERS),
            Kind::Floats if has_numbers(ty) => as_float(side),
            Kind::Floats => cast(side, DataType::Float64),
        }
    }
}

fn comparison(it: BinaryExpr, kind: Kind, [left, right]: &[DataType; 2]) -> Expr {
    let are_null = match it.op {
        // What is no number is another value than NULL.
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => {
            Some([&it.left, &it.right].map(|side| (**side).clone().is_null()))
        }
        _ => None,
    };
    let (left, right) = (kind.side(*it.left, left), kind.side(*it.right, right));
    let compared = binary_expr(left, it.op, right);
    match (it.op, are_null) {
        (Operator::IsDistinctFrom, Some([left, right])) => compared.or(left.not_eq(right)),
        (_, Some([left, right])) => compared.and(left.eq(right)),
        (_, None) => compared,
    }
}

/// Two values, of which one may have several kinds, or be NULL.
fn pair(left: Expr, op: Operator, right: Expr, schema: &DFSchema) -> Result<Expr> {
    let is_null = |side: &Expr| side.get_type(schema).is_ok_and(|ty| ty.is_null());
    if is_null(&left) || is_null(&right) {
        return Ok(lit(ScalarValue::Boolean(None)));
    }
    Ok(of_expr(binary_expr(left, op, right), schema)?.data)
}

fn between(it: Between, schema: &DFSchema) -> Result<Expr> {
    let low = pair((*it.expr).clone(), Operator::GtEq, *it.low, schema)?;
    let high = pair(*it.expr, Operator::LtEq, *it.high, schema)?;
    let both = low.and(high);
    Ok(if it.negated { not(both) } else { both })
}

/// A value of several kinds in a list of integers: one list, however long.
fn in_integers(it: InList) -> Expr {
    let elements = it.list.into_iter();
    let elements = elements.map(|element| cast(element, AMONG_INTEGERS));
    among_integers(*it.expr).in_list(elements.collect(), it.negated)
}

fn in_list(it: InList, schema: &DFSchema) -> Result<Expr> {
    let equal = |element| pair((*it.expr).clone(), Operator::Eq, element, schema);
    let equal = it.list.into_iter().map(equal).collect::<Result<Vec<_>>>()?;
    let any = disjunction(equal).unwrap_or(lit(false));
    Ok(if it.negated { not(any) } else { any })
}

/// A CASE of one value as one of conditions.
fn searched(mut it: Case, schema: &DFSchema) -> Result<Case> {
    let Some(operand) = it.expr.take() else {
        return Ok(it);
    };
    for (value, _) in &mut it.when_then_expr {
        let other = std::mem::take(&mut **value);
        **value = pair((*operand).clone(), Operator::Eq, other, schema)?;
    }
    Ok(it)
}

/// Mends a value and the column of a subquery that it is compared with; whether that was needed.
fn of_subquery(value: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let Ok(ty) = value.get_type(schema) else {
        return Ok(false);
    };
    let columns = subquery.subquery.schema();
    let other = columns.field(0).data_type().clone();
    let Some(kind) = kind(&ty, &other) else {
        return Ok(false);
    };
    let column = Expr::Column(Column::from(columns.qualified_field(0)));
    let name = columns.field(0).name().clone();
    let rows = LogicalPlanBuilder::from((*subquery.subquery).clone());
    let rows = rows.project([kind.side(column, &other).alias(name)])?;
    *subquery = subquery.with_plan(rows.build()?.into());
    *value = kind.side(std::mem::take(value), &ty);
    Ok(true)
}
