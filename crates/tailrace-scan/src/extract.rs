//! Records to rows: by layout where it could be followed, else by a walk.
//!
//! Takes lots of records, sets the rows of a batch. The records of a lot are sorted by their layouts first; of each
//! layout one wanted member after the other is then read for all of its records, so that one loop does one thing.
//! Never reads what is not wanted.

use std::ops::Range;
use std::sync::Arc;

use tailrace_model::json;

use crate::config::{self, Config};
use crate::follow::{Found, Mark};
use crate::gather::{Picked, gather};
use crate::keys::{Keys, Star};
use crate::layout::{Layout, Layouts};
use crate::overflow::Overflow;
use crate::plan::{Plan, Target};
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
    /// By layout its records of the lot at hand.
    picks: Vec<Vec<Pick>>,
    /// The layouts that have any.
    met: Vec<usize>,
    /// By layout what becomes of its members, once it is known of all of them.
    members: Vec<Option<Members>>,
    /// Members matter: a key is wanted.
    wants_members: bool,
    /// Memory for keys with escapes.
    key: Vec<u8>,
    overflow: Overflow,
    /// Records walked so far, to tell which key was met in which record.
    walked: u64,
}

/// A record of a lot, its first mark, and the row it becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) at: u32,
    pub(crate) first: u32,
    pub(crate) row: u32,
}

/// The members of a layout: how many marks a record has, and the members that are wanted.
#[derive(Clone, Debug)]
struct Members {
    count: usize,
    wanted: Vec<Member>,
}

/// One wanted member of a layout.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its place among the record's marks.
    pub(crate) place: u32,
    /// The targets of its value, in the plan's list.
    pub(crate) targets: Range<usize>,
    pub(crate) star: Star,
}

/// A batch that is being scanned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch<'a> {
    pub(crate) records: Records<'a>,
    pub(crate) buffers: &'a Buffers,
}

/// Records of one buffer, and what following them found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Followed<'a> {
    pub(crate) lot: Lot<'a>,
    pub(crate) found: &'a [Found],
    pub(crate) marks: &'a [Mark],
    /// Of two records the later one has the later marks.
    pub(crate) is_in_order: bool,
}

/// A record that was not followed: what it is, and the characters that part its members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlined<'a> {
    pub(crate) shape: Shape,
    pub(crate) structurals: &'a [u32],
}

impl Extractor {
    /// For this config; if `whole` is given, that is the extractor of all columns, and this one of those that a condition
    /// reads.
    pub(crate) fn new(config: &Config, whole: Option<&Extractor>) -> Extractor {
        let plan = Plan::new(config, whole.map(|whole| &*whole.plan));
        let config::Star {
            except,
            kept,
            columns_max,
            ..
        } = config.star.clone().unwrap_or_default();
        let wanted = plan
            .keys
            .iter()
            .map(|(key, targets)| (key.as_str(), targets.clone()));
        let columns_max = config.star.is_some().then_some(columns_max);
        let keys = Keys::new(wanted, &except, &kept, columns_max);
        Extractor {
            wants_members: !plan.keys.is_empty() || keys.wants_all(),
            plan: Arc::new(plan),
            keys,
            picks: Vec::new(),
            met: Vec::new(),
            members: Vec::new(),
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
        self.key.clear();
        self.key.shrink_to(KEPT);
    }

    /// Forgets all layouts: their numbers are given anew.
    pub(crate) fn forget_layouts(&mut self) {
        self.picks = Vec::new();
        self.members = Vec::new();
    }

    /// Sets the rows of those records of a lot whose layout was found; the others join `rest`, in order.
    pub(crate) fn add(
        &mut self,
        batch: &Batch<'_>,
        followed: &Followed<'_>,
        layouts: &Layouts,
        picks: impl Iterator<Item = (u32, u32)>,
        rows: &mut Rows<'_>,
        rest: &mut Vec<Pick>,
    ) {
        self.picks.resize_with(layouts.len(), Vec::new);
        for (at, row) in picks {
            if batch.records.records[followed.lot.first() + at as usize].flags & TRUNCATED != 0 {
                rows.mark_truncated(row as usize);
            }
            let Found { layout, first } = followed.found[at as usize];
            let pick = Pick { at, first, row };
            match self.picks.get_mut(layout as usize) {
                Some(picks) => {
                    if picks.is_empty() {
                        self.met.push(layout as usize);
                    }
                    picks.push(pick);
                }
                None => rest.push(pick),
            }
        }
        let direct = rest.len();
        while let Some(number) = self.met.pop() {
            let mut picks = std::mem::take(&mut self.picks[number]);
            if self.resolve(layouts, number) {
                self.add_layout(batch, followed, number, &picks, rows);
            } else {
                rest.extend_from_slice(&picks);
            }
            picks.clear();
            self.picks[number] = picks;
        }
        if rest.len() > direct {
            rest.sort_unstable_by_key(|pick| pick.at);
        }
    }

    /// Whether it is known what becomes of each member of a layout.
    fn resolve(&mut self, layouts: &Layouts, number: usize) -> bool {
        self.members.resize(layouts.len(), None);
        let members = &mut self.members[number];
        if members.is_none() {
            *members = resolve(&self.plan, &self.keys, layouts.get(number));
        }
        members.is_some()
    }

    /// Sets the row of one record by itself: it is walked, or no object.
    pub(crate) fn add_outlined(
        &mut self,
        batch: &Batch<'_>,
        outlined: &Outlined<'_>,
        number: usize,
        slot: usize,
        rows: &mut Rows<'_>,
    ) {
        let text = batch.buffers.record(number);
        let shape = outlined.shape;
        let mut row = Row::new(rows, slot, text, &mut self.overflow);
        if shape == Shape::Object && self.wants_members {
            self.walked += 1;
            walker::walk(
                &text,
                outlined.structurals,
                self.walked,
                &mut self.keys,
                &mut self.key,
                &mut row,
            );
        }
        // A walk over all members has judged all.
        let is_bad = row.is_bad
            || self.plan.judges_all
                && !self.keys.wants_all()
                && json::parse_value(text.text()).is_none();
        let is_object = shape == Shape::Object;
        let is_malformed = shape == Shape::Malformed || is_object && is_bad;
        reserved::set(&mut row, &facts(batch, number, shape, is_malformed));
        if is_object {
            rows.finish_object(slot, &mut self.overflow);
        }
        if is_malformed || !is_object {
            rows.keep_raw(slot, &text, is_malformed);
        }
    }

    /// Records that all have one layout, which is resolved.
    fn add_layout(
        &mut self,
        batch: &Batch<'_>,
        followed: &Followed<'_>,
        number: usize,
        picks: &[Pick],
        rows: &mut Rows<'_>,
    ) {
        let Some(members) = &self.members[number] else {
            return;
        };
        if self.plan.reserved.is_empty() {
            let picked = Picked::new(followed, picks, members.count);
            for member in &members.wanted {
                gather(followed, member, &picked, rows);
            }
            return;
        }
        for pick in picks {
            let number = followed.lot.first() + pick.at as usize;
            let text = batch.buffers.record(number);
            let mut row = Row::new(rows, pick.row as usize, text, &mut self.overflow);
            for member in &members.wanted {
                let mark = followed.marks[pick.first as usize + member.place as usize];
                row.take_mark(member.targets.clone(), member.star, mark);
            }
            // What could be followed is JSON.
            reserved::set(&mut row, &facts(batch, number, Shape::Object, false));
        }
    }
}

/// What becomes of a layout's members; `None` if a key of it was not met yet, or has no column of its own.
fn resolve(plan: &Plan, keys: &Keys, layout: &Layout) -> Option<Members> {
    let member = |&(ref name, place): &(Box<str>, u32)| {
        let Some(id) = keys.find(name) else {
            return (!keys.wants_all()).then_some(None);
        };
        let (targets, star) = keys.wanted(id);
        if let Star::Unmet | Star::Overflow = star {
            return None;
        }
        let is_target = |target: &Target| !matches!(target, Target::Judged);
        let has_target = plan.targets[targets.clone()].iter().any(is_target);
        Some((has_target || star != Star::Out).then_some(Member {
            place,
            targets,
            star,
        }))
    };
    let members: Option<Vec<_>> = layout.members.iter().map(member).collect();
    Some(Members {
        count: layout.marks(),
        wanted: members?.into_iter().flatten().collect(),
    })
}

fn facts(batch: &Batch<'_>, number: usize, shape: Shape, is_malformed: bool) -> Facts {
    let records = &batch.records;
    Facts {
        shape,
        is_malformed,
        truncated: records.records[number].flags & TRUNCATED != 0,
        time_ns: records.times.get(number).copied().unwrap_or(0),
        stream: records.streams.get(number).copied().unwrap_or(0),
        observed_ns: records.observed_ns,
    }
}
