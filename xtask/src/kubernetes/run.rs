//! One run: makes the writers, waits for what they write, and disturbs the agent meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::arrived::Arrived;
use super::cluster::{Cluster, NAME, until};
use super::kubelet::Kubelet;
use super::writers::{Kind, Pod, Writer};
use crate::steps::Steps;

const START_MAX: Duration = Duration::from_secs(120);
const ARRIVE_MAX: Duration = Duration::from_secs(300);

/// Bytes of one generated line in its file, the runtime's prefix included.
const LINE_BYTES: u64 = 240;

pub(crate) struct Run<'a> {
    cluster: &'a Cluster<'a>,
    image: &'a str,
    arrived: Arrived,
    kubelet: Kubelet,
    /// The writers so far, each with its pod.
    writers: Vec<(Writer, Pod)>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster<'a>,
        kubelet: Kubelet,
        image: &'a str,
        arrived: Arrived,
    ) -> Run<'a> {
        Run {
            cluster,
            image,
            arrived,
            kubelet,
            writers: Vec::new(),
        }
    }

    /// The node of the first writer.
    pub(crate) fn node(&self) -> Option<String> {
        self.writers.first().map(|(_, pod)| pod.node.clone())
    }

    /// One pod of each shape, until all that they wrote has arrived.
    pub(crate) fn shapes(&mut self) -> Result<()> {
        self.short_lived()?;
        let writers = Writer::all();
        let objects: Vec<_> = writers.iter().map(|one| one.object(self.image)).collect();
        self.cluster.apply(&objects)?;
        for writer in writers {
            let pod = self.pod(&writer)?;
            self.writers.push((writer, pod));
        }
        if let Some(path) = &self.kubelet.static_pod {
            let writer = Writer::new("static", Kind::Static, 200, "");
            fs::write(path, writer.object(self.image).to_string())
                .with_context(|| format!("cannot write {}", path.display()))?;
            let pod = self.pod(&writer)?;
            self.writers.push((writer, pod));
        } else {
            println!("no static pod: no directory of this machine is the kubelet's staticPodPath");
        }
        self.relabel()?;
        self.wait(ARRIVE_MAX)
    }

    /// A pod that lives one second and is deleted at once: nothing but the agent's open files keeps its log.
    fn short_lived(&mut self) -> Result<()> {
        let writer = Writer::new("short-lived", Kind::Once, 100, "--rate 100");
        self.cluster.apply(&[writer.object(self.image)])?;
        let pod = self.pod(&writer)?;
        self.ended(&writer)?;
        self.cluster
            .report(&["delete", "pod", &writer.name, "--wait=false"])?;
        self.writers.push((writer, pod));
        Ok(())
    }

    /// Changes a label of a pod that writes: what is read later says so.
    fn relabel(&mut self) -> Result<()> {
        self.first("labelled")?;
        self.cluster
            .report(&["label", "pod", "labelled", "phase=after"])?;
        until("records with the new label", ARRIVE_MAX, || {
            self.arrived.read()?;
            Ok(self
                .arrived
                .of("labelled")
                .iter()
                .any(|one| one.resource.contains_key("k8s.pod.label.phase"))
                .then_some(()))
        })
    }

    /// Does something to the agent while a writer makes the kubelet rotate its log.
    pub(crate) fn disturb(
        &mut self,
        steps: &mut Steps,
        name: &str,
        may_repeat: bool,
        act: impl FnOnce() -> Result<()>,
    ) -> bool {
        steps.run(
            &format!("kubernetes: agent {name} under a fast writer"),
            || {
                let rate =
                    (self.kubelet.rotate_bytes / LINE_BYTES / self.kubelet.rotate_seconds).max(1);
                let lines = rate * self.kubelet.rotate_seconds * 4;
                let mut writer = Writer::new(name, Kind::Once, lines, &format!("--rate {rate}"));
                writer.may_repeat = may_repeat;
                self.cluster.apply(&[writer.object(self.image)])?;
                let pod = self.pod(&writer)?;
                self.first(name)?;
                let started = Instant::now();
                act()?;
                let arrived = self.arrived_of(name)?;
                println!(
                    "{name} in {:.1} s; {arrived} of {lines} records arrived by then",
                    started.elapsed().as_secs_f64()
                );
                self.ended(&writer)?;
                println!("{} rotated files stand beside its log now", rotated(&pod));
                self.writers.push((writer, pod));
                self.wait(ARRIVE_MAX)
            },
        )
    }

    /// Checks each record of all writers, and prints a table of them.
    pub(crate) fn check(&mut self) -> Result<()> {
        self.arrived.read()?;
        println!(
            "{:14} {:>8} {:>8} {:>6}",
            "writer", "written", "arrived", "again"
        );
        let mut wrong = Vec::new();
        for (writer, pod) in &self.writers {
            match writer.check(&self.arrived, pod) {
                Ok((distinct, again)) => {
                    println!(
                        "{:14} {:8} {distinct:8} {again:6}",
                        writer.name,
                        writer.lines * writer.instances
                    );
                }
                Err(error) => wrong.push(format!("{error:#}")),
            }
        }
        wrong.extend(self.label_went_back());
        wrong.extend(
            self.arrived
                .strays
                .iter()
                .take(5)
                .map(|text| format!("a piece of a record: {text}")),
        );
        ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
        Ok(())
    }

    /// The label that was added is on every record after the first that has it.
    fn label_went_back(&self) -> Option<String> {
        let records = self.arrived.of("labelled").iter();
        let by_number: BTreeMap<u64, bool> = records
            .map(|one| (one.seq, one.resource.contains_key("k8s.pod.label.phase")))
            .collect();
        let mut after = by_number.iter().skip_while(|(_, is_new)| !**is_new);
        let (number, _) = after.find(|(_, is_new)| !**is_new)?;
        Some(format!(
            "labelled: record {number} has the old labels, and one before it the new ones"
        ))
    }

    fn arrived_of(&mut self, name: &str) -> Result<usize> {
        self.arrived.read()?;
        Ok(self.arrived.of(name).len())
    }

    fn first(&mut self, name: &str) -> Result<()> {
        until(&format!("the first record of {name}"), START_MAX, || {
            Ok((self.arrived_of(name)? > 0).then_some(()))
        })
    }

    /// Waits until all that the writers wrote has arrived.
    fn wait(&mut self, limit: Duration) -> Result<()> {
        let mut left = Vec::new();
        let done = until("all records", limit, || {
            self.arrived.read()?;
            left.clear();
            for (writer, _) in &self.writers {
                if writer.kind != Kind::Excluded && !writer.is_complete(&self.arrived)? {
                    left.push(format!(
                        "{} ({} came)",
                        writer.name,
                        self.arrived.of(&writer.name).len()
                    ));
                }
            }
            Ok(left.is_empty().then_some(()))
        });
        done.with_context(|| format!("records are missing of {}", left.join(", ")))
    }

    /// The writer's pod, when a node has it.
    fn pod(&self, writer: &Writer) -> Result<Pod> {
        let selector = format!("--selector=app={}", writer.name);
        until(
            &format!("a node to take the pod of {}", writer.name),
            START_MAX,
            || {
                let pods = self.cluster.get(&["pods", &selector])?;
                let pod = &pods["items"][0];
                let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
                let facts = [
                    &pod["metadata"]["name"],
                    &pod["metadata"]["uid"],
                    &pod["spec"]["nodeName"],
                ]
                .map(text);
                let [Some(name), Some(uid), Some(node)] = facts else {
                    return Ok(None);
                };
                Ok(Some(Pod { name, uid, node }))
            },
        )
    }

    fn ended(&self, writer: &Writer) -> Result<()> {
        let limit = START_MAX + Duration::from_secs(self.kubelet.rotate_seconds * 4);
        until(
            &format!("the end of the pod {}", writer.name),
            limit,
            || {
                let pod = self.cluster.get(&["pod", &writer.name])?;
                match pod["status"]["phase"].as_str() {
                    Some("Succeeded") => Ok(Some(())),
                    Some("Failed") => bail!("the pod {} failed: {}", writer.name, pod["status"]),
                    _ => Ok(None),
                }
            },
        )
    }
}

/// How many rotated files a pod's log has, where its node is this machine.
fn rotated(pod: &Pod) -> usize {
    let dir = format!("/var/log/pods/{NAME}_{}_{}/app", pod.name, pod.uid);
    fs::read_dir(dir).map_or(0, |files| files.count().saturating_sub(1))
}
