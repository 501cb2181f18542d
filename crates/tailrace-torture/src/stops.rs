//! When the agent is stopped, how, and what each stop made it repeat. Plain bookkeeping; it sends no
//! signal.

use std::time::{Duration, Instant};

use super::rng::Rng;

/// How a stop is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Kill,
    Terminate,
}

/// What one stop made the agent do again.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) how: How,
    /// Bytes of records that arrived again between this stop and the next, by pipeline.
    pub(crate) repeated_bytes: Vec<u64>,
    /// `limits.replay` and what arrived since the last checkpoint, by pipeline.
    pub(crate) bound_bytes: Vec<u64>,
    /// False when no checkpoint could be written before.
    pub(crate) bounded: bool,
}

impl Stop {
    /// What each pipeline repeated, and its bound.
    pub(crate) fn repeats(&self) -> impl Iterator<Item = (u64, u64)> {
        let bounds = self.bound_bytes.iter().copied();
        self.repeated_bytes.iter().copied().zip(bounds)
    }
}

/// The time of the next stop: at once when enough has arrived, at the latest when it is due.
pub(crate) struct Next {
    pub(crate) how: How,
    not_before: Instant,
    due: Instant,
    arrived: u64,
}

/// The longest an agent lives between two stops.
const LIFE_MAX_MS: u64 = 4000;

impl Next {
    /// Draws it. `arrived` counts the records that have arrived by now.
    pub(crate) fn draw(rng: &mut Rng, terminate_percent: u64, arrived: u64) -> Next {
        let how = if rng.chance(terminate_percent) {
            How::Terminate
        } else {
            How::Kill
        };
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        match rng.between(0, 10) {
            // While it starts.
            0..2 => {
                let due = at(rng.between(5, 400));
                Next {
                    how,
                    not_before: due,
                    due,
                    arrived: u64::MAX,
                }
            }
            // In mid-stream.
            2..8 => Next {
                how,
                not_before: at(rng.between(0, 300)),
                due: at(LIFE_MAX_MS),
                arrived: arrived + rng.between(1, 8000),
            },
            // At any time.
            _ => {
                let due = at(rng.between(300, LIFE_MAX_MS));
                Next {
                    how,
                    not_before: due,
                    due,
                    arrived: u64::MAX,
                }
            }
        }
    }

    pub(crate) fn is_due(&self, arrived: u64) -> bool {
        let now = Instant::now();
        now >= self.due || (now >= self.not_before && arrived >= self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, Rng};

    #[test]
    fn some_stops_wait_for_arrivals_and_all_come() {
        let mut rng = Rng::fork(1, 1);
        let draws: Vec<Next> = (0..50).map(|_| Next::draw(&mut rng, 25, 100)).collect();
        let waiting = draws.iter().filter(|next| next.arrived < u64::MAX).count();
        assert!((10..45).contains(&waiting), "{waiting}");
        assert!(draws.iter().all(|next| next.arrived > 100));
        assert!(draws.iter().all(|next| next.not_before <= next.due));
    }
}
