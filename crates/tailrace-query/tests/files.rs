//! Files of every kind: cut anywhere they give the same rows, and what is wrong with them is said or counted.
#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use proptest::prelude::*;
use tailrace_query::{Counts, Engine, Error, Input, Options, Type, expand};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap()
}

/// The rows as JSON lines in their order, and what was counted.
fn ask(sql: &str, inputs: &[Input], options: Options) -> Result<(String, Counts), Error> {
    runtime().block_on(async {
        let engine = Engine::new(options).unwrap();
        let mut batches: Vec<RecordBatch> = Vec::new();
        let plan = engine.plan(sql, inputs).await?;
        plan.run(|batch| {
            batches.push(batch);
            true
        })
        .await?;
        let mut out = arrow_json::LineDelimitedWriter::new(Vec::new());
        for batch in &batches {
            out.write(batch).unwrap();
        }
        out.finish().unwrap();
        Ok((
            String::from_utf8(out.into_inner()).unwrap(),
            engine.notes().counts(),
        ))
    })
}

fn all_of(path: &Path, partitions: usize, chunk_bytes: usize) -> (String, Counts) {
    let options = Options {
        partitions,
        chunk_bytes,
        split_bytes_min: 1,
        ..Options::default()
    };
    ask(
        "SELECT * FROM logs",
        &[Input::File(path.to_owned())],
        options,
    )
    .unwrap()
}

const LINES: &[&[u8]] = &[
    b"{\"a\":1,\"b\":\"x\"}\n",
    b"{\"a\":2.5,\"c\":[1,{\"d\":null}]}\n",
    b"{\"b\":\"esc\\n\\u00e9\\ud83d\\ude00\"}\r\n",
    b"\n",
    b"   \n",
    b"plain text\n",
    b"{\"a\": broken\n",
    b"\xff\xfe{\n",
    b"2026-01-02T03:04:05Z stdout P half \n",
    b"2026-01-02T03:04:05Z stderr F {\"a\":3}\n",
    b"{\"log\":\"x\\n\",\"stream\":\"stdout\",\"time\":\"2026-01-02T03:04:05Z\"}\n",
    b"{\"a\":4,\"message\":\"a longer line that crosses more of the cuts than others do\"}\n",
    b"\0\0\0\n",
];

/// Without a newline at the end.
const RESTS: &[&[u8]] = &[b"", b"{\"a\":9", b"{\"a\":9}", b"end"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_cut_gives_the_same_rows(
        lines in prop::collection::vec(prop::sample::select(LINES), 0..40),
        rest in prop::sample::select(RESTS),
        partitions in 2_usize..6,
        chunk_bytes in 1_usize..200,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, [lines.concat().as_slice(), rest].concat()).unwrap();
        let whole = all_of(&path, 1, 1 << 20);
        prop_assert_eq!(all_of(&path, partitions, chunk_bytes), whole);
    }
}

#[test]
fn compressed_files_give_the_same_rows_and_damaged_ones_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let text = (0..2000)
        .map(|n| format!("{{\"n\":{n}}}\n"))
        .collect::<String>();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, &text).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    let expected = all_of(&plain, 2, 1000);
    for (name, bytes) in [("gz", &gzip), ("zst", &zstd)] {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(all_of(&path, 2, 1000), expected, "{name}");
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let error = ask(
            "SELECT count(*) FROM logs",
            &[Input::File(path)],
            Options::default(),
        );
        assert!(
            error.unwrap_err().to_string().contains("cannot be read"),
            "{name}"
        );
    }
}

#[test]
fn files_that_need_another_program_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let twice = zstd::encode_all(&zstd::encode_all(&b"{}\n"[..], 1).unwrap()[..], 1).unwrap();
    let whole: [(&[u8], &str); 6] = [
        (
            b"\xfd7zXZ\0\0\x04",
            "is compressed with xz, which is not read; `xz -dc ",
        ),
        (b"BZh91AY&SY\x01", "is compressed with bzip2"),
        (b"PK\x03\x04\x14", "is a zip archive"),
        (b"\x04\x22\x4d\x18\x64", "is compressed with lz4"),
        (b"\xff\xfe{\0}\0\n\0", "is UTF-16"),
        (&twice, "is compressed twice"),
    ];
    let path = dir.path().join("x");
    for (bytes, expected) in whole {
        std::fs::write(&path, bytes).unwrap();
        let files = [Input::File(path.clone())];
        let error = ask("SELECT count(*) FROM logs", &files, Options::default());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    std::fs::write(&path, "BZh is a text\n").unwrap();
    let files = [Input::File(path)];
    let rows = ask("SELECT body FROM logs", &files, Options::default());
    assert_eq!(rows.unwrap().0, "{\"body\":\"BZh is a text\"}\n");
}

#[test]
fn a_value_that_does_not_fit_is_null_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("late");
    let mut text = "{\"status\":200}\n".repeat(40_000);
    text += "{\"status\":\"none\",\"late\":1}\n";
    std::fs::write(&path, &text).unwrap();
    let input = [Input::File(path)];
    let (rows, counts) = ask(
        "SELECT count(*) AS n, count(status) AS s FROM logs",
        &input,
        Options::default(),
    )
    .unwrap();
    assert_eq!(rows, "{\"n\":40001,\"s\":40000}\n");
    assert_eq!((counts.unfit, counts.records), (1, 40_001));
    // A key that comes later is unknown, until it is named.
    let sql = "SELECT status FROM logs WHERE late = 1";
    let error = ask(sql, &input, Options::default()).unwrap_err();
    assert_eq!((error.place, error.is_usage), (Some((1, 31)), true));
    assert!(error.hint.unwrap().contains("--columns late=text"));
    let options = Options {
        columns: vec![
            ("late".to_owned(), Type::Int64),
            ("status".to_owned(), Type::Text),
        ],
        ..Options::default()
    };
    let (rows, counts) = ask(sql, &input, options).unwrap();
    assert_eq!(
        (rows.as_str(), counts.unfit),
        ("{\"status\":\"none\"}\n", 0)
    );
}

#[test]
fn what_is_wrong_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    std::fs::write(&path, "{\"level\":\"INFO\"}\n").unwrap();
    std::fs::write(dir.path().join("empty.log"), "").unwrap();
    let input = [Input::File(path)];
    let refused = |sql: &str, inputs: &[Input]| {
        let error = ask(sql, inputs, Options::default()).unwrap_err();
        (
            error.message.clone(),
            error.place,
            error.hint.unwrap_or_default(),
            error.is_usage,
        )
    };
    let (message, place, hint, is_usage) = refused("SELECT level2\nFROM logs", &input);
    assert_eq!(
        (message.as_str(), place),
        ("there is no column `level2`", Some((1, 8)))
    );
    assert!(hint.contains("`level`") && is_usage);
    let (message, place, ..) = refused("SELECT level FROM\nlogs WHERE )", &input);
    assert!(message.contains("expression"), "{message}");
    assert_eq!(place, Some((2, 12)));
    assert!(refused("DROP TABLE logs", &input).0.contains("only SELECT"));
    assert!(
        refused("SELECT * FROM other", &input)
            .0
            .contains("no table `other`")
    );
    assert!(
        refused("SELECT * FROM logs", &[])
            .2
            .contains("standard input")
    );
    assert!(
        refused("SELECT CAST(level AS BIGINT) FROM logs", &input)
            .0
            .contains("INFO")
    );
    assert!(
        refused("SELECT * FROM 'no/such.log'", &[])
            .0
            .contains("cannot be read")
    );
    let glob = format!("{}/*.log", dir.path().display());
    assert_eq!(expand(&[glob]).unwrap().len(), 2);
    assert!(expand(&[format!("{}/*.txt", dir.path().display())]).is_err());
    let empty = [Input::File(dir.path().join("empty.log"))];
    let (rows, _) = ask("SELECT count(*) AS n FROM logs", &empty, Options::default()).unwrap();
    assert_eq!(rows, "{\"n\":0}\n");
}

#[test]
fn the_first_line_may_be_long_and_conditions_mean_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let long = format!("{{\"i\":1,\"b\":true,\"m\":\"{}\"}}\n", "x".repeat(600_000));
    std::fs::write(&path, long + "{\"i\":2,\"b\":false}\n{\"i\":3}\n").unwrap();
    let input = [Input::File(path)];
    let found = |condition: &str| {
        let sql = format!("SELECT array_agg(i ORDER BY i) AS i FROM logs WHERE {condition}");
        ask(&sql, &input, Options::default()).unwrap().0
    };
    assert_eq!(found("json->>'i' = '2' AND i = 2"), "{\"i\":[2]}\n");
    assert_eq!(found("length(m) = 600000"), "{\"i\":[1]}\n");
    assert_eq!(found("b IS DISTINCT FROM true AND i = 2"), "{\"i\":[2]}\n");
    assert_eq!(
        found("i = 1 AND b IS DISTINCT FROM true OR i = 3"),
        "{\"i\":[3]}\n"
    );
    let options = Options {
        columns: vec![("body".to_owned(), Type::Int64)],
        ..Options::default()
    };
    assert!(
        ask("SELECT body FROM logs", &input, options)
            .unwrap_err()
            .is_usage
    );
}

#[test]
fn the_first_rows_are_those_of_the_first_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let lines: String = (0..5000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    let input = [Input::File(path)];
    for _ in 0..30 {
        let options = Options {
            partitions: 4,
            split_bytes_min: 1,
            ..Options::default()
        };
        let sql = "WITH x AS (SELECT n FROM logs WHERE n <> 1 LIMIT 3) SELECT array_agg(n ORDER BY n) AS n FROM x";
        assert_eq!(
            ask(sql, &input, options.clone()).unwrap().0,
            "{\"n\":[0,2,3]}\n"
        );
        let sql = "SELECT n FROM logs LIMIT 2 OFFSET 2000";
        assert_eq!(
            ask(sql, &input, options).unwrap().0,
            "{\"n\":2000}\n{\"n\":2001}\n"
        );
    }
}

#[test]
fn computed_rows_come_in_the_order_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let lines: Vec<_> = (0..2000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    std::fs::write(&path, lines.concat()).unwrap();
    let options = Options {
        partitions: 4,
        chunk_bytes: 1000,
        ..Options::default()
    };
    let sql = "SELECT n FROM (SELECT abs(n) AS n FROM logs WHERE n % 7 <> 1) l WHERE n > 3";
    let (rows, _) = ask(sql, &[Input::File(path)], options).unwrap();
    let kept = (4..2000).filter(|n| n % 7 != 1);
    let expected: String = kept.map(|n| format!("{{\"n\":{n}}}\n")).collect();
    assert_eq!(rows, expected);
}

#[test]
fn an_offset_in_a_subquery_has_an_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let lines: String = (0..50).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    let input = [Input::File(path)];
    for sql in [
        "SELECT n FROM (SELECT n FROM logs LIMIT 3 OFFSET 5) ORDER BY n",
        "WITH x AS (SELECT n FROM logs OFFSET 5) SELECT count(*) AS n FROM x",
        "SELECT n FROM logs WHERE n IN (SELECT n FROM logs OFFSET 5)",
        "SELECT n FROM (SELECT n FROM logs ORDER BY n OFFSET 5) ORDER BY n DESC",
    ] {
        let error = ask(sql, &input, Options::default()).unwrap_err();
        assert!(
            error.is_usage && error.message.contains("OFFSET"),
            "{error:?}"
        );
    }
    let sum = |sql: &str| ask(sql, &input, Options::default()).unwrap().0;
    let ordered = "SELECT sum(n) AS n FROM (SELECT n FROM logs ORDER BY n LIMIT 2 OFFSET 5)";
    assert_eq!(sum(ordered), "{\"n\":11}\n");
    let other = "SELECT n FROM (SELECT n FROM logs ORDER BY n LIMIT 2 OFFSET 5) ORDER BY n DESC";
    assert_eq!(sum(other), "{\"n\":6}\n{\"n\":5}\n");
    assert_eq!(
        sum("SELECT n FROM logs ORDER BY n OFFSET 49"),
        "{\"n\":49}\n"
    );
    assert_eq!(sum("SELECT n + 1 AS n FROM logs OFFSET 49"), "{\"n\":50}\n");
}

#[test]
fn a_record_may_have_thousands_of_keys() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let members = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"k{n}\":{n}")).collect();
        format!("{{{}}}\n", members.join(","))
    };
    std::fs::write(&path, members(4000) + "{\"k3999\":1}\n").unwrap();
    let input = [Input::File(path.clone())];
    let sum = "SELECT sum(k3999) AS a, sum(k0) AS b FROM logs";
    let (rows, counts) = ask(sum, &input, Options::default()).unwrap();
    assert_eq!(
        (rows.as_str(), counts.keyless),
        ("{\"a\":4000,\"b\":0}\n", 0)
    );
    std::fs::write(&path, members(4099)).unwrap();
    let (_, counts) = ask("SELECT k1 FROM logs", &input, Options::default()).unwrap();
    assert_eq!(counts.keyless, 3);
}

#[test]
fn a_file_that_is_named_twice_is_read_once_and_tables_are_not_sampled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    std::fs::write(&path, "{\"n\":1}\n").unwrap();
    std::os::unix::fs::symlink(&path, dir.path().join("b.log")).unwrap();
    let words =
        ["a.log", "b.log", "*.log", ""].map(|word| format!("{}/{word}", dir.path().display()));
    let inputs = expand(&words).unwrap();
    assert_eq!(inputs, [Input::File(path)]);
    let error = ask(
        "SELECT n FROM logs TABLESAMPLE (10)",
        &inputs,
        Options::default(),
    );
    let error = error.unwrap_err();
    assert!(error.is_usage && error.place == Some((1, 15)), "{error:?}");
}

#[test]
fn similar_to_is_that_of_pipelines() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    std::fs::write(
        &path,
        "{\"t\":\"abc\"}\n{\"t\":\"xabcx\"}\n{\"t\":\"ab%c\"}\n{\"t\":null}\n",
    )
    .unwrap();
    let input = [Input::File(path)];
    let count = |condition: &str| {
        let sql = format!("SELECT count(*) AS n FROM logs WHERE {condition}");
        ask(&sql, &input, Options::default()).map(|(rows, _)| rows)
    };
    for (condition, rows) in [
        ("t SIMILAR TO 'abc'", 1),
        ("t SIMILAR TO '%abc%'", 2),
        ("t SIMILAR TO '_b_?c'", 2),
        ("t NOT SIMILAR TO '(a|x)bc'", 2),
        ("t SIMILAR TO 'ab!%c' ESCAPE '!'", 1),
        ("t SIMILAR TO '%' AND (t SIMILAR TO 'x%' OR t = 'abc')", 2),
    ] {
        assert_eq!(
            count(condition).unwrap(),
            format!("{{\"n\":{rows}}}\n"),
            "{condition}"
        );
    }
    for condition in [
        "t SIMILAR TO t",
        "t SIMILAR TO '('",
        "t SIMILAR TO 'a' ESCAPE 'xy'",
    ] {
        let error = count(condition).unwrap_err();
        assert!(
            error.is_usage && error.place.is_some() && error.hint.is_some(),
            "{error:?}"
        );
    }
}

/// A file is read as long as it was when the query was planned, whatever its format.
#[test]
fn a_file_that_becomes_shorter_is_an_error_and_what_is_added_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    for line in ["{\"i\":1}\n", "2026-01-02T03:04:05Z stdout F {\"i\":1}\n"] {
        let path = dir.path().join("a.log");
        std::fs::write(&path, line.repeat(1000)).unwrap();
        runtime().block_on(async {
            let engine = Engine::new(Options::default()).unwrap();
            let inputs = [Input::File(path.clone())];
            let plan = engine.plan("SELECT i FROM logs", &inputs).await.unwrap();
            std::fs::write(&path, line.repeat(1001)).unwrap();
            let mut rows = 0;
            let counted = plan.run(|batch| {
                rows += batch.num_rows();
                true
            });
            counted.await.unwrap();
            assert_eq!(rows, 1000, "{line}");
            std::fs::write(&path, line).unwrap();
            let ended = plan.again().await.unwrap().run(|_| true).await;
            assert!(
                ended.unwrap_err().to_string().contains("became shorter"),
                "{line}"
            );
        });
    }
}

#[test]
fn all_columns_are_those_of_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    std::fs::write(&path, "{\"time\":\"2026-01-02T03:04:05Z\",\"x\":\"7\"}\n").unwrap();
    let input = [Input::File(path)];
    let rows = |sql: &str| ask(sql, &input, Options::default()).unwrap().0;
    // The name of a type is no column, a column that is named is one.
    let all = "{\"time\":\"2026-01-02T03:04:05Z\",\"x\":\"7\",\"t\":\"2026-01-02T03:04:05\"}\n";
    assert_eq!(
        rows("SELECT *, cast(time as timestamp) AS t FROM logs"),
        all
    );
    assert_eq!(
        rows("SELECT timestamp FROM logs"),
        "{\"timestamp\":\"2026-01-02T03:04:05Z\"}\n"
    );
    assert_eq!(
        rows("SELECT json FROM logs WHERE severity_number IS NULL")
            .lines()
            .count(),
        1
    );
}

#[test]
fn the_search_for_texts_leaves_out_nothing_that_matches() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let lines: [&[u8]; 6] = [
        b"{\"n\":1,\"t\":\"x\xff\"}\n",
        b"{\"n\":2,\"t\":\"x\\ud83d\"}\n",
        b"{\"n\":3,\"t\":\"\\u0078\\ufffd\"}\n",
        b"{\"n\":4,\"t\":\"\\u0041\\/b\"}\n",
        b"{\"n\":5,\"t\":\"A/b\"}\n",
        b"{\"n\":6,\"t\":7}\n",
    ];
    std::fs::write(&path, lines.concat()).unwrap();
    let input = [Input::File(path)];
    let found = |condition: &str| {
        let sql = format!("SELECT array_agg(n ORDER BY n) AS n FROM logs WHERE {condition}");
        ask(&sql, &input, Options::default()).unwrap().0
    };
    assert_eq!(found("t = 'x\u{fffd}'"), "{\"n\":[1,2,3]}\n");
    assert_eq!(found("t LIKE 'x\u{fffd}'"), "{\"n\":[1,2,3]}\n");
    assert_eq!(found("t IN ('A/b', 'x\u{fffd}')"), "{\"n\":[1,2,3,4,5]}\n");
    assert_eq!(found("t = 'A/b'"), "{\"n\":[4,5]}\n");
    assert_eq!(found("t LIKE 'A%b' OR t = '7'"), "{\"n\":[4,5,6]}\n");
}

#[test]
fn globs_enter_only_what_they_lead_into() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a/b/x.log", "a/y.log", "z.log"] {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "{}\n").unwrap();
    }
    std::os::unix::fs::symlink("/no/such/file", dir.path().join("gone.log")).unwrap();
    let count =
        |glob: &str| expand(&[format!("{}/{glob}", dir.path().display())]).map_or(0, |it| it.len());
    assert_eq!(
        [
            "*.log",
            "*/*.log",
            "**/*.log",
            "",
            "a",
            "{a,b}/y.log",
            "no*"
        ]
        .map(count),
        [1, 1, 3, 3, 2, 1, 0]
    );
}

#[test]
fn the_files_of_a_query_join_each_other_and_csv() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let events = file(
        "events.ndjson",
        "{\"user\":1,\"what\":\"in\"}\n{\"user\":2,\"what\":\"out\"}\n",
    );
    let users = file("users.csv", "id,name\n1,Anna\n2,Bob\n");
    let sql = format!(
        "SELECT b.name, a.what, a.\"log.file.name\" AS f FROM '{events}' a JOIN '{users}' b ON a.user = b.id ORDER BY name"
    );
    let (rows, _) = ask(&sql, &[], Options::default()).unwrap();
    assert_eq!(
        rows,
        "{\"name\":\"Anna\",\"what\":\"in\",\"f\":\"events.ndjson\"}\n{\"name\":\"Bob\",\"what\":\"out\",\"f\":\"events.ndjson\"}\n"
    );
}

/// DataFusion 55 panics where it passes such rows on without groups.
#[test]
fn percentiles_of_many_groups() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let lines: String = (0..250_000)
        .map(|n| format!("{{\"k\":{n},\"v\":{}}}\n", n % 1000))
        .collect();
    std::fs::write(&path, lines).unwrap();
    let sql = "SELECT count(*) AS n, sum(p) AS p FROM (SELECT k, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS p \
               FROM logs GROUP BY k)";
    let options = Options {
        partitions: 2,
        ..Options::default()
    };
    let (rows, _) = ask(sql, &[Input::File(path)], options).unwrap();
    assert_eq!(rows, "{\"n\":250000,\"p\":124875000.0}\n");
}

/// Groups and joins that turn out not to fit into memory do on disk.
#[test]
fn groups_and_joins_go_on_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let filler = "x".repeat(300);
    let lines: String = (0..100_000_u64)
        .map(|n| format!("{{\"n\":{},\"x\":\"{n}{filler}\"}}\n", n * 7_919 % 100_000))
        .collect();
    std::fs::write(&path, lines).unwrap();
    let inputs = [Input::File(path)];
    for sql in [
        "SELECT count(*) AS n FROM (SELECT x, n, min(n) FROM logs GROUP BY x, n)",
        "SELECT count(DISTINCT x || n) AS n FROM logs",
        "SELECT count(*) AS n FROM (SELECT DISTINCT * FROM logs)",
        "SELECT count(*) AS n FROM logs a JOIN logs b ON a.n = b.n AND a.x = b.x",
        "SELECT count(*) AS n FROM (SELECT x FROM logs UNION SELECT x FROM logs ORDER BY 1)",
        "SELECT count(b.x) AS n FROM logs a LEFT JOIN logs b ON a.n = b.n",
        "SELECT count(a.x) AS n FROM logs a FULL JOIN logs b ON a.x = b.x AND a.n > b.n - 1",
        "SELECT count(x) AS n FROM logs WHERE x IN (SELECT x FROM logs WHERE n >= 0)",
        "SELECT count(*) AS n FROM (SELECT x, row_number() OVER (PARTITION BY n % 7 ORDER BY x) FROM logs)",
        "SELECT count(*) AS n FROM (SELECT n, x FROM logs WHERE n < 50000 UNION ALL SELECT n, x FROM logs WHERE n >= 50000) u JOIN logs b ON u.n = b.n AND u.x = b.x",
        "SELECT count(a.x) AS n FROM logs a WHERE a.x IN (SELECT x FROM logs WHERE n < 50000 UNION SELECT x FROM logs WHERE n >= 50000)",
    ] {
        for partitions in [1, 2] {
            let options = Options {
                memory_bytes: 16 << 20,
                partitions,
                ..Options::default()
            };
            let (rows, counts) =
                ask(sql, &inputs, options).unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert_eq!(rows, "{\"n\":100000}\n", "{sql}");
            // What was read in vain does not count, but for the chunks that were then being read.
            let tables = sql.matches("logs").count().max(2) as u64;
            assert!(
                counts.records <= 100_000 * tables + 20_000,
                "{sql}: {counts:?}"
            );
        }
    }
}

/// A join with one small side keeps that side only, and does not begin again.
#[test]
fn a_join_of_many_rows_needs_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let [path, names] = ["a.log", "names.log"].map(|name| dir.path().join(name));
    let filler = "x".repeat(300);
    let lines: String = (0..200_000)
        .map(|n| format!("{{\"n\":{},\"x\":\"{filler}\"}}\n", n % 10))
        .collect();
    std::fs::write(&path, lines).unwrap();
    let of_names: String = (0..10)
        .map(|n| format!("{{\"n\":{n},\"name\":\"name{n}\"}}\n"))
        .collect();
    std::fs::write(&names, of_names).unwrap();
    for (condition, rows) in [("true", 200_000), ("b.name = 'name7'", 20_000)] {
        let sql = format!(
            "SELECT a.n, a.x, b.name FROM logs a JOIN '{}' b ON a.n = b.n WHERE {condition}",
            names.display()
        );
        let options = Options {
            memory_bytes: 24 << 20,
            partitions: 2,
            ..Options::default()
        };
        let (joined, counts) = ask(&sql, &[Input::File(path.clone())], options).unwrap();
        assert_eq!(joined.lines().count(), rows);
        assert_eq!(counts.records, 200_010, "{sql}");
    }
}

/// Rows that are only put in order need no more memory than is granted: the others wait on disk.
#[test]
fn a_sort_goes_on_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let filler = "x".repeat(300);
    let lines: String = (0..100_000_u64)
        .map(|n| format!("{{\"n\":{},\"x\":\"{filler}\"}}\n", n * 7_919 % 100_000))
        .collect();
    std::fs::write(&path, lines).unwrap();
    let options = Options {
        memory_bytes: 16 << 20,
        ..Options::default()
    };
    let (rows, _) = ask(
        "SELECT n, x FROM logs ORDER BY n",
        &[Input::File(path)],
        options,
    )
    .unwrap();
    assert!(numbers(&rows).eq(0..100_000));
}

/// Also rows of Parquet, of which no more are decoded at a time than there is memory for.
#[test]
fn long_rows_of_parquet_are_sorted_within_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let ids = (0..12_000_i64).map(|n| n * 7_919 % 12_000);
    let texts = (0..12_000).map(|n| format!("{n:04000}"));
    let rows = RecordBatch::try_from_iter([
        ("n", Arc::new(Int64Array::from_iter_values(ids)) as ArrayRef),
        ("x", Arc::new(StringArray::from_iter_values(texts))),
    ]);
    let rows = rows.unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let options = Options {
        memory_bytes: 8 << 20,
        ..Options::default()
    };
    let sql = format!("SELECT n, x FROM '{}' ORDER BY n", path.display());
    let (rows, _) = ask(&sql, &[], options).unwrap();
    assert!(numbers(&rows).eq(0..12_000));
}

/// And rows that are shorter than their keys, by which they are compared.
#[test]
fn short_rows_are_sorted_by_several_keys_within_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.parquet");
    let count = 60_000_i64;
    let ids = || (0..count).map(|n| n * 7_919 % count);
    let tens: Int64Array = ids().map(|n| (n < 50_000).then_some(n / 10)).collect();
    let rows = RecordBatch::try_from_iter([
        (
            "n",
            Arc::new(Int64Array::from_iter_values(ids())) as ArrayRef,
        ),
        ("k", Arc::new(tens)),
    ]);
    let rows = rows.unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let path = path.display();
    for (sql, expected) in [
        ("SELECT n FROM 'FILE' ORDER BY k, n", count),
        (
            "SELECT n FROM 'FILE' ORDER BY -k DESC NULLS LAST, -n DESC LIMIT 50000",
            50_000,
        ),
        (
            "SELECT n FROM 'FILE' ORDER BY n >= 30000, n / 7, n % 7",
            count,
        ),
        ("SELECT n FROM 'FILE' ORDER BY lpad(n::text, 9, '0')", count),
        (
            "SELECT n FROM (SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n) FROM 'FILE') ORDER BY k, n",
            count,
        ),
        (
            "SELECT n FROM (SELECT k, n FROM 'FILE' INTERSECT SELECT k, n FROM 'FILE') ORDER BY k IS NULL, n",
            count,
        ),
    ] {
        let options = Options {
            memory_bytes: 2 << 20,
            ..Options::default()
        };
        let found = ask(&sql.replace("FILE", &path.to_string()), &[], options);
        let (rows, _) = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert!(numbers(&rows).eq(0..expected.cast_unsigned()), "{sql}");
    }
}

fn numbers(rows: &str) -> impl Iterator<Item = u64> {
    rows.lines().map(|row| {
        let row: serde_json::Value = serde_json::from_str(row).unwrap();
        row["n"].as_u64().unwrap()
    })
}

/// So do the first rows, if they are many, and those of a pipe, which cannot be read again.
#[test]
fn first_rows_and_rows_of_a_pipe_are_sorted_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let [path, pipe] = ["a.log", "pipe"].map(|name| dir.path().join(name));
    let filler = "x".repeat(300);
    let lines: String = (0..100_000_u64)
        .map(|n| format!("{{\"n\":{},\"x\":\"{filler}\"}}\n", n * 7_919 % 100_000))
        .collect();
    std::fs::write(&path, &lines).unwrap();
    let options = || Options {
        memory_bytes: 16 << 20,
        ..Options::default()
    };
    let sql = "SELECT n, x FROM logs ORDER BY n LIMIT 90000";
    let (rows, _) = ask(sql, &[Input::File(path.clone())], options()).unwrap();
    assert!(numbers(&rows).eq(0..90_000));
    // Of all parts.
    let name = path.display();
    let sql = format!(
        "SELECT n, x FROM (SELECT n, x FROM '{name}' UNION ALL SELECT n + 100000 AS n, x FROM '{name}') ORDER BY n DESC LIMIT 150000"
    );
    let (rows, _) = ask(&sql, &[], options()).unwrap();
    assert!(numbers(&rows).eq((50_000..200_000).rev()));

    let status = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(status.unwrap().success());
    let written = pipe.clone();
    let writer = std::thread::spawn(move || std::fs::write(written, lines));
    let sql = "SELECT n, x FROM logs ORDER BY n";
    let (rows, _) = ask(sql, &[Input::File(pipe)], options()).unwrap();
    assert!(numbers(&rows).eq(0..100_000));
    writer.join().unwrap().unwrap();
}
