//! The resource attributes of a container, named and computed as OpenTelemetry says. Attributes are made of
//! names and facts, in a fixed order, each key once. Never looks at a record.

use crate::facts::{Facts, Owner};
use crate::image::Image;
use crate::pod_log::PodLog;
use crate::rules::{RESOURCE_PREFIX, Rules};

/// The value of a resource attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// A string.
    Str(Box<str>),
    /// An integer.
    Int(i64),
    /// A list of strings.
    List(Vec<Box<str>>),
}

/// Takes what the path says, gives the attributes known from it alone. The service is the pod itself as far
/// as the path can say.
pub fn path_attributes(log: &PodLog, node_name: Option<&str>) -> Vec<(Box<str>, Attribute)> {
    of_path(log, node_name).0
}

fn of_path(log: &PodLog, node_name: Option<&str>) -> Attributes {
    let mut attributes = Attributes::default();
    attributes.text("k8s.namespace.name", &log.namespace);
    attributes.text("k8s.pod.name", &log.pod);
    attributes.text("k8s.pod.uid", &log.uid);
    attributes.text("k8s.container.name", &log.container);
    if let Some(count) = log.restart_count {
        attributes.set("k8s.container.restart_count", Attribute::Int(count.into()));
    }
    attributes.text("k8s.node.name", node_name.unwrap_or_default());
    attributes.text("service.name", &log.pod);
    attributes.text("service.namespace", &log.namespace);
    let instance = [&*log.namespace, &log.pod, &log.container].join(".");
    attributes.text("service.instance.id", &instance);
    attributes
}

/// Takes the facts of the pod whose log it is, gives everything that is said of the container.
pub(crate) fn of_container(
    facts: &Facts,
    log: &PodLog,
    rules: &Rules,
) -> Vec<(Box<str>, Attribute)> {
    let node_name = Some(&*facts.node_name).filter(|name| !name.is_empty());
    let mut attributes = of_path(log, node_name.or(rules.node_name.as_deref()));
    // A static pod's path has the hash of its config here.
    attributes.text("k8s.pod.uid", &facts.uid);

    let image = facts.image(&log.container).map(Image::parse);
    let owners = owners(facts);
    service(&mut attributes, facts, rules, &owners, image.as_ref());
    for (key, name) in owners {
        attributes.text(key, name);
    }
    container(&mut attributes, facts, log, image.as_ref());
    for (key, value) in &facts.labels {
        if rules.takes_label(key) {
            attributes.any_text(&format!("k8s.pod.label.{key}"), value);
        }
    }
    for (key, value) in &facts.annotations {
        if rules.takes_annotation(key) {
            attributes.any_text(&format!("k8s.pod.annotation.{key}"), value);
        }
    }
    // What the pod's author says of it wins.
    for (key, value) in &facts.annotations {
        if let Some(key) = key.strip_prefix(RESOURCE_PREFIX) {
            attributes.text(key, value);
        }
    }
    attributes.0
}

/// `service.name` and `service.version` by the order OpenTelemetry publishes. Annotations, first in that
/// order, are applied last to everything.
fn service(
    attributes: &mut Attributes,
    facts: &Facts,
    rules: &Rules,
    owners: &[(&'static str, &str)],
    image: Option<&Image<'_>>,
) {
    let label = |key: &str| {
        let value = facts.labels.get(key).filter(|_| rules.service_from_labels);
        value.map(String::as_str).filter(|value| !value.is_empty())
    };
    // The farthest owner is first: the deployment, not its replica set.
    let name = label("app.kubernetes.io/instance")
        .or_else(|| label("app.kubernetes.io/name"))
        .or_else(|| owners.first().map(|(_, name)| *name));
    attributes.text("service.name", name.unwrap_or_default());
    match label("app.kubernetes.io/version") {
        Some(version) => attributes.text("service.version", version),
        None => {
            let version = image.and_then(Image::version);
            attributes.text("service.version", &version.unwrap_or_default());
        }
    }
}

/// The pod's owner and the owner's owner, which its name contains: nothing but pods is asked for.
fn owners(facts: &Facts) -> Vec<(&'static str, &str)> {
    let Some(Owner { kind, name }) = &facts.owner else {
        return Vec::new();
    };
    match kind.as_str() {
        "ReplicaSet" => {
            let hash = facts.labels.get("pod-template-hash");
            let deployment =
                hash.and_then(|hash| name.strip_suffix(hash.as_str())?.strip_suffix('-'));
            let deployment = deployment.map(|name| ("k8s.deployment.name", name));
            let own = ("k8s.replicaset.name", name.as_str());
            deployment.into_iter().chain([own]).collect()
        }
        "Job" => {
            let cronjob = cronjob(name).map(|name| ("k8s.cronjob.name", name));
            let own = ("k8s.job.name", name.as_str());
            cronjob.into_iter().chain([own]).collect()
        }
        "StatefulSet" => vec![("k8s.statefulset.name", name)],
        "DaemonSet" => vec![("k8s.daemonset.name", name)],
        _ => Vec::new(),
    }
}

/// A cron job names its jobs by itself and the minute since 1970 they are due: eight digits from 1989 on.
/// A date such as 20261121 is also eight digits, and less than any minute since 2009.
fn cronjob(job: &str) -> Option<&str> {
    let (name, digits) = job.rsplit_once('-')?;
    let is_minute = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    (is_minute && digits >= "21000000" && !name.is_empty()).then_some(name)
}

fn container(attributes: &mut Attributes, facts: &Facts, log: &PodLog, image: Option<&Image<'_>>) {
    let count = log.restart_count;
    let instance = count.and_then(|count| facts.instance(&log.container, count));
    if let Some(instance) = instance {
        attributes.text("container.id", &instance.id);
    }
    if let Some(image) = image {
        attributes.text("container.image.name", image.name);
        attributes.list("container.image.tags", image.tag);
    }
    if let Some(instance) = instance {
        let digest = instance.repo_digest.as_deref();
        attributes.list("container.image.repo_digests", digest);
    }
}

#[derive(Default)]
struct Attributes(Vec<(Box<str>, Attribute)>);

impl Attributes {
    /// A later value of a key takes the place of an earlier one.
    fn set(&mut self, key: &str, value: Attribute) {
        match self.0.iter_mut().find(|(known, _)| **known == *key) {
            Some((_, known)) => *known = value,
            None => self.0.push((key.into(), value)),
        }
    }

    /// Says nothing where there is nothing to say.
    fn text(&mut self, key: &str, value: &str) {
        if !key.is_empty() && !value.is_empty() {
            self.any_text(key, value);
        }
    }

    /// An empty label is a label.
    fn any_text(&mut self, key: &str, value: &str) {
        self.set(key, Attribute::Str(value.into()));
    }

    fn list(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            self.set(key, Attribute::List(vec![value.into()]));
        }
    }
}

#[cfg(test)]
mod tests;
