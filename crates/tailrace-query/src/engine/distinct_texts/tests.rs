//! Distinct texts, beside a set of the standard library.

use std::collections::BTreeSet;

use arrow::array::StringArray;
use arrow::datatypes::{Field, Schema};
use datafusion::functions::string::upper;
use datafusion::physical_expr::{ScalarFunctionExpr, expressions};
use proptest::prelude::*;

use super::*;
use crate::engine::testing::{in_batches, run};

type Rows = Vec<Option<String>>;

fn batch(rows: &Rows) -> RecordBatch {
    let texts: StringViewArray = rows.iter().map(Option::as_deref).collect();
    RecordBatch::try_from_iter([("t", Arc::new(texts) as ArrayRef)]).unwrap()
}

fn column() -> Arc<dyn PhysicalExpr> {
    Arc::new(expressions::Column::new("t", 0))
}

fn step(
    of: Arc<dyn PhysicalExpr>,
    mode: AggregateMode,
    rows: Arc<dyn ExecutionPlan>,
) -> Arc<dyn ExecutionPlan> {
    let schema = rows.schema();
    let group = PhysicalGroupBy::new_single(vec![(of, "t".to_owned())]);
    let step = AggregateExec::try_new(mode, group, vec![], vec![], rows, schema).unwrap();
    of_distinct(Arc::new(step)).unwrap().data
}

/// The distinct values of the first batches that are given, of which none is given twice.
fn found(batches: &[RecordBatch]) -> BTreeSet<Option<String>> {
    let mut all = BTreeSet::new();
    for batch in batches {
        for text in batch.column(0).as_string_view() {
            assert!(
                all.insert(text.map(str::to_owned)),
                "{text:?} is given twice"
            );
        }
    }
    all
}

fn texts() -> impl Strategy<Value = Rows> {
    let text = prop_oneof![
        Just(None),
        "[ab]{0,3}".prop_map(Some),
        // Of the length of views that hold their text, and longer ones with the same beginning.
        "x{11,14}[ab]{0,2}".prop_map(Some),
        "[ab]{60,70}".prop_map(Some),
    ];
    prop::collection::vec(text, 0..300)
}

proptest! {
    #[test]
    fn each_text_is_given_once(
        rows in texts(),
        batch_rows in 1_usize..70,
        bytes in prop_oneof![Just(usize::MAX), 0..20_000_usize],
        is_final in any::<bool>(),
    ) {
        let mode = if is_final { AggregateMode::Final } else { AggregateMode::Single };
        let step = step(column(), mode, in_batches(&batch(&rows), batch_rows));
        prop_assert_eq!(step.name(), "DistinctTextsExec");
        let given = run(&step, "DistinctTextsExec", bytes, usize::MAX);
        prop_assert_eq!(found(&given), rows.into_iter().collect());
    }
}

#[test]
fn texts_may_be_computed() {
    let all = batch(&["a", "A", "b"].map(|it| Some(it.to_owned())).to_vec());
    for bytes in [0, 1 << 20] {
        let upper =
            ScalarFunctionExpr::try_new(upper(), vec![column()], &all.schema(), Arc::default());
        let of = Arc::new(upper.unwrap());
        let step = step(of, AggregateMode::Single, in_batches(&all, 1));
        let given = run(&step, "DistinctTextsExec", bytes, usize::MAX);
        let expected = ["A", "B"].map(|it| Some(it.to_owned()));
        assert_eq!(found(&given), expected.into_iter().collect());
    }
}

#[test]
fn memory_is_given_back_by_who_takes_some_texts() {
    let rows = (0..100).map(|n| Some(format!("a text with the number {n}")));
    let all = batch(&rows.collect());
    for bytes in [1_000, 1 << 20] {
        let step = step(column(), AggregateMode::Single, in_batches(&all, 10));
        assert_eq!(run(&step, "DistinctTextsExec", bytes, 1).len(), 1);
    }
}

#[test]
fn other_steps_stay_as_they_are() {
    let schema = Arc::new(Schema::new(vec![Field::new("t", DataType::Utf8, true)]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let other = RecordBatch::try_new(schema, vec![texts]).unwrap();
    let step = |rows| step(column(), AggregateMode::Single, rows);
    assert_eq!(step(in_batches(&other, 1)).name(), "AggregateExec");
}
