//! The search for a compression that an endpoint accepts (D12). All deliveries to one endpoint share it. From the outcomes
//! of requests it selects the compression of the next one; it never compresses.
//!
//! Until one request was accepted, a refusal that may be about the compression causes the same request to be sent again in
//! the next of zstd, gzip and identity. The first accepted one is remembered. If all are refused, the compression is not
//! the cause. After a success only an answer that names the compression restarts the search.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::delivery::outcome::Doubt;
use tailrace_otlp::Compression;

const CANDIDATES: [Compression; 3] = [Compression::Zstd, Compression::Gzip, Compression::None];

/// What is known about one endpoint.
#[derive(Debug)]
pub struct CompressionSearch {
    /// `None` if the configuration names the compression: there is no search.
    state: Option<Mutex<State>>,
    fixed: Compression,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Searching,
    Found(Compression),
}

/// The compressions in which one request was refused since it last waited.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    refused: Vec<Compression>,
}

impl CompressionSearch {
    /// `compression: auto`.
    pub fn auto() -> CompressionSearch {
        CompressionSearch {
            state: Some(Mutex::new(State::Searching)),
            fixed: CANDIDATES[0],
        }
    }

    /// Always this compression.
    pub const fn fixed(compression: Compression) -> CompressionSearch {
        CompressionSearch {
            state: None,
            fixed: compression,
        }
    }

    /// The compression for new requests.
    pub fn preferred(&self) -> Compression {
        self.compression(&self.round())
    }

    pub(crate) fn round(&self) -> Round {
        Round {
            refused: Vec::new(),
        }
    }

    /// The compression for the next attempt of a request: the one that the endpoint is known to accept, else the
    /// first candidate that it has not refused.
    pub(crate) fn compression(&self, round: &Round) -> Compression {
        let Some(state) = self.lock() else {
            return self.fixed;
        };
        match *state {
            State::Found(compression) => compression,
            State::Searching => round.candidate().unwrap_or(CANDIDATES[0]),
        }
    }

    /// Records that a request was accepted in `compression`.
    pub(crate) fn accepted(&self, compression: Compression) {
        if let Some(mut state) = self.lock()
            && matches!(*state, State::Searching)
        {
            *state = State::Found(compression);
        }
    }

    /// Records that a request was refused in `compression`. Returns the compression to retry it in at once, or `None` if the
    /// compression is not the cause.
    pub(crate) fn refused(
        &self,
        round: &mut Round,
        compression: Compression,
        doubt: Doubt,
    ) -> Option<Compression> {
        let mut state = self.lock()?;
        round.refused.push(compression);
        match (*state, doubt) {
            // Another request found it while this one was in flight.
            (State::Found(found), _) if !round.refused.contains(&found) => Some(found),
            (State::Found(_), Doubt::Named) => {
                *state = State::Searching;
                round.candidate()
            }
            (State::Searching, Doubt::Possible | Doubt::Named) => round.candidate(),
            (State::Found(_), Doubt::Possible) | (_, Doubt::None) => None,
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.state.as_ref()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Round {
    fn candidate(&self) -> Option<Compression> {
        CANDIDATES
            .into_iter()
            .find(|candidate| !self.refused.contains(candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::{Compression, CompressionSearch, Doubt};
    use Compression::{Gzip, None as Uncompressed, Zstd};

    #[test]
    fn the_first_accepted_compression_is_remembered() {
        let search = CompressionSearch::auto();
        let mut round = search.round();
        assert_eq!(search.compression(&round), Zstd);
        assert_eq!(
            search.refused(&mut round, Zstd, Doubt::Possible),
            Some(Gzip)
        );
        assert_eq!(search.compression(&round), Gzip);
        search.accepted(Gzip);
        search.accepted(Zstd);
        assert_eq!(search.preferred(), Gzip);
    }

    #[test]
    fn if_all_are_refused_the_compression_is_not_the_cause() {
        let search = CompressionSearch::auto();
        let mut round = search.round();
        assert_eq!(
            search.refused(&mut round, Zstd, Doubt::Possible),
            Some(Gzip)
        );
        assert_eq!(
            search.refused(&mut round, Gzip, Doubt::Named),
            Some(Uncompressed)
        );
        assert_eq!(
            search.refused(&mut round, Uncompressed, Doubt::Possible),
            None
        );
        assert_eq!(search.preferred(), Zstd);
    }

    #[test]
    fn other_refusals_do_not_search() {
        let search = CompressionSearch::auto();
        assert_eq!(search.refused(&mut search.round(), Zstd, Doubt::None), None);
    }

    #[test]
    fn after_a_success_only_a_named_compression_reopens() {
        let search = CompressionSearch::auto();
        search.accepted(Zstd);
        let mut round = search.round();
        assert_eq!(search.refused(&mut round, Zstd, Doubt::Possible), None);
        let mut round = search.round();
        assert_eq!(search.refused(&mut round, Zstd, Doubt::Named), Some(Gzip));
        search.accepted(Gzip);
        assert_eq!(search.preferred(), Gzip);
    }

    #[test]
    fn a_request_in_flight_learns_from_another_one() {
        let search = CompressionSearch::auto();
        let mut round = search.round();
        assert_eq!(
            search.refused(&mut round, Zstd, Doubt::Possible),
            Some(Gzip)
        );
        search.accepted(Uncompressed);
        assert_eq!(search.compression(&round), Uncompressed);
        assert_eq!(
            search.refused(&mut round, Uncompressed, Doubt::Possible),
            None
        );
        let mut late = search.round();
        assert_eq!(
            search.refused(&mut late, Zstd, Doubt::None),
            Some(Uncompressed)
        );
    }

    #[test]
    fn a_configured_compression_is_kept() {
        let search = CompressionSearch::fixed(Gzip);
        assert_eq!(
            search.refused(&mut search.round(), Gzip, Doubt::Named),
            None
        );
        search.accepted(Zstd);
        assert_eq!(search.preferred(), Gzip);
    }
}
