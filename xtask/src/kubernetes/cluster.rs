//! The cluster that KUBECONFIG names: kubectl and helm, bounded waiting, and undoing it all.

use std::env;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::workspace::{Workspace, capture, on_path, run};

/// The namespace of everything the test makes, and the release of the chart in it.
pub(crate) const NAME: &str = "tailrace-test";

/// Between two looks at what tells nothing by itself.
const POLL: Duration = Duration::from_millis(500);

/// Asks until there is an answer; an error names what it waited for.
pub(crate) fn until<T>(
    what: &str,
    limit: Duration,
    mut ask: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            bail!("waited {} s for {what}, in vain", limit.as_secs());
        }
        thread::sleep(POLL);
    }
}

/// Commands to one cluster, all in the test's namespace.
pub(crate) struct Cluster<'a> {
    workspace: &'a Workspace,
}

impl<'a> Cluster<'a> {
    /// Finds the programs and the cluster; an error says what is missing and where to get it.
    pub(crate) fn find(workspace: &'a Workspace) -> Result<Cluster<'a>> {
        for (program, from) in [
            ("kubectl", "https://kubernetes.io/docs/tasks/tools"),
            ("helm", "https://helm.sh/docs/intro/install"),
        ] {
            if !on_path(program) {
                bail!("{program} is not on the PATH; get it from {from}");
            }
        }
        if env::var_os("KUBECONFIG").is_none() {
            bail!(
                "KUBECONFIG is not set; it has to name the cluster to test on, such as one of kind"
            );
        }
        let cluster = Cluster { workspace };
        let mut ready = cluster.kubectl(&["get", "--raw", "/readyz"]);
        capture(&mut ready).context("the cluster that KUBECONFIG names does not answer")?;
        let there = [
            "get",
            "namespace",
            NAME,
            "--ignore-not-found",
            "--output=name",
        ];
        if !capture(&mut cluster.kubectl(&there))?.trim().is_empty() {
            bail!(
                "the namespace {NAME} is there: another test is running, or one was cut off; \
                 `kubectl delete namespace {NAME}` removes it"
            );
        }
        Ok(cluster)
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut command = self
            .workspace
            .command("kubectl", &["--request-timeout=30s"]);
        command.args(["--namespace", NAME]).args(arguments);
        command
    }

    /// Runs kubectl to its end, and gives what it said.
    pub(crate) fn report(&self, arguments: &[&str]) -> Result<String> {
        capture(&mut self.kubectl(arguments))
    }

    /// Objects as the server has them.
    pub(crate) fn get(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.report(&[&["get", "--output=json"], arguments].concat())?;
        serde_json::from_str(&text).context("kubectl printed no JSON")
    }

    pub(crate) fn apply(&self, objects: &[Value]) -> Result<()> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let mut command = self.kubectl(&["apply", "--filename=-"]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start kubectl")?;
        let mut stdin = child
            .stdin
            .take()
            .context("kubectl has no standard input")?;
        stdin.write_all(list.to_string().as_bytes())?;
        drop(stdin);
        if !child.wait()?.success() {
            bail!("kubectl apply failed");
        }
        Ok(())
    }

    /// Makes the namespace; its pods may mount directories of their node, as the agent must.
    pub(crate) fn make_namespace(&self) -> Result<()> {
        let labels = json!({"pod-security.kubernetes.io/enforce": "privileged"});
        let metadata = json!({"name": NAME, "labels": labels});
        self.apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})])?;
        until(
            "the namespace's service account",
            Duration::from_secs(60),
            || {
                let account = [
                    "get",
                    "serviceaccount",
                    "default",
                    "--ignore-not-found",
                    "--output=name",
                ];
                Ok((!self.report(&account)?.trim().is_empty()).then_some(()))
            },
        )
    }

    /// helm, which waits itself until what it made is ready.
    pub(crate) fn helm(&self, arguments: &[&str]) -> Result<()> {
        let mut command = self.workspace.command("helm", arguments);
        run(command
            .args(["--namespace", NAME, "--wait", "--timeout=180s"])
            .stdout(Stdio::null()))
    }

    /// What the first node's kubelet was configured with.
    pub(crate) fn kubelet(&self) -> Result<Value> {
        let nodes = self.get(&["nodes"])?;
        let node = nodes["items"][0]["metadata"]["name"]
            .as_str()
            .context("there is no node")?;
        let path = format!("/api/v1/nodes/{node}/proxy/configz");
        let text = self.report(&["get", "--raw", &path])?;
        let mut all: Value = serde_json::from_str(&text).context("the kubelet gave no JSON")?;
        Ok(all["kubeletconfig"].take())
    }

    /// An address of the first node, as pods and, mostly, this machine see it.
    pub(crate) fn node_address(&self) -> Result<String> {
        let nodes = self.get(&["nodes"])?;
        let addresses = nodes["items"][0]["status"]["addresses"].as_array();
        let internal = addresses
            .into_iter()
            .flatten()
            .find(|one| one["type"] == "InternalIP");
        let address = internal.and_then(|one| one["address"].as_str());
        Ok(address
            .context("the first node has no InternalIP")?
            .to_owned())
    }
}

/// Undoes what the test made when this process ends, however it ends: a shell that waits for the end of a pipe which
/// only this process holds.
pub(crate) struct Cleanup {
    shell: Child,
}

/// $1 the name, $2 the collector's process, $3 the state directory, if it is one of this machine, $4 a static pod.
const UNDO: &str = r#"trap '' INT TERM HUP
cat > /dev/null
[ -z "$4" ] || rm -f -- "$4"
helm uninstall "$1" --namespace "$1" --ignore-not-found --wait --timeout 90s
kubectl delete namespace "$1" --ignore-not-found --timeout 180s
kill "$2" 2> /dev/null
rm -rf -- "$3""#;

impl Cleanup {
    pub(crate) fn later(collector: u32, state: &str, static_pod: Option<&Path>) -> Result<Cleanup> {
        let mut command = Command::new("sh");
        command.args(["-c", UNDO, "sh", NAME, &collector.to_string(), state]);
        command.arg(static_pod.unwrap_or(Path::new("")));
        let shell = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
        Ok(Cleanup {
            shell: shell.context("cannot start sh")?,
        })
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        println!("removing the namespace {NAME}");
        drop(self.shell.stdin.take());
        // It says by itself what it could not undo.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_an_answer_or_says_for_what() {
        let mut asked = 0;
        let answer = until("three", Duration::from_secs(60), || {
            asked += 1;
            Ok((asked == 3).then_some(asked))
        });
        assert_eq!(answer.expect("an answer"), 3);
        let error = until::<()>("the moon", Duration::ZERO, || Ok(None)).expect_err("none");
        assert_eq!(error.to_string(), "waited 0 s for the moon, in vain");
        let error = until::<()>("x", Duration::from_secs(60), || bail!("broken")).expect_err("one");
        assert_eq!(error.to_string(), "broken");
    }
}
