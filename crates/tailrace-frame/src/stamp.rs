//! The time that a container runtime writes: RFC 3339 as Go prints it (`time.RFC3339Nano`), exact to the nanosecond.
//!
//! Only the strict form is a time here: it is also what tells a CRI line from any other. What a time means is read by
//! `tailrace_model::time`, which also takes what loggers write.

use tailrace_model::time;

/// Nanoseconds since the Unix epoch of `YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM)`.
#[inline]
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    time::parse_usual(text).or_else(|| parse_unusual(text))
}

/// A time that is not in UTC, has more than nine digits of a fraction or lies in a year far away.
#[inline(never)]
fn parse_unusual(text: &[u8]) -> Option<i64> {
    let (head, tail) = text.split_first_chunk::<19>()?;
    let digits = match tail {
        [b'.', digits @ ..] => digits,
        _ => &[],
    };
    let fraction_bytes = match digits.iter().take_while(|it| it.is_ascii_digit()).count() {
        0 => 0,
        count => 1 + count,
    };
    let is_zone = matches!(
        tail[fraction_bytes..],
        [b'Z'] | [b'+' | b'-', _, _, b':', _, _]
    );
    let is_strict = head[10] == b'T' && is_zone;
    let text = std::str::from_utf8(text).ok().filter(|_| is_strict)?;
    time::parse_rfc3339(text, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use proptest::prelude::*;

    #[test]
    fn go_times() {
        for (text, ns) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            (
                "2026-01-02T03:04:05.678901234Z",
                Some(1_767_323_045_678_901_234),
            ),
            (
                "2026-01-02T05:04:05.678901234+02:00",
                Some(1_767_323_045_678_901_234),
            ),
            (
                "2026-01-01T21:34:05.5-05:30",
                Some(1_767_323_045_500_000_000),
            ),
            (
                "2026-01-02T03:04:05.6789012349Z",
                Some(1_767_323_045_678_901_234),
            ),
            ("1677-09-21T00:12:43.145224192Z", Some(i64::MIN)),
            ("2262-04-11T23:47:16.854775807Z", Some(i64::MAX)),
            ("2262-04-11T23:47:16.854775808Z", None),
            ("0000-01-01T00:00:00Z", None),
            ("2026-02-29T00:00:00Z", None),
            ("2026-01-02T03:04:60Z", None),
            ("2026-01-02T24:00:00Z", None),
            ("2026-01-02T03:04:05.Z", None),
            ("2026-01-02T03:04:05", None),
            ("2026-01-02T03:04:05z", None),
            ("2026-01-02T03:04:05+0200", None),
            ("2026-01-02T03:04:05+24:00", None),
            ("2026-01-02t03:04:05Z", None),
            ("2026-01-02 03:04:05Z", None),
            ("2026-01-02T03:04:05,5Z", None),
            ("2026-01-02T03:04:05 Z", None),
            ("2026-01-02T03:04:05UTC", None),
            ("2026-01-02T03:04:05+02", None),
            ("2026-01-02T03:04:05.5 +02:00", None),
            ("2026-01-02T03:04:05.5+2:000", None),
            ("1600-01-02T03:04:05Z", None),
            ("", None),
        ] {
            assert_eq!(parse(text.as_bytes()), ns, "{text}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_chrono(
            text in "(19|20|22)[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9](\\.[0-9]{1,12})?(Z|[+-][0-2][0-9]:[0-6][0-9])",
        ) {
            let theirs = DateTime::parse_from_rfc3339(&text).ok();
            let theirs = theirs.filter(|time| time.timestamp_subsec_nanos() < 1_000_000_000);
            prop_assert_eq!(parse(text.as_bytes()), theirs.and_then(|time| time.timestamp_nanos_opt()), "{}", text);
        }
    }
}
