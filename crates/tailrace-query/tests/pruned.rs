//! What statistics of Parquet leave out, and what they must not.
#![allow(clippy::unwrap_used)]

mod asked;
mod parquet;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use arrow::array::{
    ArrayRef, Date32Array, Decimal128Array, Float32Array, Float64Array, Int64Array,
    TimestampMicrosecondArray, TimestampMillisecondArray, UInt64Array,
};
use arrow::record_batch::RecordBatch;
use tailrace_query::{Engine, Options};

/// Rows as a file of Parquet.
fn table(dir: &Path, name: &str, rows: &str) {
    let sql = format!("SELECT * FROM (VALUES {rows}) v(t, n)");
    let path = dir.join(name);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(parquet::write(&sql, &[], &path));
}

#[track_caller]
fn check(dir: &Path, sql: &str, rows: &str) {
    for partitions in [1, 2] {
        let options = Options {
            partitions,
            ..Options::default()
        };
        assert_eq!(asked::ask(dir, sql, options).unwrap(), rows, "{partitions}");
    }
}

/// The times of day between two moments are not between theirs.
#[test]
fn times_of_day_tell_nothing_of_moments() {
    let dir = tempfile::tempdir().unwrap();
    table(
        dir.path(),
        "t.parquet",
        "(TIMESTAMP '2026-01-01T12:00:00', 1), (TIMESTAMP '2026-01-01T23:00:00', 2), (TIMESTAMP '2026-01-03T13:00:00', 3)",
    );
    for condition in [
        "t::time > TIME '22:00:00'",
        "TRY_CAST(t AS TIME) = TIME '23:00:00'",
        "CAST(t AS TIME) NOT BETWEEN TIME '11:00:00' AND TIME '14:00:00'",
    ] {
        let sql = format!("SELECT n FROM 'DIR/t.parquet' WHERE {condition}");
        check(dir.path(), &sql, "{\"n\":2}\n");
    }
}

/// The first rows of one of the queries are not those of all.
#[test]
fn what_one_query_of_a_union_finds_tells_nothing_of_the_others() {
    let dir = tempfile::tempdir().unwrap();
    table(dir.path(), "a.parquet", "(1, 1), (1, 2), (1, 3)");
    table(dir.path(), "b.parquet", "(1, 7), (1, 8), (1, 9)");
    check(
        dir.path(),
        "SELECT k, n FROM (SELECT 1 AS k, n FROM 'DIR/a.parquet' UNION ALL SELECT 2, n FROM 'DIR/b.parquet') ORDER BY k DESC, n LIMIT 2",
        "{\"k\":2,\"n\":7}\n{\"k\":2,\"n\":8}\n",
    );
    check(
        dir.path(),
        "SELECT t, n FROM (SELECT t, n FROM 'DIR/a.parquet' WHERE t = 1 UNION ALL SELECT t + 1, n FROM 'DIR/b.parquet' WHERE t + 1 = 2) ORDER BY t DESC, n LIMIT 1",
        "{\"t\":2,\"n\":7}\n",
    );
}

/// A file of four row groups, of 1,000 rows each: a second and a day for each row.
fn four_groups(path: &Path) {
    let rows = || 0..4_000_i64;
    let decimals = Decimal128Array::from_iter_values(rows().map(|row| i128::from(row) * 100));
    let columns: [(&str, ArrayRef); 5] = [
        ("i", Arc::new(Int64Array::from_iter_values(rows()))),
        (
            "ms",
            Arc::new(TimestampMillisecondArray::from_iter_values(
                rows().map(|row| row * 1_000),
            )),
        ),
        (
            "us",
            Arc::new(TimestampMicrosecondArray::from_iter_values(
                rows().map(|row| row * 1_000_000),
            )),
        ),
        ("d", Arc::new(Date32Array::from_iter_values(0..4_000))),
        (
            "dec",
            Arc::new(decimals.with_precision_and_scale(12, 2).unwrap()),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    for group in 0..4 {
        writer.write(&batch.slice(group * 1_000, 1_000)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
}

/// Comparisons that are mended still leave out the row groups that have no such row.
#[test]
fn statistics_are_used_for_mended_comparisons() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("g.parquet");
    four_groups(&path);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (condition, rows, pruned) in [
        ("i > 3500.5", 499, 3),
        ("CAST(i AS DOUBLE) > 3500", 499, 3),
        ("ms >= TIMESTAMP '1970-01-01T00:50:00'", 1_000, 3),
        ("ms > TIMESTAMP '1970-01-01T00:50:00.0001'", 999, 3),
        ("ms < TIMESTAMP '1970-01-01T00:10:00.0001'", 601, 3),
        (
            "ms BETWEEN to_timestamp(3100.5) AND to_timestamp(3200.5)",
            100,
            3,
        ),
        ("us > TIMESTAMP '1970-01-01T00:50:00.0000001'", 999, 3),
        (
            "us >= TIMESTAMP '1970-01-01T01:00:00' - INTERVAL '10 minutes'",
            1_000,
            3,
        ),
        (
            "CAST(d AS TIMESTAMP) > TIMESTAMP '1980-01-01T06:00:00'",
            347,
            3,
        ),
        ("extract(year FROM d) = 1980", 348, 3),
        ("dec > 3500.44", 499, 3),
        ("dec = 3500.00", 1, 3),
        ("dec = 3500.44", 0, 3),
        ("dec BETWEEN 3500.44 AND 3501.445", 1, 3),
        ("dec > 3500.445 AND dec < 1e30", 499, 3),
        // Of several lists each one leaves out what it can.
        (
            "i NOT IN (7, 8) AND i IN (3500, 3501, 3502, 3503, 3504)",
            5,
            3,
        ),
        ("i IN (3500, 3400 + 1)", 2, 3),
        ("NOT (i < 3990 OR i = 3991 OR i = 3992)", 8, 3),
        (
            "NOT (i NOT IN (5, 6, 7, 8) OR i NOT IN (7, 8, 9, 10))",
            2,
            3,
        ),
        (
            "(d = 1 OR i NOT IN (7, 8)) AND (i = 3500 OR i = 3501)",
            2,
            3,
        ),
        // The times of day of a row group are not known.
        ("us::time >= TIME '01:00:00'", 400, 0),
        // A cast that may fail is computed of all rows.
        ("CAST(i AS INT) > 3500", 499, 0),
    ] {
        runtime.block_on(async {
            let engine = Engine::new(Options::default()).unwrap();
            let sql = format!("SELECT i FROM '{}' WHERE {condition}", path.display());
            let plan = engine.plan(&sql, &[]).await.unwrap();
            let mut found = 0;
            let ran = plan.run(|batch| {
                found += batch.num_rows();
                true
            });
            ran.await.unwrap();
            let pruning = plan.pruning();
            assert_eq!(
                (found, pruning.row_groups_pruned),
                (rows, pruned),
                "{condition}"
            );
        });
    }
}

/// A file of one row group with these columns.
fn one_group(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// NaN is greater than the greatest value that is kept of a row group, or of a page.
#[test]
fn greatest_values_leave_out_nan() {
    let dir = tempfile::tempdir().unwrap();
    let floats = Arc::new(Float64Array::from(vec![
        Some(0.5),
        Some(f64::NAN),
        Some(0.25),
    ]));
    let small = Arc::new(Float32Array::from(vec![Some(0.5), Some(f32::NAN), None]));
    let rows = Arc::new(Int64Array::from(vec![1, 2, 3]));
    one_group(
        &dir.path().join("f.parquet"),
        vec![("f", floats), ("g", small), ("n", rows)],
    );
    for (condition, found) in [
        ("f > 1", "2"),
        ("f >= 1", "2"),
        ("f <> 0.5 AND f <> 0.25", "2"),
        ("NOT (f = 0.5 OR f = 0.25)", "2"),
        ("f = 'NaN'::double", "2"),
        ("f IN ('NaN'::double, 1)", "2"),
        ("f NOT IN (0.5, 0.25)", "2"),
        ("f > 0.4", "1,2"),
        ("f < 0.1 OR f > 7", "2"),
        ("g > 1", "2"),
        ("g <> 0.5", "2"),
        ("f < 0.1", ""),
        ("f <= 0.25", "3"),
        ("g IS NULL", "3"),
    ] {
        check(
            dir.path(),
            &format!("SELECT n FROM 'DIR/f.parquet' WHERE {condition} ORDER BY n"),
            &found
                .split_terminator(',')
                .map(|n| format!("{{\"n\":{n}}}\n"))
                .collect::<String>(),
        );
    }
    check(
        dir.path(),
        "SELECT n FROM 'DIR/f.parquet' WHERE f > 0 ORDER BY f DESC LIMIT 1",
        "{\"n\":2}\n",
    );
}

/// DataFusion fails at some conditions where it knows the least and the greatest values.
#[test]
fn conditions_are_planned_with_statistics() {
    let dir = tempfile::tempdir().unwrap();
    let days = Arc::new(Date32Array::from(vec![20_454, 20_485]));
    let times = [20_454 * 86_400 + 72_000, 20_455 * 86_400 + 14_400];
    let times = times.map(|seconds| seconds * 1_000_000);
    let times = Arc::new(TimestampMicrosecondArray::from(times.to_vec()));
    let rows = Arc::new(Int64Array::from(vec![1, 2]));
    let path = dir.path().join("d.parquet");
    one_group(&path, vec![("d", days), ("t", times), ("n", rows)]);
    for (condition, found) in [
        ("d - DATE '2026-01-01' > 10", "2"),
        ("DATE '2026-02-02' - d < 7", "2"),
        ("d - d = 0", "1,2"),
        ("t >= t::date", "1,2"),
        (
            "t::date >= DATE '2020-01-01' AND d - DATE '2026-01-01' < 10",
            "1",
        ),
    ] {
        let rows = found.split(',').map(|n| format!("{{\"n\":{n}}}\n"));
        let rows: String = rows.collect();
        for table in ["'DIR/d.parquet'", "(SELECT * FROM 'DIR/d.parquet' LIMIT 5)"] {
            let sql = format!("SELECT n FROM {table} WHERE {condition} ORDER BY n");
            check(dir.path(), &sql, &rows);
        }
        let sql = format!(
            "SELECT n FROM 'DIR/d.parquet' JOIN (SELECT n AS m FROM 'DIR/d.parquet') y ON n = m WHERE {condition} ORDER BY n"
        );
        check(dir.path(), &sql, &rows);
    }
}

/// A number with a point is the decimal that is written.
#[test]
fn decimals_are_compared_with_what_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let prices = Decimal128Array::from(vec![54_844, 150]);
    let prices = Arc::new(prices.with_precision_and_scale(12, 2).unwrap());
    let large = Decimal128Array::from(vec![9_999_999_999_999_999_999_999_990_000, 20_000]);
    let large = Arc::new(large.with_precision_and_scale(38, 4).unwrap());
    let floats = Arc::new(Float32Array::from(vec![f32::INFINITY, 2.0]));
    let rows = Arc::new(Int64Array::from(vec![1, 2]));
    let path = dir.path().join("p.parquet");
    one_group(
        &path,
        vec![("p", prices), ("v", large), ("f", floats), ("n", rows)],
    );
    for (condition, found) in [
        ("p = 548.44", "1"),
        ("p <> 548.44", "2"),
        ("p IN (548.44, 7.5)", "1"),
        ("p BETWEEN 548.44 AND 548.444", "1"),
        ("p < 1e300 AND p > -1e-30", "1,2"),
        ("p > 548.435", "1"),
        ("p < 'NaN'::double", "1,2"),
        ("v > 1.5", "1,2"),
        ("v > 2.00005", "1"),
        ("f BETWEEN p AND 5", "2"),
        ("f > p", "1,2"),
        ("p > 548.45", ""),
    ] {
        check(
            dir.path(),
            &format!("SELECT n FROM 'DIR/p.parquet' WHERE {condition} ORDER BY n"),
            &found
                .split_terminator(',')
                .map(|n| format!("{{\"n\":{n}}}\n"))
                .collect::<String>(),
        );
    }
}

/// A condition that Parquet's reader looks at fails as any other.
#[test]
fn numbers_beyond_a_type_are_said_plainly() {
    let dir = tempfile::tempdir().unwrap();
    let numbers = Arc::new(UInt64Array::from(vec![u64::MAX, 5]));
    let rows = Arc::new(Int64Array::from(vec![1, 2]));
    let path = dir.path().join("u.parquet");
    one_group(&path, vec![("u", numbers), ("n", rows)]);
    let sql = "SELECT n FROM 'DIR/u.parquet' WHERE CAST(u AS BIGINT) > 5";
    let error = asked::ask(dir.path(), sql, Options::default()).unwrap_err();
    assert_eq!(error.message, "18446744073709551615 is beyond int64");
    let hint = "`TRY_CAST(x AS BIGINT)` gives NULL there";
    assert_eq!(error.hint.as_deref(), Some(hint));
}
