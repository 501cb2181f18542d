//! The loop against scripted servers, with paused time: what is sent, waited for, and resolved how.

mod evidence;
mod model;
mod refusals;
mod retries;
mod shares;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Attempt, DriveConfig, OnRefused, RetryPolicy, Transport, drive};
use super::{Delivered, Observer, Payload, Request};
use crate::delivery::compression::CompressionSearch;
use crate::delivery::outcome::{Answered, Doubt, Outcome, RetryCause};
use tailrace_otlp::Compression;

const POLICY: RetryPolicy = RetryPolicy {
    min: Duration::from_secs(1),
    max: Duration::from_secs(30),
    after_max: Duration::from_secs(300),
    hold: Duration::from_secs(40),
};

/// A record is a number, and takes this many bytes.
const RECORD_BYTES: u64 = 20 * 1024;

/// One attempt, as the server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    at: Duration,
    compression: Compression,
    records: Vec<u32>,
}

type Answers = dyn FnMut(&Seen) -> Answered + Send;

/// A server made of a function.
struct Server {
    start: Instant,
    search: CompressionSearch,
    answers: Mutex<Box<Answers>>,
    seen: Mutex<Vec<Seen>>,
    /// How many attempts are on the wire, and the most there ever were.
    on_wire: Mutex<(usize, usize)>,
}

impl Server {
    fn new(answers: impl FnMut(&Seen) -> Answered + Send + 'static) -> Arc<Server> {
        Server::with(CompressionSearch::fixed(Compression::Zstd), answers)
    }

    fn with(
        search: CompressionSearch,
        answers: impl FnMut(&Seen) -> Answered + Send + 'static,
    ) -> Arc<Server> {
        Arc::new(Server {
            start: Instant::now(),
            search,
            answers: Mutex::new(Box::new(answers)),
            seen: Mutex::default(),
            on_wire: Mutex::default(),
        })
    }

    /// Answers in order, and then accepts.
    fn script(
        search: CompressionSearch,
        answers: impl IntoIterator<Item = Answered>,
    ) -> Arc<Server> {
        let mut answers: VecDeque<Answered> = answers.into_iter().collect();
        Server::with(search, move |_| answers.pop_front().unwrap_or_else(ok))
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn requests(&self) -> Vec<Vec<u32>> {
        self.seen().into_iter().map(|seen| seen.records).collect()
    }

    fn compressions(&self) -> Vec<Compression> {
        self.seen()
            .into_iter()
            .map(|seen| seen.compression)
            .collect()
    }

    /// The time between each attempt and the next, in seconds.
    fn pauses(&self) -> Vec<f64> {
        let pause = |pair: &[Seen]| (pair[1].at - pair[0].at).as_secs_f64();
        self.seen().windows(2).map(pause).collect()
    }
}

impl Transport for Server {
    fn attempt<'a>(&'a self, payload: &'a Payload) -> Attempt<'a> {
        Box::pin(async move {
            {
                let mut on_wire = self.on_wire.lock().unwrap();
                on_wire.0 += 1;
                on_wire.1 = on_wire.1.max(on_wire.0);
            }
            tokio::time::sleep(Duration::from_millis(1)).await; // tidy: paused time
            self.on_wire.lock().unwrap().0 -= 1;
            let words = payload.bytes.chunks(4);
            let seen = Seen {
                at: self.start.elapsed(),
                compression: payload.compression,
                records: words
                    .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
                    .collect(),
            };
            self.seen.lock().unwrap().push(seen.clone());
            (self.answers.lock().unwrap())(&seen)
        })
    }

    fn compression(&self) -> &CompressionSearch {
        &self.search
    }

    fn retry_policy(&self) -> &RetryPolicy {
        &POLICY
    }
}

/// What became of records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Book {
    delivered: Vec<u32>,
    rejected: Vec<u32>,
    given_up: Vec<u32>,
    /// One per request or part that was delivered.
    deliveries: Vec<Delivered>,
    /// So many rejections fail first.
    dead_letter_full: usize,
}

struct Numbers {
    records: Vec<u32>,
    payload: Payload,
    book: Arc<Mutex<Book>>,
}

impl Numbers {
    fn new(records: Vec<u32>, book: &Arc<Mutex<Book>>) -> Numbers {
        let bytes: Vec<u8> = records.iter().flat_map(|n| n.to_le_bytes()).collect();
        let payload = Payload {
            bytes: Bytes::from(bytes),
            compression: Compression::Zstd,
            records: records.len() as u64,
            uncompressed_bytes: records.len() as u64 * RECORD_BYTES,
        };
        Numbers {
            records,
            payload,
            book: Arc::clone(book),
        }
    }
}

impl Request for Numbers {
    fn payload(&self) -> &Payload {
        &self.payload
    }

    fn recompress(&self, compression: Compression) -> Payload {
        Payload {
            compression,
            ..self.payload.clone()
        }
    }

    fn halves(self) -> (Numbers, Numbers) {
        let (first, second) = self.records.split_at(self.records.len() / 2);
        let half = |records: &[u32]| Numbers::new(records.to_vec(), &self.book);
        (half(first), half(second))
    }

    fn deliver(self, delivered: &Delivered) {
        let mut book = self.book.lock().unwrap();
        book.delivered.extend(self.records);
        book.deliveries.push(delivered.clone());
    }

    fn reject(&mut self, _reason: &str) -> Result<(), String> {
        assert_eq!(self.records.len(), 1, "a single record is rejected");
        let mut book = self.book.lock().unwrap();
        if book.dead_letter_full > 0 {
            book.dead_letter_full -= 1;
            return Err("full".to_owned());
        }
        book.rejected.extend(&self.records);
        Ok(())
    }

    fn give_up(self, _reason: &str) {
        self.book.lock().unwrap().given_up.extend(self.records);
    }
}

/// Records what is reported to it.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn count(&self, text: &str) -> usize {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.contains(text)).count()
    }
}

impl Observer for Diary {
    fn sending(&self, bytes: u64, compression: Compression) {
        self.write(format!("send {bytes} {}", compression.name()));
    }

    fn retrying(&self, cause: RetryCause, reason: &str, _delay: Duration) {
        self.write(format!("retry {} {reason}", cause.as_str()));
    }

    fn holding(&self, reason: &str, _delay: Duration) {
        self.write(format!("hold {reason}"));
    }

    fn comparing(&self, reason: &str, _records: usize, _delay: Duration) {
        self.write(format!("compare {reason}"));
    }

    fn waiting(&self, problem: &str, _records: usize) {
        self.write(format!("wait {problem}"));
    }

    fn refused(&self, reason: &str, is_first: bool) {
        let which = if is_first { "first" } else { "again" };
        self.write(format!("refused {reason} {which}"));
    }

    fn cleared(&self) {
        self.write("cleared".to_owned());
    }

    fn compared(&self, records: usize) {
        self.write(format!("kept {records}"));
    }

    fn released(&self) {
        self.write("released".to_owned());
    }

    fn recompressing(&self, from: Compression, to: Compression, reason: &str) {
        self.write(format!("recode {} {} {reason}", from.name(), to.name()));
    }

    fn delivered(&self, delivered: &Delivered) {
        self.write(format!("delivered {}", delivered.attempts));
    }
}

fn ok() -> Answered {
    Outcome::Delivered {
        rejected: 0,
        message: None,
    }
    .into()
}

fn retry(after: Option<u64>) -> Answered {
    Outcome::Retry {
        cause: RetryCause::Unavailable,
        reason: "busy".to_owned(),
        after: after.map(Duration::from_secs),
    }
    .into()
}

fn hold(doubt: Doubt) -> Answered {
    let outcome = Outcome::Hold {
        reason: "no".to_owned(),
    };
    Answered {
        doubt,
        ..outcome.into()
    }
}

fn refused() -> Answered {
    Outcome::Refused {
        reason: "bad".to_owned(),
    }
    .into()
}

fn too_large() -> Answered {
    Outcome::TooLarge {
        reason: "large".to_owned(),
    }
    .into()
}

const ONE: DriveConfig = DriveConfig {
    concurrency: 1,
    on_refused: OnRefused::Hold,
};

const FOUR: DriveConfig = DriveConfig {
    concurrency: 4,
    ..ONE
};

/// Delivers these requests, all there from the start.
async fn check(
    server: &Arc<Server>,
    config: DriveConfig,
    requests: impl IntoIterator<Item = Vec<u32>>,
    observer: &dyn Observer,
) -> Book {
    let book = Arc::<Mutex<Book>>::default();
    check_with(server, config, requests, observer, &book).await;
    let book = book.lock().unwrap();
    book.clone()
}

async fn check_with(
    server: &Arc<Server>,
    config: DriveConfig,
    requests: impl IntoIterator<Item = Vec<u32>>,
    observer: &dyn Observer,
    book: &Arc<Mutex<Book>>,
) {
    let (sender, receiver) = queue();
    for records in requests {
        let request = Numbers::new(records, book);
        assert!(sender.send(request).is_ok());
    }
    drop(sender);
    drive(server.clone(), receiver, config, observer).await;
}

#[allow(clippy::disallowed_methods, reason = "as the pipeline does")]
fn queue() -> (
    mpsc::UnboundedSender<Numbers>,
    mpsc::UnboundedReceiver<Numbers>,
) {
    mpsc::unbounded_channel()
}
