//! What was written at the prompt: a command, or a query up to its semicolon.

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Statement<'t> {
    Nothing,
    Quit,
    Help,
    Schema,
    /// A command that there is not.
    Unknown(&'t str),
    Query(&'t str),
}

/// Reads what was written.
pub(super) fn statement(text: &str) -> Statement<'_> {
    let text = text.trim();
    let word = text.trim_end_matches(';').trim_end();
    match word {
        "" => Statement::Nothing,
        ".quit" | ".exit" | "\\q" | "quit" | "exit" => Statement::Quit,
        ".help" | "\\?" | "\\h" | "help" => Statement::Help,
        ".schema" | "\\d" => Statement::Schema,
        _ if is_command(word) => Statement::Unknown(word),
        _ => Statement::Query(text),
    }
}

/// Whether Enter ends what was written, and does not begin a further line.
pub(super) fn is_complete(text: &str) -> bool {
    !matches!(statement(text), Statement::Query(_)) || ends_with_semicolon(text)
}

fn is_command(text: &str) -> bool {
    text.starts_with(['.', '\\'])
}

/// Whether the last character outside of quotes and comments is a semicolon.
fn ends_with_semicolon(text: &str) -> bool {
    let mut last = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (opening, closing) = match c {
            '\'' => ("'", "'"),
            '"' => ("\"", "\""),
            _ if rest.starts_with("--") => ("--", "\n"),
            _ if rest.starts_with("/*") => ("/*", "*/"),
            _ => {
                last = if c.is_whitespace() { last } else { c };
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let is_comment = opening.len() > 1;
        last = if is_comment { last } else { c };
        let inner = &rest[opening.len()..];
        match inner.find(closing) {
            Some(end) => rest = &inner[end + closing.len()..],
            // A comment up to the end of the line may also end the text.
            None if closing == "\n" => break,
            None => return false,
        }
    }
    last == ';'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_ends_with_a_semicolon_of_its_own() {
        for complete in [
            "SELECT 1;",
            "SELECT 1 ; \n",
            "SELECT ';', \"a;b\" FROM logs;",
            "SELECT 1; -- it's done",
            "SELECT 'it''s';",
            "SELECT 1 /* ; */;",
            "",
            "  ",
            ";",
            ".help",
            "\\d",
            "\\x",
            "quit",
        ] {
            assert!(is_complete(complete), "{complete}");
        }
        for incomplete in [
            "SELECT 1",
            "SELECT ';",
            "SELECT ';'",
            "SELECT \"a;",
            "SELECT 1 -- ;",
            "SELECT 1 /* ;",
            "SELECT 1;\nSELECT",
            "quit the house",
        ] {
            assert!(!is_complete(incomplete), "{incomplete}");
        }
    }

    #[test]
    fn commands_are_told_from_queries() {
        let cases = [
            (" .schema ;", Statement::Schema),
            ("\\?", Statement::Help),
            ("exit;", Statement::Quit),
            (";;", Statement::Nothing),
            (".tables", Statement::Unknown(".tables")),
            ("SELECT 1;", Statement::Query("SELECT 1;")),
        ];
        for (text, expected) in cases {
            assert_eq!(statement(text), expected);
        }
    }
}
