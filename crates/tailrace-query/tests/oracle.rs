//! Results over files, of lines and of Parquet, beside those of DataFusion over a table in memory that arrow-json read, and
//! serde_json where a column has values of several kinds.
#![allow(clippy::unwrap_used)]

mod parquet;

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use serde_json::{Map, Value, json};
use tailrace_query::{Engine, Input, Options};

const ROWS: u64 = 500;

/// Queries over the columns of [`rows`].
const QUERIES: &[&str] = &[
    "SELECT * FROM logs",
    "SELECT level FROM logs",
    "SELECT count(*) FROM logs",
    "SELECT count(*), count(level), count(status), count(ok) FROM logs",
    "SELECT level, count(*) AS n FROM logs GROUP BY level ORDER BY n DESC, level",
    "SELECT level, avg(duration_ms), min(status), max(status) FROM logs GROUP BY level",
    "SELECT level, ok, sum(status) FROM logs GROUP BY level, ok",
    "SELECT * FROM logs WHERE level = 'ERROR'",
    "SELECT * FROM logs WHERE 'ERROR' = level OR level = 'WARN'",
    "SELECT * FROM logs WHERE level IN ('ERROR', 'FATAL')",
    "SELECT * FROM logs WHERE level <> 'ERROR'",
    "SELECT * FROM logs WHERE level IS NULL",
    "SELECT * FROM logs WHERE level IS NOT NULL AND status >= 500",
    "SELECT * FROM logs WHERE NOT (status >= 500)",
    "SELECT * FROM logs WHERE status BETWEEN 200 AND 299",
    "SELECT * FROM logs WHERE status IN (200, 404)",
    "SELECT * FROM logs WHERE duration_ms > 12.5 AND ok",
    "SELECT * FROM logs WHERE ok = false",
    "SELECT * FROM logs WHERE ok IS NOT TRUE",
    "SELECT * FROM logs WHERE \"user\" LIKE '%ö%'",
    "SELECT * FROM logs WHERE \"user\" LIKE 'a%' AND \"user\" NOT LIKE '%1'",
    "SELECT * FROM logs WHERE \"user\" ILIKE 'ANNA%'",
    "SELECT * FROM logs WHERE \"user\" ~ '^[a-c].*[0-4]$'",
    "SELECT * FROM logs WHERE \"user\" = 'quote \"1\"'",
    "SELECT * FROM logs WHERE \"user\" = 'tab\t2'",
    "SELECT * FROM logs WHERE mixed = '7'",
    "SELECT * FROM logs WHERE mixed = 'true'",
    "SELECT mixed, count(*) FROM logs GROUP BY mixed",
    "SELECT big FROM logs WHERE big > 4611686018427387000",
    "SELECT sum(big % 1000) FROM logs",
    "SELECT CASE WHEN status >= 500 THEN 'bad' WHEN status >= 400 THEN 'poor' ELSE 'good' END AS c, count(*) FROM logs GROUP BY c",
    "SELECT coalesce(level, 'none') AS l, count(*) FROM logs GROUP BY l",
    "SELECT CAST(status AS VARCHAR) || '/' || level FROM logs",
    "SELECT CAST(ts AS TIMESTAMP) AS t FROM logs WHERE CAST(ts AS TIMESTAMP) > '2026-01-02T03:05:00'",
    "SELECT date_trunc('minute', CAST(ts AS TIMESTAMP)) AS m, count(*) FROM logs GROUP BY m",
    "SELECT date_part('second', CAST(ts AS TIMESTAMP)) AS s, count(*) FROM logs GROUP BY s",
    "SELECT DISTINCT level, ok FROM logs",
    "SELECT count(DISTINCT \"user\") FROM logs",
    "SELECT level, status FROM logs ORDER BY status DESC, level LIMIT 7",
    "SELECT n FROM logs ORDER BY n LIMIT 5 OFFSET 10",
    "SELECT level, n, row_number() OVER (PARTITION BY level ORDER BY n) AS r FROM logs WHERE status = 500",
    "SELECT n, sum(status) OVER (ORDER BY n ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM logs",
    "SELECT n, lag(status) OVER (ORDER BY n) AS before FROM logs WHERE n < 20",
    "WITH e AS (SELECT * FROM logs WHERE level = 'ERROR') SELECT status, count(*) FROM e GROUP BY status",
    "SELECT a.n, b.n FROM logs a JOIN logs b ON a.n = b.n + 1 WHERE a.status = 500 AND b.level = 'INFO'",
    "SELECT a.n FROM logs a LEFT JOIN logs b ON a.status = b.n WHERE b.n IS NULL AND a.n < 50",
    "SELECT n FROM logs WHERE status = (SELECT max(status) FROM logs)",
    "SELECT n FROM logs WHERE n IN (SELECT status FROM logs)",
    "SELECT level FROM logs GROUP BY level HAVING count(*) > 100",
    "SELECT n FROM logs WHERE status = 200 UNION ALL SELECT status FROM logs WHERE n < 5",
    "SELECT median(status), median(duration_ms) FROM logs",
    "SELECT stddev(duration_ms) > 0, round(corr(n, n), 6) FROM logs",
    "SELECT upper(\"user\"), length(\"user\"), substr(\"user\", 2, 3) FROM logs",
    "SELECT json_get_int(nested, 'a') AS a, json_get_str(nested, 'b', 'c') AS c FROM logs",
    "SELECT n FROM logs WHERE nested = '{\"a\":3,\"b\":{\"c\":\"v0\"}}'",
    "SELECT n FROM logs WHERE \"user\" IN ('quote \"1\"', 'tab\t2', '😀', 'Zoë ö', '')",
    "SELECT n FROM logs WHERE \"user\" LIKE '%\"_\"' OR mixed = '1.5' OR mixed LIKE 'tr%'",
    "SELECT nested FROM logs WHERE nested LIKE '%\"a\":3%'",
    "SELECT n FROM logs WHERE body IS NULL AND n < 9",
    "SELECT n FROM logs WHERE (ok IS DISTINCT FROM true) AND n < 9",
    "SELECT n FROM logs WHERE (nested->>'a') = '3' AND n < 99",
    "SELECT body FROM logs WHERE body IS NOT NULL",
    "SELECT 1 FROM logs WHERE n < 3",
    "SELECT n FROM logs WHERE 1 = 0",
    "SELECT array_agg(n ORDER BY n) FROM logs WHERE n < 6",
];

/// The rows; `None` stands for a line that is no JSON.
fn rows() -> Vec<Option<Map<String, Value>>> {
    let row = |n: u64| {
        if n % 97 == 13 {
            return None;
        }
        let mut row = Map::new();
        let mut put = |name: &str, value: Value| {
            row.insert(name.to_owned(), value);
        };
        put("n", json!(n));
        match n % 11 {
            0 => {}
            1 => put("level", Value::Null),
            other => put(
                "level",
                json!(["INFO", "INFO", "WARN", "ERROR"][other as usize % 4]),
            ),
        }
        if !n.is_multiple_of(7) {
            put("status", json!([200, 201, 404, 500, 503][n as usize % 5]));
        }
        put(
            "duration_ms",
            if n.is_multiple_of(3) {
                json!(n % 40)
            } else {
                json!(n as f64 / 8.0)
            },
        );
        if n % 5 != 4 {
            put("ok", json!(n.is_multiple_of(2)));
        }
        let users = [
            "anna",
            "bob",
            "Zoë ö",
            "quote \"1\"",
            "tab\t2",
            "a1",
            "😀",
            "",
        ];
        put("user", json!(users[n as usize * 3 % 8]));
        put(
            "mixed",
            [json!("x"), json!(7), json!(true), json!(1.5)][n as usize % 4].clone(),
        );
        put("big", json!((1_u64 << 62) - n * 3));
        put(
            "nested",
            json!({"a": n % 9, "b": {"c": format!("v{}", n % 4)}}),
        );
        put(
            "ts",
            json!(format!("2026-01-02T03:{:02}:{:02}Z", n / 60, n % 60)),
        );
        Some(row)
    };
    (0..ROWS).map(row).collect()
}

const BROKEN: &str = "{\"n\": no JSON";

fn lines(rows: &[Option<Map<String, Value>>]) -> String {
    rows.iter().fold(String::new(), |mut text, row| {
        match row {
            Some(row) => writeln!(text, "{}", Value::Object(row.clone())).unwrap(),
            None => writeln!(text, "{BROKEN}").unwrap(),
        }
        text
    })
}

/// The table that the lines are. Its columns of one kind of values are those of arrow-json.
fn expected(rows: &[Option<Map<String, Value>>]) -> RecordBatch {
    let plain = [
        ("big", DataType::Int64),
        ("duration_ms", DataType::Float64),
        ("n", DataType::Int64),
        ("ok", DataType::Boolean),
        ("ts", DataType::Utf8View),
        ("user", DataType::Utf8View),
        ("level", DataType::Utf8View),
        ("status", DataType::Int64),
    ];
    let fields = plain.map(|(name, ty)| Field::new(name, ty, true));
    let text = rows.iter().fold(String::new(), |mut text, row| {
        // What is no JSON has no columns.
        let row = row.clone().unwrap_or_default();
        writeln!(text, "{}", Value::Object(row)).unwrap();
        text
    });
    let reader = arrow_json::ReaderBuilder::new(Arc::new(Schema::new(fields.to_vec())));
    let mut reader = reader
        .with_batch_size(rows.len())
        .build(text.as_bytes())
        .unwrap();
    let batch = reader.next().unwrap().unwrap();
    let mixed = |name: &'static str| -> ArrayRef {
        let values = rows.iter().map(|row| row.as_ref()?.get(name));
        let text = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        Arc::new(
            values
                .map(|value| value.map(text))
                .collect::<StringViewArray>(),
        )
    };
    let body = rows.iter().map(|row| row.is_none().then_some(BROKEN));
    let body: ArrayRef = Arc::new(body.collect::<StringViewArray>());
    let others = [
        ("body", body),
        ("mixed", mixed("mixed")),
        ("nested", mixed("nested")),
    ];
    let others = others.map(|(name, column)| (name.to_owned(), column, true));
    let plain = batch
        .schema()
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| (field.name().clone(), Arc::clone(column), true))
        .collect::<Vec<_>>();
    RecordBatch::try_from_iter_with_nullable(others.into_iter().chain(plain)).unwrap()
}

/// The rows of batches as JSON, sorted.
fn sorted(batches: &[RecordBatch]) -> Vec<String> {
    let rows = batches.iter().flat_map(|batch| {
        let builder = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, arrow_json::writer::LineDelimited>(Vec::new());
        writer.write(batch).unwrap();
        writer.finish().unwrap();
        let text = String::from_utf8(writer.into_inner()).unwrap();
        // The keys of a value sorted: columns of the star may come in another order.
        let rows = text
            .lines()
            .map(|row| serde_json::from_str::<Value>(row).unwrap().to_string());
        rows.collect::<Vec<_>>()
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable();
    rows
}

/// Batches whose computed columns are called as those of others in the same place: DataFusion names tables and types in them.
fn with_names_of(others: &[RecordBatch], batches: &[RecordBatch]) -> Vec<RecordBatch> {
    let Some(others) = others.first().map(RecordBatch::schema) else {
        return batches.to_vec();
    };
    let renamed = |batch: &RecordBatch| {
        assert_eq!(batch.num_columns(), others.fields().len());
        let columns = batch.schema();
        let columns = columns.fields().iter().zip(others.fields());
        let columns = columns.map(|(field, other)| match others.index_of(field.name()) {
            Ok(_) => field.name().clone(),
            Err(_) => other.name().clone(),
        });
        let columns = columns.zip(batch.columns().iter().cloned());
        let columns = columns.map(|(name, column)| (name, column, true));
        match batch.num_columns() {
            0 => batch.clone(),
            _ => RecordBatch::try_from_iter_with_nullable(columns).unwrap(),
        }
    };
    batches.iter().map(renamed).collect()
}

async fn answer(sql: &str, input: &Input, partitions: usize) -> Vec<RecordBatch> {
    let options = Options {
        partitions,
        chunk_bytes: 4000,
        split_bytes_min: 1,
        ..Options::default()
    };
    let engine = Engine::new(options).unwrap();
    let plan = engine.plan(sql, std::slice::from_ref(input)).await;
    let plan = plan.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut batches = Vec::new();
    let ran = plan.run(|batch| {
        batches.push(batch);
        true
    });
    ran.await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    batches
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_a_table_in_memory() {
    let rows = rows();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.ndjson");
    std::fs::write(&path, lines(&rows)).unwrap();
    let (lines, parquet) = (Input::File(path), dir.path().join("rows.parquet"));
    parquet::write("SELECT * FROM logs", std::slice::from_ref(&lines), &parquet).await;
    let parquet = Input::File(parquet);
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let mut oracle = SessionContext::new_with_config(config);
    datafusion_functions_json::register_all(&mut oracle).unwrap();
    let batch = expected(&rows);
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    oracle.register_table("logs", Arc::new(table)).unwrap();
    for sql in QUERIES {
        let expected = oracle
            .sql(sql)
            .await
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let expected = expected.collect().await.unwrap();
        for (input, partitions) in [(&lines, 1), (&lines, 3), (&parquet, 1), (&parquet, 3)] {
            let found = answer(sql, input, partitions).await;
            let expected = with_names_of(&found, &expected);
            assert_eq!(
                sorted(&found),
                sorted(&expected),
                "{sql}, {}, {partitions} partitions",
                input.name()
            );
        }
    }
}
