//! The logs whose metadata is awaited, and since when. The caller passes the time; no clock is read. How
//! many are kept after they were given up is bounded.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::pod_log::PodLog;

/// Of those given up, the oldest beyond this many are forgotten: if asked for again, they are awaited again.
const GIVEN_UP_MAX: usize = 4096;

pub(crate) struct Asked {
    wait: Duration,
    first: HashMap<PodLog, Instant>,
    /// In the order they were first asked for; all wait equally long. Some may have an answer by now.
    awaited: VecDeque<(Instant, PodLog)>,
    given_up: VecDeque<PodLog>,
}

impl Asked {
    pub(crate) fn new(wait: Duration) -> Asked {
        Asked {
            wait,
            first: HashMap::new(),
            awaited: VecDeque::new(),
            given_up: VecDeque::new(),
        }
    }

    /// Whether there is still time to wait for this one. Starts its time when it is new.
    pub(crate) fn awaits(&mut self, log: &PodLog, now: Instant) -> bool {
        if self.wait.is_zero() {
            return false;
        }
        if let Some(first) = self.first.get(log) {
            return now < *first + self.wait;
        }
        self.first.insert(log.clone(), now);
        self.awaited.push_back((now + self.wait, log.clone()));
        true
    }

    /// Its answer is there.
    pub(crate) fn answered(&mut self, log: &PodLog) {
        self.first.remove(log);
    }

    /// When [`Asked::expire`] has something to do next.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.awaited.front().map(|(until, _)| *until)
    }

    /// How many are awaited.
    pub(crate) fn len(&self) -> usize {
        let open = self.awaited.iter();
        open.filter(|(_, log)| self.first.contains_key(log)).count()
    }

    /// Gives up those whose time is over. True if there were any.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((until, _)) = self.awaited.front()
            && *until <= now
        {
            let Some((_, log)) = self.awaited.pop_front() else {
                break;
            };
            if self.first.contains_key(&log) {
                any = true;
                self.given_up.push_back(log);
            }
        }
        while self.given_up.len() > GIVEN_UP_MAX {
            if let Some(log) = self.given_up.pop_front() {
                self.first.remove(&log);
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(5);

    fn log(number: usize) -> PodLog {
        PodLog {
            namespace: "n".to_owned(),
            pod: "p".to_owned(),
            uid: number.to_string(),
            container: "c".to_owned(),
            restart_count: None,
        }
    }

    #[test]
    fn each_waits_once() {
        let mut asked = Asked::new(WAIT);
        let start = Instant::now();
        assert!(asked.awaits(&log(1), start));
        assert!(asked.awaits(&log(2), start + WAIT / 2));
        assert_eq!(asked.next(), Some(start + WAIT));
        assert!(asked.awaits(&log(1), start + WAIT - Duration::from_nanos(1)));
        assert!(!asked.expire(start + WAIT - Duration::from_nanos(1)));
        assert!(!asked.awaits(&log(1), start + WAIT));
        assert!(asked.expire(start + WAIT));
        assert_eq!(asked.len(), 1);
        assert!(!asked.awaits(&log(1), start + WAIT * 100));
        // The second has its answer in time, so nobody need ask again.
        asked.answered(&log(2));
        assert_eq!(asked.len(), 0);
        assert!(!asked.expire(start + WAIT * 2));
        assert_eq!(asked.next(), None);
    }

    #[test]
    fn no_wait_is_no_wait() {
        let mut asked = Asked::new(Duration::ZERO);
        assert!(!asked.awaits(&log(1), Instant::now()));
    }

    #[test]
    fn the_given_up_are_bounded() {
        let mut asked = Asked::new(WAIT);
        let start = Instant::now();
        for number in 0..GIVEN_UP_MAX + 10 {
            asked.awaits(&log(number), start);
        }
        asked.expire(start + WAIT);
        assert_eq!(asked.first.len(), GIVEN_UP_MAX);
        assert_eq!(asked.given_up.len(), GIVEN_UP_MAX);
        let later = start + WAIT * 2;
        assert!(asked.awaits(&log(0), later), "the oldest is forgotten");
        assert!(!asked.awaits(&log(10), later), "the eleventh is not");
    }
}
