//! Times that follow each other closely, as those of a log's records do.
//!
//! Parses one text after the other as [`parse_usual`] does. Of a time in the same minute as the one before only the
//! seconds are read. Never gives another answer than without the one before.

use super::rfc3339::parse_usual;
use crate::json::eight_digits;

/// Reads times, and keeps the minute of the last.
#[derive(Clone, Debug, Default)]
pub struct UsualTimes {
    /// `YYYY-MM-DDTHH:MM` of the last time, and when that is.
    minute: [u8; MINUTE_LEN],
    minute_ns: Option<i64>,
}

const MINUTE_LEN: usize = "YYYY-MM-DDTHH:MM".len();

impl UsualTimes {
    /// As [`parse_usual`].
    #[inline]
    pub fn parse(&mut self, text: &[u8]) -> Option<i64> {
        match text.split_first_chunk::<MINUTE_LEN>() {
            Some((minute, [b':', rest @ ..])) if *minute == self.minute => {
                match (self.minute_ns, milliseconds(rest)) {
                    (Some(minute_ns), Some(ns)) => Some(minute_ns + ns),
                    _ => parse_usual(text),
                }
            }
            Some((minute, _)) => self.other_minute(minute, text),
            None => None,
        }
    }

    #[inline(never)]
    fn other_minute(&mut self, minute: &[u8; MINUTE_LEN], text: &[u8]) -> Option<i64> {
        let mut start = *b"YYYY-MM-DDTHH:MM:00Z";
        start[..MINUTE_LEN].copy_from_slice(minute);
        let parsed = parse_usual(text)?;
        (self.minute, self.minute_ns) = (*minute, parse_usual(&start));
        Some(parsed)
    }
}

/// Nanoseconds of `SS.fffZ`.
#[inline]
fn milliseconds(rest: &[u8]) -> Option<i64> {
    const SEPARATORS: u64 = u64::from_le_bytes(*b"\0\0.\0\0\0Z\0");
    const PLACES: u64 = u64::from_le_bytes([0, 0, 0xff, 0, 0, 0, 0xff, 0xff]);
    const ZEROS: u64 = u64::from_le_bytes([0, 0, b'0', 0, 0, 0, b'0', b'0']);
    let rest: &[u8; 7] = rest.try_into().ok()?;
    let (low, high) = (rest.first_chunk::<4>()?, rest.last_chunk::<4>()?);
    let text = u64::from(u32::from_le_bytes(*low)) | u64::from(u32::from_le_bytes(*high)) << 24;
    if text & PLACES != SEPARATORS {
        return None;
    }
    // SS0fff00
    let number = eight_digits(text & !PLACES | ZEROS)? as i64;
    let (second, fraction) = (number / 1_000_000, number % 1_000_000 / 100);
    (second < 60).then_some((second * 1000 + fraction) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    #[test]
    fn the_minute_before_is_only_used_for_its_own_seconds() {
        let mut times = UsualTimes::default();
        for text in [
            "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0:05.678Z",
            "2026-01-02T03:04:05.678Z",
            "2026-01-02T03:04:05.678Z",
            "2026-01-02T03:04:59.999Z",
            "2026-01-02T03:04:60.000Z",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.678901Z",
            "2026-01-02T03:04:05,678Z",
            "2026-01-02T03:04:05.6780",
            "2026-01-02T03:04:05.67xZ",
            "2026-01-02T03:04.05.678Z",
            "2026-01-02T03:05:05.678Z",
            "2026-13-02T03:05:05.678Z",
            "2026-13-02T03:05:05.678Z",
            "1600-01-02T03:05:05.678Z",
            "1600-01-02T03:05:05.678Z",
            "2026-01-02T03:05",
            "",
        ] {
            assert_eq!(
                times.parse(text.as_bytes()),
                parse_usual(text.as_bytes()),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn answers_do_not_depend_on_the_time_before(
            texts in prop::collection::vec("2026-0[1-3]-(01|31)T(00|23|24):0[09]:[0-6][0-9][.:,]([0-9]{3}|[0-9]{1,9})Z", 1..20),
        ) {
            let mut times = UsualTimes::default();
            for text in texts {
                prop_assert_eq!(times.parse(text.as_bytes()), parse_usual(text.as_bytes()), "{}", text);
            }
        }
    }
}
