//! A server in memory: each request is handed to the test, which answers when and how it likes.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::channel::{Channel, Sender};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Duration, Instant, timeout};

use crate::connect::Connect;

type Answer = http::Response<Channel<Bytes, std::io::Error>>;

pub(super) struct Fake {
    calls: mpsc::Receiver<Call>,
}

/// A request that waits for its answer.
pub(super) struct Call {
    pub(super) path: String,
    /// As sent, not decoded.
    pub(super) query: BTreeMap<String, String>,
    pub(super) at: Instant,
    answer: oneshot::Sender<Answer>,
}

impl Fake {
    pub(super) fn new() -> (Connect, Fake) {
        let (send, calls) = mpsc::channel(16);
        let connect = move || -> BoxFuture<'static, Result<Client, _>> {
            let send = send.clone();
            let service = tower::service_fn(move |request: http::Request<Body>| {
                let send = send.clone();
                async move {
                    let (answer, answered) = oneshot::channel();
                    let _ = send.send(Call::new(&request, answer)).await;
                    answered.await.map_err(|_| "the connection was closed")
                }
            });
            Box::pin(async move { Ok(Client::new(service, "default")) })
        };
        (std::sync::Arc::new(connect), Fake { calls })
    }

    /// The next request.
    pub(super) async fn call(&mut self) -> Call {
        let hour = Duration::from_secs(3600);
        timeout(hour, self.calls.recv()).await.unwrap().unwrap()
    }

    /// Whether nobody can ask any more.
    pub(super) async fn is_left(&mut self) -> bool {
        self.calls.recv().await.is_none()
    }

    /// No request comes within this time.
    pub(super) async fn is_quiet_for(&mut self, time: Duration) -> bool {
        timeout(time, self.calls.recv()).await.is_err()
    }
}

impl Call {
    fn new(request: &http::Request<Body>, answer: oneshot::Sender<Answer>) -> Call {
        let query = request.uri().query().unwrap_or_default();
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Call {
            path: request.uri().path().to_owned(),
            query: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            at: Instant::now(),
            answer,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&str> {
        self.query.get(key).map(String::as_str)
    }

    pub(super) fn is_watch(&self) -> bool {
        self.get("watch") == Some("true")
    }

    /// A whole answer.
    pub(super) async fn answer(self, status: u16, body: &Value) {
        let mut stream = self.begin(status);
        stream.line(body).await;
    }

    /// An answer as Kubernetes refuses.
    pub(super) async fn refuse(self, status: u16, message: &str) {
        self.answer(status, &refusal(status, message)).await;
    }

    /// An answer that continues until the stream is dropped.
    pub(super) fn stream(self) -> Stream {
        assert!(self.is_watch(), "{:?}", self.query);
        self.begin(200)
    }

    /// No answer at all.
    pub(super) fn close(self) {}

    fn begin(self, status: u16) -> Stream {
        let (send, body) = Channel::new(64);
        let response = http::Response::builder().status(status).body(body).unwrap();
        let _ = self.answer.send(response);
        Stream(send)
    }
}

/// The events of a watch.
pub(super) struct Stream(Sender<Bytes, std::io::Error>);

impl Stream {
    pub(super) async fn event(&mut self, kind: &str, object: &Value) {
        self.line(&json!({"type": kind, "object": object})).await;
    }

    pub(super) async fn bookmark(&mut self, version: u32) {
        let metadata = json!({"resourceVersion": version.to_string()});
        let object = json!({"kind": "Pod", "apiVersion": "v1", "metadata": metadata});
        self.event("BOOKMARK", &object).await;
    }

    pub(super) async fn line(&mut self, line: &Value) {
        let _ = self.0.send_data(Bytes::from(format!("{line}\n"))).await;
    }

    /// The connection breaks.
    pub(super) fn fail(self) {
        self.0.abort(std::io::ErrorKind::ConnectionReset.into());
    }
}

pub(super) fn refusal(status: u16, message: &str) -> Value {
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": status,
        "message": message,
        "reason": "Test",
    })
}
