//! Selects the probe that is sent next while the output holds. It never decides that a record is at fault.
//!
//! *On evidence* the most suspicious delivery is sent: a single record that was refused directly before the
//! acceptance, else the largest suspect.
//!
//! *After it* every other single record that was refused before is sent once, and then the scheduler searches again.
//!
//! *Without evidence* the scheduler searches for something that is accepted: another request if there is one, else a
//! suspect that was never refused itself, the smallest first. When all were refused, the smallest of them that has
//! several records is cut in halves, and the search continues in these. So it descends
//! along one path and tries everything beside the path on the way. After [`SAMPLE_FROM`] refusals in a row most records
//! are bad, and single ones from everywhere are tried.
//!
//! If there is nothing else to send, an accepted delivery is spent: it cannot serve as a comparison again. So half of a
//! suspect that is sent in search of evidence is kept back, up to [`SPARES`] deliveries and one more for each
//! single record under suspicion. These *spares* are sent last, the largest at the end.

use std::cmp::Reverse;

use super::{
    Delivery, Instant, Refusal, Request, SEARCH, SEARCH_BLIND, SEARCH_OTHER, Scheduler, Step,
};
use crate::delivery::policy::OnRefused;

/// After so many refusals in a row, single records are tried.
const SAMPLE_FROM: u32 = 32;
/// How many spares are kept.
const SPARES: usize = 4;
/// From fewer records no half is kept back: a bad record that is left with its neighbour is found, a single one is not.
const HALVED_MIN: u64 = 4;

impl<R: Request> Scheduler<R> {
    /// The next step after an accepted probe: a suspect, to compare with it.
    pub(super) fn next_on_evidence(&mut self, now: Instant, queued: bool) -> Step<R> {
        match self.most_suspicious(now).or_else(|| self.other(now)) {
            Some(at) => self.send(at),
            None if queued => Step::Take,
            None => Step::Wait {
                until: self.next_due(now),
                take: true,
            },
        }
    }

    fn most_suspicious(&self, now: Instant) -> Option<usize> {
        let suspects = self.deliveries.iter().enumerate();
        let suspects = suspects.filter(|(_, delivery)| delivery.suspect && delivery.is_due(now));
        let is_only_spare = self.spares() == 1;
        let chosen = suspects.min_by_key(|(_, delivery)| {
            let records = delivery.request.payload().records;
            let is_primed = delivery.refused_at == self.answers.checked_sub(1);
            let is_decided_now = records < 2 && is_primed;
            // The largest spare goes last: it has the most to compare with.
            if delivery.spare && !(is_only_spare && is_decided_now) {
                (2, Reverse(u64::MAX - records))
            } else {
                (u8::from(!is_decided_now), Reverse(records))
            }
        });
        chosen.map(|(at, _)| at)
    }

    /// A delivery that is not a suspect.
    fn other(&self, now: Instant) -> Option<usize> {
        let fits = |delivery: &Delivery<R>| !delivery.suspect && delivery.is_due(now);
        self.deliveries.iter().position(fits)
    }

    /// The next step without evidence: a pause, or a probe.
    pub(super) fn next_probe(&mut self, now: Instant, queued: bool, paused: bool) -> Step<R> {
        let Some(hold) = &self.hold else {
            return self.next_open(now, queued);
        };
        let until = hold.until;
        let others_turn = match until {
            Some(_) => self.others_after_pause,
            None => hold.others_turn,
        };
        let other = self.other(now);
        let has_other = other.is_some() || queued;
        let take = |scheduler: &mut Self| match other {
            Some(at) => scheduler.send(at),
            None => Step::Take,
        };
        if paused {
            if has_other {
                return take(self);
            }
            return Step::Wait { until, take: true };
        }
        // After a pause suspects and others take turns; in a search two others are enough.
        let waited = until.is_some();
        let may_take = has_other && (waited || self.requests_refused < 2);
        if may_take && others_turn {
            return take(self);
        }
        if waited && !has_other && self.is_round_over(now) {
            self.cut_smallest(now);
            self.cut_at = self.unexplained;
        }
        let is_due = |delivery: &Delivery<R>| delivery.suspect && delivery.is_due(now);
        let suspect = if waited {
            self.deliveries.iter().position(is_due)
        } else {
            self.unchecked(now).or_else(|| self.search(now, has_other))
        };
        if let Some(at) = suspect {
            return self.send(at);
        }
        if may_take {
            return take(self);
        }
        self.pause(now)
    }

    /// Waits until the next probe, or gives up a delivery if the configuration says not to wait.
    fn pause(&mut self, now: Instant) -> Step<R> {
        let due = self.deliveries.iter().enumerate();
        let due = due.filter(|(_, delivery)| delivery.is_due(now));
        // What was refused itself goes first, should one be given up.
        let Some((at, _)) = due.min_by_key(|(_, delivery)| delivery.own_refusal.is_none()) else {
            return Step::Wait {
                until: self.next_due(now),
                take: true,
            };
        };
        if self.on_refused == OnRefused::Drop {
            return Step::GiveUp(self.remove(at));
        }
        let delay = self.backoff.spread(self.policy.hold);
        if let Some(hold) = &mut self.hold {
            hold.until = Some(now + delay);
            hold.alone = self.requests_refused < 2;
        }
        let compared = self.is_comparing().then_some(self.deliveries.len());
        Step::Pause { delay, compared }
    }

    /// The number of refused single records that wait to be compared with more, if everything else is accepted. `None`
    /// while something is on the wire.
    pub(crate) fn compared(&self) -> Option<usize> {
        let is_comparing = self.hold.is_some() && self.is_comparing();
        (self.on_wire == 0).then(|| usize::from(is_comparing) * self.deliveries.len())
    }

    /// Returns whether the server accepts everything but single records, which wait to be compared with more.
    fn is_comparing(&self) -> bool {
        let is_refused_record = |delivery: &Delivery<R>| delivery.is_refused_record();
        self.last_accepted.is_some()
            && self.requests_refused < 2
            && self.deliveries.iter().all(is_refused_record)
    }

    /// Returns whether it is a single record that was refused before, but not since the last acceptance.
    pub(super) fn is_unchecked(&self, delivery: &Delivery<R>) -> bool {
        delivery.is_refused_record() && delivery.intervals.1 != Some(self.acceptances)
    }

    /// Finds a single record that was not sent again since the last acceptance.
    fn unchecked(&self, now: Instant) -> Option<usize> {
        let is_unchecked = |delivery: &Delivery<R>| {
            delivery.suspect && delivery.is_due(now) && self.is_unchecked(delivery)
        };
        self.deliveries.iter().position(is_unchecked)
    }

    /// Finds a suspect that may be accepted; cuts larger ones until there is one.
    fn search(&mut self, now: Instant, has_other: bool) -> Option<usize> {
        let refusals_max = match self.blamed {
            Refusal::Request => SEARCH,
            Refusal::Other if self.last_accepted.is_some() => SEARCH_OTHER,
            Refusal::Other => SEARCH_BLIND,
        };
        loop {
            if self.unexplained >= refusals_max {
                return None;
            }
            if self.unexplained >= SAMPLE_FROM
                && let Some(at) = self.sample(now)
            {
                return Some(at);
            }
            match self.comparison(now) {
                Some(at) if !has_other && self.is_worth_sparing(at) => self.halve(at, true),
                Some(at) => return Some(at),
                None if self.cut_smallest(now) => {}
                None => return None,
            }
        }
    }

    /// Cuts a single record off the largest suspect. Cutting costs no request, and the records come from everywhere: if one
    /// in a hundred is good, or one part in a hundred, it is found with about a hundred requests.
    fn sample(&mut self, now: Instant) -> Option<usize> {
        let records = |delivery: &Delivery<R>| delivery.request.payload().records;
        let suspects = self.deliveries.iter().enumerate();
        let open = suspects.filter(|(_, delivery)| {
            delivery.suspect && delivery.is_due(now) && !delivery.is_refused_record()
        });
        let (mut at, _) = open.max_by_key(|(_, delivery)| records(delivery))?;
        while records(&self.deliveries[at]) > 1 {
            self.halve(at, self.deliveries[at].spare);
            at = 0;
        }
        Some(at)
    }

    /// The smallest suspect that was never refused itself. If nothing is to be compared with it, a single
    /// record that was refused goes first: refused again, it has the next acceptance as evidence.
    fn comparison(&self, now: Instant) -> Option<usize> {
        // The neighbours of a bad record are likely to be bad, too.
        let is_spare_wanted = self.single_refused && self.unexplained > 1;
        let due = || {
            self.deliveries
                .iter()
                .enumerate()
                .filter(|(_, delivery)| delivery.suspect && delivery.is_due(now))
        };
        let untested = due().filter(|(_, delivery)| delivery.own_refusal.is_none());
        let smallest = untested.min_by_key(|(_, delivery)| {
            (
                is_spare_wanted && !delivery.spare,
                delivery.request.payload().records,
            )
        });
        let (smallest, _) = smallest?;
        let mut singles = due().filter(|(_, delivery)| delivery.is_refused_record());
        match singles.next() {
            Some((single, _)) if !self.single_refused => Some(single),
            _ => Some(smallest),
        }
    }

    fn spares(&self) -> usize {
        self.deliveries
            .iter()
            .filter(|delivery| delivery.spare)
            .count()
    }

    fn is_worth_sparing(&self, at: usize) -> bool {
        let singles = self
            .deliveries
            .iter()
            .filter(|delivery| delivery.is_refused_record());
        let singles = singles.count();
        let spares = self.spares() - usize::from(self.deliveries[at].spare);
        self.deliveries[at].request.payload().records >= HALVED_MIN
            && spares < SPARES.max(singles + 1)
    }

    /// Returns whether, after the search, every suspect was probed again and refused since the last one was cut. So
    /// there are few cuts in a long outage: about 80 a day.
    fn is_round_over(&self, now: Instant) -> bool {
        let probes = self.unexplained.saturating_sub(self.cut_at) as usize;
        probes >= self.deliveries.len() && self.comparison(now).is_none()
    }

    /// Cuts the smallest suspect that was refused and has several records.
    fn cut_smallest(&mut self, now: Instant) -> bool {
        let refused = self.deliveries.iter().enumerate();
        let refused = refused.filter(|(_, delivery)| {
            let is_refused =
                delivery.suspect && delivery.own_refusal.is_some() && delivery.is_due(now);
            is_refused && delivery.request.payload().records > 1
        });
        let smallest = refused.min_by_key(|(_, delivery)| delivery.request.payload().records);
        let Some((at, _)) = smallest else {
            return false;
        };
        self.halve(at, false);
        true
    }

    /// Puts the halves of a suspect to the front; the second one may be a spare.
    fn halve(&mut self, at: usize, is_spare: bool) {
        let delivery = self.remove(at);
        let was_spare = delivery.spare;
        self.cut(delivery.request, true, delivery.own_refusal);
        self.deliveries[0].spare = was_spare;
        self.deliveries[1].spare = is_spare;
    }
}
