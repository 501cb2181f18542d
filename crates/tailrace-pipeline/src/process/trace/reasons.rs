//! Why records are filtered: the first condition of each SELECT that is not true, and the values that it reads, as they are
//! written in the record.

use arrow::array::{Array, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use tailrace_model::column::Type;
use tailrace_otlp::{Column, Index, value_json};
use tailrace_scan::{Records, Scanned, Scanner};
use tailrace_sql::{Branch, ColumnSource, Conditions};

use super::{ReadValue, Unmet};
use crate::input::input_queue::Framed;
use crate::plan::PipelinePlan;
use crate::process::transform::{Columns, scan_records};

/// Finds the reasons for the records of batches.
pub(super) struct Reasons {
    conditions: Conditions,
    /// Scans the keys that conditions read, as they are written.
    scanner: Scanner,
    /// By column of the query: which column of that scanner has its key.
    written: Vec<Option<usize>>,
}

/// The filtered records of a batch.
struct Filtered<'a> {
    plan: &'a PipelinePlan,
    /// The columns of the query.
    batch: RecordBatch,
    /// The keys that conditions read, as they are written.
    scanned: Scanned,
}

impl Reasons {
    pub(super) fn new(plan: &PipelinePlan, offset_s: i32) -> Self {
        let columns = plan.query.columns();
        let mut written = vec![None; columns.len()];
        let mut wanted: Vec<tailrace_scan::Column> = Vec::new();
        let conjuncts = plan.query.branches().iter().flat_map(|it| &it.predicate);
        for &at in conjuncts.flat_map(|conjunct| &conjunct.columns) {
            let ColumnSource::Key(steps) = &columns[at].source else {
                continue;
            };
            let known = wanted.iter().position(|it| it.name == columns[at].label);
            written[at] = Some(known.unwrap_or(wanted.len()));
            if known.is_none() {
                wanted.push(tailrace_scan::Column {
                    name: columns[at].label.clone(),
                    source: tailrace_scan::ColumnSource::Key(steps.clone()),
                    ty: Type::Open,
                });
            }
        }
        Self {
            conditions: plan.query.conditions(),
            scanner: Scanner::new(tailrace_scan::Config {
                columns: wanted,
                offset_s,
                ..tailrace_scan::Config::default()
            }),
            written,
        }
    }

    /// For each of the records of a batch that are `filtered`, ascending, one reason for each SELECT. The columns are those
    /// of all records, with their times and streams.
    pub(super) fn of(
        &mut self,
        plan: &PipelinePlan,
        framed: &Framed,
        (columns, times, streams): (&Columns, &[i64], &[u8]),
        filtered: &[u32],
    ) -> Vec<Vec<Unmet>> {
        if filtered.is_empty() {
            return Vec::new();
        }
        let mut records = Vec::new();
        scan_records(&framed.frames.records, &mut records);
        let records = Records {
            buffers: &framed.buffers,
            records: &records,
            times,
            streams,
            observed_ns: framed.observed_ns,
            searched: None,
        };
        let rows = UInt32Array::from(filtered.to_vec());
        let filtered = Filtered {
            plan,
            batch: take_record_batch(&columns.batch, &rows).expect("rows of the batch"),
            scanned: self.scanner.scan_some(&records, filtered),
        };
        let mut reasons: Vec<Vec<Unmet>> = vec![Vec::new(); filtered.batch.num_rows()];
        for (number, branch) in plan.query.branches().iter().enumerate() {
            let unmet = self
                .conditions
                .first_unmet(number, &filtered.batch, framed.observed_ns);
            for (row, (unmet, reasons)) in unmet.into_iter().zip(&mut reasons).enumerate() {
                reasons.push(self.reason((number, branch), unmet, &filtered, row));
            }
        }
        reasons
    }

    fn reason(
        &self,
        (number, branch): (usize, &Branch),
        unmet: Option<tailrace_sql::Unmet>,
        filtered: &Filtered<'_>,
        row: usize,
    ) -> Unmet {
        let first = unmet.as_ref().map(|unmet| unmet.condition);
        let conjuncts = match first {
            Some(condition) => &branch.predicate[condition..=condition],
            None => &branch.predicate[..],
        };
        let texts = conjuncts.iter().map(|conjunct| conjunct.text.as_str());
        let condition = texts.collect::<Vec<_>>().join(" AND ");
        let mut reads: Vec<ReadValue> = Vec::new();
        for &column in conjuncts.iter().flat_map(|conjunct| &conjunct.columns) {
            let value = self.value(filtered, column, row);
            match reads.iter_mut().find(|known| known.name == value.name) {
                Some(known) => known.misfit = known.misfit.or(value.misfit),
                None => reads.push(value),
            }
        }
        Unmet {
            branch: number,
            condition: filtered
                .plan
                .config
                .transform
                .redact(&condition)
                .into_owned(),
            outcome: unmet.map(|unmet| unmet.outcome),
            reads,
        }
    }

    /// The value that a record has for a column of the query.
    fn value(&self, filtered: &Filtered<'_>, column: usize, row: usize) -> ReadValue {
        let described = &filtered.plan.query.columns()[column];
        let read = filtered.batch.column(column);
        let shown = match self.written[column] {
            Some(at) => Column {
                name: &described.label,
                values: filtered.scanned.batch.column(at),
                kinds: filtered.scanned.kinds[at].as_ref(),
                index: Index::Record,
            },
            None => Column {
                name: &described.label,
                values: read,
                kinds: None,
                index: Index::Record,
            },
        };
        let json = value_json(&shown, row);
        let is_typed = !matches!(described.ty, Type::Open | Type::Value | Type::Text);
        let has_value = json.as_ref().is_some_and(|json| json != "null");
        let is_misfit = is_typed && has_value && read.is_null(row);
        ReadValue {
            name: described.label.clone(),
            json,
            misfit: is_misfit.then_some(described.ty),
        }
    }
}
