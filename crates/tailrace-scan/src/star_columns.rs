//! The columns of `SELECT *` under construction, within a budget of slots.
//!
//! A column has a slot for every row, also for those that lack the key: a batch of short lines with many keys would take
//! hundreds of times its own size. Columns get slots as long as the budget lasts, in the order in which their keys are
//! met in the batch. A key that is met later gets a sparse column, which holds its values only. Never decides what
//! becomes of those.

use crate::columns::{Column, SparseCell};
use crate::config::Type;

/// By number of the key's column; made when the key is first met in the batch.
#[derive(Debug)]
pub(crate) struct StarColumns {
    columns: Vec<Option<Column>>,
    rows: usize,
    /// Slots that columns may still take.
    cells_left: usize,
    has_sparse: bool,
}

impl StarColumns {
    /// For so many rows, with a budget of so many slots.
    pub(crate) fn new(rows: usize, cells_max: usize) -> StarColumns {
        StarColumns {
            columns: Vec::new(),
            rows,
            cells_left: cells_max,
            has_sparse: false,
        }
    }

    /// The column with this number.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut Column {
        let number = number as usize;
        if !self.columns.get(number).is_some_and(Option::is_some) {
            self.make(number);
        }
        self.columns[number].as_mut().expect("it was made")
    }

    #[cold]
    fn make(&mut self, number: usize) {
        if self.columns.len() <= number {
            self.columns.resize_with(number + 1, || None);
        }
        let left = self.cells_left.checked_sub(self.rows);
        self.has_sparse |= left.is_none();
        self.columns[number] = Some(match left {
            Some(left) => {
                self.cells_left = left;
                Column::new(Type::Open, self.rows)
            }
            None => Column::sparse(self.rows),
        });
    }

    /// Takes the values of the columns that are sparse and stay so, each with its column's number; those that `keep` names
    /// become arrays whatever they cost.
    pub(crate) fn take_sparse(&mut self, keep: impl Fn(u32) -> bool) -> Vec<(u32, SparseCell)> {
        if !self.has_sparse {
            return Vec::new();
        }
        let columns = (0..).zip(&mut self.columns);
        let sparse = columns.filter_map(|(number, column)| {
            let cells = column.as_mut().filter(|_| !keep(number))?.take_sparse()?;
            Some(cells.into_iter().map(move |cell| (number, cell)))
        });
        sparse.flatten().collect()
    }

    /// All columns, by number.
    pub(crate) fn into_columns(self) -> impl Iterator<Item = Option<Column>> {
        self.columns.into_iter()
    }
}
