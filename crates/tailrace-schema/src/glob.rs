//! Globs whose size is bounded.
//!
//! A glob becomes a regular expression. The code that does so recurses for each brace within braces, and what it makes is
//! limited in depth and size. So a glob is measured before it is parsed, and every glob that is accepted here can be
//! compiled. It never looks at a file.

use std::fmt;

use globset::{ErrorKind, Glob, GlobBuilder, GlobSet};

/// The longest glob, in bytes.
const BYTES_MAX: usize = 64 << 10;
/// The deepest braces within braces.
const DEPTH_MAX: usize = 16;

/// What is wrong with a glob. Its text does not repeat the glob.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// It has so many bytes.
    Long(usize),
    /// So many of its braces are within each other.
    Deep(usize),
    /// It cannot be parsed or compiled: why, and what to do about it.
    Syntax(String, &'static str),
}

/// Compiles a glob. With `is_path`, neither `*` nor `?` matches a `/`.
///
/// # Errors
///
/// It is too large, or none.
pub fn compile(glob: &str, is_path: bool) -> Result<GlobSet, Problem> {
    let parsed = parse(glob, is_path)?;
    GlobSet::new([parsed]).map_err(|error| Problem::of(&error))
}

/// Parses a glob, as one of several that are compiled together.
///
/// # Errors
///
/// It is too large, or none.
pub fn parse(glob: &str, is_path: bool) -> Result<Glob, Problem> {
    if glob.len() > BYTES_MAX {
        return Err(Problem::Long(glob.len()));
    }
    let depth = depth(glob);
    if depth > DEPTH_MAX {
        return Err(Problem::Deep(depth));
    }
    GlobBuilder::new(glob)
        .literal_separator(is_path)
        .backslash_escape(true)
        .build()
        .map_err(|error| Problem::of(&error))
}

impl Problem {
    fn of(error: &globset::Error) -> Self {
        let hint = match error.kind() {
            ErrorKind::UnclosedAlternates | ErrorKind::UnopenedAlternates => {
                "write `[{]` or `[}]` for a brace that is meant as such"
            }
            ErrorKind::InvalidRange(..) => {
                "write the characters of a range in order, as in `[a-z]`"
            }
            ErrorKind::DanglingEscape => "write `[\\]` for a backslash that is meant as such",
            ErrorKind::Regex(_) => "write several globs in place of this one",
            _ => "write `[[]` for a bracket that is meant as such",
        };
        let reason = match error.kind() {
            // Its text is the whole regular expression.
            ErrorKind::Regex(_) => "it cannot be compiled".to_owned(),
            kind => kind.to_string(),
        };
        Self::Syntax(reason, hint)
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Long(_) | Self::Deep(_) => "write several globs in place of this one",
            Self::Syntax(_, hint) => hint,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Long(bytes) => write!(f, "{bytes} bytes long, more than {BYTES_MAX}"),
            Self::Deep(depth) => {
                write!(f, "{depth} braces within each other, more than {DEPTH_MAX}")
            }
            Self::Syntax(reason, _) => f.write_str(reason),
        }
    }
}

/// How many braces are open at once, at most. Classes and escapes are read as `globset` reads them.
fn depth(glob: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut chars = glob.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => {
                chars.next_if(|c| matches!(c, '!' | '^'));
                // A bracket at the beginning of a class is part of it.
                chars.next();
                let _ = chars.by_ref().find(|c| *c == ']');
            }
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}b{}", "{a,".repeat(depth), "}".repeat(depth))
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_parsed() {
        for (glob, reason) in [
            (nested(17), "17 braces within each other, more than 16"),
            (nested(125), "125 braces within each other, more than 16"),
            (
                nested(16_383),
                "16383 braces within each other, more than 16",
            ),
            (nested(300_000), "1200001 bytes long, more than 65536"),
            ("?".repeat(1_000_000), "1000000 bytes long, more than 65536"),
            (
                "{[}]{".repeat(9),
                "18 braces within each other, more than 16",
            ),
            (
                "{[]}]".repeat(17),
                "17 braces within each other, more than 16",
            ),
            (
                "{[^]}]".repeat(17),
                "17 braces within each other, more than 16",
            ),
            (
                "{\\}".repeat(17),
                "17 braces within each other, more than 16",
            ),
        ] {
            for is_path in [true, false] {
                assert_eq!(
                    compile(&glob, is_path).unwrap_err().to_string(),
                    reason,
                    "{glob:.40}"
                );
            }
        }
    }

    #[test]
    fn the_largest_globs_are_compiled() {
        for glob in [
            nested(16),
            "?".repeat(BYTES_MAX),
            "*".repeat(BYTES_MAX),
            "**/".repeat(BYTES_MAX / 3),
            "[!a]".repeat(BYTES_MAX / 4),
            format!("{{{}}}", "?,".repeat(BYTES_MAX / 2 - 1)),
            format!("{{{}}}", "*,".repeat(BYTES_MAX / 2 - 1)),
            "{,}".repeat(BYTES_MAX / 3),
            "{{*,?},[ab]}/".repeat(BYTES_MAX / 13),
            "\u{fe}".repeat(BYTES_MAX / 2),
            "[[]{}".repeat(100),
            "\\{".repeat(100),
            "{[\u{e9}-\u{ff}],b}".to_owned(),
        ] {
            for is_path in [true, false] {
                let compiled = compile(&glob, is_path);
                assert!(compiled.is_ok(), "{glob:.40}: {compiled:?}");
            }
        }
    }

    #[test]
    fn a_hint_is_about_what_is_wrong() {
        for (glob, hint) in [
            ("[a", "write `[[]` for a bracket that is meant as such"),
            (
                "{a,b",
                "write `[{]` or `[}]` for a brace that is meant as such",
            ),
            (
                "a,b}",
                "write `[{]` or `[}]` for a brace that is meant as such",
            ),
            (
                "[b-a]",
                "write the characters of a range in order, as in `[a-z]`",
            ),
            ("a\\", "write `[\\]` for a backslash that is meant as such"),
        ] {
            assert_eq!(compile(glob, true).unwrap_err().hint(), hint, "{glob}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_glob_is_one_line() {
        let unclosed = compile("[a", true).unwrap_err().to_string();
        assert_eq!(unclosed, "unclosed character class; missing ']'");
    }
}
