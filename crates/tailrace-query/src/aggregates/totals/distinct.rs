//! `sum(DISTINCT x)`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::Accumulator;

use super::{Whole, beyond, fit, plain};

/// The sum of distinct values, which DataFusion collects.
#[derive(Debug)]
pub(super) struct Distinct {
    known: Box<dyn Accumulator>,
    ty: DataType,
}

impl Distinct {
    pub(super) fn new(known: Box<dyn Accumulator>, ty: &DataType) -> Distinct {
        let ty = ty.clone();
        Distinct { known, ty }
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.known.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.known.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.known.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.known.state()?;
        let [ScalarValue::List(values)] = &state[..] else {
            return internal_err!("distinct values are a list");
        };
        let Some(mut total) = plain(&self.ty) else {
            return internal_err!("no sum of {} is counted here", self.ty);
        };
        total.update_batch(&[Arc::clone(values.values())])?;
        total.evaluate()
    }

    fn size(&self) -> usize {
        self.known.size()
    }
}

/// The sum of the distinct values of a window.
#[derive(Debug)]
pub(super) struct Counted<T: Whole> {
    /// How often each value is there: values leave.
    counts: HashMap<T::Native, usize>,
    ty: DataType,
}

impl<T: Whole> Counted<T> {
    pub(super) fn new(ty: &DataType) -> Counted<T> {
        Counted {
            counts: HashMap::new(),
            ty: ty.clone(),
        }
    }

    fn add(&mut self, values: &PrimitiveArray<T>) {
        for value in values.iter().flatten() {
            *self.counts.entry(value).or_default() += 1;
        }
    }
}

impl<T: Whole> Accumulator for Counted<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values[0].as_primitive::<T>());
        Ok(())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a window is not computed in parts")
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<T>().iter().flatten() {
            if let Some(count) = self.counts.get_mut(&value) {
                *count -= 1;
                if *count == 0 {
                    self.counts.remove(&value);
                }
            }
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window is not computed in parts")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return ScalarValue::try_from(&self.ty);
        }
        let mut values = self.counts.keys().map(|&value| value.into());
        let total = values.try_fold(0, i128::checked_add);
        let total = fit::<T>(total.ok_or_else(beyond)?, &self.ty)?;
        ScalarValue::new_primitive::<T>(Some(total), &self.ty)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(T::Native, usize)>()
    }
}
