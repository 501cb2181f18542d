//! Archives: what is written is read again, row for row, and what is not needed is not read.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use parquet::arrow::ArrowWriter;
use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use tailrace_query::{
    Archive, Counts, Encoder, Engine, Error, Input, Options, Pruning, Written, expand,
};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// What a query gave.
struct Answer {
    text: String,
    counts: Counts,
    pruning: Pruning,
}

fn ask_of(sql: &str, inputs: &[Input]) -> Result<Answer, Error> {
    runtime().block_on(async {
        let engine = Engine::new(Options::default()).unwrap();
        let mut batches: Vec<RecordBatch> = Vec::new();
        let plan = engine.plan(sql, inputs).await?;
        plan.run(|batch| {
            batches.push(batch);
            true
        })
        .await?;
        Ok(Answer {
            text: pretty_format_batches(&batches).unwrap().to_string(),
            counts: engine.notes().counts(),
            pruning: plan.pruning(),
        })
    })
}

fn ask(sql: &str) -> Result<Answer, Error> {
    ask_of(sql, &[])
}

fn keep(
    sql: &str,
    from: &Path,
    to: &Path,
    partition_by: &[&str],
    memory_bytes: usize,
) -> Result<Written, Error> {
    let archive = Archive {
        to: to.to_str().unwrap().to_owned(),
        partition_by: partition_by.iter().map(|&name| name.to_owned()).collect(),
    };
    runtime().block_on(async {
        let options = Options {
            archive: Some(archive.clone()),
            memory_bytes,
            ..Options::default()
        };
        let engine = Engine::new(options).unwrap();
        let plan = engine.plan(sql, &[Input::File(from.to_owned())]).await?;
        let (written, ended) = plan.write(&archive, std::future::pending()).await;
        ended.map(|()| written)
    })
}

const MEMORY: usize = 1 << 30;

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

/// A text, or none.
fn service() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        Just(None),
        Just(Some("__HIVE_DEFAULT_PARTITION__".to_owned())),
        "[a-c/=%. é\\\\:*?]{1,4}".prop_map(Some)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Rows of any directories come back; none twice, none lost.
    #[test]
    fn rows_come_back(rows in proptest::collection::vec((service(), 0..3_i64, any::<bool>()), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
        let mut lines = String::new();
        for (at, (service, code, is_late)) in rows.iter().enumerate() {
            let second = if *is_late { at + 20 } else { at };
            let line = serde_json::json!({
                "timestamp": format!("2026-11-25T12:00:{:02}.{at:03}Z", second % 60), "service": service, "code": code, "at": at
            });
            lines += &format!("{line}\n");
        }
        fs::write(&log, lines).unwrap();
        let sql = "SELECT timestamp, service, code, at FROM logs";
        let written = keep(sql, &log, &to, &["code", "service"], MEMORY).unwrap();
        prop_assert_eq!(written.rows, rows.len() as u64);
        prop_assert_eq!(written.files as usize, files_below(&to).len());
        prop_assert_eq!((written.cut, written.empty), (0, 0));
        let of_log = format!("SELECT CAST(timestamp AS TIMESTAMP(6)) AS t, CAST(service AS VARCHAR) AS service, code, at FROM '{}' ORDER BY at", log.display());
        let of_archive = format!("SELECT CAST(timestamp AS TIMESTAMP(6)) AS t, CAST(service AS VARCHAR) AS service, code, at FROM '{}' ORDER BY at", to.display());
        prop_assert_eq!(ask(&of_archive).unwrap().text, ask(&of_log).unwrap().text);
    }
}

/// Lines of 100,000 seconds, of `count` services; each has so many bytes besides.
fn write_seconds(path: &Path, count: usize, filler: usize) {
    let filler = "x".repeat(filler);
    let mut lines = String::new();
    for at in 0..100_000_usize {
        let (hour, minute, second) = (at / 3_600 % 24, at / 60 % 60, at % 60);
        let day = 1 + at / 86_400;
        lines += &format!(
            "{{\"timestamp\":\"2026-11-{day:02}T{hour:02}:{minute:02}:{second:02}.1234567Z\",\"service\":\"s{}\",\"at\":{at},\"x\":\"{filler}\"}}\n",
            at % count
        );
    }
    fs::write(path, lines).unwrap();
}

#[test]
fn what_is_not_needed_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    write_seconds(&log, 2, 0);
    let written = keep(
        "SELECT *, CAST(timestamp AS DATE) AS dt FROM logs",
        &log,
        &to,
        &["dt", "service"],
        MEMORY,
    )
    .unwrap();
    assert_eq!(
        (written.files, written.rows, written.cut),
        (4, 100_000, 100_000)
    );
    let from = to.display();

    let answer = ask(&format!(
        "SELECT count(*) AS n FROM '{from}' WHERE dt = '2026-11-02' AND service = 's1'"
    ))
    .unwrap();
    assert!(answer.text.contains("| 6800 |"), "{}", answer.text);
    assert_eq!(
        (answer.counts.parquet_files, answer.counts.parquet_pruned),
        (1, 3)
    );

    // A tenth of the time of a day.
    let answer = ask(&format!(
        "SELECT count(*) AS n FROM '{from}/dt=2026-11-01/' WHERE timestamp >= '2026-11-01T10:00:00Z' AND timestamp < '2026-11-01T11:00:00Z'"
    ));
    let answer = answer.unwrap();
    assert!(answer.text.contains("| 3600 |"), "{}", answer.text);
    let Pruning {
        rows, rows_pruned, ..
    } = answer.pruning;
    assert_eq!(rows + rows_pruned, 86_400);
    assert!(
        rows <= 2 * 20_000,
        "{rows} rows: more than a page of each of the two files"
    );

    // A text that is in no file, though it is between those that are.
    let answer = ask(&format!(
        "SELECT at FROM '{from}' WHERE service = 's1' AND at = 99998"
    ))
    .unwrap();
    assert_eq!(answer.counts.parquet_pruned, 2);
    assert_eq!(answer.text.matches('\n').count() + 1, 2, "{}", answer.text);

    // What the footers know needs no rows.
    let count = ask(&format!(
        "SELECT count(*) AS n, min(at) AS a, max(at) AS b FROM '{from}'"
    ))
    .unwrap();
    assert!(
        count.text.contains("| 100000 | 0 | 99999 |"),
        "{}",
        count.text
    );
    assert_eq!(count.pruning, Pruning::default());
}

#[test]
fn rows_that_do_not_fit_into_memory_are_sorted_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    write_seconds(&log, 3, 300);
    let written = keep("SELECT * FROM logs", &log, &to, &["service"], 16 << 20).unwrap();
    assert_eq!((written.files, written.rows), (3, 100_000));
    for file in files_below(&to) {
        let sql = format!(
            "SELECT count(*) FILTER (WHERE at < before) AS n FROM (SELECT at, lag(at) OVER () AS before FROM '{}')",
            file.display()
        );
        let answer = ask(&sql).unwrap();
        assert!(
            answer.text.contains("| 0 |"),
            "the rows of a file are in the order of their time: {}",
            answer.text
        );
    }
}

/// A join of rows of several tables is planned for one thread, as every archive of more than rows is.
#[test]
fn a_join_with_a_union_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    write_seconds(&log, 3, 1);
    let sql = "SELECT u.at, l.service FROM (SELECT at FROM logs WHERE at < 9 UNION ALL SELECT at FROM logs WHERE at > 99990) u \
               JOIN logs l ON u.at = l.at";
    let written = keep(sql, &log, &to, &[], MEMORY).unwrap();
    assert_eq!((written.files, written.rows), (1, 18));
}

/// The order that the merged sides of a join need stays where it is asked for, also above a side with constants.
#[test]
fn a_join_with_constants_of_one_side_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("a.log");
    fs::write(&from, "{\"id\":3}\n{\"id\":1}\n{\"id\":2}\n").unwrap();
    fs::write(dir.path().join("z.csv"), "id\n2\n3\n").unwrap();
    let z = dir.path().join("z.csv").display().to_string();
    let to = dir.path().join("out");
    let sql = format!(
        "SELECT a.id, z.k FROM logs a LEFT JOIN (SELECT id, 7 AS k FROM '{z}') z ON a.id = z.id"
    );
    assert_eq!(keep(&sql, &from, &to, &[], MEMORY).unwrap().rows, 3);
    let kept = ask(&format!("SELECT * FROM '{}' ORDER BY id", to.display()));
    let rows = "+----+---+\n| id | k |\n+----+---+\n| 1  |   |\n| 2  | 7 |\n| 3  | 7 |\n+----+---+";
    assert_eq!(kept.unwrap().text, rows);
}

fn write_parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer =
        ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Days on which a column has another type, or is not there.
#[test]
fn types_change_from_file_to_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = |day: &str| dir.path().join(format!("dt=2026-11-0{day}/x.parquet"));
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let texts = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
    write_parquet(
        &file("1"),
        vec![("code", ints(vec![9, 100])), ("ms", ints(vec![1, 2]))],
    );
    let floats = Arc::new(Float64Array::from(vec![2.5, 0.5]));
    write_parquet(
        &file("2"),
        vec![
            ("ms", floats),
            ("code", texts(vec!["E1", "95"])),
            ("host", texts(vec!["a", "b"])),
        ],
    );
    let from = dir.path().display();
    let answer = ask(&format!(
        "SELECT dt, code, ms, host FROM '{from}' ORDER BY dt, ms"
    ))
    .unwrap();
    let want = "\
+------------+------+-----+------+
| dt         | code | ms  | host |
+------------+------+-----+------+
| 2026-11-01 | 9    | 1.0 |      |
| 2026-11-01 | 100  | 2.0 |      |
| 2026-11-02 | 95   | 0.5 | b    |
| 2026-11-02 | E1   | 2.5 | a    |
+------------+------+-----+------+";
    assert_eq!(answer.text, want);
    // As texts, 9 is the greatest number: statistics of numbers must not say otherwise.
    let answer = ask(&format!(
        "SELECT min(code) AS a, max(code) AS b, sum(ms) AS s FROM '{from}'"
    ))
    .unwrap();
    assert!(
        answer.text.contains("| 100 | E1 | 6.0 |"),
        "{}",
        answer.text
    );
    let answer = ask(&format!(
        "SELECT count(*) AS n FROM '{from}' WHERE code > '94'"
    ))
    .unwrap();
    assert!(answer.text.contains("| 2 |"), "{}", answer.text);
}

#[test]
fn directories_of_other_writers() {
    let dir = tempfile::tempdir().unwrap();
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let root = dir.path().join(".cache/t");
    write_parquet(&root.join("h=07/a.parquet"), vec![("n", ints(vec![1]))]);
    write_parquet(
        &root.join("_temporary/b.parquet"),
        vec![("n", ints(vec![2]))],
    );
    fs::write(root.join("_SUCCESS"), "").unwrap();
    fs::write(root.join("h=07/.a.parquet.crc"), "x").unwrap();
    fs::write(root.join("h=07/c.parquet#1"), "half").unwrap();
    let answer = ask(&format!("SELECT n, h FROM '{}'", root.display())).unwrap();
    assert!(answer.text.contains("| 1 | 07 |"), "{}", answer.text);
    assert_eq!(answer.text.matches('\n').count(), 4, "{}", answer.text);
    // The same files are `logs`, where they are named behind the query.
    let inputs = expand(&[root.display().to_string()]).unwrap();
    assert!(
        ask_of("SELECT n FROM logs", &inputs)
            .unwrap()
            .text
            .contains("| 1 |")
    );

    fs::write(root.join("h=07/d.log"), "{}\n").unwrap();
    let error = ask(&format!("SELECT 1 FROM '{}'", root.display()))
        .err()
        .unwrap();
    assert!(
        error
            .message
            .contains("holds Parquet and other files, such as"),
        "{error}"
    );
    fs::remove_file(root.join("h=07/d.log")).unwrap();
    fs::write(root.join("h=07/d.parquet"), "no Parquet").unwrap();
    let error = ask(&format!("SELECT 1 FROM '{}'", root.display()))
        .err()
        .unwrap();
    assert!(
        error.message.contains("d.parquet: ") && !error.is_usage,
        "{error}"
    );
    fs::write(root.join("h=07/d.parquet"), "PAR1PAR1").unwrap();
    let error = ask(&format!("SELECT 1 FROM '{}'", root.display()))
        .err()
        .unwrap();
    assert!(
        error.message.contains("d.parquet: is no Parquet file"),
        "{error}"
    );
    fs::rename(root.join("h=07/a.parquet"), root.join("h=07/part-0")).unwrap();
    let error = ask(&format!("SELECT 1 FROM '{}/h=07/part-0'", root.display()))
        .err()
        .unwrap();
    assert!(
        error
            .message
            .contains("part-0: holds Parquet, and no lines of a log"),
        "{error}"
    );
    fs::rename(root.join("h=07/part-0"), root.join("h=07/a.parquet")).unwrap();
    fs::remove_file(root.join("h=07/d.parquet")).unwrap();
    fs::create_dir(root.join("_delta_log")).unwrap();
    fs::write(root.join("_delta_log/00000000000000000000.json"), "{}").unwrap();
    let error = ask(&format!("SELECT 1 FROM '{}'", root.display()))
        .err()
        .unwrap();
    assert!(
        error.message.contains("belongs to a Delta table"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    fs::write(
        &log,
        "{\"timestamp\":\"2026-11-25T12:00:00Z\",\"a\":1,\"f\":1.5}\n",
    )
    .unwrap();
    let cases: [(&str, &[&str], &str); 5] = [
        (
            "SELECT * FROM logs",
            &["b"],
            "`--partition-by b` is no column of the result, which has timestamp, a, f",
        ),
        (
            "SELECT * FROM logs",
            &["timestamp"],
            "values of `timestamp` name no directories",
        ),
        (
            "SELECT * FROM logs",
            &["f"],
            "values of `f` name no directories",
        ),
        (
            "SELECT * FROM logs",
            &["a", "a"],
            "`--partition-by` names `a` twice",
        ),
        (
            "SELECT l.a, r.a FROM logs l JOIN logs r ON l.f = r.f",
            &[],
            "the result has two columns `a`",
        ),
    ];
    for (sql, by, want) in cases {
        let error = keep(sql, &log, &to, by, MEMORY).err().unwrap();
        assert!(error.message.contains(want), "{sql}: {error}");
        assert!(error.is_usage, "{sql}: {error}");
    }
    assert!(files_below(&to).is_empty());
    let error = keep("SELECT a FROM logs", &log, &to, &["a"], MEMORY)
        .err()
        .unwrap();
    assert!(
        error.message.contains("the files would have no column"),
        "{error}"
    );
    // No rows are no files.
    let written = keep("SELECT * FROM logs WHERE a > 1", &log, &to, &[], MEMORY).unwrap();
    assert_eq!((written.files, written.rows), (0, 0));
    // A file is in the way.
    let error = keep("SELECT * FROM logs", &log, &log, &[], MEMORY)
        .err()
        .unwrap();
    assert!(
        error.message.contains("app.log") && !error.is_usage,
        "{error}"
    );
}

/// What is not a number is found, though statistics know nothing of it.
#[test]
fn not_a_number_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    fs::write(&log, "{\"a\":\"9\"}\n{\"a\":\"NaN\"}\n").unwrap();
    keep(
        "SELECT a, CAST(a AS DOUBLE) AS r FROM logs",
        &log,
        &to,
        &[],
        MEMORY,
    )
    .unwrap();
    for condition in ["r > 10", "r = 'NaN'", "r <> 9", "r >= 9.5"] {
        let answer = ask(&format!(
            "SELECT a FROM '{}' WHERE {condition}",
            to.display()
        ))
        .unwrap();
        assert!(
            answer.text.contains("| NaN |"),
            "{condition}: {}",
            answer.text
        );
    }
    let answer = ask(&format!("SELECT max(r) AS m FROM '{}'", to.display())).unwrap();
    assert!(answer.text.contains("| NaN |"), "{}", answer.text);
}

/// What a run that is stopped leaves is complete, and nothing else.
#[test]
fn what_is_left_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    write_seconds(&log, 500, 0);
    let archive = Archive {
        to: to.display().to_string(),
        partition_by: vec!["service".to_owned()],
    };
    let (written, ended) = runtime().block_on(async {
        let engine = Engine::new(Options {
            archive: Some(archive.clone()),
            ..Options::default()
        })
        .unwrap();
        let plan = engine
            .plan("SELECT * FROM logs", &[Input::File(log)])
            .await
            .unwrap();
        // The files of one batch of many are there.
        let begun = async {
            while files_below(&to).is_empty() {
                tokio::task::yield_now().await;
            }
        };
        plan.write(&archive, begun).await
    });
    assert!(ended.is_err_and(|error| error.message.contains("interrupted")));
    assert!((1..500).contains(&written.files), "{written:?}");
    let files = files_below(&to);
    assert_eq!(files.len() as u64, written.files);
    let name = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(
        files
            .iter()
            .all(|file| name(file).starts_with(&written.run))
    );
    let answer = ask(&format!(
        "SELECT count(at) AS n FROM '{}' WHERE at >= 0",
        to.display()
    ))
    .unwrap();
    assert!(
        answer.text.contains(&format!("| {} ", written.rows)),
        "{}",
        answer.text
    );
}

/// A directory without a value is no value, whether its rows are read or not.
#[test]
fn null_directories_are_null() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    fs::write(
        &log,
        "{\"a\":null,\"n\":1}\n{\"a\":null,\"n\":2}\n{\"a\":\"x\",\"n\":3}\n",
    )
    .unwrap();
    keep("SELECT a, n FROM logs", &log, &to, &["a"], MEMORY).unwrap();
    for (sql, want) in [
        ("SELECT count(a) AS n FROM 'PLACE'", "| 1 |"),
        ("SELECT count(a) AS n FROM 'PLACE' WHERE a IS NULL", "| 0 |"),
        ("SELECT count(*) AS n FROM 'PLACE' WHERE a IS NULL", "| 2 |"),
        (
            "SELECT count(a) AS n, min(a) AS m, max(n) AS x FROM 'PLACE'",
            "| 1 | x | 3 |",
        ),
        ("SELECT count(DISTINCT a) AS n FROM 'PLACE'", "| 1 |"),
    ] {
        let answer = ask(&sql.replace("PLACE", to.to_str().unwrap())).unwrap();
        assert!(answer.text.contains(want), "{sql}: {}", answer.text);
    }
}

/// Columns of files are not hidden by directories: neither by those above what is named, nor by those of other files.
#[test]
fn directories_do_not_hide_columns() {
    let dir = tempfile::tempdir().unwrap();
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    let root = dir.path().join("ms=9/t");
    write_parquet(
        &root.join("a.parquet"),
        vec![("ms", ints(vec![1])), ("n", ints(vec![1]))],
    );
    for named in [root.clone(), root.join("a.parquet"), root.join("*.parquet")] {
        let answer = ask(&format!("SELECT ms FROM '{}'", named.display())).unwrap();
        assert!(answer.text.contains("| 1  |"), "{}", answer.text);
    }
    write_parquet(&root.join("ms=5/b.parquet"), vec![("n", ints(vec![2]))]);
    let error = ask(&format!("SELECT ms FROM '{}'", root.display()))
        .err()
        .unwrap();
    assert!(
        error
            .message
            .contains("a.parquet: has a column `ms`, which for other files is a directory"),
        "{error}"
    );
}

#[test]
fn names_of_directories() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    fs::write(&log, "{\"_HOST\":\"h\",\".x\":1,\"n\":1}\n").unwrap();
    keep("SELECT * FROM logs", &log, &to, &["_HOST"], MEMORY).unwrap();
    let sql = |glob: &str| {
        format!(
            "SELECT count(\"_HOST\") AS n FROM '{}/{glob}'",
            to.display()
        )
    };
    for glob in ["", "**/*.parquet", "_HOST*/"] {
        let answer = ask(&sql(glob)).unwrap();
        assert!(answer.text.contains("| 1 |"), "{glob}: {}", answer.text);
    }
    let error = keep("SELECT * FROM logs", &log, &to, &[".x"], MEMORY)
        .err()
        .unwrap();
    assert!(
        error.message.contains("would be hidden from all readers"),
        "{error}"
    );
    // A job that failed left its files: a glob leaves them out as a directory does.
    let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
    write_parquet(&to.join("_temporary/b.parquet"), vec![("n", ints(vec![2]))]);
    assert!(ask(&sql("**/*.parquet")).unwrap().text.contains("| 1 |"));
    let only = format!("SELECT 1 FROM '{}/_temp*/b.parquet'", to.display());
    let error = ask(&only).err().unwrap();
    assert!(
        error
            .message
            .contains("all files there are such as writers of Parquet keep beside it"),
        "{error}"
    );
}

/// The rows of files that only are filtered and computed come in the order of the files.
#[test]
fn rows_keep_the_order_of_the_files() {
    let dir = tempfile::tempdir().unwrap();
    let ints =
        |range: std::ops::Range<i64>| Arc::new(Int64Array::from_iter_values(range)) as ArrayRef;
    for file in 0..6 {
        let path = dir.path().join(format!("{file}.parquet"));
        write_parquet(&path, vec![("i", ints(file * 30_000..(file + 1) * 30_000))]);
    }
    let sql = format!("SELECT i FROM '{}' WHERE i % 3 = 0", dir.path().display());
    for _ in 0..5 {
        let rows = runtime().block_on(async {
            let engine = Engine::new(Options {
                partitions: 2,
                ..Options::default()
            })
            .unwrap();
            let plan = engine.plan(&sql, &[]).await.unwrap();
            let mut rows: Vec<i64> = Vec::new();
            let ended = plan.run(|batch| {
                let column = batch
                    .column(0)
                    .as_any()
                    .downcast_ref::<Int64Array>()
                    .unwrap();
                rows.extend(column.values());
                true
            });
            ended.await.unwrap();
            rows
        });
        assert_eq!(rows.len(), 60_000);
        assert!(rows.is_sorted());
    }
}

/// Types that Parquet has otherwise, and a time behind an object.
#[test]
fn footers_say_what_is_true() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    fs::write(&log, "{\"timestamp\":\"2026-11-25T12:00:00Z\",\"ms\":1}\n").unwrap();
    let sql = "SELECT named_struct('a', 1, 'b', 2) AS s, timestamp, to_timestamp_seconds(timestamp) AS t FROM logs";
    keep(sql, &log, &to, &[], MEMORY).unwrap();
    let file = fs::File::open(&files_below(&to)[0]).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let meta = reader.metadata();
    let leaves = meta.file_metadata().schema_descr();
    let sorted = meta.row_group(0).sorting_columns().unwrap();
    assert_eq!(
        leaves.column(sorted[0].column_idx as usize).path().string(),
        "timestamp"
    );
    let is_time = |at: usize| {
        matches!(
            leaves.column(at).logical_type_ref(),
            Some(LogicalType::Timestamp { .. })
        )
    };
    assert_eq!([0, 1, 2, 3].map(is_time), [false, false, true, true]);
    let answer = ask(&format!(
        "SELECT t = timestamp AS same FROM '{}'",
        to.display()
    ))
    .unwrap();
    assert!(answer.text.contains("| true |"), "{}", answer.text);
}

#[test]
fn empty_texts_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (log, to) = (dir.path().join("app.log"), dir.path().join("archive"));
    fs::write(
        &log,
        "{\"a\":\"\",\"n\":1}\n{\"a\":null,\"n\":2}\n{\"a\":\"x\",\"n\":3}\n",
    )
    .unwrap();
    let written = keep("SELECT a, n FROM logs", &log, &to, &["a"], MEMORY).unwrap();
    assert_eq!((written.rows, written.empty), (3, 1));
    let answer = ask(&format!(
        "SELECT a, count(*) AS n FROM '{}' GROUP BY a ORDER BY a",
        to.display()
    ))
    .unwrap();
    assert!(
        answer.text.contains("| x | 1 |\n|   | 2 |"),
        "{}",
        answer.text
    );
}

/// A file of standard output: the same rows as Parquet and as a stream of Arrow.
#[test]
fn files_in_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("app.log");
    write_seconds(&log, 3, 300);
    let all = ask(&format!(
        "SELECT service, count(*) AS n, max(timestamp) AS t FROM '{}' GROUP BY 1 ORDER BY 1",
        log.display()
    ))
    .unwrap();
    for form in ["parquet", "arrow"] {
        let path = dir.path().join(format!("x.{form}"));
        let bytes = runtime().block_on(async {
            let engine = Engine::new(Options::default()).unwrap();
            let plan = engine
                .plan("SELECT * FROM logs", &[Input::File(log.clone())])
                .await
                .unwrap();
            let encoder = match form {
                "parquet" => Encoder::parquet(&plan.schema()),
                _ => Encoder::arrow(&plan.schema()),
            };
            let (mut encoder, mut bytes) = (encoder.unwrap(), Vec::new());
            let ended = plan.run(|batch| {
                bytes.extend(encoder.add(&batch).unwrap());
                true
            });
            ended.await.unwrap();
            bytes.extend(encoder.finish().unwrap());
            bytes
        });
        let plain = fs::metadata(&log).unwrap().len();
        assert!(
            (bytes.len() as u64) < plain,
            "{form}: {} bytes of {plain}",
            bytes.len()
        );
        fs::write(&path, bytes).unwrap();
        let again = ask(&format!(
            "SELECT service, count(*) AS n, max(timestamp) AS t FROM '{}' GROUP BY 1 ORDER BY 1",
            path.display()
        ));
        assert_eq!(again.unwrap().text, all.text, "{form}");
    }
}
