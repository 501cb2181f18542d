//! What the statistics of Parquet files saved a query that ran.

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricValue;

/// What of Parquet files was read, and what was left out because its statistics meet no condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruning {
    /// Row groups that were read, at least in part.
    pub row_groups: usize,
    /// Row groups that were left out.
    pub row_groups_pruned: usize,
    /// Rows of the pages of those row groups that were read, where there was a condition on them.
    pub rows: usize,
    /// Rows of the pages that were left out.
    pub rows_pruned: usize,
}

impl Pruning {
    /// What the steps of a plan counted.
    pub(crate) fn of(plan: &dyn ExecutionPlan) -> Pruning {
        let mut sum = Pruning::default();
        let metrics = plan.metrics();
        for metric in metrics.iter().flat_map(|metrics| metrics.iter()) {
            let MetricValue::PruningMetrics {
                name,
                pruning_metrics: counted,
            } = metric.value()
            else {
                continue;
            };
            match name.as_ref() {
                "row_groups_pruned_statistics" => {
                    sum.row_groups += counted.matched();
                    sum.row_groups_pruned += counted.pruned();
                }
                // Of those that the statistics did not leave out.
                "row_groups_pruned_bloom_filter" => {
                    sum.row_groups = sum.row_groups.saturating_sub(counted.pruned());
                    sum.row_groups_pruned += counted.pruned();
                }
                "page_index_rows_pruned" => {
                    sum.rows += counted.matched();
                    sum.rows_pruned += counted.pruned();
                }
                _ => {}
            }
        }
        for child in plan.children() {
            let below = Pruning::of(child.as_ref());
            sum = Pruning {
                row_groups: sum.row_groups + below.row_groups,
                row_groups_pruned: sum.row_groups_pruned + below.row_groups_pruned,
                rows: sum.rows + below.rows,
                rows_pruned: sum.rows_pruned + below.rows_pruned,
            };
        }
        sum
    }
}
