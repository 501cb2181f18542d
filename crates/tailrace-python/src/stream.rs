//! A run of a query as a reader of batches, which is what the C stream of Arrow is made of.
//!
//! The query begins when the first batch is asked for, and ends when its reader is dropped. It runs on a thread of its own
//! and hands batches over through a bounded queue, so that it is never more than a few batches ahead of who reads them.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, ThreadId};

use arrow::compute::BatchCoalescer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchReader};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::background::{spawn, wait};
use crate::errors::text;
use crate::query::Query;
use crate::requested;
use crate::views::converted;

/// Batches that wait for their reader.
const BATCHES_AHEAD: usize = 2;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// The batches of one run of a query.
pub(crate) struct Batches {
    query: Arc<Query>,
    /// The columns of the query, with the types that were asked for.
    schema: SchemaRef,
    state: State,
    /// The thread that asked for the stream. It had the interpreter then, so it may ask for it again.
    caller: ThreadId,
}

enum State {
    Waiting,
    Running(Run),
    Over,
}

/// A query that runs, until this is dropped.
struct Run {
    messages: Receiver<Message>,
    _ends_when_dropped: oneshot::Sender<()>,
}

enum Message {
    Batch(RecordBatch),
    Failed(String),
    End,
}

impl Batches {
    /// The batches of a run that has not begun, with types to which those of the query can be cast.
    pub(crate) fn new(query: Arc<Query>, schema: SchemaRef) -> Batches {
        Batches {
            query,
            schema,
            state: State::Waiting,
            caller: thread::current().id(),
        }
    }

    fn next_message(&mut self) -> Result<Message, String> {
        if let State::Waiting = self.state {
            let run = start(Arc::clone(&self.query), Arc::clone(&self.schema));
            self.state = State::Running(
                run.map_err(|error| format!("a thread cannot be started: {error}"))?,
            );
        }
        let State::Running(run) = &mut self.state else {
            return Ok(Message::End);
        };
        let messages = &mut run.messages;
        if let Ok(message) = messages.try_recv() {
            return Ok(message);
        }
        // Another thread may be one that a thread with the interpreter waits for.
        let is_caller = thread::current().id() == self.caller;
        let waited = is_caller.then(|| Python::try_attach(|py| patiently(py, messages)));
        let message = match waited.flatten() {
            Some(waited) => waited?,
            None => messages.recv().ok(),
        };
        message.ok_or_else(|| "the query was given up: this is a fault of tailrace".to_owned())
    }
}

/// Waits for a message; Ctrl-C ends the wait.
fn patiently(py: Python<'_>, messages: &mut Receiver<Message>) -> Result<Option<Message>, String> {
    wait(py, messages).map_err(|raised| {
        let text = format!("the query was interrupted: {raised}");
        if raised.is_instance_of::<PyKeyboardInterrupt>(py) {
            // Who reads the stream raises an error of its own. The interrupt is raised again as soon as Python goes on, which
            // must not be here.
            let main = py.import("_thread");
            let _ = main.and_then(|main| main.call_method0("interrupt_main"));
        }
        text
    })
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let failure = match self.next_message() {
            Ok(Message::Batch(batch)) => return Some(Ok(batch)),
            Ok(Message::End) => None,
            Ok(Message::Failed(text)) | Err(text) => Some(text),
        };
        self.state = State::Over;
        // The C stream has texts that end with a NUL.
        failure.map(|text| Err(ArrowError::ExternalError(text.replace('\0', "\\0").into())))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

fn start(query: Arc<Query>, schema: SchemaRef) -> io::Result<Run> {
    let (sender, messages) = sync_channel(BATCHES_AHEAD);
    let (ends_when_dropped, dropped) = oneshot::channel();
    spawn(query.threads, move |runtime| {
        let ended = runtime.block_on(async {
            tokio::select! {
                ended = run(&query, &schema, &sender) => ended,
                _ = dropped => Ok(()),
            }
        });
        // Nobody listens if the reader was dropped.
        let _ = sender.send(ended.map_or_else(Message::Failed, |()| Message::End));
    })?;
    Ok(Run {
        messages,
        _ends_when_dropped: ends_when_dropped,
    })
}

/// Runs the query, until its end or until nobody reads its batches, which get the types of `schema`.
async fn run(
    query: &Query,
    schema: &SchemaRef,
    sender: &SyncSender<Message>,
) -> Result<(), String> {
    let failed = |error: tailrace_query::Error| text(&error, &query.sql);
    let plan = query.plan.again().await.map_err(failed)?;
    let mut batches = Gathered::new(Arc::clone(&query.schema));
    let mut result = Ok(true);
    let each = |batch| {
        let added = converted(batch, &query.schema).and_then(|batch| batches.add(batch));
        result = added.and_then(|()| send(&mut batches, schema, sender));
        matches!(result, Ok(true))
    };
    plan.run(each).await.map_err(failed)?;
    let ended = result.and_then(|is_read| match is_read {
        true => batches
            .finish()
            .and_then(|()| send(&mut batches, schema, sender)),
        false => Ok(false),
    });
    ended.map(|_| ()).map_err(|error| error.to_string())
}

/// Hands the complete batches over; false if nobody reads them.
fn send(
    batches: &mut Gathered,
    schema: &SchemaRef,
    sender: &SyncSender<Message>,
) -> Result<bool, ArrowError> {
    for batch in batches.complete() {
        let batch = requested::cast(batch, schema)?;
        if sender.send(Message::Batch(batch)).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes batches of [`BATCH_ROWS`] rows. Texts are views of the bytes that were read from the files. Where few of those bytes
/// are wanted, the texts are copied, so that who keeps the rows that met a condition does not keep whole files.
enum Gathered {
    Columns(BatchCoalescer),
    /// There are no columns, only rows to count.
    Rows(Vec<RecordBatch>),
}

impl Gathered {
    fn new(schema: SchemaRef) -> Gathered {
        match schema.fields().is_empty() {
            true => Gathered::Rows(Vec::new()),
            false => Gathered::Columns(BatchCoalescer::new(schema, BATCH_ROWS)),
        }
    }

    fn add(&mut self, batch: RecordBatch) -> Result<(), ArrowError> {
        match self {
            Gathered::Columns(coalescer) => coalescer.push_batch(batch),
            Gathered::Rows(batches) => {
                batches.push(batch);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<(), ArrowError> {
        match self {
            Gathered::Columns(coalescer) => coalescer.finish_buffered_batch(),
            Gathered::Rows(_) => Ok(()),
        }
    }

    /// The batches that are complete.
    fn complete(&mut self) -> impl Iterator<Item = RecordBatch> {
        std::iter::from_fn(|| match self {
            Gathered::Columns(coalescer) => coalescer.next_completed_batch(),
            Gathered::Rows(batches) => batches.pop(),
        })
    }
}
