//! One partition of a scan: records to batches, the conditions evaluated between the scanner's two phases.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use arrow::array::{Array, ArrayRef, StringViewArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DataFusionError;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use tailrace_model::reserved::{self, Reserved};
use tailrace_scan::{ColumnSource, Config, NewlineSearcher, Scanner, Stats};

use crate::bounds::Condition;
use crate::engine::Ended;
use crate::input::Input;
use crate::notes::Notes;
use crate::partition::Part;
use crate::reader::{Chunk, Once, Reader};

/// What all partitions of a scan have alike.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) condition: Condition,
    /// The columns of the output, by place in the scanner's.
    pub(crate) output: Vec<usize>,
    pub(crate) schema: SchemaRef,
    pub(crate) once: Once,
    pub(crate) notes: Arc<Notes>,
    pub(crate) chunk_bytes: usize,
}

/// A partition.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) parts: Vec<Part>,
    pub(crate) shared: Arc<Shared>,
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.shared.schema
    }

    fn execute(&self, task: Arc<TaskContext>) -> SendableRecordBatchStream {
        let batches = Batches {
            rows: Rows::new(&self.shared),
            parts: self.parts.clone().into_iter(),
            open: None,
            chunks: Vec::new().into_iter(),
            ended: Ended::of(&task),
        };
        let schema = Arc::clone(&self.shared.schema);
        Box::pin(RecordBatchStreamAdapter::new(
            schema,
            futures::stream::iter(batches),
        ))
    }
}

/// The batches of a partition.
struct Batches {
    rows: Rows,
    parts: std::vec::IntoIter<Part>,
    open: Option<(Reader, Input)>,
    /// What is left of what was read last of the open part.
    chunks: std::vec::IntoIter<Chunk>,
    ended: Arc<Ended>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let batch = self.next_batch().transpose()?;
        if batch.is_err() {
            // What follows a failure is not read.
            (self.parts, self.open) = (Vec::new().into_iter(), None);
        }
        Some(batch)
    }
}

impl Batches {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let external = |error: anyhow::Error| DataFusionError::External(error.into());
        while !self.ended.is_true() {
            let Some((reader, input)) = &mut self.open else {
                let Some(part) = self.parts.next() else {
                    return Ok(None);
                };
                let shared = &self.rows.shared;
                let reader = Reader::new(&part, &shared.once, shared.chunk_bytes);
                self.open = Some((reader.map_err(external)?, part.input));
                continue;
            };
            let Some(chunk) = self.chunks.next() else {
                let Some(chunk) = reader.next(self.rows.searcher()).map_err(external)? else {
                    self.open = None;
                    continue;
                };
                self.chunks = chunk.split(self.rows.records_max()).into_iter();
                continue;
            };
            let input = input.clone();
            if let Some(batch) = self.rows.of_chunk(&chunk, &input)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Makes rows of records.
pub(crate) struct Rows {
    shared: Arc<Shared>,
    scanner: Scanner,
    /// Keys beyond the columns that are in the notes.
    noted: usize,
}

impl Rows {
    pub(crate) fn new(shared: &Arc<Shared>) -> Rows {
        Rows {
            shared: Arc::clone(shared),
            scanner: Scanner::new(shared.config.clone()),
            noted: 0,
        }
    }

    /// So many records are made rows at a time: a batch has a slot for each of its columns in each of its rows.
    pub(crate) fn records_max(&self) -> usize {
        /// Slots of 17 bytes.
        const CELLS_MAX: usize = 2 << 20;
        (CELLS_MAX / self.shared.config.columns.len().max(1)).max(1)
    }

    /// What finds the lines of the next chunk, and what of them is worth a look.
    pub(crate) fn searcher(&self) -> NewlineSearcher<'_> {
        self.scanner.searcher(!self.shared.condition.is_empty())
    }

    /// The rows of a chunk that meet the condition; `None` if none does. All of it is counted.
    pub(crate) fn of_chunk(&mut self, chunk: &Chunk, input: &Input) -> Result<Option<RecordBatch>> {
        self.shared.notes.read(chunk);
        if chunk.len() == 0 {
            return Ok(None);
        }
        let batch = self.batch(chunk, input)?;
        self.noted += self
            .shared
            .notes
            .add_late_keys(self.scanner.unwanted().skip(self.noted));
        self.shared.notes.kept(batch.num_rows() as u64);
        Ok((batch.num_rows() > 0).then_some(batch))
    }

    /// The rows of a chunk that meet the condition.
    fn batch(&mut self, chunk: &Chunk, input: &Input) -> Result<RecordBatch> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let records = chunk.records(now.map_or(0, |now| now.as_nanos() as i64));
        let shared = Arc::clone(&self.shared);
        let condition = &shared.condition;
        let scanned = match condition.is_empty() {
            true if shared.output.is_empty() => return shared.output_of(&[], chunk.len()),
            true => self.scanner.scan(&records),
            false => {
                let first = self.scanner.first(&records);
                let at = shared.config.first.iter();
                let columns: Vec<_> = at
                    .zip(first.batch.columns())
                    .map(|(at, column)| shared.with_facts(*at, column, input))
                    .collect();
                let (schema, len) = (first.batch.schema(), first.batch.num_rows());
                let batch = with_len(schema, columns, len)?;
                shared.notes.prefiltered((chunk.len() - len) as u64);
                let met = condition.met(&batch, &shared.notes)?;
                let met = match met.nulls() {
                    Some(valid) => met.values() & valid.inner(),
                    None => met.values().clone(),
                };
                let count = met.count_set_bits();
                if count == 0 || shared.output.is_empty() {
                    shared.notes.scanned(&first.stats);
                    return shared.output_of(&[], count);
                }
                let of_first = |at: usize| first.rows.as_ref().map_or(at as u32, |rows| rows[at]);
                let rows: Vec<u32> = met.set_indices().map(of_first).collect();
                let mut scanned = self.scanner.second(&records, &first, &rows);
                // The second phase reads again what the first one read of these rows.
                scanned.stats = larger(scanned.stats, &first.stats);
                scanned
            }
        };
        shared.notes.scanned(&scanned.stats);
        shared.note_text(&scanned.stats);
        let columns = scanned.batch.columns().iter().enumerate();
        let columns: Vec<_> = columns
            .map(|(at, column)| shared.with_facts(at, column, input))
            .collect();
        shared.output_of(&columns, scanned.batch.num_rows())
    }
}

/// The larger of each count: of two phases over the same records at least so much is true.
fn larger(one: Stats, other: &Stats) -> Stats {
    Stats {
        malformed: one.malformed.max(other.malformed),
        repaired: one.repaired.max(other.repaired),
        truncated: one.truncated.max(other.truncated),
        type_mismatches: one.type_mismatches.max(other.type_mismatches),
        ..one
    }
}

impl Shared {
    /// A scanned column, or what is known of the file that the records are from.
    fn with_facts(&self, at: usize, column: &ArrayRef, input: &Input) -> ArrayRef {
        let text: PathBuf = match (&self.config.columns[at].source, input) {
            (ColumnSource::Reserved(Reserved::FilePath), Input::Object(object)) => {
                object.name().into()
            }
            (ColumnSource::Reserved(Reserved::FileName), Input::Object(object)) => {
                object.meta.location.filename().unwrap_or_default().into()
            }
            (ColumnSource::Reserved(Reserved::FilePath), Input::File(path)) => {
                std::path::absolute(path).unwrap_or_else(|_| path.clone())
            }
            (ColumnSource::Reserved(Reserved::FileName), Input::File(path)) => {
                Path::new(path.file_name().unwrap_or_default()).to_owned()
            }
            _ => return Arc::clone(column),
        };
        let text = text.to_string_lossy().into_owned();
        Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(
            text,
            column.len(),
        )))
    }

    /// Notes `body` as a late key, if `*` has no such column and records are text.
    fn note_text(&self, stats: &Stats) {
        let has_text = stats.text > 0 || stats.malformed > 0;
        if has_text
            && let Some(unwanted) = &self.config.unwanted
            && !unwanted.except.iter().any(|name| name == reserved::BODY)
        {
            self.notes.add_late_keys(std::iter::once(reserved::BODY));
        }
    }

    /// The columns of the output.
    fn output_of(&self, columns: &[ArrayRef], len: usize) -> Result<RecordBatch> {
        if len == 0 {
            return Ok(RecordBatch::new_empty(Arc::clone(&self.schema)));
        }
        let columns = self.output.iter().map(|at| Arc::clone(&columns[*at]));
        with_len(Arc::clone(&self.schema), columns.collect(), len)
    }
}

fn with_len(schema: SchemaRef, columns: Vec<ArrayRef>, len: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(len));
    Ok(RecordBatch::try_new_with_options(
        schema, columns, &options,
    )?)
}
