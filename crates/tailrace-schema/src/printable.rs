//! Escapes text from outside so that it is safe to show: it can neither steer a terminal, nor begin a line of its own, nor
//! change the order in which it is read. Pure.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text on one line: control characters, line separators, and characters that are invisible or turn the direction of
/// writing, are written as `\n`, `\t`, `\r` or `\u{1b}`. A text without them stays as it is.
///
/// ```
/// assert_eq!(tailrace_schema::escaped("a\n\u{1b}[31m"), "a\\n\\u{1b}[31m");
/// ```
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            c if is_unsafe(c) => {
                // Writing to a string cannot fail.
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Whether a character does something to a terminal, or to the text around it, other than being shown.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped_and_the_rest_stays() {
        for (text, expected) in [
            ("", ""),
            (
                "/var/log/ä 日本 \u{1f600}.log",
                "/var/log/ä 日本 \u{1f600}.log",
            ),
            ("a\nb\r\n\tc", "a\\nb\\r\\n\\tc"),
            ("\u{1b}[2J\u{7}\0\u{7f}", "\\u{1b}[2J\\u{7}\\u{0}\\u{7f}"),
            // One character that begins an escape sequence, and a new line of Unicode.
            ("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}"),
            (
                "\u{2028}\u{202e}gpj.exe\u{2066}",
                "\\u{2028}\\u{202e}gpj.exe\\u{2066}",
            ),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }

    #[test]
    fn no_character_gets_through() {
        for c in ('\0'..=char::MAX).filter(|&c| is_unsafe(c)) {
            let text = format!("a{c}b");
            assert!(!escaped(&text).contains(is_unsafe), "{c:?}");
        }
    }
}
