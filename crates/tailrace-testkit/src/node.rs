//! What an agent on a Kubernetes node talks to, for benchmarks: the API server that tells of the pods, and an
//! OTLP/HTTP server on loopback that counts the log records of each pod and checks what is said of it. Takes what is
//! expected, gives totals. It never decodes or keeps a record: an agent at full speed must not wait for it.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;

use crate::PodsApi;
use crate::collector::decompress;

mod tally;

use tally::Tally;
pub use tally::{Expected, Totals};

/// A node's surroundings. They end with the process.
pub struct Node {
    /// Tells of the pods.
    pub api: PodsApi,
    /// Where records are taken, such as `127.0.0.1:40123`.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    tally: Mutex<Tally>,
    changed: Condvar,
}

impl Node {
    /// Starts both servers on free ports, with these pods.
    pub fn start(pods: Vec<Expected>) -> Node {
        let api = PodsApi::start();
        for expected in &pods {
            api.set(expected.pod.clone());
        }
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            tally: Mutex::new(Tally::new(pods)),
            changed: Condvar::new(),
        });
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            // One thread, so that a second processor is enough for it.
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(serve(listener, served));
        });
        Node {
            api,
            address,
            shared,
        }
    }

    /// Waits until so many records have arrived.
    pub fn wait_records(&self, records: u64) {
        let tally = self.shared.tally.lock().unwrap();
        let waiting = |tally: &mut Tally| tally.records() < records;
        drop(self.shared.changed.wait_while(tally, waiting).unwrap());
    }

    /// What has arrived so far. A pod is complete with exactly `records` records, all of them labelled.
    pub fn totals(&self, records: u64) -> Totals {
        self.shared.tally.lock().unwrap().totals(records)
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        // An accept fails when the client is gone already: the next one may do better.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
            let connection = auto::Builder::new(TokioExecutor::new());
            // The client decides when a connection ends.
            let _ = connection
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let encoding = head.headers.get(CONTENT_ENCODING);
    let encoding = encoding.map_or(Ok("identity"), HeaderValue::to_str);
    let status = match (encoding, body.collect().await) {
        _ if head.uri.path() != "/v1/logs" => StatusCode::NOT_FOUND,
        (Ok(encoding), Ok(body)) => take(encoding, &body.to_bytes(), &shared),
        _ => StatusCode::BAD_REQUEST,
    };
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    let protobuf = HeaderValue::from_static("application/x-protobuf");
    response.headers_mut().insert(CONTENT_TYPE, protobuf);
    Ok(response)
}

fn take(encoding: &str, body: &Bytes, shared: &Shared) -> StatusCode {
    let message = decompress(encoding, body);
    let mut tally = shared.tally.lock().unwrap();
    let taken = message.and_then(|message| tally.take(message.into(), body.len()));
    shared.changed.notify_all();
    match taken {
        Ok(()) => StatusCode::OK,
        Err(error) => {
            eprintln!("refused: {error}");
            tally.refuse();
            StatusCode::BAD_REQUEST
        }
    }
}
