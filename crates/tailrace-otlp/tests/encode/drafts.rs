//! Rows with drafts and rows without: many rows of open columns, most of them usual, some not.
//!
//! An encoder that adds uids drafts no row. Where no record has a uid it must give the same requests, byte by byte and mark by
//! mark. Both are compared with the reference, too.

use proptest::prelude::*;
use tailrace_otlp::{Encoder, Mapping, OtlpEncoder, OtlpEncoding, Request, Stats, Value};

use crate::property::check;
use crate::table::{Known, KnownColumn, KnownPart, KnownSource, Table, Type};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_draft_is_what_the_row_is_on_its_own(tables in prop::collection::vec(table(), 1..3)) {
        let (mut drafting, mut plain) = (encoder(&tables[0], false), encoder(&tables[0], true));
        for table in &tables {
            compare(table, &mut drafting, &mut plain)?;
            compare(table, &mut drafting, &mut plain)?;
        }
        check(&tables[0], &mut drafting)?;
    }
}

#[test]
fn rows_with_more_values_than_marks() {
    for count in [
        100, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 130, 200,
    ] {
        let columns = (0..count).map(|at| column(&format!("k{at}"), vec![Known::Bool(true); 70]));
        let mut table = usual(70);
        table.parts[0].columns.extend(columns);
        // A row in which most are absent is drafted.
        for column in table.parts[0].columns.iter_mut().skip(5) {
            column.cells[3] = Known::Absent;
        }
        compare(
            &table,
            &mut encoder(&table, false),
            &mut encoder(&table, true),
        )
        .unwrap();
    }
}

#[test]
fn rows_of_every_length_around_the_longest_draft() {
    let mut table = usual(0);
    let texts = (1500..2000)
        .chain([20_000, 70_000])
        .map(|len| Known::Str("x".repeat(len)));
    let cells: Vec<_> = texts.collect();
    table.records = cells.len() as u32;
    table.source_of = vec![0; cells.len()];
    let short = vec![Known::Str("short".to_owned()); cells.len()];
    for (names, is_body) in [(["a", "b"], false), (["message", "b"], true)] {
        let columns = [
            column(names[0], cells.clone()),
            column(names[1], short.clone()),
        ];
        table.parts[0].columns = columns.to_vec();
        compare(
            &table,
            &mut encoder(&table, false),
            &mut encoder(&table, true),
        )
        .unwrap_or_else(|error| panic!("{is_body}: {error}"));
    }
}

fn encoder(table: &Table, record_uid: bool) -> OtlpEncoder {
    OtlpEncoder::new(OtlpEncoding {
        mapping: table.mapping.clone(),
        request_bytes_max: table.request_bytes_max,
        scope_version: "1.2.3".to_owned(),
        iostream: table.iostream,
        record_uid,
    })
}

fn compare(
    table: &Table,
    drafting: &mut OtlpEncoder,
    plain: &mut OtlpEncoder,
) -> Result<(), TestCaseError> {
    let (requests, stats) = encode(table, drafting);
    let (expected, expected_stats) = encode(table, plain);
    prop_assert_eq!(requests.len(), expected.len());
    for (request, expected) in requests.iter().zip(&expected) {
        prop_assert_eq!(&request.ends, &expected.ends);
        prop_assert_eq!(&request.records, &expected.records);
        prop_assert!(request.bytes == expected.bytes, "bytes");
        prop_assert_eq!(&request.marks, &expected.marks);
    }
    prop_assert_eq!(stats, expected_stats);
    Ok(())
}

fn encode(table: &Table, encoder: &mut OtlpEncoder) -> (Vec<Request>, Stats) {
    let mut requests = Vec::new();
    let stats = table.with(|envelope, parts| {
        encoder.encode(envelope, parts, &mut |request| {
            requests.push(request.clone())
        })
    });
    (requests, stats)
}

fn column(name: &str, cells: Vec<Known>) -> KnownColumn {
    KnownColumn {
        name: name.to_owned(),
        ty: Type::Open,
        by_row: false,
        cells,
    }
}

/// So many records of one source without columns.
fn usual(records: usize) -> Table {
    Table {
        records: records as u32,
        raw: None,
        malformed: None,
        truncated: None,
        times: Vec::new(),
        streams: Vec::new(),
        source_of: vec![0; records],
        sources: vec![KnownSource {
            resource: Vec::new(),
            attributes: Vec::new(),
        }],
        parts: vec![KnownPart {
            rows: None,
            columns: Vec::new(),
            overflow: None,
        }],
        mapping: Mapping::default(),
        iostream: true,
        request_bytes_max: 1 << 20,
    }
}

const NAMES: [&str; 20] = [
    "message",
    "body",
    "timestamp",
    "ts",
    "level",
    "severity_number",
    "trace_id",
    "span_id",
    "trace_flags",
    "event.name",
    "log.iostream",
    "a",
    "b",
    "ü key",
    "status",
    "a.b",
    "http",
    "a name that is as long as few are, but not too long",
    "a name that is longer than those whose columns are simple ones",
    "user",
];

fn table() -> impl Strategy<Value = Table> {
    (0usize..150).prop_flat_map(|records| {
        let names = prop::sample::subsequence(&NAMES[..], 1..12);
        let columns = names.prop_flat_map(move |names| {
            names
                .into_iter()
                .map(|name| cells(records).prop_map(move |cells| column(name, cells)))
                .collect::<Vec<_>>()
        });
        let rows = prop::option::weighted(0.3, prop::collection::vec(0..records.max(1), records));
        let flags = move |share: f64| {
            let flags = prop::collection::vec(prop::bool::weighted(0.1), records);
            prop::option::weighted(share, flags)
        };
        let raw = prop::collection::vec(
            prop::option::weighted(0.2, "[a-z]{0,3}|x{110,115}|y{2000}"),
            records,
        );
        let overflow = prop::collection::vec(
            prop::option::weighted(0.1, Just(r#"{"z":1,"a":"x"}"#.to_owned())),
            records,
        );
        let beside = (
            prop::option::weighted(0.3, raw),
            flags(0.3),
            flags(0.3),
            prop::option::weighted(0.3, overflow),
            prop::collection::vec(0u8..3, records),
            prop::collection::vec(0usize..2, 1..3),
        );
        let limits = prop::sample::select(&[300usize, 4000, 1 << 20][..]);
        (columns, rows, beside, limits, any::<bool>()).prop_map(
            move |(columns, rows, beside, limit, has_two_parts)| {
                let (raw, malformed, truncated, overflow, streams, sources) = beside;
                let mut table = usual(records);
                (table.raw, table.malformed, table.truncated) = (raw, malformed, truncated);
                if streams.first().is_some_and(|stream| *stream > 0) {
                    table.streams = streams;
                }
                table.sources.push(KnownSource {
                    resource: vec![("service.name".to_owned(), Value::from("shop"))],
                    attributes: vec![("log.file.name".to_owned(), Value::from("shop.log"))],
                });
                let source = |record| sources[record * sources.len() / records.max(1)];
                table.source_of = (0..records).map(source).collect();
                let rows = rows.filter(|_| records > 0).map(|mut rows| {
                    rows.sort_unstable();
                    Vec::from_iter(rows.into_iter().map(|row| row as u32))
                });
                let of_all = KnownPart {
                    rows: None,
                    columns: columns.clone(),
                    overflow: None,
                };
                table.parts = vec![KnownPart {
                    rows,
                    columns,
                    overflow,
                }];
                table.parts.extend(has_two_parts.then_some(of_all));
                table.request_bytes_max = limit;
                table
            },
        )
    })
}

/// The values of a column: mostly of one kind.
fn cells(records: usize) -> impl Strategy<Value = Vec<Known>> {
    (0usize..8).prop_flat_map(move |kind| {
        let cell = prop_oneof![12 => cell(kind), 2 => Just(Known::Absent), 1 => any_cell()];
        prop::collection::vec(cell, records)
    })
}

fn any_cell() -> impl Strategy<Value = Known> {
    (0usize..8).prop_flat_map(cell)
}

fn cell(kind: usize) -> BoxedStrategy<Known> {
    match kind {
        0 => text().prop_map(Known::Str).boxed(),
        1 => prop::sample::select(&["info", "WARN", "30", "", "fatal", "an unusual level"][..])
            .prop_map(|text| Known::Str(text.to_owned()))
            .boxed(),
        2 => "2026-01-02T03:0[0-9]:[0-5][0-9][.][0-9]{3}Z|2026-13-01|[0-9a-f]{16}|[0-9a-f]{32}"
            .prop_map(Known::Str)
            .boxed(),
        3 => "-?(0|[1-9][0-9]{0,20})"
            .prop_map(|text| Known::Number(text, true))
            .boxed(),
        4 => "-?(0|[1-9][0-9]{0,9})[.][0-9]{1,6}(e-?[0-9]{1,3})?"
            .prop_map(|text| Known::Number(text, false))
            .boxed(),
        5 => any::<bool>().prop_map(Known::Bool).boxed(),
        6 => prop_oneof![Just(Known::Null), Just(Known::Absent)].boxed(),
        _ => json().boxed(),
    }
}

fn text() -> impl Strategy<Value = String> {
    let lens = [
        0usize, 1, 11, 12, 13, 31, 40, 63, 64, 65, 111, 112, 113, 126, 127, 128, 300, 1700, 1850,
        1860, 20_000,
    ];
    prop_oneof![
        8 => (0usize..100).prop_map(|len| "abcdefghij".repeat(10)[..len].to_owned()),
        2 => prop::sample::select(lens.to_vec()).prop_map(|len| "x".repeat(len)),
        1 => any::<String>(),
    ]
}

/// Objects and arrays that look alike, for the most part.
fn json() -> impl Strategy<Value = Known> {
    let scalar =
        r#"-?[0-9]{1,9}|[0-9][.][0-9]{1,3}|true|null|"[a-z]{0,70}"|"a\\n[a-z]{0,80}"|1e999"#;
    let shape = prop::sample::select(
        &[
            r#"{"method":@,"path":@,"headers":{"user-agent":@}}"#,
            r#"[{"sku":@,"sizes":[[@,2],[],[{"w":@}]]},{"sku":@}]"#,
            r#"[@]"#,
            r#"[@,@]"#,
            "[]",
            "{}",
            r#"{ "a" : @ , "b" : [ @ ] }"#,
            r#"{"a":@,"a":@}"#,
            r#"{"\u0061":@}"#,
            r#"{"a":@"#,
            r#"{"":@}"#,
            r#"[[[[[[[[[[[[[[[[[[[[[[[[[[[@]]]]]]]]]]]]]]]]]]]]]]]]]]]"#,
        ][..],
    );
    (shape, prop::collection::vec(scalar, 4)).prop_map(|(shape, scalars)| {
        let mut scalars = scalars.iter();
        let parts = shape.split('@').collect::<Vec<_>>();
        let mut text = parts[0].to_owned();
        for part in &parts[1..] {
            text.push_str(scalars.next().unwrap());
            text.push_str(part);
        }
        let is_object = text.starts_with('{');
        Known::Json(text, is_object)
    })
}
