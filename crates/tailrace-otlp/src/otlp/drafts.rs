//! LogRecords in the making: what they hold from the time to the last column, written column by column.
//!
//! For each row of a block there is memory of fixed size. A column's values are written to the rows' memories one after
//! the other, so that what the column has in common is looked up once for all of them, and the length of a record is known
//! before it goes into the request. What is short is written in place; anything else is written by the general functions
//! and copied. A row that does not fit, or whose record needs more care, has no draft: it is encoded by `record.rs`, with the
//! same bytes as result.

mod columns;

use arrow::array::Array;
use tailrace_zstd::{Column, Mark};

use super::record::{SEVERITY_NUMBER, TIME};
use crate::any::Values;
use crate::field::Field;
use crate::lift::{BLOCK_ROWS, Gathered, Lift, Rare, RowsOf};
use crate::part::Envelope;
use crate::plan::{PartPlan, Prefixes};
use crate::wire::{ROOM, fixed64_tag, varint_tag};

/// The drafts of a block's rows.
pub(super) struct Drafts {
    drafts: Box<[Draft; BLOCK_ROWS]>,
    lens: [Len; BLOCK_ROWS],
    /// The rows that have one.
    whole: u64,
    /// So many blocks pass without drafts, because most rows of one did not fit.
    pause: u32,
    gathered: Gathered,
}

/// The length of a draft and the number of its marks.
#[derive(Clone, Copy, Default)]
struct Len {
    bytes: u32,
    marks: u32,
}

/// Memory for one draft. Drafts of one block are an odd number of cache lines apart, or they would share few places of
/// the cache.
#[derive(Clone, Copy)]
struct Draft {
    bytes: [u8; DRAFT_MAX + ROOM],
    /// Counted from the draft's first byte.
    marks: [Mark; MARKS],
}

/// No draft is longer.
const DRAFT_MAX: usize = 1856;
/// Marks of a draft and what follows it.
const MARKS: usize = 128;
/// Marks of what follows a draft.
const BEHIND_MARKS: usize = 4;
/// Blocks without drafts after one of whose rows most did not fit.
const PAUSE: u32 = 15;

const _: () = assert!(size_of::<Draft>() / 64 % 2 == 1);

/// What drafts are made from.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'i> {
    pub(super) plan: &'i PartPlan<'i>,
    pub(super) lift: &'i Lift,
    pub(super) envelope: &'i Envelope<'i>,
    pub(super) prefixes: &'i Prefixes,
}

/// A draft, what follows it in its record, and the marks of all of it, which count from the draft's first byte.
pub(super) struct Finished<'d> {
    /// The draft's memory, which is longer than any draft by more than a step of a copy.
    pub(super) memory: &'d [u8; DRAFT_MAX + ROOM],
    /// The length of the draft in it.
    pub(super) draft: usize,
    pub(super) tail: &'d [u8],
    pub(super) rare: Option<&'d Rare>,
    /// The length of the record's content.
    pub(super) len: usize,
    pub(super) marks: &'d [Mark],
}

impl std::fmt::Debug for Drafts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Drafts").finish_non_exhaustive()
    }
}

impl Drafts {
    pub(super) fn new() -> Drafts {
        let draft = Draft {
            bytes: [0; DRAFT_MAX + ROOM],
            marks: [Mark::default(); MARKS],
        };
        let drafts = vec![draft; BLOCK_ROWS].into_boxed_slice().try_into();
        Drafts {
            drafts: drafts.unwrap_or_else(|_| unreachable!("as many as there are rows")),
            lens: [Len::default(); BLOCK_ROWS],
            whole: 0,
            pause: 0,
            gathered: Gathered::default(),
        }
    }

    /// How many rows from this one on have drafts.
    #[inline]
    pub(super) fn run(&self, at: usize) -> usize {
        (self.whole >> at).trailing_ones() as usize
    }

    /// The draft of a row that has one, followed by its tail and the fields behind that.
    #[inline(always)]
    pub(super) fn finish<'d>(
        &'d mut self,
        at: usize,
        tail: &'d [u8],
        rare: Option<&'d Rare>,
    ) -> Finished<'d> {
        let (draft, len) = (&mut self.drafts[at], self.lens[at]);
        let (bytes, mut marks) = (len.bytes as usize, len.marks as usize);
        let mut end = bytes + tail.len();
        if let Some(rare) = rare {
            let rest = &mut draft.marks[marks..];
            end += if rare.flags > 0 { 5 } else { 0 };
            if rare.trace_id.is_some() {
                end += 18;
                rest[0] = Mark::new(Column::TRACE_ID, end, 16);
                marks += 1;
            }
            if rare.span_id.is_some() {
                end += 10;
                draft.marks[marks] = Mark::new(Column::SPAN_ID, end, 8);
                marks += 1;
            }
        }
        end += 9;
        let all = &mut draft.marks[..marks + 2];
        all[marks] = Mark::new(Column::CONSTANT, end, 8);
        all[marks + 1] = Mark::new(Column::END, end, 0);
        Finished {
            memory: &draft.bytes,
            draft: bytes,
            tail,
            rare,
            len: end,
            marks: all,
        }
    }

    /// Drafts the rows of a block.
    #[inline(never)]
    pub(super) fn fill(&mut self, inputs: &Inputs<'_>, may_clash: bool, values: &mut Values) {
        self.whole = 0;
        if may_clash {
            return;
        }
        if self.pause > 0 {
            self.pause -= 1;
            return;
        }
        let all = usual_rows(inputs);
        self.whole = all;
        self.times_and_numbers(inputs.lift);
        self.severities(inputs, values);
        self.bodies(inputs, values);
        let mut marks = 3;
        for (at, column) in inputs.plan.columns.iter().enumerate() {
            let mut rows = inputs.lift.attributes[at] & self.whole;
            if rows == 0 {
                continue;
            }
            marks += 1;
            if marks > MARKS - BEHIND_MARKS {
                self.make_room_for_marks();
                rows &= self.whole;
            }
            match &column.simple {
                Some(simple) => self.simple_column(rows, inputs, simple, column.mark, values),
                None => self.other_column(rows, inputs, at, values),
            }
        }
        if self.whole.count_ones() < all.count_ones() / 2 {
            self.pause = PAUSE;
        }
    }

    fn times_and_numbers(&mut self, lift: &Lift) {
        for at in RowsOf(self.whole) {
            let draft = &mut self.drafts[at];
            let (time_ns, number) = (lift.times_ns[at], lift.severity_numbers[at]);
            let start = if time_ns > 0 { 9 } else { 0 };
            draft.bytes[0] = fixed64_tag(TIME);
            draft.bytes[1..9].copy_from_slice(&time_ns.to_le_bytes());
            draft.marks[0] = Mark::new(Column::TIME, 9, 8);
            draft.bytes[start..start + 2].copy_from_slice(&[varint_tag(SEVERITY_NUMBER), number]);
            self.lens[at] = Len {
                bytes: start as u32 + if number > 0 { 2 } else { 0 },
                marks: u32::from(time_ns > 0),
            };
        }
    }

    /// Rows with as many marks as there may be have no draft.
    #[inline(never)]
    fn make_room_for_marks(&mut self) {
        for at in RowsOf(self.whole) {
            if self.lens[at].marks as usize >= MARKS - BEHIND_MARKS {
                self.whole &= !(1 << at);
            }
        }
    }
}

/// The rows of whose records nothing is unusual: no members beyond the columns, no raw text beside a body, no event's name.
fn usual_rows(inputs: &Inputs<'_>) -> u64 {
    let (lift, plan) = (inputs.lift, inputs.plan);
    let record = |at: usize| lift.block.record(at);
    let mut rows = lift.block.all();
    if let Some(overflow) = plan.overflow {
        rows &= !lift.block.filter(rows, |at| overflow.is_valid(record(at)));
    }
    if inputs.envelope.malformed.is_some() {
        let with_body = lift.bodies.iter().fold(0, |all, (_, rows)| all | rows);
        let is_malformed = |at| inputs.envelope.is_malformed(record(at));
        rows &= !lift.block.filter(rows & with_body, is_malformed);
    }
    if !plan.candidates[Field::EventName as usize].is_empty() {
        let has_name = |at| {
            lift.rare_at(at)
                .is_some_and(|rare| rare.event_name.is_some())
        };
        rows &= !lift.block.filter(rows, has_name);
    }
    rows
}
