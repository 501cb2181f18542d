//! The first rows of an order: the few that wait to be among them keep all in memory that their texts are views of. A page of a Parquet file
//! may be a hundred megabytes, and each of ten rows of another one. So batches are made dense before rows of them are picked: most
//! have few rows, once the input knows what the last of the first rows is.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, GenericByteViewArray};
use arrow::datatypes::{BinaryViewType, ByteViewType, DataType, StringViewType};
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::sorts::sort::SortExec;

use super::passing::PassingExec;

/// Texts that keep more than so many bytes of others in memory are copied. Lines are read in pieces of a megabyte.
const OTHERS_BYTES: usize = 2 << 20;

/// Has the texts below a sort copied of which the first rows are wanted. Comes after all other rules, which tell the input what the first
/// rows are.
pub(super) fn of_first_rows(
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let input = plan.downcast_ref::<SortExec>();
    let input = input.filter(|sort| sort.fetch().is_some());
    let Some(input) = input.map(|sort| Arc::clone(sort.input())) else {
        return Ok(Transformed::no(plan));
    };
    let same = |input: &Arc<dyn ExecutionPlan>| Arc::clone(input.properties());
    let input = PassingExec::new("CopiedTextsExec", input, same, |rows| {
        copied(&rows, OTHERS_BYTES)
    });
    let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Ok(Transformed::yes(plan.replace_children(vec![input], keep)?))
}

/// The same rows, whose texts keep no more than so many bytes of the texts of other batches.
pub(super) fn copied(rows: &RecordBatch, others_bytes: usize) -> Result<RecordBatch> {
    let columns = rows
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Utf8View => copied_views::<StringViewType>(column, others_bytes),
            DataType::BinaryView => copied_views::<BinaryViewType>(column, others_bytes),
            _ => Arc::clone(column),
        });
    let columns: Vec<_> = columns.collect();
    if columns.is_empty() {
        return Ok(rows.clone());
    }
    Ok(RecordBatch::try_new(rows.schema(), columns)?)
}

fn copied_views<T: ByteViewType>(column: &ArrayRef, others_bytes: usize) -> ArrayRef {
    let views: &GenericByteViewArray<T> = column.as_byte_view();
    // Arrays that were put together name a buffer several times.
    let mut buffers: Vec<_> = views.data_buffers().iter().collect();
    buffers.sort_unstable_by_key(|buffer| buffer.as_ptr());
    buffers.dedup_by_key(|buffer| buffer.as_ptr());
    let kept: usize = buffers.iter().map(|buffer| buffer.len()).sum();
    if kept <= others_bytes || kept.saturating_sub(views.total_buffer_bytes_used()) <= others_bytes
    {
        return Arc::clone(column);
    }
    Arc::new(views.gc())
}

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_expr::{PhysicalSortExpr, expressions};
    use datafusion::physical_plan::displayable;

    use super::*;

    #[test]
    fn the_first_rows_of_an_order_are_copied() {
        let text = Arc::new(StringViewArray::from_iter_values(["a"])) as ArrayRef;
        let one = RecordBatch::try_from_iter([("text", text)]).unwrap();
        let input = MemorySourceConfig::try_new_exec(&[vec![one.clone()]], one.schema(), None);
        let key = PhysicalSortExpr::new_default(Arc::new(expressions::Column::new("text", 0)));
        let sort = SortExec::new([key].into(), input.unwrap());
        let steps = |fetch| {
            let sort: Arc<dyn ExecutionPlan> = Arc::new(sort.with_fetch(fetch));
            let plan = of_first_rows(sort).unwrap().data;
            displayable(plan.as_ref()).indent(false).to_string()
        };
        assert!(steps(Some(10)).contains("CopiedTextsExec"));
        assert!(!steps(None).contains("CopiedTextsExec"));
    }

    #[test]
    fn a_row_does_not_keep_the_texts_of_others() {
        let text = |row| Some(format!("{row:0>100}"));
        let all: StringViewArray = (0..40_000).map(text).collect();
        let few = RecordBatch::try_from_iter([("text", Arc::new(all.slice(7, 2)) as ArrayRef)]);
        let few = few.unwrap();
        let copied = copied(&few, OTHERS_BYTES).unwrap();
        assert_eq!(copied, few);
        let kept = copied.column(0).as_string_view().get_buffer_memory_size();
        assert!(kept < 1_000, "{kept}");
    }

    #[test]
    fn texts_that_keep_little_are_not_copied() {
        let all: StringViewArray = (0..1_000).map(|row| Some(format!("{row:0>100}"))).collect();
        let few = RecordBatch::try_from_iter([("text", Arc::new(all.slice(7, 2)) as ArrayRef)]);
        let few = few.unwrap();
        let copied = copied(&few, OTHERS_BYTES).unwrap();
        let at = |rows: &RecordBatch| rows.column(0).as_string_view().data_buffers()[0].as_ptr();
        assert_eq!(at(&copied), at(&few));
    }
}
