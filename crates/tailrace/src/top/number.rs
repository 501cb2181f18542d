//! Numbers as a narrow column has room for them: three digits and a unit. The agent's page writes them the same way.

use indicatif::HumanCount;
use serde_json::Value;

const BYTE_UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const COUNT_UNITS: [&str; 6] = ["", " k", " M", " G", " T", " P"];
/// Stands for a number that is not known.
pub(super) const UNKNOWN: &str = "-";

/// Bytes, as `3.10 MiB`.
pub(super) fn bytes(n: f64) -> String {
    let (n, unit) = scaled(n, 1000.0, 1024.0);
    known(n, || format!("{} {}", short(n, unit > 0), BYTE_UNITS[unit]))
}

/// A count, as `41.3 k`.
pub(super) fn compact(n: f64) -> String {
    let (n, unit) = scaled(n, 999.5, 1000.0);
    known(n, || format!("{}{}", short(n, unit > 0), COUNT_UNITS[unit]))
}

/// A count with separators, as `41,283`.
pub(super) fn whole(n: &Value) -> String {
    n.as_u64()
        .map_or_else(|| UNKNOWN.to_owned(), |n| HumanCount(n).to_string())
}

/// The time of day of seconds since 1970, as `12:03:11Z`.
pub(super) fn clock(unix_s: f64) -> String {
    known(unix_s, || {
        let s = unix_s.max(0.0) as u64 % 86_400;
        format!("{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60)
    })
}

/// A rate, of a number that one of the above has written.
pub(super) fn per_second(write: fn(f64) -> String, n: f64) -> String {
    known(n, || format!("{}/s", write(n)))
}

/// A share, as `10.0 %`.
pub(super) fn percent(share: f64) -> String {
    let n = share * 100.0;
    known(n, || match n {
        n if n > 0.0 && n < 0.01 => "<0.01 %".to_owned(),
        n if n > 99.9 && n < 100.0 => ">99.9 %".to_owned(),
        n if n == 0.0 || n == 100.0 => format!("{n:.0} %"),
        n if n < 1.0 => format!("{n:.2} %"),
        n => format!("{n:.1} %"),
    })
}

/// Seconds, as `3 min 12 s`.
pub(super) fn duration(s: f64) -> String {
    known(s, || match s {
        s if s <= 0.0 => "0 s".to_owned(),
        s if s < 0.001 => "<1 ms".to_owned(),
        s if s < 1.0 => format!("{:.0} ms", s * 1000.0),
        s if s < 10.0 && s.fract() != 0.0 => format!("{s:.1} s"),
        s => whole_duration(s),
    })
}

fn whole_duration(s: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")];
    let s = s.round();
    let first = UNITS.iter().position(|&(size, _)| s >= size).unwrap_or(3);
    let (size, unit) = UNITS[first];
    let large = format!("{:.0} {unit}", (s / size).floor());
    match UNITS.get(first + 1) {
        Some((next, small)) if s % size >= *next => {
            format!("{large} {:.0} {small}", (s % size / next).floor())
        }
        _ => large,
    }
}

fn scaled(mut n: f64, limit: f64, step: f64) -> (f64, usize) {
    let mut unit = 0;
    while n.abs() >= limit && unit + 1 < BYTE_UNITS.len() {
        n /= step;
        unit += 1;
    }
    (n, unit)
}

/// Three digits, with a fraction where there is room for one.
fn short(n: f64, is_scaled: bool) -> String {
    let size = n.abs();
    if size >= 99.95 || (!is_scaled && n.fract() == 0.0) {
        format!("{n:.0}")
    } else if size >= 9.995 || !is_scaled {
        format!("{n:.1}")
    } else {
        format!("{n:.2}")
    }
}

fn known(n: f64, write: impl FnOnce() -> String) -> String {
    if n.is_finite() {
        write()
    } else {
        UNKNOWN.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        let cases = [
            (bytes(0.0), "0 B"),
            (bytes(999.0), "999 B"),
            (bytes(1000.0), "0.98 KiB"),
            (bytes(5.1 * 1_048_576.0), "5.10 MiB"),
            (bytes(f64::NAN), "-"),
            (bytes(1e30), "888178419700125 PiB"),
            (compact(12.0), "12"),
            (compact(0.2), "0.2"),
            (compact(999.6), "1.00 k"),
            (compact(41_283.0), "41.3 k"),
            (per_second(compact, f64::INFINITY), "-"),
            (per_second(bytes, 2048.0), "2.00 KiB/s"),
            (percent(0.1), "10.0 %"),
            (percent(0.000_001), "<0.01 %"),
            (percent(0.9999), ">99.9 %"),
            (percent(1.0), "100 %"),
            (duration(0.378), "378 ms"),
            (duration(3.4), "3.4 s"),
            (duration(7265.0), "2 h 1 min"),
            (duration(7200.0), "2 h"),
            (duration(-1.0), "0 s"),
            (whole(&41_283.into()), "41,283"),
            (whole(&Value::Null), "-"),
            (clock(1_767_323_045.678), "03:04:05Z"),
            (clock(f64::NAN), "-"),
        ];
        for (written, expected) in cases {
            assert_eq!(written, expected);
        }
    }
}
