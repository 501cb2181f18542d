//! Which files an input follows.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tailrace_inputs::InputOptions;
use tailrace_kubernetes::MetadataSource;
use tailrace_testkit::{PodsApi, pod};

use super::*;
use crate::input::facts::{CurrentFacts, FactsConfig};

/// The input with these options.
fn input(options: &str) -> Arc<dyn InputOptions> {
    let loaded = load(options).unwrap();
    Arc::clone(&loaded.pipelines["p"].inputs[0].kind)
}

fn load(options: &str) -> Result<tailrace_config::Config, Vec<tailrace_config::Diagnostic>> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tailrace.yaml");
    let text = format!(
        "data_dir: /nowhere\npipelines: {{p: {{input: {{type: kubernetes, exclude_self: false, {options}}}, \
         output: {{type: discard}}}}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    tailrace_config::load(std::slice::from_ref(&path), &|_| None)
}

#[track_caller]
fn check(options: &str, read: &[&str], left_out: &[&str]) {
    let globs = input(options).files().unwrap().globs().unwrap();
    for path in read {
        assert!(
            globs.matches(Path::new(path)),
            "{path} is to be read: {options}"
        );
    }
    for path in left_out {
        assert!(
            !globs.matches(Path::new(path)),
            "{path} is to be left out: {options}"
        );
    }
}

#[test]
fn containers_are_chosen_by_the_names_in_their_paths() {
    let web = "/var/log/pods/shop_web-0_6ba7b810/app/0.log";
    let proxy = "/var/log/pods/shop_web-0_6ba7b810/proxy/12.log";
    let test = "/var/log/pods/shop-test_web-0_6ba7b810/app/0.log";
    let dns = "/var/log/pods/kube-system_dns_d2/dns/3.log";
    check(
        "",
        &[web, proxy, test, dns],
        &["/var/log/pods/shop_web-0_6ba7b810/app/0.log.20260101-010101"],
    );
    check(
        "include: {namespaces: [shop, 'kube-*']}",
        &[web, proxy, dns],
        &[test],
    );
    check(
        "include: {namespaces: ['shop*'], containers: [app]}",
        &[web, test],
        &[proxy, dns],
    );
    check("include: {pods: ['web-{0,1}', dns]}", &[web, dns], &[]);
    check(
        "exclude: {namespaces: ['*-system', shop-test]}",
        &[web, proxy],
        &[dns, test],
    );
    check("exclude: {pods: ['web-*']}", &[dns], &[web, proxy, test]);
    check("exclude: {containers: [proxy]}", &[web, dns], &[proxy]);
    check(
        "include: {pods: [web]}, exclude: {pods: [shop]}",
        &[],
        &[web, dns],
    );
}

#[test]
fn a_selector_that_is_none_is_told_at_its_input() {
    let pods = input("pod_selector: 'app=web'").pods().unwrap();
    assert_eq!(pods.config.pod_selector, "app=web");
    let errors = load("pod_selector: 'app in web'").unwrap_err();
    let error = errors[0].to_string();
    assert!(error.contains("tailrace.yaml:2:"), "{error}");
    assert!(error.contains("pod_selector"), "{error}");
}

#[test]
fn a_directory_of_logs_is_no_glob() {
    check(
        "logs_dir: '/logs [1]/'",
        &["/logs [1]/shop_web-0_6ba7b810/app/0.log"],
        &["/logs 1/shop_web-0_6ba7b810/app/0.log"],
    );
}

/// A node whose API server forgets nothing, and a store that forgets pods at once unless somebody holds what was said.
struct World {
    api: PodsApi,
    facts: FactsConfig,
    changes: mpsc::Receiver<()>,
    _runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

impl World {
    fn new(metadata_wait: Duration) -> World {
        let (dir, api) = (tempfile::tempdir().unwrap(), PodsApi::start());
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        let (changed, changes) = mpsc::sync_channel(1024);
        let on_change = Arc::new(move || {
            let _ = changed.try_send(());
        });
        let kubeconfig = Some(api.kubeconfig(dir.path()));
        let config = tailrace_kubernetes::Config {
            node_name: Some("node-1".to_owned()),
            metadata_wait,
            remember_deleted: Duration::from_millis(1),
            ..tailrace_kubernetes::Config::new(MetadataSource::Api { kubeconfig })
        };
        let node = NodePods {
            pods: Pods::start(config, runtime.handle(), on_change).unwrap(),
            logs_dir: "/var/log/pods".into(),
            node_name: Some("node-1".to_owned()),
        };
        let facts = FactsConfig {
            resource: Vec::new(),
            encodings: Vec::new(),
            files: true,
            framing: None,
            pods: Some((node, Counter::default())),
        };
        World {
            api,
            facts,
            changes,
            _runtime: runtime,
            _dir: dir,
        }
    }

    fn until(&self, mut done: impl FnMut(&FactsConfig) -> bool) {
        while !done(&self.facts) {
            let change = self.changes.recv_timeout(Duration::from_secs(60));
            assert!(change.is_ok(), "it never came: {:?}", self.status());
        }
    }

    fn status(&self) -> tailrace_kubernetes::Status {
        self.facts.pods.as_ref().unwrap().0.status()
    }

    fn missing(&self) -> u64 {
        self.facts.pods.as_ref().unwrap().1.get()
    }
}

/// The log of a deleted pod may be read much later: it stays left out, or labelled, as it was.
#[test]
fn what_is_said_of_a_pod_outlives_it_as_long_as_its_log_is_read() {
    let world = World::new(Duration::from_secs(600));
    let annotations = serde_json::json!({"annotations": {"tailrace.io/exclude": "true"}});
    let quiet = pod("shop", "web-0", "u1", "app", &annotations);
    world.api.set(quiet.clone());
    let path = Path::new("/var/log/pods/shop_web-0_u1/app/0.log");
    let mut current: CurrentFacts = world.facts.of(path);
    world.until(|facts| {
        facts.refresh(&mut current);
        current.excluded.is_some()
    });
    world.api.delete(quiet);
    world.until(|_| world.status().deleted == 1);
    for number in 0..3 {
        let name = format!("other-{number}");
        let other = pod("shop", &name, &name, "app", &serde_json::json!({}));
        let tracked = world.status().tracked;
        world.api.set(other);
        world.until(|_| world.status().tracked > tracked);
        world.facts.refresh(&mut current);
        assert!(current.excluded.is_some());
        assert_eq!((world.status().deleted, world.missing()), (1, 0));
    }
    drop(current);
}

#[test]
fn what_is_awaited_is_not_missing_until_the_wait_is_over() {
    let world = World::new(Duration::from_millis(50));
    let path = Path::new("/var/log/pods/shop_web-0_u1/app/0.log");
    let mut current = world.facts.of(path);
    assert_eq!(world.missing(), 0);
    world.until(|facts| {
        facts.refresh(&mut current);
        world.missing() == 1
    });
    let is_marked =
        |(key, value): &(String, Value)| key == METADATA_MISSING && *value == Value::Bool(true);
    assert!(current.facts.pod.iter().any(is_marked));
    world
        .api
        .set(pod("shop", "web-0", "u1", "app", &serde_json::json!({})));
    world.until(|facts| {
        facts.refresh(&mut current);
        !current.facts.pod.iter().any(is_marked)
    });
    assert_eq!(world.missing(), 1);
}
