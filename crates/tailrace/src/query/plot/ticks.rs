//! Round numbers and times for the axes of a chart, and how numbers are written in it.

use indicatif::HumanFloatCount;
use tailrace_model::time::write_rfc3339;

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Round distances of times: up to a day those of a clock, then days.
const STEPS: [i64; 32] = [
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    500_000_000,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    60 * SECOND,
    120 * SECOND,
    300 * SECOND,
    600 * SECOND,
    900 * SECOND,
    1800 * SECOND,
    3600 * SECOND,
    7200 * SECOND,
    10_800 * SECOND,
    21_600 * SECOND,
    43_200 * SECOND,
    DAY,
    2 * DAY,
    7 * DAY,
    28 * DAY,
    91 * DAY,
    364 * DAY,
    3_640 * DAY,
    36_400 * DAY,
];

/// Round numbers, at about `count` distances: the first is at most `min`, the last at least `max`. Zero is among them,
/// unless the numbers are far from it and close to each other.
pub(super) fn numbers(min: f64, max: f64, count: usize) -> Vec<f64> {
    let (mut min, mut max) = (min, max);
    let is_close = max - min < 0.3 * min.abs().max(max.abs());
    let is_same = max - min <= 1e-9 * min.abs().max(max.abs());
    if !is_close || is_same {
        (min, max) = (min.min(0.0), max.max(0.0));
    }
    if min == max {
        max = 1.0;
    }
    let step = round_step((max - min) / count.max(1) as f64);
    let first = (min / step).floor();
    let last = (max / step).ceil();
    let ticks = (last - first).clamp(1.0, 50.0) as usize;
    (0..=ticks).map(|nth| (first + nth as f64) * step).collect()
}

/// 1, 2 or 5 times a power of ten: the next one that is not less.
fn round_step(step: f64) -> f64 {
    // Below this a power of ten is no normal number.
    let step = step.max(1e-300);
    let power = 10_f64.powf(step.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let factor = factors
        .into_iter()
        .find(|it| it * power >= step * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// The numbers of an axis as text, all with the same unit and as many decimals as they need.
pub(super) fn labels(ticks: &[f64]) -> Vec<String> {
    let largest = ticks.iter().fold(0.0_f64, |max, tick| max.max(tick.abs()));
    let step = ticks.windows(2).next().map_or(1.0, |two| two[1] - two[0]);
    if largest >= 1e15 || step < 1e-6 {
        return ticks.iter().map(|tick| format!("{tick:.1e}")).collect();
    }
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let unit = units.into_iter().find(|(unit, _)| largest >= 10.0 * unit);
    let (scale, unit) = unit.unwrap_or((1.0, ""));
    let is_whole = |decimals: &usize| {
        let shifted = step / scale * 10_f64.powi(*decimals as i32);
        (shifted - shifted.round()).abs() < 1e-6 * shifted
    };
    let decimals = (0..9).find(is_whole).unwrap_or(9);
    let label = |tick: &f64| match *tick {
        0.0 => "0".to_owned(),
        tick => format!("{:.decimals$}{unit}", tick / scale),
    };
    ticks.iter().map(label).collect()
}

/// A value as text: a whole number with separators, another one with three decimals at most.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e15).contains(&size) {
        return format!("{value:.3e}");
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{:.3}", HumanFloatCount(size))
}

/// Round times from `start` to `end`, at most `count`, with their labels: a time of day, or a date where a day begins.
pub(super) fn times(start: i64, end: i64, count: usize) -> Vec<(i64, String)> {
    let span = i128::from(end) - i128::from(start);
    let fits = |step: &i64| span / i128::from(*step) <= count.max(1) as i128;
    let step = STEPS
        .into_iter()
        .find(fits)
        .unwrap_or(STEPS[STEPS.len() - 1]);
    let first = start.div_euclid(step).checked_mul(step).unwrap_or(start);
    let ticks = std::iter::successors(Some(first), |tick| tick.checked_add(step));
    let ticks = ticks.take_while(|tick| *tick <= end);
    ticks
        .filter(|tick| *tick >= start)
        .map(|tick| (tick, time_label(tick, step)))
        .collect()
}

fn time_label(tick: i64, step: i64) -> String {
    let text = rfc3339(tick);
    let is_day = tick.rem_euclid(DAY) == 0;
    match step {
        DAY.. => text[..10].to_owned(),
        _ if is_day => text[5..10].to_owned(),
        step if step % (60 * SECOND) == 0 => text[11..16].to_owned(),
        step if step % SECOND == 0 => text[11..19].to_owned(),
        _ => text[14..].trim_end_matches('Z').to_owned(),
    }
}

/// Two times as text, the date once where it is the same.
pub(super) fn span(start: i64, end: i64) -> String {
    let (start, end) = (rfc3339(start), rfc3339(end));
    if start[..10] != end[..10] {
        return format!("{start} to {end}");
    }
    let time = |text: &str| text[11..].trim_end_matches('Z').to_owned();
    format!("{} {} to {} UTC", &start[..10], time(&start), time(&end))
}

/// A time as text, in UTC.
pub(super) fn rfc3339(ns: i64) -> String {
    let mut text = Vec::new();
    write_rfc3339(ns, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let ticks = |min, max| labels(&numbers(min, max, 4)).join(" ");
        assert_eq!(ticks(0.0, 7.0), "0 2 4 6 8");
        assert_eq!(ticks(3.0, 98.0), "0 50 100");
        assert_eq!(ticks(0.1, 0.35), "0 0.1 0.2 0.3 0.4");
        assert_eq!(ticks(-20.0, 61.0), "-50 0 50 100");
        assert_eq!(ticks(0.0, 1_234_567.0), "0 500k 1000k 1500k");
        assert_eq!(ticks(0.0, 0.0), "0 0.5 1.0");
        assert_eq!(ticks(5.0, 5.0), "0 2 4 6");
        // Close to each other and far from zero.
        assert_eq!(ticks(1000.0, 1003.0), "1000 1001 1002 1003");
        for (min, max) in [
            (-1e300, 1e300),
            (0.0, f64::MIN_POSITIVE),
            (1e20, 1e20 + 16384.0),
            (-3.0, -2.9),
        ] {
            let ticks = numbers(min, max, 4);
            assert!(ticks.len() > 1 && ticks.len() < 20, "{ticks:?}");
            assert!(
                ticks[0] <= min && ticks[ticks.len() - 1] >= max,
                "{ticks:?}"
            );
            assert!(ticks.windows(2).all(|two| two[0] < two[1]), "{ticks:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let cases = [
            (0.0, "0"),
            (-1234.0, "-1,234"),
            (490.75, "490.75"),
            (0.123_456, "0.123"),
            (1e-9, "1.000e-9"),
            (1e18, "1.000e18"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn a_span_has_its_date_once() {
        let (start, day) = (1_772_366_400 * SECOND, 24 * 3600 * SECOND);
        assert_eq!(
            span(start, start + 1_500_000_000),
            "2026-03-01 12:00:00 to 12:00:01.500 UTC"
        );
        assert_eq!(
            span(start, start + day),
            "2026-03-01T12:00:00Z to 2026-03-02T12:00:00Z"
        );
    }

    #[test]
    fn times_are_those_of_a_clock() {
        let noon = 1_772_366_400 * SECOND;
        let of = |span: i64| {
            let ticks = times(noon - span / 2, noon + span / 2, 4);
            let labels: Vec<_> = ticks.into_iter().map(|(_, label)| label).collect();
            labels.join(" ")
        };
        assert_eq!(of(10 * 60 * SECOND), "11:55 12:00 12:05");
        assert_eq!(of(DAY), "03-01 06:00 12:00 18:00 03-02");
        assert_eq!(of(10 * SECOND), "11:59:55 12:00:00 12:00:05");
        assert_eq!(of(6 * DAY), "2026-02-28 2026-03-02 2026-03-04");
        assert_eq!(of(SECOND / 5), "59:59.900 00:00 00:00.100");
        assert!(!times(i64::MIN, i64::MAX, 5).is_empty());
        assert_eq!(times(noon, noon, 5).len(), 1);
    }
}
