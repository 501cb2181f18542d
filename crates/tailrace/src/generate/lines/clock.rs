//! The time of generated lines: it depends only on the random numbers, never on a real clock.

use super::random::Random;

/// The time of the line being written. The text of the whole second is kept,
/// since thousands of lines share it.
#[derive(Debug)]
pub(super) struct Clock {
    pub(super) now_ns: i64,
    second: i64,
    /// `2026-01-02T03:04:05` of `second`.
    prefix: Vec<u8>,
}

pub(super) const NS_PER_S: i64 = 1_000_000_000;

impl Clock {
    pub(super) fn new(now_ns: i64) -> Clock {
        let mut clock = Clock {
            now_ns,
            second: 0,
            prefix: Vec::new(),
        };
        clock.render_second();
        clock
    }

    pub(super) fn advance(&mut self, random: &mut Random) {
        self.now_ns += 1 + random.below(2_000_000) as i64;
        if self.now_ns.div_euclid(NS_PER_S) != self.second {
            self.render_second();
        }
    }

    fn render_second(&mut self) {
        self.second = self.now_ns.div_euclid(NS_PER_S);
        self.prefix.clear();
        tailrace_model::time::write_rfc3339(self.second * NS_PER_S, &mut self.prefix);
        self.prefix.truncate("2026-01-02T03:04:05".len());
    }

    /// `2026-01-02T03:04:05.678Z`.
    pub(super) fn write_ms(&self, out: &mut Vec<u8>) {
        self.write_fraction(3, out);
    }

    /// `2026-01-02T03:04:05.678901234Z`.
    pub(super) fn write_ns(&self, out: &mut Vec<u8>) {
        self.write_fraction(9, out);
    }

    fn write_fraction(&self, digits: usize, out: &mut Vec<u8>) {
        let mut rest = self.now_ns.rem_euclid(NS_PER_S) as u32;
        let mut fraction = [b'0'; 9];
        for digit in fraction.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&self.prefix);
        out.push(b'.');
        out.extend_from_slice(&fraction[..digits]);
        out.push(b'Z');
    }
}
