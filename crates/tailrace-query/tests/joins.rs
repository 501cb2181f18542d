//! Outer joins of tables that take conditions themselves, CSV and Parquet: what is true of one side is not true of the rows that
//! lack it.
#![allow(clippy::unwrap_used)]

mod asked;
mod parquet;

use std::path::Path;

use tailrace_query::{Engine, Options};

/// A CSV file, and the same rows as Parquet.
fn table(dir: &Path, name: &str, rows: &str) {
    let csv = dir.join(format!("{name}.csv"));
    std::fs::write(&csv, rows).unwrap();
    let sql = format!("SELECT * FROM '{}'", csv.display());
    let path = dir.join(format!("{name}.parquet"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(parquet::write(&sql, &[], &path));
}

/// Checks the rows of a query of the tables `A` and `Z` in every form.
#[track_caller]
fn check(sql: &str, rows: &str) {
    let dir = tempfile::tempdir().unwrap();
    table(dir.path(), "a", "id,k\n1,1\n2,\n9,9\n");
    table(dir.path(), "z", "id,k,g\n1,1,x\n2,2,x\n3,3,y\n4,,y\n");
    for a in ["csv", "parquet"] {
        for z in ["csv", "parquet"] {
            for memory_bytes in [1 << 30, 64 << 10] {
                let sql = sql
                    .replace("'A'", &format!("'DIR/a.{a}'"))
                    .replace("'Z'", &format!("'DIR/z.{z}'"));
                let options = Options {
                    partitions: 2,
                    memory_bytes,
                    ..Options::default()
                };
                let found = asked::ask(dir.path(), &sql, options);
                let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
                assert_eq!(found, rows, "{sql}");
            }
        }
    }
}

#[test]
fn conditions_above_a_join_stay_on_their_side() {
    check(
        "SELECT z.id FROM 'A' a RIGHT JOIN 'Z' z ON a.id = z.id WHERE a.k IS NULL AND z.g IS NOT NULL ORDER BY 1",
        "{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n",
    );
    check(
        "SELECT z.id FROM 'A' a RIGHT JOIN 'Z' z ON a.id = z.id WHERE a.id IS NULL ORDER BY 1",
        "{\"id\":3}\n{\"id\":4}\n",
    );
    check(
        "SELECT z.id FROM 'A' a RIGHT JOIN 'Z' z ON a.id = z.id + 1 WHERE coalesce(a.k, 0) = 0 ORDER BY 1",
        "{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n{\"id\":4}\n",
    );
    check(
        "SELECT a.id, z.id AS other FROM 'A' a RIGHT JOIN 'Z' z ON a.id = z.id ORDER BY a.id DESC NULLS LAST, z.id LIMIT 3",
        "{\"id\":2,\"other\":2}\n{\"id\":1,\"other\":1}\n{\"other\":3}\n",
    );
}

#[test]
fn what_is_constant_on_one_side_is_not_in_rows_without_it() {
    let joined = "FROM 'A' a LEFT JOIN 'Z' z ON a.id = z.id AND z.g = 'x'";
    check(
        &format!("SELECT a.id, z.g {joined} ORDER BY z.g DESC, a.id"),
        "{\"id\":9}\n{\"id\":1,\"g\":\"x\"}\n{\"id\":2,\"g\":\"x\"}\n",
    );
    check(
        &format!("SELECT a.id, count(*) OVER (PARTITION BY z.g) AS n {joined} ORDER BY a.id"),
        "{\"id\":1,\"n\":2}\n{\"id\":2,\"n\":2}\n{\"id\":9,\"n\":1}\n",
    );
    check(
        &format!("SELECT a.id, rank() OVER (ORDER BY z.g DESC) AS n {joined} ORDER BY a.id"),
        "{\"id\":1,\"n\":2}\n{\"id\":2,\"n\":2}\n{\"id\":9,\"n\":1}\n",
    );
    check(
        &format!("SELECT z.g, count(*) AS n {joined} GROUP BY z.g ORDER BY z.g DESC"),
        "{\"n\":1}\n{\"g\":\"x\",\"n\":2}\n",
    );
    check(
        "SELECT a.id, z.g FROM 'A' a LEFT JOIN (SELECT id, 'x' AS g FROM 'Z') z ON a.id = z.id ORDER BY z.g DESC, a.id",
        "{\"id\":9}\n{\"id\":1,\"g\":\"x\"}\n{\"id\":2,\"g\":\"x\"}\n",
    );
    check(
        "SELECT z.id, a.k FROM (SELECT id, 7 AS k FROM 'A') a FULL JOIN (SELECT * FROM 'Z' WHERE g = 'x') z ON a.id = z.id ORDER BY z.g, a.k, z.id",
        "{\"id\":1,\"k\":7}\n{\"id\":2,\"k\":7}\n{\"k\":7}\n",
    );
}

/// The steps of a query.
fn steps(sql: &str) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(Options::default()).unwrap();
        engine.plan(sql, &[]).await.unwrap().text()
    })
}

#[test]
fn keys_are_found_beside_joins_of_equal_nulls_and_of_values_of_several_kinds() {
    let rows = "(VALUES (1, 1), (2, 2))";
    let equal_nulls = format!(
        "SELECT count(*) FROM {rows} p(x, y) JOIN {rows} q(x, y) ON p.x IS NOT DISTINCT FROM q.x"
    );
    for sql in [
        format!(
            "SELECT count(*) FROM {rows} a(x, y), {rows} b(x, y), {rows} c(x, y) WHERE a.x = c.x AND c.y = b.y UNION ALL {equal_nulls}"
        ),
        format!(
            "SELECT count(*) FROM {rows} a(x, y) JOIN (VALUES ('{{}}')) b(o) ON json_get(b.o, 'id') = a.x"
        ),
        format!(
            "SELECT count(*) FROM {rows} a(x, y), {rows} b(x, y) WHERE NOT (a.x <> b.x OR a.y = 5 OR a.y = 6)"
        ),
    ] {
        let steps = steps(&sql);
        assert!(steps.contains("HashJoin"), "{steps}");
        assert!(!steps.contains("CrossJoin"), "{steps}");
        assert!(!steps.contains("NestedLoopJoin"), "{steps}");
    }
}

#[test]
fn keys_are_computed_from_members() {
    let dir = tempfile::tempdir().unwrap();
    let rows =
        "{\"o\":{\"id\":3},\"k\":4}\n{\"o\":{\"id\":-4},\"k\":3}\n{\"o\":{\"id\":12.5},\"k\":12}\n";
    std::fs::write(dir.path().join("a.ndjson"), rows).unwrap();
    for key in ["json_get(a.o, 'id')", "a.o -> 'id'"] {
        let sql = format!(
            "SELECT a.k AS a, b.k AS b FROM 'DIR/a.ndjson' a JOIN 'DIR/a.ndjson' b ON {key} = b.k ORDER BY 1"
        );
        let found = asked::ask(dir.path(), &sql, Options::default());
        let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(found, "{\"a\":4,\"b\":3}\n", "{sql}");
    }
    let sql = "SELECT b.k FROM 'DIR/a.ndjson' a JOIN 'DIR/a.ndjson' b ON abs(json_get_int(a.o, 'id')) = b.k ORDER BY 1";
    let found = asked::ask(dir.path(), sql, Options::default());
    assert_eq!(
        found.unwrap_or_else(|error| error.to_string()),
        "{\"k\":3}\n{\"k\":4}\n"
    );
}
