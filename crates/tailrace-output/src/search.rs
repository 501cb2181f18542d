//! Which encoding an endpoint takes (D12). Shared by all deliveries to one endpoint; takes what became
//! of requests, gives the encoding of the next one; it never compresses.
//!
//! Until one request was accepted, a refusal that may be about the encoding makes the same request go
//! out in the next of zstd, gzip, identity; the first accepted one is remembered. If all are refused,
//! the encoding is not the cause. After a success only an answer that names the encoding reopens the
//! search.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::Encoding;
use crate::outcome::Doubt;

const CANDIDATES: [Encoding; 3] = [Encoding::Zstd, Encoding::Gzip, Encoding::Identity];

/// What is known about one endpoint.
#[derive(Debug)]
pub(crate) struct Search {
    /// `None` when the configuration names the encoding: nothing is searched.
    state: Option<Mutex<State>>,
    fixed: Encoding,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Searching,
    Settled(Encoding),
}

/// The search of one request from one wait to the next: in which encodings it was refused.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    refused: Vec<Encoding>,
}

impl Search {
    /// `compression: auto`.
    pub(crate) fn auto() -> Search {
        Search {
            state: Some(Mutex::new(State::Searching)),
            fixed: CANDIDATES[0],
        }
    }

    /// Always this encoding.
    pub(crate) const fn fixed(encoding: Encoding) -> Search {
        Search {
            state: None,
            fixed: encoding,
        }
    }

    /// The encoding for new requests.
    pub(crate) fn preferred(&self) -> Encoding {
        self.encoding(&self.round())
    }

    pub(crate) fn round(&self) -> Round {
        Round {
            refused: Vec::new(),
        }
    }

    /// The encoding for the next attempt of a request: what the endpoint is known to take, else the
    /// first candidate it has not refused.
    pub(crate) fn encoding(&self, round: &Round) -> Encoding {
        let Some(state) = self.lock() else {
            return self.fixed;
        };
        match *state {
            State::Settled(encoding) => encoding,
            State::Searching => round.candidate().unwrap_or(CANDIDATES[0]),
        }
    }

    /// A request was accepted in `encoding`.
    pub(crate) fn accepted(&self, encoding: Encoding) {
        if let Some(mut state) = self.lock()
            && matches!(*state, State::Searching)
        {
            *state = State::Settled(encoding);
        }
    }

    /// A request was refused in `encoding`: gives the encoding to try it in at once, or `None` if the
    /// encoding is not the cause.
    pub(crate) fn refused(
        &self,
        round: &mut Round,
        encoding: Encoding,
        doubt: Doubt,
    ) -> Option<Encoding> {
        let mut state = self.lock()?;
        round.refused.push(encoding);
        match (*state, doubt) {
            // Another request found out while this one was on its way.
            (State::Settled(settled), _) if !round.refused.contains(&settled) => Some(settled),
            (State::Settled(_), Doubt::Named) => {
                *state = State::Searching;
                round.candidate()
            }
            (State::Searching, Doubt::Possible | Doubt::Named) => round.candidate(),
            (State::Settled(_), Doubt::Possible) | (_, Doubt::None) => None,
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.state.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Round {
    fn candidate(&self) -> Option<Encoding> {
        CANDIDATES
            .into_iter()
            .find(|candidate| !self.refused.contains(candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::{Doubt, Encoding, Search};
    use Encoding::{Gzip, Identity, Zstd};

    #[test]
    fn the_first_accepted_encoding_is_remembered() {
        let search = Search::auto();
        let mut round = search.round();
        assert_eq!(search.encoding(&round), Zstd);
        assert_eq!(
            search.refused(&mut round, Zstd, Doubt::Possible),
            Some(Gzip)
        );
        assert_eq!(search.encoding(&round), Gzip);
        search.accepted(Gzip);
        search.accepted(Zstd);
        assert_eq!(search.preferred(), Gzip);
    }

    #[test]
    fn if_all_are_refused_the_encoding_is_not_the_cause() {
        let search = Search::auto();
        let mut round = search.round();
        assert_eq!(
            search.refused(&mut round, Zstd, Doubt::Possible),
            Some(Gzip)
        );
        assert_eq!(
            search.refused(&mut round, Gzip, Doubt::Named),
            Some(Identity)
        );
        assert_eq!(search.refused(&mut round, Identity, Doubt::Possible), None);
        assert_eq!(search.preferred(), Zstd);
    }

    #[test]
    fn other_refusals_do_not_search() {
        let search = Search::auto();
        assert_eq!(search.refused(&mut search.round(), Zstd, Doubt::None), None);
    }

    #[test]
    fn after_a_success_only_a_named_encoding_reopens() {
        let search = Search::auto();
        search.accepted(Zstd);
        let mut round = search.round();
        assert_eq!(search.refused(&mut round, Zstd, Doubt::Possible), None);
        let mut round = search.round();
        assert_eq!(search.refused(&mut round, Zstd, Doubt::Named), Some(Gzip));
        search.accepted(Gzip);
        assert_eq!(search.preferred(), Gzip);
    }

    #[test]
    fn a_request_under_way_learns_from_another_one() {
        let search = Search::auto();
        let mut round = search.round();
        assert_eq!(
            search.refused(&mut round, Zstd, Doubt::Possible),
            Some(Gzip)
        );
        search.accepted(Identity);
        assert_eq!(search.encoding(&round), Identity);
        assert_eq!(search.refused(&mut round, Identity, Doubt::Possible), None);
        let mut late = search.round();
        assert_eq!(search.refused(&mut late, Zstd, Doubt::None), Some(Identity));
    }

    #[test]
    fn a_configured_encoding_is_kept() {
        let search = Search::fixed(Gzip);
        assert_eq!(
            search.refused(&mut search.round(), Gzip, Doubt::Named),
            None
        );
        search.accepted(Zstd);
        assert_eq!(search.preferred(), Gzip);
    }
}
