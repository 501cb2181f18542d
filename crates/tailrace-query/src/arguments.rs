//! What a person says of a query besides its SQL, as text: times, severities and types of columns.

use std::time::{SystemTime, UNIX_EPOCH};

use tailrace_model::{severity, time};
use tailrace_scan::Type;
use tailrace_schema::units::parse_duration;

/// The types that a column can be given.
const TYPES: [Type; 5] = [
    Type::Text,
    Type::Int64,
    Type::Float64,
    Type::Boolean,
    Type::Timestamp,
];

/// Fewer digits are no time since the epoch: they lack a unit.
const EPOCH_MIN: usize = 9;

/// A time in nanoseconds since the Unix epoch: RFC 3339, a date (its first moment in UTC), seconds since 1970, or a time back
/// from now, such as `1h`.
///
/// # Errors
///
/// It is none of these.
pub fn time_of(text: &str) -> Result<i64, String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    time_at(text, now.map_or(0, |now| now.as_nanos() as i64))
}

fn time_at(text: &str, now_ns: i64) -> Result<i64, String> {
    let is_epoch = text.len() >= EPOCH_MIN && text.bytes().all(|byte| byte.is_ascii_digit());
    let back = parse_duration(text).filter(|_| text != "0");
    let back = back.and_then(|back| i64::try_from(back.as_nanos()).ok());
    let at = match back {
        Some(back) => now_ns.checked_sub(back),
        None if is_epoch => time::parse_epoch(text),
        None => time::parse_rfc3339(text, 0)
            .or_else(|| time::parse_rfc3339(&format!("{text}T00:00:00Z"), 0)),
    };
    at.ok_or_else(|| {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) && text.len() < EPOCH_MIN {
            return "it is a number without a unit: write 30m, 1h or 7d for a time back from now; seconds since 1970 have nine digits or more".to_owned();
        }
        "it is no time, or none between 1678 and 2262: write 2026-01-02T03:04:05Z, a date as 2026-01-02, seconds since 1970, or a time back from now as 30m, 1h, 7d".to_owned()
    })
}

/// The severity number of OpenTelemetry of a level: its name, or the number itself.
///
/// # Errors
///
/// It is no level.
pub fn severity_of(text: &str) -> Result<u8, String> {
    // Numbers are OpenTelemetry's here, not those of syslog or pino.
    let number = match text.parse::<u8>() {
        Ok(number) => number,
        Err(_) => by_name(text),
    };
    Some(number).filter(|number| (1..=24).contains(number)).ok_or_else(|| {
        "it is no level: trace, debug, info, warn, error, fatal, or OpenTelemetry's number from 1 to 24".to_owned()
    })
}

/// The number of a level that applications write, or of one of OpenTelemetry's own names, such as `INFO2`.
fn by_name(text: &str) -> u8 {
    let is_name = |number: &u8| severity::short_name(*number).eq_ignore_ascii_case(text);
    match (1..=24).find(is_name) {
        Some(number) => number,
        None if text.trim().parse::<i64>().is_ok() => 0,
        None => severity::number_of_text(text),
    }
}

/// The type of a column by its name.
///
/// # Errors
///
/// There is no such type.
pub fn type_of(name: &str) -> Result<Type, String> {
    let known = TYPES.into_iter().find(|known| known.name() == name);
    known.ok_or_else(|| format!("`{name}` is no type: {}", TYPES.map(Type::name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000_000_000;

    #[test]
    fn times_are_absolute_or_back_from_now() {
        let at = |text| time_at(text, NOW).ok();
        assert_eq!(at("1h"), Some(NOW - 3_600_000_000_000));
        assert_eq!(at("1d12h"), Some(NOW - 129_600_000_000_000));
        assert_eq!(at("1970-01-02"), Some(86_400_000_000_000));
        assert_eq!(at("1800000000"), Some(NOW));
        assert_eq!(at("1970-01-01T00:00:01.5+00:00"), Some(1_500_000_000));
        assert_eq!(at("1970-01-01 00:00:01"), Some(1_000_000_000));
        for none in [
            "",
            "0",
            "h",
            "-1h",
            "1w",
            "1h ago",
            "2026-13-01",
            "2026-02-30",
            "now",
            "10",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
        // Before what nanoseconds hold.
        assert_eq!(at("200000d"), None);
        let said = time_at("86400", NOW).unwrap_err();
        assert!(said.contains("without a unit"), "{said}");
    }

    #[test]
    fn levels_are_names_and_numbers() {
        assert_eq!(severity_of("error"), Ok(17));
        assert_eq!(severity_of("WARNING"), Ok(13));
        assert_eq!(severity_of("Info2"), Ok(10));
        assert_eq!(severity_of("17"), Ok(17));
        assert_eq!(severity_of("3"), Ok(3));
        for none in ["", "0", "25", "-1", "loud", " 50"] {
            assert!(severity_of(none).is_err(), "{none}");
        }
    }
}
