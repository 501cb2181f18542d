//! `min` and `max` of floats by groups. DataFusion 55 begins with the greatest finite number and compares as IEEE 754 does: NaN makes it
//! forget what came before, and a group of infinities has the number that it began with. Here they are compared in total order, as
//! `min` and `max` without groups are, and `ORDER BY`.

use arrow::datatypes::{ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type};
use datafusion::logical_expr::GroupsAccumulator;
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// An accumulator of floats of one width.
macro_rules! of_floats {
    ($is_max:expr, $ty:expr, $kind:ty, $bits:ty) => {{
        type Float = <$kind as ArrowPrimitiveType>::Native;
        let is_max = $is_max;
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
        Some(Box::new(groups.with_starting_value(last)))
    }};
}

/// The accumulator of groups, if the type is one of floats.
pub(super) fn groups(is_max: bool, ty: &DataType) -> Option<Box<dyn GroupsAccumulator>> {
    match ty {
        DataType::Float16 => of_floats!(is_max, ty, Float16Type, u16),
        DataType::Float32 => of_floats!(is_max, ty, Float32Type, u32),
        DataType::Float64 => of_floats!(is_max, ty, Float64Type, u64),
        _ => None,
    }
}
