//! What the collector knows: the script, what it saw, what it accepted. Wakes waiting tests when that
//! changes; it never touches a socket.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use http::HeaderMap;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use tokio::sync::watch;

use super::answer::Answer;
use super::judge::Judge;
use super::request::{Protocol, Record, Request};

pub(crate) struct Shared {
    state: Mutex<State>,
    decider: Decider,
    counts: watch::Sender<Counts>,
}

/// Who decides what is answered.
pub(crate) enum Decider {
    /// The script of [`State`].
    Script,
    /// Somebody who sees the records, which are not kept.
    Judge(Arc<dyn Judge>),
    /// Somebody who sees headers and body alone, which are neither decoded nor kept.
    Counter(Counter),
}

/// Answers a request by its headers and its body.
pub(crate) type Counter = Box<dyn Fn(&HeaderMap, &[u8]) -> Answer + Send + Sync>;

/// Looks at the records of a request.
pub(crate) type Condition = Box<dyn Fn(&[Record]) -> bool + Send>;

pub(crate) struct State {
    pub(crate) script: VecDeque<Answer>,
    /// What is answered when the script is at its end.
    pub(crate) otherwise: Answer,
    /// What is answered to requests in these compressions, before the script is asked.
    pub(crate) refused: Vec<(String, Answer)>,
    /// What is answered to requests whose records are such, before the script is asked.
    pub(crate) conditional: Vec<(Condition, Answer)>,
    pub(crate) requests: Vec<Request>,
    pub(crate) records: Vec<Record>,
    /// Requests with metrics that were accepted.
    pub(crate) metrics: Vec<ExportMetricsServiceRequest>,
    /// What is answered to requests with metrics.
    pub(crate) of_metrics: Answer,
}

/// How much has happened so far; every number only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) connections: usize,
    pub(crate) requests: usize,
    pub(crate) records: usize,
    pub(crate) metrics: usize,
}

impl Shared {
    pub(crate) fn new(decider: Decider) -> Shared {
        Shared {
            decider,
            state: Mutex::new(State {
                script: VecDeque::new(),
                otherwise: Answer::ok(),
                refused: Vec::new(),
                conditional: Vec::new(),
                requests: Vec::new(),
                records: Vec::new(),
                metrics: Vec::new(),
                of_metrics: Answer::ok(),
            }),
            counts: watch::Sender::new(Counts::default()),
        }
    }

    pub(crate) fn decider(&self) -> &Decider {
        &self.decider
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn counts(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    /// Records that a connection was accepted. Returns its number, from 1.
    pub(crate) fn connected(&self) -> usize {
        let mut number = 0;
        self.counts.send_modify(|counts| {
            counts.connections += 1;
            number = counts.connections;
        });
        number
    }

    /// Records that a whole request with metrics was read. Returns the answer.
    pub(crate) fn seen_metrics(&self, request: Request) -> Answer {
        let mut state = self.lock();
        let answer = match &request.error {
            Some(error) => Answer::status(400).message(error),
            None => state.of_metrics.clone(),
        };
        state.requests.push(request);
        drop(state);
        self.counts.send_modify(|counts| counts.requests += 1);
        answer
    }

    /// The metrics are taken.
    pub(crate) fn accepted_metrics(&self, metrics: ExportMetricsServiceRequest) {
        self.lock().metrics.push(metrics);
        self.counts.send_modify(|counts| counts.metrics += 1);
    }

    /// Records that a whole request was read. Returns its index and the answer.
    pub(crate) fn seen(&self, request: Request, records: &[Record]) -> (usize, Answer) {
        let mut state = self.lock();
        let index = state.requests.len();
        let answer = state.answer(&request, records);
        state.requests.push(request);
        drop(state);
        self.counts.send_modify(|counts| counts.requests += 1);
        (index, answer)
    }

    /// The records of request `index` are taken, but for those a partial success rejects.
    pub(crate) fn accepted(&self, index: usize, mut records: Vec<Record>, answer: &Answer) {
        let rejected = answer.partial.as_ref().map_or(0, |(rejected, _)| *rejected);
        let rejected = usize::try_from(rejected).unwrap_or(0);
        records.truncate(records.len().saturating_sub(rejected));
        let count = records.len();
        let mut state = self.lock();
        state.records.extend(records.into_iter().map(|mut record| {
            record.request = index;
            record
        }));
        drop(state);
        self.counts.send_modify(|counts| counts.records += count);
    }
}

impl State {
    fn answer(&mut self, request: &Request, records: &[Record]) -> Answer {
        let path = match request.protocol {
            Protocol::Http => "/v1/logs",
            Protocol::Grpc => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        };
        if request.path != path {
            return match request.protocol {
                Protocol::Http => Answer::status(404),
                Protocol::Grpc => Answer::grpc(12, "unknown method").trailers_only(),
            };
        }
        for (compression, answer) in &self.refused {
            if *compression == request.compression {
                return answer.clone();
            }
        }
        if let Some(error) = &request.error {
            return match request.protocol {
                Protocol::Http => Answer::status(400).message(error),
                Protocol::Grpc => Answer::grpc(3, error),
            };
        }
        for (applies, answer) in &self.conditional {
            if applies(records) {
                return answer.clone();
            }
        }
        self.script
            .pop_front()
            .unwrap_or_else(|| self.otherwise.clone())
    }
}
