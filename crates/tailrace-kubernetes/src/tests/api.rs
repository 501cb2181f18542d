//! Lists, watches, and what is asked for again after which failure.

use serde_json::json;
use tokio::time::{Duration, Instant, advance};

use super::fake::{Call, refusal};
use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn assert_of_this_node(call: &Call) {
    assert_eq!(call.path, "/api/v1/pods");
    assert_eq!(call.get("fieldSelector"), Some("spec.nodeName%3Dnode-1"));
}

async fn answer_list(world: &mut World, version: u32, items: &[Value]) {
    let call = world.server.call().await;
    assert!(!call.is_watch());
    assert_of_this_node(&call);
    call.answer(200, &list(version, items)).await;
}

#[tokio::test(start_paused = true)]
async fn one_list_and_then_one_watch_after_the_other() {
    let mut world = World::api();
    let call = world.server.call().await;
    assert_of_this_node(&call);
    assert_eq!(call.get("resourceVersion"), Some("0"));
    assert_eq!(call.get("resourceVersionMatch"), Some("NotOlderThan"));
    assert_eq!(call.get("limit"), None);
    call.answer(200, &list(100, &[pod("web", 90)])).await;

    let call = world.server.call().await;
    assert_of_this_node(&call);
    assert_eq!(call.get("resourceVersion"), Some("100"));
    assert_eq!(call.get("allowWatchBookmarks"), Some("true"));
    assert_eq!(call.get("timeoutSeconds"), Some("290"));
    let mut stream = call.stream();
    stream.bookmark(140).await;
    assert!(world.server.is_quiet_for(SECOND * 280).await);
    drop(stream);

    let call = world.server.call().await;
    assert_of_this_node(&call);
    assert_eq!(call.get("resourceVersion"), Some("140"));
    let mut stream = call.stream();
    stream.event("ADDED", &pod("db", 150)).await;
    world.known(&log("db", "app", 0)).await;
    assert!(world.server.is_quiet_for(SECOND).await);
    drop(stream);
    assert_eq!(
        world.server.call().await.get("resourceVersion"),
        Some("150")
    );

    let status = world.pods.status();
    assert!(status.synced);
    assert_eq!((status.lists, status.watches, status.errors), (1, 3, 0));
    assert_eq!((status.tracked, status.deleted), (2, 0));
    assert_eq!(status.last_error, None);
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_time_is_waited_for() {
    let mut world = World::api();
    let log = log("web", "app", 0);
    let begin = Instant::now();
    assert!(matches!(world.pods.look_up(&log), Lookup::Awaited));
    assert_eq!(world.pods.status().awaited, 1);
    let call = world.server.call().await;
    advance(SECOND * 4).await;
    call.answer(200, &list(100, &[pod("web", 90)])).await;
    let container = world.known(&log).await;
    assert!(begin.elapsed() < SECOND * 5);
    assert_eq!(text(&container, "k8s.pod.label.app"), Some("web"));
    assert_eq!(world.pods.status().awaited, 0);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_taken_when_it_comes() {
    let mut world = World::api();
    let log = log("web", "app", 0);
    let begin = Instant::now();
    let call = world.server.call().await;
    let container = world.unknown(&log).await;
    assert_eq!(
        begin.elapsed().as_secs(),
        5,
        "given up at the end of the wait, on its own"
    );
    assert_eq!(container.revision, 0);
    assert_eq!(text(&container, "k8s.pod.name"), Some("web"));
    assert_eq!(text(&container, "k8s.node.name"), Some(NODE));
    assert_eq!(text(&container, "k8s.pod.label.app"), None);
    // It is not awaited a second time, however often it is asked for.
    assert!(matches!(world.pods.look_up(&log), Lookup::Unknown(_)));
    advance(SECOND * 30).await;
    call.answer(200, &list(100, &[pod("web", 90)])).await;
    let container = world.known(&log).await;
    assert_eq!(text(&container, "k8s.pod.label.app"), Some("web"));
    assert_ne!(container.revision, 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_two_minutes_comes_of_another_attempt() {
    let mut world = World::api();
    let first = world.server.call().await;
    world.unknown(&log("web", "app", 0)).await;
    let second = world.server.call().await;
    let waited = second.at - first.at;
    assert!(waited > SECOND * 60 && waited <= SECOND * 61, "{waited:?}");
    assert_of_this_node(&second);
    let error = world.pods.status().last_error.unwrap();
    assert_eq!(error, "cannot follow the pods: no answer within 60 s");
    second.answer(200, &list(100, &[pod("web", 90)])).await;
    world.known(&log("web", "app", 0)).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_lived_one_second_has_its_labels() {
    let mut world = World::api();
    answer_list(&mut world, 100, &[]).await;
    let mut stream = world.server.call().await.stream();
    stream.event("ADDED", &pod("job", 101)).await;
    world
        .until(|pods| (pods.status().tracked == 1).then_some(()))
        .await;
    advance(SECOND).await;
    stream.event("DELETED", &pod("job", 102)).await;
    world
        .until(|pods| (pods.status().tracked == 0).then_some(()))
        .await;
    assert_eq!(world.pods.status().deleted, 1);
    // Its log is found only now.
    let Lookup::Known(container) = world.pods.look_up(&log("job", "app", 0)) else {
        panic!("it is remembered");
    };
    assert_eq!(text(&container, "k8s.pod.label.app"), Some("job"));
    assert_eq!(text(&container, "container.id"), Some("job-0"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_label_is_a_new_revision_and_a_changed_condition_is_not() {
    let mut world = World::api();
    answer_list(&mut world, 100, &[pod("web", 90)]).await;
    let mut stream = world.server.call().await.stream();
    let before = world.known(&log("web", "app", 0)).await;
    let version = world.pods.version();

    let mut changed = pod("web", 101);
    changed["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    stream.event("MODIFIED", &changed).await;
    // A pod after it shows that the first event was taken.
    stream.event("ADDED", &pod("db", 102)).await;
    world.known(&log("db", "app", 0)).await;
    assert_eq!(
        world.pods.version(),
        version + 1,
        "one pod was added, nothing else"
    );
    let same = world.known(&log("web", "app", 0)).await;
    assert!(Arc::ptr_eq(&before, &same));

    // Another container of the pod started: something is said anew, but not of this one.
    changed["status"]["initContainerStatuses"] = json!([{"name": "setup", "containerID": "c://s"}]);
    stream.event("MODIFIED", &changed).await;
    world
        .until(|pods| (pods.version() == version + 2).then_some(()))
        .await;
    let same = world.known(&log("web", "app", 0)).await;
    assert!(Arc::ptr_eq(&before, &same));

    changed["metadata"]["labels"]["tier"] = json!("front");
    stream.event("MODIFIED", &changed).await;
    world
        .until(|pods| (pods.version() == version + 3).then_some(()))
        .await;
    let after = world.known(&log("web", "app", 0)).await;
    assert!(after.revision > before.revision);
    assert_eq!(text(&after, "k8s.pod.label.tier"), Some("front"));
    assert_eq!(text(&before, "k8s.pod.label.tier"), None);
}

#[tokio::test(start_paused = true)]
async fn a_version_too_old_is_listed_again() {
    let mut world = World::api();
    answer_list(&mut world, 100, &[pod("web", 90), pod("old", 90)]).await;
    let mut stream = world.server.call().await.stream();
    stream
        .event("ERROR", &refusal(410, "too old resource version"))
        .await;
    answer_list(&mut world, 200, &[pod("web", 90), pod("new", 180)]).await;
    // As a status of the answer, not only as an event in it.
    let call = world.server.call().await;
    assert_eq!(call.get("resourceVersion"), Some("200"));
    call.refuse(410, "too old resource version").await;
    answer_list(&mut world, 300, &[pod("web", 90), pod("new", 180)]).await;
    let call = world.server.call().await;
    assert_eq!(call.get("resourceVersion"), Some("300"));

    let status = world.pods.status();
    assert_eq!((status.tracked, status.deleted, status.errors), (2, 1, 2));
    for name in ["web", "old", "new"] {
        world.known(&log(name, "app", 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_goes_on_where_it_was() {
    let mut world = World::api();
    answer_list(&mut world, 100, &[]).await;
    let mut stream = world.server.call().await.stream();
    stream.event("ADDED", &pod("web", 120)).await;
    world.known(&log("web", "app", 0)).await;
    stream.fail();
    for _ in 0..3 {
        let call = world.server.call().await;
        assert_eq!(call.get("resourceVersion"), Some("120"));
        call.close();
    }
    // An answer that ends at once is a failure too, or it would be repeated without end.
    let call = world.server.call().await;
    let (ended, _) = (call.at, call.stream());
    let call = world.server.call().await;
    assert!(call.at - ended >= SECOND / 2);
    assert_eq!(call.get("resourceVersion"), Some("120"));
    // So is one that ends after each event.
    let (ended, mut stream) = (call.at, call.stream());
    stream.event("MODIFIED", &pod("web", 125)).await;
    drop(stream);
    let call = world.server.call().await;
    assert!(call.at - ended >= SECOND / 2);
    assert_eq!(call.get("resourceVersion"), Some("125"));
    let status = world.pods.status();
    assert_eq!((status.lists, status.errors), (1, 6));
    assert!(status.last_error.is_some());
    let mut stream = call.stream();
    stream.bookmark(130).await;
    stream.event("ADDED", &pod("db", 131)).await;
    world.known(&log("db", "app", 0)).await;
    assert_eq!(world.pods.status().last_error, None);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_dead() {
    let mut world = World::api();
    answer_list(&mut world, 100, &[]).await;
    let call = world.server.call().await;
    let begin = call.at;
    let _stream = call.stream();
    let call = world.server.call().await;
    assert!(call.is_watch());
    let waited = call.at - begin;
    assert!(
        waited > SECOND * 305 && waited <= SECOND * 306,
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn failures_are_spaced_and_say_what_to_do() {
    let mut world = World::api();
    let mut before = None;
    for attempt in 0..10 {
        let call = world.server.call().await;
        if let Some(before) = before.replace(call.at) {
            let ceiling = SECOND * (1 << (attempt - 1)).min(30);
            let waited: Duration = call.at - before;
            assert!(waited >= ceiling / 2, "{attempt}: {waited:?}");
            assert!(waited <= ceiling + SECOND / 100, "{attempt}: {waited:?}");
        }
        call.refuse(403, "pods is forbidden").await;
    }
    let call = world.server.call().await;
    let status = world.pods.status();
    assert!(!status.synced);
    assert_eq!(status.errors, 10);
    assert_eq!(
        status.last_error.unwrap(),
        "cannot follow the pods: pods is forbidden (403); the service account needs get, list and \
         watch on pods in all namespaces"
    );
    call.answer(200, &list(100, &[])).await;
    world.server.call().await;
    assert_eq!(world.pods.status().last_error, None);
}

#[tokio::test(start_paused = true)]
async fn an_answer_without_a_text_is_told_by_its_code() {
    let mut world = World::api();
    for message in ["", "<html>nothing here</html>"] {
        world.server.call().await.refuse(404, message).await;
    }
    world.server.call().await;
    assert_eq!(
        world.pods.status().last_error.unwrap(),
        "cannot follow the pods: Not Found (404); is this the address of a Kubernetes API server or a kubelet?"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_be_read_is_counted_and_harms_no_other() {
    let mut world = World::api();
    let mut bad = pod("bad", 91);
    bad["metadata"]["labels"] = json!("none");
    let nulls = json!({"metadata": {"name": "nulls", "namespace": "shop", "uid": "uid-nulls",
        "labels": null}, "spec": {"containers": null}, "status": null});
    let items = [
        bad.clone(),
        pod("web", 90),
        nulls,
        json!({"metadata": {}}),
        json!(7),
    ];
    answer_list(&mut world, 100, &items).await;
    world.known(&log("web", "app", 0)).await;
    let mut stream = world.server.call().await.stream();
    stream.event("ADDED", &bad).await;
    stream.event("ADDED", &pod("db", 110)).await;
    world.known(&log("db", "app", 0)).await;
    let status = world.pods.status();
    assert_eq!((status.tracked, status.unreadable), (3, 4));
    assert_eq!((status.watches, status.errors), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_no_list_is_an_error() {
    let mut world = World::api();
    world
        .server
        .call()
        .await
        .answer(200, &json!({"items": 7}))
        .await;
    let call = world.server.call().await;
    let error = world.pods.status().last_error.unwrap();
    assert!(
        error.contains("the answer is not a list of pods: invalid type"),
        "{error}"
    );
    drop(call);
}

#[tokio::test(start_paused = true)]
async fn nobody_asks_after_the_last_handle_is_gone() {
    let mut world = World::api();
    answer_list(&mut world, 100, &[]).await;
    let stream = world.server.call().await.stream();
    let second = world.pods.clone();
    drop(world.pods);
    assert_eq!(second.status().errors, 0);
    drop(second);
    assert!(world.server.is_left().await);
    drop(stream);
}

#[tokio::test]
async fn a_wrong_config_is_refused() {
    let field = |change: fn(&mut Config)| {
        let mut config = api_config();
        change(&mut config);
        let (connect, _server) = Fake::new();
        let started = Pods::start_with(config, &Handle::current(), Arc::new(|| ()), connect);
        started.err().unwrap().field().to_owned()
    };
    assert_eq!(field(|config| config.node_name = None), "node_name");
    assert_eq!(
        field(|config| config.node_name = Some("a,b".to_owned())),
        "node_name"
    );
    assert_eq!(field(|config| config.labels.push("[".to_owned())), "labels");
    assert_eq!(
        field(|config| config.annotations.push("[".to_owned())),
        "annotations"
    );
    assert_eq!(
        field(|config| config.pod_selector = "a b".to_owned()),
        "pod_selector"
    );
}
