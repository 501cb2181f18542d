//! Rows to groups, by the numbers of their keys.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, aggregate_expressions};

use super::numbers::{NUMBER_BITS, NUMBERS_MAX, Numbers};
use super::table::Table;

/// The numbers of so many columns have room in a word.
pub(super) const COLUMNS_MAX: usize = (u64::BITS / NUMBER_BITS) as usize;
const GROUPS_MAX: usize = 4_096;

/// The groups so far.
pub(super) struct Groups {
    keys: Vec<(Arc<dyn PhysicalExpr>, Numbers)>,
    aggregates: Vec<Aggregate>,
    /// The groups by the numbers of their keys, and the other way around.
    of_keys: Table<u64>,
    groups: Vec<u64>,
    /// Of the rows of a batch.
    row_keys: Vec<u64>,
    row_groups: Vec<usize>,
}

/// What is aggregated.
struct Aggregate {
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    of_groups: Box<dyn GroupsAccumulator>,
}

impl Groups {
    pub(super) fn new(of: &AggregateExec) -> Result<Groups> {
        let keys = of.group_expr().expr().iter();
        let arguments = aggregate_expressions(of.aggr_expr(), &AggregateMode::Partial, 0)?;
        let filters = of.filter_expr().iter().cloned();
        let aggregates = of.aggr_expr().iter().zip(arguments).zip(filters);
        let aggregates = aggregates.map(|((aggregate, arguments), filter)| {
            let of_groups = aggregate.create_groups_accumulator()?;
            Ok(Aggregate {
                arguments,
                filter,
                of_groups,
            })
        });
        Ok(Groups {
            keys: keys
                .map(|(key, _)| (Arc::clone(key), Numbers::new()))
                .collect(),
            aggregates: aggregates.collect::<Result<_>>()?,
            of_keys: Table::new(),
            groups: Vec::new(),
            row_keys: Vec::new(),
            row_groups: Vec::new(),
        })
    }

    /// Adds the rows, or none of them: false if there would be too many groups.
    pub(super) fn add(&mut self, rows: &RecordBatch) -> Result<bool> {
        let known = self.groups.len();
        if !self.group(rows)? {
            self.groups.truncate(known);
            return Ok(false);
        }
        let (groups, count) = (&self.row_groups, self.groups.len());
        for aggregate in &mut self.aggregates {
            let value_of = |of: &Arc<dyn PhysicalExpr>| -> Result<ArrayRef> {
                of.evaluate(rows)?.into_array(rows.num_rows())
            };
            let values = aggregate.arguments.iter().map(value_of);
            let values = values.collect::<Result<Vec<_>>>()?;
            let filter = aggregate.filter.as_ref().map(value_of).transpose()?;
            let filter: Option<&BooleanArray> = filter.as_ref().map(|filter| filter.as_boolean());
            let of_groups = &mut aggregate.of_groups;
            of_groups.update_batch(&values, groups, filter, count)?;
        }
        Ok(true)
    }

    /// Finds the group of each row.
    fn group(&mut self, rows: &RecordBatch) -> Result<bool> {
        self.row_keys.clear();
        self.row_keys.resize(rows.num_rows(), 0);
        for (at, (key, numbers)) in self.keys.iter_mut().enumerate() {
            let column = key.evaluate(rows)?.into_array(rows.num_rows())?;
            if !numbers.number(&column, at as u32 * NUMBER_BITS, &mut self.row_keys)? {
                return Ok(false);
            }
        }
        self.row_groups.clear();
        for at in 0..self.row_keys.len() {
            let key = self.row_keys[at];
            let group = self.of_keys.find(key).or_else(|| self.new_group(key));
            let Some(group) = group else { return Ok(false) };
            self.row_groups.push(group as usize);
        }
        Ok(true)
    }

    #[cold]
    fn new_group(&mut self, key: u64) -> Option<u32> {
        let group = self.groups.len() as u32;
        self.groups.push(key);
        let has_room = self.groups.len() <= GROUPS_MAX;
        (has_room && self.of_keys.insert(key, group)).then_some(group)
    }

    /// How many bytes of memory they take.
    pub(super) fn bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|(_, numbers)| numbers.bytes()).sum();
        let aggregates = self.aggregates.iter();
        let aggregates: usize = aggregates.map(|of| of.of_groups.size()).sum();
        let rows = self.row_keys.capacity() * size_of::<u64>()
            + self.row_groups.capacity() * size_of::<usize>();
        keys + aggregates + rows + self.of_keys.bytes() + self.groups.capacity() * size_of::<u64>()
    }

    /// The groups with what is aggregated of them.
    pub(super) fn results(self, schema: SchemaRef) -> Result<RecordBatch> {
        self.finish(schema, |of| Ok(vec![of.evaluate(EmitTo::All)?]))
    }

    /// The groups with what is aggregated of them so far.
    pub(super) fn states(self, schema: SchemaRef) -> Result<RecordBatch> {
        self.finish(schema, |of| of.state(EmitTo::All))
    }

    fn finish(
        mut self,
        schema: SchemaRef,
        of: impl Fn(&mut dyn GroupsAccumulator) -> Result<Vec<ArrayRef>>,
    ) -> Result<RecordBatch> {
        if self.groups.is_empty() {
            return Ok(RecordBatch::new_empty(schema));
        }
        let mut columns = Vec::with_capacity(schema.fields().len());
        for (at, (_, numbers)) in self.keys.iter().enumerate() {
            let number_of = |key: &u64| (key >> (at as u32 * NUMBER_BITS)) as u32 % NUMBERS_MAX;
            let of_groups: UInt32Array = self.groups.iter().map(number_of).collect();
            columns.push(numbers.values(&of_groups)?);
        }
        for aggregate in &mut self.aggregates {
            columns.extend(of(aggregate.of_groups.as_mut())?);
        }
        Ok(RecordBatch::try_new(schema, columns)?)
    }
}
