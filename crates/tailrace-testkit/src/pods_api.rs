//! As much of a Kubernetes API server as one agent needs: the pods of its node, listed and watched, over plain HTTP
//! on loopback. Tests add pods as JSON; requests are counted. It checks no token, knows no other path, and refuses
//! to begin a watch with a list, like servers without that feature: clients then list first.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

/// A server of pods.
pub struct PodsApi {
    address: String,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By uid.
    pods: BTreeMap<String, Value>,
    /// Events since the start; an event's place is its version, from 1 on.
    events: Vec<Value>,
    /// Nothing is answered.
    held: bool,
    requests: Vec<String>,
}

impl PodsApi {
    /// Starts it on a free port. It ends with the process.
    pub fn start() -> PodsApi {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Shared::default());
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&served);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        PodsApi { address, shared }
    }

    /// Writes a kubeconfig for it into a directory.
    pub fn kubeconfig(&self, dir: &Path) -> PathBuf {
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", self.address)}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        });
        let path = dir.join("kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// Adds a pod or changes it.
    pub fn set(&self, pod: Value) {
        self.change(pod, |pods, uid, pod| match pods.insert(uid, pod) {
            Some(_) => "MODIFIED",
            None => "ADDED",
        });
    }

    /// Deletes a pod.
    pub fn delete(&self, pod: Value) {
        self.change(pod, |pods, uid, _| {
            pods.remove(&uid);
            "DELETED"
        });
    }

    /// Answers nothing, or answers again.
    pub fn hold(&self, held: bool) {
        self.shared.state.lock().unwrap().held = held;
        self.shared.changed.notify_all();
    }

    /// The paths that were asked for.
    pub fn requests(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    fn change(
        &self,
        mut pod: Value,
        change: impl FnOnce(&mut BTreeMap<String, Value>, String, Value) -> &'static str,
    ) {
        let mut state = self.shared.state.lock().unwrap();
        let version = state.events.len() + 1;
        pod["metadata"]["resourceVersion"] = json!(version.to_string());
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let kind = change(&mut state.pods, uid, pod.clone());
        state.events.push(json!({"type": kind, "object": pod}));
        self.shared.changed.notify_all();
    }
}

/// A pod of one running container, as the API server reports it.
pub fn pod(namespace: &str, name: &str, uid: &str, container: &str, metadata: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"namespace": namespace, "name": name, "uid": uid},
        "spec": {"nodeName": "node-1", "containers": [{"name": container, "image": "registry.example/shop/web:1.2"}]},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": container,
            "restartCount": 0,
            "containerID": "containerd://abc",
            "image": "registry.example/shop/web:1.2",
            "imageID": "registry.example/shop/web@sha256:00",
            "state": {"running": {}},
        }]},
    });
    for (key, value) in metadata.as_object().into_iter().flatten() {
        pod["metadata"][key] = value.clone();
    }
    pod
}

/// One connection, one request after the other; it ends when the client goes.
fn serve(stream: TcpStream, shared: &Shared) {
    let Ok(mut out) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream).lines();
    loop {
        let Some(Ok(first)) = lines.next() else {
            return;
        };
        for line in lines.by_ref() {
            match line {
                Ok(line) if !line.is_empty() => {}
                Ok(_) => break,
                Err(_) => return,
            }
        }
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        if answer(&path, shared, &mut out).is_err() {
            return;
        }
    }
}

fn answer(path: &str, shared: &Shared, out: &mut TcpStream) -> std::io::Result<()> {
    let mut state = shared.state.lock().unwrap();
    state.requests.push(path.to_owned());
    while state.held {
        state = shared.changed.wait(state).unwrap();
    }
    let (place, options) = path.split_once('?').unwrap_or((path, ""));
    if place != PODS {
        return refuse(out, "404 Not Found", "NotFound");
    }
    if options.contains("sendInitialEvents=true") {
        return refuse(out, "422 Unprocessable Entity", "Invalid");
    }
    if path.contains("watch=true") || path.contains("watch=1") {
        drop(state);
        return watch(path, shared, out);
    }
    let list = json!({
        "apiVersion": "v1",
        "kind": "PodList",
        "metadata": {"resourceVersion": state.events.len().to_string()},
        "items": state.pods.values().collect::<Vec<_>>(),
    });
    drop(state);
    respond(out, "200 OK", &list)
}

/// The only resource that it serves.
const PODS: &str = "/api/v1/pods";

/// What the API server says when it says no.
fn refuse(out: &mut TcpStream, status: &str, reason: &str) -> std::io::Result<()> {
    let code: Option<u16> = status.split(' ').next().and_then(|code| code.parse().ok());
    let body = json!({
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "reason": reason,
        "message": "this server only lists and watches pods",
        "code": code,
    });
    respond(out, status, &body)
}

fn respond(out: &mut TcpStream, status: &str, body: &Value) -> std::io::Result<()> {
    let body = body.to_string();
    write!(
        out,
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends every event after the version that the path names, for ever.
fn watch(path: &str, shared: &Shared, out: &mut TcpStream) -> std::io::Result<()> {
    let version = path
        .split(['?', '&'])
        .find_map(|option| option.strip_prefix("resourceVersion="));
    let mut sent: usize = version
        .and_then(|version| version.parse().ok())
        .unwrap_or(0);
    write!(
        out,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    )?;
    loop {
        let mut state = shared.state.lock().unwrap();
        while state.events.len() <= sent || state.held {
            state = shared.changed.wait(state).unwrap();
        }
        let event = format!("{}\n", state.events[sent]);
        drop(state);
        sent += 1;
        write!(out, "{:x}\r\n{event}\r\n", event.len())?;
        out.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// The status and the body of an answer that has a length.
    fn get(api: &PodsApi, path: &str) -> (String, Value) {
        let mut stream = TcpStream::connect(&api.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // A watch would never end.
        let timeout = std::time::Duration::from_secs(10);
        stream.set_read_timeout(Some(timeout)).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.lines().next().unwrap().to_owned();
        (status, serde_json::from_str(body).unwrap())
    }

    #[test]
    fn clients_that_would_watch_a_list_are_told_to_list() {
        let api = PodsApi::start();
        api.set(pod("shop", "web-0", "u1", "app", &json!({})));
        let watch_list =
            "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let (status, body) = get(&api, watch_list);
        assert_eq!(status, "HTTP/1.1 422 Unprocessable Entity");
        assert_eq!(
            (&body["reason"], &body["code"]),
            (&json!("Invalid"), &json!(422))
        );
        let (status, body) = get(
            &api,
            "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1&limit=500",
        );
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert_eq!(body["items"][0]["metadata"]["uid"], "u1");
        assert_eq!(api.requests().len(), 2);
    }

    #[test]
    fn nothing_but_pods_is_told() {
        let api = PodsApi::start();
        for path in ["/apis/apps/v1/replicasets", "/api/v1/pods/x", "/"] {
            let (status, body) = get(&api, path);
            assert_eq!(status, "HTTP/1.1 404 Not Found", "{path}");
            assert_eq!(body["kind"], "Status");
        }
    }
}
