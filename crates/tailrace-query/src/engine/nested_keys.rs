//! The first rows of an order by lists or structs. DataFusion 55 leaves out rows that cannot be among them by `key < value`, also in the
//! files, and compares what is within such values with NULL first, whatever the order says. As bytes the values are compared as they are
//! ordered, so that it leaves out the right ones.

use std::fmt::{self, Display};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr, PlanProperties};

use super::passing::PassingExec;

/// Makes such keys bytes. Comes before the rule that tells the files of the first rows.
pub(super) fn of_first_rows(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let sort = plan.downcast_ref::<SortExec>();
    let Some(sort) = sort.filter(|sort| sort.fetch().is_some()) else {
        return Ok(Transformed::no(plan));
    };
    let schema = sort.input().schema();
    let mut is_nested = false;
    let mut keys = Vec::with_capacity(sort.expr().len());
    for key in sort.expr() {
        let ty = key.expr.data_type(&schema)?;
        let is_ours = ty.is_nested();
        let field = SortField::new_with_options(ty, key.options);
        if !is_ours || !RowConverter::supports_fields(&[field]) {
            keys.push(key.clone());
            continue;
        }
        is_nested = true;
        let bytes = KeyBytes {
            value: Arc::clone(&key.expr),
            options: key.options,
        };
        // The bytes have the direction, and where NULL is.
        let options = SortOptions::new(false, false);
        keys.push(PhysicalSortExpr::new(Arc::new(bytes), options));
    }
    let Some(order) = LexOrdering::new(keys).filter(|_| is_nested) else {
        return Ok(Transformed::no(plan));
    };
    let by_bytes = SortExec::new(order, Arc::clone(sort.input()))
        .with_preserve_partitioning(sort.preserve_partitioning())
        .with_fetch(sort.fetch());
    let same = PassingExec::new("FirstByBytesExec", Arc::new(by_bytes), as_values, Ok);
    Ok(Transformed::yes(same))
}

/// What is known of rows in the order of such bytes: they are in the order of the values, which is what other steps ask for.
fn as_values(by_bytes: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
    let properties = by_bytes.properties();
    let Some(order) = properties.output_ordering() else {
        return Arc::clone(properties);
    };
    let values = order
        .iter()
        .map(|key| match key.expr.downcast_ref::<KeyBytes>() {
            Some(bytes) => PhysicalSortExpr::new(Arc::clone(&bytes.value), bytes.options),
            None => key.clone(),
        });
    let mut known = properties.eq_properties.clone();
    known.add_ordering(values);
    Arc::new(properties.as_ref().clone().with_eq_properties(known))
}

/// The bytes of a key, which are in the order of its values.
#[derive(Debug, Eq)]
struct KeyBytes {
    value: Arc<dyn PhysicalExpr>,
    options: SortOptions,
}

// Cannot be derived where a value is behind a pointer to what is not known.
impl PartialEq for KeyBytes {
    fn eq(&self, other: &KeyBytes) -> bool {
        self.value.eq(&other.value) && self.options == other.options
    }
}

impl Hash for KeyBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value.hash(state);
        self.options.hash(state);
    }
}

impl Display for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key_bytes({})", self.value)
    }
}

impl PhysicalExpr for KeyBytes {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.value.evaluate(batch)?;
        let values = values.into_array(batch.num_rows())?;
        let ty = values.data_type().clone();
        let field = SortField::new_with_options(ty, self.options);
        let rows = RowConverter::new(vec![field])?.convert_columns(&[values])?;
        let bytes: ArrayRef = Arc::new(rows.try_into_binary()?);
        Ok(ColumnarValue::Array(bytes))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.value]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(KeyBytes {
            value: children.pop().unwrap_or_else(|| Arc::clone(&self.value)),
            options: self.options,
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt_sql(f)
    }
}
