//! The scheduler of one output: it decides which request is sent next and what a refusal means (D12). It is pure: from
//! outcomes and the time it computes the next step. It never sends and never sleeps.
//!
//! *Open.* Up to `concurrency` requests are in flight. A request that is to be retried keeps its place.
//!
//! *Holding.* A refusal says that something is wrong, but not what: the request, the configuration
//! or the server. From then on one request at a time is on the wire. The refused ones are *suspects*.
//! As long as there are any, every answer is interpreted together with the one before it:
//!
//! - *Accepted* is the evidence that the server accepts requests at all. The next suspect is sent at once.
//! - *Refused directly after another was accepted* is the fault of the request itself. It is cut in
//!   halves, which become suspects. A single record is rejected if three answers in a row were:
//!   refused (it), accepted (another one), refused (it); or refused (two records), accepted (the one), refused (the
//!   other).
//! - *Refused again and again, while others were accepted in between* is the same: after each acceptance every single
//!   record that was refused before is sent once more. One that is refused in [`INTERVALS`] of these intervals is rejected.
//!   So a few acceptances are evidence against any number of records, and an outage does not reject a record unless it
//!   begins anew that often, each time after an acceptance and before the same record.
//! - *Refused without such evidence* says nothing, so the scheduler searches for something that is accepted: another
//!   request first, and if there is none (or two were refused as well) smaller and smaller parts of the refused
//!   ones (`hold.rs`). The search is bounded: after [`SEARCH`] refusals in a row, or when
//!   nothing is left to try, the scheduler waits `RetryPolicy::hold` from one probe to the next, for as long as the
//!   refusals last. So an outage costs these requests, small ones, and rejects nothing, because nothing is accepted in it.
//!
//! An answer that blames the configuration or the server (401, 404, 500, a web page) requires the
//! same evidence [`STRIKES`] times, at intervals of `RetryPolicy::hold`, before its single record is rejected: a server that
//! answers so occasionally must not cost records. Other requests continue meanwhile. Such an answer starts a search only
//! if something was accepted before, in this process.
//!
//! *Accepted although it was refused before* is a contradiction: the server was down, or answers a quota with 400. What was
//! counted in intervals is forgotten, and for [`DOUBT`] an answer that blames the request needs as much evidence as
//! one that blames the server.
//!
//! *Too large* is not a refusal: the request is cut in halves, and for [`LIMIT_MEMORY`] larger requests are cut
//! before they are sent.

mod hold;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::delivery::compression::Round;
use crate::delivery::outcome::RetryCause;
use crate::delivery::policy::{OnRefused, RetryPolicy};
use crate::delivery::request::Request;
use tailrace_model::backoff::Backoff;

/// How often a single record must be refused on evidence if the answer blames something else.
const STRIKES: u32 = 5;
/// A single record is at fault that was refused in so many intervals between two acceptances.
const INTERVALS: u32 = 4;
/// How long a server is doubted that accepted what it had refused.
const DOUBT: Duration = Duration::from_secs(600);
/// The most refusals in a row that a search may cost. It finds one good record among several hundred bad ones.
const SEARCH: u32 = 1024;
/// The same, if the answers blame something else.
const SEARCH_OTHER: u32 = 32;
/// The same, if moreover nothing was ever accepted.
const SEARCH_BLIND: u32 = 3;
/// How long a size that was too large is remembered.
const LIMIT_MEMORY: Duration = Duration::from_secs(3600);
/// Requests that were not refused yet are not cut below this size, in bytes before compression.
const LIMIT_BYTES_MIN: u64 = 16 * 1024;

/// A request in flight, or a part of one, from the queue to its outcome.
pub(crate) struct Delivery<R> {
    pub(crate) request: R,
    /// The compressions in which it was refused since it last waited.
    pub(crate) round: Round,
    /// How often it was sent.
    pub(crate) attempts: u64,
    id: u64,
    backoff: Backoff,
    /// The earliest time at which it may be sent.
    not_before: Option<Instant>,
    suspect: bool,
    /// Sent while holding, alone on the wire.
    probe: bool,
    /// Part of a refused request, kept back to be compared with other suspects.
    spare: bool,
    strikes: u32,
    /// The answer in which it was itself refused last.
    own_refusal: Option<u64>,
    /// The answer in which it was refused last; or what it was cut from, if the other half was accepted right after.
    refused_at: Option<u64>,
    /// The number of intervals between two acceptances in which it was refused itself, and the last of them.
    intervals: (u32, Option<u64>),
    /// If it is a half: the id of the other half, and the answer in which the whole was refused.
    half: Option<(u64, u64)>,
}

/// What a refusal blames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The answer blames the request.
    Request,
    /// The answer blames something else.
    Other,
}

/// The next step of the delivery loop.
pub(crate) enum Step<R> {
    /// Send it.
    Send(Delivery<R>),
    /// Take the next request from the queue, which is not empty.
    Take,
    /// Wait for an answer, for this moment, or, if `take`, for the next request.
    Wait { until: Option<Instant>, take: bool },
    /// A pause begins that only another request can shorten. `compared` is the number of single records that wait for it,
    /// if everything else is accepted.
    Pause {
        delay: Duration,
        compared: Option<usize>,
    },
    /// Give it up: the configuration says not to wait.
    GiveUp(Delivery<R>),
}

/// The consequence of a refusal.
pub(crate) enum Effect<R> {
    /// The delivery, or its parts, are kept and sent again.
    Kept,
    /// The single record is to be rejected.
    Reject(Delivery<R>),
}

/// All requests of one output that are in flight.
pub(crate) struct Scheduler<R> {
    policy: RetryPolicy,
    concurrency: usize,
    on_refused: OnRefused,
    backoff: Backoff,
    round: Round,
    /// Not on the wire; those taken first are at the front.
    deliveries: VecDeque<Delivery<R>>,
    on_wire: usize,
    hold: Option<Hold>,
    /// The size above which requests are too large, in bytes before compression, and until when this is assumed.
    limit: Option<(u64, Instant)>,
    ids: u64,
    /// Number of answers so far.
    answers: u64,
    /// The answer that accepted something last.
    last_accepted: Option<u64>,
    /// The next pause ends with a delivery that is not a suspect. What is sent then may be all that is accepted for now.
    others_after_pause: bool,
    /// When a delivery was accepted that had been refused itself.
    contradicted_at: Option<Instant>,
    /// Number of answers that accepted something. Between two of them lies an interval.
    acceptances: u64,
    /// Refusals since then that no evidence explains.
    unexplained: u32,
    /// `unexplained` when a suspect was last cut after a search.
    cut_at: u32,
    /// Requests taken from the queue that were refused since then.
    requests_refused: u32,
    /// The last refusal was that of a single record, which is still here.
    single_refused: bool,
    /// What it blamed.
    blamed: Refusal,
}

/// The state while the output holds.
struct Hold {
    /// The last probe was accepted.
    evidence: bool,
    /// The next probe is a delivery that is not a suspect.
    others_turn: bool,
    /// Nothing is sent before.
    until: Option<Instant>,
    /// While waiting, another request may be sent: only the suspects wait.
    alone: bool,
}

impl<R: Request> Scheduler<R> {
    pub(crate) fn new(
        policy: RetryPolicy,
        concurrency: usize,
        on_refused: OnRefused,
        round: Round,
    ) -> Scheduler<R> {
        let backoff = Backoff::try_new(policy.min, policy.max)
            .expect("the bounds were checked when the output was made");
        Scheduler {
            policy,
            concurrency,
            on_refused,
            backoff,
            round,
            deliveries: VecDeque::new(),
            on_wire: 0,
            hold: None,
            limit: None,
            ids: 0,
            answers: 0,
            last_accepted: None,
            others_after_pause: true,
            contradicted_at: None,
            acceptances: 0,
            unexplained: 0,
            cut_at: 0,
            requests_refused: 0,
            single_refused: false,
            blamed: Refusal::Request,
        }
    }

    /// Returns whether nothing is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.deliveries.is_empty() && self.on_wire == 0
    }

    /// Adds a request from the queue. One that is known to be too large is cut.
    pub(crate) fn push(&mut self, request: R, now: Instant) {
        self.limit = self.limit.filter(|(_, until)| now < *until);
        for part in self.within_limit(request) {
            let delivery = self.delivery(part, false);
            self.deliveries.push_back(delivery);
        }
    }

    /// Cuts the request into parts within the known limit.
    fn within_limit(&self, request: R) -> Vec<R> {
        let limit = self.limit.map_or(u64::MAX, |(limit, _)| limit);
        let (mut uncut, mut parts) = (vec![request], Vec::new());
        while let Some(request) = uncut.pop() {
            let payload = request.payload();
            if payload.uncompressed_bytes > limit && payload.records > 1 {
                let (first, second) = request.halves();
                uncut.extend([second, first]);
            } else {
                parts.push(request);
            }
        }
        parts
    }

    fn delivery(&mut self, request: R, suspect: bool) -> Delivery<R> {
        self.ids += 1;
        Delivery {
            request,
            round: self.round.clone(),
            attempts: 0,
            id: self.ids,
            backoff: self.backoff.another(),
            not_before: None,
            suspect,
            probe: false,
            spare: false,
            strikes: 0,
            own_refusal: None,
            refused_at: None,
            intervals: (0, None),
            half: None,
        }
    }

    /// Returns the next step. `queued` says whether the queue has a request.
    pub(crate) fn next(&mut self, now: Instant, queued: bool) -> Step<R> {
        if self.is_open() {
            self.hold = None;
        }
        let Some(hold) = &mut self.hold else {
            return self.next_open(now, queued);
        };
        if self.on_wire > 0 {
            return Step::Wait {
                until: None,
                take: false,
            };
        }
        let paused = hold.until.is_some_and(|until| now < until);
        if paused && !hold.alone {
            return Step::Wait {
                until: hold.until,
                take: false,
            };
        }
        if hold.evidence {
            return self.next_on_evidence(now, queued);
        }
        self.next_probe(now, queued, paused)
    }

    fn next_open(&mut self, now: Instant, queued: bool) -> Step<R> {
        if self.on_wire < self.concurrency {
            let first = self.deliveries.iter().take(self.concurrency);
            if let Some(at) = first.into_iter().position(|delivery| delivery.is_due(now)) {
                return self.send(at);
            }
        }
        let take = self.on_wire + self.deliveries.len() < self.concurrency;
        if take && queued {
            return Step::Take;
        }
        Step::Wait {
            until: self.next_due(now),
            take,
        }
    }

    /// Puts both halves of a request to the front; `refused_at` is the answer in which it was refused itself.
    fn cut(&mut self, request: R, suspect: bool, refused_at: Option<u64>) {
        let (first, second) = request.halves();
        let (first, second) = (
            self.delivery(first, suspect),
            self.delivery(second, suspect),
        );
        let of = |other: u64| refused_at.map(|at| (other, at));
        let (half_of_first, half_of_second) = (of(second.id), of(first.id));
        self.deliveries.push_front(Delivery {
            half: half_of_second,
            ..second
        });
        self.deliveries.push_front(Delivery {
            half: half_of_first,
            ..first
        });
    }

    fn remove(&mut self, at: usize) -> Delivery<R> {
        self.deliveries
            .remove(at)
            .expect("a delivery at this index")
    }

    fn send(&mut self, at: usize) -> Step<R> {
        let mut delivery = self.remove(at);
        delivery.not_before = None;
        delivery.probe = self.hold.is_some();
        delivery.attempts += 1;
        if let Some(hold) = &mut self.hold {
            hold.others_turn = delivery.suspect;
            if hold.until.is_some() {
                self.others_after_pause = delivery.suspect;
            }
            (hold.until, hold.alone) = (None, false);
        }
        self.on_wire += 1;
        Step::Send(delivery)
    }

    /// The earliest time at which a delivery that waits becomes due.
    fn next_due(&self, now: Instant) -> Option<Instant> {
        let moments = self
            .deliveries
            .iter()
            .filter_map(|delivery| delivery.not_before);
        moments.filter(|moment| *moment > now).min()
    }

    /// Records that a delivery was accepted, and returns its request.
    pub(crate) fn accepted(&mut self, delivery: Delivery<R>, now: Instant) -> R {
        self.answer();
        self.last_accepted = Some(self.answers);
        self.acceptances += 1;
        (self.unexplained, self.cut_at, self.requests_refused) = (0, 0, 0);
        if delivery.own_refusal.is_some() {
            // What it refused so far says nothing about the records.
            self.contradicted_at = Some(now);
            for other in &mut self.deliveries {
                (other.intervals.0, other.strikes) = (0, 0);
            }
        }
        if let Some(hold) = &mut self.hold
            && delivery.probe
        {
            (hold.evidence, hold.until) = (true, None);
            // The whole was refused, and this half is not at fault: the other one is. Of a part of a half that says
            // nothing.
            let before = self.answers - 1;
            for other in &mut self.deliveries {
                if other.half == Some((delivery.id, before)) {
                    other.refused_at = Some(before);
                }
            }
        }
        delivery.request
    }

    /// Puts a delivery back for a retry. Returns the delay until then.
    pub(crate) fn retry(
        &mut self,
        mut delivery: Delivery<R>,
        cause: RetryCause,
        after: Option<Duration>,
        now: Instant,
    ) -> Duration {
        self.answer();
        let backoff = &mut delivery.backoff;
        let delay = match after {
            Some(after) => backoff.next_after(after, self.policy.after_max),
            None => backoff.next_delay(),
        };
        delivery.not_before = Some(now + delay);
        if let Some(hold) = &mut self.hold {
            // A server that was down may come back as a different one; a busy one is still there.
            if cause != RetryCause::Throttled {
                hold.evidence = false;
            }
            (hold.until, hold.alone) = (delivery.not_before, false);
        }
        // Back to its place, so that the order stays.
        let at = self
            .deliveries
            .iter()
            .position(|other| other.id > delivery.id);
        self.deliveries
            .insert(at.unwrap_or(self.deliveries.len()), delivery);
        delay
    }

    /// Cuts a delivery that is too large. Returns it if it is a single record: then the answer is a refusal.
    pub(crate) fn too_large(&mut self, delivery: Delivery<R>, now: Instant) -> Option<Delivery<R>> {
        let payload = delivery.request.payload();
        if payload.records < 2 {
            return Some(delivery);
        }
        let limit = (payload.uncompressed_bytes / 2).max(LIMIT_BYTES_MIN);
        let known = self.limit.map_or(u64::MAX, |(known, _)| known);
        self.limit = Some((limit.min(known), now + LIMIT_MEMORY));
        self.answer();
        if let Some(hold) = &mut self.hold {
            hold.evidence = false;
        }
        self.cut(delivery.request, delivery.suspect, None);
        for delivery in std::mem::take(&mut self.deliveries) {
            if delivery.suspect || delivery.not_before.is_some() {
                self.deliveries.push_back(delivery);
                continue;
            }
            for part in self.within_limit(delivery.request) {
                let part = self.delivery(part, false);
                self.deliveries.push_back(part);
            }
        }
        None
    }

    /// Records that a delivery was refused, and decides what that means.
    pub(crate) fn refused(
        &mut self,
        mut delivery: Delivery<R>,
        refusal: Refusal,
        now: Instant,
    ) -> Effect<R> {
        self.answer();
        let primed = delivery.refused_at == self.answers.checked_sub(2);
        delivery.refused_at = Some(self.answers);
        let is_check = self.is_unchecked(&delivery);
        let is_new = delivery.count_interval(self.acceptances);
        delivery.own_refusal = Some(self.answers);
        delivery.round = self.round.clone();
        delivery.backoff.reset();
        let hold = self.hold.get_or_insert(Hold {
            evidence: false,
            others_turn: true,
            until: None,
            alone: false,
        });
        let on_evidence = delivery.probe && std::mem::take(&mut hold.evidence);
        hold.evidence = false;
        self.requests_refused += u32::from(!delivery.suspect);
        (delivery.suspect, delivery.spare) = (true, false);
        let is_single = delivery.request.payload().records < 2;
        (self.single_refused, self.blamed) = (is_single, refusal);
        match (on_evidence, is_single) {
            (true, false) => {
                hold.others_turn = false;
                self.cut(delivery.request, true, delivery.refused_at);
            }
            (true, true) if primed => return self.at_fault(delivery, refusal, now),
            (_, true) if is_new && delivery.intervals.0 >= INTERVALS => {
                return self.at_fault(delivery, refusal, now);
            }
            // Again directly after the next evidence.
            (true, true) => self.deliveries.push_front(delivery),
            (false, _) => {
                self.unexplained += u32::from(!is_check);
                self.deliveries.push_back(delivery);
            }
        }
        Effect::Kept
    }

    /// The single record itself is refused while others are accepted.
    fn at_fault(&mut self, mut delivery: Delivery<R>, refusal: Refusal, now: Instant) -> Effect<R> {
        delivery.strikes += 1;
        delivery.intervals.0 = 0;
        self.single_refused = false;
        let contradicted = self.contradicted_at;
        let is_doubted = contradicted.is_some_and(|at| now < at + DOUBT);
        if (refusal == Refusal::Request && !is_doubted) || delivery.strikes >= STRIKES {
            return Effect::Reject(delivery);
        }
        // The same evidence is required again, after `RetryPolicy::hold`.
        delivery.not_before = Some(now + self.backoff.spread(self.policy.hold));
        self.deliveries.push_back(delivery);
        Effect::Kept
    }

    /// Returns whether nothing is suspected.
    pub(crate) fn is_open(&self) -> bool {
        let is_suspect = |delivery: &Delivery<R>| delivery.suspect;
        self.hold.is_none() || (self.on_wire == 0 && !self.deliveries.iter().any(is_suspect))
    }

    fn answer(&mut self) {
        self.on_wire -= 1;
        self.answers += 1;
    }
}

impl<R: Request> Delivery<R> {
    fn is_refused_record(&self) -> bool {
        self.own_refusal.is_some() && self.request.payload().records < 2
    }

    /// Counts a refusal in this interval. Returns whether it is the first one.
    fn count_interval(&mut self, acceptances: u64) -> bool {
        let (count, last) = &mut self.intervals;
        let is_new = *last != Some(acceptances);
        *count += u32::from(is_new);
        *last = Some(acceptances);
        is_new
    }
}

impl<R> Delivery<R> {
    /// Whether it was refused, or is a part of what was.
    pub(crate) fn is_suspect(&self) -> bool {
        self.suspect
    }

    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| at <= now)
    }
}
