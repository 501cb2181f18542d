//! `sum(DISTINCT x)`.

use std::collections::HashMap;

use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use super::{Whole, beyond, fit};

/// The sum of distinct values.
#[derive(Debug)]
pub(super) struct Distinct<T: Whole> {
    /// How often each value is there: in a window, values leave.
    counts: HashMap<T::Native, usize>,
    ty: DataType,
}

impl<T: Whole> Distinct<T> {
    pub(super) fn new(ty: &DataType) -> Distinct<T> {
        Distinct {
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

impl<T: Whole> Accumulator for Distinct<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values[0].as_primitive::<T>());
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.add(values.as_primitive::<T>());
        }
        Ok(())
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
        let values = self.counts.keys().map(|&value| Some(value));
        let values = values.map(|value| ScalarValue::new_primitive::<T>(value, &self.ty));
        let values = values.collect::<Result<Vec<_>>>()?;
        let list = ScalarValue::new_list_nullable(&values, &self.ty);
        Ok(vec![ScalarValue::List(list)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            return ScalarValue::try_from(&self.ty);
        }
        let mut values = self.counts.keys().map(|&value| value.into());
        let total = values.try_fold(0, i128::checked_add);
        fit(total.ok_or_else(beyond)?, &self.ty)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.capacity() * size_of::<(T::Native, usize)>()
    }
}
