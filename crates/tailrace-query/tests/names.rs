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

/// What the rows are put in order by is no column of a star, which one column stands for where there are very many.
#[test]
fn a_star_of_many_columns_has_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let members = |first: usize| {
        let members: Vec<_> = (0..121)
            .map(|n| format!("\"k{n:03}\":{}", first + n))
            .collect();
        format!("{{{}}}\n", members.join(","))
    };
    let (one, two) = (members(0), members(1));
    std::fs::write(dir.path().join("wide.jsonl"), one + &two).unwrap();
    let from = "SELECT * FROM 'DIR/wide.jsonl' ORDER BY";
    for (key, row) in [
        ("row_number() OVER (ORDER BY k000 DESC) LIMIT 1", &two),
        (
            "1 - rank() OVER (ORDER BY k000), sum(k001) OVER () LIMIT 1",
            &two,
        ),
        ("k000 LIMIT 1", &members(0)),
    ] {
        let rows = asked::ask(dir.path(), &format!("{from} {key}"), Options::default());
        assert_eq!(&rows.unwrap(), row, "{key}");
    }
}

/// The members of a struct are called as they are, not as DataFusion calls them inside.
#[test]
fn members_of_a_struct_are_columns_of_their_names() {
    for (sql, rows) in [
        (
            "SELECT unnest(named_struct('a', 1, 'b', 2)) AS s",
            "{\"a\":1,\"b\":2}\n",
        ),
        (
            "SELECT k, unnest(x) FROM (SELECT k, named_struct('n', name) AS x FROM logs) t ORDER BY k LIMIT 1",
            "{\"k\":0,\"n\":\"n2\"}\n",
        ),
        (
            "SELECT 7 AS a, unnest(x) FROM (SELECT named_struct('a', 1) AS x) t",
            "{\"a\":7,\"t.x.a\":1}\n",
        ),
    ] {
        check(sql, rows);
    }
}
