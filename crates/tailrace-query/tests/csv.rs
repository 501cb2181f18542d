//! CSV files: what their first rows tell, values with line ends, and files that differ.
#![allow(clippy::unwrap_used)]

mod asked;

use std::io::Write as _;
use std::path::Path;

use arrow::array::Array;
use arrow::util::display::array_value_to_string;
use tailrace_query::{Engine, Error, Options, Type};
use tokio::runtime::Runtime;

use asked::ask;

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

/// Types come from the first 1,000 rows, however long they are.
#[test]
fn types_come_from_long_rows_too() {
    let long = "x".repeat(1_100_000);
    let read = of_csv(&format!("a,b\n{long},9\ny,10\n"), &[]).unwrap();
    assert_eq!(read.lines().last(), Some("{\"a\":\"y\",\"b\":10}"));
    let rows: String = (0..900)
        .map(|n| format!("{},{n}\n", "x".repeat(2000)))
        .collect();
    let read = of_csv(&format!("a,b\n{rows}y,2.5\n"), &[]).unwrap();
    assert_eq!(read.lines().last(), Some("{\"a\":\"y\",\"b\":2.5}"));
    // Of a value with line ends each is a line, but no row.
    let value = format!("\"{}\"", "x\n".repeat(1000));
    let rows: String = (0..900).map(|n| format!("{value},{n}\n")).collect();
    let read = of_csv(&format!("a,b\n{rows}y,2.5\n"), &[]).unwrap();
    assert_eq!(read.lines().last(), Some("{\"a\":\"y\",\"b\":2.5}"));
}

#[test]
fn csv_files_are_named_with_what_is_wrong() {
    let fields = "give every line as many fields as the header has; a value with a comma or a quote stands in double quotes";
    let numbers: String = (0..200_000).map(|n| format!("x,{n}\n")).collect();
    check_csv(
        &format!("s,n\n{numbers}y,abc\n"),
        "a.csv: the value 'abc' in the column `n` is no int64, which is its type by the first rows or by `--columns`",
        "`--columns n=text` reads the column as text",
    );
    check_csv(
        &format!("s,n\n{numbers}y,1.5\n"),
        "a.csv: the value '1.5' in the column `n` is no int64, which is its type by the first rows or by `--columns`",
        "`--columns n=float64` reads the column as fractions",
    );
    check_csv(
        &format!("s,n\n{numbers}y,1,2\n"),
        "a.csv: a line does not have as many fields as the header: 3 instead of 2",
        fields,
    );
    check_csv(
        "a,b\n1,2\n3\n",
        "a.csv: line 3 does not have as many fields as the header: 1 instead of 2",
        fields,
    );
    check_csv(
        "id,x,id\n1,2,3\n",
        "a.csv: the header names `id` more than once",
        "give each column a name of its own in the first line",
    );
    check_csv(
        "a,b\n1,\"x\n2,y\n",
        "a.csv: the quote in line 2 is not closed",
        "a value that begins with a quote ends with one; a quote within it is doubled",
    );
    check_csv(
        "",
        "a.csv: there is no line",
        "the first line has the names of the columns",
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

/// Rows of these files, `a.csv` and so on, by this query.
fn of_files(files: &[&str], sql: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    for (name, lines) in ('a'..).zip(files) {
        std::fs::write(dir.path().join(format!("{name}.csv")), lines).unwrap();
    }
    rows_in(dir.path(), sql)
}

fn rows_in(dir: &Path, sql: &str) -> String {
    let options = Options {
        partitions: 2,
        ..Options::default()
    };
    ask(dir, sql, options).unwrap()
}

/// Files are put together by the names of their columns, wherever they stand.
#[test]
fn files_with_other_columns_are_one_table() {
    let files = ["a,b\n1,2\n", "b,a,c\n20,x10,zz\n", "", "a,b\n3,\n"];
    let sql = "SELECT a, b, c FROM 'DIR/*.csv' ORDER BY a";
    assert_eq!(
        of_files(&files, sql),
        "{\"a\":\"1\",\"b\":2}\n{\"a\":\"3\"}\n{\"a\":\"x10\",\"b\":20,\"c\":\"zz\"}\n"
    );
    let sql = "SELECT sum(b) AS n FROM 'DIR/*.csv' WHERE c IS NULL OR c = 'zz'";
    assert_eq!(of_files(&files, sql), "{\"n\":22}\n");
    // The whole numbers of one file are numbers of the other.
    let files = ["n,t\n1,2026-03-01\n", "n,t\n2.5,2026-03-01T10:00:00\n"];
    let sql = "SELECT n, t FROM 'DIR/*.csv' ORDER BY n";
    assert_eq!(
        of_files(&files, sql),
        "{\"n\":1.0,\"t\":\"2026-03-01T00:00:00\"}\n{\"n\":2.5,\"t\":\"2026-03-01T10:00:00\"}\n"
    );
}

/// A file is not divided, as nothing before a line end says that it stands in quotes.
#[test]
fn values_may_have_line_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut lines = "id,text\n".to_owned();
    for n in 0..160_000 {
        lines += &format!("{n},\"one {:50}\nand \"\"two\"\", {n}\"\n", "");
    }
    assert!(lines.len() > 10 << 20);
    std::fs::write(dir.path().join("a.csv"), lines).unwrap();
    let sql = "SELECT count(*) AS n, sum(id) AS s, min(length(text)) AS short, max(length(text)) AS long FROM 'DIR/a.csv'";
    assert_eq!(
        rows_in(dir.path(), sql),
        "{\"n\":160000,\"s\":12799920000,\"short\":67,\"long\":72}\n"
    );
}

/// As spreadsheets write them where a comma is part of numbers.
#[test]
fn semicolons_and_tabs_part_fields_where_the_first_line_has_no_comma() {
    let files = ["a;b\n1;\"x;\ny\"\n", "a\tb\n2\tz,z\n", "a,b\n3,w;w\n"];
    assert_eq!(
        of_files(&files, "SELECT a, b FROM 'DIR/*.csv' ORDER BY a"),
        "{\"a\":1,\"b\":\"x;\\ny\"}\n{\"a\":2,\"b\":\"z,z\"}\n{\"a\":3,\"b\":\"w;w\"}\n"
    );
}

#[test]
fn what_only_looks_like_a_date_is_text() {
    let rows = of_csv("d\n2024-02-28\n2024-02-30\n", &[]).unwrap();
    assert_eq!(rows, "{\"d\":\"2024-02-28\"}\n{\"d\":\"2024-02-30\"}\n");
    let rows = of_csv("d\n2024-02-28\n\"\"\n2024-02-29\n", &[]).unwrap();
    assert_eq!(rows, "{\"d\":\"2024-02-28\"}\n{}\n{\"d\":\"2024-02-29\"}\n");
}

/// Also one that is far behind what tells the types.
#[test]
fn an_open_quote_swallows_nothing() {
    let quoted: String = (0..100_000).map(|n| format!("{n},\"x, {n}\"\n")).collect();
    let plain: String = (0..200_000).map(|n| format!("{n},x\n")).collect();
    let message = |lines: String| of_csv(&lines, &[]).unwrap_err().message;
    assert_eq!(
        message(format!("a,b\n{quoted}5,\"open\n{plain}")),
        "a.csv: the quote in line 100002 is not closed"
    );
    assert_eq!(
        message(format!("a,b\n1,\"open\n{plain}")),
        "a.csv: the quote in line 2 is not closed"
    );
}

/// What a number would lose is kept as text.
#[test]
fn whole_numbers_stay_whole_beside_fractions() {
    let files = ["n\n9007199254740993\n", "n\n1.5\n"];
    assert_eq!(
        of_files(&files, "SELECT n FROM 'DIR/*.csv' ORDER BY n"),
        "{\"n\":\"1.5\"}\n{\"n\":\"9007199254740993\"}\n"
    );
    assert_eq!(
        of_csv("n,m,k\n9007199254740993,-007,007.50\n1.5,1,1\n", &[]).unwrap(),
        "{\"n\":\"9007199254740993\",\"m\":\"-007\",\"k\":\"007.50\"}\n{\"n\":\"1.5\",\"m\":\"1\",\"k\":\"1\"}\n"
    );
}

#[test]
fn headers_may_lack_names_and_files_may_be_called_anything() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w[1]* %.csv"), "\u{feff}a,,b\r\n1,2,x\r\n").unwrap();
    let sql = "SELECT * FROM 'DIR/w[1]* %.csv'";
    assert_eq!(
        rows_in(dir.path(), sql),
        "{\"a\":1,\"column_2\":2,\"b\":\"x\"}\n"
    );
    std::fs::write(dir.path().join("h.csv"), "a,b\n").unwrap();
    assert_eq!(rows_in(dir.path(), "SELECT * FROM 'DIR/h.csv'"), "");
}

#[test]
fn names_in_capitals_and_directories_are_csv() {
    let dir = tempfile::tempdir().unwrap();
    let tables = dir.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    std::fs::write(tables.join("A.CSV"), "n,s\n1,x\n").unwrap();
    std::fs::write(tables.join("b c.csv"), "n,s\n2,y\n").unwrap();
    for table in ["DIR/tables", "DIR/tables/", "DIR/tables/*"] {
        let rows = rows_in(
            dir.path(),
            &format!("SELECT n, s FROM '{table}' ORDER BY n"),
        );
        assert_eq!(rows, "{\"n\":1,\"s\":\"x\"}\n{\"n\":2,\"s\":\"y\"}\n");
    }
    std::fs::write(dir.path().join("t.tsv"), "n,m\ts\n1,5\tx\n").unwrap();
    let tabs = rows_in(dir.path(), "SELECT \"n,m\", s FROM 'DIR/t.tsv'");
    assert_eq!(tabs, "{\"n,m\":\"1,5\",\"s\":\"x\"}\n");
    let upper = rows_in(dir.path(), "SELECT n + 1 AS m FROM 'DIR/tables/A.CSV'");
    assert_eq!(upper, "{\"m\":2}\n");
    let error = ask(dir.path(), "SELECT n FROM 'DIR'", Options::default()).unwrap_err();
    assert!(
        error
            .message
            .contains("holds tables, and files of another kind, such as"),
        "{}",
        error.message
    );
    assert!(error.is_usage);
}

#[test]
fn later_times_and_dates_are_not_cut() {
    let many = |first: &str, last: &str| {
        let lines: String = (0..1500).map(|n| format!("{first},{n}\n")).collect();
        let dir = tempfile::tempdir().unwrap();
        let csv = format!("t,i\n{lines}{last},9999\n");
        std::fs::write(dir.path().join("a.csv"), csv).unwrap();
        let sql = "SELECT t FROM 'DIR/a.csv' WHERE i = 9999";
        match ask(dir.path(), sql, Options::default()) {
            Ok(rows) => rows,
            Err(error) => error.message,
        }
    };
    let seconds = "2026-01-01T00:00:00Z";
    let time = |last: &str| many(seconds, last);
    assert_eq!(
        time("2026-01-01T00:00:00.9Z"),
        "{\"t\":\"2026-01-01T00:00:00.900\"}\n"
    );
    assert_eq!(
        time("2026-01-01T00:00:00.123456789Z"),
        "{\"t\":\"2026-01-01T00:00:00.123456789\"}\n"
    );
    assert_eq!(
        many("9999-12-31T00:00:00Z", "2026-01-01T00:00:00.000001Z"),
        "{\"t\":\"2026-01-01T00:00:00.000001\"}\n"
    );
    // What neither has is text.
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, time: &str| {
        std::fs::write(dir.path().join(name), format!("t\n{time}\n")).unwrap();
    };
    write("a.csv", "9999-12-31T00:00:00");
    write("b.csv", "2026-01-01T00:00:00.123456789");
    let both = || rows_in(dir.path(), "SELECT t FROM 'DIR/[ab].csv' ORDER BY t");
    assert_eq!(
        both(),
        "{\"t\":\"2026-01-01T00:00:00.123456789\"}\n{\"t\":\"9999-12-31T00:00:00\"}\n"
    );
    write("a.csv", "9999-12-31");
    write("b.csv", "2026-01-01T00:00:00.5");
    assert_eq!(
        both(),
        "{\"t\":\"2026-01-01T00:00:00.500\"}\n{\"t\":\"9999-12-31T00:00:00\"}\n"
    );
    assert_eq!(many("2026-01-01", "2026-01-02"), "{\"t\":\"2026-01-02\"}\n");
    for later in [
        "2026-01-01T05:00:00Z",
        "2026-01-01T23:00:00-05:00",
        "20260101",
    ] {
        let told = many("2026-01-01", later);
        let expected = format!("the value '{later}' in the column `t` of a CSV file is no date");
        assert!(told.starts_with(&expected), "{told}");
    }
}

/// Pasted, as they come from elsewhere: in a file they are texts. Planning took a time that grew with the square of their number.
#[test]
fn thousands_of_wide_numbers_are_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let id = |n: u32| format!("1844674407370955{n:04}");
    let lines: String = (1000..1010).map(|n| format!("{}\n", id(n))).collect();
    std::fs::write(dir.path().join("a.csv"), format!("id\n{lines}7\n")).unwrap();
    let list: Vec<String> = (1005..6005).map(id).collect();
    let started = std::time::Instant::now();
    let sql = format!(
        "SELECT count(*) AS n FROM 'DIR/a.csv' WHERE id IN (7, {})",
        list.join(", ")
    );
    assert_eq!(rows_in(dir.path(), &sql), "{\"n\":6}\n");
    let took = started.elapsed().as_secs();
    assert!(took < 10, "{took} s");
}

/// A table is read as long as it was when reading began.
#[test]
fn a_csv_file_that_becomes_shorter_is_an_error_and_one_that_grows_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let text = format!("a,b\n{}", format!("1,{}\n", "x".repeat(96)).repeat(200_000));
    let sql = format!("SELECT a FROM '{}'", path.display());
    for grows in [true, false] {
        std::fs::write(&path, &text).unwrap();
        let (mut rows, mut is_first) = (0, true);
        let ended = Runtime::new().unwrap().block_on(async {
            let engine = Engine::new(Options::default()).unwrap();
            let plan = engine.plan(&sql, &[]).await.unwrap();
            let read = plan.run(|batch| {
                rows += batch.num_rows();
                if std::mem::take(&mut is_first) && !grows {
                    std::fs::write(&path, "a,b\n").unwrap();
                }
                if grows {
                    let mut file = std::fs::File::options().append(true).open(&path).unwrap();
                    file.write_all(&text.as_bytes()[4..]).unwrap();
                }
                true
            });
            read.await
        });
        match ended {
            Ok(_) => assert!(grows && rows == 200_000, "{rows} rows"),
            Err(error) => {
                let said = error.to_string();
                assert!(
                    !grows && said.contains("a.csv: became shorter while"),
                    "{said}"
                );
            }
        }
    }
}

/// Its rows would be those of two files.
#[test]
fn a_csv_file_that_is_written_again_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let rows = |digit: &str, count| format!("a,b\n{}", format!("1{digit},x\n").repeat(count));
    std::fs::write(&path, rows("1", 400_000)).unwrap();
    let sql = format!("SELECT a FROM '{}'", path.display());
    let mut is_first = true;
    let ended = Runtime::new().unwrap().block_on(async {
        let engine = Engine::new(Options::default()).unwrap();
        let plan = engine.plan(&sql, &[]).await.unwrap();
        let read = plan.run(|_| {
            if std::mem::take(&mut is_first) {
                std::fs::write(&path, rows("2", 500_000)).unwrap();
            }
            true
        });
        read.await
    });
    let said = ended.map(drop).unwrap_err().to_string();
    assert!(said.contains("a.csv: was changed while"), "{said}");
}

/// A value that is written in pieces is whole, or an error.
#[test]
fn a_csv_value_that_is_written_meanwhile_is_not_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.csv");
    let all = format!("a,b\n{}", "1,x\n".repeat(400_000));
    let sql = format!("SELECT b FROM '{}'", path.display());
    for (more, expected) in [("second\"\n3,\"y\n", Some("first\nsecond")), ("", None)] {
        std::fs::write(&path, &all).unwrap();
        let (mut is_first, mut last) = (true, String::new());
        let ended = Runtime::new().unwrap().block_on(async {
            let engine = Engine::new(Options::default()).unwrap();
            let plan = engine.plan(&sql, &[]).await.unwrap();
            // Nothing is read before it runs.
            std::fs::write(&path, format!("{all}2,\"first\n")).unwrap();
            let read = plan.run(|batch| {
                if std::mem::take(&mut is_first) {
                    let mut file = std::fs::File::options().append(true).open(&path).unwrap();
                    file.write_all(more.as_bytes()).unwrap();
                }
                let texts = batch.column(0);
                last = array_value_to_string(texts, texts.len() - 1).unwrap();
                true
            });
            read.await
        });
        match (ended, expected) {
            (Ok(_), Some(expected)) => assert_eq!(last, expected),
            (ended, expected) => {
                let said = ended.map(drop).unwrap_err();
                assert_eq!(expected, None, "{said}");
                let name = path.display();
                assert_eq!(
                    said.message,
                    format!("{name}: the quote in line 400002 is not closed")
                );
                assert!(said.hint.is_some());
            }
        }
    }
}

/// A member of JSON beside a column of dates, which is made of texts.
#[test]
fn members_of_json_stand_beside_dates() {
    let dir = tempfile::tempdir().unwrap();
    let member = |day, n| format!("d,o\n2024-03-{day},\"{{\"\"n\"\":{n}}}\"\n");
    std::fs::write(dir.path().join("a.csv"), member(15, 7)).unwrap();
    std::fs::write(dir.path().join("b.csv"), member(16, 8)).unwrap();
    let more = "d,o,k\n2024-03-15,\"{\"\"n\"\":7}\",1\n2024-03-16,\"{\"\"n\"\":8}\",2\n";
    std::fs::create_dir(dir.path().join("more")).unwrap();
    std::fs::write(dir.path().join("more/m.csv"), more).unwrap();
    let one = "FROM 'DIR/a.csv'";
    let two = "FROM 'DIR/more/m.csv'";
    let first = "{\"d\":\"2024-03-15\",\"v\":\"7\"}\n";
    let second = "{\"d\":\"2024-03-16\",\"v\":\"8\"}\n";
    for (sql, expected) in [
        (format!("SELECT o->>'n' AS v {one}"), "{\"v\":\"7\"}\n"),
        (
            format!("SELECT d, o->>'n' AS v {one} WHERE o->>'n' = '7'"),
            "{\"d\":\"2024-03-15\",\"v\":\"7\"}\n",
        ),
        (
            format!("SELECT o->>'n' AS v, count(*) AS n {one} GROUP BY o->>'n'"),
            "{\"v\":\"7\",\"n\":1}\n",
        ),
        (
            format!("SELECT d {one} ORDER BY o->>'n'"),
            "{\"d\":\"2024-03-15\"}\n",
        ),
        (format!("SELECT d, o->>'n' AS v {two} LIMIT 1"), first),
        (format!("SELECT d, o->>'n' AS v {two} WHERE k = 2"), second),
        (
            format!("SELECT d, o->>'n' AS v {two} WHERE d > DATE '2024-03-15'"),
            second,
        ),
        (
            "SELECT d, o->>'n' AS v FROM 'DIR/*.csv' WHERE d >= '2024-03-16' ORDER BY d".to_owned(),
            second,
        ),
        (
            format!(
                "SELECT count(d) AS d, max(v) AS v FROM (SELECT d, o->>'n' AS v {two} WHERE k < 9)"
            ),
            "{\"d\":2,\"v\":\"8\"}\n",
        ),
        (
            "SELECT max(o->>'n') AS v, max(d) AS d FROM 'DIR/*.csv'".to_owned(),
            "{\"v\":\"8\",\"d\":\"2024-03-16\"}\n",
        ),
    ] {
        let told = ask(dir.path(), &sql, Options::default()).unwrap();
        assert_eq!(told, expected, "{sql}");
    }
}
