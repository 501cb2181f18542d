//! What a query cannot give is said, and what it can give comes first: keys that no column is made of, and damaged files.
#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use tailrace_query::{Archive, Engine, Error, Input, Options, Type};

/// What a query gave before it ended.
struct Asked {
    rows: usize,
    columns: Vec<String>,
    /// Keys that `*` has no column for.
    late_keys: Vec<String>,
    ended: Result<(), Error>,
}

fn ask(sql: &str, path: &Path, options: Options) -> Asked {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(options).unwrap();
        let inputs = [Input::File(path.to_owned())];
        let plan = engine.plan(sql, &inputs).await.unwrap();
        let mut rows = 0;
        let ended = plan.run(|batch| {
            rows += batch.num_rows();
            true
        });
        let ended = ended.await;
        let fields = plan.schema();
        Asked {
            rows,
            columns: fields.fields().iter().map(|it| it.name().clone()).collect(),
            late_keys: engine.notes().late_keys(),
            ended,
        }
    })
}

/// A file of a MiB of one sort of line, and then these lines.
fn file(dir: &Path, line: &str, rest: &str) -> PathBuf {
    let path = dir.join("late.log");
    let mut text = format!("{line}\n").repeat((1 << 20) / line.len());
    text += rest;
    std::fs::write(&path, text).unwrap();
    path
}

const BOOT: &str = r#"{"msg":"boot","at":1}"#;
const PAYS: &str = "{\"msg\":\"pay\",\"amount\":7}\n{\"msg\":\"pay\",\"at\":2,\"amount\":8}\n{\"at\":3,\"x\\ty\":null,\"z\":{\"inner\":1}}\n";

#[test]
fn keys_that_come_late_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), BOOT, PAYS);
    let late = |sql: &str| ask(sql, &path, Options::default()).late_keys;
    let all = ["amount", "x\ty", "z"];
    assert_eq!(late("SELECT * FROM logs"), all);
    assert_eq!(late("SELECT l.*, timestamp FROM logs l"), all);
    assert_eq!(late("SELECT * EXCLUDE (at) FROM logs"), all);
    assert_eq!(late("SELECT DISTINCT * FROM logs"), all);
    // Of rows that are left out nothing is missed, whether a template of theirs is known or not.
    assert_eq!(late("SELECT * FROM logs WHERE at = 3"), ["x\ty", "z"]);
    assert_eq!(late("SELECT * FROM logs WHERE msg = 'boot'"), [""; 0]);
    // Nor where the columns are named.
    assert_eq!(late("SELECT msg, at FROM logs"), [""; 0]);
    assert_eq!(late("SELECT count(*) FROM logs"), [""; 0]);
    assert_eq!(late("SELECT count(*) FROM (SELECT * FROM logs)"), [""; 0]);
}

#[test]
fn a_key_whose_template_a_condition_learnt_is_named() {
    let dir = tempfile::tempdir().unwrap();
    // One record meets the condition, which no search for texts can tell. By then its template is known.
    let mut pays = String::new();
    for at in 0..2000 {
        writeln!(pays, r#"{{"msg":"pay","at":{at},"amount":1}}"#).unwrap();
    }
    let path = file(dir.path(), BOOT, &pays);
    let asked = ask(
        "SELECT * FROM logs WHERE at % 2000 = 1990",
        &path,
        Options {
            partitions: 1,
            chunk_bytes: 16 << 10,
            ..Options::default()
        },
    );
    assert_eq!(
        (asked.rows, asked.late_keys),
        (1, vec!["amount".to_owned()])
    );
}

#[test]
fn keys_behind_plain_text_are_named_and_columns_that_are_asked_for_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "started", PAYS);
    let asked = ask("SELECT * FROM logs", &path, Options::default());
    assert_eq!(asked.columns, ["body"]);
    assert_eq!(asked.late_keys, ["amount", "at", "x\ty", "z"]);
    let options = Options {
        columns: vec![
            ("amount".to_owned(), Type::Int64),
            ("at".to_owned(), Type::Int64),
            ("z".to_owned(), Type::Text),
        ],
        ..Options::default()
    };
    let asked = ask("SELECT * FROM logs", &path, options);
    assert_eq!(asked.late_keys, ["x\ty"]);
}

#[test]
fn text_behind_json_is_named_as_body() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), BOOT, "stopped\n");
    let asked = |columns: &[&str]| {
        let columns = columns.iter().map(|name| ((*name).to_owned(), Type::Text));
        let options = Options {
            columns: columns.collect(),
            ..Options::default()
        };
        ask("SELECT * FROM logs", &path, options)
    };
    assert_eq!(asked(&[]).late_keys, ["body"]);
    // As the note says.
    let asked = asked(&["body"]);
    assert_eq!(asked.columns, ["msg", "at", "body"]);
    assert_eq!(asked.late_keys, [""; 0]);
}

#[test]
fn what_a_late_key_follows_decides_about_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let rest = "{\"msg\":\"a\",\"at\":1,\"late\":1,bad}\n{\"msg\":\"a\",\"at\":1,bad}\n";
    let path = file(dir.path(), BOOT, rest);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let malformed = |sql: &str| {
        runtime.block_on(async {
            let engine = Engine::new(Options::default()).unwrap();
            let plan = engine
                .plan(sql, &[Input::File(path.clone())])
                .await
                .unwrap();
            plan.run(|_| true).await.unwrap();
            (
                engine.notes().counts().malformed,
                engine.notes().late_keys(),
            )
        })
    };
    // The same columns, by name: the keys behind them are not read.
    assert_eq!(malformed("SELECT msg, at FROM logs"), (0, vec![]));
    let named = vec!["late".to_owned()];
    assert_eq!(malformed("SELECT * FROM logs"), (0, named));
}

#[test]
fn an_archive_has_columns_for_keys_of_the_whole_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), BOOT, PAYS);
    let options = || Options {
        archive: Some(Archive {
            to: dir.path().join("to").display().to_string(),
            partition_by: Vec::new(),
        }),
        ..Options::default()
    };
    let asked = ask("SELECT * FROM logs", &path, options());
    assert_eq!(asked.columns, ["msg", "at", "amount", "x\ty", "z"]);
    assert_eq!(asked.late_keys, [""; 0]);
    let path = file(dir.path(), "started", PAYS);
    let columns = ask("SELECT * FROM logs", &path, options()).columns;
    assert_eq!(columns, ["body", "msg", "amount", "at", "x\ty", "z"]);
}

fn lines(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, n| {
        writeln!(text, r#"{{"n":{n}}}"#).unwrap();
        text
    })
}

fn gzip(text: &str) -> Vec<u8> {
    let level = flate2::Compression::fast();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn rows_before_damage_are_given_and_its_place_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = lines(300_000);
    let zstd = zstd::encode_all(text.as_bytes(), 1).unwrap();
    for (name, bytes) in [("gzip", gzip(&text)), ("zstd", zstd)] {
        let path = dir.path().join(name);
        let cut = bytes.len() / 2;
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let asked = ask("SELECT n FROM logs", &path, Options::default());
        let message = asked.ended.unwrap_err().message;
        assert!(message.contains(&format!("at byte {cut} ")), "{message}");
        assert!(message.contains("ends too early"), "{message}");
        assert!(message.contains(&format!("`{name} -dc FILE")), "{message}");
        // What is named as read is read, to the last whole line.
        let (_, given) = message.split_once("): the ").unwrap();
        let (given, _) = given.split_once(" bytes").unwrap();
        let given: usize = given.parse().unwrap();
        assert!(given > text.len() / 4, "{message}");
        assert_eq!(asked.rows, text[..given].matches('\n').count(), "{message}");
    }
}

#[test]
fn padding_of_gzip_is_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("padded");
    let padded = [
        gzip(&lines(2)),
        vec![0; 512],
        gzip(&lines(1)),
        vec![0; 20_000],
    ]
    .concat();
    std::fs::write(&path, padded).unwrap();
    let asked = ask("SELECT n FROM logs", &path, Options::default());
    asked.ended.unwrap();
    assert_eq!(asked.rows, 3);
}

/// The rows of a query that names its files, as JSON lines.
fn json(sql: &str, options: Options) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(options).unwrap();
        let plan = engine.plan(sql, &[]).await.unwrap();
        let mut out = arrow_json::LineDelimitedWriter::new(Vec::new());
        let ran = plan.run(|batch| {
            out.write(&batch).unwrap();
            true
        });
        ran.await.unwrap();
        out.finish().unwrap();
        String::from_utf8(out.into_inner()).unwrap()
    })
}

/// Batches are small where a record has few of many keys: each has a slot for every column in every row.
#[test]
fn many_keys_that_few_records_have_make_small_batches() {
    const KEYS: usize = 1_000;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sparse.log");
    let line = |at: usize| match at % 3 {
        0 => format!(
            "2026-03-01T10:00:00.000000001Z stdout F {{\"k{}\":{at}}}\n",
            at % KEYS
        ),
        _ => format!(
            "2026-03-01T10:00:00Z stderr P {{\"k{}\"\n2026-03-01T10:00:00Z stderr F :{at}}}\n",
            at % KEYS
        ),
    };
    let lines: String = (0..5_000).map(line).collect();
    std::fs::write(&path, lines).unwrap();
    let expected: String = (0..5_000)
        .filter(|at| at % KEYS != 7)
        .map(|at| format!("{{\"k{}\":{at}}}\n", at % KEYS))
        .collect();
    let sql = "SELECT * FROM logs WHERE k7 IS NULL";
    let mut rows_max = 0;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let options = Options {
            partitions: 1,
            ..Options::default()
        };
        let engine = Engine::new(options).unwrap();
        let plan = engine.plan(sql, &[Input::File(path.clone())]).await;
        let mut out = arrow_json::LineDelimitedWriter::new(Vec::new());
        let rows = plan
            .unwrap_or_else(|error| panic!("{}", error.message))
            .run(|batch| {
                rows_max = rows_max.max(batch.num_rows());
                out.write(&batch).unwrap();
                true
            })
            .await;
        rows.unwrap();
        out.finish().unwrap();
        assert_eq!(String::from_utf8(out.into_inner()).unwrap(), expected);
        assert_eq!(engine.notes().counts().records, 5_000);
    });
    assert!(
        (1..2_200).contains(&rows_max),
        "{rows_max} rows of {KEYS} columns"
    );
}

/// What one step tells the files to leave out must not be what another step needs.
#[test]
fn rows_are_left_out_of_parquet_only_where_no_step_needs_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let ints = |of: &dyn Fn(i64) -> i64| -> ArrayRef {
        Arc::new((0..1_000).map(of).collect::<Int64Array>())
    };
    let batch = RecordBatch::try_from_iter([
        ("a", ints(&|n| 1_000 - n)),
        ("b", ints(&|n| n * 10)),
        ("c", ints(&|n| (n * 37) % 1_000)),
    ])
    .unwrap();
    let properties = parquet::file::properties::WriterProperties::builder();
    let properties = properties.set_max_row_group_row_count(Some(10)).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    for (select, expected) in [
        (
            "max(a) AS x, max(a + b) AS y FROM T",
            "{\"x\":1000,\"y\":9991}\n",
        ),
        (
            "max(a) AS x, max(b) FILTER (WHERE b > 5) AS y FROM T",
            "{\"x\":1000,\"y\":9990}\n",
        ),
        (
            "min(b) AS x, min(c) AS y FROM T WHERE c > 3",
            "{\"x\":10,\"y\":4}\n",
        ),
        (
            "c FROM T ORDER BY a % 7 + c DESC, a LIMIT 3",
            "{\"c\":993}\n{\"c\":994}\n{\"c\":995}\n",
        ),
        (
            "c, b FROM T ORDER BY b - a DESC, a LIMIT 1",
            "{\"c\":963,\"b\":9990}\n",
        ),
        (
            "c FROM T ORDER BY c DESC LIMIT 2",
            "{\"c\":999}\n{\"c\":998}\n",
        ),
    ] {
        for partitions in [1, 3] {
            let options = Options {
                partitions,
                ..Options::default()
            };
            let sql = format!(
                "SELECT {}",
                select.replace("FROM T", &format!("FROM '{}'", path.display()))
            );
            let rows = json(&sql, options);
            assert_eq!(rows, expected, "{select}");
        }
    }
}

/// Values within lists and structs are compared as they are ordered: NULL is where the order has it.
#[test]
fn the_first_rows_of_an_order_by_lists_and_structs_are_those_of_the_whole_order() {
    let dir = tempfile::tempdir().unwrap();
    let files = [
        ("1", [Some(2), None, None, Some(9)], 1),
        ("2", [Some(1), Some(3), None, Some(7)], 5),
    ];
    for (name, values, first) in files {
        let b: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 4));
        let a: ArrayRef = Arc::new(Int64Array::from(vec![1; 4]));
        let batch = RecordBatch::try_from_iter([("id", ids), ("a", a), ("b", b)]).unwrap();
        let path = |kind: &str| dir.path().join(format!("{name}.{kind}"));
        let file = std::fs::File::create(path("parquet")).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let file = std::fs::File::create(path("jsonl")).unwrap();
        let mut writer = arrow_json::LineDelimitedWriter::new(file);
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
    }
    for (key, rows) in [
        ("[a, b]", "5 1 6"),
        ("[a, b] DESC", "2 3 7"),
        ("[a, b] DESC NULLS LAST", "4 8 6"),
        ("struct(a, b) NULLS FIRST", "2 3 7"),
        ("a, [a, b] DESC", "2 3 7"),
        ("a, struct(b, a)", "5 1 6"),
        ("[a, b], b", "5 1 6"),
    ] {
        for kind in ["jsonl", "parquet"] {
            for partitions in [1, 3] {
                let options = || Options {
                    partitions,
                    ..Options::default()
                };
                let from = format!(
                    "FROM '{}/*.{kind}' ORDER BY {key}, id",
                    dir.path().display()
                );
                let whole = json(&format!("SELECT id {from}"), options());
                let starts = rows.split(' ').map(|id| format!("{{\"id\":{id}}}\n"));
                assert!(
                    whole.starts_with(&starts.collect::<String>()),
                    "{key} {whole}"
                );
                for limit in [1, 3, 7] {
                    let first = json(&format!("SELECT id {from} LIMIT {limit}"), options());
                    let expected: String = whole.split_inclusive('\n').take(limit).collect();
                    assert_eq!(first, expected, "{key} {kind} {limit}");
                }
            }
        }
    }
}
