//! `sum` and `avg` of floats in a window. DataFusion 55 subtracts the values that leave the window: what was lost to rounding stays lost, and
//! after an infinity all that follows is NaN. Here the values are two stacks, as a queue is made of two: sums of the older ones, from each
//! of them to the newest of its stack, and one sum of the newer ones. Nothing is subtracted, and each value is added at most twice.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;

/// The accumulator of a sum in a window, if it is one of floats.
pub(super) fn sum(args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
    of_floats(args, false)
}

/// The accumulator of an average in a window, if it is one of floats.
pub(super) fn mean(args: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
    of_floats(args, true)
}

fn of_floats(args: &AccumulatorArgs<'_>, is_mean: bool) -> Option<Box<dyn Accumulator>> {
    let is_float = *args.return_field.data_type() == DataType::Float64;
    (is_float && !args.is_distinct).then(|| {
        Box::new(Window {
            is_mean,
            ..Window::default()
        }) as Box<dyn Accumulator>
    })
}

/// The values of a window.
#[derive(Debug, Default)]
struct Window {
    /// For each older value, the sum from it to the newest of them; the oldest is the last.
    older: Vec<f64>,
    newer: Vec<f64>,
    newer_sum: f64,
    is_mean: bool,
}

impl Window {
    fn push(&mut self, value: f64) {
        self.newer.push(value);
        self.newer_sum += value;
    }

    /// Removes the oldest value.
    fn pop(&mut self) {
        if self.older.is_empty() {
            let mut sum = 0.0;
            self.older.extend(self.newer.drain(..).rev().map(|value| {
                sum += value;
                sum
            }));
            self.newer_sum = 0.0;
        }
        self.older.pop();
    }
}

impl Accumulator for Window {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<Float64Type>();
        values.iter().flatten().for_each(|value| self.push(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let left = values[0].len() - values[0].null_count();
        (0..left).for_each(|_| self.pop());
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let values = self.older.len() + self.newer.len();
        let sum = self.older.last().unwrap_or(&0.0) + self.newer_sum;
        let value = if self.is_mean {
            sum / values as f64
        } else {
            sum
        };
        Ok(ScalarValue::Float64((values > 0).then_some(value)))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window is not computed in parts")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a window is not computed in parts")
    }

    fn size(&self) -> usize {
        size_of_val(self) + (self.older.capacity() + self.newer.capacity()) * size_of::<f64>()
    }
}
