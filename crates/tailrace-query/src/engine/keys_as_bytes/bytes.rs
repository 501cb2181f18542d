//! Rows as they are sorted: with the bytes of their keys in the place of the columns that these are.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::row::{RowConverter, SortField};
use datafusion::common::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_expr::expressions::Column;

/// The keys of rows as bytes, and back.
pub(super) struct Bytes {
    order: LexOrdering,
    converter: RowConverter,
    /// As the rows come.
    schema: SchemaRef,
    /// As they are sorted: what is no key, and the bytes behind it.
    sorted: SchemaRef,
    /// Of each column, which key it is.
    keys_of_columns: Vec<Option<usize>>,
}

impl Bytes {
    pub(super) fn new(order: LexOrdering, schema: SchemaRef) -> Result<Bytes> {
        let converter = RowConverter::new(fields(&order, &schema)?)?;
        let columns = schema.fields().iter().enumerate();
        let keys_of_columns: Vec<_> = columns
            .clone()
            .map(|(column, field)| {
                let is_column = |key: &Column| key.index() == column;
                let mut keys = order.iter().map(|key| key.expr.downcast_ref());
                let key = keys.position(|key| key.is_some_and(is_column));
                key.filter(|_| is_plain(field.data_type()))
            })
            .collect();
        let others = columns.filter(|(column, _)| keys_of_columns[*column].is_none());
        let others = others.map(|(_, field)| Arc::clone(field));
        let bytes = Arc::new(Field::new("key", DataType::Binary, false));
        let sorted = Schema::new(others.chain([bytes]).collect::<Fields>());
        Ok(Bytes {
            order,
            converter,
            schema,
            sorted: Arc::new(sorted),
            keys_of_columns,
        })
    }

    /// The columns while rows are sorted.
    pub(super) fn sorted(&self) -> &SchemaRef {
        &self.sorted
    }

    /// The column of bytes.
    pub(super) fn column(&self) -> Column {
        Column::new("key", self.sorted.fields().len() - 1)
    }

    pub(super) fn made(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = self.converter.convert_columns(&keys(batch, &self.order)?)?;
        let columns = batch.columns().iter().zip(&self.keys_of_columns);
        let others = columns.filter(|(_, key)| key.is_none());
        let mut columns: Vec<_> = others.map(|(column, _)| Arc::clone(column)).collect();
        columns.push(Arc::new(rows.try_into_binary()?));
        Ok(RecordBatch::try_new(Arc::clone(&self.sorted), columns)?)
    }

    pub(super) fn undone(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let keys = match self.keys_of_columns.iter().any(Option::is_some) {
            true => {
                let bytes = batch.column(batch.num_columns() - 1).as_binary().clone();
                let rows = self.converter.from_binary(bytes);
                self.converter.convert_rows(&rows)?
            }
            false => Vec::new(),
        };
        let mut others = batch.columns().iter();
        let columns = self.keys_of_columns.iter().filter_map(|key| match key {
            Some(key) => keys.get(*key),
            None => others.next(),
        });
        let columns = columns.cloned().collect();
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::clone(&self.schema);
        Ok(RecordBatch::try_new_with_options(schema, columns, &rows)?)
    }
}

/// The values of the keys of rows.
pub(super) fn keys(batch: &RecordBatch, order: &LexOrdering) -> Result<Vec<ArrayRef>> {
    let keys = order.iter();
    let keys = keys.map(|key| Ok(key.evaluate_to_sort_column(batch)?.values));
    keys.collect()
}

/// What the bytes are made of.
pub(super) fn fields(order: &LexOrdering, schema: &Schema) -> Result<Vec<SortField>> {
    let fields = order.iter().map(|key| {
        let ty = key.expr.data_type(schema)?;
        Ok(SortField::new_with_options(ty, key.options))
    });
    fields.collect()
}

/// Whether values are numbers, times, texts or bytes.
pub(super) fn is_plain(ty: &DataType) -> bool {
    use DataType::{Binary, BinaryView, LargeBinary};
    ty.is_primitive() || ty.is_string() || matches!(ty, Binary | BinaryView | LargeBinary)
}
