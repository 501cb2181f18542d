//! Bounds on time and severity hold for every log table of a query, and leave out files that are too old.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tailrace_query::{Bounds, Counts, Engine, Error, Input, Options, Type};

fn ask(sql: &str, inputs: &[Input], bounds: Bounds) -> Result<(String, Counts), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = Options {
            bounds,
            split_bytes_min: 1,
            partitions: 3,
            ..Options::default()
        };
        let engine = Engine::new(options).unwrap();
        let mut out = arrow_json::LineDelimitedWriter::new(Vec::new());
        let plan = engine.plan(sql, inputs).await?;
        plan.run(|batch| out.write(&batch).is_ok()).await?;
        out.finish().unwrap();
        let rows = String::from_utf8(out.into_inner()).unwrap();
        Ok((rows, engine.notes().counts()))
    })
}

const MINUTE: i64 = 60_000_000_000;

fn since(minute: i64) -> Bounds {
    Bounds {
        since_ns: Some(minute * MINUTE),
        ..Bounds::default()
    }
}

/// 100 records a minute apart from the epoch on, of changing levels; every tenth without a time, every seventh without
/// a level.
fn minutes() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.log");
    let line = |n: u32| {
        let time = format!("\"time\":\"1970-01-01T{:02}:{:02}:00Z\",", n / 60, n % 60);
        let level = ["debug", "INFO", "Warning", "err", "fatal"][n as usize % 5];
        let level = format!("\"level\":\"{level}\",");
        let time = if n.is_multiple_of(10) {
            ""
        } else {
            time.as_str()
        };
        let level = if n.is_multiple_of(7) {
            "\"level\":null,"
        } else {
            level.as_str()
        };
        format!("{{{time}{level}\"n\":{n}}}\n")
    };
    std::fs::write(&path, (0..100).map(line).collect::<String>()).unwrap();
    (dir, path)
}

#[test]
fn bounds_hold_for_every_table_and_every_form_of_query() {
    let (_dir, path) = minutes();
    let input = [Input::File(path.clone())];
    let span = Bounds {
        until_ns: Some(95 * MINUTE),
        ..since(90)
    };
    let count = |sql: &str, bounds| ask(sql, &input, bounds).unwrap().0;
    // 90 has no time, 95 is the first moment behind the span.
    let all = "{\"n\":91}\n{\"n\":92}\n{\"n\":93}\n{\"n\":94}\n";
    assert_eq!(count("SELECT n FROM logs", span), all);
    assert_eq!(
        count("SELECT n FROM (SELECT * FROM logs) WHERE n > 5", span),
        all
    );
    assert_eq!(count("SELECT count(*) AS n FROM logs", span), "{\"n\":4}\n");
    assert_eq!(
        count(
            "SELECT max(n) AS m, count(*) AS n FROM logs WHERE n <> 94",
            span
        ),
        "{\"m\":93,\"n\":3}\n"
    );
    let own = format!("SELECT n FROM '{}' ORDER BY n DESC LIMIT 1", path.display());
    assert_eq!(count(&own, span), "{\"n\":94}\n");
    let joined = format!(
        "SELECT count(*) AS n, min(a.n) AS a FROM logs a LEFT JOIN '{}' b ON a.n = b.n + 1 WHERE b.n IS NOT NULL",
        path.display()
    );
    assert_eq!(count(&joined, span), "{\"n\":3,\"a\":92}\n");
    // The columns of the bounds are none of the table's, unless they are named.
    let (rows, _) = ask("SELECT * FROM logs WHERE n = 92", &input, span).unwrap();
    assert!(
        rows.contains("\"level\"") && !rows.contains("severity_number"),
        "{rows}"
    );
    let named = "SELECT timestamp > '1970-01-01T01:33:00Z' AS late, severity_number AS s FROM logs";
    assert_eq!(
        count(named, span),
        "{\"late\":false}\n{\"late\":false,\"s\":13}\n{\"late\":false,\"s\":17}\n{\"late\":true,\"s\":21}\n"
    );
    // A condition that a search for texts can begin with.
    assert_eq!(
        count("SELECT n FROM logs WHERE level = 'err'", span),
        "{\"n\":93}\n"
    );
}

#[test]
fn severities_are_those_of_any_spelling_and_what_lacks_one_is_counted() {
    let (_dir, path) = minutes();
    let input = [Input::File(path)];
    let severe = Bounds {
        severity_min: Some(17),
        ..Bounds::default()
    };
    let sql = "SELECT count(*) AS n FROM logs";
    let (rows, counts) = ask(sql, &input, severe).unwrap();
    // 40 of 100 are `err` or `fatal`, of which each seventh lacks it.
    assert_eq!(rows, "{\"n\":34}\n");
    assert_eq!((counts.unleveled, counts.untimed, counts.kept), (15, 0, 34));
    let both = Bounds { ..since(0) };
    let both = Bounds {
        severity_min: Some(17),
        ..both
    };
    let (_, counts) = ask(sql, &input, both).unwrap();
    // One that lacks both is counted once.
    assert_eq!((counts.untimed, counts.unleveled), (2, 13));
    // Of records that the query does not want none is counted.
    let (_, counts) = ask("SELECT n FROM logs WHERE n = 70", &input, both).unwrap();
    assert_eq!((counts.untimed, counts.unleveled, counts.kept), (1, 0, 0));
}

#[test]
fn the_time_of_the_container_runtime_is_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("0.log");
    let text =
        "1970-01-01T00:01:00Z stdout F one\n1970-01-01T00:02:00Z stderr F {\"level\":\"error\"}\n";
    std::fs::write(&path, text).unwrap();
    let input = [Input::File(path)];
    let (rows, counts) = ask("SELECT level FROM logs", &input, since(2)).unwrap();
    assert_eq!(
        (rows.as_str(), counts.untimed),
        ("{\"level\":\"error\"}\n", 0)
    );
}

#[test]
fn files_too_old_are_not_read_and_their_columns_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let now = SystemTime::now();
    let file = |name: &str, minutes_old: u64, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let modified = now - Duration::from_secs(60 * minutes_old);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(modified).unwrap();
        Input::File(path)
    };
    // As if somebody had set its time back: it is left out for that alone.
    let line = |n: u32| format!("{{\"ts\":\"2100-01-01T00:00:00Z\",\"old{n}\":{n}}}\n");
    let mut inputs: Vec<_> = (0..40)
        .map(|n| file(&n.to_string(), 71, &line(n)))
        .collect();
    let since_ns = now.duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64 - 60 * MINUTE;
    let bounds = Bounds {
        since_ns: Some(since_ns),
        ..Bounds::default()
    };
    let none = ask("SELECT old0 FROM logs", &inputs, bounds).unwrap();
    assert_eq!((none.0.as_str(), none.1.pruned, none.1.bytes), ("", 40, 0));
    // Within the allowance for clocks, and newer.
    inputs.push(file(
        "skewed",
        69,
        "{\"ts\":\"2100-01-01T00:00:00Z\",\"new\":1}\n",
    ));
    inputs.push(file(
        "new",
        0,
        "{\"ts\":\"2100-01-01T00:00:00Z\",\"new\":2}\n{\"new\":3}\n",
    ));
    let (rows, counts) = ask("SELECT new, old0 FROM logs", &inputs, bounds).unwrap();
    assert_eq!(rows, "{\"new\":1}\n{\"new\":2}\n");
    assert_eq!((counts.pruned, counts.files, counts.untimed), (40, 2, 1));
    // Without `since` nothing is left out for its age.
    let until = Bounds {
        until_ns: Some(i64::MAX),
        ..Bounds::default()
    };
    let (_, counts) = ask("SELECT old0 FROM logs", &inputs, until).unwrap();
    assert_eq!((counts.pruned, counts.files), (0, 42));
}

#[test]
fn what_is_outside_of_the_bounds_cannot_end_a_query() {
    let (_dir, path) = minutes();
    let input = [Input::File(path)];
    // A division by zero at 1:00, and one where there is no time.
    let sql = "SELECT n FROM logs WHERE 10 / (n - 60) > 0 AND n <> 70";
    assert_eq!(ask(sql, &input, since(98)).unwrap().0, "");
    let sql = "SELECT n FROM logs WHERE 10 / (n - 61) >= 0";
    assert_eq!(ask(sql, &input, since(99)).unwrap().0, "{\"n\":99}\n");
    assert!(ask(sql, &input, since(0)).is_err());
}

#[test]
fn a_reserved_column_that_is_named_stays_what_it_is() {
    let (_dir, path) = minutes();
    let engine = Engine::new(Options {
        columns: vec![
            ("timestamp".to_owned(), Type::Timestamp),
            ("severity_number".to_owned(), Type::Int64),
        ],
        bounds: Bounds {
            severity_min: Some(17),
            ..since(94)
        },
        ..Options::default()
    })
    .unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let sql = "SELECT severity_number AS s FROM logs WHERE n IN (94, 99)";
    let mut rows = 0;
    runtime.block_on(async {
        let plan = engine.plan(sql, &[Input::File(path)]).await.unwrap();
        plan.run(|batch| {
            rows += batch.num_rows();
            true
        })
        .await
        .unwrap();
    });
    assert_eq!(rows, 2);
}

#[test]
fn a_query_without_log_files_refuses_bounds() {
    let error = ask("SELECT 1 AS n", &[], since(1)).unwrap_err();
    assert!(
        error.is_usage && error.message.contains("--since"),
        "{error}"
    );
    assert_eq!(
        ask("SELECT 1 AS n", &[], Bounds::default()).unwrap().0,
        "{\"n\":1}\n"
    );
}
