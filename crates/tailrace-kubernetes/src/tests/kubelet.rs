//! When the kubelet is asked.

use super::*;

fn start() -> World {
    World::start(Config {
        source: MetadataSource::Kubelet {
            url: "http://kubelet".to_owned(),
            kubeconfig: None,
            skip_verify: false,
        },
        ..api_config()
    })
}

/// As the kubelet writes it: no version.
fn pod_list(items: &[Value]) -> Value {
    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
}

#[tokio::test(start_paused = true)]
async fn asked_each_half_minute_when_nobody_wants_anything() {
    let mut world = start();
    let first = world.server.call().await;
    assert_eq!((first.path.as_str(), first.query.len()), ("/pods", 0));
    let at = first.at;
    first.answer(200, &pod_list(&[pod("web", 1)])).await;
    let second = world.server.call().await;
    assert_eq!((second.at - at).as_secs(), 30);
    // What is gone from the list is remembered.
    second.answer(200, &json!({"items": null})).await;
    world
        .until(|pods| (pods.status().deleted == 1).then_some(()))
        .await;
    world.known(&log("web", "app", 0)).await;
}

#[tokio::test(start_paused = true)]
async fn asked_each_second_while_a_pod_is_awaited() {
    let mut world = start();
    let first = world.server.call().await;
    let begin = first.at;
    first.answer(200, &pod_list(&[pod("db", 1)])).await;
    world.known(&log("db", "app", 0)).await;
    let log = log("web", "app", 0);
    assert!(matches!(world.pods.look_up(&log), Lookup::Awaited));
    for second in 1..=3 {
        let call = world.server.call().await;
        assert_eq!((call.at - begin).as_secs(), second);
        call.answer(200, &pod_list(&[])).await;
    }
    let call = world.server.call().await;
    call.answer(200, &pod_list(&[pod("web", 1)])).await;
    let container = world.known(&log).await;
    assert_eq!(text(&container, "k8s.pod.label.app"), Some("web"));
    let call = world.server.call().await;
    assert_eq!(
        (call.at - begin).as_secs(),
        34,
        "nothing is awaited any more"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_what_to_do() {
    let mut world = start();
    world.server.call().await.refuse(403, "Forbidden").await;
    let again = world.server.call().await;
    let error = world.pods.status().last_error.unwrap();
    assert!(error.contains("needs get on nodes/pods"), "{error}");
    again.answer(200, &pod_list(&[])).await;
    world.server.call().await;
    assert_eq!(world.pods.status().last_error, None);
}
