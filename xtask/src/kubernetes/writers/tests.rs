//! What has to be noticed is noticed.

use std::path::PathBuf;

use super::*;

fn pod() -> Pod {
    Pod {
        name: "a".to_owned(),
        uid: "u1".to_owned(),
        node: "n".to_owned(),
    }
}

fn facts(restarts: u64) -> Attributes {
    let restarts = restarts.to_string();
    let facts = [
        ("k8s.namespace.name", NAME),
        ("k8s.pod.name", "a"),
        ("k8s.pod.uid", "u1"),
        ("k8s.node.name", "n"),
        ("k8s.container.name", "app"),
        ("k8s.container.restart_count", &restarts),
        ("k8s.pod.label.app", "a"),
        ("service.name", "a"),
        ("service.namespace", NAME),
        ("container.id", "c"),
        ("container.image.name", "i"),
    ];
    facts
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Records of these instances with these numbers.
fn arrived(records: &[(u64, u64)]) -> Arrived {
    let mut arrived = Arrived::new(PathBuf::new());
    let record = |&(restarts, seq): &(u64, u64)| Record {
        seq,
        resource: Rc::new(facts(restarts)),
        iostream: if seq % 2 == 1 { "stderr" } else { "stdout" }.to_owned(),
        pad: PAD,
    };
    arrived
        .streams
        .insert("a".to_owned(), records.iter().map(record).collect());
    arrived
}

fn writer(kind: Kind) -> Writer {
    Writer::new("a", kind, 2, "--stderr --pad 40000")
}

fn error(writer: &Writer, arrived: &Arrived) -> String {
    format!(
        "{:#}",
        writer
            .check(arrived, &pod())
            .expect_err("something is wrong")
    )
}

#[test]
fn every_record_has_to_arrive_once_unless_the_agent_was_killed() {
    let mut writer = writer(Kind::Once);
    let all = arrived(&[(0, 0), (0, 1)]);
    assert_eq!(writer.check(&all, &pod()).expect("all is well"), (2, 0));
    assert!(writer.is_complete(&all).expect("counted"));
    let lost = arrived(&[(0, 0)]);
    assert!(!writer.is_complete(&lost).expect("counted"));
    assert!(error(&writer, &lost).contains("of 2 records of instance 0 1 arrived"));
    let again = arrived(&[(0, 0), (0, 1), (0, 0)]);
    assert!(error(&writer, &again).contains("1 records arrived again"));
    writer.may_repeat = true;
    assert_eq!(writer.check(&again, &pod()).expect("all is well"), (2, 1));
}

#[test]
fn instances_are_reported_apart_and_excluded_pods_say_nothing() {
    let writer = writer(Kind::Loop);
    let mut records = vec![(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)];
    assert_eq!(
        writer
            .check(&arrived(&records), &pod())
            .expect("all is well"),
        (6, 0)
    );
    records[3] = (0, 1);
    assert!(error(&writer, &arrived(&records)).contains("instance 1 1 arrived"));
    let excluded = Writer::new("a", Kind::Excluded, 2, "");
    assert!(error(&excluded, &arrived(&[(0, 0)])).contains("asked for none"));
    assert!(excluded.check(&arrived(&[]), &pod()).is_ok());
}

#[test]
fn every_fact_has_to_be_right() {
    let writer = writer(Kind::Once);
    for key in facts(0).into_keys() {
        let mut all = arrived(&[(0, 0), (0, 1)]);
        let records = all.streams.get_mut("a").expect("a stream");
        Rc::make_mut(&mut records[1].resource).remove(&key);
        let error = error(&writer, &all);
        assert!(
            error.contains(&key) || error.contains("of instance 0"),
            "{key}: {error}"
        );
    }
    let mut all = arrived(&[(0, 0), (0, 1)]);
    let records = all.streams.get_mut("a").expect("a stream");
    records[1].iostream = "stdout".to_owned();
    assert!(error(&writer, &all).contains("not stderr"));
    records_of(&mut all)[1].iostream = "stderr".to_owned();
    records_of(&mut all)[0].pad = 16_384;
    assert!(error(&writer, &all).contains("16384 of 40000"));
}

fn records_of(arrived: &mut Arrived) -> &mut Vec<Record> {
    arrived.streams.get_mut("a").expect("a stream")
}
