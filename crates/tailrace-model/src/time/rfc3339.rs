//! RFC 3339 dates and times, and what loggers write nearly like them.
//!
//! Parses text of the fixed form `YYYY-MM-DDTHH:MM:SS`, then a fraction, then a zone, to nanoseconds, and writes
//! them. Accepted beyond the letter of RFC 3339, because loggers write it: a space for the `T`, a comma for the point
//! (Python, Java), no zone, a space before the zone, zones `+0200`, `+02` and `UTC`. Anything else is no time.

use crate::json::eight_digits;

/// Nanoseconds since the epoch of a date and time. Without a zone it is taken to be `offset_s` seconds east of UTC.
/// Digits of the fraction beyond the ninth are cut off.
pub fn parse_rfc3339(text: &str, offset_s: i32) -> Option<i64> {
    let bytes = text.as_bytes();
    let (head, tail) = bytes.split_first_chunk::<19>()?;
    let day = parse_day(head)?;
    let second = parse_second_of_day(head)?;
    let (fraction_ns, zone) = parse_fraction(tail)?;
    let offset_s = parse_zone(zone, offset_s)?;
    let seconds = day * SECONDS_PER_DAY + second - i64::from(offset_s);
    // In 128 bits, because the last seconds that fit may not fit without their fraction.
    let ns = i128::from(seconds) * i128::from(NS_PER_SECOND) + i128::from(fraction_ns);
    i64::try_from(ns).ok()
}

/// The time of `YYYY-MM-DDTHH:MM:SSZ`, perhaps with 1 to 9 digits of a fraction, as most loggers write it; `None` says
/// nothing about other text: it is to be given to [`parse_rfc3339`].
#[inline]
pub fn parse_usual(text: &[u8]) -> Option<i64> {
    // `YYYY-MM-` and `HH:MM:SS` are eight digits, once the separators are made zeros.
    const DASHES: u64 = u64::from_le_bytes(*b"\0\0\0\0-\0\0-");
    const COLONS: u64 = u64::from_le_bytes(*b"\0\0:\0\0:\0\0");
    let (head, tail) = text.split_first_chunk::<19>()?;
    let date = separated(*head.first_chunk()?, DASHES)?;
    let clock = separated(*head.last_chunk()?, COLONS)?;
    let (year, month) = ((date / 10_000) as i64, (date / 10 % 100) as i64);
    let (hour, minute, second) = (clock / 1_000_000, clock / 1_000 % 100, clock % 100);
    let day = two(head, 8)?;
    let exists = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    // Years that fit whatever the fraction is.
    let fits = (1678..=2261).contains(&year) && hour < 24 && minute < 60 && second < 60;
    let fraction_ns = match tail {
        b"Z" => 0,
        [b'.', digits @ .., b'Z'] => usual_fraction(digits)?,
        _ => return None,
    };
    if !exists || !fits || head[10] != b'T' {
        return None;
    }
    let second = (hour * 3600 + minute * 60 + second) as i64;
    let seconds = day_of_date(year, month, day) * SECONDS_PER_DAY + second;
    Some(seconds * NS_PER_SECOND + fraction_ns)
}

/// The number that digits and separators are, a zero for each separator. `separators` holds zero where a digit stands.
#[inline]
fn separated(text: [u8; 8], separators: u64) -> Option<u64> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // 0xff where a separator stands.
    let places = ((separators >> 5) & ONES) * 0xff;
    let text = u64::from_le_bytes(text);
    if text & places != separators {
        return None;
    }
    eight_digits(text & !places | (ONES * b'0' as u64) & places)
}

/// Nanoseconds of 1 to 9 digits.
#[inline]
fn usual_fraction(digits: &[u8]) -> Option<i64> {
    const POWERS: [i64; 10] = [
        1_000_000_000,
        100_000_000,
        10_000_000,
        1_000_000,
        100_000,
        10_000,
        1_000,
        100,
        10,
        1,
    ];
    let unit = *POWERS.get(digits.len()).filter(|_| !digits.is_empty())?;
    let (number, rest) = match digits.split_first_chunk() {
        Some((eight, rest)) => (eight_digits(u64::from_le_bytes(*eight))? as i64, rest),
        None => (0, digits),
    };
    let number = rest.iter().try_fold(number, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + i64::from(digit))
    })?;
    Some(number * unit)
}

/// Appends `2026-01-02T03:04:05.678901234Z`: UTC, the fraction with as many of 0, 3, 6 or 9 digits as it needs.
pub fn write_rfc3339(ns: i64, out: &mut Vec<u8>) {
    let seconds = ns.div_euclid(NS_PER_SECOND);
    let fraction = ns.rem_euclid(NS_PER_SECOND);
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    let (year, month, day) = date_of_day(seconds.div_euclid(SECONDS_PER_DAY));
    let mut text = *b"0000-00-00T00:00:00.000000000Z";
    for (at, width, number) in [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, second / 3600),
        (14, 2, second / 60 % 60),
        (17, 2, second % 60),
        (20, 9, fraction),
    ] {
        write_digits(number, &mut text[at..at + width]);
    }
    let end = if fraction == 0 {
        19
    } else if fraction % 1_000_000 == 0 {
        23
    } else if fraction % 1_000 == 0 {
        26
    } else {
        29
    };
    text[end] = b'Z';
    out.extend_from_slice(&text[..=end]);
}

const NS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// Days since the epoch of `YYYY-MM-DD`.
fn parse_day(head: &[u8; 19]) -> Option<i64> {
    let year = two(head, 0)? * 100 + two(head, 2)?;
    let month = two(head, 5)?;
    let day = two(head, 8)?;
    let separated = head[4] == b'-' && head[7] == b'-' && matches!(head[10], b'T' | b't' | b' ');
    let exists = (1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month);
    (separated && exists).then(|| day_of_date(year, month, day))
}

/// Seconds since midnight of `HH:MM:SS`.
fn parse_second_of_day(head: &[u8; 19]) -> Option<i64> {
    let (hour, minute, second) = (two(head, 11)?, two(head, 14)?, two(head, 17)?);
    let separated = head[13] == b':' && head[16] == b':';
    (separated && hour < 24 && minute < 60 && second < 60)
        .then(|| hour * 3600 + minute * 60 + second)
}

/// The fraction that may stand at the start of `tail`, in nanoseconds, and what follows it.
fn parse_fraction(tail: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.' | b',', digits @ ..] = tail else {
        return Some((0, tail));
    };
    let count = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if count == 0 {
        return None;
    }
    let (digits, rest) = digits.split_at(count);
    let padded = digits
        .iter()
        .copied()
        .chain(std::iter::repeat(b'0'))
        .take(9);
    Some((
        padded.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')),
        rest,
    ))
}

/// Seconds east of UTC of a zone, `default_s` if there is none.
fn parse_zone(zone: &[u8], default_s: i32) -> Option<i32> {
    let zone = match zone {
        [] => return Some(default_s),
        [b' ', rest @ ..] => rest,
        _ => zone,
    };
    let (sign, hour, minute) = match zone {
        b"Z" | b"z" | b"UTC" => return Some(0),
        [sign, h1, h2, b':', m1, m2] | [sign, h1, h2, m1, m2] => (sign, [*h1, *h2], [*m1, *m2]),
        [sign, h1, h2] => (sign, [*h1, *h2], *b"00"),
        _ => return None,
    };
    let (hour, minute) = (two(&hour, 0)?, two(&minute, 0)?);
    if hour > 23 || minute > 59 {
        return None;
    }
    let seconds = i32::try_from(hour * 3600 + minute * 60).ok()?;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// The number that the two digits at `at` are.
fn two<const N: usize>(bytes: &[u8; N], at: usize) -> Option<i64> {
    let (tens, ones) = (
        bytes[at].wrapping_sub(b'0'),
        bytes[at + 1].wrapping_sub(b'0'),
    );
    (tens < 10 && ones < 10).then(|| i64::from(tens * 10 + ones))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since the epoch of a date of the proleptic Gregorian calendar. Years are counted from March, so that the leap
/// day is the last of its year; 400 such years (an era) always have 146,097 days.
fn day_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_EPOCH
}

/// The inverse of [`day_of_date`].
fn date_of_day(day: i64) -> (i64, i64, i64) {
    let day = day + DAYS_BEFORE_EPOCH;
    let era = day.div_euclid(DAYS_PER_ERA);
    let day_of_era = day.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (
        year,
        month,
        day_of_year - (153 * month_from_march + 2) / 5 + 1,
    )
}

const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_EPOCH: i64 = 719_468;

/// Writes the last digits of `number`, which is not negative, over all of `out`.
fn write_digits(mut number: i64, out: &mut [u8]) {
    for byte in out.iter_mut().rev() {
        *byte = b'0' + u8::try_from(number % 10).unwrap_or(0);
        number /= 10;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use chrono::DateTime;
    use proptest::prelude::*;

    fn written(ns: i64) -> String {
        let mut out = Vec::new();
        write_rfc3339(ns, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_loggers_write() {
        let ns = 1_767_323_045_678_901_234;
        for text in [
            "2026-01-02T03:04:05.678901234Z",
            "2026-01-02t03:04:05.678901234z",
            "2026-01-02 03:04:05.678901234Z",
            "2026-01-02T03:04:05,678901234Z",
            "2026-01-02T03:04:05.6789012349999Z",
            "2026-01-02T05:04:05.678901234+02:00",
            "2026-01-02T05:04:05.678901234+0200",
            "2026-01-02T05:04:05.678901234+02",
            "2026-01-01 21:34:05.678901234 -0530",
            "2026-01-02 03:04:05.678901234 UTC",
            "2026-01-02T03:04:05.678901234-00:00",
        ] {
            assert_eq!(parse_rfc3339(text, 7), Some(ns), "{text}");
        }
        assert_eq!(parse_rfc3339("2026-01-02T03:04:05.678901234", 0), Some(ns));
        assert_eq!(
            parse_rfc3339("2026-01-02 05:04:05.678901234", 7200),
            Some(ns)
        );
    }

    #[test]
    fn what_is_no_time() {
        for text in [
            "",
            "2026-01-02",
            "2026-01-02T03:04",
            "2026-01-02T03:04Z",
            "2026-1-02T03:04:05Z",
            "2026-01-02T03:04:05.Z",
            "2026-01-02T03:04:05z ",
            "2026-01-02T03:04:05  Z",
            "2026-01-02T03:04:05 ",
            "2026-01-02T03:04:60Z",
            "2026-01-02T24:00:00Z",
            "2026-01-02T03:60:05Z",
            "2026-00-02T03:04:05Z",
            "2026-13-02T03:04:05Z",
            "2026-01-00T03:04:05Z",
            "2026-01-32T03:04:05Z",
            "2026-02-29T03:04:05Z",
            "1900-02-29T03:04:05Z",
            "2026-04-31T03:04:05Z",
            "2026/01/02T03:04:05Z",
            "2026-01-02_03:04:05Z",
            "2026-01-02T03-04-05Z",
            "2026-01-02T03:04:05+24:00",
            "2026-01-02T03:04:05+02:60",
            "2026-01-02T03:04:05+2",
            "2026-01-02T03:04:05*02",
            "2026-01-02T03:04:05+02:0",
            "2026-01-02T03:04:05PST",
            "2026-01-02T03:04:0:Z",
            "2026-01-02T03:04:0/Z",
            "+026-01-02T03:04:05Z",
            "１026-01-02T03:04:05",
            "0000-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "1677-09-21T00:12:43.145224191Z",
            "2262-04-11T23:47:16.854775808Z",
        ] {
            assert_eq!(parse_rfc3339(text, 0), None, "{text:?}");
        }
    }

    #[test]
    fn the_usual_layouts_are_read_the_quick_way() {
        for (text, ns) in [
            ("2026-01-02T03:04:05Z", 0),
            ("2026-01-02T03:04:05.6Z", 600_000_000),
            ("2026-01-02T03:04:05.678Z", 678_000_000),
            ("2026-01-02T03:04:05.67890123Z", 678_901_230),
            ("2026-01-02T03:04:05.678901234Z", 678_901_234),
        ] {
            assert_eq!(
                parse_usual(text.as_bytes()),
                Some(1_767_323_045_000_000_000 + ns),
                "{text}"
            );
        }
    }

    #[test]
    fn the_whole_range_is_exact() {
        assert_eq!(
            parse_rfc3339("1677-09-21T00:12:43.145224192Z", 0),
            Some(i64::MIN)
        );
        assert_eq!(
            parse_rfc3339("2262-04-11T23:47:16.854775807Z", 0),
            Some(i64::MAX)
        );
        assert_eq!(parse_rfc3339("1970-01-01T00:00:00Z", 0), Some(0));
        assert_eq!(parse_rfc3339("1969-12-31T23:59:59.999999999Z", 0), Some(-1));
        assert!(parse_rfc3339("2024-02-29T00:00:00Z", 0).is_some());
        assert!(parse_rfc3339("2000-02-29T00:00:00Z", 0).is_some());
    }

    #[test]
    fn fractions_are_written_in_groups_of_three() {
        for (ns, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (500_000_000, "1970-01-01T00:00:00.500Z"),
            (120_000, "1970-01-01T00:00:00.000120Z"),
            (1, "1970-01-01T00:00:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
            (i64::MIN, "1677-09-21T00:12:43.145224192Z"),
            (i64::MAX, "2262-04-11T23:47:16.854775807Z"),
        ] {
            assert_eq!(written(ns), text);
        }
    }

    /// A text of the right shape whose fields may be out of range.
    fn near_times() -> impl Strategy<Value = String> {
        let fraction = prop_oneof![Just(String::new()), "[.][0-9]{0,12}"];
        let zone = prop_oneof![
            Just("Z".to_owned()),
            Just("z".to_owned()),
            "[+-][0-2][0-9]:[0-6][0-9]"
        ];
        ("(0000|16[67][0-9]|19[0-9]{2}|20[0-9]{2}|226[0-9]|[0-9]{4})", 0..14, 0..33, "[Tt ]", 0..26, 0..62, 0..62, fraction, zone)
            .prop_map(|(year, month, day, t, hour, minute, second, fraction, zone)| {
                format!("{year}-{month:02}-{day:02}{t}{hour:02}:{minute:02}:{second:02}{fraction}{zone}")
            })
    }

    /// What chrono says, without the leap seconds and the spaces within a fraction that it accepts.
    fn chrono_says(text: &str) -> Option<i64> {
        if text[11..].contains(' ') {
            return None;
        }
        let time = DateTime::parse_from_rfc3339(text).ok()?;
        (time.timestamp_subsec_nanos() < 1_000_000_000).then(|| time.timestamp_nanos_opt())?
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        #[test]
        fn reading_agrees_with_chrono(text in near_times()) {
            prop_assert_eq!(parse_rfc3339(&text, 99), chrono_says(&text), "{}", text);
            if let Some(ns) = parse_usual(text.as_bytes()) {
                prop_assert_eq!(chrono_says(&text), Some(ns), "{}", text);
            }
        }

        #[test]
        fn damaged_text_agrees_with_chrono(text in near_times(), at in 0usize..40, byte in "[-+:.TZz0-9 x]") {
            let at = at % text.len();
            let damaged = format!("{}{byte}{}", &text[..at], &text[at + 1..]);
            let ours = parse_rfc3339(&damaged, 0);
            if let Some(ns) = parse_usual(damaged.as_bytes()) {
                prop_assert_eq!(ours, Some(ns), "{}", damaged);
            }
            match chrono_says(&damaged) {
                Some(ns) => prop_assert_eq!(ours, Some(ns), "{}", damaged),
                // Only the layouts that are accepted on purpose may pass, and they mean their strict spelling.
                None => prop_assert_eq!(ours, strict(&damaged).as_deref().and_then(chrono_says), "{}", damaged),
            }
        }

        #[test]
        fn any_text_is_survived(text in ".{0,40}") {
            let _ = parse_rfc3339(&text, 0);
            let _ = parse_usual(text.as_bytes());
        }

        #[test]
        fn writing_is_read_back_and_agrees_with_chrono(ns in any::<i64>(), coarse in 0u32..10) {
            let unit = 10i64.pow(coarse);
            let ns = ns / unit * unit;
            let text = written(ns);
            prop_assert_eq!(parse_rfc3339(&text, 0), Some(ns));
            let chrono = DateTime::from_timestamp_nanos(ns);
            prop_assert_eq!(&text, &chrono.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true));
        }
    }

    /// The RFC 3339 spelling of the extra layouts that one damaged byte can make: no zone, a space before it.
    fn strict(text: &str) -> Option<String> {
        let (head, tail) = text.split_at_checked(19)?;
        let digits = tail.len()
            - tail
                .trim_start_matches(|c: char| c == '.' || c.is_ascii_digit())
                .len();
        let (fraction, zone) = tail.split_at(digits);
        let zone = match zone
            .strip_prefix(' ')
            .filter(|zone| !zone.starts_with(|c: char| c.is_ascii_digit()))
            .unwrap_or(zone)
        {
            "" if zone.is_empty() => "Z".to_owned(),
            rest if rest.len() == 5 && !rest.contains(':') => {
                format!("{}:{}", &rest[..3], &rest[3..])
            }
            rest => rest.to_owned(),
        };
        Some(format!("{head}{fraction}{zone}"))
    }
}
