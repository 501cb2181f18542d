//! Keys of ROLLUP, CUBE and GROUPING SETS that begin with a parenthesis and go on behind it, as `(a + b) * 2`. The parser takes what stands in
//! such parentheses for a list of keys.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The same tokens, with such keys in parentheses.
pub(crate) fn keys_in_parentheses(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut added = added(&tokens);
    if added.is_empty() {
        return tokens;
    }
    added.sort_by_key(|it| it.at);
    let mut added = added.into_iter().peekable();
    let mut all = Vec::with_capacity(tokens.len() + added.len());
    for (at, token) in tokens.into_iter().enumerate() {
        while let Some(parenthesis) = added.next_if(|it| it.at == at) {
            all.push(TokenWithSpan::new(parenthesis.token, token.span));
        }
        all.push(token);
    }
    all
}

/// A parenthesis that is put before a token.
struct Added {
    at: usize,
    token: Token,
}

/// What stands in parentheses that are open.
#[derive(Default)]
struct Open {
    /// It is a list of keys.
    has_keys: bool,
    /// Where the key begins that is read, if it begins with a parenthesis.
    start: Option<usize>,
    /// Where that parenthesis is closed.
    first_end: Option<usize>,
    /// Something of the key has been read.
    is_within: bool,
}

impl Open {
    /// Ends a key, before the token `at`; `last` is the last one of the key.
    fn end_key(&mut self, at: usize, last: usize, added: &mut Vec<Added>) {
        if let (Some(start), Some(end)) = (self.start, self.first_end)
            && end != last
        {
            added.push(Added {
                at: start,
                token: Token::LParen,
            });
            added.push(Added {
                at,
                token: Token::RParen,
            });
        }
        *self = Open {
            has_keys: self.has_keys,
            ..Open::default()
        };
    }
}

fn added(tokens: &[TokenWithSpan]) -> Vec<Added> {
    let mut added = Vec::new();
    let mut open = vec![Open::default()];
    let mut last = 0;
    let mut is_list_next = false;
    for (at, token) in tokens.iter().enumerate() {
        let token = &token.token;
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        let depth = open.len() - 1;
        let around = &mut open[depth];
        match token {
            Token::LParen => {
                if around.has_keys && !around.is_within {
                    (around.start, around.is_within) = (Some(at), true);
                }
                open.push(Open {
                    has_keys: is_list_next,
                    ..Open::default()
                });
            }
            Token::RParen if depth > 0 => {
                if around.has_keys {
                    around.end_key(at, last, &mut added);
                }
                open.pop();
                let around = &mut open[depth - 1];
                around.first_end = around.first_end.or(Some(at));
            }
            Token::Comma if around.has_keys => around.end_key(at, last, &mut added),
            _ => around.is_within = true,
        }
        is_list_next = matches!(token, Token::Word(word)
            if matches!(word.keyword, Keyword::ROLLUP | Keyword::CUBE | Keyword::SETS));
        last = at;
    }
    added
}

#[cfg(test)]
mod tests {
    use crate::error::Positions;
    use crate::parse::one_query;

    /// The keys as they are parsed.
    fn keys(keys: &str) -> String {
        let sql = format!("SELECT 1 FROM t GROUP BY {keys}");
        let query = one_query(&sql, &Positions::new(&sql)).expect("it is a query");
        let text = query.to_string();
        text.split_once("GROUP BY ")
            .expect("it has keys")
            .1
            .to_owned()
    }

    #[test]
    fn parentheses_of_a_key_are_no_list_of_keys() {
        for (written, parsed) in [
            ("ROLLUP((a + b) * 2, c)", "ROLLUP ((a + b) * 2, c)"),
            ("CUBE(c, (a) + (b))", "CUBE (c, (a) + (b))"),
            ("ROLLUP((a, b), (c))", "ROLLUP ((a, b), c)"),
            (
                "GROUPING SETS ((a)::text, (f((x), y), b), ())",
                "GROUPING SETS (((a)::TEXT), (f((x), y), b), ())",
            ),
            ("ROLLUP (f((a)), (b) /* one */)", "ROLLUP (f((a)), b)"),
        ] {
            assert_eq!(keys(written), parsed);
        }
    }
}
