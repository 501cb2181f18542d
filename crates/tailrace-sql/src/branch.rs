//! One SELECT of a compiled query: its outputs, its conditions, and what an evaluator needs of it.

use arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr};
use tailrace_model::needle::Needles;

use crate::plan::{Expressions, Rewritten};

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
    /// When it is evaluated.
    pub when: When,
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

/// When a conjunct is evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// Only for records that hold one of these texts, and there like [`When::PushedDown`].
    Prefilter(Needles),
    /// On the columns that conditions read, before the others are built.
    PushedDown,
    /// On the whole batch.
    After,
}

/// Calls `each` for the parts of a condition that are joined by AND, as they were written and as they were rewritten.
pub(crate) fn pairs(original: &Expr, rewritten: &Expr, each: &mut dyn FnMut(&Expr, &Expr)) {
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
            pairs(a, left, each);
            pairs(b, right, each);
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
            pairs(a, b, each);
        }
        _ => each(original, rewritten),
    }
}
