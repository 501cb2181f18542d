//! What can be wrong with a query, and where.
//!
//! Maps spans of the parser's tree to 1-based lines and columns (in characters) of the SQL text. Never prints.

use arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use crate::dialect::LogsDialect;

/// A query that cannot be run, with the place in its text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct Error {
    /// What is wrong: lowercase, no full stop.
    pub message: String,
    /// Line in the SQL text, from 1.
    pub line: usize,
    /// Column in that line in characters, from 1.
    pub column: usize,
    /// How many characters of the line are meant; at least 1.
    pub length: usize,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Something in a query that runs, but perhaps not as meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Line in the SQL text, from 1.
    pub line: usize,
    /// Column in that line in characters, from 1.
    pub column: usize,
    /// What to know, and what to do: lowercase, no full stop.
    pub message: String,
}

/// A stretch of one line of the SQL text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) length: usize,
}

impl Position {
    /// Where nothing better is known.
    pub(crate) const START: Position = Position {
        line: 1,
        column: 1,
        length: 1,
    };

    pub(crate) fn error(self, message: impl Into<String>) -> Error {
        Error {
            message: message.into(),
            line: self.line,
            column: self.column,
            length: self.length.max(1),
            hint: None,
        }
    }
}

impl Error {
    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }
}

/// Places of tokens in one SQL text.
pub(crate) struct Positions {
    lines: Vec<usize>,
    tokens: Vec<TokenWithSpan>,
}

impl Positions {
    pub(crate) fn new(sql: &str) -> Positions {
        let lines = sql.split('\n').map(|line| line.chars().count()).collect();
        // A text that is no SQL has no tokens; the parser reports it.
        let tokens = Tokenizer::new(&LogsDialect, sql)
            .tokenize_with_location()
            .unwrap_or_default();
        Positions { lines, tokens }
    }

    /// The place of a span; a span over several lines is cut at the end of its first.
    pub(crate) fn of(&self, span: Span) -> Position {
        let Location { line, column } = span.start;
        if line == 0 {
            return Position::START;
        }
        let (line, column) = (line as usize, column as usize);
        let end = if span.end.line as usize == line {
            span.end.column as usize
        } else {
            self.lines.get(line - 1).map_or(column, |length| length + 1)
        };
        Position {
            line,
            column,
            length: end.saturating_sub(column).max(1),
        }
    }

    /// The first of `words` at or after `from`.
    pub(crate) fn keyword(&self, words: &[Keyword], from: Location) -> Option<Position> {
        let at = |token: &&TokenWithSpan| token.span.start >= from;
        let is = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if words.contains(&word.keyword));
        self.tokens
            .iter()
            .filter(at)
            .find(is)
            .map(|token| self.of(token.span))
    }

    /// The first semicolon after a statement.
    pub(crate) fn semicolon(&self) -> Option<Position> {
        let is_blank =
            |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(_) | Token::SemiColon);
        let mut tokens = self.tokens.iter().skip_while(is_blank);
        let found = tokens.find(|token| token.token == Token::SemiColon);
        found.map(|token| self.of(token.span))
    }

    /// Where a text gets so long without a comma that its tree may be too deep to be walked: operators nest without
    /// parentheses, one level for each. `max` counts tokens, those around parentheses too.
    pub(crate) fn too_long(&self, max: usize) -> Option<Position> {
        let mut open = vec![0];
        let mut total = 0;
        for token in &self.tokens {
            let last = open.len() - 1;
            match &token.token {
                Token::Whitespace(_) => continue,
                Token::Comma | Token::SemiColon => total -= std::mem::take(&mut open[last]),
                Token::RParen | Token::RBracket | Token::RBrace => {
                    if last > 0 {
                        total -= open.pop().unwrap_or(0);
                    }
                }
                token => {
                    open[last] += 1;
                    total += 1;
                    if matches!(token, Token::LParen | Token::LBracket | Token::LBrace) {
                        open.push(0);
                    }
                }
            }
            if total > max {
                return Some(self.of(token.span));
            }
        }
        None
    }

    /// How often a keyword stands in the text.
    pub(crate) fn count(&self, keyword: Keyword) -> usize {
        let is = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == keyword);
        self.tokens.iter().filter(is).count()
    }

    /// What the parser says, with the place taken out of its message.
    pub(crate) fn parser_error(&self, error: &ParserError) -> Error {
        let text = match error {
            ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
            ParserError::RecursionLimitExceeded => {
                return Position::START
                    .error("the query nests too deeply")
                    .with_hint("write long lists of alternatives as `x IN (...)`");
            }
        };
        const HINT: &str = "a query is SELECT ... FROM logs WHERE ...; a key that is an SQL word is written in double quotes";
        let Some((message, rest)) = text.rsplit_once(" at Line: ") else {
            return self.end().error(first_lower(text)).with_hint(HINT);
        };
        let mut numbers = rest
            .split(", Column: ")
            .map(|number| number.trim().parse::<u64>().unwrap_or(0));
        let start = Location {
            line: numbers.next().unwrap_or(0),
            column: numbers.next().unwrap_or(0),
        };
        if start.line == 0 {
            return self.end().error(first_lower(message)).with_hint(HINT);
        }
        let token = self.tokens.iter().find(|token| token.span.start == start);
        let span = token.map_or(Span { start, end: start }, |token| token.span);
        self.of(span).error(first_lower(message)).with_hint(HINT)
    }

    /// Just after the last character that is not white space.
    pub(crate) fn end(&self) -> Position {
        let last = self
            .tokens
            .iter()
            .rev()
            .find(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF));
        last.map_or(Position::START, |token| {
            self.of(Span {
                start: token.span.end,
                end: token.span.end,
            })
        })
    }
}

/// DataFusion's message in one line: without its prefix, its list of candidates and its advice.
pub(crate) fn planner_message(error: &DataFusionError) -> String {
    let text = error.find_root().strip_backtrace();
    let mut text = text.lines().next().unwrap_or_default();
    for prefix in [
        "Error during planning: ",
        "Schema error: ",
        "This feature is not implemented: ",
        "Execution error: ",
        "Internal error: ",
    ] {
        text = text.strip_prefix(prefix).unwrap_or(text);
    }
    let end = [
        ". No function matches",
        ", errors: ",
        ". You might need",
        " You might need",
        "\tCandidate",
        " Candidate functions",
    ];
    let end = end
        .iter()
        .filter_map(|advice| text.find(advice))
        .min()
        .unwrap_or(text.len());
    let text = text[..end].trim().trim_end_matches('.');
    first_lower(&friendly(text))
}

/// An Arrow type for a message.
pub(crate) fn type_name(ty: &DataType) -> String {
    if crate::value::array::is_value(ty) {
        return "a number or a value of any kind".to_owned();
    }
    friendly(&ty.to_string())
}

fn friendly(text: &str) -> String {
    let text = text.replace("Utf8View", "text").replace("Utf8", "text");
    // What a value of any kind is made of says nothing to anybody.
    text.replace(
        "Struct(\"text\": text, \"kind\": UInt8)",
        "a number or a value of any kind",
    )
}

fn first_lower(text: &str) -> String {
    let text = text.strip_prefix("sql parser error: ").unwrap_or(text);
    let mut chars = text.chars();
    let is_word = |rest: &str| !rest.starts_with(|ch: char| ch.is_uppercase());
    match chars.next() {
        Some(first) if !is_word(chars.as_str()) => format!("{first}{}", chars.as_str()),
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}
