//! Queries over lines, and the rows that come out.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::TimestampNanosecondType;

use super::data::{OBSERVED_NS, batch, compile, rows, run};
use crate::Evaluator;

const LINES: &[&str] = &[
    r#"{"status":200,"msg":"GET /a","user":{"name":"ann","roles":["x","y"]},"tags":"a,b","ts":"2026-01-02T03:00:00Z","ok":true,"took":1.5}"#,
    r#"{"status":"404","msg":"GET /b","tags":"","ts":"2026-01-02T02:00:00Z","ok":false,"took":"7"}"#,
    r#"{"status":null,"msg":"boom","user":"bob","ok":"yes","took":[1]}"#,
    r#"{"status":500,"msg":"GET /c","tags":"c","took":12}"#,
];

const QUERIES: &[&str] = &[
    "SELECT status, msg FROM logs",
    "SELECT status FROM logs WHERE status >= 400",
    "SELECT status FROM logs WHERE status = '404'",
    "SELECT msg, status + 1 AS next FROM logs WHERE msg LIKE 'GET%'",
    "SELECT msg FROM logs WHERE ok",
    "SELECT msg FROM logs WHERE NOT ok",
    "SELECT user->>'name' AS n, user->'roles' AS r, user->'roles'->>1 AS second FROM logs WHERE user IS NOT NULL",
    "SELECT upper(msg) AS m FROM logs WHERE took > 1",
    "SELECT msg FROM logs WHERE ts > now() - interval '1 hour'",
    "SELECT now() AS n, current_date AS d, current_time AS t, current_timestamp AS c, today() AS e FROM logs WHERE status = 200",
    "SELECT 1 / (status - 200) AS f, cast(1 as bigint) / (status::bigint - 200) AS i FROM logs",
    "SELECT msg FROM logs WHERE 10 / (status::bigint - 200) < 1",
    "SELECT substr(msg, 6)::bigint AS x, length(msg) AS y FROM logs",
    "SELECT msg, unnest(string_to_array(tags, ',')) AS tag FROM logs",
    "SELECT unnest(json_get_array(user, 'roles')) AS role, msg FROM logs WHERE user IS NOT NULL",
    "SELECT upper(unnest(string_to_array(tags, ','))) AS t, length(msg) AS n FROM logs WHERE status > 100",
    "SELECT msg, unnest(string_to_array(tags, ',')) AS tag, 10 / (status::bigint - 200) AS x FROM logs",
    "SELECT msg FROM logs WHERE status = 500 UNION ALL SELECT tags FROM logs WHERE tags IS NOT NULL",
    "SELECT 1 AS x FROM logs WHERE ok UNION ALL SELECT 1.5 AS y FROM logs UNION ALL SELECT status FROM logs",
    "SELECT now() AS t FROM logs WHERE ok UNION ALL SELECT '2026-01-01T00:00:00Z' AS t FROM logs WHERE ok",
    "SELECT coalesce(status, 0) AS s, CASE WHEN took > 5 THEN 'slow' ELSE 'fast' END AS c, nullif(tags, '') AS t FROM logs",
    "SELECT user->>substr('xname', 2, length(msg) - 2) AS x, user->lower('ROLES') AS y, user->>lower('NAME') = 'ann' AS z FROM logs",
    "SELECT NULL AS x, true AS y, 'a' AS z FROM logs WHERE status = 500",
    "SELECT * EXCEPT (a, b), status::int + 1 AS status FROM logs WHERE false",
    "SELECT body, timestamp, severity_number, malformed, json FROM logs",
    "SELECT json_get(user, 'roles') AS a, json_length(user) AS b, json_get_str(user, 'name') AS c, json_contains(user, 'name') AS d FROM logs",
    "SELECT random() < 2 AS r, uuid() <> '' AS u FROM logs WHERE random() >= 0",
];

#[test]
fn results() {
    let mut text = String::new();
    for sql in QUERIES {
        text.push_str(&format!("{sql}\n"));
        for row in run(sql, LINES) {
            text.push_str(&format!("    {row}\n"));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn now_is_the_observed_time_of_each_batch() {
    let query = compile("SELECT now() AS n, current_date AS d FROM logs WHERE t < now()");
    let batch = batch(&query, &[r#"{"t":"2026-01-02T00:00:00Z"}"#]);
    let mut evaluator = query.evaluator();
    let mut other = query.evaluator();
    let day = 86_400_000_000_000;
    let now = |evaluator: &mut Evaluator, at| {
        rows(&query, &batch, &evaluator.evaluate(&batch, at)).join("")
    };
    assert_eq!(now(&mut evaluator, OBSERVED_NS - day), "");
    assert_eq!(
        now(&mut other, OBSERVED_NS + day),
        "0: n=2026-01-03T03:04:05Z d=2026-01-03"
    );
    assert_eq!(
        now(&mut evaluator, OBSERVED_NS),
        "0: n=2026-01-02T03:04:05Z d=2026-01-02"
    );
    assert_eq!(now(&mut other, -1), "");
    let mut general = Evaluator::all_general(&query);
    assert_eq!(
        now(&mut general, OBSERVED_NS),
        "0: n=2026-01-02T03:04:05Z d=2026-01-02"
    );
    assert_eq!(
        now(&mut general, OBSERVED_NS + day),
        "0: n=2026-01-03T03:04:05Z d=2026-01-03"
    );
    assert_eq!(now(&mut general, -1), "");
}

#[test]
fn one_row_in_a_hundred_fails_and_the_rest_is_clean() {
    let lines: Vec<String> = (0..1000)
        .map(|row| {
            if row % 100 == 7 {
                r#"{"s":"n=x"}"#.to_owned()
            } else {
                format!(r#"{{"s":"n={row}"}}"#)
            }
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let query = compile("SELECT s, substr(s, 3)::bigint AS n FROM logs");
    let batch = batch(&query, &lines);
    let evaluated = query.evaluator().evaluate(&batch, 0);
    assert_eq!(evaluated.failed_rows, 10);
    let rows = rows(&query, &batch, &evaluated);
    for (row, text) in rows.iter().enumerate() {
        let expected = if row % 100 == 7 {
            format!("{row}: s=n=x n=NULL")
        } else {
            format!("{row}: s=n={row} n={row}")
        };
        assert_eq!(*text, expected);
    }
}

#[test]
fn a_zone_of_another_name_is_utc_too() {
    let query = compile("SELECT t < now() AS past FROM logs");
    let given = batch(&query, &[r#"{"t":"2026-01-02T00:00:00Z"}"#]);
    let renamed = given
        .column(0)
        .as_primitive::<TimestampNanosecondType>()
        .clone()
        .with_timezone("+00:00");
    let renamed = RecordBatch::try_from_iter([("t", Arc::new(renamed) as ArrayRef)]).unwrap();
    let evaluated = query.evaluator().evaluate(&renamed, OBSERVED_NS);
    assert_eq!(rows(&query, &renamed, &evaluated), ["0: past=true"]);
}

#[test]
fn an_evaluator_can_be_sent_and_dropped_in_a_runtime() {
    fn sendable<T: Send + 'static>(value: T) -> T {
        value
    }
    let query = compile("SELECT unnest(string_to_array(s, ',')) AS x FROM logs");
    let evaluator = sendable(query.evaluator());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async { drop(evaluator) });
}
