//! The agent in the cluster: installed by its chart, killed, replaced, upgraded, and what its token may do.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::cluster::{Cluster, NAME, until};
use super::token;

/// The label `app` of the agent's pods. While one takes the place of another, it reads the other's log.
pub(crate) const AGENT: &str = "agent";

const READY_MAX: Duration = Duration::from_secs(180);

pub(crate) struct Agent<'a> {
    pub(crate) cluster: &'a Cluster<'a>,
}

impl Agent<'_> {
    /// Installs the chart with this image, endpoint and state directory, and these further values.
    pub(crate) fn install(
        &self,
        image: &str,
        endpoint: &str,
        state: &str,
        more: &[String],
    ) -> Result<()> {
        let (repository, tag) = image
            .rsplit_once(':')
            .context("the image's name needs a tag")?;
        let mut values = vec![
            format!("otlp.endpoint={endpoint}"),
            format!("image.repository={repository}"),
            format!("image.tag={tag}"),
            format!("state.hostPath={state}"),
            format!("presets.podLogs.include.namespaces={{{NAME}}}"),
            "presets.kubernetesAttributes.labels={*}".to_owned(),
            // On a busy node the kubelet takes its time to tell of a container; then all that was said of it is checked.
            "config.pipelines.pods.input.metadata_wait=2m".to_owned(),
            format!("podLabels.app={AGENT}"),
        ];
        values.extend_from_slice(more);
        let mut arguments = vec!["install", NAME, "deploy/helm/tailrace"];
        for value in &values {
            arguments.extend(["--set", value]);
        }
        self.cluster.helm(&arguments)
    }

    /// The agent's pod of a node.
    fn pod(&self, node: &str) -> Result<Value> {
        let selector = format!("--selector=app.kubernetes.io/instance={NAME}");
        let mut pods = self.cluster.get(&["pods", &selector])?;
        let pods = pods["items"]
            .as_array_mut()
            .context("there is no list of pods")?;
        let of_node = pods.iter_mut().find(|pod| {
            pod["spec"]["nodeName"] == node && pod["metadata"]["deletionTimestamp"].is_null()
        });
        of_node
            .map(Value::take)
            .with_context(|| format!("no agent runs on {node}"))
    }

    /// Whether a node's agent is a process of this machine, so that it can be killed.
    pub(crate) fn is_here(&self, node: &str) -> bool {
        self.pod(node)
            .is_ok_and(|pod| process_of(uid(&pod)).is_some())
    }

    /// Kills the process of a node's agent; the kubelet starts it again.
    pub(crate) fn kill(&self, node: &str) -> Result<()> {
        let pod = self.pod(node)?;
        let process = process_of(uid(&pod)).context("the agent's process is gone")?;
        let done = Command::new("kill")
            .args(["-9", &process.to_string()])
            .status();
        ensure!(
            done.context("cannot start kill")?.success(),
            "the agent cannot be killed"
        );
        let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
        let before = restarts(&pod);
        until("the killed agent to be ready again", READY_MAX, || {
            let pod = self.pod(node)?;
            Ok((is_ready(&pod) && restarts(&pod) > before).then_some(()))
        })
    }

    /// Takes a node's agent away without any grace; the DaemonSet makes another.
    pub(crate) fn replace(&self, node: &str) -> Result<()> {
        let pod = self.pod(node)?;
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        self.cluster
            .report(&["delete", "pod", name, "--grace-period=0", "--force"])?;
        until("another agent to be ready", READY_MAX, || {
            let new = self.pod(node).ok();
            let is_new = |new: &Value| uid(new) != uid(&pod) && is_ready(new);
            Ok(new.is_some_and(|new| is_new(&new)).then_some(()))
        })
    }

    pub(crate) fn upgrade(&self) -> Result<()> {
        let change = "podAnnotations.revision=two";
        self.cluster.helm(&[
            "upgrade",
            NAME,
            "deploy/helm/tailrace",
            "--reuse-values",
            "--set",
            change,
        ])
    }

    pub(crate) fn roll_back(&self) -> Result<()> {
        self.cluster.helm(&["rollback", NAME, "1"])
    }

    pub(crate) fn uninstall(&self) -> Result<()> {
        self.cluster.helm(&["uninstall", NAME])
    }

    /// Checks that the agent's token may get, list and watch pods, and nothing else anywhere.
    pub(crate) fn check_token(&self) -> Result<()> {
        let account = format!("--as=system:serviceaccount:{NAME}:{NAME}");
        for namespace in [NAME, "kube-system"] {
            let list = [
                "auth",
                "can-i",
                "--list",
                "--no-headers",
                &account,
                "--namespace",
                namespace,
            ];
            token::check(&self.cluster.report(&list)?)?;
        }
        Ok(())
    }

    /// What the agents said and counted, for whoever has to find out why a check failed.
    pub(crate) fn describe(&self) -> String {
        let selector = format!("--selector=app.kubernetes.io/instance={NAME}");
        let mut text = self
            .cluster
            .report(&["get", "pods", "--output=wide"])
            .unwrap_or_default();
        let logs = [
            "logs",
            &selector,
            "--tail=40",
            "--prefix",
            "--all-containers",
        ];
        text += &self.cluster.report(&logs).unwrap_or_default();
        let names = [
            "get",
            "pods",
            &selector,
            "--output=jsonpath={.items[*].metadata.name}",
        ];
        for pod in self
            .cluster
            .report(&names)
            .unwrap_or_default()
            .split_whitespace()
        {
            let path = format!("/api/v1/namespaces/{NAME}/pods/{pod}:9464/proxy/metrics");
            let metrics = self
                .cluster
                .report(&["get", "--raw", &path])
                .unwrap_or_default();
            let counted = metrics
                .lines()
                .filter(|line| !line.starts_with('#') && !line.ends_with(" 0"));
            text.extend(counted.flat_map(|line| [line, "\n"]));
        }
        text
    }
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap_or_default()
}

fn is_ready(pod: &Value) -> bool {
    pod["status"]["containerStatuses"][0]["ready"] == true
}

/// The process of a pod whose program is the agent, if it is one of this machine.
fn process_of(uid: &str) -> Option<u32> {
    // systemd's control groups are named with another line.
    let names = [format!("pod{uid}"), format!("pod{}", uid.replace('-', "_"))];
    fs::read_dir("/proc")
        .ok()?
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let id = path.file_name()?.to_str()?.parse().ok()?;
            let groups = fs::read_to_string(path.join("cgroup")).ok()?;
            let program = fs::read_to_string(path.join("comm")).ok()?;
            let is_ours = names.iter().any(|name| groups.contains(name.as_str()));
            (is_ours && program.trim() == "tailrace").then_some(id)
        })
        .next()
}
