//! What a pipeline may hold, and who waits for whom.

use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use prometheus_client::registry::Registry;
use tailrace_config as config;

use std::time::Duration;

use super::make_queues::{QUEUE_BYTES_MIN, in_flight_max};
use super::*;

#[test]
fn what_detached_outputs_hold_is_within_the_share() {
    let mib = 1 << 20;
    assert_eq!(in_flight_max(8 * mib, 16 * mib, 1), 8 * mib);
    assert_eq!(in_flight_max(64 * mib, 16 * mib, 1), 16 * mib);
    assert_eq!(in_flight_max(64 * mib, 16 * mib, 2), 8 * mib);
    assert_eq!(in_flight_max(64 * mib, 0, 2), QUEUE_BYTES_MIN);
}

const BATCH_BYTES_MAX: usize = 64 * 1024;

/// A pipeline of two files, `long` and `short`, that nobody works for.
fn build_two_inputs(dir: &Path, jobs: &Arc<Jobs>, runtime: &Handle) -> Built {
    let yaml = format!(
        "pipelines: {{a: {{inputs: [\
           {{type: file, include: [\"{0}/long\"]}},\
           {{type: file, include: [\"{0}/short\"]}}],\
         batch: {{max_bytes: {BATCH_BYTES_MAX}, max_wait: 1ms}}, output: {{type: stdout}}}}}}",
        dir.display()
    );
    let path = dir.join("tailrace.yaml");
    fs::write(&path, yaml).unwrap();
    let loaded = config::load(std::slice::from_ref(&path), &|_| None).unwrap();
    let plan = PipelinePlan::prepare("a", &loaded.pipelines["a"], &[]).unwrap();
    let around = BuildContext {
        id: PipelineId(1),
        queue_bytes: 16 << 20,
        jobs,
        metrics: &Metrics::register(&mut Registry::default()),
        runtime,
        faults: &Faults::new(),
        fingerprint_key: FingerprintKey::default(),
        resume: ResumeTable::default(),
        first_start: true,
        handed_over: HandedOver::default(),
        data_dir: dir,
        safe_mode: &Arc::new(SafeMode::begin(dir, Instant::now())),
        reasons: &Arc::default(),
    };
    build(open(plan, runtime).unwrap(), around).unwrap()
}

fn wait_until(is_so: impl Fn() -> bool, otherwise: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < until, "{otherwise}");
        thread::yield_now();
    }
}

/// Without a worker one full batch waits and one more is read. No other input waits for that, and a pipeline that is stopped does
/// not wait either.
#[test]
fn a_reader_waits_for_room_of_its_own_input_until_it_is_to_stop() {
    let dir = tempfile::tempdir().unwrap();
    let line = "{\"message\":\"a line of some length, so that there are not too many\"}\n";
    let batches = |count| line.repeat(count * BATCH_BYTES_MAX / line.len() + 1);
    fs::write(dir.path().join("long"), batches(9)).unwrap();
    fs::write(dir.path().join("short"), line).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let jobs = Arc::new(Jobs::default());
    let Built {
        pipeline, readers, ..
    } = build_two_inputs(dir.path(), &jobs, runtime.handle());
    let rooms = [0, 1].map(|queue| Arc::clone(&pipeline.queues[queue].batches.room));
    let (ended, ends) = mpsc::sync_channel(2);
    for (reader, room) in readers.into_iter().zip(&rooms) {
        let ended = ended.clone();
        thread::spawn(move || {
            reader.run();
            ended.send(()).unwrap();
        });
        wait_until(|| room.used() > 0, "no batch has room");
    }
    // The next batch is read and has credit, and no room.
    let waits = || pipeline.credit.used() > rooms.iter().map(|room| room.used()).sum();
    wait_until(waits, "one batch is read");
    let waited = Instant::now();
    pipeline.stop_reading();
    for _ in &rooms {
        ends.recv_timeout(Duration::from_secs(60))
            .expect("a reader that is to stop ends");
    }
    let waiting = [0, 1].map(|queue| {
        let queue = &pipeline.queues[queue].batches;
        let batches = std::iter::from_fn(|| queue.pop());
        Vec::from_iter(batches.filter(|batch| !batch.bytes.is_empty()))
    });
    // The one that had to wait was handed on without room.
    let have_room = waiting.each_ref().map(|batches| {
        let have_room = batches.iter().map(|batch| batch.room.is_some());
        Vec::from_iter(have_room)
    });
    assert_eq!(have_room, [vec![true, false], vec![true]]);
    let mut batches = waiting.iter().flatten();
    assert!(
        batches.all(|batch| batch.read_at <= waited),
        "a batch is as old as its reading"
    );
    drop(waiting);
    assert_eq!(rooms[0].used(), 0);
}
