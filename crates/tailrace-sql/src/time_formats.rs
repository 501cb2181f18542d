//! Formats of times as other databases have them, `YYYY-MM-DD`. Here they are those of strftime: DataFusion would write the letters themselves.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

/// Parts of formats, of which the longer ones come first, and what strftime calls them.
const PARTS: [(&str, &str); 32] = [
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("Month", "%B"),
    ("MONTH", "%B"),
    ("Mon", "%b"),
    ("MON", "%b"),
    ("Day", "%A"),
    ("DAY", "%A"),
    ("Dy", "%a"),
    ("DY", "%a"),
    ("YYYY", "%Y"),
    ("yyyy", "%Y"),
    ("HH24", "%H"),
    ("hh24", "%H"),
    ("HH12", "%I"),
    ("hh12", "%I"),
    ("SSS", "%3f"),
    ("YY", "%y"),
    ("yy", "%y"),
    ("DD", "%d"),
    ("dd", "%d"),
    ("HH", HOUR),
    ("hh", HOUR),
    ("MI", "%M"),
    ("mi", "%M"),
    ("MS", "%3f"),
    ("SS", "%S"),
    ("ss", "%S"),
    ("AM", HALF),
    ("PM", HALF),
    ("am", HALF),
    ("pm", HALF),
];
const HOUR: &str = "%H";
const HALF: &str = "%p";

/// A format of another database.
pub struct OtherFormat<'q> {
    /// The argument that it is.
    pub argument: &'q Expr,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: String,
}

/// An argument of a call, but for the first one, that is such a format.
#[must_use]
pub fn other_format(called: &Function) -> Option<OtherFormat<'_>> {
    let FunctionArguments::List(list) = &called.args else {
        return None;
    };
    list.args.iter().skip(1).find_map(|argument| {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument @ Expr::Value(value))) = argument
        else {
            return None;
        };
        let Value::SingleQuotedString(format) = &value.value else {
            return None;
        };
        let written = as_strftime(format)?;
        Some(OtherFormat {
            argument,
            message: format!("'{format}' has no part of a time in it"),
            hint: format!("the parts of a format are those of strftime: write '{written}'"),
        })
    })
}

/// The same format with the parts of strftime, if it has none of them, and all of its letters are of others.
fn as_strftime(format: &str) -> Option<String> {
    let is_word = |word: &str| {
        format
            .split(|of: char| !of.is_alphanumeric())
            .any(|it| it == word)
    };
    let has_half = is_word("a")
        || ["AM", "PM", "am", "pm"]
            .iter()
            .any(|it| format.contains(it));
    let mut rest = format;
    let mut written = String::new();
    let mut is_part = false;
    while let Some(next) = rest.chars().next() {
        let length = match part_of(rest, &written) {
            Some((length, strftime)) => {
                written += if has_half && strftime == HOUR {
                    "%I"
                } else {
                    strftime
                };
                is_part = true;
                length
            }
            None => {
                // A date and a time are often written with a T between them.
                match next {
                    'T' if is_part => written.push(next),
                    'a' if is_word("a") => written += HALF,
                    _ if next.is_alphabetic() => return None,
                    _ => written.push(next),
                }
                next.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    (is_part && !format.contains('%')).then_some(written)
}

/// The part that a format begins with: its length, and what strftime calls it. `written` is what stands before it.
fn part_of(rest: &str, written: &str) -> Option<(usize, &'static str)> {
    const BETWEEN: [char; 3] = [':', '.', '-'];
    let known = PARTS.into_iter().find(|(part, _)| rest.starts_with(part));
    if let Some((part, strftime)) = known {
        return Some((part.len(), strftime));
    }
    let behind = rest.strip_prefix("MM").or(rest.strip_prefix("mm"))?;
    let behind = behind.strip_prefix(BETWEEN).unwrap_or(behind);
    let before = written.strip_suffix(BETWEEN).unwrap_or(written);
    let is_minute = ["%H", "%I"].iter().any(|hour| before.ends_with(hour))
        || ["SS", "ss"].iter().any(|second| behind.starts_with(second));
    Some((2, if is_minute { "%M" } else { "%m" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_of_other_databases_are_those_of_strftime() {
        for (format, expected) in [
            ("YYYY-MM-DD", "%Y-%m-%d"),
            ("yyyy-MM-dd HH:mm:ss", "%Y-%m-%d %H:%M:%S"),
            ("YYYY-MM-DD HH24:MI:SS.MS", "%Y-%m-%d %H:%M:%S.%3f"),
            ("yyyy-mm-ddTHH:MM:ss", "%Y-%m-%dT%H:%M:%S"),
            ("yyyyMMddHHmmss", "%Y%m%d%H%M%S"),
            ("HH.mm", "%H.%M"),
            ("mm:ss", "%M:%S"),
            ("HH:MI AM", "%I:%M %p"),
            ("hh:mm a", "%I:%M %p"),
            ("Mon DD, YYYY", "%b %d, %Y"),
            ("DD MMM YYYY", "%d %b %Y"),
        ] {
            assert_eq!(as_strftime(format).as_deref(), Some(expected));
        }
        for format in ["%Y-MM", "at", "", "day 1", "address", "minutes ago"] {
            assert_eq!(as_strftime(format), None, "{format}");
        }
    }
}
