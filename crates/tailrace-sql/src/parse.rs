//! SQL text to the SELECTs of a UNION ALL, everything else refused.
//!
//! Parses text into one [`SelectPart`] per SELECT, whose clauses are known to be a projection and at most a WHERE over
//! `logs`. What one batch cannot answer as the whole stream would (grouping, sorting, limits, joins, subqueries) is
//! refused here, with its place. Never looks inside expressions.

use datafusion::sql::sqlparser::ast::{
    GroupByExpr, ObjectNamePart, Query, Select, SelectFlavor, SetExpr, SetOperator, SetQuantifier,
    Spanned, Statement, TableFactor,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Tokenizer};

use crate::copies::too_many;
use crate::dialect::LogsDialect;
use crate::error::{Error, Position, Positions};
use crate::group_keys::keys_in_parentheses;

/// The deepest nesting of parentheses that is parsed.
const NESTING_MAX: usize = 100;
/// What is said of other statements.
pub(crate) const ONLY_SELECT: &str = "only SELECT is possible here";

/// The longest text that is parsed.
const SQL_BYTES_MAX: usize = 256 * 1024;

/// The most tokens between two commas. A chain of operators is parsed into as many levels, which are walked by recursion:
/// half as many levels fit the planning stack in a debug build, with room.
const TOKENS_MAX: usize = 4000;

/// The most SELECTs that are joined.
const SELECTS_MAX: usize = 1000;

/// One SELECT of the query.
pub(crate) struct SelectPart {
    pub(crate) select: Select,
    /// The name that may qualify columns: the alias of `logs`, or `logs`.
    pub(crate) table: String,
}

/// Parses the query and refuses all but SELECTs over `logs`, joined by UNION ALL.
pub(crate) fn parse(sql: &str, places: &Positions) -> Result<Vec<SelectPart>, Error> {
    let mut parts = Vec::new();
    split(one_query(sql, places)?, places, &mut parts)?;
    Ok(parts)
}

/// Parses the one query that the text is, within the bounds of what can be walked.
pub(crate) fn one_query(sql: &str, places: &Positions) -> Result<Query, Error> {
    if sql.len() > SQL_BYTES_MAX {
        let error =
            Position::START.error(format!("the query is longer than {SQL_BYTES_MAX} bytes"));
        return Err(error.with_hint("split it into several pipelines"));
    }
    if let Some(place) = places.too_long(TOKENS_MAX) {
        let error = place.error(format!(
            "the expression is longer than {TOKENS_MAX} words and signs"
        ));
        return Err(error.with_hint("write long lists of alternatives as `x IN (...)`"));
    }
    if places.count(Keyword::SELECT) > SELECTS_MAX {
        let error = Position::START.error(format!("the query has more than {SELECTS_MAX} SELECTs"));
        return Err(error.with_hint("split it into several pipelines"));
    }
    let tokens = Tokenizer::new(&LogsDialect, sql).tokenize_with_location();
    let statements = tokens.map_err(ParserError::from).and_then(|tokens| {
        let parser = Parser::new(&LogsDialect).with_recursion_limit(NESTING_MAX);
        let mut parser = parser.with_tokens_with_locations(keys_in_parentheses(tokens));
        parser.parse_statements()
    });
    let mut statements = statements
        .map_err(|error| places.parser_error(&error))?
        .into_iter();
    let hint = "write `SELECT * FROM logs` to pass every record";
    let Some(statement) = statements.next() else {
        return Err(Position::START.error("the query is empty").with_hint(hint));
    };
    if let Some(second) = statements.next() {
        let place = places
            .semicolon()
            .unwrap_or_else(|| places.of(second.span()));
        return Err(place
            .error("a query is one statement")
            .with_hint("join several SELECTs with UNION ALL"));
    }
    let Statement::Query(query) = statement else {
        return Err(places
            .of(statement.span())
            .error(ONLY_SELECT)
            .with_hint(hint));
    };
    if let Some(large) = too_many(&query) {
        let error = places.of(large.span()).error(
            "the expression is too large when it is written out: its parts stand in it twice at each level",
        );
        return Err(error.with_hint(
            "write `coalesce(a, b, c)` for `coalesce(coalesce(a, b), c)`, and nest BETWEEN, IN and coalesce less",
        ));
    }
    Ok(*query)
}

fn split(query: Query, places: &Positions, parts: &mut Vec<SelectPart>) -> Result<(), Error> {
    let behind = query.body.span().end;
    let refuse = |words: &[Keyword], what: &str, hint: &str| {
        let place = places
            .keyword(words, behind)
            .unwrap_or_else(|| places.of(query.body.span()));
        Err(place
            .error(format!("{what} is not possible on a stream of records"))
            .with_hint(hint))
    };
    const BATCHES: &str = "a query sees one record at a time: batches have no order and no end";
    if let Some(with) = &query.with {
        let place = places.of(with.with_token.0.span);
        return Err(place
            .error("WITH is not possible here")
            .with_hint("write the query as one SELECT over `logs`"));
    }
    if query.order_by.is_some() {
        return refuse(&[Keyword::ORDER], "ORDER BY", BATCHES);
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        let words = [Keyword::LIMIT, Keyword::OFFSET, Keyword::FETCH];
        return refuse(
            &words,
            "LIMIT",
            "use WHERE to pass fewer records, for example `random() < 0.01`",
        );
    }
    let others = query.locks.is_empty() && query.for_clause.is_none() && query.settings.is_none();
    if !others || query.format_clause.is_some() || !query.pipe_operators.is_empty() {
        return refuse(
            &[Keyword::FOR, Keyword::SETTINGS, Keyword::FORMAT],
            "this clause",
            BATCHES,
        );
    }
    body(*query.body, places, parts)
}

fn body(body: SetExpr, places: &Positions, parts: &mut Vec<SelectPart>) -> Result<(), Error> {
    let span = body.span();
    match body {
        SetExpr::Select(select) => {
            parts.push(check(*select, places)?);
            Ok(())
        }
        SetExpr::Query(query) => split(*query, places, parts),
        SetExpr::SetOperation {
            left,
            op,
            set_quantifier,
            right,
        } => {
            let from = left.span().end;
            if op != SetOperator::Union || set_quantifier != SetQuantifier::All {
                let words = [
                    Keyword::UNION,
                    Keyword::INTERSECT,
                    Keyword::EXCEPT,
                    Keyword::MINUS,
                ];
                let place = places
                    .keyword(&words, from)
                    .unwrap_or_else(|| places.of(span));
                let what = if op == SetOperator::Union {
                    "UNION without ALL".to_owned()
                } else {
                    op.to_string()
                };
                let message = format!(
                    "{what} compares records with each other, which a stream of batches cannot"
                );
                return Err(place
                    .error(message)
                    .with_hint("use UNION ALL, or a condition in WHERE"));
            }
            body_of_union(*left, *right, places, parts)
        }
        _ => Err(places
            .of(span)
            .error(ONLY_SELECT)
            .with_hint("write `SELECT ... FROM logs`")),
    }
}

fn body_of_union(
    left: SetExpr,
    right: SetExpr,
    places: &Positions,
    parts: &mut Vec<SelectPart>,
) -> Result<(), Error> {
    body(left, places, parts)?;
    body(right, places, parts)
}

const PER_BATCH: &str =
    "it would be answered batch by batch, and differ with how records fall into batches";

/// Refuses every clause but the projection, FROM logs and WHERE.
fn check(select: Select, places: &Positions) -> Result<SelectPart, Error> {
    let start = select.select_token.0.span.start;
    let refuse = |words: &[Keyword], what: &str, hint: &str| {
        let place = places
            .keyword(words, start)
            .unwrap_or_else(|| places.of(select.select_token.0.span));
        Err(place
            .error(format!("{what} is not possible on a stream of records"))
            .with_hint(hint))
    };
    if select.distinct.is_some() {
        return refuse(&[Keyword::DISTINCT], "DISTINCT", PER_BATCH);
    }
    if !matches!(&select.group_by, GroupByExpr::Expressions(keys, rest) if keys.is_empty() && rest.is_empty())
    {
        return refuse(&[Keyword::GROUP], "GROUP BY", PER_BATCH);
    }
    if select.having.is_some() {
        return refuse(&[Keyword::HAVING], "HAVING", "use WHERE");
    }
    if select.qualify.is_some() || !select.named_window.is_empty() {
        return refuse(&[Keyword::QUALIFY, Keyword::WINDOW], "a window", PER_BATCH);
    }
    if select.top.is_some() {
        return refuse(&[Keyword::TOP], "TOP", "use WHERE to pass fewer records");
    }
    let sorted = !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty();
    let odd = select.into.is_some()
        || select.exclude.is_some()
        || select.prewhere.is_some()
        || select.value_table_mode.is_some()
        || select.select_modifiers.is_some();
    if sorted || odd || !select.lateral_views.is_empty() || !select.connect_by.is_empty() {
        let words = [
            Keyword::INTO,
            Keyword::PREWHERE,
            Keyword::LATERAL,
            Keyword::CONNECT,
            Keyword::START,
            Keyword::CLUSTER,
            Keyword::DISTRIBUTE,
            Keyword::SORT,
            Keyword::AS,
        ];
        return refuse(
            &words,
            "this clause",
            "a query is SELECT ... FROM logs WHERE ...",
        );
    }
    if !matches!(select.flavor, SelectFlavor::Standard) {
        return refuse(
            &[Keyword::FROM],
            "FROM before SELECT",
            "write `SELECT ... FROM logs`",
        );
    }
    if select.projection.is_empty() {
        return Err(places
            .of(select.select_token.0.span)
            .error("nothing is selected")
            .with_hint("write `SELECT *`"));
    }
    let table = table(&select, places, start)?;
    Ok(SelectPart { select, table })
}

/// The name that qualifies columns, once FROM is known to be `logs` alone.
fn table(select: &Select, places: &Positions, start: Location) -> Result<String, Error> {
    let hint = "the only table is `logs`";
    let [from] = select.from.as_slice() else {
        return Err(match select.from.get(1) {
            None => places
                .of(select.select_token.0.span)
                .error("FROM is missing")
                .with_hint("add `FROM logs`"),
            Some(second) => places
                .of(second.span())
                .error("a join is not possible on a stream of records")
                .with_hint(hint),
        });
    };
    if !from.joins.is_empty() {
        let words = [Keyword::JOIN, Keyword::CROSS, Keyword::LATERAL];
        let place = places
            .keyword(&words, start)
            .unwrap_or_else(|| places.of(from.span()));
        let error = place.error("a join is not possible on a stream of records");
        return Err(
            error.with_hint("the only table is `logs`; `unnest(...)` belongs in the SELECT list")
        );
    }
    let TableFactor::Table {
        name,
        alias,
        args,
        version,
        with_ordinality,
        sample,
        json_path,
        ..
    } = &from.relation
    else {
        let error = places
            .of(from.relation.span())
            .error("a subquery is not possible here");
        return Err(error.with_hint("write the query as one SELECT over `logs`"));
    };
    let place = places.of(name.span());
    if args.is_some()
        || version.is_some()
        || *with_ordinality
        || sample.is_some()
        || json_path.is_some()
    {
        return Err(place
            .error("a table function is not possible here")
            .with_hint(hint));
    }
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(ident)] if ident.value == "logs" => {}
        _ => {
            return Err(place
                .error(format!("unknown table `{name}`"))
                .with_hint(hint));
        }
    }
    match alias {
        Some(alias) if !alias.columns.is_empty() => Err(places
            .of(alias.span())
            .error("columns cannot be renamed here")
            .with_hint("rename with AS in SELECT")),
        Some(alias) => Ok(alias.name.value.clone()),
        None => Ok("logs".to_owned()),
    }
}
