//! Scanning: instruction set, alignment, buffers, what was scanned before and phases do not matter, and serde_json reads
//! the same members.
//!
//! Takes any bytes as lines, scans them for columns of every type and for all keys, panics where two scans differ, where
//! the prefilter drops a record that holds its text, where a line that serde_json takes comes out otherwise, or where one
//! that it refuses loses a byte.

use std::fmt;

use arrow::array::{Array, AsArray, UInt32Array};
use arrow::datatypes::{Float64Type, Int64Type};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tailrace_model::json::{Kind, Step};
use tailrace_model::reserved::Reserved;
use tailrace_scan::{
    BROKEN, Column, ColumnSource, Config, Isa, Needle, Needles, Record, Records, Scanned, Scanner,
    Star, StarColumn, TEXT, TEXT_ALLOWED, TRUNCATED, Type,
};

const TYPES: [Type; 7] = [
    Type::Open,
    Type::Value,
    Type::Text,
    Type::Int64,
    Type::Float64,
    Type::Boolean,
    Type::Timestamp,
];

/// Keys that have a column of every type.
const KEYS: [&str; 5] = ["a", "status", "message", "ts", ""];

/// Columns of `message`, as text, integer and boolean: what a condition reads.
const MESSAGE: [usize; 3] = [16, 17, 19];

/// The body and whether the record is malformed, which conditions read where there are such columns.
const VERDICT: [usize; 2] = [57, 62];

const ISAS: [Isa; 3] = [Isa::Scalar, Isa::Avx2, Isa::Avx512];

/// Flags by line number: the first lines are plain, later ones are what else a framer may say of a record.
const FLAGS: [u8; 8] = [
    0,
    0,
    0,
    TEXT_ALLOWED,
    TRUNCATED,
    TEXT,
    TRUNCATED | TEXT_ALLOWED,
    BROKEN,
];

/// Keys of their own that `SELECT *` may have, and whether there are reserved columns. With these records are taken one by
/// one, without them by member; without `SELECT *` a record is read only as far as it must be.
const QUERIES: [(Option<usize>, bool); 4] = [
    (Some(512), true),
    (Some(512), false),
    (None, false),
    (Some(2), true),
];

#[allow(dead_code, reason = "libFuzzer's wrapper takes one query at a time")]
pub(crate) fn run(data: &[u8]) {
    (0..QUERIES.len()).for_each(|query| run_query(data, query));
}

/// The same for one query, by number.
pub(crate) fn run_query(data: &[u8], query: usize) {
    let (keys_max, with_reserved) = QUERIES[query % QUERIES.len()];
    let lines: Vec<&[u8]> = data.split(|&byte| byte == b'\n').collect();
    let config = config(keys_max, with_reserved);
    let mut scanner = Scanner::new(with_isa(&config, Isa::Scalar));
    let expect = scanner.scan(&Batch::joint(&lines, 0).records());
    check_lengths(&expect, lines.len());
    check_scans(&config, &lines, &expect);
    check_phases(&config, &lines, &expect);
    if keys_max.is_some() {
        check_reference(&config, &lines, &expect);
    }
}

/// Every instruction set, each with one scanner that knows the more templates the more it has scanned.
fn check_scans(config: &Config, lines: &[&[u8]], expect: &Scanned) {
    let batches = [
        Batch::joint(lines, 1),
        Batch::joint(lines, 31),
        Batch::apart(lines),
        Batch::joint(lines, 63),
    ];
    for (from, isa) in ISAS.into_iter().enumerate() {
        let mut scanner = Scanner::new(with_isa(config, isa));
        // Another one comes first each time.
        for number in (from..).take(batches.len()) {
            let number = number % batches.len();
            let found = scanner.scan(&batches[number].records());
            assert_same(
                &found,
                expect,
                &format!("{isa:?}, batch {number} from {from}"),
            );
        }
    }
}

/// Two phases: the first gives the columns of the condition, the second what a scan of some records gives.
fn check_phases(config: &Config, lines: &[&[u8]], expect: &Scanned) {
    // A text that `message` has in some record: all that have it must pass.
    let message = expect.batch.column(MESSAGE[0]).as_string_view();
    let needle = message.iter().flatten().last().unwrap_or("a");
    let needle: String = needle.chars().take(9).collect();
    let usable = !needle.is_empty() && !needle.contains(char::REPLACEMENT_CHARACTER);
    let any = vec![Needle {
        text: needle.clone(),
        quoted: false,
    }];
    let first = MESSAGE.into_iter().chain(VERDICT);
    let config = Config {
        first: first.filter(|&at| at < config.columns.len()).collect(),
        prefilter: usable.then_some(Needles { any }).into_iter().collect(),
        ..config.clone()
    };
    let batch = Batch::joint(lines, 5);
    let records = batch.records();
    let mut scanner = Scanner::new(config.clone());
    let mut reference = Scanner::new(config.clone());
    for nth in [2, 3] {
        let buffer = records.buffers.first().cloned().unwrap_or_default();
        let searched = scanner.searcher(true).over(&buffer).finish();
        let searched = Records {
            searched: Some(&searched),
            ..records
        };
        let first = scanner.first(&searched);
        let passed = match &first.rows {
            Some(rows) => rows.clone(),
            None => (0..lines.len() as u32).collect(),
        };
        for (row, text) in message.iter().enumerate() {
            let matches = usable && text.is_some_and(|text| text.contains(&needle));
            assert!(
                !matches || passed.contains(&(row as u32)),
                "row {row} passes"
            );
        }
        let taken = UInt32Array::from(passed.clone());
        for (column, &at) in first.batch.columns().iter().zip(&config.first) {
            let expect = arrow::compute::take(expect.batch.column(at), &taken, None).unwrap();
            assert_eq!(column, &expect, "first phase: column {at}");
        }
        let rows: Vec<u32> = passed.into_iter().filter(|row| row % nth != 1).collect();
        let mut found = scanner.second(&records, &first, &rows);
        let expect = reference.scan_some(&records, &rows);
        // What was repaired the first phase has counted.
        found.stats.repaired = expect.stats.repaired;
        assert_same(
            &found,
            &expect,
            &format!("second phase, without each {nth}."),
        );
    }
}

fn with_isa(config: &Config, isa: Isa) -> Config {
    Config {
        isa,
        ..config.clone()
    }
}

/// Every type of several keys, paths, and if wanted the reserved columns that a record decides, and all keys.
fn config(keys_max: Option<usize>, with_reserved: bool) -> Config {
    let key = |key: &str| Step::Key(key.to_owned());
    let mut sources: Vec<ColumnSource> = KEYS
        .iter()
        .map(|name| ColumnSource::Key(vec![key(name)]))
        .collect();
    sources.push(ColumnSource::Key(vec![key("a"), key("b")]));
    sources.push(ColumnSource::Key(vec![key("a"), Step::Index(0)]));
    sources.push(ColumnSource::Key(vec![key("a"), Step::Index(-1), key("b")]));
    let mut typed: Vec<(ColumnSource, Type)> = sources
        .iter()
        .flat_map(|source| TYPES.map(|ty| (source.clone(), ty)))
        .collect();
    let reserved = [
        (Reserved::Body, Type::Open),
        (Reserved::Body, Type::Text),
        (Reserved::Timestamp, Type::Timestamp),
        (Reserved::ObservedTimestamp, Type::Timestamp),
        (Reserved::SeverityText, Type::Text),
        (Reserved::SeverityNumber, Type::Int64),
        (Reserved::Malformed, Type::Boolean),
        (Reserved::Truncated, Type::Boolean),
        (Reserved::Json, Type::Text),
        (Reserved::Iostream, Type::Text),
    ];
    if with_reserved {
        typed.extend(reserved.map(|(name, ty)| (ColumnSource::Reserved(name), ty)));
    }
    let columns = typed
        .into_iter()
        .enumerate()
        .map(|(number, (source, ty))| Column {
            name: number.to_string(),
            source,
            ty,
        });
    Config {
        columns: columns.collect(),
        star: keys_max.map(|columns_max| Star {
            except: vec!["except".to_owned()],
            kept: vec!["message".to_owned(), "ts".to_owned()],
            columns_max,
            ..Star::default()
        }),
        offset_s: 3600,
        ..Config::default()
    }
}

/// The lines in memory.
struct Batch {
    buffers: Vec<Bytes>,
    records: Vec<Record>,
    times: Vec<i64>,
    streams: Vec<u8>,
}

impl Batch {
    /// All in one buffer, `pad` quotes before the first, a newline between two.
    fn joint(lines: &[&[u8]], pad: usize) -> Batch {
        let mut buffer = vec![b'"'; pad];
        buffer.extend(lines.join(&b'\n'));
        let mut start = pad as u32;
        let spans = lines.iter().map(|line| {
            let end = start + line.len() as u32;
            let span = (0, start, end);
            start = end + 1;
            span
        });
        Batch::new(spans.collect(), vec![buffer.into()])
    }

    /// Each in a buffer of its own, so that nothing lies behind it.
    fn apart(lines: &[&[u8]]) -> Batch {
        let spans = lines.iter().zip(0..);
        Batch::new(
            spans
                .map(|(line, number)| (number, 0, line.len() as u32))
                .collect(),
            lines
                .iter()
                .map(|line| Bytes::copy_from_slice(line))
                .collect(),
        )
    }

    fn new(spans: Vec<(u32, u32, u32)>, buffers: Vec<Bytes>) -> Batch {
        let record = |(number, &(buffer, start, end)): (usize, &(u32, u32, u32))| Record {
            buffer,
            start,
            end,
            flags: FLAGS[number % FLAGS.len()],
        };
        Batch {
            buffers,
            records: spans.iter().enumerate().map(record).collect(),
            times: (0..spans.len())
                .map(|number| number as i64 % 3 * 1_000_000_007)
                .collect(),
            streams: (0..spans.len()).map(|number| (number % 3) as u8).collect(),
        }
    }

    fn records(&self) -> Records<'_> {
        Records {
            buffers: &self.buffers,
            records: &self.records,
            times: &self.times,
            streams: &self.streams,
            observed_ns: 1_767_323_045_678_901_234,
            searched: None,
        }
    }
}

fn check_lengths(scanned: &Scanned, rows: usize) {
    assert_eq!(scanned.batch.num_rows(), rows);
    assert_eq!(scanned.stats.records, rows as u64);
    for StarColumn { key, values, kinds } in &scanned.star {
        assert_eq!((values.len(), kinds.len()), (rows, rows), "{key:?}");
    }
}

fn assert_same(found: &Scanned, expect: &Scanned, how: &str) {
    assert_eq!(found.stats, expect.stats, "{how}");
    assert_eq!(found.batch, expect.batch, "{how}");
    assert_eq!(found.kinds, expect.kinds, "{how}");
    assert_eq!(found.star.len(), expect.star.len(), "{how}");
    for (found, expect) in found.star.iter().zip(&expect.star) {
        assert_eq!(found.key, expect.key, "{how}");
        assert_eq!(found.values, expect.values, "{how}: {:?}", found.key);
        assert_eq!(found.kinds, expect.kinds, "{how}: {:?}", found.key);
    }
    assert_eq!(found.overflow, expect.overflow, "{how}");
    assert_eq!(found.raw, expect.raw, "{how}");
    assert_eq!(found.malformed, expect.malformed, "{how}");
    assert_eq!(found.truncated, expect.truncated, "{how}");
}

/// The members of an object in their order, values as written.
struct Members<'a>(Vec<(String, &'a str)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'de>, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members: Vec<(String, &str)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                    if members.iter().all(|(known, _)| *known != key) {
                        members.push((key, value.get()));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// Whether serde_json refuses the line because of its grammar. It does not know the numbers that are not finite.
fn is_refused(line: &[u8]) -> bool {
    let text = std::str::from_utf8(line);
    text.is_ok_and(|text| {
        let is_known = !text.contains("NaN") && !text.contains("Infinity");
        is_known && serde_json::from_str::<&RawValue>(text).is_err()
    })
}

/// Compares each line that serde_json takes with its row, if every key has a column; of one that it refuses the raw text
/// must be there.
fn check_reference(config: &Config, lines: &[&[u8]], scanned: &Scanned) {
    for (row, line) in lines
        .iter()
        .enumerate()
        .filter(|(_, line)| is_refused(line))
    {
        let raw = scanned.raw.as_ref().filter(|raw| raw.is_valid(row));
        let raw = raw.map(|raw| raw.value(row).as_bytes());
        assert_eq!(raw, Some(*line), "row {row}");
    }
    if scanned.overflow.is_some() {
        return;
    }
    for (row, line) in lines.iter().enumerate() {
        if FLAGS[row % FLAGS.len()] & (TEXT | BROKEN) != 0 {
            continue;
        }
        let members = std::str::from_utf8(line)
            .ok()
            .and_then(|text| serde_json::from_str(text).ok());
        let Some(Members(mut members)) = members else {
            continue;
        };
        check_typed(config, row, &members, scanned);
        members.retain(|(key, _)| key != "except");
        let is_raw = scanned.raw.as_ref().is_some_and(|raw| raw.is_valid(row));
        assert!(!is_raw, "row {row} is an object");
        let present = scanned
            .star
            .iter()
            .filter(|column| column.kinds.is_valid(row));
        assert_eq!(present.count(), members.len(), "row {row}: {members:?}");
        for (key, json) in &members {
            let column = scanned.star.iter().find(|column| *column.key == **key);
            let column = column.unwrap_or_else(|| panic!("row {row}: no column {key:?}"));
            check_value(column, row, json);
        }
    }
}

fn check_value(column: &StarColumn, row: usize, json: &str) {
    let expect = kind(json);
    let place = format!("row {row}, {:?}: {json}", column.key);
    assert_eq!(column.kinds.value(row), expect as u8, "{place}");
    let value = column
        .values
        .is_valid(row)
        .then(|| column.values.value(row));
    match expect {
        Kind::Null => assert_eq!(value, None, "{place}"),
        // serde_json takes no lone surrogate, we replace it.
        Kind::String => match serde_json::from_str::<String>(json) {
            Ok(text) => assert_eq!(value, Some(&*text), "{place}"),
            Err(_) => assert!(value.is_some(), "{place}"),
        },
        _ => assert_eq!(value, Some(json), "{place}"),
    }
}

/// Numbers in number columns.
fn check_typed(config: &Config, row: usize, members: &[(String, &str)], scanned: &Scanned) {
    for (column, values) in config.columns.iter().zip(scanned.batch.columns()) {
        let ColumnSource::Key(path) = &column.source else {
            continue;
        };
        let [Step::Key(key)] = &path[..] else {
            continue;
        };
        let json = members.iter().find(|(known, _)| known == key);
        let place = format!("row {row}, {:?} of {json:?}", column.ty);
        let Some(&(_, json)) = json else {
            assert!(values.is_null(row), "{place}");
            continue;
        };
        match (column.ty, kind(json)) {
            (Type::Int64, Kind::Integer) => {
                let values = values.as_primitive::<Int64Type>();
                let value = values.is_valid(row).then(|| values.value(row));
                assert_eq!(value, json.parse().ok(), "{place}");
            }
            (Type::Float64, Kind::Integer | Kind::Float) => {
                let values = values.as_primitive::<Float64Type>();
                let value = values.is_valid(row).then(|| values.value(row));
                let expect = json.parse().ok().filter(|value: &f64| value.is_finite());
                let expect = expect.map(|value| value + 0.0);
                assert_eq!(value.map(f64::to_bits), expect.map(f64::to_bits), "{place}");
            }
            (Type::Boolean, Kind::Bool) => {
                assert!(values.is_valid(row), "{place}");
                assert_eq!(values.as_boolean().value(row), json == "true", "{place}");
            }
            (_, Kind::Null) | (Type::Int64 | Type::Float64, Kind::Bool) => {
                assert!(values.is_null(row), "{place}");
            }
            _ => {}
        }
    }
}

/// The kind of a JSON text that is known to be valid.
fn kind(json: &str) -> Kind {
    match json.as_bytes()[0] {
        b'n' => Kind::Null,
        b'"' => Kind::String,
        b't' | b'f' => Kind::Bool,
        b'{' => Kind::Object,
        b'[' => Kind::Array,
        _ if json.contains(['.', 'e', 'E']) => Kind::Float,
        _ => Kind::Integer,
    }
}
