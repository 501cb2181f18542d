//! Queries and the columns, types and reasons that follow from them.

use crate::session::{Clock, Session};
use crate::{Options, Query, Type, signature};

/// `name type: expression (why); ...` for each column, then `! line:column message` for each warning.
fn columns(sql: &str, declared: &[(&str, Type)]) -> String {
    let columns = declared
        .iter()
        .map(|(key, ty)| ((*key).to_owned(), *ty))
        .collect();
    let query = Query::compile(sql, &Options { columns })
        .unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let mut text = String::new();
    for column in query.columns() {
        let uses: Vec<_> = column
            .uses
            .iter()
            .map(|usage| format!("{} ({})", usage.expression, usage.why))
            .collect();
        text.push_str(&format!(
            "{} {}: {}\n",
            column.name,
            column.ty,
            uses.join("; ")
        ));
    }
    for warning in query.warnings() {
        text.push_str(&format!(
            "! {}:{} {}\n",
            warning.line, warning.column, warning.message
        ));
    }
    text
}

fn types(sql: &str) -> String {
    let query =
        Query::compile(sql, &Options::default()).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
    let types: Vec<_> = query
        .columns()
        .iter()
        .map(|column| format!("{}:{}", column.name, column.ty))
        .collect();
    let warned = if query.warnings().is_empty() {
        ""
    } else {
        " !"
    };
    format!("{}{warned}", types.join(" "))
}

#[test]
fn conditions() {
    let line = |condition: &&str| {
        let sql = format!("SELECT x FROM logs WHERE {condition}");
        format!("{condition}\n    {}\n", types(&sql))
    };
    insta::assert_snapshot!(CONDITIONS.iter().map(line).collect::<String>());
}

#[test]
fn functions() {
    let session = Session::new(&Clock::default());
    let functions = session.state().unwrap().scalar_functions();
    let mut names: Vec<_> = functions.keys().collect();
    names.sort();
    let mut text = String::new();
    for name in names {
        let mut forms: Vec<String> = Vec::new();
        for count in 1..=4 {
            let ty = |index| signature::argument(&functions[name], name, index, count);
            let types: Vec<_> = (0..count)
                .map(|index| ty(index).map_or("-", Type::name))
                .collect();
            if types.iter().any(|ty| *ty != "-") {
                forms.push(types.join(" "));
            }
        }
        if !forms.is_empty() {
            text.push_str(&format!("{name}: {}\n", forms.join(", ")));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn explanations() {
    let queries: &[(&str, &[(&str, Type)])] = &[
        (
            "SELECT status, msg FROM logs WHERE status >= 400 AND msg LIKE '%x%'",
            &[],
        ),
        (
            "SELECT status FROM logs\nWHERE status = 500 AND\n  (level = 'error' OR level IS NULL)",
            &[],
        ),
        (
            "SELECT http->>'status' AS a, http->'status' AS b, http->>'status' = '200' AS c FROM logs",
            &[],
        ),
        ("SELECT a = b AS x, a AS y FROM logs", &[]),
        (
            "SELECT a = b AS x, a AS y FROM logs",
            &[("a", Type::Int64), ("b", Type::Int64)],
        ),
        ("SELECT id FROM logs WHERE id = 5", &[("id", Type::Text)]),
        (
            "SELECT id FROM logs WHERE id IN (1, -2, 3)",
            &[("id", Type::Text)],
        ),
        ("SELECT id FROM logs WHERE id > 5", &[("id", Type::Text)]),
        (
            "SELECT id FROM logs WHERE id > 5 AND id = 7",
            &[("id", Type::Int64)],
        ),
        (
            "SELECT t FROM logs WHERE t > '2026-01-01T00:00:00Z'",
            &[("t", Type::Timestamp)],
        ),
        (
            "SELECT t FROM logs WHERE t LIKE '2026%' AND t IS NULL",
            &[("t", Type::Timestamp)],
        ),
        (
            "SELECT t FROM logs WHERE http->>'status' IS NULL",
            &[("http->'status'", Type::Float64)],
        ),
        (
            "SELECT concat(a, b) AS a FROM logs AS l WHERE l.a = 'x'",
            &[],
        ),
        (
            "SELECT body, timestamp, json->'timestamp' AS t FROM logs WHERE timestamp < now() AND body = 5",
            &[],
        ),
        (
            "SELECT make_array(a, b) AS x, make_array(c, 1) AS y, array_has(string_to_array(a, ','), d) AS z FROM logs",
            &[],
        ),
    ];
    let text = |(sql, declared): &(&str, &[(&str, Type)])| {
        let note: String = declared
            .iter()
            .map(|(key, ty)| format!("-- {key}: {ty}\n"))
            .collect();
        format!("{note}{sql}\n{}\n", columns(sql, declared))
    };
    insta::assert_snapshot!(queries.iter().map(text).collect::<String>());
}

#[test]
fn branches() {
    let queries = [
        "SELECT * FROM logs",
        "SELECT *, upper(level) AS level FROM logs WHERE a = 1 AND (b = 'x' AND c) AND (d = 2 OR e < 3)",
        "SELECT * EXCLUDE (a, \"b.c\") FROM logs UNION ALL SELECT l.* EXCEPT (a) FROM logs l WHERE now() > t",
        "SELECT a, unnest(string_to_array(tags, ',')) AS tag FROM logs WHERE a IS NOT NULL",
        "SELECT a, 1 AS b FROM logs UNION ALL (SELECT b, 2.5 AS c FROM logs WHERE a->'x'->>0 = 'y')",
        "SELECT \"a.b\", @timestamp, user, `c d`, logs.e AS E FROM logs",
    ];
    let mut text = String::new();
    for sql in queries {
        let query = Query::compile(sql, &Options::default()).unwrap();
        text.push_str(&format!("{sql}\n  star {:?}\n", query.star()));
        for branch in query.branches() {
            text.push_str(&format!("  {branch:?}\n"));
        }
    }
    insta::assert_snapshot!(text);
}

const CONDITIONS: &[&str] = &[
    "a > 5",
    "a > 9007199254740993",
    "a >= 1.5",
    "a = 200",
    "a = 200.5",
    "a IN (1, 2)",
    "a IN (1, 2.5)",
    "a IN ('x', 'y')",
    "a IN (1, '2')",
    "a <> 'x'",
    "a BETWEEN 1 AND 2",
    "a BETWEEN 'a' AND 'b'",
    "a % 2 = 0",
    "a % 2.5 = 0",
    "a + 1 = 5",
    "a + b = 5",
    "-a = 5",
    "a = -5",
    "a = 1 + 2",
    "a LIKE 'x%'",
    "a ILIKE 'x%'",
    "lower(a) = 'x'",
    "a ~ 'x'",
    "a || 'x' = 'xx'",
    "a > now()",
    "a > now() - interval '1 hour'",
    "now() - a > interval '1 hour'",
    "date_trunc('hour', a) = timestamp '2026-01-01 00:00:00'",
    "extract(year from a) = 2026",
    "a > timestamp '2026-01-01'",
    "a > '2026-01-01'",
    "a",
    "NOT a",
    "a AND b",
    "a IS TRUE",
    "a = true",
    "a IS NULL",
    "a IS NOT NULL",
    "a = b",
    "a < b",
    "a::int = 5",
    "CAST(a AS double) > 5",
    "CAST(a AS VARCHAR) = 'x'",
    "a::date = date '2026-01-01'",
    "a::decimal(10,2) > 5",
    "coalesce(a, 0) > 5",
    "coalesce(a, 'x') = 'x'",
    "coalesce(a, b) = 5",
    "coalesce(a, b) = 'x'",
    "nullif(a, '') IS NULL",
    "CASE WHEN a THEN 1 ELSE 2 END = 1",
    "CASE a WHEN 1 THEN b ELSE c END = 'x'",
    "CASE WHEN true THEN a END > 1",
    "abs(a) > 1",
    "round(a, 2) > 1",
    "length(a) = 3",
    "a = length(b)",
    "substr(a, 1, b) = 'x'",
    "a & 4 = 4",
    "a->'b'->>'c' = '200'",
    "a->'b'->>'c' = 200",
    "a->>'b' > 5",
    "(a->'b')->>'c' = 'x'",
    "a->0->>'x' = 'y'",
    "a->>-1 = 'y'",
    "json->'timestamp' = 'x'",
    "json->>'level' = 'x'",
    "a->>b = 'x'",
    "a->>b = 5",
    "json_get_int(a, 'b') = 5",
    "body LIKE '%x%'",
    "timestamp > now()",
    "timestamp > '2026-01-01T00:00:00Z'",
    "severity_number >= 17",
    "severity_number = 17",
    "malformed",
    "NOT truncated",
    "body > 5",
    "\"k8s.pod.name\" = 'x'",
    "\"log.iostream\" = 'stderr'",
    "logs.a = 1",
    "\"a.b\" = 1",
    "x = 5",
    "x = 'y'",
    "x > 1 AND x = 1 AND x = 'a' AND x LIKE 'b' AND x",
    "user = 'root'",
    "@timestamp > now()",
    "(a) = 5",
    "a IS DISTINCT FROM 5",
    "a = NULL",
    "array_has(string_to_array(a, ','), 'x')",
    "starts_with(a, 'x')",
    "to_timestamp(a) > now()",
    "to_timestamp(a, '%Y') > now()",
    "to_timestamp_millis(a) > now()",
    "date_part('hour', a) > 5",
    "regexp_like(a, 'x')",
    "concat(a, b) = 'x'",
    "greatest(a, 1) > 2",
    "a = 1 OR b = 'x'",
    "random() < 0.5",
    "a = 5 AND a = 'x'",
    "to_char(a, '%Y') = '2026'",
    "a IN (b, 5)",
    "a >= 5 AND a < 10",
    "a * 2 > 1",
    "a / b > 0.5",
    "trim(a) = ''",
    "current_date > a",
    "a = current_date",
    "arrow_cast(a, 'Int64') = 5",
    "try_cast(a as bigint) = 5",
    "a = b::bigint",
    "power(a, 2) > 1",
    "ceil(a) = 2",
    "strpos(a, 'x') > 0",
    "to_unixtime(a) > 1",
    "make_date(a, 1, 1) = date '2026-01-01'",
    "isnan(a)",
    "encode(a, 'hex') = 'x'",
    "chr(a) = 'x'",
    "a = 5 + b",
    "string_to_array(a, ',')[1] = 'x'",
    "a similar to 'x'",
    "a not in (1)",
    "position('x' in a) > 0",
];

#[test]
fn common_keys_need_no_quotes() {
    let keys = "time date timestamp level user host method path status type name id key value format \
                order group end action error source target case row limit offset table index \
                left right year month day hour minute second text json values default check column \
                session language comment zone window partition range replace result role upper position \
                any some select where begin hash lock op in out trace_id tags service region _id @t";
    for key in keys.split_whitespace() {
        let query = Query::compile(
            &format!("SELECT {key} FROM logs WHERE x = 1"),
            &Options::default(),
        );
        let query = query.unwrap_or_else(|error| panic!("{key}: {error}"));
        assert_eq!(query.columns()[0].uses[0].expression, key);
        assert_eq!(query.branches()[0].outputs[0].name, key);
    }
}

#[test]
fn a_query_is_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&Query::compile("SELECT * FROM logs", &Options::default()).unwrap());
}
