//! What a first start writes down while no reader runs yet: what a `kill -9` leaves at that moment.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use prometheus_client::registry::Registry;
use tailrace_config as config;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::fault::Faults;
use crate::jobs::Jobs;
use crate::pipeline::{BuildContext, build, open};
use crate::pipeline_id::PipelineId;
use crate::watermark::Opening;

const HOUR: Duration = Duration::from_secs(3600);

/// Logs, a data directory, and what a pipeline is built with.
struct Bench {
    dir: TempDir,
    runtime: Runtime,
    metrics: Metrics,
    safe_mode: Arc<SafeMode>,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["end", "age", "data"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        for name in ["end/a.log", "end/b.log", "age/old.log", "age/new.log"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let mut options = fs::File::options();
        let old = options.append(true).open(dir.path().join("age/old.log"));
        let old = old.unwrap();
        old.set_modified(SystemTime::now() - 2 * HOUR).unwrap();
        let safe_mode = Arc::new(SafeMode::begin(dir.path(), Instant::now()));
        Self {
            dir,
            runtime: Runtime::new().unwrap(),
            metrics: Metrics::register(&mut Registry::default()),
            safe_mode,
        }
    }

    /// A pipeline that leaves out what is in `end`, and what is old in `age`.
    fn plan(&self) -> PipelinePlan {
        let here = self.dir.path().display();
        let yaml = format!(
            "pipelines: {{a: {{inputs: [{{type: file, include: ['{here}/end/*'], start_at: end}}, \
             {{type: file, include: ['{here}/age/*'], ignore_older: 1h}}], output: {{type: discard}}}}}}"
        );
        let path = self.dir.path().join("tailrace.yaml");
        fs::write(&path, yaml).unwrap();
        let loaded = config::load(std::slice::from_ref(&path), &|_| None).unwrap();
        PipelinePlan::prepare("a", &loaded.pipelines["a"], &[]).unwrap()
    }

    fn load(&self) -> (Idle, Restored) {
        let data = DataDir::open(&self.dir.path().join("data")).unwrap();
        Idle::load(data, &[self.plan()]).unwrap()
    }

    fn start(&self, idle: Idle, pipelines: &Pipelines) -> Checkpointer {
        let safe_mode = Arc::clone(&self.safe_mode);
        let started = idle.start(pipelines.clone(), self.metrics.clone(), safe_mode);
        started.unwrap()
    }

    /// Its first start. Its readers do not run.
    fn build(&self) -> Arc<Pipeline> {
        let around = BuildContext {
            id: PipelineId(1),
            queue_bytes: 16 << 20,
            jobs: &Arc::<Jobs>::default(),
            metrics: &self.metrics,
            runtime: self.runtime.handle(),
            faults: &Faults::new(),
            fingerprint_key: FingerprintKey::default(),
            resume: ResumeTable::default(),
            first_start: true,
            handed_over: HandedOver::default(),
            data_dir: self.dir.path(),
            safe_mode: &self.safe_mode,
            reasons: &Arc::default(),
        };
        let opened = open(self.plan(), self.runtime.handle()).unwrap();
        build(opened, around).unwrap().pipeline
    }

    /// What the next start finds if the process is killed now.
    fn left_behind(&self, checkpointer: &Checkpointer) -> Loaded {
        let _nothing_is_written = lock(&checkpointer.writer);
        let copy = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(self.dir.path().join("data")).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
            }
        }
        Checkpoint::load(&DataDir::open(copy.path()).unwrap()).unwrap()
    }
}

/// Where each file is read from by the next start, by its name. One that is not known is read from its first byte.
fn offsets(loaded: &Loaded) -> BTreeMap<String, u64> {
    let state = loaded.checkpoint.pipeline("a").unwrap();
    let offset = |file: &tailrace_inputs::checkpoint::FileState| {
        let name = file.path.file_name().unwrap().to_string_lossy();
        (name.into_owned(), file.output("discard").unwrap().offset)
    };
    state.files().map(|(_, _, file)| offset(file)).collect()
}

fn left_out() -> BTreeMap<String, u64> {
    let files = [("a.log", "end/a.log"), ("b.log", "end/b.log")];
    let files = files.into_iter().chain([("old.log", "age/old.log")]);
    let offset = |(name, text): (&str, &str)| (name.to_owned(), text.len() as u64);
    files.map(offset).collect()
}

#[test]
fn what_a_first_start_leaves_out_is_written_down_with_it() {
    let bench = Bench::new();
    let (idle, restored) = bench.load();
    assert!(restored.pipelines[0].first_start);
    let pipelines = Pipelines::default();
    pipelines.add(bench.build());
    let mut checkpointer = bench.start(idle, &pipelines);
    let loaded = bench.left_behind(&checkpointer);
    assert!(!loaded.is_first_start("a"));
    assert_eq!(offsets(&loaded), left_out());
    checkpointer.finish();
}

#[test]
fn a_pipeline_that_runs_asks_for_a_checkpoint_of_a_new_file() {
    let bench = Bench::new();
    let pipelines = Pipelines::default();
    let pipeline = bench.build();
    pipelines.add(Arc::clone(&pipeline));
    assert!(!pipelines.due().is_asked());
    pipeline.tracker.open(Opening {
        id: None,
        generation: 0,
        path: bench.dir.path().join("new.log").into(),
        origin: None,
        offset: 0,
        size: 9,
        replay_to: 0,
        resume: Vec::new(),
    });
    assert!(pipelines.due().is_asked());
}

#[test]
fn a_pipeline_that_is_added_has_not_started_before_what_it_leaves_out_is_known() {
    let bench = Bench::new();
    let mut checkpointer = bench.start(bench.load().0, &Pipelines::default());
    assert!(checkpointer.begin(&bench.plan()).unwrap());
    assert!(bench.left_behind(&checkpointer).is_first_start("a"));
    let pipeline = bench.build();
    assert!(bench.left_behind(&checkpointer).is_first_start("a"));
    checkpointer.started(&pipeline).unwrap();
    let loaded = bench.left_behind(&checkpointer);
    assert!(!loaded.is_first_start("a"));
    assert_eq!(offsets(&loaded), left_out());
    checkpointer.finish();
}
