//! Columns under construction: one slot per record.
//!
//! Values are set row by row, in any order of columns, and finished as arrays. A slot that is never set is NULL.
//! Never reorders, never allocates per row.

use std::mem::take;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, StringViewArray, StructArray,
    TimestampNanosecondArray, UInt8Array,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use tailrace_model::json::Kind;

use crate::config::Type;
use crate::convert;
use crate::text::{Finished, StringView, StringViews};

/// A value, ready for any column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) kind: Kind,
    /// Its text: of a string the unescaped text.
    pub(crate) text: &'a str,
    /// Where that text is.
    pub(crate) view: StringView,
}

/// One column of a batch. Values and states are as long as the rows that were reached so far: what is written first as
/// zeros and then as values lies in the nearest cache in between.
#[derive(Debug)]
pub(crate) struct Column {
    values: Values,
    /// Per row 0 for absent, else the kind's tag plus 1. Where that is 1 (JSON null) the value is NULL.
    states: Vec<u8>,
    rows: usize,
    /// An open column whose values and kinds become one array.
    is_struct: bool,
}

#[derive(Debug)]
enum Values {
    /// Of an open column that few rows have: those rows, in the order in which they were set.
    Sparse(Vec<SparseCell>),
    Open(StringViews),
    Text(StringViews),
    Int64(Vec<i64>),
    Float64(Vec<f64>),
    Boolean(Vec<bool>),
    Timestamp(Vec<i64>),
}

/// A value of a sparse column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseCell {
    pub(crate) row: u32,
    pub(crate) kind: Kind,
    /// Of a JSON null it means nothing.
    pub(crate) view: StringView,
}

/// A sparse column becomes an array if one row in so many has a value.
const SPARSE_SHARE: usize = 4;

/// How many rows a column grows by at least.
const GROWTH: usize = 128;

impl Column {
    /// A column of this type for `rows` records.
    pub(crate) fn new(ty: Type, rows: usize) -> Column {
        let values = match ty {
            Type::Open | Type::Value => Values::Open(StringViews::new(rows)),
            Type::Text => Values::Text(StringViews::new(rows)),
            Type::Int64 => Values::Int64(Vec::with_capacity(rows)),
            Type::Float64 => Values::Float64(Vec::with_capacity(rows)),
            Type::Boolean => Values::Boolean(Vec::with_capacity(rows)),
            Type::Timestamp => Values::Timestamp(Vec::with_capacity(rows)),
        };
        Column {
            values,
            states: Vec::with_capacity(rows),
            rows,
            is_struct: ty == Type::Value,
        }
    }

    /// An open column that costs what its values cost, however many rows have none.
    pub(crate) fn sparse(rows: usize) -> Column {
        Column {
            values: Values::Sparse(Vec::new()),
            states: Vec::new(),
            rows,
            is_struct: false,
        }
    }

    /// Whether it is made to have few values.
    #[inline]
    pub(crate) fn is_sparse(&self) -> bool {
        matches!(self.values, Values::Sparse(_))
    }

    /// Its values, if it is sparse and has so few that an array would be larger.
    pub(crate) fn take_sparse(&mut self) -> Option<Vec<SparseCell>> {
        match &mut self.values {
            Values::Sparse(cells) if cells.len() * SPARSE_SHARE < self.rows => Some(take(cells)),
            _ => None,
        }
    }

    /// Makes an open column with a slot for each row of a sparse one.
    fn densify(&mut self) {
        if let Values::Sparse(cells) = &mut self.values {
            let cells = take(cells);
            self.values = Values::Open(StringViews::new(self.rows));
            self.reach(self.rows);
            for cell in cells {
                self.states[cell.row as usize] = state(cell.kind);
                if let (Values::Open(views), true) = (&mut self.values, cell.kind != Kind::Null) {
                    views.set(cell.row as usize, cell.view);
                }
            }
        }
    }

    /// Makes room for the rows before `end`.
    #[inline]
    fn reach(&mut self, end: usize) {
        if self.states.len() < end {
            self.grow(end.next_multiple_of(GROWTH).min(self.rows));
        }
    }

    #[inline(never)]
    fn grow(&mut self, len: usize) {
        self.states.resize(len, 0);
        match &mut self.values {
            Values::Sparse(_) => {}
            Values::Open(views) | Values::Text(views) => views.grow(len),
            Values::Int64(values) | Values::Timestamp(values) => values.resize(len, 0),
            Values::Float64(values) => values.resize(len, 0.0),
            Values::Boolean(values) => values.resize(len, false),
        }
    }

    /// Sets a row. False if the value does not fit the column's type: then it stays NULL.
    #[inline]
    pub(crate) fn set(&mut self, row: usize, cell: &Cell<'_>, offset_s: i32) -> bool {
        if let Values::Sparse(cells) = &mut self.values {
            let (kind, view) = (cell.kind, cell.view);
            cells.push(SparseCell {
                row: row as u32,
                kind,
                view,
            });
            return true;
        }
        self.reach(row + 1);
        if cell.kind == Kind::Null {
            self.states[row] = state(Kind::Null);
            return true;
        }
        let fits = match &mut self.values {
            Values::Sparse(_) => false,
            Values::Open(views) | Values::Text(views) => {
                views.set(row, cell.view);
                true
            }
            Values::Int64(values) => put(values, row, convert::int64(cell.kind, cell.text)),
            Values::Float64(values) => put(values, row, convert::float64(cell.kind, cell.text)),
            Values::Boolean(values) => put(values, row, convert::boolean(cell.kind, cell.text)),
            Values::Timestamp(values) => put(
                values,
                row,
                convert::timestamp(cell.kind, cell.text, offset_s),
            ),
        };
        if fits {
            self.states[row] = state(cell.kind);
        }
        fits
    }

    /// What its values are turned into; of a column of `Value` it is `Open`, as it is filled like one.
    #[inline]
    pub(crate) fn ty(&self) -> Type {
        match self.values {
            Values::Open(_) | Values::Sparse(_) => Type::Open,
            Values::Text(_) => Type::Text,
            Values::Int64(_) => Type::Int64,
            Values::Float64(_) => Type::Float64,
            Values::Boolean(_) => Type::Boolean,
            Values::Timestamp(_) => Type::Timestamp,
        }
    }

    /// The slots of a column of integers for the rows before `end`: its values, and the states beside them.
    #[inline]
    pub(crate) fn integer_slots(&mut self, end: usize) -> Option<(&mut [i64], &mut [u8])> {
        self.reach(end);
        match &mut self.values {
            Values::Int64(values) => Some((values, &mut self.states)),
            _ => None,
        }
    }

    /// The same of a column of floats.
    #[inline]
    pub(crate) fn float_slots(&mut self, end: usize) -> Option<(&mut [f64], &mut [u8])> {
        self.reach(end);
        match &mut self.values {
            Values::Float64(values) => Some((values, &mut self.states)),
            _ => None,
        }
    }

    /// The view in a row of a column of text.
    pub(crate) fn view(&self, row: usize) -> Option<StringView> {
        let is_set = self
            .states
            .get(row)
            .is_some_and(|&it| it > state(Kind::Null));
        match &self.values {
            Values::Open(views) | Values::Text(views) if is_set => Some(views.get(row)),
            _ => None,
        }
    }

    /// The slots of a column of text for the rows before `end`: its views, and the states beside them. A sparse column has
    /// none.
    #[inline]
    pub(crate) fn text_slots(&mut self, end: usize) -> Option<(&mut StringViews, &mut [u8])> {
        self.reach(end);
        match &mut self.values {
            Values::Open(views) | Values::Text(views) => Some((views, &mut self.states)),
            _ => None,
        }
    }

    /// Sets a row of a Timestamp column.
    pub(crate) fn set_timestamp(&mut self, row: usize, time_ns: i64) {
        self.reach(row + 1);
        if let Values::Timestamp(values) = &mut self.values {
            values[row] = time_ns;
            self.states[row] = state(Kind::Integer);
        }
    }

    /// Whether any row holds a value, JSON null included.
    pub(crate) fn has_values(&self) -> bool {
        match &self.values {
            Values::Sparse(cells) => !cells.is_empty(),
            _ => self.states.iter().fold(0, |all, &state| all | state) != 0,
        }
    }

    /// The array and, of an open column, the kinds.
    pub(crate) fn finish(mut self, buffers: &Finished) -> (ArrayRef, Option<UInt8Array>) {
        self.densify();
        self.reach(self.rows);
        let nulls = nulls_below(&self.states, state(Kind::Null) + 1);
        match self.values {
            Values::Open(views) if self.is_struct => {
                let text = Arc::new(buffers.array(views, nulls.clone()));
                let kind = Arc::new(kinds(self.states));
                let fields = value_fields();
                (
                    Arc::new(StructArray::new(fields, vec![text, kind], nulls)),
                    None,
                )
            }
            Values::Open(views) => (
                Arc::new(buffers.array(views, nulls)) as ArrayRef,
                Some(kinds(self.states)),
            ),
            Values::Sparse(_) => unreachable!("it was made an open column"),
            Values::Text(views) => (Arc::new(buffers.array(views, nulls)), None),
            Values::Int64(values) => (
                Arc::new(Int64Array::new(ScalarBuffer::from(values), nulls)),
                None,
            ),
            Values::Float64(values) => (
                Arc::new(Float64Array::new(ScalarBuffer::from(values), nulls)),
                None,
            ),
            Values::Boolean(values) => (
                Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)),
                None,
            ),
            Values::Timestamp(values) => {
                let array = TimestampNanosecondArray::new(ScalarBuffer::from(values), nulls);
                (Arc::new(array.with_timezone(UTC)), None)
            }
        }
    }

    /// The array and the kinds of an open column.
    pub(crate) fn finish_open(
        mut self,
        buffers: &Finished,
    ) -> Option<(StringViewArray, UInt8Array)> {
        self.densify();
        self.reach(self.rows);
        let Values::Open(views) = self.values else {
            return None;
        };
        let nulls = nulls_below(&self.states, state(Kind::Null) + 1);
        Some((buffers.array(views, nulls), kinds(self.states)))
    }

    /// The array of a text column.
    pub(crate) fn finish_text(mut self, buffers: &Finished) -> Option<StringViewArray> {
        self.reach(self.rows);
        let Values::Text(views) = self.values else {
            return None;
        };
        Some(buffers.array(views, nulls_below(&self.states, state(Kind::Null) + 1)))
    }
}

/// The Arrow type of a column.
pub(crate) fn data_type(ty: Type) -> DataType {
    match ty {
        Type::Open | Type::Text => DataType::Utf8View,
        Type::Value => DataType::Struct(value_fields()),
        Type::Int64 => DataType::Int64,
        Type::Float64 => DataType::Float64,
        Type::Boolean => DataType::Boolean,
        Type::Timestamp => DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
    }
}

/// The fields of a value and its kind in one array.
fn value_fields() -> Fields {
    Fields::from(vec![
        Field::new("text", DataType::Utf8View, true),
        Field::new("kind", DataType::UInt8, true),
    ])
}

/// The name of the time zone in the type of times.
const UTC: &str = "UTC";

#[inline]
fn put<T>(values: &mut [T], row: usize, value: Option<T>) -> bool {
    let fits = value.is_some();
    if let Some(value) = value {
        values[row] = value;
    }
    fits
}

/// What stands beside a value of this kind.
#[inline(always)]
pub(crate) const fn state(kind: Kind) -> u8 {
    kind as u8 + 1
}

/// NULL where the state is below `least`; `None` if it nowhere is.
fn nulls_below(states: &[u8], least: u8) -> Option<NullBuffer> {
    if states.iter().fold(u8::MAX, |low, &state| low.min(state)) >= least {
        return None;
    }
    // A state is far below 0x80, so that the sum reaches the high bit of its byte where the state is not below `least`;
    // the product brings the eight bits to places of their own in the highest byte.
    let (groups, rest) = states.as_chunks::<8>();
    let mut bits = Vec::with_capacity(groups.len() + 1);
    let add = u64::from_le_bytes([0x80 - least; 8]);
    let valid = |group: &[u8; 8]| {
        let reached = (u64::from_le_bytes(*group) + add) & u64::from_le_bytes([0x80; 8]);
        ((reached >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    };
    bits.extend(groups.iter().map(valid));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    bits.push(valid(&last));
    let valid = BooleanBuffer::new(Buffer::from_vec(bits), 0, states.len());
    Some(NullBuffer::new(valid))
}

fn kinds(mut states: Vec<u8>) -> UInt8Array {
    let nulls = nulls_below(&states, state(Kind::Null));
    for tag in &mut states {
        *tag = tag.saturating_sub(1);
    }
    UInt8Array::new(ScalarBuffer::from(states), nulls)
}
