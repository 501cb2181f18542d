//! Calls and literals whose values are of the wrong kind, and names with tables.

use super::check;

#[test]
fn calls_say_which_argument_is_of_another_kind() {
    check(
        "SELECT string_to_array(k, ',') FROM logs",
        "`string_to_array` takes text, and `k` is int64",
        Some("k, "),
        "`string_to_array(CAST(k AS TEXT), ',')` takes it as text",
    );
    for sql in [
        "SELECT k FROM logs ORDER BY trim(k)",
        "SELECT sum(k) OVER (PARTITION BY trim(k)) FROM logs",
        "SELECT trim(k) FROM logs",
    ] {
        check(
            sql,
            "`trim` takes text, and `k` is int64",
            Some("k)")
                .filter(|_| !sql.contains("sum"))
                .or(Some("k)) FROM")),
            "`trim(CAST(k AS TEXT))` takes it as text",
        );
    }
    check(
        "SELECT split_part(k, ',', 1) FROM logs",
        "`split_part` takes text, and `k` is int64",
        Some("k, "),
        "`split_part(CAST(k AS TEXT), ',', 1)` takes it as text",
    );
    check(
        "SELECT array_resize([k], dur) FROM logs",
        "`array_resize` takes a whole number, and `dur` is text",
        Some("dur"),
        "`array_resize([k], TRY_CAST(dur AS BIGINT))` takes the texts that are whole numbers",
    );
    check(
        "SELECT array_resize([k], k * 1.5) FROM logs",
        "`array_resize` takes a whole number, and `k * 1.5` is float64",
        Some("k * "),
        "`array_resize([k], CAST(k * 1.5 AS BIGINT))` leaves out what stands behind the point",
    );
    check(
        "SELECT array_resize(name, 2) FROM logs",
        "`array_resize` takes a list, and `name` is text",
        Some("name"),
        "`array_resize(json_get_array(name), 2)` takes the members of a JSON array, each as JSON",
    );
    check(
        "SELECT array_resize(k, 2) FROM logs",
        "`array_resize` takes a list, and `k` is int64",
        Some("k,"),
        "`array_resize([k], 2)` takes a list of one value",
    );
    check(
        "SELECT array_resize([k], k - 1) FROM logs",
        "`array_resize` takes a number of elements, which is not negative",
        None,
        "`array_resize(l, greatest(n, 0))` is an empty list there",
    );
    check(
        "SELECT unnest(name) FROM logs",
        "`unnest` takes a list",
        Some("unnest"),
        "of a JSON array, unnest(json_get_array(x)) gives the members, each as JSON",
    );
    check(
        "SELECT -arrow_cast(k, 'UInt8') FROM logs",
        "`-arrow_cast(k, 'UInt8')`: `-` takes a number that has a sign",
        Some("arrow_cast"),
        "`-CAST(x AS BIGINT)` is the negative of an unsigned number; of one beyond 2^63, `-CAST(x AS DECIMAL(20, 0))`",
    );
}

#[test]
fn casts_of_literals_say_what_they_would_give() {
    check(
        "SELECT CAST('1.5' AS INT)",
        "'1.5' is no INT",
        Some("'1.5'"),
        "`CAST(CAST('1.5' AS DOUBLE) AS INT)` leaves out what stands behind the point",
    );
    check(
        "SELECT CAST('abc' AS SMALLINT)",
        "'abc' is no SMALLINT",
        Some("'abc'"),
        "`TRY_CAST('abc' AS SMALLINT)` is NULL",
    );
}

#[test]
fn numbers_of_rows_are_pointed_at() {
    check(
        "SELECT k, lag(k, status) OVER (ORDER BY k) FROM logs",
        "`lag` takes a whole number of rows, the same for all rows",
        Some("status"),
        "write the number itself, as in lag(x, 2)",
    );
    check(
        "SELECT nth_value(k, 0) OVER (ORDER BY k) FROM logs",
        "`nth_value` takes the number of a row, from 1 on",
        Some("0)"),
        "write nth_value(x, 2)",
    );
    check(
        "SELECT lag(k, 1, name) OVER (ORDER BY k) FROM logs",
        "the default of `lag` is one value, the same for all rows",
        Some("name"),
        "coalesce(lag(x) OVER (...), y) takes y where there is no such row, and where x is NULL",
    );
}

#[test]
fn clauses_that_would_be_left_out_say_where_they_belong() {
    check(
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t WHERE n < 10 LIMIT 3) SELECT * FROM t",
        "the recursive query `t` cannot have LIMIT",
        Some("3)"),
        "write it where `t` is read, as in SELECT * FROM t LIMIT 10",
    );
    check(
        "SELECT k FROM logs QUALIFY k > 0",
        "QUALIFY is about window functions, and the query has none",
        Some("QUALIFY"),
        "write the condition in WHERE, or in HAVING if it is about groups",
    );
    check(
        "SELECT to_char(timestamp, 'YYYY-MM-DD') FROM logs",
        "'YYYY-MM-DD' has no part of a time in it",
        Some("'YYYY"),
        "the parts of a format are those of strftime: write '%Y-%m-%d'",
    );
    check(
        "SELECT * FROM logs LEFT JOIN unnest([k, 2]) AS u(x) ON x > 1",
        "a function cannot read columns of other tables, such as `k`, in this place of FROM",
        Some("k,"),
        "LEFT JOIN unnest(...) AS u(x) ON true gives a row for each element, and one for a row without elements",
    );
}

#[test]
fn columns_of_one_table_are_not_those_of_another() {
    check(
        "SELECT b.total, a.total FROM logs a JOIN (VALUES (1)) b(total) ON a.k = b.total",
        "there is no column `total`",
        Some("a.total"),
        "A key that the beginning of the files lacks becomes a column by `--columns total=text`.",
    );
    check(
        "SELECT to_timestamp(k * 1e12) FROM logs",
        "1000000000000 seconds since 1970 are no time of the years 1677 to 2262",
        None,
        "`to_timestamp_millis(x)` takes milliseconds, and `to_timestamp_seconds(x)` has years beyond these",
    );
}
