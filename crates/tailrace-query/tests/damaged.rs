//! Damaged files of Arrow and Parquet are errors that name the file. No length in them makes room for what is not there, and what a
//! reader says while it panics is not printed.
#![allow(clippy::unwrap_used)]

mod asked;

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use arrow::array::{
    ArrayRef, DictionaryArray, Int8Array, Int64Array, ListArray, StringArray, StringViewArray,
    StructArray,
};
use arrow::datatypes::{DataType, Field, Int8Type, Int64Type};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use tailrace_query::Options;

use asked::ask;

const LZ4: (CompressionType, [u8; 4]) = (CompressionType::LZ4_FRAME, [0x04, 0x22, 0x4d, 0x18]);
const ZSTD: (CompressionType, [u8; 4]) = (CompressionType::ZSTD, [0x28, 0xb5, 0x2f, 0xfd]);

/// Panics that were printed.
static PRINTED: AtomicUsize = AtomicUsize::new(0);

/// Counts the panics that are printed, but those of tests that fail. A caught one is kept from what was there before the first of them.
fn count_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_of_test = panic.location().is_some_and(|at| at.file() == file!());
            PRINTED.fetch_add(usize::from(!is_of_test), Ordering::Relaxed);
            before(panic);
        }));
    });
}

/// Rows of several types, as Arrow writes them: with a footer, or as a stream.
fn written(rows: &RecordBatch, codec: Option<CompressionType>, has_footer: bool) -> Vec<u8> {
    let options = IpcWriteOptions::default();
    let options = options.try_with_compression(codec).unwrap();
    let schema = rows.schema();
    match has_footer {
        true => {
            let mut writer =
                FileWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
            writer.write(rows).unwrap();
            writer.write(rows).unwrap();
            writer.into_inner().unwrap()
        }
        false => {
            let mut writer =
                StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
            writer.write(rows).unwrap();
            writer.write(rows).unwrap();
            writer.into_inner().unwrap()
        }
    }
}

fn numbers(count: i64) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
    RecordBatch::try_from_iter([("x", column)]).unwrap()
}

fn of_many_types() -> RecordBatch {
    let texts = || (0..60).map(|at| (at % 7 > 0).then(|| format!("a text that is long {at}")));
    let list = |at: i64| (at % 5 > 0).then(|| vec![Some(at), None, Some(-at)]);
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>((0..60).map(list));
    let dictionary = DictionaryArray::<Int8Type>::new(
        Int8Array::from_iter((0..60).map(|at| (at % 3 > 0).then_some(at % 2))),
        Arc::new(StringArray::from(vec!["one", "two"])),
    );
    let member = Arc::new(Field::new("m", DataType::Int64, true));
    let members: ArrayRef = Arc::new(Int64Array::from_iter((0..60).map(Some)));
    let columns: [(&str, ArrayRef); 5] = [
        ("t", Arc::new(StringArray::from_iter(texts()))),
        ("v", Arc::new(StringViewArray::from_iter(texts()))),
        ("l", Arc::new(list)),
        ("d", Arc::new(dictionary)),
        ("s", Arc::new(StructArray::from(vec![(member, members)]))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// Why a file that holds this cannot be read; nothing if it can.
fn told(dir: &Path, name: &str, bytes: &[u8]) -> String {
    std::fs::write(dir.join(name), bytes).unwrap();
    let all = format!("SELECT * FROM 'DIR/{name}'");
    match ask(dir, &all, Options::default()) {
        Ok(_) => String::new(),
        Err(error) => error.message.replace(dir.to_str().unwrap(), "DIR"),
    }
}

fn place_of(bytes: &[u8], part: &[u8]) -> usize {
    let mut parts = bytes.windows(part.len());
    parts.position(|it| it == part).unwrap()
}

fn with(bytes: &[u8], at: usize, value: i64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    bytes
}

#[test]
fn the_length_of_a_compressed_column_is_one_that_it_can_have() {
    count_panics();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (codec, mark) in [LZ4, ZSTD] {
        for has_footer in [true, false] {
            let bytes = written(&numbers(1000), Some(codec), has_footer);
            assert_eq!(told(dir, "a.arrow", &bytes), "");
            let prefix = place_of(&bytes, &mark) - 8;
            for wrong in [i64::MAX, 1 << 50, 1 << 33, 5 << 20, -2, i64::MIN] {
                let bytes = with(&bytes, prefix, wrong);
                assert_eq!(
                    told(dir, "a.arrow", &bytes),
                    "DIR/a.arrow: it is damaged: a compressed column says that it is longer than it can be"
                );
            }
            // There is room for it.
            let error = told(dir, "a.arrow", &with(&bytes, prefix, 8001));
            assert!(error.starts_with("DIR/a.arrow: "), "{error}");
        }
    }
    // Longer than what is checked without a look at its parts.
    for codec in [None, Some(LZ4.0), Some(ZSTD.0)] {
        let bytes = written(&numbers(300_000), codec, true);
        std::fs::write(dir.join("long.arrow"), bytes).unwrap();
        let sum = ask(
            dir,
            "SELECT count(*) AS n, max(x) AS x FROM 'DIR/long.arrow'",
            Options::default(),
        );
        assert_eq!(sum.unwrap(), "{\"n\":600000,\"x\":299999}\n");
    }
    assert_eq!(PRINTED.load(Ordering::Relaxed), 0);
}

#[test]
fn columns_and_rows_are_within_their_batch() {
    count_panics();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for has_footer in [true, false] {
        let bytes = written(&numbers(1003), None, has_footer);
        let node = place_of(&bytes, &[1003_i64.to_le_bytes(), [0; 8]].concat());
        let len = place_of(&bytes, &8024_i64.to_le_bytes());
        for (at, wrong) in [
            (node, 1 << 40),
            (node, -1),
            (len, 1 << 40),
            (len, -1),
            (len - 8, 1 << 40),
            (len - 8, -8),
            (len - 8, i64::MAX),
        ] {
            assert_eq!(
                told(dir, "a.arrow", &with(&bytes, at, wrong)),
                "DIR/a.arrow: it is damaged: a column of it is longer than its batch"
            );
        }
    }
    assert_eq!(PRINTED.load(Ordering::Relaxed), 0);
}

/// One word in 65, each with another value in turn.
#[test]
fn no_word_of_a_file_is_a_panic_that_is_printed() {
    count_panics();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = of_many_types();
    let (mut count, mut refused) = (0, 0);
    for codec in [None, Some(LZ4.0), Some(ZSTD.0)] {
        for has_footer in [true, false] {
            let bytes = written(&rows, codec, has_footer);
            for at in (0..bytes.len() - 8).step_by(520) {
                let wrong = [i64::MAX, 1 << 40, -1, 0x0101_0101_0101_0101][count % 4];
                let told = told(dir, "a.arrow", &with(&bytes, at, wrong));
                assert!(!told.contains("panicked"), "{told}");
                refused += usize::from(told.starts_with("DIR/a.arrow: "));
                count += 1;
            }
        }
    }
    assert!(refused > 0);
    assert_eq!(PRINTED.load(Ordering::Relaxed), 0);
}

/// A condition that fails within the reader is the query's fault.
#[test]
fn a_condition_that_fails_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 0]));
    let rows = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let file = File::create(dir.join("n.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let sql = "SELECT n FROM 'DIR/n.parquet' WHERE 10 / n > 3";
    let error = ask(dir, sql, Options::default()).unwrap_err();
    assert_eq!(error.message, "`10 / n` divides by zero");
}

/// The columns as Arrow has them are told in the footer, too.
#[test]
fn columns_of_parquet_that_cannot_be_read_are_no_panic_that_is_printed() {
    count_panics();
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = of_many_types();
    let path = dir.join("a.parquet");
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let schema = place_of(&bytes, b"ARROW:schema");
    let mut refused = 0;
    for at in (schema + 20..bytes.len() - 8).step_by(7) {
        let mut bytes = bytes.clone();
        bytes[at] = b'd';
        let told = told(dir, "a.parquet", &bytes);
        assert!(!told.contains("panicked"), "{told}");
        refused += usize::from(told == "DIR/a.parquet: its footer is damaged");
    }
    assert!(refused > 0);
    assert_eq!(PRINTED.load(Ordering::Relaxed), 0);
}
