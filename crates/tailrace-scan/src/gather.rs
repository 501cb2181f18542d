//! One member of many records of one template.
//!
//! Sets a member's columns from the spans of its values. What a value is and where it ends was found when the record
//! was followed; here it is put where it is wanted. Never reads a value again, except to convert it.

use tailrace_model::json::{self, Kind};

use crate::columns::Cell;
use crate::config::Type;
use crate::follow::ValueSpan;
use crate::groups::{Followed, Member, Pick};
use crate::keys::Star;
use crate::number;
use crate::plan::Target;
use crate::rows::{ColumnId, Rows};
use crate::text::{StringView, StringViews, ValidText, ViewSlot};
use crate::unescape::RawText;

/// Sets all columns of one member of these records.
pub(crate) fn gather(
    followed: &Followed<'_>,
    member: &Member,
    picked: &Picked<'_>,
    rows: &mut Rows<'_>,
) {
    let &Picked {
        picks,
        stride,
        order,
    } = picked;
    let mut values = MemberValues {
        followed,
        place: member.place,
        stride,
        picks,
        order,
        is_first: true,
    };
    let plan = rows.plan;
    for target in &plan.targets[member.targets.clone()] {
        match target {
            Target::Column(number) => values.column(rows, ColumnId::Column(*number)),
            Target::Path(number, path) => values.path(rows, *number, path),
            // What feeds reserved columns is taken record by record.
            Target::Candidate(..) | Target::Judged => continue,
        }
        values.is_first = false;
    }
    if let Star::Column(number) = member.star {
        values.column(rows, ColumnId::Star(number));
    }
}

/// Records of one template.
pub(crate) struct Picked<'p> {
    picks: &'p [Pick],
    /// How many value spans each of them has.
    stride: usize,
    order: Order,
}

/// How the rows of records of one template lie, and their value spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The rows follow each other, and so do the value spans.
    Even,
    /// The rows follow each other, the value spans do not.
    RowsEven,
    Apart,
}

impl<'p> Picked<'p> {
    /// Records with `stride` value spans each.
    pub(crate) fn new(followed: &Followed<'_>, picks: &'p [Pick], stride: usize) -> Picked<'p> {
        let count = picks.len() as u32;
        let order = match picks {
            [first, .., last] if last.row - first.row < count => {
                let are_all = followed.is_in_order && last.at - first.at < count;
                if are_all {
                    Order::Even
                } else {
                    Order::RowsEven
                }
            }
            _ => Order::Apart,
        };
        Picked {
            picks,
            stride,
            order,
        }
    }
}

/// The values of one member.
struct MemberValues<'v, 'a> {
    followed: &'v Followed<'a>,
    /// Of the member among its record's value spans.
    place: u32,
    /// How many value spans each of the records has.
    stride: usize,
    picks: &'v [Pick],
    order: Order,
    /// The first of all who want the values: what is counted once is counted now.
    is_first: bool,
}

impl MemberValues<'_, '_> {
    fn column(&self, rows: &mut Rows<'_>, place: ColumnId) {
        let column = rows.column(place);
        match column.ty() {
            Type::Open | Type::Text if !column.is_sparse() => self.texts(rows, place),
            Type::Float64 | Type::Int64 => self.numbers(rows, place),
            _ => {
                for pick in self.picks {
                    self.other(rows, pick, self.value_span(pick), place);
                }
            }
        }
    }

    /// A column of text: quickly up to a value that is uncommon, then that one, and on.
    fn texts(&self, rows: &mut Rows<'_>, place: ColumnId) {
        let end = self.picks.last().map_or(0, |pick| pick.row as usize + 1);
        let mut from = 0;
        while from < self.picks.len() {
            let slots = rows
                .column(place)
                .text_slots(end)
                .expect("a column of text");
            from = self.common_texts(from, slots);
            // Where one has escapes the next one is likely to have some.
            while let Some(pick) = self.picks.get(from) {
                let value_span = self.value_span(pick);
                self.other(rows, pick, value_span, place);
                from += 1;
                if !value_span.is_escaped() {
                    break;
                }
            }
        }
    }

    /// Sets values of a column of text from one record on, up to one that is uncommon; gives its number, or how many records
    /// there are.
    fn common_texts(&self, from: usize, (views, states): (&mut StringViews, &mut [u8])) -> usize {
        let picks = &self.picks[from..];
        let Some(text) = self.followed.record_group.valid_text() else {
            let set = |pick: &&Pick| {
                let text = self.followed.record_group.valid_record(pick.at as usize);
                set_text(&text, self.value_span(pick), pick.row, views, states)
            };
            return from + picks.iter().take_while(set).count();
        };
        let Some(first) = picks.first() else {
            return from;
        };
        let value_spans = self.followed.value_spans.get(self.place as usize..);
        let value_spans = value_spans.unwrap_or_default();
        if self.order == Order::Apart {
            return from + set_scattered(&text, value_spans, picks, views, states);
        }
        let row = first.row as usize;
        let slots = views.slots(row, picks.len());
        let states = &mut states[row..row + picks.len()];
        if self.order == Order::Even {
            let value_spans = value_spans.get(first.first as usize..).unwrap_or_default();
            let value_spans = value_spans
                .chunks(self.stride)
                .map(|of_record| of_record[0]);
            return from + set_rows(&text, value_spans, slots, states);
        }
        let value_spans = picks
            .iter()
            .map_while(|pick| value_spans.get(pick.first as usize).copied());
        from + set_rows(&text, value_spans, slots, states)
    }

    /// A column of numbers: quickly up to one that is uncommon, then that one, and on.
    fn numbers(&self, rows: &mut Rows<'_>, place: ColumnId) {
        let end = self.picks.last().map_or(0, |pick| pick.row as usize + 1);
        let mut from = 0;
        while from < self.picks.len() {
            let column = rows.column(place);
            from += if let Some(slots) = column.integer_slots(end) {
                self.common_numbers(from, slots, |kind, block, len| {
                    (kind == Kind::Integer).then(|| integer(block, len))?
                })
            } else if let Some(slots) = column.float_slots(end) {
                self.common_numbers(from, slots, |kind, block, len| match kind {
                    Kind::Float => number::decimal(block, len),
                    // Up to 15 digits an integer is a float exactly.
                    _ => integer(block, len).map(|value| value as f64),
                })
            } else {
                0
            };
            if let Some(pick) = self.picks.get(from) {
                self.other(rows, pick, self.value_span(pick), place);
                from += 1;
            }
        }
    }

    /// Sets values of a column of numbers from one record on, up to one that is not short and plain; says how many it set.
    #[inline(always)]
    fn common_numbers<T>(
        &self,
        from: usize,
        (values, states): (&mut [T], &mut [u8]),
        read: impl Fn(Kind, &[u8; 16], usize) -> Option<T>,
    ) -> usize {
        let set = |pick: &&Pick| {
            let value_span = self.value_span(pick);
            let (kind, len) = (value_span.kind(), value_span.len());
            if !matches!(kind, Kind::Integer | Kind::Float) || len > number::BYTES_MAX {
                return false;
            }
            let block = self.followed.record_group.block(value_span.start());
            let value = block.and_then(|block| read(kind, block, len));
            let row = pick.row as usize;
            match (value, values.get_mut(row), states.get_mut(row)) {
                (Some(value), Some(slot), Some(state)) => {
                    (*slot, *state) = (value, value_span.state());
                    true
                }
                _ => false,
            }
        };
        self.picks[from..].iter().take_while(set).count()
    }

    /// What stands at the end of a path inside the values.
    fn path(&self, rows: &mut Rows<'_>, column: usize, path: &[json::Step]) {
        for pick in self.picks {
            let value_span = self.value_span(pick);
            let text = self.str(pick, value_span.start(), value_span.len());
            if !matches!(value_span.kind(), Kind::Object | Kind::Array) {
                let is_bad = self.is_first
                    && value_span.is_escaped()
                    && rows.unescape(RawText::new(text)).is_none();
                rows.stats.bad_values += u64::from(is_bad);
                continue;
            }
            let outer = json::Value {
                kind: value_span.kind(),
                text,
                escaped: false,
            };
            let Some(inner) = json::get_path(outer, path) else {
                continue;
            };
            let start =
                value_span.start() + (inner.text.as_ptr() as usize - outer.text.as_ptr() as usize);
            let end = start + inner.text.len();
            let inner = ValueSpan::new(inner.kind, inner.escaped, start as u32, end as u32);
            // Another string than the member's value, whatever reads that.
            self.value(rows, pick, inner, ColumnId::Column(column), true);
        }
    }

    /// One value for a column of any type.
    fn other(&self, rows: &mut Rows<'_>, pick: &Pick, value_span: ValueSpan, place: ColumnId) {
        self.value(rows, pick, value_span, place, self.is_first);
    }

    /// The same; it is counted only if it `is_first`.
    fn value(
        &self,
        rows: &mut Rows<'_>,
        pick: &Pick,
        value_span: ValueSpan,
        place: ColumnId,
        is_first: bool,
    ) {
        let (row, text) = (
            pick.row as usize,
            self.str(pick, value_span.start(), value_span.len()),
        );
        if value_span.is_escaped() {
            let behind = &self.followed.record_group.bytes()[value_span.start()..];
            if !rows.set_escaped(place, row, RawText::in_buffer(text, behind), is_first) {
                rows.stats.bad_values += u64::from(is_first);
            }
            return;
        }
        let (start, end) = (value_span.start(), value_span.start() + value_span.len());
        let cell = Cell {
            kind: value_span.kind(),
            text,
            view: self
                .followed
                .record_group
                .view(pick.at as usize, start, end),
        };
        let offset_s = rows.plan.offset_s;
        if !rows.column(place).set(row, &cell, offset_s) {
            rows.stats.type_mismatches += 1;
        }
    }

    fn str(&self, pick: &Pick, start: usize, len: usize) -> &str {
        let record_group = &self.followed.record_group;
        record_group.text(pick.at as usize, start, start + len)
    }

    /// The member's value in one record.
    #[inline(always)]
    fn value_span(&self, pick: &Pick) -> ValueSpan {
        self.followed.value_spans[pick.first as usize + self.place as usize]
    }
}

/// Sets the slots and states to the values of these value spans, up to one that is uncommon; says how many it set.
#[inline(never)]
fn set_rows<'s>(
    text: &ValidText<'_>,
    mut value_spans: impl Iterator<Item = ValueSpan>,
    slots: impl ExactSizeIterator<Item = ViewSlot<'s>>,
    states: &mut [u8],
) -> usize {
    let mut places = slots.zip(states);
    let count = places.len();
    while let Some(value_span) = value_spans.next()
        && let Some(view) = common_text(text, value_span)
        && let Some((slot, state)) = places.next()
    {
        slot.set(view);
        *state = value_span.state();
    }
    count - places.len()
}

/// Sets the rows of these records, up to one whose value is uncommon; says how many it set. The first value span of each counts.
#[inline(never)]
fn set_scattered(
    text: &ValidText<'_>,
    value_spans: &[ValueSpan],
    picks: &[Pick],
    views: &mut StringViews,
    states: &mut [u8],
) -> usize {
    let set = |pick: &&Pick| {
        let value_span = value_spans.get(pick.first as usize);
        value_span.is_some_and(|&value_span| set_text(text, value_span, pick.row, views, states))
    };
    picks.iter().take_while(set).count()
}

/// Sets a row, unless its value is uncommon.
#[inline(always)]
fn set_text(
    text: &ValidText<'_>,
    value_span: ValueSpan,
    row: u32,
    views: &mut StringViews,
    states: &mut [u8],
) -> bool {
    let view = common_text(text, value_span);
    if let Some(view) = view {
        views.set(row as usize, view);
        states[row as usize] = value_span.state();
    }
    view.is_some()
}

/// An integer that is not negative, of at most 15 digits.
#[inline(always)]
fn integer(block: &[u8; 16], len: usize) -> Option<i64> {
    let is_plain = block[0] != b'-' && len < number::BYTES_MAX;
    is_plain.then(|| number::digits(block, len) as i64)
}

/// The view of a text without escapes, unless it lies where a view takes more than a glance.
#[inline(always)]
fn common_text(text: &ValidText<'_>, value_span: ValueSpan) -> Option<StringView> {
    let view = text.view(value_span.start() as u32, value_span.len() as u32);
    view.filter(|_| !value_span.is_escaped())
}
