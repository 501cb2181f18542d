//! Aggregates that give the one NaN (see [`crate::one_nan`]): the sum of an infinity and its negative has no value.

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use crate::one_nan::{of_array, of_scalar};

/// An accumulator whose result of type `ty` has the one NaN.
pub(super) fn one(known: Box<dyn Accumulator>, ty: &DataType) -> Box<dyn Accumulator> {
    match ty.is_floating() {
        true => Box::new(One(known)),
        false => known,
    }
}

/// As [`one`], for groups.
pub(super) fn one_of_groups(
    known: Box<dyn GroupsAccumulator>,
    ty: &DataType,
) -> Box<dyn GroupsAccumulator> {
    match ty.is_floating() {
        true => Box::new(OneOfGroups(known)),
        false => known,
    }
}

#[derive(Debug)]
struct One(Box<dyn Accumulator>);

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.evaluate().map(of_scalar)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.0.supports_retract_batch()
    }
}

struct OneOfGroups(Box<dyn GroupsAccumulator>);

impl GroupsAccumulator for OneOfGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.0.update_batch(values, groups, filter, count)
    }

    fn evaluate(&mut self, emitted: EmitTo) -> Result<ArrayRef> {
        Ok(of_array(&self.0.evaluate(emitted)?))
    }

    fn state(&mut self, emitted: EmitTo) -> Result<Vec<ArrayRef>> {
        self.0.state(emitted)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.0.merge_batch(states, groups, count)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        self.0.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}
