//! Finds the source of each record, and where another resource begins, from the envelope's runs. Records are visited in
//! ascending order. Values of columns are never read.

use super::extras::IOSTREAM;
use super::{MALFORMED, ORIGINAL, OtlpEncoding, RECORD_UID, TRANSFORM_FAILED, TRUNCATED};
use crate::part::Run;
use crate::plan::PartPlan;
use crate::value::SourceFacts;

/// Which source the current record has.
pub(super) struct Sources<'a> {
    runs: &'a [Run<'a>],
    /// The facts of records that no run covers.
    none: &'a SourceFacts,
    current: Option<&'a SourceFacts>,
    /// The first run that may hold the next record.
    at: usize,
    /// The first record that the current source may not have.
    pub(super) until: usize,
    /// Counts the changes of the source.
    pub(super) changes: usize,
    /// By part: whether a column has the name of an attribute that we or the current source add.
    pub(super) shadowing: Vec<bool>,
}

impl<'a> Sources<'a> {
    /// Before the first of ascending records.
    pub(super) fn new(runs: &'a [Run<'a>], none: &'a SourceFacts) -> Sources<'a> {
        Sources {
            runs,
            none,
            current: None,
            at: 0,
            until: 0,
            changes: 0,
            shadowing: Vec::new(),
        }
    }

    pub(super) fn facts(&self) -> &'a SourceFacts {
        self.current.unwrap_or(self.none)
    }

    /// Moves on to a record; says whether it has another resource than the one before.
    #[inline]
    pub(super) fn advance(
        &mut self,
        record: usize,
        plans: &[PartPlan<'_>],
        config: &OtlpEncoding,
    ) -> bool {
        record >= self.until && self.advance_run(record, plans, config)
    }

    fn advance_run(
        &mut self,
        record: usize,
        plans: &[PartPlan<'_>],
        config: &OtlpEncoding,
    ) -> bool {
        let is_over = |run: &Run<'_>| run.records.end as usize <= record;
        while self.runs.get(self.at).is_some_and(is_over) {
            self.at += 1;
        }
        let next = self.runs.get(self.at);
        let run = next.filter(|run| run.records.start as usize <= record);
        self.until = match (run, next) {
            (Some(run), _) => run.records.end as usize,
            (None, Some(next)) => next.records.start as usize,
            (None, None) => usize::MAX,
        };
        let facts = run.map_or(self.none, |run| run.source);
        let before = self.current.replace(facts);
        if before.is_some_and(|before| std::ptr::eq(before, facts)) {
            return false;
        }
        self.changes += 1;
        let marks = [MALFORMED, TRUNCATED, TRANSFORM_FAILED, ORIGINAL];
        let iostream = config.iostream.then_some(IOSTREAM);
        let uid = config.record_uid.then_some(RECORD_UID);
        let extras = || marks.into_iter().chain(iostream).chain(uid);
        let facts_clash = facts
            .names
            .iter()
            .any(|(name, _)| extras().any(|extra| extra == name));
        let clashes = |plan: &PartPlan<'_>| {
            facts_clash
                || extras().any(|name| plan.names(name))
                || facts.names.iter().any(|(name, _)| plan.names(name))
        };
        self.shadowing.clear();
        self.shadowing.extend(plans.iter().map(clashes));
        before.is_none_or(|before| before.resource != facts.resource)
    }
}
