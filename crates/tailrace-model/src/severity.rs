//! Severity: from what sources write to OpenTelemetry's severity numbers.
//!
//! Maps a level, as text or number, to 1 to 24, or to 0 for "unspecified". Never guesses: a spelling that is not in the
//! table is 0 and the text is kept by the caller. The table is Appendix B of the log data model plus the spellings of
//! common loggers; where a source has one level in a range it is the range's smallest number.

/// The severity number of a level's text in any case, surrounding whitespace ignored; text that is an integer counts
/// as that integer. 0 if unknown.
#[inline]
pub fn number_of_text(text: &str) -> u8 {
    match number_of_usual(text.as_bytes()) {
        Some(number) => number,
        None => number_of_any(text),
    }
}

/// The severity number of a level that most records have, written all small or all capital or mixed; `None` says
/// nothing: the text is to be given to [`number_of_text`].
#[inline]
pub fn number_of_usual(text: &[u8]) -> Option<u8> {
    let mut first = [0; 8];
    first.get_mut(..text.len())?.copy_from_slice(text);
    number_of_short(u64::from_le_bytes(first), text.len())
}

/// As [`number_of_usual`], of text whose first bytes are in a word, the first of all in the lowest byte. What is in the
/// word after the text is anything.
#[inline]
pub fn number_of_short(first: u64, len: usize) -> Option<u8> {
    const fn word<const N: usize>(text: &[u8; N]) -> u64 {
        let mut word = [0; 8];
        word.split_at_mut(N).0.copy_from_slice(text);
        u64::from_le_bytes(word)
    }
    const INFO: u64 = word(b"info");
    const WARN: u64 = word(b"warn");
    const ERROR: u64 = word(b"error");
    const DEBUG: u64 = word(b"debug");
    const TRACE: u64 = word(b"trace");
    const FATAL: u64 = word(b"fatal");
    // Of a byte that becomes a small letter only a letter can be the origin.
    const SMALL: u64 = u64::from_ne_bytes([0x20; 8]);
    if !(4..=5).contains(&len) {
        return None;
    }
    match (first | SMALL) & (u64::MAX >> (64 - 8 * len)) {
        INFO => Some(9),
        WARN => Some(13),
        ERROR => Some(17),
        DEBUG => Some(5),
        TRACE => Some(1),
        FATAL => Some(21),
        _ => None,
    }
}

fn number_of_any(text: &str) -> u8 {
    const LENGTH_MAX: usize = 13;
    let text = text.trim_ascii();
    let mut buffer = [0; LENGTH_MAX];
    let Some(lower) = buffer.get_mut(..text.len()) else {
        return 0;
    };
    lower.copy_from_slice(text.as_bytes());
    lower.make_ascii_lowercase();
    match &*lower {
        b"trace" | b"finest" => 1,
        b"debug" | b"dbg" | b"verbose" | b"finer" => 5,
        b"fine" => 6,
        b"config" => 7,
        b"info" | b"information" | b"informational" => 9,
        b"notice" => 10,
        b"warn" | b"warning" | b"wrn" => 13,
        b"error" | b"err" | b"severe" => 17,
        b"critical" | b"crit" | b"dpanic" => 18,
        b"alert" | b"panic" => 19,
        b"fatal" | b"emerg" | b"emergency" => 21,
        _ => text.parse().map_or(0, number_of_integer),
    }
}

/// The severity number of a numeric level: 0 to 7 are syslog (and journald) priorities, the tens from 10 to 60 are
/// those of pino and bunyan. 0 if unknown.
pub fn number_of_integer(level: i64) -> u8 {
    match level {
        0 | 60 => 21,
        1 => 19,
        2 => 18,
        3 | 50 => 17,
        4 | 40 => 13,
        5 => 10,
        6 | 30 => 9,
        7 | 20 => 5,
        10 => 1,
        _ => 0,
    }
}

/// The short name of a severity number (`INFO`, `INFO2`), as the log data model displays it; empty for 0 and for
/// numbers beyond 24.
pub fn short_name(number: u8) -> &'static str {
    const NAMES: [&str; 25] = [
        "", "TRACE", "TRACE2", "TRACE3", "TRACE4", "DEBUG", "DEBUG2", "DEBUG3", "DEBUG4", "INFO",
        "INFO2", "INFO3", "INFO4", "WARN", "WARN2", "WARN3", "WARN4", "ERROR", "ERROR2", "ERROR3",
        "ERROR4", "FATAL", "FATAL2", "FATAL3", "FATAL4",
    ];
    NAMES.get(usize::from(number)).copied().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every spelling of the table with its number.
    const TABLE: &[(&str, u8)] = &[
        ("trace", 1),
        ("finest", 1),
        ("10", 1),
        ("debug", 5),
        ("dbg", 5),
        ("verbose", 5),
        ("finer", 5),
        ("7", 5),
        ("20", 5),
        ("fine", 6),
        ("config", 7),
        ("info", 9),
        ("information", 9),
        ("informational", 9),
        ("6", 9),
        ("30", 9),
        ("notice", 10),
        ("5", 10),
        ("warn", 13),
        ("warning", 13),
        ("wrn", 13),
        ("4", 13),
        ("40", 13),
        ("error", 17),
        ("err", 17),
        ("severe", 17),
        ("3", 17),
        ("50", 17),
        ("critical", 18),
        ("crit", 18),
        ("dpanic", 18),
        ("2", 18),
        ("alert", 19),
        ("panic", 19),
        ("1", 19),
        ("fatal", 21),
        ("emerg", 21),
        ("emergency", 21),
        ("0", 21),
        ("60", 21),
    ];

    #[test]
    fn every_spelling_in_every_case() {
        for &(text, number) in TABLE {
            let mut capital = text.to_owned();
            capital[..1].make_ascii_uppercase();
            for spelling in [
                text.to_owned(),
                text.to_uppercase(),
                capital,
                format!(" {text}\t"),
            ] {
                assert_eq!(number_of_text(&spelling), number, "{spelling:?}");
            }
        }
    }

    #[test]
    fn the_usual_agree_with_the_table() {
        let mut usual = 0;
        for &(text, number) in TABLE {
            for at in 0..text.len() {
                let mut spelling = text.to_owned();
                spelling[at..=at].make_ascii_uppercase();
                if let Some(found) = number_of_usual(spelling.as_bytes()) {
                    assert_eq!(found, number, "{spelling}");
                    assert_eq!(number_of_any(&spelling), number, "{spelling}");
                    usual += 1;
                }
                // One byte changed is no usual level, unless it is in the table itself.
                for byte in 0..=u8::MAX {
                    let mut bytes = text.as_bytes().to_vec();
                    bytes[at] = byte;
                    let known = std::str::from_utf8(&bytes).map_or(0, number_of_any);
                    if let Some(found) = number_of_usual(&bytes) {
                        assert_eq!(found, known, "{bytes:?}");
                    }
                }
            }
        }
        assert_eq!(usual, 4 + 4 + 5 + 5 + 5 + 5);
    }

    #[test]
    fn integers_agree_with_their_text() {
        for level in -1000..1000 {
            let in_table = TABLE.iter().find(|(text, _)| *text == level.to_string());
            assert_eq!(
                number_of_integer(level),
                in_table.map_or(0, |(_, number)| *number),
                "{level}"
            );
            assert_eq!(
                number_of_text(&level.to_string()),
                number_of_integer(level),
                "{level}"
            );
        }
        assert_eq!(number_of_integer(i64::MIN), 0);
    }

    #[test]
    fn the_unknown_is_zero() {
        for text in [
            "",
            " ",
            "inf",
            "infos",
            "information!",
            "a very long level indeed",
            "3.0",
            "ünfö",
            "İnfo",
            "\0",
        ] {
            assert_eq!(number_of_text(text), 0, "{text:?}");
        }
    }

    #[test]
    fn short_names_follow_the_ranges() {
        for (range, name) in ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"]
            .into_iter()
            .enumerate()
        {
            for step in 0..4 {
                let suffix = if step == 0 {
                    String::new()
                } else {
                    (step + 1).to_string()
                };
                let number = u8::try_from(range * 4 + step + 1).expect("at most 24");
                assert_eq!(short_name(number), format!("{name}{suffix}"));
            }
        }
        assert_eq!(
            (short_name(0), short_name(25), short_name(255)),
            ("", "", "")
        );
    }
}
