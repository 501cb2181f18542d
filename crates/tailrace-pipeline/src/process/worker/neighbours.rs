//! However wide other records are, what a LogRecord's fields are made of has columns of its own: wide lines anywhere, one
//! worker and several.

use arrow::array::Array;

use super::*;

/// Of the usual names, of an output's `fields:`, of a reserved column.
const NORMAL: &str = r#"{"ts":"2026-01-02T03:04:05Z","level":"ERROR","text":"x","msg":"m","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","trace_flags":"01","event.name":"e","observed_timestamp":"o"}"#;

const FIELDS_CONFIG: &str = "pipelines: {a: {input: {type: stdin, format: json}, outputs: [\
    {name: o, type: otlp, compression: none}, \
    {name: f, type: otlp, compression: none, fields: {body: text}}]}}";

fn fields_plan(sql: &str) -> PipelinePlan {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tailrace.yaml");
    std::fs::write(&path, FIELDS_CONFIG).unwrap();
    let loaded = config::load(std::slice::from_ref(&path), &|_| None).unwrap();
    let mut pipeline = loaded.pipelines["a"].clone();
    sql.clone_into(&mut pipeline.transform.text);
    PipelinePlan::prepare("a", &pipeline, &[]).unwrap()
}

/// A line of 600 keys that no other has.
fn wide(number: usize) -> Vec<u8> {
    let members = (0..600).map(|key| format!("\"k{number}_{key}\":1"));
    format!("{{{}}}", members.collect::<Vec<_>>().join(",")).into_bytes()
}

/// The keys of the normal line that have no column in the row of a record.
fn unplaced(columns: &Columns, plan: &PipelinePlan, row: usize) -> Vec<String> {
    let failed = FailedValues::new(plan, columns);
    let parts = parts(plan, columns, &failed);
    let has_value = |key: &str| {
        parts[0].columns.iter().any(|column| {
            let is_absent = column.kinds.is_some_and(|kinds| kinds.is_null(row));
            column.name == key && !is_absent && column.values.is_valid(row)
        })
    };
    let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(NORMAL).unwrap();
    let keys = members.into_iter().map(|(key, _)| key);
    keys.filter(|key| !has_value(key)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_wide_line_takes_no_field_from_another(
        batches in proptest::collection::vec(
            (0..3_usize, proptest::collection::vec(proptest::bool::weighted(0.3), 1..8)),
            1..6,
        ),
        workers in 1..4_usize,
        sql in proptest::sample::select(&["SELECT * FROM logs", "SELECT * FROM logs WHERE level = 'ERROR' OR true"][..]),
    ) {
        let plan = fields_plan(sql);
        let mut workers: Vec<Worker> = (0..workers).map(|_| Worker::new(&plan, 0)).collect();
        let mut count = 0;
        for (worker, are_wide) in &batches {
            let line = |is_wide: &bool| {
                count += 1;
                if *is_wide { wide(count) } else { NORMAL.as_bytes().to_vec() }
            };
            let lines: Vec<Vec<u8>> = are_wide.iter().map(line).collect();
            let framed = framed(&plan, &lines, false);
            let which = worker % workers.len();
            let transformed = workers[which].transform.run_as(Way::OnePhase, &plan, &framed);
            let columns = transformed.columns.unwrap();
            for row in (0..lines.len()).filter(|row| !are_wide[*row]) {
                prop_assert_eq!(unplaced(&columns, &plan, row), Vec::<String>::new());
            }
        }
    }
}
