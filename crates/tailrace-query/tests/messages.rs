//! What is said of queries that are refused or fail: what is wrong, where, and what to do.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use tailrace_query::{Engine, Error, Input, Options, Type};

const LOGS: &str = r#"{"dur":"12","k":1,"status":200,"name":"n1","time":"2026-03-01T10:00:00Z"}
{"dur":"a","k":0,"status":"ok","name":"n2"}
"#;

/// The rows as CSV, or why there are none. `DIR` in the query is the directory.
fn ask(dir: &Path, sql: &str, options: Options) -> Result<String, Error> {
    let logs = dir.join("d.log");
    std::fs::write(&logs, LOGS).unwrap();
    let sql = sql.replace("DIR", dir.to_str().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(options).unwrap();
        let plan = engine.plan(&sql, &[Input::File(logs)]).await?;
        let mut out = arrow_json::LineDelimitedWriter::new(Vec::new());
        plan.run(|batch| {
            out.write(&batch).unwrap();
            true
        })
        .await?;
        out.finish().unwrap();
        Ok(String::from_utf8(out.into_inner()).unwrap())
    })
}

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
        "a subquery that reads columns of the query around it, here `k`, can do so in its WHERE only, and has no LIMIT or OFFSET",
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
        Some("it's"),
        "In double quotes stands a column; a text stands in single ones: 'it''s'. A key that the beginning of the files lacks becomes a column by `--columns it's=text`.",
    );
    check(
        "SELECT * FROM u.log",
        "there is no table `u.log`",
        Some("u.log"),
        "the files behind the query are the table `logs`; a file of its own stands in quotes: FROM 'u.log'",
    );
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

/// Of a CSV file with these lines, named `a.csv`.
fn of_csv(lines: &str, columns: &[(&str, Type)]) -> Result<String, Error> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), lines).unwrap();
    let columns = columns.iter().map(|(name, ty)| ((*name).to_owned(), *ty));
    let options = Options {
        columns: columns.collect(),
        ..Options::default()
    };
    let told = ask(dir.path(), "SELECT * FROM 'DIR/a.csv'", options);
    let path = dir.path().join("a.csv").display().to_string();
    told.map_err(|error| Error {
        message: error.message.replace(&path, "a.csv"),
        ..error
    })
}

#[track_caller]
fn check_csv(lines: &str, message: &str, hint: &str) {
    let error = of_csv(lines, &[]).unwrap_err();
    assert_eq!(error.message, message);
    assert_eq!(error.hint.as_deref(), Some(hint));
    assert!(!error.is_usage);
}

#[test]
fn csv_files_are_named_with_what_is_wrong() {
    let fields = "give every line as many fields as the header has; a value with a comma or a quote stands in double quotes";
    let numbers: String = (0..20_000).map(|n| format!("x,{n}\n")).collect();
    check_csv(
        &format!("s,n\n{numbers}y,abc\n"),
        "a.csv: the value 'abc' in the column `n` is no int64, which is its type by the first rows or by `--columns`",
        "`--columns n=text` reads the column as text",
    );
    check_csv(
        &format!("s,n\n{numbers}y,1,2\n"),
        "a.csv: a line does not have as many fields as the header: 3 instead of 2",
        fields,
    );
    check_csv(
        "a,b\n1,2\n3\n",
        "a.csv: line 3 does not have as many fields as the lines before it: 1 instead of 2",
        fields,
    );
    check_csv(
        "id,x,id\n1,2,3\n",
        "a.csv: the header names `id` more than once",
        "give each column a name of its own in the first line",
    );
}

#[test]
fn csv_columns_have_the_types_that_are_asked_for() {
    let lines = "zip,n,t\n00501,1,2026-03-01T10:00:00Z\n10001,0,\n";
    let rows = |columns: &[(&str, Type)]| of_csv(lines, columns).unwrap();
    // Zeros at the beginning are no part of a number; one alone is.
    let first = rows(&[]).lines().next().unwrap().to_owned();
    assert!(first.starts_with(r#"{"zip":"00501","n":1,"#), "{first}");
    let asked = rows(&[
        ("zip", Type::Int64),
        ("n", Type::Text),
        ("t", Type::Timestamp),
    ]);
    assert_eq!(
        asked,
        "{\"zip\":501,\"n\":\"1\",\"t\":\"2026-03-01T10:00:00Z\"}\n{\"zip\":10001,\"n\":\"0\"}\n"
    );
    let error = of_csv(lines, &[("m", Type::Text)]).unwrap_err();
    assert_eq!(error.message, "`--columns`: there is no column `m`");
    assert_eq!(error.hint.as_deref(), Some("the columns are zip, n, t"));
}

/// Several threads read a large file; its types come from its first lines all the same.
#[test]
fn the_first_lines_of_a_large_csv_file_tell_its_types() {
    let dir = tempfile::tempdir().unwrap();
    let filler = "x".repeat(100);
    let mut lines = "zip,text\n".to_owned();
    for n in 0..120_000 {
        // One of the last lines that count has zeros at its beginning.
        let zip = if n == 990 { "00501" } else { "10001" };
        lines += &format!("{zip},{filler}\n");
    }
    std::fs::write(dir.path().join("a.csv"), lines).unwrap();
    for partitions in [2, 4, 8] {
        let options = Options {
            partitions,
            // Batches have fewer rows than are looked at.
            memory_bytes: 64 << 20,
            ..Options::default()
        };
        let sql = "SELECT zip, count(*) AS n FROM 'DIR/a.csv' GROUP BY zip ORDER BY zip";
        assert_eq!(
            ask(dir.path(), sql, options).unwrap(),
            "{\"zip\":\"00501\",\"n\":1}\n{\"zip\":\"10001\",\"n\":119999}\n"
        );
    }
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
