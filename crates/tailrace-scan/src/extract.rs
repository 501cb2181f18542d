//! Records to rows: by layout where it is known, else by a walk.
//!
//! Takes lots of indexed records, sets the rows of a batch. The records of a lot are sorted by their layouts first; of
//! each layout one wanted member after the other is then read for all of its records, so that one loop does one thing.
//! Never reads what is not wanted.

use std::sync::Arc;

use crate::config::{Config, Star};
use crate::even::Even;
use crate::gather::gather;
use crate::index::Outline;
use crate::keys::Keys;
use crate::layout::{Layout, Layouts};
use crate::overflow::Overflow;
use crate::plan::Plan;
use crate::records::{Records, TRUNCATED};
use crate::reserved::{self, Facts};
use crate::rows::{Row, Rows, Shape};
use crate::text::{Buffers, Lot};
use crate::walker;

/// Extracts the columns of one config.
#[derive(Debug)]
pub(crate) struct Extractor {
    plan: Arc<Plan>,
    keys: Keys,
    layouts: Layouts,
    /// By layout its records of the lot at hand.
    picks: Vec<Picks>,
    /// The layouts that have any.
    met: Vec<usize>,
    /// Members matter: a key is wanted.
    wants_members: bool,
    /// Memory for keys with escapes.
    key: Vec<u8>,
    overflow: Overflow,
    /// Records walked so far, to tell which key was met in which record.
    walked: u64,
}

/// A record of a lot, its first structural character, and the row it becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) at: u32,
    pub(crate) first: u32,
    pub(crate) row: u32,
}

/// Records of a lot that have one layout.
#[derive(Debug, Default)]
pub(crate) struct Picks {
    /// Those whose index is plain.
    pub(crate) plain: Vec<Pick>,
    /// The others.
    pub(crate) others: Vec<Pick>,
}

impl Picks {
    fn is_empty(&self) -> bool {
        self.plain.is_empty() && self.others.is_empty()
    }

    fn clear(&mut self) {
        self.plain.clear();
        self.others.clear();
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pick> {
        self.plain.iter().chain(&self.others)
    }
}

/// A batch that is being scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) records: Records<'a>,
    pub(crate) buffers: &'a Buffers,
}

/// Records of one buffer with their index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Indexed<'a> {
    pub(crate) lot: Lot<'a>,
    /// The number of the lot's first record in the batch.
    pub(crate) first: usize,
    pub(crate) outlines: &'a [Outline],
    pub(crate) shapes: &'a [Shape],
    pub(crate) structurals: &'a [u32],
}

impl<'a> Indexed<'a> {
    /// The structural characters of record `at` of the lot.
    #[inline(always)]
    pub(crate) fn structurals(&self, at: usize) -> &'a [u32] {
        let Outline { first, count, .. } = self.outlines[at];
        &self.structurals[first as usize..][..count as usize]
    }
}

impl Extractor {
    /// For this config.
    pub(crate) fn new(config: &Config) -> Extractor {
        let plan = Plan::new(config);
        let Star {
            except,
            columns_max,
        } = config.star.clone().unwrap_or_default();
        let wanted = plan
            .keys
            .iter()
            .map(|(key, targets)| (key.as_str(), targets.clone()));
        let columns_max = config.star.is_some().then_some(columns_max);
        let keys = Keys::new(wanted, &except, columns_max);
        Extractor {
            wants_members: !plan.keys.is_empty() || keys.wants_all(),
            plan: Arc::new(plan),
            keys,
            layouts: Layouts::new(),
            picks: Vec::new(),
            met: Vec::new(),
            key: Vec::new(),
            overflow: Overflow::default(),
            walked: 0,
        }
    }

    /// What the rows of a batch are made by.
    pub(crate) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// The keys met so far.
    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Starts a batch.
    pub(crate) fn start_batch(&mut self) {
        const KEPT: usize = 64 * 1024;
        self.layouts.start_batch();
        self.picks.truncate(self.layouts.len());
        self.key.clear();
        self.key.shrink_to(KEPT);
    }

    /// Sets the rows of some records of a lot.
    pub(crate) fn add(
        &mut self,
        batch: &Batch<'_>,
        indexed: &Indexed<'_>,
        picks: &[Pick],
        rows: &mut Rows<'_>,
    ) {
        for &pick in picks {
            let at = pick.at as usize;
            if batch.records.records[indexed.first + at].flags & TRUNCATED != 0 {
                rows.mark_truncated(pick.row as usize);
            }
            let structurals = indexed.structurals(at);
            if indexed.shapes[at] == Shape::Object && self.wants_members {
                let bytes = indexed.lot.bytes();
                if let Some(layout) = self.layouts.find(bytes, structurals, self.keys.wants_all()) {
                    self.pick(layout, pick, indexed.outlines[at].is_plain());
                    continue;
                }
                self.row(batch, indexed, pick, rows, true);
                self.layouts
                    .learn(bytes, structurals, &self.keys, self.plan.keys.len());
            } else {
                self.row(batch, indexed, pick, rows, false);
            }
        }
        while let Some(number) = self.met.pop() {
            let mut picks = std::mem::take(&mut self.picks[number]);
            self.add_layout(batch, indexed, number, &picks, rows);
            picks.clear();
            self.picks[number] = picks;
        }
    }

    #[inline(always)]
    fn pick(&mut self, layout: usize, pick: Pick, is_plain: bool) {
        if self.picks.len() <= layout {
            self.picks.resize_with(layout + 1, Default::default);
        }
        let picks = &mut self.picks[layout];
        if picks.is_empty() {
            self.met.push(layout);
        }
        let list = if is_plain {
            &mut picks.plain
        } else {
            &mut picks.others
        };
        list.push(pick);
    }

    /// One record by itself: walked, or no object, or nothing of it wanted but what the row is.
    fn row(
        &mut self,
        batch: &Batch<'_>,
        indexed: &Indexed<'_>,
        pick: Pick,
        rows: &mut Rows<'_>,
        is_walked: bool,
    ) {
        let at = pick.at as usize;
        let number = indexed.first + at;
        let text = batch.buffers.record(number);
        let shape = indexed.shapes[at];
        let slot = pick.row as usize;
        let mut row = Row::new(rows, slot, text, &mut self.overflow);
        if is_walked {
            self.walked += 1;
            walker::walk(
                &text,
                indexed.structurals(at),
                self.walked,
                &mut self.keys,
                &mut self.key,
                &mut row,
            );
        }
        reserved::set(&mut row, &facts(batch, number, shape));
        if shape == Shape::Object {
            rows.finish_object(slot, &mut self.overflow);
        } else {
            rows.keep_raw(slot, &text, shape);
        }
    }

    /// Records that all have one layout.
    fn add_layout(
        &mut self,
        batch: &Batch<'_>,
        indexed: &Indexed<'_>,
        number: usize,
        picks: &Picks,
        rows: &mut Rows<'_>,
    ) {
        let layout = self.layouts.get(number);
        if self.plan.reserved.is_empty() {
            let even = Even::new(indexed, &picks.plain);
            for member in &layout.wanted {
                gather(indexed, member, picks, even.as_ref(), rows);
            }
            return;
        }
        for &pick in picks.iter() {
            let number = indexed.first + pick.at as usize;
            let text = batch.buffers.record(number);
            let mut row = Row::new(rows, pick.row as usize, text, &mut self.overflow);
            take_members(&mut row, layout, indexed.structurals(pick.at as usize));
            reserved::set(&mut row, &facts(batch, number, Shape::Object));
        }
    }
}

/// One record's wanted members.
fn take_members(row: &mut Row<'_, '_>, layout: &Layout, structurals: &[u32]) {
    let base = row.record.base();
    for member in &layout.wanted {
        let start = structurals[member.place as usize] as usize + member.skip as usize - base;
        let end = structurals[member.place as usize + 2] as usize - base;
        row.take(member.targets.clone(), member.star, (start, end));
    }
}

fn facts(batch: &Batch<'_>, number: usize, shape: Shape) -> Facts {
    let records = &batch.records;
    Facts {
        shape,
        truncated: records.records[number].flags & TRUNCATED != 0,
        time_ns: records.times.get(number).copied().unwrap_or(0),
        stream: records.streams.get(number).copied().unwrap_or(0),
        observed_ns: records.observed_ns,
    }
}
