//! What may be shown of a URL as it is written: not its user and password, and not what follows a `?`. A `${...}` stays
//! as it is, but its default is shown in the same way. Pure.

use super::REDACTED;
use crate::interpolate::{DEPTH_MAX, closing};

/// A URL without what may be a credential.
pub(super) fn shown(text: &str) -> String {
    let mut url = Url {
        text: String::with_capacity(text.len()),
        ..Url::default()
    };
    url.add(text, 0);
    url.text
}

/// What was read of a URL.
#[derive(Default)]
struct Url {
    text: String,
    /// A `?` was seen.
    in_query: bool,
    /// A `${...}` was seen, which may have brought a `?`.
    after_reference: bool,
    /// What stands there is no user and no password.
    after_authority: bool,
    /// A `://` was seen.
    after_scheme: bool,
}

impl Url {
    /// Adds a text until it is in the query; of the query, only that there is one.
    fn add(&mut self, text: &str, depth: usize) {
        let mut authority = self.text.len();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if self.in_query {
                return self.text.push_str(REDACTED);
            }
            let after = &rest[c.len_utf8()..];
            if c == '$' && after.starts_with('$') {
                self.text.push_str("$$");
                rest = &after[1..];
                continue;
            }
            if let Some(inner) = rest.strip_prefix("${") {
                let Some(length) = closing(inner).filter(|_| depth <= DEPTH_MAX) else {
                    return self.text.push_str(REDACTED);
                };
                self.reference(&inner[..length], depth);
                rest = &inner[length + 1..];
                continue;
            }
            rest = after;
            match c {
                '/' if !self.after_scheme && after.starts_with('/') && self.text.ends_with(':') => {
                    self.after_scheme = true;
                    self.text.push_str("//");
                    authority = self.text.len();
                    rest = &after[1..];
                    continue;
                }
                '/' => self.after_authority = true,
                '@' if !self.after_authority => {
                    self.text.truncate(authority);
                    self.text.push_str(REDACTED);
                }
                '?' => self.in_query = true,
                '&' if self.after_reference => self.in_query = true,
                _ => {}
            }
            self.text.push(c);
        }
    }

    /// Adds what stands between `${` and `}`.
    fn reference(&mut self, inner: &str, depth: usize) {
        self.text.push_str("${");
        let default = [":-", ":?"].iter().filter_map(|it| inner.find(it)).min();
        let name = default.map_or(inner, |at| &inner[..at + 2]);
        self.text.push_str(name);
        self.add(&inner[name.len()..], depth + 1);
        self.text.push('}');
        self.after_reference = true;
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn no_part_that_may_be_a_credential_is_shown() {
        for (text, expect) in [
            ("", ""),
            ("http://h:1/logs", "http://h:1/logs"),
            ("http://h/?", "http://h/?"),
            ("http://h/a&b//c@d", "http://h/a&b//c@d"),
            ("http://h?key=s3", "http://h?[redacted]"),
            (
                "https://${HOST}/ingest?key=s3",
                "https://${HOST}/ingest?[redacted]",
            ),
            ("https://h/x?a=${KEY}", "https://h/x?[redacted]"),
            (
                "${URL:-https://h/x?key=s3}",
                "${URL:-https://h/x?[redacted]}",
            ),
            (
                "${A:-${B:-http://h?s3}}&s3",
                "${A:-${B:-http://h?[redacted]}}[redacted]",
            ),
            ("${URL:?set ${X} ?s3}", "${URL:?set ${X} ?[redacted]}"),
            ("${URL}&key=s3", "${URL}&[redacted]"),
            ("${file:/a?b}/c", "${file:/a?b}/c"),
            ("http://h/$${x?s3}", "http://h/$${x?[redacted]"),
            ("http://me:s3@h/a@b", "http://[redacted]@h/a@b"),
            ("http://me:s3@s3@h", "http://[redacted]@h"),
            (
                "${SCHEME}://me:s3@${HOST}/x",
                "${SCHEME}://[redacted]@${HOST}/x",
            ),
            ("http://${ME:-s3}:s3@h", "http://[redacted]@h"),
            ("me:s3@h", "[redacted]@h"),
            ("${U:-http://me:s3@h}", "${U:-http://[redacted]@h}"),
            ("${BASE:-http://}me:s3@h", "[redacted]@h"),
            ("http://é${s3", "http://é[redacted]"),
        ] {
            assert_eq!(shown(text), expect, "{text}");
            assert_eq!(shown(expect), expect, "{expect}");
        }
    }

    #[test]
    fn deep_defaults_are_not_followed() {
        let text = "${A:-".repeat(50_000) + "s3" + &"}".repeat(50_000);
        let shown = shown(&text);
        assert!(shown.contains("[redacted]") && !shown.contains("s3"));
    }
}
