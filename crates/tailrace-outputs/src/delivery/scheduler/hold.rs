//! Which probe goes out next while the output holds. Takes the answers so far and the time, gives a step;
//! it never decides that a record is at fault.
//!
//! *On evidence* the most suspicious piece goes out: a single record that was refused directly before the
//! acceptance, else the largest suspect.
//!
//! *Without evidence* something is searched for that is accepted. Another request, if there is one. Else a
//! suspect that was never refused itself, the smallest first; when all were, the smallest of them that has
//! several records is cut in halves, and the search goes on in these. So it descends
//! along one path, and all that lies beside the path is tried on the way.
//!
//! Where nothing else is to be sent, what is accepted is spent: it cannot be compared with again. So of a
//! suspect that is sent in search of evidence a half is kept back, up to [`SPARES`] pieces and one more for each
//! single record under suspicion. These *spares* go out last, the largest at the end.

use std::cmp::Reverse;

use super::{Instant, Refusal, Request, SEARCH, SEARCH_BLIND, Scheduler, Step};
use crate::delivery::OnRefused;

/// How many spares are kept.
const SPARES: usize = 4;
/// Of fewer records no half is kept back: a bad record that is left with its neighbour is found, one alone is not.
const HALVED_MIN: u64 = 4;

impl<R: Request> Scheduler<R> {
    /// The server takes requests: suspects show whether it takes them, too.
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
        let suspects = self.pieces.iter().enumerate();
        let suspects = suspects.filter(|(_, piece)| piece.suspect && piece.is_due(now));
        let is_only_spare = self.spares() == 1;
        let chosen = suspects.min_by_key(|(_, piece)| {
            let records = piece.request.payload().records;
            let is_primed = piece.refused_at == self.answers.checked_sub(1);
            let is_decided_now = records < 2 && is_primed;
            // The largest spare goes last: it has the most to compare with.
            match piece.spare && !(is_only_spare && is_decided_now) {
                true => (2, Reverse(u64::MAX - records)),
                false => (u8::from(!is_decided_now), Reverse(records)),
            }
        });
        chosen.map(|(at, _)| at)
    }

    /// A piece that is no suspect.
    fn other(&self, now: Instant) -> Option<usize> {
        let fits = |piece: &super::Piece<R>| !piece.suspect && piece.is_due(now);
        self.pieces.iter().position(fits)
    }

    /// Nobody knows whose fault it is.
    pub(super) fn next_probe(&mut self, now: Instant, queued: bool, paused: bool) -> Step<R> {
        let Some(hold) = &self.hold else {
            return self.next_open(now, queued);
        };
        let (until, others_turn) = (hold.until, hold.others_turn);
        let other = self.other(now);
        let has_other = other.is_some() || queued;
        let take = |scheduler: &mut Self| match other {
            Some(at) => scheduler.send(at),
            None => Step::Take,
        };
        if paused {
            return match has_other {
                true => take(self),
                false => Step::Wait { until, take: true },
            };
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
        let is_due = |piece: &super::Piece<R>| piece.suspect && piece.is_due(now);
        let suspect = match waited {
            true => self.pieces.iter().position(is_due),
            false => self.search(now, has_other),
        };
        if let Some(at) = suspect {
            return self.send(at);
        }
        if may_take {
            return take(self);
        }
        self.pause(now)
    }

    /// Waits for the next probe, or gives up what would wait.
    fn pause(&mut self, now: Instant) -> Step<R> {
        let Some(at) = self.pieces.iter().position(|piece| piece.is_due(now)) else {
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
        Step::Pause(delay)
    }

    /// A suspect that may be accepted; larger ones are cut until there is one.
    fn search(&mut self, now: Instant, has_other: bool) -> Option<usize> {
        let is_blind = self.blamed == Refusal::Other && self.last_accepted.is_none();
        let refusals_max = if is_blind { SEARCH_BLIND } else { SEARCH };
        loop {
            if self.unexplained >= refusals_max {
                return None;
            }
            match self.comparison(now) {
                Some(at) if !has_other && self.is_worth_sparing(at) => self.halve(at, true),
                Some(at) => return Some(at),
                None if self.cut_smallest(now) => {}
                None => return None,
            }
        }
    }

    /// The smallest suspect that was never refused itself. If nothing is to be compared with it, a single
    /// record that was refused goes first: refused again, it has the next acceptance as evidence.
    fn comparison(&self, now: Instant) -> Option<usize> {
        // The neighbours of a bad record are likely to be bad, too.
        let is_spare_wanted = self.single_refused && self.unexplained > 1;
        let due = || {
            self.pieces
                .iter()
                .enumerate()
                .filter(|(_, piece)| piece.suspect && piece.is_due(now))
        };
        let untested = due().filter(|(_, piece)| piece.own_refusal.is_none());
        let smallest = untested.min_by_key(|(_, piece)| {
            (
                is_spare_wanted && !piece.spare,
                piece.request.payload().records,
            )
        });
        let (smallest, _) = smallest?;
        let mut singles = due().filter(|(_, piece)| piece.is_refused_record());
        match singles.next() {
            Some((single, _)) if !self.single_refused => Some(single),
            _ => Some(smallest),
        }
    }

    fn spares(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.spare).count()
    }

    fn is_worth_sparing(&self, at: usize) -> bool {
        let singles = self.pieces.iter().filter(|piece| piece.is_refused_record());
        let singles = singles.count();
        let spares = self.spares() - usize::from(self.pieces[at].spare);
        self.pieces[at].request.payload().records >= HALVED_MIN && spares < SPARES.max(singles + 1)
    }

    /// Whether, after the search, every suspect was probed again and refused since the last one was cut. So
    /// in a long outage there are few cuts: about 80 in a day.
    fn is_round_over(&self, now: Instant) -> bool {
        let probes = self.unexplained.saturating_sub(self.cut_at) as usize;
        probes >= self.pieces.len() && self.comparison(now).is_none()
    }

    /// Cuts the smallest suspect that was refused and has several records.
    fn cut_smallest(&mut self, now: Instant) -> bool {
        let refused = self.pieces.iter().enumerate();
        let refused = refused.filter(|(_, piece)| {
            let is_refused = piece.suspect && piece.own_refusal.is_some() && piece.is_due(now);
            is_refused && piece.request.payload().records > 1
        });
        let smallest = refused.min_by_key(|(_, piece)| piece.request.payload().records);
        let Some((at, _)) = smallest else {
            return false;
        };
        self.halve(at, false);
        true
    }

    /// Puts the halves of a suspect to the front; the second one may be a spare.
    fn halve(&mut self, at: usize, is_spare: bool) {
        let piece = self.remove(at);
        let was_spare = piece.spare;
        self.cut(piece.request, true, piece.own_refusal);
        self.pieces[0].spare = was_spare;
        self.pieces[1].spare = is_spare;
    }
}
