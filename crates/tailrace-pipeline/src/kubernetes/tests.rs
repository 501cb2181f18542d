//! Which files an input follows.

use std::path::Path;

use super::*;

/// The input with these options.
fn input(options: &str) -> KubernetesInput {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tailrace.yaml");
    let text = format!(
        "data_dir: /nowhere\npipelines: {{p: {{input: {{type: kubernetes, exclude_self: false, {options}}}, \
         output: {{type: discard}}}}}}\n"
    );
    std::fs::write(&path, text).unwrap();
    let loaded = tailrace_config::load(std::slice::from_ref(&path), &|_| None).unwrap();
    match &loaded.pipelines["p"].inputs[0] {
        tailrace_config::Input::Kubernetes(input, _) => (**input).clone(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check(options: &str, read: &[&str], left_out: &[&str]) {
    let globs = file_config(&input(options)).globs().unwrap();
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
    let config = pods_config(&input("pod_selector: 'app=web'"));
    assert!(config.check().is_ok());
    let config = pods_config(&input("pod_selector: 'app in web'"));
    let error = config.check().unwrap_err();
    assert_eq!(error.field(), "pod_selector");
}

#[test]
fn a_directory_of_logs_is_no_glob() {
    check(
        "logs_dir: '/logs [1]/'",
        &["/logs [1]/shop_web-0_6ba7b810/app/0.log"],
        &["/logs 1/shop_web-0_6ba7b810/app/0.log"],
    );
}
