//! The sums of groups.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, PrimitiveArray};
use arrow::datatypes::{DataType, Decimal128Type};
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::NullState;

use super::{Whole, beyond, fit, state_of};

/// A sum for each group.
pub(super) struct Groups<T> {
    totals: Vec<i128>,
    nulls: NullState,
    ty: DataType,
    of: PhantomData<fn() -> T>,
}

impl<T: Whole> Groups<T> {
    pub(super) fn new(ty: &DataType) -> Groups<T> {
        Groups {
            totals: Vec::new(),
            nulls: NullState::new(),
            ty: ty.clone(),
            of: PhantomData,
        }
    }

    fn add<U: Whole>(
        &mut self,
        values: &PrimitiveArray<U>,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_total: usize,
    ) -> Result<()> {
        self.totals.resize(groups_total, 0);
        let totals = &mut self.totals;
        let mut is_beyond = false;
        let add = |group: usize, value: U::Native| {
            let (total, wrapped) = totals[group].overflowing_add(value.into());
            totals[group] = total;
            is_beyond |= wrapped;
        };
        let nulls = &mut self.nulls;
        nulls.accumulate(groups, values, filter, groups_total, add);
        if is_beyond { Err(beyond()) } else { Ok(()) }
    }
}

impl<T: Whole> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        groups_total: usize,
    ) -> Result<()> {
        self.add(values[0].as_primitive::<T>(), groups, filter, groups_total)
    }

    fn merge_batch(
        &mut self,
        states: &[ArrayRef],
        groups: &[usize],
        groups_total: usize,
    ) -> Result<()> {
        let states = states[0].as_primitive::<Decimal128Type>();
        self.add(states, groups, None, groups_total)
    }

    fn state(&mut self, emitted: EmitTo) -> Result<Vec<ArrayRef>> {
        let totals = emitted.take_needed(&mut self.totals);
        let nulls = self.nulls.build(emitted);
        let states = Decimal128Array::new(totals.into(), nulls);
        Ok(vec![Arc::new(states.with_data_type(state_of(&self.ty)))])
    }

    fn evaluate(&mut self, emitted: EmitTo) -> Result<ArrayRef> {
        let totals = emitted.take_needed(&mut self.totals);
        let nulls = self.nulls.build(emitted);
        let totals = totals.into_iter().map(|it| fit::<T>(it, &self.ty));
        let totals = totals.collect::<Result<Vec<_>>>()?;
        let totals = PrimitiveArray::<T>::new(totals.into(), nulls);
        Ok(Arc::new(totals.with_data_type(self.ty.clone())))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>().iter().enumerate();
        let states = values.map(|(row, value)| {
            let is_kept = filter.is_none_or(|it| it.is_valid(row) && it.value(row));
            value.filter(|_| is_kept).map(Into::into)
        });
        let states: Decimal128Array = states.collect();
        Ok(vec![Arc::new(states.with_data_type(state_of(&self.ty)))])
    }

    fn size(&self) -> usize {
        self.totals.capacity() * size_of::<i128>() + self.nulls.size()
    }
}
