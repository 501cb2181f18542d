//! What an agent on a Kubernetes node talks to, for benchmarks: the API server that tells of the pods, and an
//! OTLP/HTTP server on loopback that counts the log records of each pod and checks what is said of it. Takes what is
//! expected, gives totals. It never decodes or keeps a record: an agent at full speed must not wait for it.

use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};

use crate::collector::decompress;
use crate::{Answer, Collector, PodsApi};

mod tally;

use tally::Tally;
pub use tally::{Expected, Totals};

/// A node's surroundings. Dropping it closes everything.
pub struct Node {
    /// Tells of the pods.
    pub api: PodsApi,
    /// Where records are taken, such as `127.0.0.1:40123`.
    pub address: SocketAddr,
    shared: Arc<Shared>,
    _collector: Collector,
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
        let shared = Arc::new(Shared {
            tally: Mutex::new(Tally::new(pods)),
            changed: Condvar::new(),
        });
        let counting = Arc::clone(&shared);
        let collector =
            Collector::counted(Box::new(move |headers, body| counting.take(headers, body)));
        Node {
            api,
            address: collector.address(),
            shared,
            _collector: collector,
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

impl Shared {
    fn take(&self, headers: &HeaderMap, body: &[u8]) -> Answer {
        let encoding = headers.get(CONTENT_ENCODING);
        let encoding = encoding.map_or(Ok("identity"), HeaderValue::to_str);
        let message = encoding.map_err(|error| error.to_string());
        let message = message.and_then(|encoding| decompress(encoding, body));
        let mut tally = self.tally.lock().unwrap();
        let taken = message.and_then(|message| tally.take(message.into(), body.len()));
        self.changed.notify_all();
        match taken {
            Ok(()) => Answer::ok(),
            Err(error) => {
                eprintln!("refused: {error}");
                tally.refuse();
                Answer::status(400).message(&error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn what_arrives_over_http_is_counted_or_refused() {
        let node = Node::start(Vec::new());
        // One group with one scope with two empty records, then bytes that are no request.
        let message: &[u8] = b"\x0a\x06\x12\x04\x12\x00\x12\x00";
        let cases = [
            ("/v1/logs", message, "HTTP/1.1 200"),
            ("/v1/logs", b"\x0a\x7f", "HTTP/1.1 400"),
            ("/v1/traces", message, "HTTP/1.1 404"),
        ];
        for (path, body, status) in cases {
            let mut stream = TcpStream::connect(node.address).unwrap();
            let length = body.len();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
            );
            stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            assert!(answer.starts_with(status.as_bytes()), "{path}");
        }
        node.wait_records(2);
        let totals = node.totals(0);
        assert_eq!((totals.records, totals.refused), (2, 1));
        assert_eq!(totals.wire_bytes, message.len() as u64);
    }
}
