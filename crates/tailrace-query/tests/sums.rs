//! Sums: of integers beyond their type on the way, of distinct numbers, and of windows.
#![allow(clippy::unwrap_used)]

mod asked;

use std::fmt::Write;

use proptest::prelude::*;
use tailrace_query::Options;

use asked::ask;

/// The lines that a query gives with one partition and with two.
fn asked(dir: &std::path::Path, sql: &str) -> Vec<Result<String, String>> {
    let answers = [1, 2].map(|partitions| {
        let options = Options {
            partitions,
            ..Options::default()
        };
        ask(dir, sql, options).map_err(|error| error.message)
    });
    answers.to_vec()
}

fn number() -> impl Strategy<Value = Option<i64>> {
    let near = |edge: i64| (-3_i64..=3).prop_map(move |step| Some(edge.saturating_add(step)));
    prop_oneof![
        2 => near(0),
        1 => near(i64::MAX),
        1 => near(i64::MIN),
        1 => Just(None),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Each sum is exact, or the query ends.
    #[test]
    fn sums_of_integers_are_exact(rows in prop::collection::vec((0..3_u8, number()), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut lines = "g,x\n7,0\n".to_owned();
        for (group, number) in &rows {
            let number = number.map(|it| it.to_string()).unwrap_or_default();
            writeln!(lines, "{group},{number}").unwrap();
        }
        std::fs::write(dir.path().join("s.csv"), lines).unwrap();
        for distinct in ["", "DISTINCT "] {
            let sum = |group: u8| {
                let numbers = rows.iter().filter(|row| row.0 == group);
                let mut numbers: Vec<_> = numbers.filter_map(|row| row.1).map(i128::from).collect();
                if !distinct.is_empty() {
                    numbers.sort_unstable();
                    numbers.dedup();
                }
                (!numbers.is_empty()).then(|| numbers.iter().sum::<i128>())
            };
            let groups: Vec<_> = (0..3).filter(|group| rows.iter().any(|row| row.0 == *group)).collect();
            let fits = groups.iter().all(|group| sum(*group).is_none_or(|it| i64::try_from(it).is_ok()));
            let expected: String = groups.iter().map(|group| {
                let sum = sum(*group).map(|it| format!(",\"s\":{it}")).unwrap_or_default();
                format!("{{\"g\":{group}{sum}}}\n")
            }).collect();
            let sql = format!("SELECT g, sum({distinct}x) AS s FROM 'DIR/s.csv' WHERE g < 7 GROUP BY g ORDER BY g");
            for answer in asked(dir.path(), &sql) {
                match fits {
                    true => prop_assert_eq!(answer.as_ref(), Ok(&expected)),
                    false => prop_assert_eq!(answer, Err("a sum is beyond its type".to_owned())),
                }
            }
        }
    }

    /// Sums of a window are those of its values.
    #[test]
    fn sums_of_windows_are_those_of_their_values(
        values in prop::collection::vec(prop::option::of(prop_oneof![-9.0..9.0_f64, Just(1e300), Just(f64::INFINITY)]), 1..40),
        before in 0..5_usize,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut lines = "n,x\n0,0.5\n".to_owned();
        for (row, value) in values.iter().enumerate() {
            let value = value.map(|it| format!("{it:e}")).unwrap_or_default();
            writeln!(lines, "{},{value}", row + 1).unwrap();
        }
        std::fs::write(dir.path().join("s.csv"), lines).unwrap();
        let frame = format!("OVER (ORDER BY n ROWS BETWEEN {before} PRECEDING AND CURRENT ROW)");
        let sql = format!("SELECT (sum(x) {frame})::text AS s, (avg(x) {frame})::text AS a, (var_pop(x) {frame})::text AS v, (stddev(x) {frame})::text AS d FROM 'DIR/s.csv' WHERE n > 0 ORDER BY n");
        for answer in asked(dir.path(), &sql) {
            let answer = answer.unwrap();
            prop_assert_eq!(answer.lines().count(), values.len());
            for (row, line) in answer.lines().enumerate() {
                let window: Vec<_> = values[row.saturating_sub(before)..=row].iter().flatten().collect();
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let given = |name: &str| line[name].as_str().map(|it| it.parse::<f64>().unwrap());
                let sum: f64 = window.iter().copied().sum();
                let scale: f64 = window.iter().map(|it| it.abs()).sum();
                // Of the squares of distances from the mean.
                let mean = sum / window.len() as f64;
                let squares: f64 = window.iter().map(|it| (*it - mean) * (*it - mean)).sum();
                let is_spread = |name: &str, expected: Option<f64>| match (given(name), expected) {
                    (Some(given), Some(expected)) if expected.is_finite() => (given - expected).abs() <= 1e-9 * (1.0 + expected),
                    (Some(given), Some(_)) => !given.is_finite(),
                    (given, expected) => given.is_none() && expected.is_none(),
                };
                let count = window.len() as f64;
                let variance = (count > 0.0).then(|| squares / count);
                let deviation = (count > 1.0).then(|| (squares / (count - 1.0)).sqrt());
                prop_assert!(is_spread("v", variance), "{:?} {variance:?}", given("v"));
                prop_assert!(is_spread("d", deviation), "{:?} {deviation:?}", given("d"));
                let is_near = |given: f64, expected: f64| given == expected || (given - expected).abs() <= scale * 1e-14;
                match (given("s"), given("a")) {
                    (Some(s), Some(a)) => {
                        prop_assert!(!window.is_empty());
                        prop_assert!(is_near(s, sum), "{s} {sum}");
                        prop_assert!(is_near(a, sum / window.len() as f64), "{a} {sum}");
                    }
                    (s, a) => prop_assert!(window.is_empty() && s.is_none() && a.is_none(), "{s:?} {a:?}"),
                }
            }
        }
    }
}

/// A window whose sum is beyond its type ends with that error.
#[test]
fn a_window_that_fails_is_asked_once() {
    let dir = tempfile::tempdir().unwrap();
    let rows = "n,x\n1,1\n2,2\n3,9223372036854775807\n";
    std::fs::write(dir.path().join("w.csv"), rows).unwrap();
    let sql = "SELECT n, sum(x) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) AS s FROM 'DIR/w.csv'";
    for answer in asked(dir.path(), sql) {
        let message = answer.unwrap_err();
        assert!(message.contains("beyond its type"), "{message}");
    }
}
