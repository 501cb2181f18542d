//! What workers leave for readers: bounded, spread, and never waited for.

use std::path::Path;

use tailrace_frame::Frames;

use super::*;
use crate::input::facts::FactsConfig;
use crate::input::input_queue::SourceRun;

const A: (PipelineId, &str) = (PipelineId(1), "a");

/// A batch with so many lines of so many bytes of each file.
fn batch(files: &[(&str, usize, usize)]) -> Framed {
    let config = FactsConfig {
        resource: Vec::new(),
        encodings: Vec::new(),
        files: true,
        framing: None,
        pods: None,
    };
    let (mut frames, mut bytes, mut runs) = (Frames::default(), Vec::new(), Vec::new());
    for (path, lines, length) in files {
        let first = frames.records.len() as u32;
        for _ in 0..*lines {
            let start = bytes.len() as u32;
            bytes.resize(bytes.len() + length, b'x');
            frames.records.push(Record {
                buffer: 0,
                start,
                end: bytes.len() as u32,
                flags: tailrace_frame::Flags::NONE,
                stream: tailrace_frame::Stream::Stderr,
                time_ns: 7,
            });
        }
        runs.push(SourceRun {
            records: first..frames.records.len() as u32,
            facts: config.described(Path::new(path), Vec::new()),
        });
    }
    Framed {
        frames,
        buffers: vec![bytes.into(), Bytes::new()],
        runs,
        observed_ns: 1,
        ..Framed::default()
    }
}

/// What waits for a reader: by source, how many records; and all texts.
fn queued(subscription: &mut Subscription) -> (Vec<(String, usize)>, Vec<String>) {
    let (mut counts, mut texts) = (Vec::new(), Vec::new());
    while let Ok(sample) = subscription.samples.try_recv() {
        for (records, facts) in &sample.sources {
            let path = facts.file_path.clone().unwrap_or_default();
            counts.push((path, records.len()));
        }
        let text = |it: &Record| {
            String::from_utf8_lossy(&sample.bytes[it.start as usize..it.end as usize]).into_owned()
        };
        texts.extend(sample.records.iter().map(text));
    }
    (counts, texts)
}

#[test]
fn a_batch_is_sampled_for_whoever_wants_its_pipeline() {
    let tap = Arc::<Tap>::default();
    let framed = batch(&[("/logs/a.log", 3, 10), ("/logs/b.log", 1, 10)]);
    tap.sample(A, 0, &framed);
    let mut all = tap.subscribe(None).unwrap();
    let mut of_a = tap.subscribe(Some("a".to_owned())).unwrap();
    let mut of_b = tap.subscribe(Some("b".to_owned())).unwrap();
    tap.sample(A, 0, &framed);
    for reader in [&mut all, &mut of_a] {
        let (counts, texts) = queued(reader);
        let expected = [("/logs/a.log".to_owned(), 3), ("/logs/b.log".to_owned(), 1)];
        assert_eq!(counts, expected);
        assert_eq!(texts.len(), 4);
        assert_eq!(reader.take_not_sampled(), 0);
    }
    assert_eq!(queued(&mut of_b).0, []);
    assert_eq!(of_b.take_not_sampled(), 0);
}

#[test]
fn of_many_records_a_few_of_each_source_are_sampled() {
    let tap = Arc::<Tap>::default();
    let mut reader = tap.subscribe(None).unwrap();
    tap.sample(
        A,
        0,
        &batch(&[("loud", 100_000, 10), ("quiet", 5, 10), ("one", 1, 10)]),
    );
    let (counts, _) = queued(&mut reader);
    let expected = [
        ("loud".to_owned(), 8),
        ("quiet".to_owned(), 5),
        ("one".to_owned(), 1),
    ];
    assert_eq!(counts, expected);
    assert_eq!(reader.take_not_sampled(), 100_006 - 14);
    assert_eq!(reader.take_not_sampled(), 0);
}

#[test]
fn a_worker_waits_for_nobody() {
    let tap = Arc::<Tap>::default();
    let mut reader = tap.subscribe(None).unwrap();
    let framed = batch(&[("a", 4, 10)]);
    // Somebody else looks at the subscriptions.
    let held = tap.state.lock().unwrap();
    tap.sample(A, 0, &framed);
    drop(held);
    assert_eq!(queued(&mut reader).0, []);
    // The next batch counts what was missed.
    tap.sample(A, 0, &framed);
    assert_eq!(queued(&mut reader).1.len(), 4);
    assert_eq!(reader.take_not_sampled(), 4);
}

#[test]
fn a_reader_that_takes_nothing_costs_bounded_memory_and_every_record_is_counted() {
    let tap = Arc::<Tap>::default();
    let mut reader = tap.subscribe(None).unwrap();
    for (length, samples_max) in [(10, QUEUED_MAX), (100_000, 6)] {
        let framed = batch(&[("a", 1, length)]);
        let room = Room {
            records: 1,
            bytes: 1,
        };
        let sample = Arc::new(Sample::of((A.0, 0), &framed, room, 0).unwrap());
        for _ in 0..1000 {
            tap.lock().subscribers[0].give(1, Some(&sample));
        }
        let bytes = reader.counts.queued_bytes.load(Ordering::Relaxed);
        assert!(bytes < QUEUED_BYTES_MAX + length, "{bytes}");
        let mut taken = 0;
        while let Ok(sample) = reader.samples.try_recv() {
            let queued = &reader.counts.queued_bytes;
            queued.fetch_sub(sample.bytes.len(), Ordering::Relaxed);
            taken += 1;
        }
        assert_eq!(taken, samples_max);
        assert_eq!(reader.take_not_sampled(), 1000 - taken as u64);
    }
    // Where there is no room, nothing is copied.
    let framed = batch(&[("a", 1, 10)]);
    reader
        .counts
        .queued_bytes
        .store(QUEUED_BYTES_MAX, Ordering::Relaxed);
    tap.sample(A, 0, &framed);
    assert_eq!(queued(&mut reader).0, []);
    assert_eq!((tap.lock().turn, reader.take_not_sampled()), (0, 1));
}

#[test]
fn long_records_are_bounded() {
    let tap = Arc::<Tap>::default();
    let mut reader = tap.subscribe(None).unwrap();
    let files = [("a", 2, RECORD_BYTES_MAX + 1), ("b", 9, RECORD_BYTES_MAX)];
    tap.sample(A, 0, &batch(&files));
    let (counts, _) = queued(&mut reader);
    assert_eq!(counts, [("b".to_owned(), 1)]);
    assert_eq!(reader.take_not_sampled(), 10);
}

#[test]
fn who_pauses_or_leaves_costs_nothing() {
    let tap = Arc::<Tap>::default();
    let open = || tap.open.load(Ordering::Relaxed);
    let mut one = tap.subscribe(None).unwrap();
    let two = tap.subscribe(None).unwrap();
    assert_eq!(open(), 2);
    one.pause();
    drop(two);
    assert_eq!(open(), 0);
    let framed = batch(&[("a", 1, 10)]);
    tap.sample(A, 0, &framed);
    assert_eq!((queued(&mut one).1.len(), one.take_not_sampled()), (0, 0));
    one.resume();
    tap.sample(A, 0, &framed);
    assert_eq!((queued(&mut one).1.len(), open()), (1, 1));
    let all: Vec<_> = (1..SUBSCRIPTIONS_MAX)
        .map(|_| tap.subscribe(None).unwrap())
        .collect();
    assert!(tap.subscribe(None).is_none());
    drop((all, one));
    assert_eq!(open(), 0);
}
