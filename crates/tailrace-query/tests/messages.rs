//! What is said of queries that are refused or fail: what is wrong, where, and what to do.
#![allow(clippy::unwrap_used)]

mod asked;
#[path = "messages/of_calls.rs"]
mod of_calls;

use tailrace_query::Options;

use asked::ask;

/// Checks the lines that a person is told, below the excerpt of the query: what is wrong, and then what to do.
#[track_caller]
fn check(sql: &str, message: &str, caret_at: Option<&str>, hint: &str) {
    let dir = tempfile::tempdir().unwrap();
    let error = ask(dir.path(), sql, Options::default()).unwrap_err();
    assert_eq!(error.message, message);
    assert_eq!(error.hint.as_deref(), Some(hint));
    let place = caret_at.map(|text| (1, sql.find(text).unwrap() + 1));
    assert_eq!(error.place, place);
    // What is wrong with the data is not the query's fault.
    assert_eq!(error.is_usage, caret_at.is_some());
}

#[test]
fn functions_of_numbers_refuse_texts() {
    check(
        "SELECT avg(dur) FROM logs",
        "`avg` takes numbers, and `dur` is text",
        Some("dur"),
        "`avg(TRY_CAST(dur AS DOUBLE))` takes the texts that are numbers, and so does `--columns dur=float64`",
    );
    check(
        "SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY l.dur) FROM logs l GROUP BY k",
        "`percentile_cont` takes numbers, and `l.dur` is text",
        Some("l.dur"),
        "`percentile_cont(0.5) WITHIN GROUP (ORDER BY TRY_CAST(l.dur AS DOUBLE))` takes the texts that are numbers, and so does `--columns dur=float64`",
    );
    check(
        "SELECT abs(a || 'x') FROM (VALUES ('1')) v(a)",
        "`abs` takes numbers, and `a || 'x'` is text",
        Some("a ||"),
        "`abs(TRY_CAST(a || 'x' AS DOUBLE))` takes the texts that are numbers",
    );
}

#[test]
fn decimals_are_called_as_a_query_writes_them() {
    for (compared, ty) in [
        ("name = 18446744073709551616", "DECIMAL(76, 20)"),
        ("name IN (5, 18446744073709551616)", "DECIMAL(76, 20)"),
    ] {
        check(
            &format!("SELECT k FROM logs WHERE {compared}"),
            &format!("the text 'n1' in `name` is no {ty}"),
            None,
            &format!("`TRY_CAST(name AS {ty})` gives NULL for such a text"),
        );
    }
    check(
        "SELECT CAST(name AS DECIMAL(9, 2)) AS n FROM logs",
        "the text 'n1' in `name` is no DECIMAL(9, 2)",
        None,
        "`TRY_CAST(name AS DECIMAL(9, 2))` gives NULL for such a text",
    );
    let dir = tempfile::tempdir().unwrap();
    let sql = "SELECT TRY_CAST(name AS DECIMAL(76, 20)) AS n, TRY_CAST('7' AS DECIMAL(38, 10)) AS m FROM logs LIMIT 1";
    let read = ask(dir.path(), sql, Options::default()).unwrap();
    assert_eq!(read, "{\"m\":7.0000000000}\n");
}

#[test]
fn subqueries_are_refused_where_they_cannot_stand() {
    let counted = "as a column it is a count: (SELECT count(*) FROM b WHERE b.k = a.k) > 0";
    let joined = format!(
        "{counted}; or join it: b.k IS NOT NULL FROM a LEFT JOIN (SELECT DISTINCT k FROM ...) b ON b.k = a.k"
    );
    let of_in = "IN with a subquery cannot stand here, only in WHERE";
    check(
        "SELECT k IN (SELECT k FROM logs) x FROM logs",
        of_in,
        Some("k IN"),
        &joined,
    );
    check(
        "SELECT CASE WHEN name IN (SELECT name FROM logs) THEN 1 END x FROM logs WHERE k IN (SELECT k FROM logs)",
        of_in,
        Some("name IN"),
        &joined,
    );
    check(
        "SELECT EXISTS (SELECT 1 FROM logs b WHERE b.k = logs.k) x FROM logs",
        "EXISTS cannot stand here, only in WHERE",
        Some("SELECT 1"),
        counted,
    );
    check(
        "SELECT 1 FROM logs a, LATERAL (SELECT k FROM logs b WHERE b.k = a.k LIMIT 1) x",
        "a subquery that reads columns of the query around it, here `k`, can compare them for equality in its WHERE only, and has no LIMIT or OFFSET",
        Some("LATERAL"),
        "instead of LIMIT, number the rows and join them: JOIN (SELECT *, row_number() OVER (PARTITION BY k ORDER BY t) AS nth FROM b) x ON x.k = a.k AND x.nth <= 1",
    );
    check(
        "SELECT 1 FROM logs WHERE (k, name) IN (SELECT k, name FROM logs)",
        "a subquery that is compared has one column, and this one has several",
        Some("k, name) IN"),
        "EXISTS compares several: WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.name = a.name)",
    );
}

#[test]
fn names_are_looked_at_for_what_was_meant() {
    check(
        "SELECT k+ FROM logs",
        "`+` lacks what stands on its right, before FROM",
        Some("FROM"),
        "complete the expression; a column of this name stands in double quotes",
    );
    check(
        "SELECT l.k FROM logs l WHERE logs.name = 'n1'",
        "there is no table `logs` here, of which `name` would be a column",
        Some("logs.name"),
        "the columns here are those of `l`",
    );
    check(
        "SELECT k FROM logs WHERE name = \"it's\"",
        "there is no column `it's`",
        Some("\"it's"),
        "In double quotes stands a column; a text stands in single ones: 'it''s'. A key that the beginning of the files lacks becomes a column by `--columns it's=text`.",
    );
    check(
        "SELECT * FROM u.log",
        "there is no table `u.log`",
        Some("u.log"),
        "the files behind the query are the table `logs`; a file of its own stands in quotes: FROM 'u.log'",
    );
    for sql in [
        "SELECT name.first FROM logs",
        "SELECT name['first'] FROM logs",
        "SELECT logs.k, name.first FROM logs",
    ] {
        check(
            sql,
            "`name` has no fields that `.` and `[...]` reach",
            Some("name"),
            "write name->>'first' for its text, and name->'first' for its value",
        );
    }
    check(
        "SELECT x FROM (VALUES (1, 2)) v(aaa, bbb)",
        "there is no column `x`",
        Some("x"),
        "the columns are `aaa`, `bbb`",
    );
}

#[test]
fn values_that_fit_no_type_are_named_with_their_column() {
    check(
        "SELECT k FROM logs WHERE status >= 500",
        "the text 'ok' in `status` is no int64",
        None,
        "`TRY_CAST(status AS BIGINT)` gives NULL for such a text, and so does the column with `--columns status=int64`",
    );
    check(
        "SELECT CAST(dur AS INT) FROM logs",
        "the text 'a' in `dur` is no INT",
        None,
        "`TRY_CAST(dur AS INT)` gives NULL for such a text",
    );
    check(
        "SELECT CAST(name AS TIMESTAMP) FROM logs",
        "the text 'n1' in `name` is no timestamp",
        None,
        "`TRY_CAST(name AS TIMESTAMP)` gives NULL for such a text, and so does the column with `--columns name=timestamp`",
    );
    // Of a table that is no log.
    check(
        "SELECT CAST(a AS BIGINT) FROM (VALUES ('1'), ('b' || 'c')) v(a)",
        "the text 'bc' in `a` is no int64",
        None,
        "`TRY_CAST(a AS BIGINT)` gives NULL for such a text",
    );
    // What the query compares with stands in the data, too.
    check(
        "SELECT CAST(a AS BIGINT) FROM (VALUES ('1'), ('-' || '')) v(a) WHERE a <> 'x' AND a IN ('-', '1')",
        "the text '-' in `a` is no int64",
        None,
        "`TRY_CAST(a AS BIGINT)` gives NULL for such a text",
    );
    check(
        "SELECT k FROM logs WHERE timestamp > '2026-03-01 09:00'",
        "'2026-03-01 09:00' is no time",
        Some("'2026"),
        "write '2026-03-01T09:00:00Z', '2026-03-01 09:00:00' (in UTC), or a date as '2026-03-01'",
    );
}

#[test]
fn divisions_by_zero_are_named() {
    check(
        "SELECT k / 2, 1 / k FROM logs",
        "`1 / k` divides by zero",
        None,
        "`1 / nullif(k, 0)` gives NULL there",
    );
    check(
        "SELECT 1 / k, 5 % k FROM logs",
        "a division by zero, in `1 / k` or `5 % k`",
        None,
        "`1 / nullif(k, 0)` gives NULL there",
    );
    check(
        "SELECT k / 0 FROM logs",
        "`k / 0` divides by zero",
        Some("k"),
        "divide by another number",
    );
}

#[test]
fn numbers_beyond_their_type_are_named() {
    let values = |numbers: &str| format!("(VALUES {numbers}) v(a)");
    let hint = "`CAST(x AS DECIMAL(38, 0))` has 38 digits, and `CAST(x AS DOUBLE)` rounds";
    let (greatest, least) = (i64::MAX, i64::MIN);
    for (expression, numbers, message) in [
        (
            "a + 1",
            format!("(1), ({greatest})"),
            format!("{greatest} + 1"),
        ),
        ("a - 2", format!("({least}), (2)"), format!("{least} - 2")),
        (
            "a * a",
            format!("(1), ({greatest})"),
            format!("{greatest} * {greatest}"),
        ),
        ("-a", format!("(1), ({least})"), format!("0 - {least}")),
        (
            "arrow_cast(a, 'Int8') * arrow_cast(a, 'Int8')",
            "(127)".to_owned(),
            "127 * 127".to_owned(),
        ),
        (
            "arrow_cast(a, 'UInt32') - arrow_cast(2, 'UInt32')",
            "(1)".to_owned(),
            "1 - 2".to_owned(),
        ),
    ] {
        let sql = format!("SELECT {expression} FROM {}", values(&numbers));
        check(&sql, &format!("{message} is beyond its type"), None, hint);
    }
    let nines = "9".repeat(38);
    for (expression, message) in [
        (
            format!("CAST('{nines}' AS DECIMAL(38, 0)) + CAST(1 AS DECIMAL(38, 0))"),
            "a decimal",
        ),
        (format!("sum(CAST('{nines}' AS DECIMAL(38, 0)))"), "a sum"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let sql = format!("SELECT {expression} FROM (VALUES (1), (2)) v(a)");
        let error = ask(dir.path(), &sql, Options::default()).unwrap_err();
        assert_eq!(
            error.message,
            format!("{message} is beyond its type"),
            "{sql}"
        );
    }
    let hint =
        "`sum(CAST(x AS DECIMAL(38, 0)))` has 38 digits, and `sum(CAST(x AS DOUBLE))` rounds";
    for (sum, rest) in [
        ("sum(a)", ""),
        ("sum(a)", " GROUP BY b"),
        ("sum(DISTINCT a)", ""),
        ("sum(DISTINCT a), avg(DISTINCT b)", " GROUP BY b"),
        ("sum(a) OVER (ROWS 1 PRECEDING)", ""),
    ] {
        let sql = format!("SELECT {sum} FROM (VALUES (1, 2), ({greatest}, 2)) v(a, b){rest}");
        check(&sql, "a sum is beyond its type", None, hint);
    }
}

#[test]
fn units_of_time_are_named() {
    check(
        "SELECT date_trunc('hours', now())",
        "'hours' is no unit of time",
        Some("'hours'"),
        "did you mean 'hour'?",
    );
    check(
        "EXPLAIN SELECT 1",
        "only SELECT is possible here",
        Some("EXPLAIN"),
        "a query reads rows; `--explain` shows how it runs, and `-o parquet` or `--to` keeps its result",
    );
    let dir = tempfile::tempdir().unwrap();
    let sql = "SELECT array_resize(make_array(k), -1) AS x FROM logs";
    let error = ask(dir.path(), sql, Options::default()).unwrap_err();
    assert!(!error.message.contains("bug"), "{}", error.message);
}

#[test]
fn a_join_has_a_condition() {
    let hint =
        "add ON with a condition or USING with columns; each row with each other is CROSS JOIN";
    for join in ["JOIN", "INNER JOIN", "LEFT JOIN", "FULL JOIN"] {
        let sql = format!("SELECT a.k FROM logs a {join} logs b");
        check(&sql, "a join needs a condition", Some("logs b"), hint);
    }
    let dir = tempfile::tempdir().unwrap();
    for join in [
        "CROSS JOIN logs b",
        ", logs b",
        "JOIN LATERAL (SELECT a.k + 1 AS n) b",
        "JOIN logs b ON true",
    ] {
        let sql = format!("SELECT count(*) AS n FROM logs a {join}");
        if let Err(error) = ask(dir.path(), &sql, Options::default()) {
            assert_ne!(error.message, "a join needs a condition", "{sql}");
        }
    }
}

#[test]
fn an_order_that_exhausts_the_memory_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let padding = "x".repeat(40);
    let lines: String = (0..6000)
        .map(|n| format!("{{\"msg\":\"{n} {padding}\"}}\n"))
        .collect();
    std::fs::write(dir.path().join("a.log"), lines).unwrap();
    let options = Options {
        memory_bytes: 64 << 10,
        ..Options::default()
    };
    let ended = ask(
        dir.path(),
        "SELECT * FROM 'DIR/a.log' ORDER BY msg",
        options,
    );
    let error = ended.map(|_| ()).unwrap_err();
    let begin = "the query needs more memory than `--memory-limit` grants, which is 64.0 KiB: ORDER BY or a window asked for ";
    assert!(error.message.starts_with(begin), "{}", error.message);
    assert_eq!(error.hint.as_deref(), Some("raise `--memory-limit`"));
}

/// A key may be called as a word of SQL.
#[test]
fn a_column_may_be_called_from() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("m.csv"), "from,to\na,b\nc,c\n").unwrap();
    for sql in [
        "SELECT to FROM 'DIR/m.csv' WHERE to = from",
        "SELECT to FROM 'DIR/m.csv' WHERE from = to",
        "SELECT to FROM (SELECT to, to = from AS same FROM 'DIR/m.csv') WHERE same",
    ] {
        assert_eq!(
            ask(dir.path(), sql, Options::default()).unwrap(),
            "{\"to\":\"c\"}\n"
        );
    }
}

#[test]
fn clauses_say_what_cannot_stand_in_them() {
    check(
        "SELECT k AS x FROM logs WHERE x = 1",
        "`x` is a name that SELECT gives, and cannot be used here",
        Some("x = 1"),
        "write `k` instead of `x`",
    );
    check(
        "SELECT name, count(*) FROM logs",
        "`name` stands in SELECT beside groups, and is not in GROUP BY",
        Some("name"),
        "add it to GROUP BY, or take one value of each group, as `max(name)` does",
    );
    check(
        "SELECT name FROM logs GROUP BY name HAVING k > 1",
        "`k` stands in HAVING beside groups, and is not in GROUP BY",
        Some("k > 1"),
        "add it to GROUP BY, or take one value of each group, as `max(k)` does",
    );
    check(
        "SELECT k FROM logs WHERE count(*) > 1",
        "an aggregate function cannot stand in WHERE",
        Some("count"),
        "HAVING compares groups: GROUP BY ... HAVING count(*) > 1",
    );
    check(
        "SELECT k FROM logs WHERE rank() OVER (ORDER BY k) = 1",
        "a window function cannot stand here, only in SELECT and ORDER BY",
        Some("rank"),
        "in a subquery: SELECT * FROM (SELECT *, row_number() OVER (ORDER BY ...) AS n FROM ...) WHERE n = 1",
    );
    check(
        "SELECT k FROM logs ORDER BY 3",
        "ORDER BY 3: SELECT has 1 column(s)",
        Some("3"),
        "a number there is the place of a column in SELECT, from 1",
    );
    check(
        "SELECT k, name FROM logs UNION ALL SELECT k FROM logs",
        "the queries that are put together have different numbers of columns",
        Some("UNION"),
        "NULL stands for a column that one of them lacks",
    );
}

#[test]
fn orders_that_would_be_others_are_refused() {
    let differ = "aggregates of one SELECT want their rows in different orders";
    let apart = "compute one of them in a subquery of its own";
    for sql in [
        "SELECT string_agg(DISTINCT name, ',' ORDER BY name) x, string_agg(DISTINCT name, ',' ORDER BY name DESC) y FROM logs",
        "SELECT k, array_agg(name ORDER BY name DESC, k), array_agg(DISTINCT name ORDER BY name) FROM logs GROUP BY k",
        "SELECT string_agg(name, ',' ORDER BY name) x, string_agg(dur, ',' ORDER BY dur) y FROM logs",
    ] {
        check(sql, differ, Some("ORDER"), apart);
    }
    check(
        "SELECT count(*) OVER (ORDER BY t RANGE BETWEEN INTERVAL '1 month' PRECEDING AND CURRENT ROW) FROM (SELECT CAST('2026-01-01' AS TIMESTAMP) AS t) q",
        "a frame by RANGE cannot have months or years, which are not equally long",
        Some("RANGE"),
        "write days, or join the table with itself",
    );
    check(
        "SELECT count(*) OVER (ORDER BY t RANGE BETWEEN INTERVAL '1 yr' PRECEDING AND CURRENT ROW) FROM (SELECT CAST('2026-01-01' AS TIMESTAMP) AS t) q",
        "a frame by RANGE cannot have months or years, which are not equally long",
        Some("RANGE"),
        "write days, or join the table with itself",
    );
    check(
        "SELECT -k AS k FROM logs ORDER BY abs(k) LIMIT 2",
        "`k` in an expression of ORDER BY is a column, and a computed one of the result",
        Some("k) LIMIT"),
        "give the computed column another name",
    );
    check(
        "SELECT m % 2 AS m FROM (VALUES (1), (2)) v(m) ORDER BY m + 1",
        "`m` in an expression of ORDER BY is a column, and a computed one of the result",
        Some("m + 1"),
        "give the computed column another name",
    );
    for made in [
        "*, dur AS z",
        "k, dur AS z FROM logs UNION ALL SELECT k, dur",
    ] {
        check(
            &format!("WITH c AS (SELECT {made} FROM logs) SELECT -k AS z FROM c ORDER BY z + 0"),
            "`z` in an expression of ORDER BY is a column, and a computed one of the result",
            Some("z + 0"),
            "give the computed column another name",
        );
    }
    // Names that a star passes on.
    let rows = "WITH w AS (SELECT a AS p, b AS q FROM (VALUES (1, 9), (2, 8)) o(a, b))";
    for from in [
        "(SELECT * FROM w) s",
        "(SELECT w.* FROM w) s",
        "(SELECT * FROM (SELECT * FROM w) t UNION ALL SELECT 1, 2) s",
        "(w JOIN (SELECT 9 AS q) u USING (q))",
    ] {
        check(
            &format!("{rows}, v AS (SELECT * FROM {from}) SELECT q AS p FROM v ORDER BY p + 0"),
            "`p` in an expression of ORDER BY is a column, and a computed one of the result",
            Some("p + 0"),
            "give the computed column another name",
        );
    }
    check(
        "SELECT column2 AS column1 FROM (VALUES (1, 9), (2, 3)) ORDER BY column1 + 0 LIMIT 1",
        "`column1` in an expression of ORDER BY is a column, and a computed one of the result",
        Some("column1 + 0"),
        "give the computed column another name",
    );
    check(
        "SELECT -a AS k FROM (SELECT * ILIKE 'a%' FROM (VALUES (1)) x(a)) s ORDER BY k + 0",
        "* ILIKE is not supported",
        Some("ILIKE"),
        "name the columns; * EXCLUDE (a, b) leaves some out",
    );
    check(
        "SELECT -x.b AS b FROM (VALUES (1)) x(b) ORDER BY x.b + 0",
        "`x.b` in ORDER BY is a column, and `b` a computed one of the result",
        Some("x.b + 0"),
        "give the computed column another name",
    );
    check(
        "SELECT k FROM logs ORDER BY ALL",
        "ORDER BY ALL is not supported",
        Some("ALL"),
        "name the columns, or their places: ORDER BY 1, 2",
    );
    for call in ["lead(k, abs(-2))", "lag(k, '-2')"] {
        for window in ["w", "(ORDER BY k)"] {
            check(
                &format!(
                    "SELECT {call} IGNORE NULLS OVER {window} FROM logs WINDOW w AS (ORDER BY k)"
                ),
                "lead and lag with IGNORE NULLS need a number of rows that is known before the query runs",
                Some(call),
                "write the number itself, as in `lead(x, 2) IGNORE NULLS`",
            );
        }
    }
}

#[test]
fn regular_expressions_are_refused_where_they_stand() {
    check(
        "SELECT count(*) FROM logs WHERE name ~ '(x{1000}){1000}'",
        "a regular expression is too large: compiled it has more than 10485760 bytes",
        Some("name ~"),
        "repeat less: (x{1000}){1000} is a million states",
    );
    let syntax = "its syntax is that of RE2, without look-around and backreferences";
    check(
        "SELECT count(*) FROM logs WHERE name ~ '(?=x)'",
        "a regular expression is wrong: look-around, including look-ahead and look-behind, is not supported",
        Some("name ~"),
        syntax,
    );
    check(
        "SELECT count(*) FROM logs WHERE name ~ 'INFO' AND name ~* '('",
        "a regular expression is wrong: unclosed group",
        Some("name ~*"),
        syntax,
    );
    check(
        "SELECT regexp_count(name, '(') FROM logs",
        "a regular expression is wrong: unclosed group",
        Some("regexp_count"),
        syntax,
    );
    check(
        "SELECT regexp_replace(name, '(', '') FROM logs",
        "a regular expression is wrong: unclosed group",
        Some("regexp_replace"),
        syntax,
    );
}

#[test]
fn times_that_are_none_are_named() {
    check(
        "SELECT count(*) FROM (SELECT CAST(d AS DATE) AS d FROM (VALUES ('9999-12-31')) v(d)) q WHERE d < now()",
        "the date 9999-12-31 becomes a time here, and times have nanoseconds: they are of the years 1677 to 2262",
        None,
        "compare it with a date, as `d < DATE '2026-06-01'`, or take times of microseconds: `arrow_cast(d, 'Timestamp(Microsecond, None)')`",
    );
    check(
        "SELECT CAST(t AS TIMESTAMP) AT TIME ZONE 'Europe/Berlin' FROM (VALUES ('2026-10-25 02:30:00')) v(t)",
        "a local time is not there in its time zone, or twice, as when clocks change",
        None,
        "write its offset, as in '2026-10-25T02:30:00+02:00', or leave such times out",
    );
}

#[test]
fn functions_and_names_say_what_is_near() {
    check(
        "SELECT lag(k) FROM logs",
        "`lag` is a function of windows, and needs OVER",
        Some("lag"),
        "write lag(...) OVER (ORDER BY ...)",
    );
    check(
        "SELECT upperr(name) FROM logs",
        "there is no function `upperr`",
        Some("upperr"),
        "did you mean `upper`?",
    );
    check(
        "SELECT k FROM logs a JOIN logs b ON a.k = b.k",
        "`k` is a column of several tables",
        Some("k"),
        "name its table: `a.k` or `b.k`",
    );
    check(
        "SELECT bool_and(k > 0) OVER (ORDER BY k ROWS 2 PRECEDING) FROM logs",
        "`bool_and` cannot leave rows behind, as this frame does",
        Some("bool_and"),
        "let the frame begin with UNBOUNDED PRECEDING",
    );
    check(
        "SELECT *, k FROM (SELECT k FROM logs) q",
        "two columns of the result are called `q.k`",
        Some("k"),
        "give one another name, as in `x AS other`",
    );
    check(
        "SELECT k::foo FROM logs",
        "there is no type `foo`",
        Some("foo"),
        "types are TEXT, BIGINT, DOUBLE, BOOLEAN, TIMESTAMP, DATE and DECIMAL(precision, scale)",
    );
}

#[test]
fn operators_say_which_types_stand_beside_them() {
    check(
        "SELECT name + 1 FROM logs",
        "`name + 1` has text and int64 beside `+`, which does not take them",
        Some("name"),
        "TRY_CAST(x AS DOUBLE) is the number that a text is, or NULL; `||` puts texts together",
    );
    // Which of several is not known.
    let dir = tempfile::tempdir().unwrap();
    let sql = "SELECT k + 1, name + 1 FROM logs";
    let error = ask(dir.path(), sql, Options::default()).unwrap_err();
    let message = "the query has text and int64 beside `+`, which does not take them";
    assert_eq!((error.message.as_str(), error.place), (message, None));
    check(
        "SELECT json_get(name, 'a') + 1 FROM logs",
        "`json_get(name, 'a') + 1` has values of several kinds and int64 beside `+`, which does not take them",
        Some("json_get"),
        "json_get_int, json_get_float, json_get_str or a cast gives values of one kind",
    );
    check(
        "SELECT timestamp + 1 FROM logs",
        "`timestamp + 1` has timestamp and int64 beside `+`, which does not take them",
        Some("timestamp"),
        "a time is moved by an interval: timestamp + INTERVAL '1 hour'",
    );
    check(
        "SELECT NOT name FROM logs",
        "`NOT name`: `NOT` takes a condition",
        Some("name"),
        "compare the column first, as in NOT x = 'y'",
    );
    check(
        "SELECT k FROM logs WHERE name",
        "a condition is true or false, and `name` is text",
        Some("name"),
        "compare it with something, or write `name IS NOT NULL`",
    );
}

#[test]
fn values_without_a_result_are_said() {
    check(
        "SELECT sqrt(k - 1000) FROM logs",
        "`sqrt` of a negative number",
        None,
        "`CASE WHEN x >= 0 THEN sqrt(x) END` gives NULL there",
    );
    check(
        "SELECT CAST(k * 1e19 AS BIGINT) FROM logs",
        "1e19 is beyond int64",
        None,
        "`TRY_CAST(x AS BIGINT)` gives NULL there",
    );
    check(
        "SELECT to_char(timestamp, '%Q') FROM logs",
        "a format of a time has a part that there is not",
        None,
        "the parts of a format are those of strftime, as '%Y-%m-%d %H:%M:%S%.3f'",
    );
}

/// DataFusion would give NULL as the key of a row that only the table on the right has.
#[test]
fn outer_joins_do_not_merge_keys_of_the_right() {
    check(
        "SELECT k FROM logs a FULL JOIN logs b USING (k)",
        "USING is not supported in FULL JOIN: the shared column would be NULL in rows that only the table on the right has",
        Some("k)"),
        "name the tables, as FROM x a FULL JOIN y b does; join ON a.k = b.k, and select coalesce(a.k, b.k) AS k",
    );
    let dir = tempfile::tempdir().unwrap();
    let sql = "SELECT * FROM logs a RIGHT JOIN logs b USING (k)";
    assert!(ask(dir.path(), sql, Options::default()).is_err());
    // With its table it is what it says.
    let sql = "SELECT max(b.k) AS k FROM logs a RIGHT JOIN logs b USING (k) WHERE a.k = 1";
    let found = ask(dir.path(), sql, Options::default()).unwrap();
    assert_eq!(found, "{\"k\":1}\n");
}

#[test]
fn words_that_are_not_supported_have_others_in_their_place() {
    for (clause, at, message, hint) in [
        (
            "LIMIT -1",
            "LIMIT",
            "LIMIT takes a number of rows, which is not negative",
            "write LIMIT 10",
        ),
        (
            "LIMIT 1.5",
            "LIMIT",
            "LIMIT takes a number of rows, which is whole",
            "write LIMIT 10",
        ),
        (
            "OFFSET -1",
            "OFFSET",
            "OFFSET takes a number of rows, which is not negative",
            "write OFFSET 10",
        ),
        (
            "FETCH FIRST ROW ONLY",
            "FETCH",
            "FETCH is not supported",
            "LIMIT 10 at the end takes ten rows",
        ),
        (
            "GROUP BY CUBE (k, k)",
            "CUBE",
            "the sets of groups have `logs.k` twice",
            "name each column once in it",
        ),
    ] {
        check(
            &format!("SELECT k FROM logs {clause}"),
            message,
            Some(at),
            hint,
        );
    }
    check(
        "SELECT TOP 3 k FROM logs",
        "TOP is not supported",
        Some("TOP"),
        "LIMIT 10 at the end takes ten rows",
    );
    check(
        "SELECT * RENAME (k AS l) FROM logs",
        "RENAME is not supported",
        Some("RENAME"),
        "SELECT * EXCLUDE (a), a AS b gives a column another name",
    );
    check(
        "SELECT ntile(0) OVER (ORDER BY k) FROM logs",
        "`ntile` takes a number of parts, which is at least 1",
        Some("0)"),
        "write ntile(4)",
    );
    check(
        "SELECT * FROM logs PIVOT (sum(k) FOR name IN ('n1', 'n2'))",
        "PIVOT is not supported",
        Some("logs"),
        "`sum(n) FILTER (WHERE key = 'a') AS a` makes a column of a value",
    );
}

#[test]
fn a_missing_column_is_missing_also_below_its_own_name() {
    check(
        "SELECT upper(nosuch) AS nosuch FROM logs",
        "there is no column `nosuch`",
        Some("nosuch"),
        "A key that the beginning of the files lacks becomes a column by `--columns nosuch=text`.",
    );
}

/// What is said of a text names the column that it is of, and no other, nor what DataFusion makes of expressions.
#[test]
fn a_text_that_is_no_time_is_of_its_column() {
    let column = "the text '12' in `dur` is no timestamp";
    let hint = "`TRY_CAST(dur AS TIMESTAMP)` gives NULL for such a text, and so does the column with `--columns dur=timestamp`";
    for other in [
        "timestamp::timestamp(0)",
        "date_trunc('day', timestamp)",
        "DATE '2026-03-01'::timestamp",
    ] {
        let sql = format!("SELECT {other} AS t, to_timestamp(dur) AS u FROM logs");
        check(&sql, column, None, hint);
    }
    check(
        "SELECT (dur || 'x')::bigint AS n FROM logs",
        "the text '12x' in an expression of `dur` is no int64",
        None,
        "`TRY_CAST(x AS BIGINT)` gives NULL for such a text",
    );
}
