//! The loop against scripted attempts, with paused time: what is waited for, and what is sent.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::time::Instant;

use super::{Attempt, Delivered, Patience, deliver};
use crate::outcome::{Answered, Doubt, Outcome, RetryCause};
use crate::search::Search;
use crate::{Encoding, Observer, Payload};

const PATIENCE: Patience = Patience {
    min: Duration::from_secs(1),
    max: Duration::from_secs(30),
    after_max: Duration::from_secs(300),
    hold: Duration::from_secs(40),
};

/// Answers in order, and keeps when it was asked in which encoding.
struct Script {
    start: Instant,
    answers: Mutex<VecDeque<Answered>>,
    asked: Mutex<Vec<(Duration, Encoding)>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = Answered>) -> Script {
        Script {
            start: Instant::now(),
            answers: Mutex::new(answers.into_iter().collect()),
            asked: Mutex::default(),
        }
    }

    fn encodings(&self) -> Vec<Encoding> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|(_, encoding)| *encoding).collect()
    }

    /// The time between each attempt and the next, in seconds.
    fn pauses(&self) -> Vec<f64> {
        let asked = self.asked.lock().unwrap();
        let pause = |pair: &[(Duration, Encoding)]| (pair[1].0 - pair[0].0).as_secs_f64();
        asked.windows(2).map(pause).collect()
    }
}

impl Attempt for Script {
    async fn attempt(&self, payload: &Payload) -> Answered {
        let asked = (self.start.elapsed(), payload.encoding);
        self.asked.lock().unwrap().push(asked);
        let mut answers = self.answers.lock().unwrap();
        answers.pop_front().expect("the script is long enough")
    }
}

/// Writes down what it is told.
#[derive(Default)]
struct Diary(Mutex<Vec<String>>);

impl Diary {
    fn write(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

impl Observer for Diary {
    fn sending(&self, bytes: u64, encoding: Encoding) {
        self.write(format!("send {bytes} {}", encoding.as_str()));
    }

    fn retrying(&self, cause: RetryCause, reason: &str, _delay: Duration) {
        self.write(format!("retry {} {reason}", cause.as_str()));
    }

    fn holding(&self, reason: &str, _delay: Duration) {
        self.write(format!("hold {reason}"));
    }

    fn recoding(&self, from: Encoding, to: Encoding, reason: &str) {
        self.write(format!("recode {} {} {reason}", from.as_str(), to.as_str()));
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
    Answered { outcome, doubt }
}

fn payload(encoding: Encoding) -> Payload {
    Payload {
        bytes: Bytes::from_static(b"request"),
        encoding,
        records: 3,
        uncompressed_bytes: 7,
    }
}

fn recode(payload: &Payload, encoding: Encoding) -> Payload {
    let bytes = Bytes::from(format!("{} as {}", payload.records, encoding.as_str()));
    Payload {
        bytes,
        encoding,
        ..payload.clone()
    }
}

async fn run(script: &Script, search: &Search, observer: &dyn Observer) -> Delivered {
    let payload = payload(Encoding::Zstd);
    deliver(script, search, &PATIENCE, payload, &recode, observer).await
}

#[tokio::test(start_paused = true)]
async fn it_backs_off_and_starts_anew_after_a_hold() {
    let mut answers = vec![retry(None); 7];
    answers.push(hold(Doubt::None));
    answers.extend([retry(None), ok()]);
    let script = Script::new(answers);
    let delivered = run(&script, &Search::auto(), &()).await;
    assert_eq!(delivered.attempts, 10);
    let bounds = [
        (1, 2),
        (2, 4),
        (4, 8),
        (8, 16),
        (15, 30),
        (15, 30),
        (15, 30),
        (40, 44),
        (1, 2),
    ];
    for (pause, (low, high)) in script.pauses().into_iter().zip(bounds) {
        // Paused time moves in whole milliseconds, upwards.
        let within = pause >= f64::from(low) && pause <= f64::from(high) + 0.01;
        assert!(within, "{pause} is not in {low}..={high}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_is_waited_for_as_long_as_it_says_but_not_for_ever() {
    let after = [Some(0), Some(100), Some(1_000_000_000)];
    let script = Script::new(after.map(retry).into_iter().chain([ok()]));
    run(&script, &Search::auto(), &()).await;
    let pauses = script.pauses();
    assert!(pauses[0] >= 1.0 && pauses[0] < 2.01, "{pauses:?}");
    assert!(pauses[1] >= 100.0 && pauses[1] < 110.01, "{pauses:?}");
    assert!(pauses[2] >= 300.0 && pauses[2] < 330.01, "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_encoding_is_replaced_at_once_and_remembered() {
    let script = Script::new([hold(Doubt::Possible), retry(None), ok(), ok()]);
    let search = Search::auto();
    let diary = Diary::default();
    let delivered = run(&script, &search, &diary).await;
    assert_eq!(delivered.encoding, Encoding::Gzip);
    assert_eq!(delivered.wire_bytes, "3 as gzip".len() as u64);
    assert_eq!(search.preferred(), Encoding::Gzip);
    assert!(script.pauses()[0] < 0.01, "{:?}", script.pauses());
    run(&script, &search, &diary).await;
    let expected = [
        Encoding::Zstd,
        Encoding::Gzip,
        Encoding::Gzip,
        Encoding::Gzip,
    ];
    assert_eq!(script.encodings(), expected);
    let expected = [
        "send 7 zstd",
        "recode zstd gzip no",
        "send 9 gzip",
        "retry unavailable busy",
        "send 9 gzip",
        "delivered 3",
        "send 9 gzip",
        "delivered 1",
    ];
    assert_eq!(*diary.0.lock().unwrap(), expected);
}

#[tokio::test(start_paused = true)]
async fn if_every_encoding_is_refused_it_holds_and_searches_again() {
    let refused = || [const { Doubt::Possible }; 3].map(hold);
    let script = Script::new(refused().into_iter().chain(refused()).chain([ok()]));
    let diary = Diary::default();
    let delivered = run(&script, &Search::auto(), &diary).await;
    assert_eq!(
        (delivered.attempts, delivered.encoding),
        (7, Encoding::Zstd)
    );
    let held = diary.0.lock().unwrap();
    let held = held.iter().filter(|line| *line == "hold no").count();
    assert_eq!(held, 2);
    let pauses = script.pauses();
    for (index, pause) in pauses.iter().enumerate() {
        let waited = *pause >= 40.0;
        assert_eq!(waited, index % 3 == 2, "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_configured_encoding_is_recoded_to_but_never_left() {
    let script = Script::new([hold(Doubt::Named), ok()]);
    let search = Search::fixed(Encoding::Identity);
    let delivered = run(&script, &search, &()).await;
    assert_eq!(delivered.attempts, 2);
    assert_eq!(script.encodings(), [Encoding::Identity; 2]);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_ends_it() {
    let script = Script::new([retry(None)]);
    let search = Search::auto();
    let limit = Duration::from_millis(500);
    let cut = tokio::time::timeout(limit, run(&script, &search, &())).await;
    assert!(cut.is_err());
    assert_eq!(script.asked.lock().unwrap().len(), 1);
}

/// Anything that an endpoint may answer before it accepts.
fn failure() -> impl Strategy<Value = Answered> {
    prop_oneof![
        Just(hold(Doubt::None)),
        Just(hold(Doubt::Possible)),
        Just(hold(Doubt::Named)),
        prop::option::of(0u64..400).prop_map(retry),
    ]
}

proptest! {
    /// Whatever the endpoint answers: every answer is followed by exactly one attempt until one is
    /// accepted, no wait is longer than the longest, and between two waits no encoding comes twice.
    #[test]
    fn nothing_is_skipped_and_no_loop_is_hot(answers in prop::collection::vec(failure(), 0..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let count = answers.len();
            let script = Script::new(answers.into_iter().chain([ok()]));
            let delivered = run(&script, &Search::auto(), &()).await;
            prop_assert_eq!(delivered.attempts, count as u64 + 1);
            prop_assert!(script.answers.lock().unwrap().is_empty());
            let (encodings, mut tried) = (script.encodings(), Vec::new());
            for (index, encoding) in encodings.iter().enumerate() {
                let pause = index.checked_sub(1).map_or(f64::MAX, |before| script.pauses()[before]);
                if pause > 0.5 {
                    tried.clear();
                }
                prop_assert!(index == 0 || pause < 331.0, "{}", pause);
                prop_assert!(!tried.contains(encoding), "{:?}", encodings);
                tried.push(*encoding);
            }
            Ok(())
        })?;
    }
}
