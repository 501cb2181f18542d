//! Floats that are no numbers, or have no end: where they are the least, the greatest, or one of several.
#![allow(clippy::unwrap_used)]

mod asked;

use tailrace_query::Options;

use asked::ask;

/// The one text that a query gives for each row of a table of these lines.
#[track_caller]
fn check(lines: &str, sql: &str, expected: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("f.csv"), lines).unwrap();
    for partitions in [1, 2] {
        let options = Options {
            partitions,
            ..Options::default()
        };
        let rows = ask(dir.path(), &sql.replace("logs", "'DIR/f.csv'"), options).unwrap();
        let expected = expected
            .iter()
            .map(|text| format!("{{\"t\":\"{text}\"}}\n"));
        assert_eq!(rows, expected.collect::<String>(), "{partitions}");
    }
}

#[test]
fn the_greatest_and_the_least_of_groups_are_in_total_order() {
    let lines = "g,e\nx,9\nx,NaN\nx,1\ny,-inf\nz,inf\nn,\n";
    let sql = |ty| {
        format!(
            "SELECT g || ' ' || coalesce(max({ty})::text, '-') || ' ' || coalesce(min({ty})::text, '-') AS t FROM logs GROUP BY g ORDER BY g"
        )
    };
    let expected = ["n - -", "x NaN 1.0", "y -inf -inf", "z inf inf"];
    check(lines, &sql("e"), &expected);
    check(lines, &sql("e::real"), &expected);
}

/// The first groups of an order have each group once.
#[test]
fn no_number_is_one_group() {
    let lines = "e\n1\nNaN\nNaN\n2\n";
    let sql = "SELECT e::text AS t FROM (SELECT DISTINCT e FROM logs ORDER BY e DESC LIMIT 2)";
    check(lines, sql, &["NaN", "2.0"]);
    let sql = "SELECT e::text AS t FROM (SELECT DISTINCT e FROM logs ORDER BY e LIMIT 9)";
    check(lines, sql, &["1.0", "2.0", "NaN"]);
    let sql = "SELECT e::text AS t FROM (SELECT e, max(e) m FROM logs GROUP BY e ORDER BY m DESC LIMIT 1)";
    check(lines, sql, &["NaN"]);
}
