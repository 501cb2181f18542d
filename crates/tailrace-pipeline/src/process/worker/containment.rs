//! A worker against a whole pipeline without a reader: what happens to batches that panic, and in which order requests
//! come out that several workers made.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use prometheus_client::registry::Registry;
use tailrace_config as config;
use tailrace_inputs::{FileId, FingerprintKey, HandedOver};
use tailrace_outputs::delivery::{DeadLetterEntry, read_dead_letters};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::input::batch::{RawBatch, SourceEvent};
use crate::input::resume::ResumeTable;
use crate::metrics::Metrics;
use crate::pipeline::{BuildContext, Built, build, open};
use crate::process::in_progress::Group;
use crate::process::unfinished::InParts as _;
use crate::safe_mode::SafeMode;
use crate::watermark::{Opening, Resumed, Slot};

/// A pipeline with outputs `one` and `two` that write files, and one source that the test reads for it.
struct Bench {
    dir: TempDir,
    runtime: Runtime,
    built: Built,
    jobs: Arc<Jobs>,
    in_progress: Arc<InProgress>,
    failpoints: Failpoints,
    tap: Tap,
    slot: Slot,
    read_to: u64,
}

impl Bench {
    /// `more` stands in the pipeline.
    fn new(more: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().display();
        let yaml = format!(
            "pipelines: {{a: {{input: {{type: file, format: json, include: ['{here}/none']}}, outputs: [\
               {{name: one, type: file, path: '{here}/one'}}, {{name: two, type: file, path: '{here}/two'}}], {more}}}}}"
        );
        let path = dir.path().join("tailrace.yaml");
        fs::write(&path, yaml).unwrap();
        let loaded = config::load(std::slice::from_ref(&path), &|_| None).unwrap();
        let plan = PipelinePlan::prepare("a", &loaded.pipelines["a"], &[]).unwrap();
        let runtime = Runtime::new().unwrap();
        let jobs = Arc::<Jobs>::default();
        let around = BuildContext {
            id: PipelineId(1),
            queue_bytes: 16 << 20,
            jobs: &jobs,
            metrics: &Metrics::register(&mut Registry::default()),
            runtime: runtime.handle(),
            faults: &Faults::new(),
            fingerprint_key: FingerprintKey::default(),
            resume: ResumeTable::default(),
            first_start: true,
            handed_over: HandedOver::default(),
            data_dir: dir.path(),
            safe_mode: &Arc::new(SafeMode::begin(dir.path(), Instant::now())),
            reasons: &Arc::default(),
        };
        let built = build(open(plan, runtime.handle()).unwrap(), around).unwrap();
        let slot = open_source(&built.pipeline, Vec::new());
        Self {
            in_progress: InProgress::open(dir.path()),
            dir,
            runtime,
            built,
            jobs,
            failpoints: Failpoints::default(),
            tap: Tap::default(),
            slot,
            read_to: 0,
        }
    }

    fn pipeline(&self) -> &Arc<Pipeline> {
        &self.built.pipeline
    }

    fn worker(&self) -> Worker {
        Worker::new(&self.pipeline().plan, 0)
    }

    /// Reads and frames text.
    fn frame(&mut self, worker: &Worker, text: &str) -> Framed {
        let offset = self.read_to;
        self.read_to += text.len() as u64;
        self.pipeline().tracker.read(self.slot, self.read_to);
        self.frame_in(0, worker, (offset, offset == 0), text)
    }

    /// Frames text in an input queue, which may not know the source yet.
    fn frame_in(
        &self,
        queue: usize,
        worker: &Worker,
        (offset, is_new): (u64, bool),
        text: &str,
    ) -> Framed {
        self.read(queue, (offset, is_new), text);
        let pipeline = self.pipeline();
        let queue = &pipeline.queues[queue];
        let searcher = worker.transform.searcher(&pipeline.plan, true);
        queue
            .frame_next(searcher, &mut Frames::default())
            .unwrap()
            .0
    }

    /// Puts text into an input queue.
    fn read(&self, queue: usize, (offset, is_new): (u64, bool), text: &str) {
        let slot = self.slot;
        let opened = SourceEvent::Opened {
            slot,
            replaces: None,
            path: PathBuf::from("/var/log/app.log").into(),
            offset,
            mid_line: false,
            replay_to: 0,
        };
        let mut events = Vec::new();
        events.extend(is_new.then_some(opened));
        let end = text.len();
        events.push(SourceEvent::Chunk {
            slot,
            start: 0,
            end,
        });
        self.pipeline().queues[queue].batches.push(RawBatch {
            bytes: Bytes::from(text.to_owned()),
            events,
            credit: None,
            room: None,
            observed_ns: 0,
            read_at: Instant::now(),
            cuts: 0,
        });
    }

    fn process(&self, worker: &mut Worker, framed: Framed) {
        let queue = if framed.is_catch_up {
            self.pipeline().queues.catch_up(0, 1)
        } else {
            0
        };
        if let Some(mut work) = self.begin(worker, queue, framed) {
            let until = Instant::now() + Duration::from_secs(60);
            while !self.go_on(worker, &mut work) {
                while !work.is_drained() {
                    assert!(Instant::now() < until, "what is handed over is delivered");
                    std::thread::yield_now();
                }
            }
        }
    }

    fn begin(&self, worker: &Worker, queue: usize, mut framed: Framed) -> Option<Work> {
        let work = worker.work_of(self.pipeline(), queue, &mut framed, true, &self.around());
        if work.is_none() {
            self.pipeline().pass_turns(&mut framed);
        }
        work
    }

    fn go_on(&self, worker: &mut Worker, work: &mut Work) -> bool {
        let is_done = worker.go_on(self.pipeline(), work, &mut self.around());
        if is_done {
            self.pipeline().pass_turns(&mut work.framed);
        }
        is_done
    }

    fn around(&self) -> Around<'_> {
        Around {
            failpoints: &self.failpoints,
            hold: None,
            marks: self.in_progress.worker(0),
            compressors: Compressors::default(),
            tap: &self.tap,
        }
    }

    /// Waits until all that was handed over is delivered or set aside.
    fn drain(&mut self) {
        self.built
            .pipeline
            .outputs
            .iter()
            .for_each(crate::delivery::outputs::OutputHandle::close);
        for sending in self.built.sending.drain(..) {
            self.runtime.block_on(sending).unwrap();
        }
        let (unacked, _) = self.pipeline().tracker.undelivered_bytes();
        assert_eq!(unacked, 0);
        let ledger = self.pipeline().ledger();
        for output in &ledger.outputs {
            assert_eq!(ledger.in_flight(output), 0, "{ledger:?}");
            assert_eq!(output.in_flight_requests, 0, "{ledger:?}");
        }
    }

    fn written(&self, output: &str) -> Vec<u64> {
        let text = fs::read_to_string(self.dir.path().join(output)).unwrap_or_default();
        let number = |line: &str| {
            let digits = line.chars().skip_while(|c| !c.is_ascii_digit());
            let digits: String = digits.take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        };
        text.lines().map(number).collect()
    }

    fn dead_letters(&self) -> Vec<DeadLetterEntry> {
        let entries = read_dead_letters(&dead_letter_file(self.dir.path())).unwrap();
        entries.into_iter().map(Result::unwrap).collect()
    }
}

/// A file, and what each output acknowledged of it in an earlier run.
fn open_source(pipeline: &Pipeline, resume: Vec<Resumed>) -> Slot {
    pipeline.tracker.open(Opening {
        id: Some(FileId {
            inode: 1,
            ..FileId::NONE
        }),
        generation: resume.len() as u32,
        path: PathBuf::from("/var/log/app.log").into(),
        origin: None,
        offset: 0,
        size: 0,
        replay_to: 0,
        resume,
    })
}

fn dead_letter_file(dir: &Path) -> PathBuf {
    dir.join("dead-letter/a.ndjson")
}

fn lines(numbers: Range<u64>) -> String {
    numbers.map(|n| format!("{{\"n\":{n}}}\n")).collect()
}

#[test]
fn requests_of_a_file_come_out_as_they_were_read_whoever_made_them() {
    let mut bench = Bench::new("transform: SELECT n FROM logs WHERE n < 70 OR n >= 80");
    let mut worker = bench.worker();
    let mut batches: Vec<Framed> = (0..12)
        .map(|n| {
            let text = match n {
                5 => "\n\n".to_owned(),
                _ => lines(10 * n..10 * n + 10),
            };
            bench.frame(&worker, &text)
        })
        .collect();
    // The last one is ready first; a worker more or less makes no difference.
    let mut others = bench.worker();
    batches.reverse();
    for (n, framed) in batches.into_iter().enumerate() {
        let worker = if n % 2 == 0 { &mut worker } else { &mut others };
        bench.process(worker, framed);
    }
    bench.drain();
    let expect: Vec<u64> = (0..120)
        .filter(|n| !(50..60).contains(n) && !(70..80).contains(n))
        .collect();
    assert_eq!(bench.written("one"), expect);
    assert_eq!(bench.written("two"), expect);
}

#[test]
fn an_output_that_was_detached_keeps_the_order_too() {
    let mut bench = Bench::new("");
    let mut worker = bench.worker();
    let framed = bench.frame(&worker, &lines(0..10));
    bench.process(&mut worker, framed);
    let pipeline = Arc::clone(bench.pipeline());
    let until = Instant::now() + Duration::from_secs(60);
    while !pipeline.tracker.behind(1, bench.slot).unwrap().drained {
        assert!(Instant::now() < until, "the first batch is delivered");
        std::thread::yield_now();
    }
    let offset = bench.read_to;
    assert!(pipeline.queues[0].attach(1, false, || true));
    let only_one = bench.frame(&worker, &lines(10..20));
    pipeline.tracker.begin_catch_up(1, bench.slot);
    let queue = pipeline.queues.catch_up(0, 1);
    let only_two = bench.frame_in(queue, &worker, (offset, true), &lines(10..20));
    assert!(pipeline.queues[0].attach(1, true, || true));
    let both = bench.frame(&worker, &lines(20..30));
    assert_eq!(
        [&only_one.wanted[..], &only_two.wanted, &both.wanted],
        [[true, false], [false, true], [true, true]]
    );
    for framed in [both, only_two, only_one] {
        bench.process(&mut worker, framed);
    }
    bench.drain();
    assert_eq!(bench.written("one"), Vec::from_iter(0..30));
    assert_eq!(bench.written("two"), Vec::from_iter(0..30));
}

/// Its batches begin and end elsewhere than those of the others.
#[test]
fn what_an_output_had_acknowledged_before_it_was_detached_is_counted() {
    let ends = [lines(0..10).len() as u64, lines(0..20).len() as u64];
    for (one, two, sent) in [
        (0, ends[1], 10),
        (ends[0], ends[1], 10),
        (ends[1], ends[0], 10),
    ] {
        let mut bench = Bench::new("transform: SELECT n FROM logs WHERE n % 2 = 0");
        let mut worker = bench.worker();
        let pipeline = Arc::clone(bench.pipeline());
        let resumed = [one, two].map(|watermark| Resumed {
            watermark,
            ..Resumed::default()
        });
        bench.slot = open_source(&pipeline, resumed.to_vec());
        assert!(pipeline.queues[0].attach(1, false, || true));
        for batch in [0..10, 10..20, 20..30] {
            let shared = bench.frame(&worker, &lines(batch));
            bench.process(&mut worker, shared);
        }
        pipeline.tracker.begin_catch_up(1, bench.slot);
        let queue = pipeline.queues.catch_up(0, 1);
        let mut offset = 0;
        for batch in [0..5, 5..10, 10..30] {
            let text = lines(batch);
            let own = bench.frame_in(queue, &worker, (offset, offset == 0), &text);
            offset += text.len() as u64;
            bench.process(&mut worker, own);
        }
        bench.drain();
        let ledger = pipeline.ledger();
        assert_eq!((ledger.records, ledger.filtered), (30, 15));
        let outcomes = ledger.outputs.iter();
        let outcomes = outcomes.map(|output| output.delivered.cast_signed() + output.acked_before);
        assert_eq!(Vec::from_iter(outcomes), [15, 15], "{one} {two}");
        assert_eq!(bench.written("two").len(), sent, "{one} {two}");
    }
}

#[test]
fn what_a_query_makes_of_a_batch_is_made_in_pieces() {
    // 100 KB of each record, and of one in ten a value too large for any.
    let query = "SELECT n, repeat('x', CASE WHEN n % 10 = 3 THEN 20000000 ELSE 100000 END) AS r FROM logs WHERE n <> 7";
    let mut bench = Bench::new(&format!("transform: \"{query}\""));
    let mut worker = bench.worker();
    for batch in [0..300, 300..301, 301..500] {
        let framed = bench.frame(&worker, &lines(batch));
        bench.process(&mut worker, framed);
    }
    assert!(
        (2..1000).contains(&worker.piece_max),
        "{}",
        worker.piece_max
    );
    bench.drain();
    let expect: Vec<u64> = (0..500).filter(|n| *n != 7).collect();
    assert_eq!(bench.written("one"), expect);
    let text = fs::read_to_string(bench.dir.path().join("one")).unwrap();
    let x = "x".repeat(100_000);
    for (line, n) in text.lines().zip(expect) {
        let r = if n % 10 == 3 {
            "".into()
        } else {
            format!(",\"r\":\"{x}\"")
        };
        let whole = format!("{{\"n\":{n}{r}}}");
        assert!(
            line == whole || line == format!("{{\"n\":{n},\"r\":null}}"),
            "{n}"
        );
    }
    let failed = bench.pipeline().metrics.failed_rows.get();
    assert_eq!(failed, 50, "each is counted once");
}

/// Lines with a number and a text of so many bytes.
fn long_lines(numbers: Range<u64>, bytes: usize) -> String {
    let text = "m".repeat(bytes);
    let line = |n| format!("{{\"n\":{n},\"m\":\"{text}\"}}\n");
    numbers.map(line).collect()
}

#[test]
fn what_is_in_flight_is_bounded_however_much_a_query_makes() {
    let columns: Vec<String> = (0..100).map(|n| format!("m AS c{n}")).collect();
    let branches = vec!["SELECT n, m FROM logs"; 100];
    let cases = [
        (
            "SELECT n, repeat('x', 100000) AS r FROM logs".to_owned(),
            10,
            1,
        ),
        (
            format!("SELECT n, {} FROM logs", columns.join(", ")),
            1000,
            1,
        ),
        (branches.join(" UNION ALL "), 1000, 100),
    ];
    // After deaths a batch is processed in small groups.
    let twice = cases.iter().flat_map(|case| [(case, false), (case, true)]);
    for (&(ref query, bytes, times), after_deaths) in twice {
        let mut bench = Bench::new(&format!("transform: \"{query}\""));
        bench.failpoints.panic = Some(b"\"n\":77,".to_vec());
        let mut worker = bench.worker();
        let pipeline = Arc::clone(bench.pipeline());
        // The second one is begun first: its lines wait for all lines of the first one.
        let texts = [long_lines(0..400, bytes), long_lines(400..800, bytes)];
        let texts = texts.map(|text| bench.frame(&worker, &text));
        let mut begun = texts
            .map(|framed| bench.begin(&worker, 0, framed))
            .into_iter()
            .rev();
        let mut begun = begun.by_ref().map(|work| {
            let mut work = work?;
            if after_deaths {
                let group = |first: u32| Group {
                    records: first..first + 8,
                    deaths: 1,
                };
                work.groups = (0..400).step_by(8).map(group).collect();
            }
            Some(work)
        });
        let unfinished = &pipeline.unfinished[0];
        let exceeded = || pipeline.credit.exceeded();
        let take = || match unfinished.take(exceeded) {
            Next::Take(work) => Some(work),
            Next::Begin | Next::Wait => None,
        };
        let (mut peak, mut waited) = (0, 0);
        let until = Instant::now() + Duration::from_secs(120);
        while let Some(mut work) = begun.next().flatten().or_else(take) {
            if !bench.go_on(&mut worker, &mut work) {
                unfinished.put(work);
                waited += 1;
            }
            peak = peak.max(pipeline.credit.used());
            while begun.len() == 0 && !unfinished.can_go_on(exceeded) {
                assert!(Instant::now() < until, "a batch goes on");
                std::thread::yield_now();
            }
        }
        let piece = 6 * 1024 * 1024 + 16 * 1024 * 1024;
        let bound = pipeline.credit.capacity() + 2 * piece;
        assert!(peak < bound, "{query:.40}: {peak} of {bound}");
        assert!(waited > 2, "{query:.40}: {waited}");
        bench.drain();
        let numbers = (0..800).filter(|n| *n != 77);
        let expect: Vec<u64> = numbers.flat_map(|n| vec![n; times]).collect();
        for output in ["one", "two"] {
            assert_eq!(bench.written(output), expect, "{query:.40}");
            let entries = bench.dead_letters();
            let of_output = entries.iter().filter(|entry| entry.output == output);
            assert_eq!(of_output.count(), 1);
        }
        assert_eq!(pipeline.credit.used(), 0);
    }
}

#[test]
fn workers_make_all_of_it_whoever_has_to_wait() {
    let query = "SELECT n, repeat('x', 100000) AS r FROM logs";
    let mut bench = Bench::new(&format!("transform: \"{query}\""));
    let pipeline = Arc::clone(bench.pipeline());
    let shared = Shared {
        jobs: Arc::clone(&bench.jobs),
        pipelines: Pipelines::default(),
        faults: Faults::new(),
        failpoints: Failpoints::default(),
        hold: None,
        in_progress: Arc::clone(&bench.in_progress),
        tap: Arc::default(),
    };
    shared.pipelines.add(Arc::clone(&pipeline));
    for n in 0..12 {
        let text = lines(100 * n..100 * n + 100);
        bench.read(0, (bench.read_to, n == 0), &text);
        bench.read_to += text.len() as u64;
        pipeline.tracker.read(bench.slot, bench.read_to);
        pipeline.push_job(0);
    }
    bench.jobs.close();
    std::thread::scope(|scope| {
        for number in 0..3 {
            let shared = &shared;
            scope.spawn(move || run(shared, number));
        }
    });
    assert!(!shared.faults.any());
    bench.drain();
    assert_eq!(bench.written("one"), Vec::from_iter(0..1200));
    assert_eq!(bench.written("two"), Vec::from_iter(0..1200));
}

#[test]
fn a_batch_that_is_given_up_half_way_is_not_acked() {
    let query = "SELECT n, repeat('x', 100000) AS r FROM logs";
    let mut bench = Bench::new(&format!("transform: \"{query}\""));
    let mut worker = bench.worker();
    let framed = bench.frame(&worker, &lines(0..1000));
    let mut work = bench.begin(&worker, 0, framed).unwrap();
    assert!(!bench.go_on(&mut worker, &mut work));
    let until = Instant::now() + Duration::from_secs(60);
    while !work.is_drained() {
        assert!(Instant::now() < until, "what is handed over is delivered");
        std::thread::yield_now();
    }
    drop(work);
    let (unacked, _) = bench.pipeline().tracker.undelivered_bytes();
    assert_eq!(unacked, bench.read_to);
}

#[test]
fn a_panic_costs_the_record_and_nothing_else() {
    let mut bench = Bench::new("transform: SELECT n FROM logs WHERE n % 10 <> 0");
    let mut worker = bench.worker();
    bench.failpoints.panic = Some(b"3}".to_vec());
    let first = bench.frame(&worker, &lines(0..50));
    let second = bench.frame(&worker, &lines(50..100));
    bench.process(&mut worker, second);
    bench.process(&mut worker, first);
    bench.drain();
    let expect: Vec<u64> = (0..100).filter(|n| n % 10 != 0 && n % 10 != 3).collect();
    assert_eq!(bench.written("one"), expect);
    assert_eq!(bench.written("two"), expect);

    let ledger = bench.pipeline().ledger();
    assert_eq!((ledger.records, ledger.filtered), (100, 10));
    for output in &ledger.outputs {
        assert_eq!((output.delivered, output.dead_lettered), (80, 10));
    }
    assert_eq!(bench.pipeline().metrics.panicked.get(), 10);
    let text = lines(0..100);
    let entries = bench.dead_letters();
    for output in ["one", "two"] {
        let of_output = entries.iter().filter(|entry| entry.output == output);
        let mut found = Vec::new();
        for entry in of_output {
            assert!(entry.reason.contains("failpoint"), "{}", entry.reason);
            assert_eq!(
                (entry.path.as_str(), entry.payload.len()),
                ("/var/log/app.log", 0)
            );
            let (start, end) = entry.bytes.unwrap();
            let crashed = entry.crashed.as_ref().unwrap();
            let line = &text.as_bytes()[start as usize..end as usize];
            assert_eq!([&crashed.line[..], b"\n"].concat(), line);
            found.push(crashed.line.clone());
        }
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 10, "{output}");
    }
}

#[test]
fn rows_of_several_branches_come_out_together_and_count_once() {
    let mut bench = Bench::new(
        "transform: SELECT n FROM logs UNION ALL SELECT n + 1000 AS n FROM logs WHERE n >= 5",
    );
    let mut worker = bench.worker();
    bench.failpoints.panic = Some(b"3}".to_vec());
    let framed = bench.frame(&worker, &lines(0..20));
    bench.process(&mut worker, framed);
    bench.drain();
    let records = (0..20).filter(|n| n % 10 != 3);
    let rows = records.flat_map(|n| [Some(n), (n >= 5).then_some(1000 + n)]);
    assert_eq!(bench.written("one"), Vec::from_iter(rows.flatten()));
    let ledger = bench.pipeline().ledger();
    let output = &ledger.outputs[1];
    assert_eq!((output.delivered, output.dead_lettered), (18, 2));
}

#[test]
fn a_batch_in_which_every_record_panics_is_set_aside_whole() {
    let mut bench = Bench::new("");
    let mut worker = bench.worker();
    bench.failpoints.panic = Some(b"n".to_vec());
    let framed = bench.frame(&worker, &lines(0..33));
    bench.process(&mut worker, framed);
    bench.failpoints.panic = None;
    let framed = bench.frame(&worker, &lines(33..40));
    bench.process(&mut worker, framed);
    bench.drain();
    assert_eq!(bench.dead_letters().len(), 66);
    assert_eq!(bench.written("one"), Vec::from_iter(33..40));
}

#[test]
fn when_the_dead_letter_file_is_full_records_are_dropped_if_so_configured() {
    let mut bench = Bench::new("dead_letter: {max_bytes: 64KiB, on_full: drop}");
    let mut worker = bench.worker();
    fs::create_dir(bench.dir.path().join("dead-letter")).unwrap();
    fs::write(dead_letter_file(bench.dir.path()), [b'\n'; 65_000]).unwrap();
    bench.failpoints.panic = Some(b"7".to_vec());
    let framed = bench.frame(&worker, &lines(0..30));
    bench.process(&mut worker, framed);
    bench.drain();
    let ledger = bench.pipeline().ledger();
    let set_aside: u64 = ledger
        .outputs
        .iter()
        .map(|output| output.dead_lettered)
        .sum();
    let dropped: u64 = ledger.outputs.iter().map(|output| output.dropped).sum();
    assert_eq!(bench.dead_letters().len() as u64, set_aside);
    assert_eq!(set_aside + dropped, 6, "{ledger:?}");
    assert!(set_aside > 0 && dropped > 0, "{ledger:?}");
}

#[test]
fn else_they_wait_for_room_and_the_others_go_on() {
    let mut bench = Bench::new("dead_letter: {max_bytes: 64KiB}");
    let mut worker = bench.worker();
    fs::create_dir(bench.dir.path().join("dead-letter")).unwrap();
    fs::write(dead_letter_file(bench.dir.path()), [b'\n'; 65_530]).unwrap();
    bench.failpoints.panic = Some(b"7".to_vec());
    let framed = bench.frame(&worker, &lines(0..10));
    bench.process(&mut worker, framed);
    let framed = bench.frame(&worker, &lines(10..15));
    bench.process(&mut worker, framed);
    let in_flight = || {
        let ledger = bench.pipeline().ledger();
        let outputs = ledger.outputs.iter();
        Vec::from_iter(outputs.map(|output| ledger.in_flight(output)))
    };
    let until = Instant::now() + Duration::from_secs(60);
    while in_flight() != [1, 1] {
        let now = in_flight();
        assert!(
            Instant::now() < until,
            "the bad record waits, and no other: {now:?}"
        );
        std::thread::yield_now();
    }
    assert_eq!(bench.dead_letters().len(), 0);
    fs::remove_file(dead_letter_file(bench.dir.path())).unwrap();
    bench.drain();
    assert_eq!(bench.dead_letters().len(), 2);
}

#[test]
fn what_is_not_set_aside_is_not_acked() {
    let mut bench = Bench::new("dead_letter: {max_bytes: 64KiB}");
    let mut worker = bench.worker();
    fs::create_dir(bench.dir.path().join("dead-letter")).unwrap();
    fs::write(dead_letter_file(bench.dir.path()), [b'\n'; 65_536]).unwrap();
    bench.failpoints.panic = Some(b"7".to_vec());
    let framed = bench.frame(&worker, &lines(0..10));
    bench.process(&mut worker, framed);
    bench
        .pipeline()
        .outputs
        .iter()
        .for_each(crate::delivery::outputs::OutputHandle::close);
    bench
        .pipeline()
        .outputs
        .iter()
        .for_each(crate::delivery::outputs::OutputHandle::abandon);
    for sending in bench.built.sending.drain(..) {
        bench.runtime.block_on(sending).unwrap();
    }
    let (unacked, _) = bench.pipeline().tracker.undelivered_bytes();
    assert_eq!(unacked, bench.read_to);
    let outputs = &bench.pipeline().metrics.outputs;
    let in_flight = || {
        outputs
            .iter()
            .map(|output| output.in_flight.get())
            .sum::<i64>()
    };
    // The attempts that were under way are dropped a moment later.
    let until = Instant::now() + Duration::from_secs(60);
    while in_flight() != 0 {
        assert!(Instant::now() < until, "{} are in flight", in_flight());
        std::thread::yield_now();
    }
}
