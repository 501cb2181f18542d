//! Attributes of pods, written out.

use serde_json::{Value, json};

use super::*;
use crate::config::{Config, MetadataSource};
use crate::wire;

fn log() -> PodLog {
    PodLog {
        namespace: "shop".to_owned(),
        pod: "web-1".to_owned(),
        uid: "uid-1".to_owned(),
        container: "app".to_owned(),
        restart_count: Some(2),
    }
}

fn config(service_from_labels: bool) -> Config {
    Config {
        node_name: Some("node-1".to_owned()),
        service_from_labels,
        ..Config::new(MetadataSource::Path)
    }
}

fn facts(pod: Value, rules: &Rules) -> Facts {
    let pod: wire::Pod = serde_json::from_value(pod).unwrap();
    Facts::new(pod, None, rules)
}

fn all(pod: Value, config: &Config) -> Vec<(Box<str>, Attribute)> {
    let rules = Rules::new(config).unwrap();
    of_container(&facts(pod, &rules), &log(), &rules)
}

fn pod(labels: &Value, annotations: &Value, owner: Option<(&str, &str)>, image: &str) -> Value {
    let owners: Vec<Value> = owner
        .iter()
        .map(|(kind, name)| json!({"kind": kind, "name": name, "controller": true}))
        .collect();
    json!({
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "uid-1", "labels": labels,
                     "annotations": annotations, "ownerReferences": owners},
        "spec": {"containers": [{"name": "app", "image": image}]},
    })
}

/// `name=text` of each text attribute whose key begins so.
fn texts(attributes: &[(Box<str>, Attribute)], prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in attributes {
        if let (true, Attribute::Str(value)) = (key.starts_with(prefix), value) {
            found.push(format!("{key}={value}"));
        }
    }
    found.sort();
    found
}

fn check_service(pod: &Value, from_labels: bool, name: &str, version: Option<&str>) {
    let attributes = all(pod.clone(), &config(from_labels));
    let mut expect = vec![
        "service.instance.id=shop.web-1.app".to_owned(),
        format!("service.name={name}"),
        "service.namespace=shop".to_owned(),
    ];
    expect.extend(version.map(|version| format!("service.version={version}")));
    assert_eq!(texts(&attributes, "service."), expect, "{pod}");
}

/// The order of the published text, from the last choice to the first but one.
#[test]
fn service_by_the_published_order() {
    let (none, image) = (json!({}), "r.io:5000/web:1.2@sha256:aa");
    let check = |owner, expect| {
        let pod = pod(&none, &none, owner, image);
        check_service(&pod, true, expect, Some("1.2@sha256:aa"));
    };
    check(None, "web-1");
    check(Some(("Job", "nightly")), "nightly");
    check(Some(("Job", "nightly-29912345")), "nightly");
    check(Some(("DaemonSet", "agents")), "agents");
    check(Some(("StatefulSet", "db")), "db");
    check(Some(("ReplicaSet", "web-5d9f")), "web-5d9f");
    check(Some(("Node", "node-1")), "web-1");

    let owner = Some(("ReplicaSet", "web-5d9f"));
    let mut labels = json!({"pod-template-hash": "5d9f"});
    check_service(
        &pod(&labels, &none, owner, "web:1.2"),
        true,
        "web",
        Some("1.2"),
    );
    labels["app.kubernetes.io/name"] = json!("webshop");
    check_service(
        &pod(&labels, &none, owner, "web@sha256:aa"),
        true,
        "webshop",
        Some("sha256:aa"),
    );
    labels["app.kubernetes.io/instance"] = json!("webshop-eu");
    check_service(&pod(&labels, &none, owner, "web"), true, "webshop-eu", None);
    labels["app.kubernetes.io/version"] = json!("7.0");
    let labelled = pod(&labels, &none, owner, "web:1.2");
    check_service(&labelled, true, "webshop-eu", Some("7.0"));
    // Labels only for those who ask for it.
    check_service(&labelled, false, "web", Some("1.2"));
}

#[test]
fn annotations_win_over_everything() {
    let labels = json!({"app.kubernetes.io/name": "webshop", "app.kubernetes.io/version": "7"});
    let annotations = json!({
        "resource.opentelemetry.io/service.name": "a",
        "resource.opentelemetry.io/service.namespace": "b",
        "resource.opentelemetry.io/service.version": "c",
        "resource.opentelemetry.io/service.instance.id": "d",
        "resource.opentelemetry.io/team": "e",
        "resource.opentelemetry.io/k8s.node.name": "f",
        "resource.opentelemetry.io/": "no key",
        "resource.opentelemetry.io/empty": "",
        "other.io/x": "y",
    });
    let attributes = all(pod(&labels, &annotations, None, "web:1"), &config(true));
    let mut keys: Vec<&str> = attributes.iter().map(|(key, _)| &**key).collect();
    keys.sort_unstable();
    let count = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), count, "each key once");
    let expect = [
        "service.instance.id=d",
        "service.name=a",
        "service.namespace=b",
        "service.version=c",
    ];
    assert_eq!(texts(&attributes, "service."), expect);
    assert_eq!(texts(&attributes, "team"), ["team=e"]);
    assert_eq!(texts(&attributes, "k8s.node"), ["k8s.node.name=f"]);
    assert_eq!(texts(&attributes, "empty"), [""; 0]);
    assert_eq!(texts(&attributes, "other"), [""; 0]);
}

#[test]
fn owners_by_name() {
    let check = |kind, name, labels: Value, expect: &[&str]| {
        let owned = pod(&labels, &json!({}), Some((kind, name)), "i");
        let attributes = all(owned, &config(false));
        let mut found = texts(&attributes, "k8s.");
        found.retain(|text| {
            ["namespace.", "pod.", "container.", "node."]
                .iter()
                .all(|other| !text["k8s.".len()..].starts_with(other))
        });
        assert_eq!(found, expect, "{kind} {name}");
    };
    let none = || json!({});
    let hash = json!({"pod-template-hash": "abc"});
    check(
        "ReplicaSet",
        "my-web-abc",
        hash.clone(),
        &[
            "k8s.deployment.name=my-web",
            "k8s.replicaset.name=my-web-abc",
        ],
    );
    check("ReplicaSet", "bare", hash, &["k8s.replicaset.name=bare"]);
    check(
        "ReplicaSet",
        "x-abc",
        none(),
        &["k8s.replicaset.name=x-abc"],
    );
    check("StatefulSet", "db", none(), &["k8s.statefulset.name=db"]);
    check("DaemonSet", "ds", none(), &["k8s.daemonset.name=ds"]);
    check(
        "Job",
        "nightly-29912345",
        none(),
        &["k8s.cronjob.name=nightly", "k8s.job.name=nightly-29912345"],
    );
    // Names that end in a number or a date are not a cron job's.
    for name in [
        "load-2",
        "backup-20261121",
        "nightly-2991234x",
        "-29912345",
        "29912345",
    ] {
        check("Job", name, none(), &[&format!("k8s.job.name={name}")]);
    }
    check("Node", "node-1", none(), &[]);
}

#[test]
fn labels_and_annotations_that_are_asked_for() {
    let labels = json!({"app": "web", "app.kubernetes.io/part-of": "shop", "empty": "", "x": "1"});
    let annotations =
        json!({"note/a": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"});
    let config = Config {
        labels: ["app*", "empty"].map(str::to_owned).to_vec(),
        annotations: vec!["note/*".to_owned()],
        ..config(false)
    };
    let taken = pod(&labels, &annotations, None, "i");
    let attributes = all(taken.clone(), &config);
    assert_eq!(
        texts(&attributes, "k8s.pod.label."),
        [
            "k8s.pod.label.app.kubernetes.io/part-of=shop",
            "k8s.pod.label.app=web",
            "k8s.pod.label.empty=",
        ]
    );
    assert_eq!(
        texts(&attributes, "k8s.pod.annotation."),
        ["k8s.pod.annotation.note/a=n"]
    );
    // What nobody asks for is not even kept.
    let kept = facts(taken, &Rules::new(&config).unwrap()).annotations;
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["note/a"]);
}

#[test]
fn what_excludes_a_log() {
    let check = |labels: Value, annotations: Value, selector: &str, expect: Option<&str>| {
        let config = Config {
            pod_selector: selector.to_owned(),
            ..config(false)
        };
        let rules = Rules::new(&config).unwrap();
        let facts = facts(pod(&labels, &annotations, None, "i"), &rules);
        assert_eq!(
            rules.excluded(&facts.labels, &facts.annotations),
            expect,
            "{labels} {annotations}"
        );
    };
    let none = || json!({});
    check(none(), none(), "", None);
    for (key, value, other) in [
        ("tailrace.io/exclude", "true", "false"),
        ("fluentbit.io/exclude", "true", "false"),
        ("io.opentelemetry.discovery.logs/enabled", "false", "true"),
    ] {
        let rule = format!("annotation {key}");
        check(none(), json!({key: value}), "", Some(&rule));
        check(none(), json!({key: other}), "", None);
        check(json!({key: value}), none(), "", None);
    }
    let label = json!({"vector.dev/exclude": "true"});
    check(label, none(), "", Some("label vector.dev/exclude"));
    check(json!({"vector.dev/exclude": "no"}), none(), "", None);
    check(json!({"a": "b"}), none(), "a in (b),!c", None);
    check(
        json!({"a": "b", "c": ""}),
        none(),
        "a in (b),!c",
        Some("pod_selector"),
    );
}

#[test]
fn all_of_a_running_container_in_order() {
    let mut running = pod(&json!({"app": "web"}), &json!({}), None, "r.io/web:1.2");
    running["spec"]["nodeName"] = json!("node-9");
    running["metadata"]["uid"] = json!("uid-of-the-api");
    running["status"]["containerStatuses"] = json!([{
        "name": "app", "restartCount": 2, "containerID": "containerd://c2", "imageID": "r.io/web@sha256:aa",
    }]);
    let config = Config {
        labels: vec!["app".to_owned()],
        ..config(false)
    };
    let str = |text: &str| Attribute::Str(text.into());
    let list = |text: &str| Attribute::List(vec![text.into()]);
    let expect: Vec<(Box<str>, Attribute)> = [
        ("k8s.namespace.name", str("shop")),
        ("k8s.pod.name", str("web-1")),
        ("k8s.pod.uid", str("uid-of-the-api")),
        ("k8s.container.name", str("app")),
        ("k8s.container.restart_count", Attribute::Int(2)),
        ("k8s.node.name", str("node-9")),
        ("service.name", str("web-1")),
        ("service.namespace", str("shop")),
        ("service.instance.id", str("shop.web-1.app")),
        ("service.version", str("1.2")),
        ("container.id", str("c2")),
        ("container.image.name", str("r.io/web")),
        ("container.image.tags", list("1.2")),
        ("container.image.repo_digests", list("r.io/web@sha256:aa")),
        ("k8s.pod.label.app", str("web")),
    ]
    .map(|(key, value)| (key.into(), value))
    .to_vec();
    assert_eq!(all(running, &config), expect);

    let mut of_path = path_attributes(&log(), Some("node-9"));
    of_path[2].1 = str("uid-of-the-api");
    assert_eq!(of_path, expect[..9]);
    let log = PodLog {
        restart_count: None,
        ..log()
    };
    assert_eq!(path_attributes(&log, None).len(), 7);
}
