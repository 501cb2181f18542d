//! The functions of the package: `query` plans a query, `schema` looks at files.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use arrow::datatypes::SchemaRef;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tailrace_query::{Engine, Input, Notes, Options, Plan, describe, expand};

use crate::arguments::{Arguments, words};
use crate::background::{spawn, wait};
use crate::errors::{ReadError, exception, refused};
use crate::result::QueryResult;
use crate::views::exported;

/// A query that is planned, and can be run.
pub(crate) struct Query {
    pub(crate) sql: String,
    pub(crate) engine: Engine,
    pub(crate) plan: Plan,
    /// The columns as consumers get them.
    pub(crate) schema: SchemaRef,
    pub(crate) threads: Option<usize>,
}

/// Plans a SQL query over log files; nothing but the beginning of the files is read yet.
///
/// `paths` names the files of the table `logs`: a path, or several, each of a file, a directory or a glob; "-" is standard
/// input. The result is an Arrow stream: pass it to `pyarrow.table`, `polars.DataFrame` or `duckdb.sql`.
///
/// `columns` gives types to columns, as {"status": "int64"}: text, int64, float64, boolean or timestamp. Keys that only come
/// later in the files become columns this way. `since` and `until` bound the time of the records: a datetime with a time zone, a
/// date, the timedelta back from now, or a text such as "1h" or "2026-01-02T03:04:05Z". `level` is the least severity, such as
/// "warn". `memory_limit` is what sorts, groups and joins may keep in memory, 1 GiB by default. `threads` is how many threads
/// read and compute, by default as many as there are processors.
///
/// Raises QueryError if the query or an argument is not valid, ReadError if a file cannot be read.
#[pyfunction]
#[pyo3(signature = (sql, paths=None, *, columns=None, since=None, until=None, level=None, memory_limit=None, threads=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn query(
    py: Python<'_>,
    sql: String,
    paths: Option<&Bound<'_, PyAny>>,
    columns: Option<&Bound<'_, PyDict>>,
    since: Option<&Bound<'_, PyAny>>,
    until: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    memory_limit: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<QueryResult> {
    let words = words(paths)?;
    let arguments = Arguments {
        columns,
        since,
        until,
        level,
        memory_limit,
        threads,
    };
    let options = arguments.options(py)?;
    let planned_sql = sql.clone();
    let planned = on_thread(py, threads, move |runtime| {
        let inputs = inputs(&words)?;
        runtime.block_on(plan(&planned_sql, &inputs, options))
    })?;
    let (engine, plan) = planned.map_err(|failure| failure.exception(py, &sql))?;
    Ok(QueryResult::new(Arc::new(Query {
        schema: exported(&plan.schema()),
        sql,
        engine,
        plan,
        threads,
    })))
}

/// The columns that log files have, as {name: type}, by all of their records.
///
/// `paths` is as for `query`, and the result can be its `columns`. Raises ReadError if a file cannot be read.
#[pyfunction]
pub(crate) fn schema<'py>(
    py: Python<'py>,
    paths: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let words = words(Some(paths))?;
    let described = on_thread(py, Some(1), move |_| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Ok(describe(&inputs(&words)?, threads, &Notes::default())?)
    })?;
    let described = described.map_err(|failure| failure.exception(py, ""))?;
    let columns = PyDict::new(py);
    for key in described.keys {
        columns.set_item(key.name, key.ty.name())?;
    }
    Ok(columns)
}

/// Why there is no result.
enum Failure {
    /// The files cannot be found.
    Files(String),
    /// Standard input is named more than once.
    Twice,
    Query(tailrace_query::Error),
    /// The engine cannot be made.
    Engine(String),
}

impl From<tailrace_query::Error> for Failure {
    fn from(error: tailrace_query::Error) -> Failure {
        Failure::Query(error)
    }
}

impl Failure {
    fn exception(self, py: Python<'_>, sql: &str) -> PyErr {
        match self {
            Failure::Files(text) => ReadError::new_err(text),
            Failure::Twice => refused(py, "`-` is named more than once".to_owned()),
            Failure::Query(error) => exception(py, &error, sql),
            Failure::Engine(text) => PyRuntimeError::new_err(text),
        }
    }
}

/// Does `work` on a thread, and waits for it.
fn on_thread<T: Send + 'static>(
    py: Python<'_>,
    threads: Option<usize>,
    work: impl FnOnce(&tokio::runtime::Runtime) -> Result<T, Failure> + Send + 'static,
) -> PyResult<Result<T, Failure>> {
    let (sender, mut answers) = sync_channel(1);
    spawn(threads, move |runtime| {
        // Nobody waits after Ctrl-C.
        let _ = sender.send(work(runtime));
    })?;
    let answer = wait(py, &mut answers)?;
    answer.ok_or_else(|| {
        PyRuntimeError::new_err("the query was given up: this is a fault of tailrace")
    })
}

fn inputs(words: &[String]) -> Result<Vec<Input>, Failure> {
    let inputs = expand(words).map_err(|error| Failure::Files(format!("{error:#}")))?;
    let mut seen = HashSet::new();
    let is_twice = |input: &Input| *input == Input::Stdin && !seen.insert(input.clone());
    match inputs.iter().any(is_twice) {
        true => Err(Failure::Twice),
        false => Ok(inputs),
    }
}

async fn plan(sql: &str, inputs: &[Input], options: Options) -> Result<(Engine, Plan), Failure> {
    let engine = Engine::new(options).map_err(|error| Failure::Engine(format!("{error:#}")))?;
    let plan = engine.plan(sql, inputs).await?;
    Ok((engine, plan))
}
