//! `min` and `max` of floats by groups. DataFusion 55 begins with the greatest finite number and compares as IEEE 754 does: NaN makes it
//! forget what came before, and a group of infinities has the number that it began with. Here they are compared in total order, as
//! `min` and `max` without groups are, and `ORDER BY`.

use std::sync::Arc;

use arrow::datatypes::{
    ArrowPrimitiveType, DataType, FieldRef, Float16Type, Float32Type, Float64Type,
};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// `min` and `max`.
pub(crate) fn extremes() -> [AggregateUDF; 2] {
    [min_udaf(), max_udaf()].map(|known| AggregateUDF::new_from_impl(Extreme { known }))
}

/// One of them, which is DataFusion's but for groups of floats.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    known: Arc<AggregateUDF>,
}

impl Extreme {
    fn is_max(&self) -> bool {
        self.known.is_descending() == Some(true)
    }
}

/// An accumulator of floats of one width.
macro_rules! of_floats {
    ($self:expr, $ty:expr, $kind:ty, $bits:ty) => {{
        type Float = <$kind as ArrowPrimitiveType>::Native;
        let is_max = $self.is_max();
        // The last number of the total order, on the other side.
        let last = match is_max {
            true => Float::from_bits(<$bits>::MAX),
            false => Float::from_bits(<$bits>::MAX >> 1),
        };
        let keep = move |kept: &mut Float, value: Float| {
            let order = value.total_cmp(kept);
            if (is_max && order.is_gt()) || (!is_max && order.is_lt()) {
                *kept = value;
            }
        };
        let groups = PrimitiveGroupsAccumulator::<$kind, _>::new($ty, keep);
        Ok(Box::new(groups.with_starting_value(last)))
    }};
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.known.name()
    }

    fn signature(&self) -> &Signature {
        self.known.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.known.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.known.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.known.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.known.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let ty = args.return_field.data_type();
        match ty {
            DataType::Float16 => of_floats!(self, ty, Float16Type, u16),
            DataType::Float32 => of_floats!(self, ty, Float32Type, u32),
            DataType::Float64 => of_floats!(self, ty, Float64Type, u64),
            _ => self.known.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.known.create_sliding_accumulator(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.known.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.known.order_sensitivity()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.known.coerce_types(types)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.known.inner().reverse_expr()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.known.value_from_stats(statistics)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.known.documentation()
    }

    fn set_monotonicity(&self, ty: &DataType) -> SetMonotonicity {
        self.known.inner().set_monotonicity(ty)
    }
}
