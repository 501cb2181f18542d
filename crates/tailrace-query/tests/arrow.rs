//! Arrow files of both forms: several with other columns, damaged ones, and such as a glob names.
#![allow(clippy::unwrap_used)]

mod asked;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int8Array, Int64Array, StringArray,
    StructArray, UnionArray,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema, UnionFields};
use arrow::ipc::writer::{FileWriter, StreamWriter};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use tailrace_query::Options;

use asked::ask;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let field =
        |(name, column): &(&str, ArrayRef)| Field::new(*name, column.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn numbers(values: &[i64]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

/// Writes rows in the form with a footer.
fn write(path: &Path, batch: &RecordBatch) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), batch.schema_ref()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

/// Writes rows as a stream.
fn stream(path: &Path, batch: &RecordBatch) {
    let file = File::create(path).unwrap();
    let mut writer = StreamWriter::try_new(file, batch.schema_ref()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn told(dir: &Path, sql: &str) -> String {
    let error = match ask(dir, sql, Options::default()) {
        Ok(rows) => return rows,
        Err(error) => error,
    };
    error.message.replace(dir.to_str().unwrap(), "DIR")
}

#[test]
fn columns_of_several_files_are_put_together_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(
        &dir.join("a.arrow"),
        &batch(vec![("x", numbers(&[1])), ("y", numbers(&[5]))]),
    );
    stream(
        &dir.join("b.arrow"),
        &batch(vec![("y", numbers(&[2])), ("x", numbers(&[9]))]),
    );
    write(&dir.join("c.ARROW"), &batch(vec![("y", numbers(&[7]))]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["t"]));
    let float: ArrayRef = Arc::new(Float64Array::from(vec![0.5]));
    write(
        &dir.join("d.arrow"),
        &batch(vec![("z", text), ("x", float)]),
    );
    assert_eq!(
        told(
            dir,
            "SELECT x, y, z FROM 'DIR/[a-d].[aA]*' ORDER BY y NULLS LAST"
        ),
        "{\"x\":9.0,\"y\":2}\n{\"x\":1.0,\"y\":5}\n{\"y\":7}\n{\"x\":0.5,\"z\":\"t\"}\n"
    );
    assert_eq!(
        told(dir, "SELECT y FROM 'DIR/[ab].arrow' WHERE x = 9"),
        "{\"y\":2}\n"
    );
    assert_eq!(
        told(dir, "SELECT max(x) AS x FROM 'DIR/[ab].arrow'"),
        "{\"x\":9}\n"
    );
    // Files of the same columns are one table.
    write(
        &dir.join("e.arrow"),
        &batch(vec![("x", numbers(&[3])), ("y", numbers(&[4]))]),
    );
    assert_eq!(
        told(dir, "SELECT sum(y) AS y FROM 'DIR/[ae].arrow'"),
        "{\"y\":9}\n"
    );
}

#[test]
fn globs_and_directories_name_them() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (at, name) in ["d/1/a.arrow", "d/2/a.arrow", "d/x[1].arrow"]
        .iter()
        .enumerate()
    {
        write(&dir.join(name), &batch(vec![("x", numbers(&[1 << at]))]));
    }
    let sum = |path: &str| told(dir, &format!("SELECT sum(x) AS x FROM 'DIR/{path}'"));
    assert_eq!(sum("d/*/*.arrow"), "{\"x\":3}\n");
    assert_eq!(sum("d/?/a.arrow"), "{\"x\":3}\n");
    assert_eq!(sum("d/**/*.arrow"), "{\"x\":7}\n");
    assert_eq!(sum("d/x[1].arrow"), "{\"x\":4}\n");
    assert_eq!(sum("d"), "{\"x\":7}\n");
    std::fs::write(dir.join("d/b.csv"), "x\n1\n").unwrap();
    assert_eq!(
        sum("d"),
        "DIR/d holds tables, and files of another kind, such as DIR/d/b.csv"
    );
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let whole = dir.join("a.arrow");
    write(&whole, &batch(vec![("x", numbers(&[1]))]));
    let bytes = std::fs::read(&whole).unwrap();
    let told = |bytes: &[u8]| {
        std::fs::write(dir.join("b.arrow"), bytes).unwrap();
        told(dir, "SELECT * FROM 'DIR/b.arrow'")
    };
    let cut = "DIR/b.arrow: it ends too early: it was cut off, or is still being written";
    assert_eq!(told(&bytes[..bytes.len() - 1]), cut);
    stream(&whole, &batch(vec![("x", numbers(&[1]))]));
    let streamed = std::fs::read(&whole).unwrap();
    assert_eq!(told(&streamed[..streamed.len() - 20]), cut);
    // Between two messages: with a part of the mark of its end, or without it.
    assert_eq!(told(&streamed[..streamed.len() - 4]), cut);
    let unmarked = "DIR/b.arrow: its end is not marked: it was cut off, is still being written, or its writer was not closed";
    assert_eq!(told(&streamed[..streamed.len() - 8]), unmarked);
    let unreadable =
        "DIR/b.arrow: it is not Arrow, damaged, or cut off: its columns cannot be read";
    assert_eq!(told(b"{\"x\":1}\n"), unreadable);
    assert_eq!(told(b""), unreadable);
    assert_eq!(told(&bytes[..6]), cut);
    let names = ["x", "x"].map(|name| (name, numbers(&[1])));
    write(&dir.join("c.arrow"), &batch(names.into()));
    assert_eq!(
        self::told(dir, "SELECT * FROM 'DIR/c.arrow'"),
        "DIR/c.arrow: it has more than one column `x`"
    );
    let gone = self::told(dir, "SELECT * FROM 'DIR/gone.arrow'");
    assert!(gone.starts_with("DIR/gone.arrow: cannot be read"), "{gone}");
}

/// A damaged file gives rows or an error, and never ends the process: a panic of the decoder is an error that the engine gives.
#[test]
fn any_damaged_byte_is_an_error_or_another_value() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let rows = batch(vec![("x", numbers(&[1, 2])), ("y", numbers(&[3, 4]))]);
    let parquet = dir.join("a.parquet");
    let mut writer =
        ArrowWriter::try_new(File::create(&parquet).unwrap(), rows.schema(), None).unwrap();
    writer.write(&rows).unwrap();
    writer.close().unwrap();
    let bytes = std::fs::read(&parquet).unwrap();
    let footer = bytes.len() - 8;
    for (at, value) in [
        (footer, [0xff, 0xff, 0xff, 0x7f]),
        (footer, [0xff, 0xff, 0, 0]),
        (footer - 20, [0xff; 4]),
    ] {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&value);
        std::fs::write(&parquet, bytes).unwrap();
        let told = told(dir, "SELECT * FROM 'DIR/a.parquet'");
        assert!(told.starts_with("DIR/a.parquet: "), "{told}");
    }
    let path = dir.join("b.arrow");
    for writes in [write, stream] {
        writes(&path, &rows);
        let bytes = std::fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(5) {
            let mut bytes = bytes.clone();
            bytes[at] = 0xff;
            std::fs::write(&path, bytes).unwrap();
            told(dir, "SELECT * FROM 'DIR/b.arrow'");
        }
    }
}

/// As Polars writes it: what the file begins with is no message.
#[test]
fn a_file_with_a_footer_is_read_by_that() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let path = dir.join("a.arrow");
    write(&path, &batch(vec![("n", numbers(&[1, 2]))]));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8..16].copy_from_slice(&[4, 0, 0, 0, 0xf2, 0xff, 0xff, 0xff]);
    std::fs::write(&path, bytes).unwrap();
    let sql = format!("SELECT sum(n) AS n FROM '{}'", path.display());
    assert_eq!(told(dir, &sql), "{\"n\":3}\n");
}

/// Rows of NULL refer to a value of the dictionary that is one.
#[test]
fn a_dictionary_may_hold_null() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let values: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let column: ArrayRef = Arc::new(DictionaryArray::new(Int8Array::from(vec![0, 1]), values));
    let field = Field::new("d", column.data_type().clone(), true);
    let inner: ArrayRef = Arc::new(StructArray::from(vec![(
        Arc::new(field),
        Arc::clone(&column),
    )]));
    let columns = vec![("i", numbers(&[1, 2])), ("d", column), ("s", inner)];
    write(&dir.join("d.arrow"), &batch(columns));
    for files in ["DIR/d.arrow", "DIR/*.arrow"] {
        let sql = format!("SELECT i, d, length(d) AS l, s['d'] AS e FROM '{files}' ORDER BY i");
        assert_eq!(
            told(dir, &sql),
            "{\"i\":1,\"d\":\"x\",\"l\":1,\"e\":\"x\"}\n{\"i\":2}\n"
        );
        // Other columns make them tables of their own.
        stream(&dir.join("e.arrow"), &batch(vec![("f", numbers(&[]))]));
    }
    let sql = "SELECT count(*) AS n FROM 'DIR/d.arrow' WHERE d <> 'y'";
    assert_eq!(told(dir, sql), "{\"n\":1}\n");
}

/// What stands in the members of a struct that is NULL is no value.
#[test]
fn members_of_a_null_struct_are_null() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for is_nullable in [true, false] {
        let member = Arc::new(Field::new("k", DataType::Int64, is_nullable));
        let nulls = NullBuffer::from(vec![true, false, true]);
        let column = StructArray::new(vec![member].into(), vec![numbers(&[7, 8, 9])], Some(nulls));
        let columns = vec![
            ("i", numbers(&[1, 2, 3])),
            ("s", Arc::new(column) as ArrayRef),
        ];
        write(&dir.join("s.arrow"), &batch(columns));
        let sql = "SELECT i, s, s['k'] AS k FROM 'DIR/s.arrow' ORDER BY i";
        let rows =
            "{\"i\":1,\"s\":{\"k\":7},\"k\":7}\n{\"i\":2}\n{\"i\":3,\"s\":{\"k\":9},\"k\":9}\n";
        assert_eq!(told(dir, sql), rows);
        let sql = "SELECT count(*) AS n, sum(s['k']) AS k FROM 'DIR/s.arrow' WHERE s['k'] > 7";
        assert_eq!(told(dir, sql), "{\"n\":1,\"k\":9}\n");
        // Beside a file with other columns.
        stream(&dir.join("t.arrow"), &batch(vec![("f", numbers(&[]))]));
        let sql = "SELECT count(s['k']) AS n, sum(s['k']) AS k FROM 'DIR/*.arrow'";
        assert_eq!(told(dir, sql), "{\"n\":2,\"k\":16}\n");
    }
}

/// The values of a dense union have places of their own, and not every union has numbers of 64 bits.
#[test]
fn columns_of_several_kinds_are_compared() {
    let dir = tempfile::tempdir().unwrap();
    let whole = || Arc::new(Field::new("w", DataType::Int64, true));
    let float = || Arc::new(Field::new("f", DataType::Float64, true));
    let fields = UnionFields::try_new([0, 1], [whole(), float()]).unwrap();
    let children: Vec<ArrayRef> = vec![
        numbers(&[7, 3]),
        Arc::new(Float64Array::from(vec![2.5, 3.0])),
    ];
    let kinds = vec![0_i8, 1, 0, 1].into();
    let places = Some(vec![1, 1, 0, 0].into());
    let union: ArrayRef = Arc::new(UnionArray::try_new(fields, kinds, places, children).unwrap());
    let columns = vec![("n", numbers(&[1, 2, 3, 4])), ("u", union)];
    write(&dir.path().join("dense.arrow"), &batch(columns));
    let sql = "SELECT n FROM 'DIR/dense.arrow' WHERE u = 3 ORDER BY n";
    assert_eq!(told(dir.path(), sql), "{\"n\":1}\n{\"n\":2}\n");
    let text = Arc::new(Field::new("t", DataType::Utf8, true));
    let fields = UnionFields::try_new([0, 1], [whole(), text]).unwrap();
    let children: Vec<ArrayRef> =
        vec![numbers(&[3, 0]), Arc::new(StringArray::from(vec!["", "x"]))];
    let union: ArrayRef =
        Arc::new(UnionArray::try_new(fields, vec![0_i8, 1].into(), None, children).unwrap());
    let columns = vec![("n", numbers(&[1, 2])), ("u", union)];
    write(&dir.path().join("other.arrow"), &batch(columns));
    let sql = "SELECT n FROM 'DIR/other.arrow' WHERE u = 3";
    assert_eq!(told(dir.path(), sql), "{\"n\":1}\n");
}
