//! Bounds that hold for every log table of a query, whatever it says itself: a span of time and a least severity.
//!
//! A bound is a condition on a reserved column, evaluated by the scan as the conditions of the query are. A record that
//! lacks the time or the severity is left out and counted. Files that were last modified long before the span begins are
//! not read at all.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::compute::{and_kleene, filter_record_batch, or};
use arrow::record_batch::RecordBatch;
use datafusion::common::{Column as Named, Result, ScalarValue};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, lit};
use datafusion::physical_expr::PhysicalExpr;
use tailrace_model::reserved::{SEVERITY_NUMBER, TIMESTAMP};

use crate::input::Input;
use crate::notes::Notes;
use crate::sample::{Column, reserved_column};

/// How far the clock that times of modification come from may be behind the one that times in records come from.
const CLOCK_SKEW: Duration = Duration::from_secs(10 * 60);

/// Bounds of the records of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Records of this time and later ones, in nanoseconds since the Unix epoch.
    pub since_ns: Option<i64>,
    /// Records before this time, in nanoseconds since the Unix epoch.
    pub until_ns: Option<i64>,
    /// Records of at least this severity number of OpenTelemetry, 1 to 24.
    pub severity_min: Option<u8>,
}

/// The column that a bound is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bounded {
    Time,
    Severity,
}

impl Bounds {
    /// Whether every record is within them.
    pub fn is_empty(&self) -> bool {
        *self == Bounds::default()
    }

    /// The conditions, each with the column that it is about.
    pub(crate) fn conditions(&self) -> Vec<(Bounded, Expr)> {
        let time = || Expr::Column(Named::from_name(TIMESTAMP));
        let at = |ns| {
            lit(ScalarValue::TimestampNanosecond(
                Some(ns),
                Some("UTC".into()),
            ))
        };
        let since = self.since_ns.map(|ns| time().gt_eq(at(ns)));
        let until = self.until_ns.map(|ns| time().lt(at(ns)));
        let span = conjunction(since.into_iter().chain(until));
        let severity = self.severity_min.map(|least| {
            Expr::Column(Named::from_name(SEVERITY_NUMBER)).gt_eq(lit(i64::from(least)))
        });
        let span = span.map(|expr| (Bounded::Time, expr));
        let severity = severity.map(|expr| (Bounded::Severity, expr));
        span.into_iter().chain(severity).collect()
    }

    /// The columns that the conditions read.
    pub(crate) fn columns(&self) -> impl Iterator<Item = Column> {
        let has_span = self.since_ns.is_some() || self.until_ns.is_some();
        let time = has_span.then(|| reserved_column(TIMESTAMP)).flatten();
        let has_severity = self.severity_min.is_some();
        let severity = has_severity.then(|| reserved_column(SEVERITY_NUMBER));
        time.into_iter().chain(severity.flatten())
    }

    /// Whether a file was last modified so long before the span that it holds no record of it.
    pub(crate) fn prunes(&self, input: &Input) -> bool {
        let Some(since) = self.modified_since() else {
            return false;
        };
        let modified = match input {
            Input::File(path) => {
                let meta = std::fs::metadata(path).ok().filter(|meta| meta.is_file());
                meta.and_then(|meta| meta.modified().ok())
            }
            Input::Object(object) => Some(object.meta.last_modified.into()),
            Input::Stdin => None,
        };
        modified.is_some_and(|modified| modified < since)
    }

    /// When files were last modified, at the earliest, that can hold records of the span.
    pub(crate) fn modified_since(&self) -> Option<SystemTime> {
        let since = Duration::from_nanos(u64::try_from(self.since_ns?).ok()?);
        Some(UNIX_EPOCH + since.checked_sub(CLOCK_SKEW)?)
    }
}

/// What decides on each record of a scan: the conditions of the query, and the bounds.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    pub(crate) of_query: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) of_bounds: Vec<(Bounded, Arc<dyn PhysicalExpr>)>,
}

impl Condition {
    pub(crate) fn is_empty(&self) -> bool {
        self.of_query.is_none() && self.of_bounds.is_empty()
    }

    /// Which rows are met. Rows that meet everything else and lack what a bound is about are counted. The query's own
    /// condition is evaluated on the rows within the bounds: an error
    /// of others is none of the query's.
    pub(crate) fn met(&self, batch: &RecordBatch, notes: &Notes) -> Result<BooleanArray> {
        if let (Some(expr), []) = (&self.of_query, self.of_bounds.as_slice()) {
            return evaluate(expr, batch);
        }
        let len = batch.num_rows();
        let within = self.of_bounds.iter();
        let within = within.map(|(bounded, expr)| Ok((*bounded, evaluate(expr, batch)?)));
        let within = within.collect::<Result<Vec<_>>>()?;
        let mut every = BooleanArray::from(vec![true; len]);
        for (_, within) in &within {
            every = and_kleene(&every, within)?;
        }
        let inside: BooleanArray = every.iter().map(|it| Some(it == Some(true))).collect();
        let lacking: BooleanArray = every.iter().map(|it| Some(it.is_none())).collect();
        let mut met = match &self.of_query {
            None => or(&inside, &lacking)?,
            Some(expr) if inside.true_count() == len => evaluate(expr, batch)?,
            Some(expr) => {
                let of_rows =
                    |rows: &BooleanArray| evaluate(expr, &filter_record_batch(batch, rows)?);
                let of_inside = of_rows(&inside)?;
                // They are only counted, and count as met by none where that cannot be told.
                let of_lacking = of_rows(&lacking);
                let of_lacking = of_lacking.unwrap_or_else(|_| BooleanArray::new_null(0));
                let (mut of_inside, mut of_lacking) = (of_inside.iter(), of_lacking.iter());
                let of_row = |at: usize| match (inside.value(at), lacking.value(at)) {
                    (true, _) => of_inside.next().flatten(),
                    (_, true) => of_lacking.next().flatten(),
                    _ => Some(false),
                };
                (0..len).map(of_row).collect()
            }
        };
        for (bounded, within) in within {
            if within.null_count() > 0 {
                let is_met = |at: usize| met.is_valid(at) && met.value(at);
                let lacking = (0..met.len()).filter(|at| within.is_null(*at) && is_met(*at));
                notes.lacking(bounded, lacking.count() as u64);
            }
            met = and_kleene(&met, &within)?;
        }
        Ok(met)
    }
}

fn evaluate(expr: &Arc<dyn PhysicalExpr>, batch: &RecordBatch) -> Result<BooleanArray> {
    let met = expr.evaluate(batch)?.into_array(batch.num_rows())?;
    Ok(met.as_boolean().clone())
}
