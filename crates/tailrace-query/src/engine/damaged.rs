//! Files that are damaged. The readers of Arrow and Parquet panic at some of what they find: that is an error, which names the file, as
//! what they refuse is.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::task::Poll;

use arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics, exec_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::{DataSource, DataSourceExec, OpenArgs};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr};
use futures::StreamExt;
use futures::stream::poll_fn;
use tailrace_sql::caught;

use crate::error::text_of;

/// What Arrow's reader says of values that are not as they must be, where a function says others.
const OF_DATA: [&str; 5] = [
    "Invalid UTF8 sequence",
    "Need at least",
    "Offset invariant failure",
    "Value at position",
    "null_count",
];

/// What Parquet's reader says where a condition fails, which is the query's.
const OF_CONDITION: &str = "Error evaluating filter predicate";

type Shared = Arc<dyn Any + Send + Sync>;

/// A step that reads files says which are damaged.
pub(super) fn of_scan(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let scan = plan.downcast_ref::<DataSourceExec>();
    let reads_files = |scan: &&DataSourceExec| scan.data_source().is::<FileScanConfig>();
    let Some(scan) = scan.filter(reads_files) else {
        return Ok(Transformed::no(plan));
    };
    let files = Arc::clone(scan.data_source());
    let scan = scan.clone().with_data_source(Arc::new(Named { files }));
    Ok(Transformed::yes(Arc::new(scan)))
}

/// Some files, which errors name.
#[derive(Debug)]
struct Named {
    files: Arc<dyn DataSource>,
}

impl Named {
    /// What the files of a part of the query are called.
    fn names(&self, partition: usize) -> String {
        let config = self.files.downcast_ref::<FileScanConfig>();
        let Some((config, group)) =
            config.and_then(|config| Some((config, config.file_groups.get(partition)?)))
        else {
            return String::new();
        };
        let all = || config.file_groups.iter().flat_map(FileGroup::iter);
        // Whoever is free may read the files of others.
        let first = group.iter().next().or_else(|| all().next());
        let Some(first) = first.map(|file| &file.object_meta.location) else {
            return String::new();
        };
        let name = match config.object_store_url.as_str() {
            "file:///" => format!("/{first}"),
            store => format!("{store}{first}"),
        };
        match all().all(|file| file.object_meta.location == *first) {
            true => name,
            false => format!("{name} or another of these files"),
        }
    }
}

impl DataSource for Named {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.open_with_args(OpenArgs::new(partition, context))
    }

    fn open_with_args(&self, args: OpenArgs) -> Result<SendableRecordBatchStream> {
        let names = self.names(args.partition);
        let opened = caught(|| self.files.open_with_args(args));
        let mut batches = opened.map_err(|panic| of_panic(&names, &panic))??;
        let schema = batches.schema();
        let mut is_over = false;
        let batches = poll_fn(move |task| {
            if is_over {
                return Poll::Ready(None);
            }
            let polled = caught(|| batches.poll_next_unpin(task));
            let polled = polled.unwrap_or_else(|panic| {
                is_over = true;
                Poll::Ready(Some(Err(of_panic(&names, &panic))))
            });
            polled.map_err(|error| of_reader(&names, error))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt_as(format, f)
    }

    fn output_partitioning(&self) -> Partitioning {
        self.files.output_partitioning()
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        self.files.eq_properties()
    }

    fn scheduling_type(&self) -> SchedulingType {
        self.files.scheduling_type()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.files.partition_statistics(partition)
    }

    fn with_fetch(&self, rows: Option<usize>) -> Option<Arc<dyn DataSource>> {
        let files = self.files.with_fetch(rows)?;
        Some(Arc::new(Named { files }))
    }

    fn fetch(&self) -> Option<usize> {
        self.files.fetch()
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        self.files.metrics()
    }

    /// No rule that would ask for it comes behind.
    fn try_swapping_with_projection(
        &self,
        _: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        each: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.files.apply_expressions(each)
    }

    fn with_new_state(&self, state: Shared) -> Option<Arc<dyn DataSource>> {
        let files = self.files.with_new_state(state)?;
        Some(Arc::new(Named { files }))
    }

    fn create_sibling_state(&self, config: &ConfigOptions) -> Option<Shared> {
        self.files.create_sibling_state(config)
    }
}

fn of_panic(names: &str, panic: &str) -> DataFusionError {
    exec_datafusion_err!("{names}: it cannot be read and is probably damaged: {panic}")
}

/// What a reader says of a file, with its name. What comes of the values stays as it is.
fn of_reader(names: &str, error: DataFusionError) -> DataFusionError {
    let is_of_reader = match error.find_root() {
        // A condition is looked at within the reader.
        DataFusionError::ParquetError(error) => !error.to_string().contains(OF_CONDITION),
        DataFusionError::ArrowError(error, _) => match &**error {
            ArrowError::IpcError(_)
            | ArrowError::IoError(..)
            | ArrowError::ParquetError(_)
            | ArrowError::SchemaError(_) => true,
            ArrowError::InvalidArgumentError(text) => OF_DATA.iter().any(|it| text.starts_with(it)),
            _ => false,
        },
        _ => false,
    };
    match is_of_reader {
        true => exec_datafusion_err!("{names}: {}", text_of(&error)),
        false => error,
    }
}
