//! What computed columns are called that a query gives no name.
#![allow(clippy::unwrap_used)]

mod asked;

use tailrace_query::Options;

#[track_caller]
fn check(sql: &str, rows: &str) {
    let dir = tempfile::tempdir().unwrap();
    let found = asked::ask(dir.path(), sql, Options::default()).unwrap();
    assert_eq!(found, rows);
}

#[test]
fn expressions_are_called_as_sql_writes_them() {
    check(
        "SELECT avg(l.k), count(*) FILTER (WHERE k > 0), max(k) + 1 FROM logs l",
        "{\"avg(l.k)\":0.5,\"count(*) FILTER (WHERE k > 0)\":1,\"max(k) + 1\":2}\n",
    );
    check(
        "SELECT k::text, (k), (SELECT max(k) FROM logs), 'x' FROM logs LIMIT 1",
        "{\"k::TEXT\":\"1\",\"k\":1,\"(SELECT max(k) FROM logs)\":1,\"'x'\":\"x\"}\n",
    );
}

/// The names are those of subqueries too, and expressions can be repeated where rows are grouped and put in order.
#[test]
fn columns_of_subqueries_have_the_same_names() {
    check(
        "SELECT \"avg(k)\" AS a FROM (SELECT avg(k) FROM logs)",
        "{\"a\":0.5}\n",
    );
    check(
        "SELECT upper(name), count(*) FROM logs GROUP BY upper(name) HAVING count(*) > 0 ORDER BY count(*), upper(name) DESC",
        "{\"upper(name)\":\"N2\",\"count(*)\":1}\n{\"upper(name)\":\"N1\",\"count(*)\":1}\n",
    );
    check(
        "SELECT DISTINCT upper(name) FROM logs ORDER BY upper(name)",
        "{\"upper(name)\":\"N1\"}\n{\"upper(name)\":\"N2\"}\n",
    );
    check(
        "SELECT lower(name) FROM logs UNION SELECT upper(name) FROM logs ORDER BY 1 LIMIT 2",
        "{\"lower(name)\":\"N1\"}\n{\"lower(name)\":\"N2\"}\n",
    );
}
