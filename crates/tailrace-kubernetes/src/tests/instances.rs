//! Which instance of which container a log is of, in pods of several shapes.

use tokio::time::{Duration, Instant};

use super::*;

/// A world that knows these pods, whose watch is the second value.
async fn world_of(pods: &[Value]) -> (World, super::fake::Stream) {
    let mut world = World::api();
    world
        .server
        .call()
        .await
        .answer(200, &list(100, pods))
        .await;
    let stream = world.server.call().await.stream();
    (world, stream)
}

fn image_digests(container: &Container) -> Option<&Attribute> {
    attribute(container, "container.image.repo_digests")
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_starting_container_is_awaited() {
    let mut starting = pod("web", 90);
    starting["status"] = json!({"phase": "Pending"});
    let (world, mut stream) = world_of(&[starting]).await;
    let log = log("web", "app", 0);
    let begin = Instant::now();
    assert!(matches!(world.pods.look_up(&log), Lookup::Awaited));
    stream.event("MODIFIED", &pod("web", 101)).await;
    let container = world.known(&log).await;
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert_eq!(text(&container, "container.id"), Some("web-0"));
}

#[tokio::test(start_paused = true)]
async fn labels_do_not_wait_longer_for_an_id() {
    let mut starting = pod("web", 90);
    starting["status"] = json!(null);
    let (world, mut stream) = world_of(&[starting]).await;
    let log = log("web", "app", 0);
    let begin = Instant::now();
    let container = world.known(&log).await;
    assert_eq!(begin.elapsed().as_secs(), 5);
    assert_eq!(text(&container, "k8s.pod.label.app"), Some("web"));
    assert_eq!(text(&container, "container.id"), None);
    assert_eq!(text(&container, "container.image.name"), Some("r.io/app"));
    // It comes later: a new revision.
    stream.event("MODIFIED", &pod("web", 101)).await;
    let changed = world.until(|pods| match pods.look_up(&log) {
        Lookup::Known(found) if found.revision != container.revision => Some(found),
        _ => None,
    });
    assert_eq!(text(&*changed.await, "container.id"), Some("web-0"));
}

#[tokio::test(start_paused = true)]
async fn a_crash_looping_container_keeps_its_ids() {
    let mut looping = pod("web", 90);
    // Waiting for its next start: both states name run 7, the latest.
    let status = &mut looping["status"]["containerStatuses"][0];
    status["restartCount"] = json!(7);
    status["containerID"] = json!("cri-o://run-7");
    status["state"] = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    status["lastState"] = json!({"terminated": {"containerID": "cri-o://run-7"}});
    let (world, mut stream) = world_of(&[looping.clone()]).await;
    let id = |container: &Container| text(container, "container.id").map(str::to_owned);
    let known = world.known(&log("web", "app", 7)).await;
    assert_eq!(id(&known).as_deref(), Some("run-7"));
    assert!(image_digests(&known).is_some());

    // Long over, and never named: not awaited.
    let Lookup::Known(over) = world.pods.look_up(&log("web", "app", 6)) else {
        panic!("it will never come");
    };
    assert_eq!(id(&over), None);
    assert_eq!(
        attribute(&over, "k8s.container.restart_count"),
        Some(&Attribute::Int(6))
    );
    // Starting now.
    assert!(matches!(
        world.pods.look_up(&log("web", "app", 8)),
        Lookup::Awaited
    ));

    // Run 8 was missed, 9 runs: the last state tells the id of 8, and 7 is remembered.
    let status = &mut looping["status"]["containerStatuses"][0];
    status["restartCount"] = json!(9);
    status["containerID"] = json!("cri-o://run-9");
    status["lastState"] = json!({"terminated": {"containerID": "cri-o://run-8"}});
    stream.event("MODIFIED", &looping).await;
    for (restart_count, expect) in [(9, "run-9"), (8, "run-8"), (7, "run-7")] {
        let container = world.known(&log("web", "app", restart_count)).await;
        assert_eq!(id(&container).as_deref(), Some(expect));
    }
    assert!(image_digests(&*world.known(&log("web", "app", 8)).await).is_none());

    // Of long ago there is no memory.
    looping["status"]["containerStatuses"][0]["restartCount"] = json!(30);
    looping["status"]["containerStatuses"][0]["containerID"] = json!("cri-o://run-30");
    stream.event("MODIFIED", &looping).await;
    world.known(&log("web", "app", 30)).await;
    assert_eq!(id(&*world.known(&log("web", "app", 7)).await), None);
}

#[tokio::test(start_paused = true)]
async fn init_and_ephemeral_containers() {
    let mut many = pod("web", 90);
    many["spec"]["initContainers"] = json!([{"name": "setup", "image": "setup:2"}]);
    many["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox"}]);
    many["status"]["initContainerStatuses"] = json!([
        {"name": "setup", "restartCount": 1, "containerID": "containerd://s-1", "imageID": "",
         "lastState": {"terminated": {"containerID": "containerd://s-0"}}},
    ]);
    many["status"]["ephemeralContainerStatuses"] = json!([
        {"name": "debug", "restartCount": 0, "containerID": "containerd://d-0",
         "imageID": "docker.io/library/busybox@sha256:bb"},
    ]);
    let (world, _stream) = world_of(&[many]).await;
    for (name, restart_count, id, image) in [
        ("setup", 1, "s-1", "setup"),
        ("setup", 0, "s-0", "setup"),
        ("debug", 0, "d-0", "busybox"),
        ("app", 0, "web-0", "r.io/app"),
    ] {
        let container = world.known(&log("web", name, restart_count)).await;
        assert_eq!(text(&container, "container.id"), Some(id), "{name}");
        assert_eq!(
            text(&container, "container.image.name"),
            Some(image),
            "{name}"
        );
    }
    let debug = world.known(&log("web", "debug", 0)).await;
    let digest = Attribute::List(vec!["docker.io/library/busybox@sha256:bb".into()]);
    assert_eq!(image_digests(&debug), Some(&digest));
    // A container that is added later is awaited like one that starts.
    assert!(matches!(
        world.pods.look_up(&log("web", "debug2", 0)),
        Lookup::Awaited
    ));
}

/// As kubeadm's control plane: the path has the hash of the manifest, the API's mirror another uid.
#[tokio::test(start_paused = true)]
async fn a_static_pod_is_found_by_its_hash() {
    const HASH: &str = "3a1c0f8b5f1d6f2f6d8b1b4f7a9e0c21";
    let mut mirror = pod("kube-scheduler-node-1", 90);
    mirror["metadata"]["uid"] = json!("b1f2a3c4-0000-4000-8000-1234567890ab");
    mirror["metadata"]["annotations"] = json!({
        "kubernetes.io/config.hash": HASH,
        "kubernetes.io/config.mirror": HASH,
        "kubernetes.io/config.seen": "2026-11-21T09:00:00.123456789Z",
        "kubernetes.io/config.source": "file",
    });
    mirror["metadata"]["labels"] = json!({"component": "kube-scheduler", "tier": "control-plane"});
    mirror["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "controller": true, "kind": "Node", "name": NODE, "uid": "n"}]);
    let (world, mut stream) = world_of(&[mirror.clone()]).await;

    let mut of_path = log("kube-scheduler-node-1", "app", 0);
    HASH.clone_into(&mut of_path.uid);
    let container = world.known(&of_path).await;
    assert_eq!(
        text(&container, "k8s.pod.uid"),
        Some("b1f2a3c4-0000-4000-8000-1234567890ab")
    );
    assert_eq!(
        text(&container, "k8s.pod.label.component"),
        Some("kube-scheduler")
    );
    assert_eq!(
        text(&container, "service.name"),
        Some("kube-scheduler-node-1")
    );

    // Anybody may write the annotation; the path names another pod.
    let mut other = pod("other", 91);
    other["metadata"]["uid"] = json!("other-uid");
    other["metadata"]["annotations"] = json!({"kubernetes.io/config.hash": HASH});
    let version = world.pods.version();
    stream.event("ADDED", &other).await;
    world
        .until(|pods| (pods.version() != version).then_some(()))
        .await;
    let still = world.known(&of_path).await;
    assert_eq!(still.revision, container.revision);

    // The mirror is made anew, with another uid.
    stream.event("DELETED", &mirror).await;
    mirror["metadata"]["uid"] = json!("uid-2");
    stream.event("ADDED", &mirror).await;
    let second = world.until(|pods| match pods.look_up(&of_path) {
        Lookup::Known(found) if found.revision != container.revision => Some(found),
        _ => None,
    });
    assert_eq!(text(&*second.await, "k8s.pod.uid"), Some("uid-2"));

    // The annotation alone, on another pod, takes nobody's log.
    of_path.namespace = "other".to_owned();
    assert!(matches!(world.pods.look_up(&of_path), Lookup::Awaited));
}
