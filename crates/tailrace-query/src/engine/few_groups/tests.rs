//! Few groups and many, beside DataFusion's own step.

use arrow::array::{
    ArrayRef, Date32Array, Float64Array, Int8Array, StringViewArray, TimestampNanosecondArray,
    UInt16Array, UInt32Array, UInt64Array,
};
use arrow::util::pretty::pretty_format_batches;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::median::median_udaf;
use datafusion::functions_aggregate::min_max::max_udaf;
use datafusion::logical_expr::{AggregateUDF, Operator};
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, lit};
use proptest::prelude::*;

use super::numbers::NUMBERS_MAX;
use super::table::{self, Table};
use super::*;
use crate::aggregates::mended;
use crate::engine::testing::{in_batches, run};

type Row = (Option<String>, Option<i64>, i8, Option<i64>);

fn batch(rows: &[Row]) -> RecordBatch {
    let text: StringViewArray = rows.iter().map(|row| row.0.as_deref()).collect();
    let time: TimestampNanosecondArray = rows.iter().map(|row| row.1).collect();
    let number: Int8Array = rows.iter().map(|row| Some(row.2)).collect();
    let value: Float64Array = rows
        .iter()
        .map(|row| row.3.map(|value| value as f64))
        .collect();
    let date: Date32Array = rows.iter().map(|row| row.3.map(|day| day as i32)).collect();
    let port: UInt16Array = rows.iter().map(|row| Some(row.2 as u16)).collect();
    let id: UInt64Array = rows.iter().map(|row| row.1.map(|id| id as u64)).collect();
    let columns: [(_, ArrayRef, _); 7] = [
        ("date", Arc::new(date), true),
        ("port", Arc::new(port), true),
        ("id", Arc::new(id), true),
        ("text", Arc::new(text), true),
        ("time", Arc::new(time.with_timezone("UTC")), true),
        ("number", Arc::new(number), true),
        ("value", Arc::new(value), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn column(rows: &RecordBatch, name: &str) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new_with_schema(name, &rows.schema()).unwrap())
}

/// A step that groups by these columns: the numbers of rows, of values over 0, the largest value and the average.
fn step(
    all: &RecordBatch,
    keys: &[&str],
    aggregates: &[(Arc<AggregateUDF>, bool)],
    mode: AggregateMode,
    rows: Arc<dyn ExecutionPlan>,
) -> AggregateExec {
    let schema = all.schema();
    let value = column(all, "value");
    let keys = keys
        .iter()
        .map(|name| (column(all, name), (*name).to_owned()));
    let group = PhysicalGroupBy::new_single(keys.collect());
    let exprs = aggregates.iter().enumerate().map(|(at, (of, _))| {
        let of = AggregateExprBuilder::new(Arc::clone(of), vec![Arc::clone(&value)]);
        let of = of.schema(Arc::clone(&schema)).alias(format!("of{at}"));
        Arc::new(of.build().unwrap())
    });
    let is_positive: Arc<dyn PhysicalExpr> =
        Arc::new(BinaryExpr::new(Arc::clone(&value), Operator::Gt, lit(0.0)));
    let filters = aggregates
        .iter()
        .map(|(_, is_filtered)| is_filtered.then(|| Arc::clone(&is_positive)));
    let exprs = exprs.collect();
    AggregateExec::try_new(mode, group, exprs, filters.collect(), rows, schema).unwrap()
}

fn ours(step: AggregateExec) -> Arc<dyn ExecutionPlan> {
    of_groups(Arc::new(step)).unwrap().data
}

/// What comes of a step and, if it is the first of two, of the other one, as lines.
fn results(step: Arc<dyn ExecutionPlan>, of: &AggregateExec, bytes: usize) -> Vec<String> {
    let is_first = of.mode().output_mode() == AggregateOutputMode::Partial;
    let all = match is_first {
        true => {
            let filters = vec![None; of.aggr_expr().len()];
            let (group, exprs) = (of.group_expr().as_final(), of.aggr_expr().to_vec());
            let mode = AggregateMode::Final;
            let last = AggregateExec::try_new(mode, group, exprs, filters, step, of.input_schema());
            Arc::new(last.unwrap())
        }
        false => step,
    };
    let batches = run(&all, "FewGroupsExec", bytes, usize::MAX);
    let text = pretty_format_batches(&batches).unwrap().to_string();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    // Their widths depend on the batches.
    lines
        .iter_mut()
        .for_each(|line| line.retain(|it| !" -+".contains(it)));
    lines.retain(|line| !line.is_empty());
    lines.sort_unstable();
    lines
}

fn aggregates() -> Vec<(Arc<AggregateUDF>, bool)> {
    let sum = mended().into_iter().find(|of| of.name() == "sum");
    vec![
        (Arc::new(sum.unwrap()), false),
        (count_udaf(), false),
        (count_udaf(), true),
        (max_udaf(), false),
        (avg_udaf(), true),
    ]
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let text = prop_oneof![
        Just(None),
        "[ab]{0,2}".prop_map(Some),
        // Of the length of views that hold their text, and longer ones with the same beginning.
        "x{11,14}[ab]{0,1}".prop_map(Some),
        "[ab]{60,62}".prop_map(Some),
    ];
    let time = prop_oneof![
        Just(None),
        (-3..3_i64).prop_map(Some),
        any::<i64>().prop_map(Some)
    ];
    let value = prop::option::of(-5..5_i64);
    prop::collection::vec((text, time, -2..2_i8, value), 0..300)
}

proptest! {
    #[test]
    fn groups_are_those_of_datafusion(
        rows in rows(),
        keys in prop::sample::subsequence(vec!["text", "time", "number", "date", "port", "id"], 1..=6),
        batch_rows in 1_usize..70,
        bytes in prop_oneof![Just(usize::MAX), 0..20_000_usize],
        is_first in any::<bool>(),
    ) {
        let mode = if is_first { AggregateMode::Partial } else { AggregateMode::Single };
        let all = batch(&rows);
        let known = || step(&all, &keys, &aggregates(), mode, in_batches(&all, batch_rows));
        let few = ours(known());
        prop_assert_eq!(few.name(), "FewGroupsExec");
        let expected = results(Arc::new(known()), &known(), usize::MAX);
        prop_assert_eq!(results(few, &known(), bytes), expected);
    }
}

/// Rows of which each has another text, from the given row on.
fn distinct_from(first: usize, text: impl Fn(usize) -> String) -> RecordBatch {
    let rows = (0..2_000).map(|row| {
        let text = if row < first {
            text(row % 3)
        } else {
            text(row)
        };
        (Some(text), Some(row as i64 % 5), 0, Some(row as i64))
    });
    batch(&rows.collect::<Vec<_>>())
}

#[test]
fn many_groups_are_datafusions() {
    let many_texts = distinct_from(700, |row| row.to_string());
    let many_long_texts = distinct_from(0, |row| format!("a text with the number {row}"));
    let much_text = distinct_from(900, |row| format!("{row:01000}"));
    for all in [many_texts, many_long_texts, much_text] {
        for mode in [AggregateMode::Partial, AggregateMode::Single] {
            for keys in [&["text"] as &[&str], &["time", "text"]] {
                let known = || step(&all, keys, &aggregates(), mode, in_batches(&all, 100));
                let expected = results(Arc::new(known()), &known(), usize::MAX);
                assert_eq!(results(ours(known()), &known(), usize::MAX), expected);
            }
        }
    }
}

#[test]
fn products_of_few_values_are_many_groups() {
    let rows: Vec<Row> = (0..10_000)
        .map(|row| (Some((row % 101).to_string()), Some(row % 103), 0, Some(row)))
        .collect();
    let all = batch(&rows);
    for mode in [AggregateMode::Partial, AggregateMode::Single] {
        let known = || {
            step(
                &all,
                &["text", "time"],
                &aggregates(),
                mode,
                in_batches(&all, 1_000),
            )
        };
        let expected = results(Arc::new(known()), &known(), usize::MAX);
        assert_eq!(results(ours(known()), &known(), usize::MAX), expected);
    }
}

#[test]
fn aggregates_that_keep_what_they_see_go_on_as_datafusion_has_them() {
    let rows: Vec<Row> = (0..300_000)
        .map(|row| (None, None, (row % 7) as i8, Some(row)))
        .collect();
    let all = batch(&rows);
    let median = [(median_udaf(), false)];
    for mode in [AggregateMode::Partial, AggregateMode::Single] {
        let known = || step(&all, &["number"], &median, mode, in_batches(&all, 10_000));
        let expected = results(Arc::new(known()), &known(), usize::MAX);
        assert_eq!(results(ours(known()), &known(), usize::MAX), expected);
    }
}

#[test]
fn keys_that_share_a_place_are_too_many() {
    let mut table = Table::new();
    assert!((0..NUMBERS_MAX).all(|key| table.insert(u64::from(key), key)));
    assert!((0..NUMBERS_MAX).all(|key| table.find(u64::from(key)) == Some(key)));
    assert_eq!(table.find(u64::from(NUMBERS_MAX)), None);
    // Of so many keys some thousand have one place in a table of 2,048.
    let hostile = (0..4_000_000_u64).filter(|key| table::Key::hash(*key) >> 53 == 7);
    let mut table = Table::new();
    let inserted = hostile
        .zip(0..)
        .take_while(|(key, number)| table.insert(*key, *number));
    assert!(inserted.count() < 100);
}

#[test]
fn memory_is_given_back_by_who_takes_some_groups() {
    let all = distinct_from(700, |row| row.to_string());
    for bytes in [1_000, 1 << 20] {
        let step = step(
            &all,
            &["text"],
            &aggregates(),
            AggregateMode::Single,
            in_batches(&all, 10),
        );
        assert_eq!(run(&ours(step), "FewGroupsExec", bytes, 1).len(), 1);
    }
}

#[test]
fn other_steps_stay_as_they_are() {
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0]));
    let value: ArrayRef = Arc::new(UInt32Array::from(vec![1, 2]));
    let all = RecordBatch::try_from_iter([("text", floats), ("value", value)]).unwrap();
    let of = |keys: &[&str], aggregates: &[_]| {
        let rows = in_batches(&all, 1);
        let step = step(&all, keys, aggregates, AggregateMode::Single, rows);
        ours(step).name().to_owned()
    };
    assert_eq!(of(&["text"], &[(max_udaf(), false)]), "AggregateExec");
    assert_eq!(of(&[], &[(max_udaf(), false)]), "AggregateExec");
    assert_eq!(of(&["value"], &[]), "AggregateExec");
}
