//! From a checked `Config` to prepared plans: the query compiled, the columns to scan, the
//! encodings to make, the source facts to add. `run`, `validate` and `explain` share it, so that
//! what validates also starts. Opens no file and no socket.

use std::collections::BTreeSet;

use arrow::array::UInt8Array;
use tailrace_config::{self as config, Config, Diagnostic};
use tailrace_model::reserved::{self, Reserved};
use tailrace_otlp::{Mapping, Value};
use tailrace_scan::{self as scan, Scanned};
use tailrace_sql::{self as sql, Query};

use crate::delivery::encoding::{EncodingPlan, SharedCompression};

/// One pipeline, ready to be built.
#[derive(Debug)]
pub struct PipelinePlan {
    /// Name of the pipeline.
    pub name: String,
    /// Its part of the config.
    pub config: config::Pipeline,
    /// The compiled query.
    pub query: Query,
    /// What the scanner extracts; each input brings its own offset of times without a zone.
    pub scan: scan::Config,
    /// Where each column of the query comes from.
    pub columns: Vec<ColumnFrom>,
    /// The names of what the query wants to know of a record's pod.
    pub pod_facts: Vec<String>,
    /// Distinct encodings of the outputs.
    pub encodings: Vec<EncodingPlan>,
    /// The encoding of each output: index into `encodings`.
    pub encoding_of: Vec<usize>,
    /// Resource attributes of every record.
    pub resource: Vec<(String, Value)>,
}

/// Where a column of the query comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnFrom {
    /// This column of the scanned batch.
    Scan(usize),
    /// Known of the source, the same for all its records.
    Fact(Fact),
}

/// A source fact that a query can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// `log.file.name`.
    FileName,
    /// `log.file.path`.
    FilePath,
    /// What is known of its pod: by index in [`PipelinePlan::pod_facts`].
    OfPod(usize),
}

/// What the constants of all queries may make together while they are planned, in bytes: the plans keep them.
const CONSTANT_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Prepares all pipelines, or reports everything that is wrong with their queries.
///
/// # Errors
///
/// One diagnostic, at its position in the config file, for each query that does not compile.
pub fn prepare(config: &Config) -> Result<Vec<PipelinePlan>, Vec<Diagnostic>> {
    let mut plans = Vec::new();
    let mut diagnostics = Vec::new();
    let resource: Vec<(String, Value)> = config
        .resource
        .iter()
        .map(|(key, value)| (key.clone(), Value::Str(value.clone())))
        .collect();
    let mut constant_bytes = 0;
    for (name, pipeline) in &config.pipelines {
        match PipelinePlan::prepare(name, pipeline, &resource) {
            Ok(plan) => {
                constant_bytes += plan.query.constant_bytes();
                plans.push(plan);
            }
            Err(diagnostic) => diagnostics.push(*diagnostic),
        }
        if constant_bytes > CONSTANT_BYTES_MAX {
            let transform = &pipeline.transform;
            let message = format!(
                "with this query the constants of all queries make more than {CONSTANT_BYTES_MAX} bytes"
            );
            let hint = "look for functions of constants that make large texts or lists";
            diagnostics.push(transform.diagnostic(1, 1, 1, message, Some(hint.to_owned())));
            break;
        }
    }
    if diagnostics.is_empty() {
        Ok(plans)
    } else {
        Err(diagnostics)
    }
}

impl PipelinePlan {
    pub(crate) fn prepare(
        name: &str,
        config: &config::Pipeline,
        resource: &[(String, Value)],
    ) -> Result<Self, Box<Diagnostic>> {
        let query = compile(config, &config.transform.text)
            .map_err(|error| Box::new(sql_diagnostic(&config.transform, &error)))?;
        Ok(Self::of_query(name, config, resource, query))
    }

    /// The same pipeline with another query.
    ///
    /// # Errors
    ///
    /// The query does not compile.
    pub(crate) fn with_query(&self, query: &str) -> Result<Self, sql::Error> {
        let query = compile(&self.config, query)?;
        let (config, resource) = (&self.config, &self.resource);
        Ok(Self::of_query(&self.name, config, resource, query))
    }

    fn of_query(
        name: &str,
        config: &config::Pipeline,
        resource: &[(String, Value)],
        query: Query,
    ) -> Self {
        let (mut scan_columns, mut pod_facts) = (Vec::new(), Vec::new());
        let columns: Vec<ColumnFrom> = query
            .columns()
            .iter()
            .map(|column| column_from(column, &mut scan_columns, &mut pod_facts))
            .collect();
        let star = query.star().map(|star| scan::Star {
            except: star.except.clone(),
            kept: keys_with_a_meaning(config),
            columns_max: config.limits.columns,
            ..scan::Star::default()
        });
        let scan = scan::Config {
            columns: scan_columns,
            unwanted: None,
            star,
            offset_s: 0,
            first: first(&query, &columns),
            prefilter: prefilter(&query),
            isa: scan::Isa::Auto,
        };
        let (encodings, encoding_of) = encodings(config);
        Self {
            name: name.to_owned(),
            config: config.clone(),
            query,
            scan,
            columns,
            pod_facts,
            encodings,
            encoding_of,
            resource: resource.to_vec(),
        }
    }

    /// How many records a framed batch may have: what each takes, in tables and as a row of all columns, is bounded by it,
    /// however short the records are.
    pub(crate) fn records_max(&self) -> usize {
        /// More is no gain: it is 1 MiB of lines of 32 bytes.
        const RECORDS_MAX: usize = 32 * 1024;
        /// Slots of 17 bytes of all columns that have one for every row.
        const CELLS_MAX: usize = 768 * 1024;
        let outputs = self
            .query
            .branches()
            .iter()
            .map(|branch| branch.outputs.len());
        let kept = self.scan.star.as_ref().map_or(0, |star| star.kept.len());
        let columns = self.columns.len().max(outputs.sum()) + kept;
        (CELLS_MAX / columns.max(1)).clamp(1, RECORDS_MAX)
    }

    /// Whether another plan does the same to the same logs, wherever it is written down.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self {
            name,
            config,
            resource,
            // Made of the config.
            query: _,
            scan: _,
            columns: _,
            encodings: _,
            encoding_of: _,
            pod_facts: _,
        } = self;
        *name == other.name && *config == other.config && *resource == other.resource
    }

    /// The kinds that stand beside an open column of the query.
    pub(crate) fn kinds<'a>(&self, scanned: &'a Scanned, column: usize) -> Option<&'a UInt8Array> {
        match self.columns[column] {
            ColumnFrom::Scan(index) => scanned.kinds[index].as_ref(),
            ColumnFrom::Fact(_) => None,
        }
    }
}

/// A query with the types that the config gives to columns.
fn compile(config: &config::Pipeline, query: &str) -> Result<Query, sql::Error> {
    let columns = config.columns.iter();
    let columns = columns.map(|(key, ty)| (key.clone(), sql_type(*ty)));
    let options = sql::Options {
        columns: columns.collect(),
    };
    Query::compile(query, &options)
}

/// A SQL error at its position in the config file.
fn sql_diagnostic(transform: &config::Sql, error: &sql::Error) -> Diagnostic {
    transform.diagnostic(
        error.line,
        error.column,
        error.length,
        error.message.clone(),
        error.hint.clone(),
    )
}

fn sql_type(ty: config::ColumnType) -> sql::Type {
    match ty {
        config::ColumnType::String => sql::Type::Text,
        config::ColumnType::Int64 => sql::Type::Int64,
        config::ColumnType::Float64 => sql::Type::Float64,
        config::ColumnType::Boolean => sql::Type::Boolean,
        config::ColumnType::Timestamp => sql::Type::Timestamp,
    }
}

/// Asks the scanner for a column it knows how to make; the others are facts of the source.
fn column_from(
    column: &sql::Column,
    wanted: &mut Vec<scan::Column>,
    pod_facts: &mut Vec<String>,
) -> ColumnFrom {
    let source = match &column.source {
        sql::ColumnSource::Key(steps) => scan::ColumnSource::Key(steps.clone()),
        sql::ColumnSource::Reserved(reserved, name) => match reserved {
            Reserved::FileName => return ColumnFrom::Fact(Fact::FileName),
            Reserved::FilePath => return ColumnFrom::Fact(Fact::FilePath),
            Reserved::Kubernetes | Reserved::Container => {
                pod_facts.push(name.to_string());
                return ColumnFrom::Fact(Fact::OfPod(pod_facts.len() - 1));
            }
            other => scan::ColumnSource::Reserved(*other),
        },
    };
    wanted.push(scan::Column {
        name: column.name.clone(),
        source,
        ty: column.ty,
    });
    ColumnFrom::Scan(wanted.len() - 1)
}

/// Keys that become columns whatever `limits.columns` says: fields of a LogRecord are made of them, or the query's reserved
/// columns have their names.
fn keys_with_a_meaning(config: &config::Pipeline) -> Vec<String> {
    let outputs = config.outputs.iter();
    let mappings = outputs.map(|output| output.kind.mapping());
    let mappings: Vec<Mapping> = mappings.chain([Mapping::default()]).collect();
    let lifted = mappings.iter().flat_map(Mapping::names);
    let names: BTreeSet<&str> = lifted.chain(reserved::NAMES).collect();
    names.into_iter().map(str::to_owned).collect()
}

/// The scanned columns that conditions read.
fn first(query: &Query, columns: &[ColumnFrom]) -> Vec<usize> {
    let read = query.pushdown().into_iter();
    let scanned = |&at: &usize| match columns[at] {
        ColumnFrom::Scan(index) => Some(index),
        ColumnFrom::Fact(_) => None,
    };
    read.flat_map(|pushdown| pushdown.columns.iter().filter_map(scanned))
        .collect()
}

/// The literals of which a record must hold some.
fn prefilter(query: &Query) -> Vec<scan::Needles> {
    query
        .pushdown()
        .map_or(Vec::new(), |pushdown| pushdown.prefilter.clone())
}

/// Offset of times without a zone, in seconds east of UTC.
pub(crate) fn offset_s(input: &config::Input) -> i32 {
    input.records().timezone.offset_s()
}

/// The encodings of a pipeline's outputs, and which of them each output takes.
fn encodings(config: &config::Pipeline) -> (Vec<EncodingPlan>, Vec<usize>) {
    let plan = |output: &config::Output| EncodingPlan {
        encoding: output.kind.encoding(),
        compression: SharedCompression::new(output.kind.compression()),
    };
    let plans: Vec<_> = config.outputs.iter().map(plan).collect();
    let of_output = (0..plans.len()).collect();
    (plans, of_output)
}
