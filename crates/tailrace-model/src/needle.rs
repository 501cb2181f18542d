//! Texts that a record must hold to meet a condition: what the query's analysis finds and the scan searches for.

use crate::json::not_finite;

/// Texts of which a record must hold at least one, as it is written or with escapes, in what JSON means by its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needles {
    /// Not empty.
    pub any: Vec<Needle>,
}

/// A text that a record must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needle {
    /// The text, not escaped, not empty.
    pub text: String,
    /// It is the whole of a JSON string: quotes stand around it.
    pub quoted: bool,
}

impl Needle {
    /// The needle of a value whose text is exactly this.
    pub fn whole(text: &str) -> Option<Needle> {
        Needle::new(text, !may_stand_bare(text))
    }

    /// The needle of a value that has this text in it.
    pub fn part(text: &str) -> Option<Needle> {
        Needle::new(text, false)
    }

    /// The needle of a value that matches this pattern of LIKE: its longest piece between wildcards.
    pub fn like(pattern: &str) -> Option<Needle> {
        if !pattern.contains(['%', '_', '\\']) {
            return Needle::whole(pattern);
        }
        let mut longest = String::new();
        let mut piece = String::new();
        let mut chars = pattern.chars();
        while let Some(ch) = chars.next() {
            // A backslash takes the meaning of what follows. One at the end, which some refuse, ends the piece.
            let literal = match ch {
                '%' | '_' => None,
                '\\' => chars.next(),
                ch => Some(ch),
            };
            match literal {
                Some(ch) if ch != char::REPLACEMENT_CHARACTER => piece.push(ch),
                _ => piece.clear(),
            }
            if piece.len() > longest.len() {
                longest.clone_from(&piece);
            }
        }
        Needle::part(&longest)
    }

    /// U+FFFD also stands for bytes that are not UTF-8: no needle may hold it.
    fn new(text: &str, quoted: bool) -> Option<Needle> {
        let usable = !text.is_empty() && !text.contains(char::REPLACEMENT_CHARACTER);
        usable.then(|| Needle {
            text: text.to_owned(),
            quoted,
        })
    }
}

/// Whether this may be the text of a value that is no string: a number, also one that is not finite, `true`, `false`,
/// `null`, an object, an array.
fn may_stand_bare(text: &str) -> bool {
    let number = text.bytes().any(|byte| byte.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let container = text.trim_start().starts_with(['{', '[']);
    let not_finite = not_finite(text.as_bytes()).is_some_and(|(_, len)| len == text.len());
    number || not_finite || container || matches!(text, "true" | "false" | "null")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_what_must_be_a_string_is_searched_with_its_quotes() {
        for text in [
            "7",
            "-1.5e3",
            "NaN",
            "Infinity",
            "-Infinity",
            "true",
            "false",
            "null",
            "{}",
            "[1]",
        ] {
            assert!(!Needle::whole(text).unwrap().quoted, "{text}");
        }
        for text in ["nan", "NaN ", "NaNs", "+Infinity", "e", "1a", "True", "x"] {
            assert!(Needle::whole(text).unwrap().quoted, "{text}");
        }
    }
}
