//! Small text helpers: percent-decoding, error chains, and server text made fit for a log line. Pure.

use std::error::Error;

/// Longest excerpt of a server's text in a reason, in characters.
const EXCERPT_CHARS_MAX: usize = 300;

/// Decodes `%41` to `A`; what is no such sequence stays, as gRPC wants it.
pub(crate) fn percent_decode(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let decoded = match (byte, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match decoded {
            Some((high, low)) => {
                out.push(high << 4 | low);
                rest = &tail[2..];
            }
            None => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

/// One line of at most [`EXCERPT_CHARS_MAX`] characters without control characters.
pub(crate) fn excerpt(text: &str) -> String {
    let mut out = String::new();
    let mut words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let mut chars = 0;
    for word in words.by_ref().filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
            chars += 1;
        }
        for c in word.chars() {
            if chars >= EXCERPT_CHARS_MAX {
                out.push('…');
                return out;
            }
            out.push(c);
            chars += 1;
        }
    }
    out
}

/// The error and its sources on one line, each text once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut out = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !out.contains(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        source = error.source();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{excerpt, percent_decode};

    #[test]
    fn percent_decoding_leaves_what_is_none() {
        let cases = [
            ("", ""),
            ("plain", "plain"),
            ("a%20b%C3%A9", "a bé"),
            ("100%", "100%"),
            ("%4", "%4"),
            ("%zz%41", "%zzA"),
            ("%ff", "\u{fffd}"),
        ];
        for (text, expected) in cases {
            assert_eq!(percent_decode(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(
            excerpt("  bad\r\n\x1b[31m  request\0now "),
            "bad [31m request now"
        );
        let long = excerpt(&"x".repeat(1000));
        assert_eq!(long.chars().count(), 301);
        assert!(long.ends_with('…'));
    }
}
