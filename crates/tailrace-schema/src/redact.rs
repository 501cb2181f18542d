//! Redaction: replaces values that `${...}` took from the environment or from a file by their names. It never prints, and its
//! `Debug` shows only names.
//!
//! A diagnostic about a value never quotes it, however short it is: [`reader`](crate::reader) ensures that. Redaction is
//! for accepted values that appear later, in a network error, a path or a query. Values of fewer than `CHARS_MIN`
//! characters are not replaced, because they are part of many words.

use std::borrow::Cow;
use std::fmt;

/// Values shorter than this are not recognised in a text.
const CHARS_MIN: usize = 4;
/// Values shorter than this are recognised only as whole words.
const WORD_CHARS_MAX: usize = 8;

/// Of a value of several lines each line is recognised that is as long as this, up to a number of them: a key, a query.
const LINE_CHARS_MIN: usize = 12;
const LINES_MAX: usize = 1000;

/// A value and the `${...}` that it came from.
#[derive(Clone, PartialEq, Eq)]
pub struct Expanded {
    /// The `${...}` as it was written.
    pub name: String,
    /// What it stood for.
    pub value: String,
}

impl fmt::Debug for Expanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Replaces values by the names of the variables and files that they came from.
#[derive(Clone, Default)]
pub struct Redactor {
    /// What to look for and what to write instead, the longest first.
    needles: Vec<(String, String)>,
}

impl Redactor {
    /// Replaces these values.
    pub fn new(values: &[Expanded]) -> Redactor {
        let mut redactor = Redactor::default();
        for Expanded { name, value } in values {
            redactor.add(name, value);
            // As it looks in a quoted text, and line by line.
            redactor.add(name, &value.escape_debug().to_string());
            let is_long = |line: &&str| line.chars().count() >= LINE_CHARS_MIN;
            for line in value.lines().map(str::trim).filter(is_long).take(LINES_MAX) {
                redactor.add(name, line);
            }
        }
        redactor
    }

    fn add(&mut self, name: &str, value: &str) {
        let needle = (value.to_owned(), name.to_owned());
        if value.chars().count() >= CHARS_MIN && !self.needles.contains(&needle) {
            let longer = |other: &(String, String)| other.0.len() >= value.len();
            self.needles
                .insert(self.needles.partition_point(longer), needle);
        }
    }

    /// Adds what another one replaces; the values of an earlier configuration may still show up.
    pub fn extend(&mut self, other: &Redactor) {
        for (value, name) in &other.needles {
            self.add(name, value);
        }
    }

    /// How many texts are looked for.
    pub fn len(&self) -> usize {
        self.needles.len()
    }

    /// Whether there is nothing to replace.
    pub fn is_empty(&self) -> bool {
        self.needles.is_empty()
    }

    /// The text with names in the place of values. Letters of ASCII are compared without their case, as host names lose it.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = String::new();
        let (mut at, mut copied) = (0, 0);
        while at < text.len() {
            let rest = &text[at..];
            let found = self
                .needles
                .iter()
                .find(|(value, _)| is_at(text, at, value));
            match found {
                Some((value, name)) => {
                    redacted.push_str(&text[copied..at]);
                    redacted.push_str(name);
                    at += value.len();
                    copied = at;
                }
                None => at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        redacted.push_str(&text[copied..]);
        Cow::Owned(redacted)
    }
}

/// Whether the value stands at a place of the text; a short one only as a word of its own.
fn is_at(text: &str, at: usize, value: &str) -> bool {
    let end = at + value.len();
    let is_same = text
        .get(at..end)
        .is_some_and(|found| found.eq_ignore_ascii_case(value));
    if !is_same || value.chars().count() >= WORD_CHARS_MAX {
        return is_same;
    }
    let joins = |outside: Option<char>, inside: Option<char>| {
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        is_word(outside) && is_word(inside)
    };
    !joins(text[..at].chars().next_back(), value.chars().next())
        && !joins(text[end..].chars().next(), value.chars().next_back())
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.needles.iter().map(|(_, name)| name);
        f.debug_list().entries(names).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(values: &[(&str, &str)]) -> Redactor {
        let expanded = values.iter().map(|(name, value)| Expanded {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        });
        Redactor::new(&expanded.collect::<Vec<_>>())
    }

    #[test]
    fn a_value_becomes_its_name_wherever_it_stands() {
        let redactor = redactor(&[
            ("${TOKEN}", "hunter2-and-more"),
            ("${SHORT}", "pass"),
            ("${HOST}", "Otel.Example.com"),
            ("${TINY}", "abc"),
            ("${file:/q}", "SELECT *\n  FROM logs WHERE a\n"),
            ("${QUOTED}", "say \"it\" twice"),
        ]);
        for (text, expected) in [
            ("", ""),
            ("nothing to see", "nothing to see"),
            ("xhunter2-and-morex", "x${TOKEN}x"),
            ("HUNTER2-AND-MORE", "${TOKEN}"),
            ("pass, passed; a pass/", "${SHORT}, passed; a ${SHORT}/"),
            ("http://otel.example.com:1/", "http://${HOST}:1/"),
            ("abc", "abc"),
            (
                "it read FROM logs WHERE a there",
                "it read ${file:/q} there",
            ),
            (r#"got "say \"it\" twice""#, r#"got "${QUOTED}""#),
            ("ä hunter2-and-more ß", "ä ${TOKEN} ß"),
        ] {
            assert_eq!(redactor.redact(text), expected);
        }
    }

    #[test]
    fn the_longer_value_wins_and_debug_shows_names_alone() {
        let mut one = redactor(&[("${A}", "secret")]);
        one.extend(&redactor(&[("${B}", "secret-longer")]));
        one.extend(&redactor(&[("${B}", "secret-longer")]));
        assert_eq!(one.redact("secret-longer secret"), "${B} ${A}");
        assert_eq!(format!("{one:?}"), r#"["${B}", "${A}"]"#);
        assert!(Redactor::default().is_empty() && one.len() == 2);
    }
}
