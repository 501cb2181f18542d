//! Redaction: replaces values that `${...}` took from the environment or from a file by their names. It never prints, and its
//! `Debug` shows only names.
//!
//! A diagnostic about a value never quotes it, however short it is: [`reader`](crate::reader) ensures that. Redaction is
//! for accepted values that appear later, in a network error, a path or a query. Values of fewer than `CHARS_MIN`
//! characters are not replaced, because they are part of many words.

pub mod forms;

use std::borrow::Cow;
use std::collections::BTreeMap;
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
    /// What to look for and what to write instead, by the first byte in lower case; of each the longest first.
    needles: BTreeMap<u8, Vec<(String, String)>>,
}

impl Redactor {
    /// Replaces these values.
    pub fn new(values: &[Expanded]) -> Redactor {
        let mut redactor = Redactor::default();
        for Expanded { name, value } in values {
            redactor.add(name, value);
            // As it looks in a quoted text, and line by line.
            redactor.add(name, &value.escape_debug().to_string());
            for form in forms::of(value.trim_end()) {
                redactor.add(name, &form);
            }
            let is_long = |line: &&str| line.chars().count() >= LINE_CHARS_MIN;
            for line in value.lines().map(str::trim).filter(is_long).take(LINES_MAX) {
                redactor.add(name, line);
            }
        }
        redactor
    }

    fn add(&mut self, name: &str, value: &str) {
        let needle = (value.to_owned(), name.to_owned());
        let Some(first) = value
            .bytes()
            .next()
            .filter(|_| value.chars().count() >= CHARS_MIN)
        else {
            return;
        };
        let needles = self.needles.entry(first.to_ascii_lowercase()).or_default();
        if !needles.contains(&needle) {
            let longer = |other: &(String, String)| other.0.len() >= value.len();
            needles.insert(needles.partition_point(longer), needle);
        }
    }

    /// Adds what another one replaces; the values of an earlier configuration may still show up.
    pub fn extend(&mut self, other: &Redactor) {
        for (value, name) in other.needles.values().flatten() {
            self.add(name, value);
        }
    }

    /// How many texts are looked for.
    pub fn len(&self) -> usize {
        self.needles.values().map(Vec::len).sum()
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
            let needles = self.needles.get(&text.as_bytes()[at].to_ascii_lowercase());
            let mut needles = needles.into_iter().flatten();
            let found = needles.find(|(value, _)| is_at(text, at, value));
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
        let names = self.needles.values().flatten().map(|(_, name)| name);
        let names: std::collections::BTreeSet<&String> = names.collect();
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
    fn a_value_is_recognised_in_the_forms_that_a_server_gives_it() {
        let redactor = redactor(&[("${T}", "p&ss \"w/rd\"<~?>'")]);
        for text in [
            "at p%26ss%20%22w%2Frd%22%3C~%3F%3E%27 here",
            "at p%26ss+%22w%2frd%22%3c%7E%3f%3e%27 here",
            "at p&amp;ss &quot;w/rd&quot;&lt;~?&gt;&#39; here",
            "at p&#38;ss &#34;w/rd&#34;&#60;~?&#62;&#39; here",
            "at p&amp;ss &quot;w/rd&quot;&lt;~?&gt;&#x27; here",
            "at cCZzcyAidy9yZCI8fj8+Jw here",
            "at cCZzcyAidy9yZCI8fj8-Jw here",
            "at 702673732022772f7264223c7e3f3e27 here",
        ] {
            assert_eq!(redactor.redact(text), "at ${T} here", "{text}");
        }
        assert_eq!(redactor.redact("cCZzcyAidy9yZCI8fj8+Jw=="), "${T}");
    }

    #[test]
    fn the_longer_value_wins_and_debug_shows_names_alone() {
        let mut one = redactor(&[("${A}", "secret")]);
        one.extend(&redactor(&[("${B}", "secret-longer")]));
        one.extend(&redactor(&[("${B}", "secret-longer")]));
        assert_eq!(one.redact("secret-longer secret"), "${B} ${A}");
        assert_eq!(format!("{one:?}"), r#"["${A}", "${B}"]"#);
        let len = one.len();
        one.extend(&redactor(&[("${A}", "secret")]));
        assert!(Redactor::default().is_empty() && one.len() == len);
    }
}
