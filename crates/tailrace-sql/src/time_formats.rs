//! Formats of times as other databases have them, `YYYY-MM-DD`. Here they are those of strftime: DataFusion would write the letters themselves.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

/// Parts of formats, of which the longer ones come first, and what strftime calls them.
const PARTS: [(&str, &str); 17] = [
    ("YYYY", "%Y"),
    ("yyyy", "%Y"),
    ("HH24", "%H"),
    ("hh24", "%H"),
    ("HH12", "%I"),
    ("SSS", "%3f"),
    ("YY", "%y"),
    ("yy", "%y"),
    ("DD", "%d"),
    ("dd", "%d"),
    ("HH", "%H"),
    ("hh", "%H"),
    ("MI", "%M"),
    ("mi", "%M"),
    ("MS", "%3f"),
    ("SS", "%S"),
    ("ss", "%S"),
];

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

/// The same format with the parts of strftime, if it has none of them, and some of those.
fn as_strftime(format: &str) -> Option<String> {
    let mut rest = format;
    let mut written = String::new();
    let mut is_part = false;
    while let Some(next) = rest.chars().next() {
        let is_month = rest.starts_with("MM") || rest.starts_with("mm");
        let part = match is_month {
            true if written.ends_with(':') => Some(("MM", "%M")),
            true => Some(("MM", "%m")),
            false => PARTS.into_iter().find(|(part, _)| rest.starts_with(part)),
        };
        let length = match part {
            Some((part, strftime)) => {
                written += strftime;
                is_part = true;
                part.len()
            }
            None => {
                written.push(next);
                next.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    (is_part && !format.contains('%')).then_some(written)
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
        ] {
            assert_eq!(as_strftime(format).as_deref(), Some(expected));
        }
        for format in ["%Y-MM", "at", "", "day 1"] {
            assert_eq!(as_strftime(format), None, "{format}");
        }
    }
}
