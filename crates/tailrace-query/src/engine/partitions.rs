//! The partitions of a result while they run: each ahead of whoever takes its batches, and all of them ended with their run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Batches of a partition that may wait for those before it.
const BATCHES_AHEAD: usize = 16;

/// Whether a run has ended. Its scans look, since they may read a whole file without waiting for anything.
#[derive(Debug, Default)]
pub(crate) struct Ended(AtomicBool);

impl Ended {
    /// That of the run that a task is of.
    pub(crate) fn of(task: &TaskContext) -> Arc<Ended> {
        let config = task.session_config();
        config.get_extension::<Ended>().unwrap_or_default()
    }

    pub(crate) fn is_true(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A run: it ends when this is dropped.
pub(super) struct Running(pub(super) Arc<Ended>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// A partition that runs ahead; it ends when this is dropped.
pub(super) struct Ahead {
    first: Option<RecordBatch>,
    batches: mpsc::Receiver<Result<RecordBatch, DataFusionError>>,
    /// The partition's end, until it is known.
    end: Option<JoinHandle<()>>,
}

impl Ahead {
    pub(super) fn new(mut stream: SendableRecordBatchStream) -> Ahead {
        let (sender, batches) = mpsc::channel(BATCHES_AHEAD);
        let end = tokio::spawn(async move {
            while let Some(batch) = stream.next().await {
                // A step that failed may panic where it is asked to go on.
                let is_over = batch.is_err();
                if sender.send(batch).await.is_err() || is_over {
                    return;
                }
            }
        });
        Ahead {
            first: None,
            batches,
            end: Some(end),
        }
    }

    /// Waits for the first batch, or the end.
    pub(super) async fn begin(&mut self) -> Result<(), DataFusionError> {
        self.first = self.next().await.transpose()?;
        Ok(())
    }

    /// The next batch. A partition that panics is an error, and never a result that is too short.
    pub(super) async fn next(&mut self) -> Option<Result<RecordBatch, DataFusionError>> {
        if let Some(batch) = self.first.take() {
            return Some(Ok(batch));
        }
        if let Some(batch) = self.batches.recv().await {
            return Some(batch);
        }
        let ended = self.end.take()?.await;
        ended
            .err()
            .map(|error| Err(DataFusionError::ExecutionJoin(Box::new(error))))
    }

    fn stream(self) -> BoxStream<'static, Result<RecordBatch, DataFusionError>> {
        let next = |mut ahead: Ahead| async { ahead.next().await.map(|batch| (batch, ahead)) };
        stream::unfold(self, next).boxed()
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(end) = &self.end {
            end.abort();
        }
    }
}

/// The batches of one partition after the other.
pub(super) fn in_turn(
    partitions: Vec<Ahead>,
) -> BoxStream<'static, Result<RecordBatch, DataFusionError>> {
    stream::iter(partitions).flat_map(Ahead::stream).boxed()
}

/// The batches of all partitions as they come.
pub(super) fn as_they_come(
    partitions: Vec<Ahead>,
) -> BoxStream<'static, Result<RecordBatch, DataFusionError>> {
    stream::select_all(partitions.into_iter().map(Ahead::stream)).boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    use arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    #[tokio::test]
    async fn a_partition_that_panics_is_an_error() {
        let schema = Arc::new(Schema::empty());
        let batch = RecordBatch::new_empty(Arc::clone(&schema));
        let batches = (0..2).map(move |nth| match nth {
            0 => Ok(batch.clone()),
            _ => panic!("of the test"),
        });
        let stream = futures::stream::iter(batches);
        let mut partition = Ahead::new(Box::pin(RecordBatchStreamAdapter::new(schema, stream)));
        assert!(partition.next().await.is_some_and(|batch| batch.is_ok()));
        assert!(partition.next().await.is_some_and(|batch| batch.is_err()));
        assert!(partition.next().await.is_none());
    }
}
