//! The time that a container runtime writes: RFC 3339 as Go prints it (`time.RFC3339Nano`), exact to the nanosecond.
//!
//! Takes the text alone, gives nanoseconds since the Unix epoch. Only the strict form is a time here: it is also what
//! tells a CRI line from any other.

use chrono::NaiveDate;

/// Nanoseconds since the Unix epoch of `YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM)`.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    let (head, tail) = text.split_first_chunk::<19>()?;
    let [
        _,
        _,
        _,
        _,
        b'-',
        _,
        _,
        b'-',
        _,
        _,
        b'T',
        _,
        _,
        b':',
        _,
        _,
        b':',
        _,
        _,
    ] = head
    else {
        return None;
    };
    let two = |at: usize| two_digits(head[at], head[at + 1]);
    let year = i32::try_from(two(0)? * 100 + two(2)?).ok()?;
    let (fraction_ns, zone) = fraction(tail)?;
    let date = NaiveDate::from_ymd_opt(year, two(5)?, two(8)?)?;
    let local = date
        .and_hms_nano_opt(two(11)?, two(14)?, two(17)?, fraction_ns)?
        .and_utc();
    // Subtracted in 128 bits: the difference may fit where the local time does not.
    let local_ns =
        i128::from(local.timestamp()) * 1_000_000_000 + i128::from(local.timestamp_subsec_nanos());
    i64::try_from(local_ns - i128::from(zone_s(zone)?) * 1_000_000_000).ok()
}

/// The fraction at the start of `tail` in nanoseconds, and what follows it; digits beyond the ninth are cut off.
fn fraction(tail: &[u8]) -> Option<(u32, &[u8])> {
    let [b'.', digits @ ..] = tail else {
        return Some((0, tail));
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let (digits, rest) = digits.split_at(count);
    let padded = digits
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'))
        .take(9);
    (count > 0).then(|| {
        (
            padded.fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')),
            rest,
        )
    })
}

/// Seconds east of UTC.
fn zone_s(zone: &[u8]) -> Option<i32> {
    let (sign, hour, minute) = match zone {
        b"Z" => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, two_digits(*h1, *h2)?, two_digits(*m1, *m2)?),
        [b'-', h1, h2, b':', m1, m2] => (-1, two_digits(*h1, *h2)?, two_digits(*m1, *m2)?),
        _ => return None,
    };
    let seconds = i32::try_from(hour * 3600 + minute * 60).ok()?;
    (hour < 24 && minute < 60).then_some(sign * seconds)
}

fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| u32::from(tens * 10 + ones))
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
