//! The dialect of queries: DataFusion's generic SQL with PostgreSQL's operator precedence.
//!
//! So that `http->>'status' = '200'` compares what `->>` gives. Identifiers keep their case (nobody normalises them),
//! `"x"` and `` `x` `` quote, and `@timestamp` needs no quotes.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, PostgreSqlDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// See the module.
#[derive(Debug)]
pub(crate) struct LogsDialect;

impl Dialect for LogsDialect {
    // Where the parser asks for a dialect by name, this is the generic one.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_' || ch == '@'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || matches!(ch, '_' | '@' | '$')
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        PostgreSqlDialect {}.get_next_precedence(parser)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        PostgreSqlDialect {}.prec_value(precedence)
    }

    /// `a IS DISTINCT FROM b AND c` is `(a IS DISTINCT FROM b) AND c`; the parser alone takes all that follows for the
    /// other side.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        expr: &Expr,
        _: u8,
    ) -> Option<Result<Expr, ParserError>> {
        use Keyword::{DISTINCT, FROM, IS, NOT};
        let is_not = parser.parse_keywords(&[IS, NOT, DISTINCT, FROM]);
        if !is_not && !parser.parse_keywords(&[IS, DISTINCT, FROM]) {
            return None;
        }
        let left = Box::new(expr.clone());
        let other = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(other.map(|right| match is_not {
            true => Expr::IsNotDistinctFrom(left, Box::new(right)),
            false => Expr::IsDistinctFrom(left, Box::new(right)),
        }))
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    // The three below are accepted by the parser so that they can be refused with a hint.
    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_select_wildcard_rename(&self) -> bool {
        true
    }

    fn supports_select_wildcard_ilike(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_limit_comma(&self) -> bool {
        true
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_projection_trailing_commas(&self) -> bool {
        true
    }

    fn supports_try_convert(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    fn supports_extract_comma_syntax(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same with parentheses around each operator.
    fn grouped(expr: &Expr) -> String {
        match expr {
            Expr::BinaryOp { left, op, right } => {
                format!("({} {op} {})", grouped(left), grouped(right))
            }
            Expr::IsDistinctFrom(left, right) => {
                format!("({} IS DISTINCT FROM {})", grouped(left), grouped(right))
            }
            Expr::IsNotDistinctFrom(left, right) => {
                format!(
                    "({} IS NOT DISTINCT FROM {})",
                    grouped(left),
                    grouped(right)
                )
            }
            Expr::Nested(inner) => grouped(inner),
            other => other.to_string(),
        }
    }

    #[test]
    fn is_distinct_from_ends_where_and_and_or_begin() {
        for (text, expected) in [
            (
                "a IS DISTINCT FROM b AND c",
                "((a IS DISTINCT FROM b) AND c)",
            ),
            (
                "a IS NOT DISTINCT FROM 1 + 2 OR c",
                "((a IS NOT DISTINCT FROM (1 + 2)) OR c)",
            ),
            (
                "x = 1 AND a IS DISTINCT FROM b OR y",
                "(((x = 1) AND (a IS DISTINCT FROM b)) OR y)",
            ),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d AND e",
                "(((a IS DISTINCT FROM b) AND (c IS DISTINCT FROM d)) AND e)",
            ),
            (
                "a IS DISTINCT FROM (b AND c)",
                "(a IS DISTINCT FROM (b AND c))",
            ),
            ("a IS NOT NULL AND b", "(a IS NOT NULL AND b)"),
        ] {
            let parser = Parser::new(&LogsDialect).try_with_sql(text);
            let expr = parser.and_then(|mut parser| parser.parse_expr());
            assert_eq!(grouped(&expr.expect("it is an expression")), expected);
        }
    }
}
