//! Durations (`500ms`, `1h30m`) and sizes (`64KiB`, `1GB`): text to numbers and back. Pure.

use std::time::Duration;

/// Reads a size in bytes: a whole number with `B`, `KiB`, `MiB`, `GiB`, `TiB` (1024) or `KB`, `MB`, `GB`,
/// `TB` (1000), or without a unit. A fraction is fine where whole bytes come out (`3.5MiB`).
pub fn parse_size(text: &str) -> Option<u64> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim_start() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        _ => return None,
    };
    scaled(number, factor)
}

/// Writes a size with the largest binary unit that leaves a whole number.
pub fn write_size(bytes: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

/// Reads a duration: numbers with `ms`, `s`, `m`, `h` or `d`, the largest unit first (`1h30m`, `1.5s`).
/// A bare `0` is one too; other numbers need a unit.
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total_ms: u64 = 0;
    let mut previous = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, after) = after.split_at(
            after
                .find(|c: char| !c.is_ascii_alphabetic())
                .unwrap_or(after.len()),
        );
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        if factor >= previous {
            return None;
        }
        previous = factor;
        total_ms = total_ms.checked_add(scaled(number, factor)?)?;
        rest = after;
    }
    (previous != u64::MAX).then(|| Duration::from_millis(total_ms))
}

/// Writes a duration the way [`parse_duration`] reads it; nothing below a millisecond.
pub fn write_duration(duration: Duration) -> String {
    let mut left = duration.as_millis();
    let mut text = String::new();
    for (factor, unit) in [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
        (1, "ms"),
    ] {
        if left >= factor {
            text.push_str(&format!("{}{unit}", left / factor));
            left %= factor;
        }
    }
    if text.is_empty() {
        "0s".to_owned()
    } else {
        text
    }
}

/// `number * factor` for a decimal number, where that is whole and fits.
fn scaled(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    let digits = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse::<u64>().ok()
        }
    };
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let part = u128::from(digits(fraction)?) * u128::from(factor);
    if !part.is_multiple_of(scale) {
        return None;
    }
    digits(whole)?
        .checked_mul(factor)?
        .checked_add(u64::try_from(part / scale).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes() {
        let cases = [
            ("0", Some(0)),
            ("1", Some(1)),
            ("12B", Some(12)),
            ("4MiB", Some(4 << 20)),
            ("4 MiB", Some(4 << 20)),
            ("64KiB", Some(64 << 10)),
            ("1GB", Some(1_000_000_000)),
            ("3.5MiB", Some(3_670_016)),
            ("0.1KB", Some(100)),
            ("0.1KiB", None),
            ("", None),
            (".5MiB", None),
            ("5.MiB", None),
            ("1.2.3MiB", None),
            ("-1", None),
            ("1mib", None),
            ("1M", None),
            ("MiB", None),
            ("1MiBx", None),
            ("18446744073709551616", None),
            ("99999999TiB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_size(text), expected, "{text}");
        }
    }

    #[test]
    fn durations() {
        let cases = [
            ("10s", Some(10_000)),
            ("500ms", Some(500)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1_500)),
            ("2d", Some(172_800_000)),
            ("1m1s1ms", Some(61_001)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("", None),
            ("10", None),
            ("s", None),
            ("1s1m", None),
            ("1s1s", None),
            ("1 s", None),
            ("-1s", None),
            ("1.0001s", None),
            ("10sec", None),
            ("99999999999999999999s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parse_duration(text),
                expected.map(Duration::from_millis),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(bytes: u64, ms in 0..u64::MAX / 2) {
            prop_assert_eq!(parse_size(&write_size(bytes)), Some(bytes));
            let duration = Duration::from_millis(ms);
            prop_assert_eq!(parse_duration(&write_duration(duration)), Some(duration));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,12}|[0-9.]{0,6}[a-zA-Z]{0,3}[0-9]{0,3}") {
            parse_size(&text);
            parse_duration(&text);
        }
    }
}
