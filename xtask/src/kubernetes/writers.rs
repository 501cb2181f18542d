//! The pods that write: one shape of pod each, numbered records by `tailrace generate`, and what has to arrive of them.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::arrived::{Arrived, Attributes, Record};
use super::cluster::NAME;

/// What a long record is filled with: more than two pieces of 16 KiB, as runtimes cut them.
const PAD: usize = 40_000;

/// What writes one stream of numbered records, and what has to arrive of it.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// Of the stream, of the label `app`, and of the pod unless a job or the kubelet names it.
    pub(crate) name: String,
    /// Records of each instance of its container.
    pub(crate) lines: u64,
    /// How often the container runs.
    pub(crate) instances: u64,
    pub(crate) kind: Kind,
    /// Further arguments of `tailrace generate`.
    arguments: Vec<String>,
    /// A record may arrive again: the agent was killed meanwhile.
    pub(crate) may_repeat: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A container that runs once.
    Once,
    /// Ends, and is started again and again.
    Loop,
    /// Writes before the pod's container does, which writes nothing.
    Init,
    /// A pod of a job.
    Job,
    /// A pod that asks not to be read.
    Excluded,
    /// A pod that the kubelet makes from a file.
    Static,
}

/// A pod as the cluster knows it.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) node: String,
}

impl Writer {
    pub(crate) fn new(name: &str, kind: Kind, lines: u64, arguments: &str) -> Writer {
        Writer {
            name: name.to_owned(),
            lines,
            instances: if kind == Kind::Loop { 3 } else { 1 },
            kind,
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            may_repeat: false,
        }
    }

    /// One of each shape.
    pub(crate) fn all() -> Vec<Writer> {
        let writer = Writer::new;
        let pad = format!("--pad {PAD}");
        vec![
            writer("json", Kind::Once, 2000, ""),
            writer("text", Kind::Once, 2000, "--shape text"),
            writer("long-json", Kind::Once, 40, &pad),
            writer("long-text", Kind::Once, 40, &format!("--shape text {pad}")),
            writer("mixed", Kind::Once, 2000, "--shape text --stderr"),
            writer("init", Kind::Init, 200, ""),
            writer("job", Kind::Job, 200, ""),
            writer("crashing", Kind::Loop, 200, "--shape text"),
            writer("excluded", Kind::Excluded, 200, ""),
            writer("burst", Kind::Once, 50_000, ""),
            writer("labelled", Kind::Once, 1500, "--rate 50"),
        ]
    }

    /// The name of the container that writes.
    fn container(&self) -> &'static str {
        if self.kind == Kind::Init {
            "first"
        } else {
            "app"
        }
    }

    /// The object that makes it, of this image.
    pub(crate) fn object(&self, image: &str) -> Value {
        let lines = self.lines.to_string();
        let mut arguments = vec!["generate", "--lines", &lines, "--stream", &self.name];
        arguments.extend(self.arguments.iter().map(String::as_str));
        let container = json!({"name": self.container(), "image": image, "imagePullPolicy": "IfNotPresent",
            "args": arguments});
        let restart = if self.kind == Kind::Loop {
            "Always"
        } else {
            "Never"
        };
        let mut spec = json!({"restartPolicy": restart, "terminationGracePeriodSeconds": 0,
            "containers": [container], "tolerations": [{"operator": "Exists"}]});
        if self.kind == Kind::Init {
            spec["initContainers"] = spec["containers"].take();
            spec["containers"] = json!([{"name": "app", "image": image, "imagePullPolicy": "IfNotPresent",
                "args": ["generate", "--lines", "0"]}]);
        }
        let mut metadata =
            json!({"name": self.name, "namespace": NAME, "labels": {"app": self.name}});
        if self.kind == Kind::Excluded {
            metadata["annotations"] = json!({"tailrace.io/exclude": "true"});
        }
        if self.kind == Kind::Job {
            let template = json!({"metadata": {"labels": {"app": self.name}}, "spec": spec});
            return json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata,
                "spec": {"template": template, "backoffLimit": 0}});
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    }

    /// True when all that was written has arrived.
    pub(crate) fn is_complete(&self, arrived: &Arrived) -> Result<bool> {
        for instance in 0..self.instances {
            if arrived.count(&self.name, instance, self.lines)?.0 < self.lines {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks everything that arrived; gives how many records came, and how many came again.
    pub(crate) fn check(&self, arrived: &Arrived, pod: &Pod) -> Result<(u64, u64)> {
        let name = &self.name;
        let records = arrived.of(name);
        if self.kind == Kind::Excluded {
            ensure!(
                records.is_empty(),
                "{name}: {} records of a pod that asked for none",
                records.len()
            );
            return Ok((0, 0));
        }
        let mut sum = (0, 0);
        for instance in 0..self.instances {
            let (distinct, again) = arrived.count(name, instance, self.lines)?;
            if distinct != self.lines {
                bail!(
                    "{name}: of {} records of instance {instance} {distinct} arrived",
                    self.lines
                );
            }
            sum = (sum.0 + distinct, sum.1 + again);
        }
        if sum.1 > 0 && !self.may_repeat {
            bail!("{name}: {} records arrived again", sum.1);
        }
        // Neighbours share their facts, which are checked once.
        let mut last: Option<&Rc<Attributes>> = None;
        for record in records {
            if !last.is_some_and(|known| Rc::ptr_eq(known, &record.resource)) {
                self.check_facts(&record.resource, pod).with_context(|| {
                    format!("{name}: record {} says {:?}", record.seq, record.resource)
                })?;
                last = Some(&record.resource);
            }
            self.check_record(record)?;
        }
        Ok(sum)
    }

    fn check_facts(&self, facts: &Attributes, pod: &Pod) -> Result<()> {
        // The nearest thing with a name of its own: the job, else the pod.
        let service = if self.kind == Kind::Job {
            &self.name
        } else {
            &pod.name
        };
        let mut expected = BTreeMap::from([
            ("k8s.namespace.name", NAME),
            ("k8s.pod.name", &pod.name),
            ("k8s.pod.uid", &pod.uid),
            ("k8s.node.name", &pod.node),
            ("k8s.container.name", self.container()),
            ("k8s.pod.label.app", &self.name),
            ("service.name", service),
            ("service.namespace", NAME),
        ]);
        if self.kind == Kind::Job {
            expected.insert("k8s.job.name", &self.name);
        }
        for (key, value) in expected {
            let found = facts.get(key).map(String::as_str);
            ensure!(found == Some(value), "{key} should be {value}");
        }
        for key in [
            "container.id",
            "container.image.name",
            "k8s.container.restart_count",
        ] {
            ensure!(facts.contains_key(key), "{key} is missing");
        }
        ensure!(
            !facts.contains_key("tailrace.metadata_missing"),
            "the pod was not known in time"
        );
        Ok(())
    }

    fn check_record(&self, record: &Record) -> Result<()> {
        let Record {
            seq, iostream, pad, ..
        } = record;
        let to_stderr = self.arguments.iter().any(|one| one == "--stderr") && seq % 2 == 1;
        let wanted = if to_stderr { "stderr" } else { "stdout" };
        ensure!(
            iostream == wanted,
            "{}: record {seq} is of {iostream:?}, not {wanted}",
            self.name
        );
        if self.arguments.iter().any(|one| one == "--pad") {
            ensure!(
                *pad == PAD,
                "{}: record {seq} has {pad} of {PAD} bytes of filling",
                self.name
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
