//! Aggregates of DataFusion 55 that are mended: they take the place of those with their names.

mod extremes;
mod nan;
mod queue;
mod totals;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::correlation::corr_udaf;
use datafusion::functions_aggregate::covariance::{covar_pop_udaf, covar_samp_udaf};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};

use queue::Wanted;

/// The mended aggregates.
pub(crate) fn mended() -> [AggregateUDF; 11] {
    let variance = |is_sample, is_root| Mend::Window(Wanted::Variance { is_sample, is_root });
    let covariance = |is_sample| Mend::Window(Wanted::Covariance { is_sample });
    [
        (min_udaf(), Mend::Extremes { is_max: false }),
        (max_udaf(), Mend::Extremes { is_max: true }),
        (sum_udaf(), Mend::Totals),
        (avg_udaf(), Mend::Window(Wanted::Mean)),
        (var_samp_udaf(), variance(true, false)),
        (var_pop_udaf(), variance(false, false)),
        (stddev_udaf(), variance(true, true)),
        (stddev_pop_udaf(), variance(false, true)),
        (corr_udaf(), Mend::Window(Wanted::Correlation)),
        (covar_samp_udaf(), covariance(true)),
        (covar_pop_udaf(), covariance(false)),
    ]
    .map(|(known, mend)| AggregateUDF::new_from_impl(Mended { known, mend }))
}

/// An aggregate that is DataFusion's but for some of its accumulators.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mended {
    known: Arc<AggregateUDF>,
    mend: Mend,
}

/// What is mended, beside the NaN of all but extremes; see [`nan`].
#[derive(Debug, PartialEq, Eq, Hash)]
enum Mend {
    /// See [`extremes`].
    Extremes { is_max: bool },
    /// See [`totals`], and [`queue`] for floats in a window.
    Totals,
    /// Of floats in a window; see [`queue`].
    Window(Wanted),
}

impl AggregateUDFImpl for Mended {
    fn name(&self) -> &str {
        self.known.name()
    }

    fn aliases(&self) -> &[String] {
        self.known.aliases()
    }

    fn signature(&self) -> &Signature {
        self.known.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.known.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let ty = args.return_field.data_type().clone();
        let mended = match self.mend {
            Mend::Totals if args.is_distinct => {
                totals::distinct(self.known.accumulator(args)?, &ty)
            }
            Mend::Totals => totals::plain(&ty).map_or_else(|| self.known.accumulator(args), Ok)?,
            Mend::Extremes { .. } => return self.known.accumulator(args),
            Mend::Window(_) => self.known.accumulator(args)?,
        };
        Ok(nan::one(mended, &ty))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        match self.mend {
            Mend::Totals => match totals::state(&args) {
                Some(field) => Ok(vec![field]),
                None => self.known.state_fields(args),
            },
            _ => self.known.state_fields(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        // That of groups takes plain sums, which lose the digits of values that are close to each other.
        let is_of_sums = matches!(self.mend, Mend::Window(Wanted::Correlation));
        !is_of_sums && self.known.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        let ty = args.return_field.data_type().clone();
        let mended = match self.mend {
            Mend::Extremes { is_max } => extremes::groups(is_max, &ty),
            Mend::Totals => totals::groups(&ty),
            Mend::Window(_) => None,
        };
        let mended = mended.map_or_else(|| self.known.create_groups_accumulator(args), Ok)?;
        Ok(match self.mend {
            Mend::Extremes { .. } => mended,
            _ => nan::one_of_groups(mended, &ty),
        })
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        let ty = args.return_field.data_type().clone();
        let mended = match self.mend {
            Mend::Extremes { .. } => return self.known.create_sliding_accumulator(args),
            Mend::Totals if args.is_distinct => totals::distinct_in_window(&ty),
            Mend::Totals => totals::plain(&ty).or_else(|| queue::of_floats(&args, Wanted::Sum)),
            Mend::Window(wanted) => queue::of_floats(&args, wanted),
        };
        let mended = mended.map_or_else(|| self.known.create_sliding_accumulator(args), Ok)?;
        Ok(nan::one(mended, &ty))
    }

    fn default_value(&self, ty: &DataType) -> Result<ScalarValue> {
        self.known.default_value(ty)
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
        match self.mend {
            // What it takes from them may have wrapped around.
            Mend::Totals => None,
            _ => self.known.value_from_stats(statistics),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.known.documentation()
    }

    fn set_monotonicity(&self, ty: &DataType) -> SetMonotonicity {
        self.known.inner().set_monotonicity(ty)
    }
}
