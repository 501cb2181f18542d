//! Which request goes out next, and what a refusal means (D12). All requests of one output pass it.
//! Pure: it takes outcomes and the time, gives the next step; it never sends and never sleeps.
//!
//! *Open.* Up to `concurrency` requests are under way; one that is to be repeated keeps its place.
//!
//! *Holding.* A refusal says that something is wrong, and not what: the request, the configuration
//! or the server. From then on one request at a time is on the wire. The refused ones are *suspects*.
//! As long as there are any, every answer is read in the light of the one before it:
//!
//! - *Accepted* is the evidence that the server takes requests as they are. The next suspect goes out
//!   at once.
//! - *Refused directly after another was accepted* is the fault of the request itself. It is cut in
//!   halves, which become suspects. A single record is rejected, if three answers in a row were:
//!   refused (it), accepted (another one), refused (it); or refused (two records), accepted (the one), refused (the
//!   other).
//! - *Refused without such evidence* says nothing, so something that is accepted is searched for: another
//!   request first, and where there is none (or two were refused as well) parts of what was refused, cut
//!   smaller and smaller (`hold.rs`). The search is short: after [`SEARCH`] refusals in a row, or when
//!   nothing is left to try, the scheduler waits, `RetryPolicy::hold` from one probe to the next, for as long as it
//!   takes. So an outage costs a few small requests, and rejects nothing, for nothing is accepted in it.
//!
//! An answer that blames the configuration or the server (401, 404, 500, a web page) needs the
//! same evidence [`STRIKES`] times, a hold apart, before its single record is rejected: a server that answers
//! so now and then must not cost records. Other requests flow meanwhile. It starts a search only if
//! something was accepted before, in this process.
//!
//! *Too large* is no refusal: the request is cut in halves, and for [`LIMIT_MEMORY`] larger ones are cut
//! before they are sent.

mod hold;

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::delivery::Request;
use crate::delivery::backoff::Backoff;
use crate::delivery::compression::Round;
use crate::delivery::outcome::RetryCause;
use crate::delivery::{OnRefused, RetryPolicy};

/// How often a single record must be refused on evidence, if the answer blames something else.
const STRIKES: u32 = 5;
/// How many refusals in a row a search may cost.
const SEARCH: u32 = 32;
/// The same, if the answers blame something else and nothing was ever accepted.
const SEARCH_BLIND: u32 = 3;
/// How long a size that was too large is remembered.
const LIMIT_MEMORY: Duration = Duration::from_secs(3600);
/// Requests are never cut below this before they were refused, in bytes before compression.
const LIMIT_BYTES_MIN: u64 = 16 * 1024;

/// A request, or a part of one, that is under transport.
pub(crate) struct Piece<R> {
    pub(crate) request: R,
    /// In which compressions it was refused since it last waited.
    pub(crate) round: Round,
    /// How often it was sent.
    pub(crate) attempts: u64,
    id: u64,
    backoff: Backoff,
    /// It is not sent before.
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
    /// It is a half: the other one, and the answer in which the whole was refused.
    half: Option<(u64, u64)>,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The answer blames the request.
    Request,
    /// The answer blames something else.
    Other,
}

/// What to do now.
pub(crate) enum Step<R> {
    /// Send it.
    Send(Piece<R>),
    /// Take the next request from the queue, which is not empty.
    Take,
    /// Wait for an answer, for this moment, or, if `take`, for the next request.
    Wait { until: Option<Instant>, take: bool },
    /// A pause begins that only another request can shorten.
    Pause(Duration),
    /// Give it up: nothing is waited for.
    GiveUp(Piece<R>),
}

/// What a refusal leads to.
pub(crate) enum Effect<R> {
    /// It, or its parts, are kept and sent again.
    Kept,
    /// A single record is to be rejected.
    Reject(Piece<R>),
}

/// All requests of one output that are under transport.
pub(crate) struct Scheduler<R> {
    policy: RetryPolicy,
    concurrency: usize,
    on_refused: OnRefused,
    backoff: Backoff,
    round: Round,
    /// Not on the wire; those taken first are at the front.
    pieces: VecDeque<Piece<R>>,
    on_wire: usize,
    hold: Option<Hold>,
    /// What is larger is too large, in bytes before compression, and until when we think so.
    limit: Option<(u64, Instant)>,
    ids: u64,
    /// Number of answers so far.
    answers: u64,
    /// The answer that accepted something last.
    last_accepted: Option<u64>,
    /// Refusals since then that no evidence explains.
    unexplained: u32,
    /// How many of them there were when a suspect was cut last, after a search.
    cut_at: u32,
    /// Requests taken from the queue that were refused since then.
    requests_refused: u32,
    /// The last refusal was that of a single record, which is kept.
    single_refused: bool,
    /// Whom it blamed.
    blamed: Refusal,
}

struct Hold {
    /// The last probe was accepted.
    evidence: bool,
    /// The next probe is one that is no suspect.
    others_turn: bool,
    /// Nothing is sent before.
    until: Option<Instant>,
    /// But for another request: the suspects wait only for want of one.
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
            pieces: VecDeque::new(),
            on_wire: 0,
            hold: None,
            limit: None,
            ids: 0,
            answers: 0,
            last_accepted: None,
            unexplained: 0,
            cut_at: 0,
            requests_refused: 0,
            single_refused: false,
            blamed: Refusal::Request,
        }
    }

    /// Whether nothing is under transport.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.on_wire == 0
    }

    /// Takes a request from the queue; one that is known to be too large is cut.
    pub(crate) fn push(&mut self, request: R, now: Instant) {
        self.limit = self.limit.filter(|(_, until)| now < *until);
        for part in self.within_limit(request) {
            let piece = self.piece(part, false);
            self.pieces.push_back(piece);
        }
    }

    /// The request in parts that may not be too large.
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

    fn piece(&mut self, request: R, suspect: bool) -> Piece<R> {
        self.ids += 1;
        Piece {
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
            half: None,
        }
    }

    /// The next step; `queued` says whether the queue holds a request.
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
            let under_way = self.pieces.iter().take(self.concurrency);
            if let Some(at) = under_way.into_iter().position(|piece| piece.is_due(now)) {
                return self.send(at);
            }
        }
        let take = self.on_wire + self.pieces.len() < self.concurrency;
        match take && queued {
            true => Step::Take,
            false => Step::Wait {
                until: self.next_due(now),
                take,
            },
        }
    }

    /// Puts both halves of a request to the front; `refused_at` is the answer in which it was refused itself.
    fn cut(&mut self, request: R, suspect: bool, refused_at: Option<u64>) {
        let (first, second) = request.halves();
        let (first, second) = (self.piece(first, suspect), self.piece(second, suspect));
        let of = |other: u64| refused_at.map(|at| (other, at));
        let (half_of_first, half_of_second) = (of(second.id), of(first.id));
        self.pieces.push_front(Piece {
            half: half_of_second,
            ..second
        });
        self.pieces.push_front(Piece {
            half: half_of_first,
            ..first
        });
    }

    fn remove(&mut self, at: usize) -> Piece<R> {
        self.pieces.remove(at).expect("a piece at this place")
    }

    fn send(&mut self, at: usize) -> Step<R> {
        let mut piece = self.remove(at);
        piece.not_before = None;
        piece.probe = self.hold.is_some();
        piece.attempts += 1;
        if let Some(hold) = &mut self.hold {
            hold.others_turn = piece.suspect;
            (hold.until, hold.alone) = (None, false);
        }
        self.on_wire += 1;
        Step::Send(piece)
    }

    /// When the next of those that are not due yet is.
    fn next_due(&self, now: Instant) -> Option<Instant> {
        let moments = self.pieces.iter().filter_map(|piece| piece.not_before);
        moments.filter(|moment| *moment > now).min()
    }

    /// A piece was accepted.
    pub(crate) fn accepted(&mut self, piece: Piece<R>) -> R {
        self.answer();
        self.last_accepted = Some(self.answers);
        (self.unexplained, self.cut_at, self.requests_refused) = (0, 0, 0);
        if let Some(hold) = &mut self.hold
            && piece.probe
        {
            (hold.evidence, hold.until) = (true, None);
            // The whole was refused, and this half is not at fault: the other one is. Of a part of a half that says
            // nothing.
            let before = self.answers - 1;
            for other in &mut self.pieces {
                if other.half == Some((piece.id, before)) {
                    other.refused_at = Some(before);
                }
            }
        }
        piece.request
    }

    /// A piece is to be sent again; gives the time until then.
    pub(crate) fn retry(
        &mut self,
        mut piece: Piece<R>,
        cause: RetryCause,
        after: Option<Duration>,
        now: Instant,
    ) -> Duration {
        self.answer();
        let after = after.map(|after| after.min(self.policy.after_max));
        let delay = piece.backoff.next(after);
        piece.not_before = Some(now + delay);
        if let Some(hold) = &mut self.hold {
            // Who is down may come back as another one; who is busy is still there.
            if cause != RetryCause::Throttled {
                hold.evidence = false;
            }
            (hold.until, hold.alone) = (piece.not_before, false);
        }
        // Back to its place, so that the order stays.
        let at = self.pieces.iter().position(|other| other.id > piece.id);
        self.pieces.insert(at.unwrap_or(self.pieces.len()), piece);
        delay
    }

    /// A piece is too large; gives it back if it is a single record, which is a refusal.
    pub(crate) fn too_large(&mut self, piece: Piece<R>, now: Instant) -> Option<Piece<R>> {
        let payload = piece.request.payload();
        if payload.records < 2 {
            return Some(piece);
        }
        let limit = (payload.uncompressed_bytes / 2).max(LIMIT_BYTES_MIN);
        let known = self.limit.map_or(u64::MAX, |(known, _)| known);
        self.limit = Some((limit.min(known), now + LIMIT_MEMORY));
        self.answer();
        if let Some(hold) = &mut self.hold {
            hold.evidence = false;
        }
        self.cut(piece.request, piece.suspect, None);
        for piece in std::mem::take(&mut self.pieces) {
            if piece.suspect || piece.not_before.is_some() {
                self.pieces.push_back(piece);
                continue;
            }
            for part in self.within_limit(piece.request) {
                let part = self.piece(part, false);
                self.pieces.push_back(part);
            }
        }
        None
    }

    /// A piece was refused.
    pub(crate) fn refused(
        &mut self,
        mut piece: Piece<R>,
        refusal: Refusal,
        now: Instant,
    ) -> Effect<R> {
        self.answer();
        let primed = piece.refused_at == self.answers.checked_sub(2);
        piece.refused_at = Some(self.answers);
        piece.own_refusal = Some(self.answers);
        piece.round = self.round.clone();
        piece.backoff.reset();
        let hold = self.hold.get_or_insert(Hold {
            evidence: false,
            others_turn: true,
            until: None,
            alone: false,
        });
        let on_evidence = piece.probe && std::mem::take(&mut hold.evidence);
        hold.evidence = false;
        self.requests_refused += u32::from(!piece.suspect);
        (piece.suspect, piece.spare) = (true, false);
        let is_single = piece.request.payload().records < 2;
        (self.single_refused, self.blamed) = (is_single, refusal);
        match (on_evidence, is_single) {
            (true, false) => {
                hold.others_turn = false;
                self.cut(piece.request, true, piece.refused_at);
            }
            (true, true) if primed => return self.at_fault(piece, refusal, now),
            // Again directly after the next evidence.
            (true, true) => self.pieces.push_front(piece),
            (false, _) => {
                self.unexplained += 1;
                self.pieces.push_back(piece);
            }
        }
        Effect::Kept
    }

    /// The single record itself is refused, others are not.
    fn at_fault(&mut self, mut piece: Piece<R>, refusal: Refusal, now: Instant) -> Effect<R> {
        piece.strikes += 1;
        self.single_refused = false;
        if refusal == Refusal::Request || piece.strikes >= STRIKES {
            return Effect::Reject(piece);
        }
        // It needs the same evidence again, a hold apart.
        piece.not_before = Some(now + self.backoff.spread(self.policy.hold));
        self.pieces.push_back(piece);
        Effect::Kept
    }

    /// Whether nothing is suspected.
    pub(crate) fn is_open(&self) -> bool {
        let is_suspect = |piece: &Piece<R>| piece.suspect;
        self.hold.is_none() || (self.on_wire == 0 && !self.pieces.iter().any(is_suspect))
    }

    fn answer(&mut self) {
        self.on_wire -= 1;
        self.answers += 1;
    }
}

impl<R: Request> Piece<R> {
    fn is_refused_record(&self) -> bool {
        self.own_refusal.is_some() && self.request.payload().records < 2
    }
}

impl<R> Piece<R> {
    fn is_due(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|at| at <= now)
    }
}
