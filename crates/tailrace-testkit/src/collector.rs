//! An OTLP collector for tests: a server on loopback with a runtime of its own, so that it works in
//! tests with and without one, and with paused time. It answers HTTP/1.1, HTTP/2 and gRPC on one
//! port, first what [`Collector::script`] says, then what [`Collector::always`] says (accept), and
//! keeps every record it accepted. It never answers with success to what it cannot decode.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

mod answer;
mod judge;
mod request;
mod serve;
mod state;

pub use answer::{Answer, Gate};
pub use judge::Judge;
pub(crate) use request::decompress;
pub use request::{Protocol, Record, Request, records_of};
use state::{Counts, Shared};

use crate::TestTls;

/// A test that waits longer than this for something to arrive has failed.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// A running collector. Dropping it closes everything.
pub struct Collector {
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Arc<Shared>,
    /// `None` while stopped.
    runtime: Option<Runtime>,
    /// Keeps the port while nobody listens.
    reserved: Option<TcpSocket>,
}

impl Collector {
    /// Listens on a free port of loopback, without TLS.
    pub fn start() -> Collector {
        Collector::listen(None, state::Decider::Script)
    }

    /// The same, but `judge` answers in place of the script, and nothing is kept.
    pub fn judged(judge: Arc<dyn Judge>) -> Collector {
        Collector::listen(None, state::Decider::Judge(judge))
    }

    /// The same, but `counter` answers each request that comes over HTTP, and nothing is decoded or kept: an agent at full
    /// speed must not wait for the collector.
    pub(crate) fn counted(counter: state::Counter) -> Collector {
        Collector::listen(None, state::Decider::Counter(counter))
    }

    /// The same with TLS; with `client_required` it talks only to clients that show the certificate
    /// of `tls`.
    pub fn start_tls(tls: &TestTls, client_required: bool) -> Collector {
        Collector::listen(Some(tls.acceptor(client_required)), state::Decider::Script)
    }

    fn listen(tls: Option<TlsAcceptor>, decider: state::Decider) -> Collector {
        let mut collector = Collector {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            tls,
            shared: Arc::new(Shared::new(decider)),
            runtime: None,
            reserved: None,
        };
        collector.restart();
        collector
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL, such as `http://127.0.0.1:40123`; good for both protocols.
    pub fn endpoint(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Adds answers for the next requests, one each.
    pub fn script(&self, answers: impl IntoIterator<Item = Answer>) {
        self.shared.lock().script.extend(answers);
    }

    /// What is answered from now on when the script is at its end.
    pub fn always(&self, answer: Answer) {
        self.shared.lock().otherwise = answer;
    }

    /// Answers `answer` to every request in this compression (`zstd`, `gzip`, `identity`) without using
    /// up the script.
    pub fn refuse_compression(&self, compression: &str, answer: Answer) {
        let mut state = self.shared.lock();
        state.refused.retain(|(refused, _)| refused != compression);
        state.refused.push((compression.to_owned(), answer));
    }

    /// Answers `answer` to every request whose records are such, without using up the script.
    pub fn answer_if(&self, such: impl Fn(&[Record]) -> bool + Send + 'static, answer: Answer) {
        self.shared
            .lock()
            .conditional
            .push((Box::new(such), answer));
    }

    /// Forgets what [`Collector::answer_if`] said.
    pub fn answer_all(&self) {
        self.shared.lock().conditional.clear();
    }

    /// Treats all compressions alike again.
    pub fn accept_all_compressions(&self) {
        self.shared.lock().refused.clear();
    }

    /// Every request seen so far, in order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Every record accepted so far, in order of acceptance.
    pub fn records(&self) -> Vec<Record> {
        self.shared.lock().records.clone()
    }

    /// What is answered to requests with metrics from now on; the script is for logs.
    pub fn answer_metrics(&self, answer: Answer) {
        self.shared.lock().of_metrics = answer;
    }

    /// Every request with metrics that was accepted so far, in order of acceptance.
    pub fn metrics(&self) -> Vec<ExportMetricsServiceRequest> {
        self.shared.lock().metrics.clone()
    }

    /// Forgets the records kept so far and gives them.
    pub fn take_records(&self) -> Vec<Record> {
        std::mem::take(&mut self.shared.lock().records)
    }

    /// Waits until `count` requests were read, answered or not.
    pub async fn requests_reach(&self, count: usize) {
        self.reach("requests", count, |counts| counts.requests)
            .await;
    }

    /// Waits until `count` records were accepted.
    pub async fn records_reach(&self, count: usize) {
        self.reach("records", count, |counts| counts.records).await;
    }

    /// [`Collector::requests_reach`] for tests without a runtime: blocks the thread.
    pub fn wait_requests(&self, count: usize) {
        self.wait("requests", count, |counts| counts.requests);
    }

    /// [`Collector::records_reach`] for tests without a runtime: blocks the thread.
    pub fn wait_records(&self, count: usize) {
        self.wait("records", count, |counts| counts.records);
    }

    /// Waits until `count` requests with metrics were accepted: blocks the thread.
    pub fn wait_metrics(&self, count: usize) {
        self.wait("requests with metrics", count, |counts| counts.metrics);
    }

    /// Closes the port and all connections. What was seen stays; [`Collector::restart`] opens the
    /// same port again.
    pub fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A runtime may not end inside another one, and the port is free only once it has.
            std::thread::spawn(move || runtime.shutdown_timeout(TIMEOUT))
                .join()
                .unwrap();
            // Whoever connects is refused; but nobody else gets the port, and the records with it.
            self.reserved = reserve(self.address).ok();
        }
    }

    /// Listens again after [`Collector::stop`].
    pub fn restart(&mut self) {
        assert!(self.runtime.is_none(), "the collector is running");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("collector")
            .enable_all()
            .build()
            .unwrap();
        let socket = match self.reserved.take() {
            Some(socket) => socket,
            None => reserve(self.address).unwrap(),
        };
        self.address = socket.local_addr().unwrap();
        let listener = {
            let _inside = runtime.enter();
            socket.listen(BACKLOG).unwrap()
        };
        runtime.spawn(serve::run(
            listener,
            self.tls.clone(),
            Arc::clone(&self.shared),
        ));
        self.runtime = Some(runtime);
    }

    async fn reach(&self, what: &'static str, count: usize, of: fn(&Counts) -> usize) {
        let waiting = self.runtime().spawn(wait(self.counts(), count, of));
        report(what, count, waiting.await.unwrap());
    }

    fn wait(&self, what: &'static str, count: usize, of: fn(&Counts) -> usize) {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        let counts = self.counts();
        self.runtime().spawn(async move {
            let _ = sender.send(wait(counts, count, of).await);
        });
        report(what, count, receiver.recv().unwrap());
    }

    fn counts(&self) -> tokio::sync::watch::Receiver<Counts> {
        self.shared.counts()
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("the collector is stopped")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Waits, on the collector's own clock, until `of` gives `count`; the counts after the timeout
/// are the error.
async fn wait(
    mut counts: tokio::sync::watch::Receiver<Counts>,
    count: usize,
    of: fn(&Counts) -> usize,
) -> Result<(), Counts> {
    let reached = counts.wait_for(|counts| of(counts) >= count);
    let in_time = tokio::time::timeout(TIMEOUT, reached).await.is_ok();
    if in_time {
        Ok(())
    } else {
        Err(*counts.borrow())
    }
}

#[track_caller]
fn report(what: &str, count: usize, waited: Result<(), Counts>) {
    if let Err(counts) = waited {
        panic!("{count} {what} did not arrive within {TIMEOUT:?}: {counts:?}");
    }
}

/// Takes a port without listening.
fn reserve(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
    use prost::Message;

    use super::{Answer, Collector, Gate};

    fn request(records: usize) -> Vec<u8> {
        let scope_logs = ScopeLogs {
            log_records: vec![LogRecord::default(); records],
            ..ScopeLogs::default()
        };
        let resource_logs = ResourceLogs {
            scope_logs: vec![scope_logs],
            ..ResourceLogs::default()
        };
        let request = ExportLogsServiceRequest {
            resource_logs: vec![resource_logs],
        };
        request.encode_to_vec()
    }

    /// Posts `body` and reads until the server closes.
    fn post(collector: &Collector, path: &str, compression: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(collector.address()).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-encoding: {compression}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => String::from_utf8_lossy(&answer).into_owned(),
            Err(error) => error.kind().to_string(),
        }
    }

    #[test]
    fn the_script_is_followed_and_accepted_records_are_kept() {
        let collector = Collector::start();
        collector.script([
            Answer::status(503).header("retry-after", "7"),
            Answer::partial(1, "too old"),
            Answer::close(),
            Answer::reset(),
        ]);
        let busy = post(&collector, "/v1/logs", "identity", &request(3));
        assert!(busy.starts_with("HTTP/1.1 503"), "{busy}");
        assert!(busy.contains("retry-after: 7"), "{busy}");
        let partial = post(&collector, "/v1/logs", "identity", &request(3));
        assert!(partial.ends_with("too old"), "{partial}");
        assert_eq!(post(&collector, "/v1/logs", "identity", &request(1)), "");
        let reset = post(&collector, "/v1/logs", "identity", &request(1));
        assert_eq!(reset, "connection reset");
        let zstd = zstd::encode_all(request(4).as_slice(), 1).unwrap();
        let accepted = post(&collector, "/v1/logs", "zstd", &zstd);
        assert!(accepted.starts_with("HTTP/1.1 200"), "{accepted}");
        collector.wait_records(6);
        let requests: Vec<_> = collector.records().iter().map(|r| r.request).collect();
        assert_eq!(requests, [1, 1, 4, 4, 4, 4]);
        assert_eq!(collector.requests()[4].compression, "zstd");
        assert_eq!(collector.requests()[4].wire_bytes, zstd.len());
    }

    #[test]
    fn what_does_not_decode_or_has_another_path_is_refused() {
        let collector = Collector::start();
        let wrong = post(&collector, "/v1/traces", "identity", &request(1));
        assert!(wrong.starts_with("HTTP/1.1 404"), "{wrong}");
        let bad = post(&collector, "/v1/logs", "gzip", b"not gzip");
        assert!(bad.starts_with("HTTP/1.1 400"), "{bad}");
        collector.refuse_compression("identity", Answer::status(415));
        let refused = post(&collector, "/v1/logs", "identity", &request(1));
        assert!(refused.starts_with("HTTP/1.1 415"), "{refused}");
        assert!(collector.records().is_empty());
    }

    #[test]
    fn a_gate_holds_the_answer_back_but_not_the_request() {
        let mut collector = Collector::start();
        let gate = Gate::new();
        collector.script([Answer::ok().after(&gate)]);
        std::thread::scope(|scope| {
            let posting = scope.spawn(|| post(&collector, "/v1/logs", "identity", &request(1)));
            collector.wait_requests(1);
            assert!(collector.records().is_empty());
            gate.open();
            assert!(posting.join().unwrap().starts_with("HTTP/1.1 200"));
        });
        collector.stop();
        assert!(TcpStream::connect(collector.address()).is_err());
        collector.restart();
        post(&collector, "/v1/logs", "identity", &request(1));
        collector.wait_records(2);
        assert_eq!(collector.take_records().len(), 2);
        assert!(collector.records().is_empty());
    }
}
