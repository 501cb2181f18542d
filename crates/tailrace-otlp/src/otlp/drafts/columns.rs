//! Writes the values of one column, or field, to the drafts of a block.
//!
//! Values of the kind that the first one has are written by a loop for that kind. The few others, and those that are not
//! short, are written one by one. A value that does not fit leaves its row without a draft.

use arrow::array::Array;
use tailrace_model::json::Kind;
use tailrace_zstd::{Column, Mark};

use super::super::record::{BODY, Row, SEVERITY_TEXT};
use super::{DRAFT_MAX, Drafts, Inputs, MARKS};
use crate::any::Values;
use crate::attribute::{Written, write_text_any_field};
use crate::cell::Cell;
use crate::lift::{RowsOf, Window};
use crate::number::{inline_float, inline_integer};
use crate::open::place;
use crate::part::Stats;
use crate::plan::SimpleColumn;
use crate::wire::{ROOM, bytes_tag, string_any_field_room, write_string_any_field};

const STRING: u8 = Kind::String as u8;
const INTEGER: u8 = Kind::Integer as u8;
const FLOAT: u8 = Kind::Float as u8;
const OBJECT: u8 = Kind::Object as u8;
const ARRAY: u8 = Kind::Array as u8;

impl Drafts {
    /// Texts of severities. An empty one is left out, as proto3 has it.
    pub(super) fn severities(&mut self, inputs: &Inputs<'_>, values: &mut Values) {
        let (lift, plan) = (inputs.lift, inputs.plan);
        for (column, rows) in &lift.severities {
            let mut rest = rows & self.whole;
            if let Some(simple) = &plan.columns[*column].simple {
                let mut memory = std::mem::take(&mut self.gathered);
                let window = Window::new(&simple.column, &lift.block, &mut memory);
                rest = self.each(rest, Column::SEVERITY, |at, room| {
                    let (text, len) = window.short_string(at).filter(|(_, len)| *len > 0)?;
                    room[..2].copy_from_slice(&[bytes_tag(SEVERITY_TEXT), len as u8]);
                    room[2..18].copy_from_slice(&text.to_le_bytes());
                    Some(Written {
                        len: 2 + len,
                        value: len,
                    })
                });
                self.gathered = memory;
            }
            for at in RowsOf(rest) {
                let start = values.out.len();
                let cell = plan.cell(*column, lift.block.row(at), lift.block.record(at));
                values.text_field(SEVERITY_TEXT, cell);
                self.paste(at, None, start, values);
            }
        }
    }

    /// Bodies, and the raw records where there are no others.
    pub(super) fn bodies(&mut self, inputs: &Inputs<'_>, values: &mut Values) {
        let (lift, plan) = (inputs.lift, inputs.plan);
        let mut without = self.whole;
        for (column, rows) in &lift.bodies {
            without &= !rows;
            let mut rest = rows & self.whole;
            if let Some(simple) = &plan.columns[*column].simple {
                let mut memory = std::mem::take(&mut self.gathered);
                let window = Window::new(&simple.column, &lift.block, &mut memory);
                rest = self.each(rest, Column::BODY, |at, room| {
                    write_text_any_field(bytes_tag(BODY), window.string(at)?, room)
                });
                self.gathered = memory;
            }
            for at in RowsOf(rest) {
                let cell = plan.cell(*column, lift.block.row(at), lift.block.record(at));
                self.long_body(at, cell, values);
            }
        }
        let raw = inputs.envelope.raw.filter(|_| !plan.computes_body);
        let Some(raw) = raw else {
            return;
        };
        let (views, buffers) = (raw.views(), raw.data_buffers());
        let record = |at: usize| lift.block.record(at);
        let rows = without & self.whole;
        let rows = lift.block.filter(rows, |at| raw.is_valid(record(at)));
        let rest = self.each(rows, Column::BODY, |at, room| {
            write_text_any_field(bytes_tag(BODY), place(views[record(at)], buffers), room)
        });
        for at in RowsOf(rest) {
            self.long_body(at, Cell::Str(raw.value(record(at))), values);
        }
    }

    #[inline(never)]
    fn long_body(&mut self, at: usize, cell: Cell<'_>, values: &mut Values) {
        if let Cell::Str(text) = cell
            && let Some(room) = self.long_room(at, string_any_field_room(text.len()))
        {
            let len = write_string_any_field(room, bytes_tag(BODY), text.as_bytes());
            let value = text.len();
            return self.advance(at, Column::BODY, Written { len, value });
        }
        let (start, stats) = (values.out.len(), values.stats);
        let len = values.body(cell);
        self.paste_value(at, Column::BODY, start, len, stats, values);
    }

    /// The attributes of a simple column.
    pub(super) fn simple_column(
        &mut self,
        rows: u64,
        inputs: &Inputs<'_>,
        simple: &SimpleColumn<'_>,
        mark: Column,
        values: &mut Values,
    ) {
        let mut memory = std::mem::take(&mut self.gathered);
        let window = Window::new(&simple.column, &inputs.lift.block, &mut memory);
        let head = &simple.head;
        let first = RowsOf(rows).next().unwrap_or(0);
        let rest = match window.kinds[first] {
            STRING => self.each(rows, mark, |at, room| head.text(window.string(at)?, room)),
            INTEGER => self.each(rows, mark, |at, room| match window.kinds[at] {
                INTEGER => Some(head.integer(inline_integer(window.views[at])?, room)),
                _ => None,
            }),
            FLOAT => self.each(rows, mark, |at, room| match window.kinds[at] {
                FLOAT => Some(head.float(inline_float(window.views[at])?, room)),
                _ => None,
            }),
            _ => rows,
        };
        self.gathered = memory;
        for at in RowsOf(rest) {
            self.other_value(at, inputs.lift.block.record(at), simple, mark, values);
        }
    }

    /// Any value of a simple column.
    #[inline(never)]
    fn other_value(
        &mut self,
        at: usize,
        record: usize,
        simple: &SimpleColumn<'_>,
        mark: Column,
        values: &mut Values,
    ) {
        let (head, column) = (&simple.head, &simple.column);
        let kind = column.kind(record);
        if kind == OBJECT || kind == ARRAY {
            let start = self.lens[at].bytes as usize;
            if let Some(room) = self.drafts[at].bytes[..DRAFT_MAX].get_mut(start..)
                && let Some(written) = head.known_json(column.place(record), values, room)
            {
                return self.advance(at, mark, written);
            }
        } else if let Some(room) = self.room(at)
            && let Some(written) = head.write(column, record, room)
        {
            return self.advance(at, mark, written);
        }
        if kind == STRING {
            let text = column.text(record).as_bytes();
            if let Some(room) = self.long_room(at, head.long_text_room(text.len())) {
                let written = head.long_text(text, room);
                return self.advance(at, mark, written);
            }
        }
        let (start, stats) = (values.out.len(), values.stats);
        let len = values.long_attribute(head, column, record);
        self.paste_value(at, mark, start, len, stats, values);
    }

    /// A column that is not a simple column.
    #[inline(never)]
    pub(super) fn other_column(
        &mut self,
        rows: u64,
        inputs: &Inputs<'_>,
        column: usize,
        values: &mut Values,
    ) {
        let (lift, plan) = (inputs.lift, inputs.plan);
        for at in RowsOf(rows) {
            let (start, stats) = (values.out.len(), values.stats);
            let row = Row {
                plan,
                lift,
                row: lift.block.row(at),
                record: lift.block.record(at),
                has_failed: false,
            };
            if let Some(len) = values.other_column(&row, column, inputs.prefixes) {
                let mark = plan.columns[column].mark;
                self.paste_value(at, mark, start, len, stats, values);
            }
        }
    }

    /// Calls `write` with the room behind each row's draft. Gives the rows for which it wrote nothing.
    #[inline(always)]
    fn each(
        &mut self,
        rows: u64,
        column: Column,
        write: impl Fn(usize, &mut [u8; ROOM]) -> Option<Written>,
    ) -> u64 {
        let mut rest = 0;
        for at in RowsOf(rows) {
            let written = self.room(at).and_then(|room| write(at, room));
            match written {
                Some(written) => self.advance(at, column, written),
                None => rest |= 1 << at,
            }
        }
        rest
    }

    /// The memory behind what is written of a draft.
    #[inline(always)]
    fn room(&mut self, at: usize) -> Option<&mut [u8; ROOM]> {
        let start = self.lens[at].bytes as usize;
        if start > DRAFT_MAX {
            return None;
        }
        self.drafts[at].bytes[start..].first_chunk_mut()
    }

    /// As [`Self::room`], of so many bytes.
    fn long_room(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        let start = self.lens[at].bytes as usize;
        self.drafts[at].bytes[..DRAFT_MAX].get_mut(start..start + len)
    }

    /// Counts what was written to the [`Self::room`] of a draft.
    #[inline(always)]
    fn advance(&mut self, at: usize, column: Column, written: Written) {
        let (draft, len) = (&mut self.drafts[at], &mut self.lens[at]);
        len.bytes += written.len as u32;
        // There is room for it: `make_room_for_marks`.
        draft.marks[len.marks as usize % MARKS] =
            Mark::new(column, len.bytes as usize, written.value);
        len.marks += 1;
    }

    /// Moves what was written behind the request to a draft: a value with a mark, the last `len` bytes. A row of which
    /// something is counted has no draft, because it would be counted twice if it had none in the end.
    fn paste_value(
        &mut self,
        at: usize,
        column: Column,
        start: usize,
        len: usize,
        stats: Stats,
        values: &mut Values,
    ) {
        if values.stats != stats {
            values.stats = stats;
            self.whole &= !(1 << at);
        }
        self.paste(at, Some((column, len)), start, values);
    }

    fn paste(
        &mut self,
        at: usize,
        value: Option<(Column, usize)>,
        start: usize,
        values: &mut Values,
    ) {
        let bytes = values.out.from(start);
        let len = bytes.len();
        match self.long_room(at, len) {
            Some(room) => {
                room.copy_from_slice(bytes);
                match value {
                    Some((column, value)) => self.advance(at, column, Written { len, value }),
                    None => self.lens[at].bytes += len as u32,
                }
            }
            None => self.whole &= !(1 << at),
        }
        values.out.truncate(start);
    }
}
