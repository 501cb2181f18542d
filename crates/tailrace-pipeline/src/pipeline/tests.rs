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
use crate::input::reader::End;

#[test]
fn what_detached_outputs_hold_is_within_the_share() {
    let mib = 1 << 20;
    assert_eq!(in_flight_max(8 * mib, 16 * mib, 1), 8 * mib);
    assert_eq!(in_flight_max(64 * mib, 16 * mib, 1), 16 * mib);
    assert_eq!(in_flight_max(64 * mib, 16 * mib, 2), 8 * mib);
    assert_eq!(in_flight_max(64 * mib, 0, 2), QUEUE_BYTES_MIN);
}

const BATCH_BYTES_MAX: usize = 64 * 1024;

/// A pipeline of two files, `long` and `short`, that nobody works for. A batch that is not full waits for more.
fn build_two_inputs((dir, max_wait): (&Path, &str), jobs: &Arc<Jobs>, runtime: &Handle) -> Built {
    let yaml = format!(
        "pipelines: {{a: {{inputs: [\
           {{type: file, include: [\"{0}/long\"]}},\
           {{type: file, include: [\"{0}/short\"]}}],\
         batch: {{max_bytes: {BATCH_BYTES_MAX}, max_wait: {max_wait}}}, output: {{type: stdout}}}}}}",
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

/// Which of these inputs goes on with a file that was at `path`, and before that at `origin`.
fn owner(inputs: &str, path: &str, origin: Option<&str>) -> Option<usize> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tailrace.yaml");
    let yaml = format!("pipelines: {{a: {{inputs: [{inputs}], output: {{type: discard}}}}}}");
    fs::write(&file, yaml).unwrap();
    let loaded = config::load(&[file], &|_| None).unwrap();
    let inputs = loaded.pipelines["a"].inputs.iter();
    let claims: Vec<_> = inputs.map(|input| input.claims().unwrap()).collect();
    let entry = Resume {
        id: tailrace_inputs::FileId {
            device: 1,
            inode: 42,
            ..tailrace_inputs::FileId::NONE
        },
        generation: 0,
        path: Path::new(path).into(),
        origin: origin.map(|origin| Path::new(origin).into()),
        target: None,
        offset: 0,
        owed_from: 0,
        size: 0,
        is_unseen: false,
    };
    owner_of(&entry, &claims)
}

#[test]
fn a_file_goes_on_in_the_input_that_found_it_wherever_that_stands() {
    let app = "{type: file, include: [/log/app/*.log]}";
    let pods = "{type: kubernetes, metadata: path, logs_dir: /log/pods}";
    let all = "{type: file, include: ['/log/a*/**/*.log']}";
    let pod = "/log/pods/shop_web_u1/app/0.log";
    let rotated = format!("{pod}.20260102-030405");
    for (first, second, of_pods) in [(app, pods, 1), (pods, app, 0), (all, pods, 1)] {
        let owner = |path: &str, origin| owner(&format!("{first}, {second}"), path, origin);
        let of_app = Some(1 - of_pods);
        let of_pods = Some(of_pods);
        assert_eq!(owner(pod, None), of_pods);
        assert_eq!(owner(&rotated, Some(pod)), of_pods);
        // As an earlier build left it.
        assert_eq!(owner(&rotated, None), of_pods);
        assert_eq!(owner(&format!("{rotated}.gz"), None), of_pods);
        assert_eq!(owner("/log/app/x.log.1", None), of_app);
        assert_eq!(owner("/log/app/x.old", None), of_app);
        // By its name, and from wherever it was moved to.
        assert_eq!(owner("/log/app/x.old", Some("/log/app/x.log")), of_app);
        assert_eq!(owner("/log/pods/x.1", Some("/log/app/x.log")), of_app);
        assert_eq!(owner("/elsewhere/x.log", Some("/log/app/x.log")), of_app);
        // An input that finds it by the name that it has would read it again.
        assert_eq!(owner("/log/app/x.log", Some(pod)), of_app);
        assert_eq!(owner("/elsewhere/x.log", None), None);
    }
    // The name that it had is a better reason than the directory it is in.
    let texts = "{type: file, include: [/log/app/*.txt], format: raw}";
    for (path, origin) in [
        ("/log/app/x.old", Some("/log/app/x.log")),
        ("/log/app/x.log.1", None),
    ] {
        assert_eq!(owner(&format!("{texts}, {app}"), path, origin), Some(1));
        assert_eq!(owner(&format!("{app}, {texts}"), path, origin), Some(0));
    }
    assert_eq!(owner("{type: stdin}", pod, None), None);
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
    } = build_two_inputs((dir.path(), "1ms"), &jobs, runtime.handle());
    let rooms = [0, 1].map(|queue| Arc::clone(&pipeline.queues[queue].batches.room));
    let (ended, ends) = mpsc::sync_channel(2);
    for (reader, room) in readers.into_iter().zip(&rooms) {
        let ended = ended.clone();
        thread::spawn(move || {
            reader.run(let_go());
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

/// The end of a reader whose files nobody waits for.
fn let_go() -> End {
    End {
        has_read: mpsc::sync_channel(0).0,
        released: mpsc::sync_channel(0).1,
    }
}

/// What a reader has in hand when it is to stop is in flight until it is delivered, as everything is.
#[test]
fn what_is_handed_on_when_reading_ends_is_charged() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["long", "short"] {
        fs::write(dir.path().join(name), "{\"n\":1}\n").unwrap();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let jobs = Arc::new(Jobs::default());
    let Built {
        pipeline, readers, ..
    } = build_two_inputs((dir.path(), "1m"), &jobs, runtime.handle());
    let readers = readers
        .into_iter()
        .map(|reader| thread::spawn(|| reader.run(let_go())));
    let readers = Vec::from_iter(readers);
    let read = &pipeline.metrics.read_bytes;
    wait_until(|| read.get() == 16, "both files are read");
    assert_eq!(pipeline.ledger().in_flight_bytes, 0, "it waits for more");
    pipeline.stop_reading();
    readers.into_iter().for_each(|reader| drop(reader.join()));
    let queues = pipeline.queues.iter();
    let batches = queues.flat_map(|queue| std::iter::from_fn(|| queue.batches.pop()));
    let batches = Vec::from_iter(batches);
    assert!(batches.iter().any(|batch| !batch.bytes.is_empty()));
    assert!(batches.iter().all(|batch| batch.credit.is_some()));
    let size = || u64::try_from(pipeline.metrics.queue_size.get()).unwrap();
    assert!(pipeline.ledger().in_flight_bytes > 0);
    assert_eq!(size(), pipeline.ledger().in_flight_bytes);
    drop(batches);
    assert_eq!((size(), pipeline.ledger().in_flight_bytes), (0, 0));
}
