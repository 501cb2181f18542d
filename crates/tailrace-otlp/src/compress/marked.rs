//! Which requests are compressed with the help of their marks, and which by libzstd.
//!
//! A request is compressed both ways now and then, and the shorter payload is taken. If that was libzstd's, the next
//! requests of the encoder are libzstd's alone. No clock is read: what is shorter is what was found, and finding it with
//! marks is the cheaper way.

use crate::part::Request;

/// Shorter requests are libzstd's: with them, tables and the first values take too large a part of the payload.
pub(super) const REQUEST_MIN: usize = 48 << 10;
/// Requests from one comparison to the next, as long as marks win.
const COMPARE_EVERY: u32 = 128;
/// Requests that are libzstd's after marks lost once, and at most.
const LOST: u32 = 32;
const LOST_MAX: u32 = 512;
/// A payload so much longer than the last comparison promised is compared, too.
const WORSE: f64 = 1.1;
/// Requests from one such comparison to the next.
const WORSE_EVERY: u32 = 32;

/// What was learned of one encoder's requests.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Requests that libzstd gets before marks are tried again.
    left_to_libzstd: u32,
    /// How many they are after the next loss.
    lost: u32,
    /// Requests with marks since the last comparison.
    since: u32,
    /// The payload's part of the request at the last comparison, if there was one.
    ratio: Option<f64>,
}

impl Choice {
    /// Whether marks are used for a request.
    pub(super) fn takes_marks(&mut self, request: &Request) -> bool {
        if request.marks.is_empty() || request.bytes.len() < REQUEST_MIN {
            return false;
        }
        if self.left_to_libzstd > 0 {
            self.left_to_libzstd -= 1;
            return false;
        }
        true
    }

    /// Whether a request that marks made so short is compressed by libzstd, too.
    pub(super) fn compares(&mut self, request: usize, payload: usize) -> bool {
        let ratio = payload as f64 / request as f64;
        self.since += 1;
        match self.ratio {
            None => true,
            Some(last) if ratio > WORSE * last => self.since >= WORSE_EVERY,
            Some(_) => self.since >= COMPARE_EVERY,
        }
    }

    /// The lengths of both payloads of a request; whether that of marks is the one to take.
    pub(super) fn compared(&mut self, request: usize, marked: usize, libzstd: usize) -> bool {
        self.since = 0;
        if marked <= libzstd {
            self.ratio = Some(marked as f64 / request as f64);
            self.lost = 0;
            return true;
        }
        self.ratio = None;
        self.lost = (2 * self.lost).clamp(LOST, LOST_MAX);
        self.left_to_libzstd = self.lost;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(len: usize) -> Request {
        let mut request = Request {
            bytes: vec![0; len],
            ..Request::default()
        };
        request.marks.end(len);
        request
    }

    #[test]
    fn requests_that_are_short_or_without_marks_are_libzstds() {
        let mut choice = Choice::default();
        assert!(choice.takes_marks(&request(REQUEST_MIN)));
        assert!(!choice.takes_marks(&request(REQUEST_MIN - 1)));
        let mut unmarked = request(REQUEST_MIN);
        unmarked.marks.clear();
        assert!(!choice.takes_marks(&unmarked));
    }

    #[test]
    fn who_loses_waits_longer_each_time() {
        let (mut choice, request) = (Choice::default(), request(REQUEST_MIN));
        let mut waited = Vec::new();
        for _ in 0..6 {
            assert!(choice.compares(1000, 110), "marks are tried beside libzstd");
            assert!(!choice.compared(1000, 110, 109));
            let tries = (0..).take_while(|_| !choice.takes_marks(&request));
            waited.push(tries.count());
        }
        assert_eq!(waited, [32, 64, 128, 256, 512, 512]);
        assert!(choice.compares(1000, 100));
        assert!(choice.compared(1000, 100, 100));
        assert!(choice.takes_marks(&request), "a win ends that");
        assert!(!choice.compares(1000, 100));
    }

    #[test]
    fn who_wins_is_compared_now_and_then_and_when_it_gets_worse() {
        let mut choice = Choice::default();
        assert!(choice.compares(1000, 100) && choice.compared(1000, 100, 200));
        let until = |choice: &mut Choice, payload: usize| {
            (1..).find(|_| choice.compares(1000, payload)).unwrap_or(0)
        };
        assert_eq!(until(&mut choice, 105), 128);
        assert!(choice.compared(1000, 105, 200));
        assert_eq!(until(&mut choice, 300), 32);
        assert!(choice.compared(1000, 300, 400));
        assert_eq!(until(&mut choice, 300), 128);
    }
}
