//! In two phases a worker gives what it gives in one: the same requests of the same records.

use std::path::Path;
use std::sync::LazyLock;

use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use proptest::prelude::*;
use tailrace_config as config;
use tailrace_frame::{Framer, Frames};
use tailrace_otlp::Index;

use super::*;
use crate::input::facts::FactsConfig;
use crate::input::frame_config::frame_config;
use crate::input::input_queue::SourceRun;
use crate::process::transform::Transformed;
use crate::process::transform::harness::Way;
use tailrace_outputs::FileAttributes;

#[path = "neighbours.rs"]
mod neighbours;

const OBSERVED_NS: i64 = 1_767_323_045_000_000_000;

const CONFIG: &str = "pipelines: {a: {input: {type: stdin, format: FORMAT}, outputs: [\
    {name: o, type: otlp, compression: none}, {name: s, type: stdout, format: json}]}}";

/// A pipeline of lines, one of container lines.
static PIPELINES: LazyLock<[config::Pipeline; 2]> = LazyLock::new(|| {
    ["json", "cri"].map(|format| {
        let name = format!("tailrace-{}-{format}.yaml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, CONFIG.replace("FORMAT", format)).unwrap();
        let loaded = config::load(std::slice::from_ref(&path), &|_| None).unwrap();
        std::fs::remove_file(&path).unwrap();
        loaded.pipelines["a"].clone()
    })
});

fn plan(sql: &str, cri: bool) -> PipelinePlan {
    let mut pipeline = PIPELINES[usize::from(cri)].clone();
    sql.clone_into(&mut pipeline.transform.text);
    let prepared = PipelinePlan::prepare("a", &pipeline, &[]);
    prepared.unwrap_or_else(|diagnostic| panic!("{sql}: {diagnostic}"))
}

/// Lines of two files by turns, three at a time, framed.
fn framed(plan: &PipelinePlan, lines: &[Vec<u8>], cri: bool) -> Framed {
    let config = frame_config(&plan.config.inputs[0], plan.config.limits.replay);
    let facts = FactsConfig {
        resource: Vec::new(),
        encodings: vec![
            FileAttributes {
                name: true,
                path: true
            };
            plan.encodings.len()
        ],
        files: true,
        framing: None,
        pods: None,
    };
    let facts = ["/logs/a.log", "/logs/b.log"].map(|path| facts.of(Path::new(path)).facts);
    let mut framers = [0, 1].map(|_| Framer::new(&config, 0, false));
    let mut frames = Frames::default();
    let mut bytes = Vec::new();
    let mut runs = Vec::new();
    for (turn, lines) in lines.chunks(3).enumerate() {
        let first = frames.records.len() as u32;
        let start = bytes.len();
        for (number, line) in lines.iter().enumerate() {
            if cri {
                let stream = ["stdout", "stderr"][number % 2];
                let head = format!("2026-01-02T03:04:0{number}Z {stream} F ");
                bytes.extend_from_slice(head.as_bytes());
            }
            bytes.extend_from_slice(line);
            bytes.push(b'\n');
        }
        let chunk = bytes[start..].to_vec();
        framers[turn % 2].push(&chunk, 0, start as u32, &mut frames);
        runs.push(SourceRun {
            records: first..frames.records.len() as u32,
            facts: Arc::clone(&facts[turn % 2]),
        });
    }
    let side = Bytes::from(std::mem::take(&mut frames.side));
    Framed {
        frames,
        buffers: vec![Bytes::from(bytes), side],
        runs,
        observed_ns: OBSERVED_NS,
        ..Framed::default()
    }
}

/// What came of a batch: records kept, rows as text, and requests with their tables.
#[derive(Debug, PartialEq)]
struct Image {
    kept: usize,
    failed_rows: u64,
    rows: Vec<String>,
    /// Bytes, ends and records. Empty where the order of a star's columns may differ.
    requests: Vec<(Bytes, Vec<u32>, Vec<u32>)>,
}

fn image(worker: &mut Worker, way: Way, plan: &PipelinePlan, framed: &Framed) -> Image {
    let transformed = worker.transform.run_as(way, plan, framed);
    let mut image = Image {
        kept: transformed.kept,
        failed_rows: transformed.failed_rows,
        rows: rows(plan, &transformed, &worker.transform),
        requests: Vec::new(),
    };
    let Some(columns) = &transformed.columns else {
        return image;
    };
    let requests = worker
        .encode(
            plan,
            (framed, columns, &[]),
            usize::MAX,
            &mut Compressors::default(),
        )
        .unwrap();
    for request in requests.into_iter().flatten() {
        let (ends, records) = (request.table.ends.clone(), request.table.records.clone());
        image.requests.push((request.payload.bytes, ends, records));
    }
    if plan.query.star().is_some() {
        image.requests.iter_mut().for_each(|(bytes, ends, _)| {
            *bytes = Bytes::new();
            ends.clear();
        });
    }
    image
}

/// Rows by branch: the record, what stands beside it, and the columns by name.
fn rows(plan: &PipelinePlan, transformed: &Transformed, transform: &Transform) -> Vec<String> {
    let Some(columns) = &transformed.columns else {
        return Vec::new();
    };
    let options = FormatOptions::default().with_null("NULL");
    let scanned = &columns.scanned;
    let mut lines = Vec::new();
    for (branch, part) in parts(plan, columns, &FailedValues::new(plan, columns))
        .iter()
        .enumerate()
    {
        let all: Vec<u32> = (0..columns.batch.num_rows() as u32).collect();
        for (row, &place) in part.rows.unwrap_or(&all).iter().enumerate() {
            let at = place as usize;
            let survivors = columns.survivors.as_deref();
            let record = survivors.map_or(place, |survivors| survivors[at]);
            let mut cells: Vec<String> = Vec::new();
            for column in &part.columns {
                let at = match column.index {
                    Index::Record => at,
                    Index::Row => row,
                };
                let values = ArrayFormatter::try_new(column.values, &options).unwrap();
                let kind = column.kinds.map(|kinds| kinds.iter().nth(at).unwrap());
                // A star has columns only for keys that some record of the batch has.
                if !matches!(kind, Some(None)) {
                    cells.push(format!("{}={} {kind:?}", column.name, values.value(at)));
                }
            }
            cells.sort();
            let raw = scanned.raw.as_ref().map(|raw| raw.iter().nth(at).unwrap());
            let malformed = scanned.malformed.as_ref().is_some_and(|it| it.value(at));
            let beside = format!(
                "{:?} {malformed} {:?} {:?}",
                raw.flatten(),
                transform.times.get(at),
                transform.streams.get(at).filter(|stream| **stream != 0),
            );
            lines.push(format!("{branch}: {record}: {beside} {}", cells.join(", ")));
        }
    }
    lines
}

fn agree(sql: &str, batches: &[Vec<Vec<u8>>], cri: bool) {
    let plan = plan(sql, cri);
    let mut one = Worker::new(&plan, 0);
    let mut two = Worker::new(&plan, 0);
    for lines in batches {
        let framed = framed(&plan, lines, cri);
        if framed.frames.records.is_empty() {
            continue;
        }
        let expect = image(&mut one, Way::OnePhase, &plan, &framed);
        let found = image(&mut two, Way::TwoPhases, &plan, &framed);
        // A condition that would fail for a record is not tried if the record cannot meet another.
        let failed_rows = found.failed_rows.min(expect.failed_rows);
        let expect = Image {
            failed_rows,
            ..expect
        };
        assert_eq!(found, expect, "two phases: {sql}");
    }
}

const CONDITIONS: &[&str] = &[
    "level = 'ERROR'",
    "level <> 'ERROR'",
    "'ERROR' = level",
    "level IN ('ERROR', 'x/y')",
    "level IN ('404', 'true', '[\"ERROR\"]')",
    "level NOT IN ('ERROR', 'x')",
    "msg = 'a\\b'",
    "msg = 'say \"hi\"'",
    "msg = 'x/y'",
    "msg = E'tab\\there'",
    "msg = 'caf\u{e9}'",
    "msg = 'null'",
    "msg = 'ER\u{fffd}ROR'",
    "msg LIKE '%RR%'",
    "msg NOT LIKE '%RR%'",
    "msg LIKE 'x/_%'",
    "msg LIKE 'a\\\\b%'",
    "msg LIKE '50\\%%'",
    "msg LIKE '%\u{fffd}%'",
    "msg LIKE 'ERROR'",
    "starts_with(msg, 'GET')",
    "starts_with(msg, 'a\\')",
    "contains(msg, '\u{e9}')",
    "contains(msg, '\"hi\"')",
    "contains(http, '\"k\":\"ERROR\"')",
    "http LIKE '%404%'",
    "http->>'k' = 'ERROR'",
    "http->>'k' = '404'",
    "http->'k'->>0 LIKE '%ERR%'",
    "status = '404'",
    "status = 404",
    "status >= 400",
    "status IN (404, 500)",
    "status = 4.5",
    "status LIKE '4%'",
    "status IS NULL",
    "level IS NULL",
    "level IS NOT NULL",
    "NOT (level = 'ERROR')",
    "level = 'ERROR' OR status > 400",
    "NOT contains(msg, 'GET')",
    "level ILIKE 'error'",
    "lower(level) = 'error'",
    "ok",
    "severity_number >= 17",
    "severity_text = 'ERROR'",
    "body LIKE '%ERROR%'",
    "json LIKE '%ERROR%'",
    "malformed",
    "NOT malformed",
    "\"log.iostream\" = 'stderr'",
    "\"log.file.name\" = 'a.log'",
    "\"log.file.name\" LIKE 'a.%'",
    "\"log.file.path\" <> msg",
    "timestamp > '2026-01-02T03:04:00Z'::timestamp",
    "observed_timestamp <= now()",
    "10 / (status::bigint - 404) < 1",
    "level = msg",
];

const ITEMS: &[&str] = &[
    "*",
    "level",
    "msg",
    "status",
    "http",
    "upper(msg) AS u",
    "status + 1 AS n",
    "http->'k' AS k",
    "10 / (status::bigint - 500) AS d",
    "body",
    "malformed",
    "timestamp",
    "severity_text",
    "\"log.file.path\" AS p",
    "\"log.iostream\" AS stream",
    "coalesce(ok, false) AS o",
];

/// Values as they may be written, with many ways to write the literals of the conditions.
const VALUES: &[&str] = &[
    r#""ERROR""#,
    r#""ERROR""#,
    r#""\u0045RROR""#,
    r#""ERR\u004fR""#,
    r#""an ERROR here""#,
    r#""error""#,
    r#""x/y""#,
    r#""x\/y""#,
    r#""x\u002fy""#,
    r#""say \"hi\"""#,
    r#""say \u0022hi\u0022""#,
    r#""a\\b""#,
    r#""a\u005cb and more""#,
    r#""tab\there""#,
    r#""tab\u0009here""#,
    "\"caf\u{e9}\"",
    r#""caf\u00e9""#,
    r#""GET /a""#,
    r#""50% off""#,
    r#""\ud83d""#,
    "\"ER\u{fffd}ROR\"",
    r#""bad \x escape ERROR""#,
    r#""""#,
    "404",
    r#""404""#,
    r#""40\u0034""#,
    "404.0",
    "4.04e2",
    "500",
    "4.5",
    "-1",
    "null",
    r#""null""#,
    "true",
    r#""true""#,
    "false",
    r#"{"k":"ERROR"}"#,
    r#"{"k":["ERROR",404]}"#,
    r#"{"k":404,"x":{"k":"ERROR"}}"#,
    r#"{"\u006b":"\u0045RROR"}"#,
    r#"["ERROR"]"#,
    r#"[ "ERROR" ]"#,
    "ERROR",
    "nul",
];

const KEYS: &[&str] = &[
    "level",
    "level",
    "msg",
    "msg",
    "status",
    "status",
    "http",
    "http",
    "ok",
    "ts",
    "other",
    "l\\u0065vel",
    "ERROR",
];

/// Records that are no objects, or not in UTF-8.
const ODD: &[&[u8]] = &[
    b"ERROR in plain text 404 GET",
    b"{\"level\":\"ERROR\",\"msg\":\"never closed",
    b"[\"ERROR\"]",
    b"{\"level\":\"ERROR\",\"msg\":\"\xff\xfe ERROR\"}",
    b"{\"level\":\"ER\xffROR\",\"msg\":\"ER\xffROR\"}",
    b"{\"msg\":\"GET \xc3\",\"level\":\"ERR\xf0\x9fOR\"}",
    b"{\"level\":\"ERROR\",\"msg\":\"GET \\path\",\"ok\":true}",
    b"{\"level\":\"ERROR\" \"msg\":\"x/y\",\"status\":500}",
    b"{\"msg\":\"x/y\",\"level\":\"ERROR\",}",
    b"{'level':'ERROR','msg':'ERROR'}",
    b"{\"status\":01,\"level\":\"ERROR\",\"unread\":tru}",
    b"{\"level\":null,\"severity\":\"ERROR\",\"msg\":null,\"body\":\"ERROR\"}",
    b"{\"status\":NaN,\"level\":\"ERROR\",\"msg\":\"x/y\"}",
    b"{}",
    b"",
];

fn line() -> impl Strategy<Value = Vec<u8>> {
    let member = (
        proptest::sample::select(KEYS),
        proptest::sample::select(VALUES),
    );
    let member = member.prop_map(|(key, value)| format!("\"{key}\":{value}"));
    let object = proptest::collection::vec(member, 0..6)
        .prop_map(|members| format!("{{{}}}", members.join(",")).into_bytes());
    let odd = proptest::sample::select(ODD).prop_map(<[u8]>::to_vec);
    prop_oneof![8 => object, 1 => odd]
}

fn condition() -> impl Strategy<Value = String> {
    let some = proptest::sample::select(CONDITIONS);
    (some.clone(), some, 0..6).prop_map(|(one, other, joined)| match joined {
        0 | 1 => one.to_owned(),
        2 | 3 => format!("({one}) AND {other}"),
        4 => format!("{one} OR ({other})"),
        _ => format!("NOT ({one}) AND {other}"),
    })
}

fn query() -> impl Strategy<Value = String> {
    let items = proptest::sample::subsequence(ITEMS, 1..5);
    let conditions = proptest::collection::vec(condition(), 1..3);
    (items, conditions).prop_map(|(items, conditions)| {
        let items = items.join(", ");
        let branch = |condition: String| format!("SELECT {items} FROM logs WHERE {condition}");
        let branches: Vec<String> = conditions.into_iter().map(branch).collect();
        branches.join(" UNION ALL ")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_phases_equal_one(
        sql in query(),
        batches in proptest::collection::vec(proptest::collection::vec(line(), 0..16), 1..3),
        cri in any::<bool>(),
    ) {
        agree(&sql, &batches, cri);
    }
}

#[test]
fn every_condition_over_every_value() {
    let mut lines: Vec<Vec<u8>> = ODD.iter().map(|line| line.to_vec()).collect();
    for value in VALUES {
        for key in ["level", "msg", "status", "http", "ok"] {
            lines.push(format!("{{\"x\":1,\"{key}\":{value},\"y\":2}}").into_bytes());
        }
    }
    for condition in CONDITIONS {
        let sql = format!("SELECT level, msg, status, body FROM logs WHERE {condition}");
        agree(&sql, &[lines.clone()], false);
    }
}

#[test]
fn broken_lines_are_counted_where_they_are_kept() {
    let check = |condition: &str, way: Way, expect: (usize, u64, u64)| {
        let plan = plan(&format!("SELECT body FROM logs WHERE {condition}"), true);
        let mut framed = framed(&plan, &[b"{\"a\":1}".to_vec(), b"{\"a\":".to_vec()], true);
        // A line without its head.
        let config = frame_config(&plan.config.inputs[0], plan.config.limits.replay);
        let line = b"no head\n";
        let base = framed.buffers[0].len() as u32;
        framed.buffers[0] = Bytes::from([&framed.buffers[0][..], line].concat());
        Framer::new(&config, 0, false).push(line, 0, base, &mut framed.frames);
        let transformed = Worker::new(&plan, 0).transform.run_as(way, &plan, &framed);
        let malformed = transformed.stats.malformed;
        assert_eq!((transformed.kept, malformed, transformed.broken), expect);
    };
    check("malformed", Way::OnePhase, (2, 2, 1));
    check("malformed", Way::TwoPhases, (2, 2, 1));
    check("body = '{\"a\":'", Way::OnePhase, (1, 2, 1));
    check("body = '{\"a\":'", Way::TwoPhases, (1, 1, 0));
    check("a = 1", Way::TwoPhases, (1, 0, 0));
    check("a = 2", Way::TwoPhases, (0, 0, 0));
}

#[test]
fn what_is_dropped_is_filtered_only() {
    let plan = plan(
        "SELECT msg, status + 1 AS n FROM logs WHERE level = 'ERROR'",
        false,
    );
    let lines: &[&[u8]] = &[
        b"no object",
        br#"{"level":"info","status":"x","msg":nul}"#,
        br#"{"level":"ERROR","status":"x","msg":nul}"#,
    ];
    let lines: Vec<Vec<u8>> = lines.iter().map(|line| line.to_vec()).collect();
    let framed = framed(&plan, &lines, false);
    let mut worker = Worker::new(&plan, 0);
    let transformed = worker.transform.run_as(Way::TwoPhases, &plan, &framed);
    let stats = transformed.stats;
    let counts = (stats.malformed, stats.type_mismatches, stats.bad_values);
    assert_eq!((transformed.kept, counts), (1, (1, 1, 1)));
    let requests = worker
        .encode(
            &plan,
            (&framed, &transformed.columns.unwrap(), &[]),
            usize::MAX,
            &mut Compressors::default(),
        )
        .unwrap();
    let records = requests.iter().flatten().map(|it| it.table.records.clone());
    assert_eq!(records.collect::<Vec<_>>(), [[2], [2]]);
    let none = worker.transform.run_as(
        Way::TwoPhases,
        &plan,
        &self::framed(&plan, &lines[..2], false),
    );
    assert_eq!(
        (none.kept, none.columns.is_none(), none.stats),
        (0, true, Default::default())
    );
}
