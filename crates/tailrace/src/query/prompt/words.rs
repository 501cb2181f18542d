//! What the line editor knows of SQL: where a query ends, and the words that complete what is written.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper};
use tailrace_config::is_unsafe;

use super::statement::is_complete;

/// Words of SQL.
const KEYWORDS: &str = "SELECT DISTINCT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET AS AND OR NOT NULL IS IN LIKE ILIKE SIMILAR \
    TO BETWEEN EXISTS CASE WHEN THEN ELSE END CAST JOIN LEFT RIGHT FULL INNER OUTER CROSS ON USING UNION ALL INTERSECT EXCEPT WITH \
    RECURSIVE OVER PARTITION ROWS RANGE FILTER WITHIN ASC DESC NULLS FIRST LAST INTERVAL TIMESTAMP DATE BIGINT DOUBLE VARCHAR \
    BOOLEAN TRUE FALSE EXTRACT";
const COMMANDS: [&str; 3] = [".help", ".quit", ".schema"];

/// The words that complete a query.
pub(super) struct Words {
    all: Vec<String>,
}

impl Words {
    /// The columns and files, as a query has to write them, and functions. Names that a terminal would obey are left out.
    pub(super) fn new<'n>(
        columns: impl Iterator<Item = &'n str>,
        files: &[String],
        functions: Vec<String>,
    ) -> Words {
        let mut all: Vec<_> = columns.map(column).collect();
        all.extend(
            files
                .iter()
                .map(|file| format!("'{}'", file.replace('\'', "''"))),
        );
        all.push("logs".to_owned());
        all.extend(functions);
        all.extend(KEYWORDS.split_whitespace().map(str::to_owned));
        all.retain(|word| !word.contains(is_unsafe));
        all.sort_unstable();
        all.dedup();
        Words { all }
    }

    /// Where the word begins that ends at the end of `before`, and the words that begin so, in any case.
    fn completed(&self, before: &str) -> (usize, Vec<String>) {
        if before.starts_with('.') && !before.contains(char::is_whitespace) {
            let commands = COMMANDS.into_iter().filter(|it| it.starts_with(before));
            return (0, commands.map(str::to_owned).collect());
        }
        let start = word_start(before);
        let prefix = before[start..].to_lowercase();
        if prefix.is_empty() {
            return (start, Vec::new());
        }
        // A column that has to stand in quotes is found without them, too.
        let begins = |word: &&String| {
            let word = word.to_lowercase();
            word.starts_with(&prefix) || word.trim_start_matches(['"', '\'']).starts_with(&prefix)
        };
        (start, self.all.iter().filter(begins).cloned().collect())
    }
}

/// Where the last word begins: at its opening quote, if that is open.
fn word_start(before: &str) -> usize {
    for quote in ['\'', '"'] {
        if before.matches(quote).count() % 2 == 1 {
            return before.rfind(quote).unwrap_or(0);
        }
    }
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let word = before.rfind(|c| !is_part(c));
    word.map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    })
}

/// A column as a query names it.
fn column(name: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_plain = name.chars().all(is_part) && !name.starts_with(|c: char| c.is_ascii_digit());
    let is_keyword = KEYWORDS
        .split(' ')
        .any(|word| word.eq_ignore_ascii_case(name));
    match is_plain && !is_keyword && !name.is_empty() {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.completed(&line[..pos]))
    }
}

impl Validator for Words {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_complete_what_is_written() {
        let columns = ["status", "log.iostream", "user", "\u{1b}[2J", "order"];
        let words = Words::new(
            columns.into_iter(),
            &["a b.log".to_owned()],
            vec!["sum".to_owned()],
        );
        let of = |before: &str| {
            let (start, found) = words.completed(before);
            found
                .into_iter()
                .map(|word| before[..start].to_owned() + &word)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("sel"), ["SELECT"]);
        assert_eq!(of("SELECT max(stat"), ["SELECT max(status"]);
        assert_eq!(of("SELECT log."), [""; 0]);
        assert_eq!(of("SELECT \"log."), ["SELECT \"log.iostream\""]);
        assert_eq!(of("SELECT lo"), ["SELECT \"log.iostream\"", "SELECT logs"]);
        assert_eq!(of("SELECT su"), ["SELECT sum"]);
        assert_eq!(
            of("SELECT 'x', ord"),
            ["SELECT 'x', \"order\"", "SELECT 'x', ORDER"]
        );
        assert_eq!(of("FROM 'a"), ["FROM 'a b.log'"]);
        assert_eq!(of(".s"), [".schema"]);
        assert_eq!(of("SELECT ä"), [""; 0]);
        assert_eq!(of("SELECT "), [""; 0]);
    }
}
