//! The records of a record group, grouped by the template that following found for them.
//!
//! Of each template it is worked out once where the values of its members go. Never reads a value.

use std::ops::Range;

use crate::follow::{Found, ValueSpan};
use crate::keys::{Keys, Star};
use crate::plan::{Plan, Target};
use crate::template::{Template, Templates};
use crate::text::RecordGroup;

/// The records of a record group by template. Reused from record group to record group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// By number of the template.
    groups: Vec<Group>,
    /// The templates that have records.
    met: Vec<usize>,
}

/// Records of one record group that all have one template.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) picks: Vec<Pick>,
    /// What becomes of the template's members, once that is known of all of them. It stays known from record group to record group.
    pub(crate) members: Option<Members>,
}

/// A record of a record group, its first value span, and the row it becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pick {
    pub(crate) at: u32,
    pub(crate) first: u32,
    pub(crate) row: u32,
}

/// The members of a template: how many value spans a record has, and the members that are wanted.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub(crate) count: usize,
    pub(crate) wanted: Vec<Member>,
}

/// One wanted member of a template.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Its place among the record's value spans.
    pub(crate) place: u32,
    /// The targets of its value, in the plan's list.
    pub(crate) targets: Range<usize>,
    pub(crate) star: Star,
    /// Some of the targets are lists of keys that feed reserved columns.
    pub(crate) is_candidate: bool,
    /// Others are columns, of `SELECT *` too.
    pub(crate) has_columns: bool,
}

/// Records of one buffer, and what following them found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Followed<'a> {
    pub(crate) record_group: RecordGroup<'a>,
    pub(crate) found: &'a [Found],
    pub(crate) value_spans: &'a [ValueSpan],
    /// Of two records the later one has the later value spans.
    pub(crate) is_in_order: bool,
}

impl Groups {
    /// Forgets all templates: their numbers are given anew.
    pub(crate) fn forget_templates(&mut self) {
        self.groups = Vec::new();
    }

    /// Makes a group for each of these templates.
    pub(crate) fn reserve(&mut self, templates: &Templates) {
        self.groups.resize_with(templates.len(), Group::default);
    }

    /// The records of this template, one of which is to be added; `None` if there is no such template.
    #[inline]
    pub(crate) fn of(&mut self, template: u32) -> Option<&mut Vec<Pick>> {
        let group = self.groups.get_mut(template as usize)?;
        if group.picks.is_empty() {
            self.met.push(template as usize);
        }
        Some(&mut group.picks)
    }

    /// Takes a group that has records, by number of its template. [`Groups::put_back`] keeps its memory.
    pub(crate) fn take(
        &mut self,
        templates: &Templates,
        plan: &Plan,
        keys: &mut Keys,
    ) -> Option<(usize, Group)> {
        let number = self.met.pop()?;
        let mut group = std::mem::take(&mut self.groups[number]);
        if group.members.is_none() {
            group.members = resolve(plan, keys, templates.get(number));
        }
        Some((number, group))
    }

    /// Keeps what is known of a template, and the group's memory, for the next record group.
    pub(crate) fn put_back(&mut self, number: usize, mut group: Group) {
        group.picks.clear();
        self.groups[number] = group;
    }
}

/// What becomes of a template's members; `None` if a key of it was not met yet, or has no column of its own.
fn resolve(plan: &Plan, keys: &mut Keys, template: &Template) -> Option<Members> {
    let member = |&(ref name, place): &(Box<str>, u32)| {
        let Some(id) = keys.find(name) else {
            keys.note_unwanted(name);
            return (!keys.wants_all()).then_some(None);
        };
        let (targets, star) = keys.wanted(id);
        if let Star::Unmet | Star::Overflow = star {
            return None;
        }
        let of_key = &plan.targets[targets.clone()];
        let is_candidate = of_key.iter().any(|it| matches!(it, Target::Candidate(..)));
        let is_column = |target: &Target| matches!(target, Target::Column(_) | Target::Path(..));
        let has_columns = star != Star::Out || of_key.iter().any(is_column);
        Some((is_candidate || has_columns).then_some(Member {
            place,
            targets,
            star,
            is_candidate,
            has_columns,
        }))
    };
    let members: Option<Vec<_>> = template.members.iter().map(member).collect();
    Some(Members {
        count: template.value_spans(),
        wanted: members?.into_iter().flatten().collect(),
    })
}
