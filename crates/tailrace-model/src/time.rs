//! Times as nanoseconds since the Unix epoch, UTC: exact, never through floating point.
//!
//! Parses text (RFC 3339, or a number in a unit told by its magnitude) to an `i64`, and writes it back. Never reads a
//! clock or a time-zone database. A time that nanoseconds in an `i64` cannot hold (before 1677-09-21 or after
//! 2262-04-11) and a leap second (`:60`) are no times here.

mod epoch;
mod rfc3339;
mod usual;

pub use epoch::{of_number, parse_epoch};
pub use rfc3339::{parse_rfc3339, parse_usual, write_rfc3339};
pub use usual::UsualTimes;

/// The time that `text` is: [`parse_rfc3339`] where it looks like a date, else [`parse_epoch`].
///
/// `offset_s` is what a date without a zone is taken to be in, in seconds east of UTC.
pub fn parse(text: &str, offset_s: i32) -> Option<i64> {
    match text.as_bytes().split_first_chunk::<4>() {
        // Not `100e-3`, which is a number.
        Some((year, [b'-', ..])) if year.iter().all(u8::is_ascii_digit) => {
            parse_rfc3339(text, offset_s)
        }
        _ => parse_epoch(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_numbers() {
        assert_eq!(parse("1970-01-01T00:00:01Z", 3600), Some(1_000_000_000));
        assert_eq!(parse("1970-01-01T00:00:01", 3600), Some(-3_599_000_000_000));
        assert_eq!(parse("1700000000", 3600), Some(1_700_000_000_000_000_000));
        assert_eq!(parse("1e-5", 0), Some(10_000));
        assert_eq!(parse("100e-5", 0), Some(1_000_000));
        assert_eq!(parse("1.5e-3", 0), Some(1_500_000));
        assert_eq!(parse("1000-5", 0), None);
        assert_eq!(parse("", 0), None);
        assert_eq!(parse("yesterday", 0), None);
    }
}
