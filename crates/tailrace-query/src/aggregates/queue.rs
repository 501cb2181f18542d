//! `sum`, `avg`, variances and correlations of floats in a window. DataFusion 55 subtracts the values that leave the window: what was lost to rounding
//! stays lost, and after an infinity all that follows is NaN. Here the values are two stacks, as a queue is made of two: summaries of the
//! older ones, from each of them to the newest of its stack, and one summary of the newer ones. Nothing is subtracted, and each value is
//! added at most twice.

mod pairs;

use std::fmt::Debug;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

use pairs::Pairs;

/// What is wanted of the values of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wanted {
    Sum,
    Mean,
    /// Of all there are, or of a sample; or its root.
    Variance {
        is_sample: bool,
        is_root: bool,
    },
    /// Of pairs: of all there are, or of a sample.
    Covariance {
        is_sample: bool,
    },
    /// Of pairs.
    Correlation,
}

/// The accumulator of a window, if it is one of floats.
pub(super) fn of_floats(
    args: &AccumulatorArgs<'_>,
    wanted: Wanted,
) -> Option<Box<dyn Accumulator>> {
    let is_float = |ty: &DataType| *ty == DataType::Float64;
    let are_floats = is_float(args.return_field.data_type())
        && args.expr_fields.iter().all(|it| is_float(it.data_type()));
    let accumulator: Box<dyn Accumulator> = match wanted {
        Wanted::Sum | Wanted::Mean => Box::new(Window::<f64>::new(wanted)),
        Wanted::Variance { .. } => Box::new(Window::<Moments>::new(wanted)),
        Wanted::Covariance { .. } | Wanted::Correlation => Box::new(Window::<Pairs>::new(wanted)),
    };
    (are_floats && !args.is_distinct).then_some(accumulator)
}

/// A summary of some values.
trait Summary: Copy + Debug + Send + Sync + 'static {
    type Value: Copy + Debug + Send + Sync + 'static;

    /// Those of all columns that are not NULL.
    fn values(columns: &[ArrayRef]) -> impl Iterator<Item = Self::Value>;
    fn of(value: Self::Value) -> Self;
    /// Of the values of both.
    fn with(self, other: Self) -> Self;
    fn wanted(self, values: usize, wanted: Wanted) -> Option<f64>;
}

/// The sum.
impl Summary for f64 {
    type Value = f64;

    fn values(columns: &[ArrayRef]) -> impl Iterator<Item = f64> {
        floats(&columns[0]).flatten()
    }

    fn of(value: f64) -> f64 {
        value
    }

    fn with(self, other: f64) -> f64 {
        self + other
    }

    fn wanted(self, values: usize, wanted: Wanted) -> Option<f64> {
        Some(match wanted {
            Wanted::Mean => self / values as f64,
            _ => self,
        })
    }
}

/// How many values, their mean, and the sum of the squares of their distances from it.
#[derive(Clone, Copy, Debug)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

/// By Chan, Golub and LeVeque, Updating Formulae and a Pairwise Algorithm for Computing Sample Variances (1979).
impl Summary for Moments {
    type Value = f64;

    fn values(columns: &[ArrayRef]) -> impl Iterator<Item = f64> {
        floats(&columns[0]).flatten()
    }

    fn of(value: f64) -> Moments {
        Moments {
            count: 1.0,
            mean: value,
            // Not a number if the value is not finite.
            squares: value * 0.0,
        }
    }

    fn with(self, other: Moments) -> Moments {
        let count = self.count + other.count;
        let distance = other.mean - self.mean;
        let share = other.count / count;
        Moments {
            count,
            mean: self.mean + distance * share,
            squares: self.squares + other.squares + distance * distance * self.count * share,
        }
    }

    fn wanted(self, _: usize, wanted: Wanted) -> Option<f64> {
        let Wanted::Variance { is_sample, is_root } = wanted else {
            return None;
        };
        let of = self.count - f64::from(u8::from(is_sample));
        let variance = (of > 0.0).then(|| self.squares / of)?;
        Some(if is_root { variance.sqrt() } else { variance })
    }
}

fn floats(column: &ArrayRef) -> impl Iterator<Item = Option<f64>> {
    column.as_primitive::<Float64Type>().iter()
}

/// The values of a window.
#[derive(Debug)]
struct Window<S: Summary> {
    /// For each older value, the summary from it to the newest of them; the oldest is the last.
    older: Vec<S>,
    newer: Vec<S::Value>,
    newer_summary: Option<S>,
    wanted: Wanted,
}

impl<S: Summary> Window<S> {
    fn new(wanted: Wanted) -> Window<S> {
        Window {
            older: Vec::new(),
            newer: Vec::new(),
            newer_summary: None,
            wanted,
        }
    }

    fn push(&mut self, value: S::Value) {
        self.newer.push(value);
        let value = S::of(value);
        let known = self.newer_summary;
        self.newer_summary = Some(known.map_or(value, |it| it.with(value)));
    }

    /// Removes the oldest value.
    fn pop(&mut self) {
        if self.older.is_empty() {
            let mut known: Option<S> = None;
            self.older.extend(self.newer.drain(..).rev().map(|value| {
                let value = S::of(value);
                *known.insert(known.map_or(value, |it| value.with(it)))
            }));
            self.newer_summary = None;
        }
        self.older.pop();
    }
}

impl<S: Summary> Accumulator for Window<S> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        S::values(values).for_each(|value| self.push(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        S::values(values).for_each(|_| self.pop());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = self.older.len() + self.newer.len();
        let all = match (self.older.last(), self.newer_summary) {
            (Some(older), Some(newer)) => Some(older.with(newer)),
            (older, newer) => older.copied().or(newer),
        };
        let value = all.and_then(|all| all.wanted(values, self.wanted));
        Ok(ScalarValue::Float64(value))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window is not computed in parts")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a window is not computed in parts")
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.older.capacity() * size_of::<S>()
            + self.newer.capacity() * size_of::<S::Value>()
    }
}
