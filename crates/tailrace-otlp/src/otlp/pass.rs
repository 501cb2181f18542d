//! One pass over the rows of a batch: decides for each row whether its draft goes into the request, or it is encoded on its
//! own, and where requests and groups end.

use super::drafts::{Drafts, Inputs};
use super::record::{Beside, Row, drafted_len};
use super::sources::Sources;
use super::tails::{Tails, combination};
use super::{CARRIED_BYTES_KEPT, CLOSING_MAX, OtlpEncoder};
use crate::lift::{Batch, Lifts};
use crate::part::Request;
use crate::plan::Prefixes;

/// What is encoded.
pub(super) struct Pass<'p> {
    pub(super) batch: Batch<'p>,
    pub(super) prefixes: &'p Prefixes,
    pub(super) sources: Sources<'p>,
    pub(super) lifts: &'p mut Lifts,
    /// Of the first parts.
    pub(super) drafts: &'p mut [Drafts],
    pub(super) tails: &'p mut Tails,
}

impl OtlpEncoder {
    /// Encodes a row of a part, and perhaps some after it if `is_only` part. Gives how many.
    pub(super) fn rows(
        &mut self,
        pass: &mut Pass<'_>,
        [part, row, record]: [usize; 3],
        is_only: bool,
        emit: &mut dyn FnMut(&Request),
    ) -> usize {
        let batch = pass.batch;
        let changes = pass.sources.changes;
        if pass.sources.advance(record, batch.plans, &self.config) {
            self.close_group();
        }
        if pass.sources.changes != changes {
            pass.tails.clear();
        }
        if self.group.is_none() {
            self.open_group(pass.sources.facts());
        }
        let is_new = pass
            .lifts
            .advance(&batch, part, row, &mut self.values.stats);
        let may_clash = pass.sources.shadowing[part];
        if is_new && let Some(drafts) = pass.drafts.get_mut(part) {
            let inputs = Inputs {
                plan: &batch.plans[part],
                lift: pass.lifts.of(part),
                envelope: batch.envelope,
                prefixes: pass.prefixes,
            };
            drafts.fill(&inputs, may_clash, &mut self.values);
        }
        let count = match is_only {
            true => usize::MAX,
            false => 1,
        };
        match self.drafted_rows(pass, part, row, count, emit) {
            0 => {
                self.row(pass, [part, row, record], emit);
                1
            }
            count => count,
        }
    }

    /// Appends the drafts of up to `count` rows, as far as there are any for the next rows. Gives how many.
    fn drafted_rows(
        &mut self,
        pass: &mut Pass<'_>,
        part: usize,
        row: usize,
        count: usize,
        emit: &mut dyn FnMut(&Request),
    ) -> usize {
        let Some(drafts) = pass.drafts.get_mut(part) else {
            return 0;
        };
        if pass.sources.shadowing[part] {
            return 0;
        }
        let (envelope, of_part) = (pass.batch.envelope, &pass.batch.parts[part]);
        let (lift, facts) = (pass.lifts.of(part), pass.sources.facts());
        let first = lift.block.place(row);
        let end = first + count.min(drafts.run(first));
        let observed_ns = u64::try_from(envelope.observed_ns).unwrap_or(0);
        let has_rare = lift.has_rare();
        let bytes_max = self.config.request_bytes_max.saturating_sub(CLOSING_MAX);
        let (mut at, mut extras) = (first, 0);
        while at < end {
            let record = lift.block.record(at);
            if record >= pass.sources.until {
                break;
            }
            if self.has_extras {
                let row = lift.block.row(at);
                extras = combination(envelope, of_part, row, record, self.config.iostream);
            }
            let tail = pass.tails.of(facts, &self.extras, extras);
            let rare = has_rare.then(|| lift.rare_at(at)).flatten();
            let draft = drafts.finish(at, tail, rare);
            let is_full = self.values.out.len() + drafted_len(draft.len) > bytes_max;
            if is_full && !self.request.ends.is_empty() {
                self.close_group();
                self.emit(emit);
                self.open_group(facts);
            }
            self.values.drafted(&draft, observed_ns);
            // Requests and records are far below 4 GiB.
            self.request.ends.push(self.values.out.len() as u32);
            self.request.records.push(record as u32);
            at += 1;
        }
        self.values.stats.log_records += (at - first) as u64;
        at - first
    }

    /// Encodes a row on its own.
    #[inline(never)]
    fn row(
        &mut self,
        pass: &Pass<'_>,
        [part, row, record]: [usize; 3],
        emit: &mut dyn FnMut(&Request),
    ) {
        let (batch, facts) = (&pass.batch, pass.sources.facts());
        let (start, first_mark) = (self.values.out.len(), self.values.marks.len());
        let of_row = Row {
            plan: &batch.plans[part],
            lift: pass.lifts.of(part),
            row,
            record,
            has_failed: batch.parts[part].has_failed(row),
        };
        let beside = Beside {
            envelope: batch.envelope,
            facts,
            may_clash: pass.sources.shadowing[part],
            prefixes: pass.prefixes,
        };
        self.log_record(&of_row, &beside);
        if self.values.out.len() + CLOSING_MAX > self.config.request_bytes_max
            && !self.request.ends.is_empty()
        {
            self.carried.clear();
            self.carried.extend_from_slice(self.values.out.from(start));
            self.values.out.truncate(start);
            let marks = self.values.marks.split_off(first_mark);
            self.close_group();
            self.emit(emit);
            self.open_group(facts);
            let moved = self.values.out.len() as isize - start as isize;
            self.values.marks.append(marks, moved);
            self.values.out.bytes(&self.carried);
            self.carried.clear();
            self.carried.shrink_to(CARRIED_BYTES_KEPT);
        }
        self.request.ends.push(self.values.out.len() as u32);
        self.request.records.push(record as u32);
    }
}
