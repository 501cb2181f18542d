//! What is remembered, for how long, and that a reader who asks only when the version moved is never wrong.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tokio::time::{Duration, advance};

use super::*;
use crate::rules::Rules;
use crate::store::Store;
use crate::store::pods::{DELETED_MAX, KnownPods};
use crate::wire;

const MINUTES_10: Duration = Duration::from_secs(600);

fn store(config: &Config) -> Store {
    let rules = Rules::new(config).unwrap();
    let Config {
        metadata_wait,
        remember_deleted,
        ..
    } = *config;
    Store::new(rules, metadata_wait, remember_deleted, Arc::new(|| ()))
}

fn wire_pod(pod: Value) -> wire::Pod {
    serde_json::from_value(pod).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_deleted_pod_is_forgotten_unless_somebody_holds_it() {
    let store = Arc::new(store(&api_config()));
    let time = Arc::clone(&store);
    let task = tokio::spawn(async move { time.keep_time().await });
    // It sleeps, with nothing to wait for.
    tokio::task::yield_now().await;
    for name in ["held", "left"] {
        store.apply(wire_pod(pod(name, 1)));
        store.remove(wire_pod(pod(name, 2)));
    }
    let look_up = |name| match store.look_up(&log(name, "app", 0)) {
        Lookup::Known(container) => Some(container),
        _ => None,
    };
    let held = look_up("held").unwrap();
    assert!(look_up("left").is_some());
    advance(MINUTES_10 - Duration::from_secs(1)).await;
    tokio::task::yield_now().await;
    assert_eq!(store.counts().deleted, 2);
    advance(Duration::from_secs(2)).await;
    tokio::task::yield_now().await;
    assert_eq!(store.counts().deleted, 1);
    assert!(look_up("left").is_none());
    assert!(Arc::ptr_eq(&held, &look_up("held").unwrap()));
    drop(held);
    advance(MINUTES_10).await;
    tokio::task::yield_now().await;
    assert_eq!(store.counts().deleted, 0);
    task.abort();
}

#[tokio::test(start_paused = true)]
async fn the_remembered_are_bounded() {
    let store = store(&api_config());
    for number in 0..DELETED_MAX + 3 {
        store.remove(wire_pod(pod(&number.to_string(), 1)));
    }
    // One that comes back is no longer one of them.
    store.apply(wire_pod(pod("3", 1)));
    let counts = store.counts();
    assert_eq!((counts.tracked, counts.deleted), (1, DELETED_MAX - 1));
    let is_known = |name: &str| matches!(store.look_up(&log(name, "app", 0)), Lookup::Known(_));
    assert!(!is_known("2"));
    assert!(is_known("3"));
    assert!(is_known("4"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_comes_back_is_not_forgotten_at_its_first_end() {
    let config = api_config();
    let mut pods = KnownPods::new(config.remember_deleted);
    let rules = Rules::new(&config).unwrap();
    let now = tokio::time::Instant::now();
    pods.apply(wire_pod(pod("web", 1)), &rules);
    pods.remove("uid-web", now);
    pods.apply(wire_pod(pod("web", 1)), &rules);
    pods.remove("uid-web", now + MINUTES_10 / 2);
    pods.forget(now + MINUTES_10);
    assert_eq!(pods.len(), 1);
    pods.forget(now + MINUTES_10 * 3 / 2);
    assert_eq!(pods.len(), 0);
}

#[derive(Clone, Debug)]
enum Op {
    Apply { pod: u8, label: u8, started: bool },
    Remove { pod: u8 },
    Replace { pods: BTreeMap<u8, u8> },
    Wait { millis: u64 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..4u8, 0..3u8, any::<bool>())
            .prop_map(|(pod, label, started)| Op::Apply { pod, label, started }),
        1 => (0..4u8).prop_map(|pod| Op::Remove { pod }),
        1 => proptest::collection::btree_map(0..4u8, 0..3u8, 0..4)
            .prop_map(|pods| Op::Replace { pods }),
        2 => (1..4000u64).prop_map(|millis| Op::Wait { millis }),
    ]
}

fn labelled(number: u8, label: u8, started: bool) -> wire::Pod {
    let mut value = pod(&number.to_string(), 1);
    value["metadata"]["labels"] = json!({"version": label.to_string()});
    if !started {
        value["status"] = json!({});
    }
    wire_pod(value)
}

/// What a reader holds of one log.
#[derive(Clone, Debug, PartialEq)]
enum Held {
    Known(Option<String>),
    Awaited,
    Unknown,
}

fn held(lookup: &Lookup) -> Held {
    match lookup {
        Lookup::Known(container) => {
            Held::Known(text(container, "k8s.pod.label.version").map(str::to_owned))
        }
        Lookup::Awaited => Held::Awaited,
        Lookup::Unknown(_) => Held::Unknown,
    }
}

async fn run(ops: Vec<Op>) {
    let store = Arc::new(store(&api_config()));
    let time = Arc::clone(&store);
    let task = tokio::spawn(async move { time.keep_time().await });
    let logs: Vec<PodLog> = (0..4u8).map(|n| log(&n.to_string(), "app", 0)).collect();
    // Readers that ask again only when the version moved, and what they hold.
    let mut version = store.version();
    let mut answers: Vec<Lookup> = logs.iter().map(|log| store.look_up(log)).collect();
    // The label each pod was last given: what is known of it, gone or not.
    let mut model: BTreeMap<u8, u8> = BTreeMap::new();
    for op in ops {
        match op {
            Op::Apply {
                pod,
                label,
                started,
            } => {
                model.insert(pod, label);
                store.apply(labelled(pod, label, started));
            }
            Op::Remove { pod } => {
                model.insert(pod, 9);
                store.remove(labelled(pod, 9, false));
            }
            Op::Replace { pods } => {
                let listed = pods.iter().map(|(pod, label)| labelled(*pod, *label, true));
                store.replace(listed.collect());
                model.extend(pods);
            }
            Op::Wait { millis } => advance(Duration::from_millis(millis)).await,
        }
        tokio::task::yield_now().await;
        if store.version() != version {
            version = store.version();
            for (log, answer) in logs.iter().zip(&mut answers) {
                let before = answer.clone();
                *answer = store.look_up(log);
                if let (Lookup::Known(before), Lookup::Known(after)) = (&before, &answer) {
                    let same = before.attributes == after.attributes;
                    assert_eq!(same, Arc::ptr_eq(before, after));
                    assert_eq!(same, before.revision == after.revision);
                }
            }
        }
        for (number, (log, answer)) in (0u8..).zip(logs.iter().zip(&answers)) {
            let fresh = held(&store.look_up(log));
            assert_eq!(
                held(answer),
                fresh,
                "pod {number}: the reader missed a change"
            );
            if let Held::Known(label) = fresh {
                assert_eq!(label, model.get(&number).map(u8::to_string));
            } else if model.contains_key(&number) {
                assert_eq!(fresh, Held::Awaited, "pod {number} is known");
            }
        }
    }
    task.abort();
}

proptest! {
    #[test]
    fn asking_when_the_version_moved_is_enough(ops in proptest::collection::vec(op(), 0..40)) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(ops));
    }
}
