//! Several outputs of a pipeline: one that is down never slows another, gets what it missed by itself,
//! and no other output sees a record twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use tailrace_testkit::{Answer, Collector};

use crate::support::{Agent, Bench, append, get, until};

/// Bytes of one line: 100,000 of them are several times what may be in flight.
const LINE_BYTES: usize = 400;

const DETACHED: &str = "tailrace_output_detached{pipeline=\"app\",output=\"ill\"";

fn lines(range: std::ops::Range<usize>) -> Vec<u8> {
    let line = |n: usize| {
        // Hardly compressible, so that the credit is used up, too.
        let noise =
            (0..40_usize).map(|k| (n * 2_654_435_761 + k).wrapping_mul(6_364_136_223_846_793_005));
        let noise: String = noise
            .map(|x| format!("{:06x}", x >> 40 & 0xff_ffff))
            .collect();
        let line = format!("{{\"seq\":{n},\"noise\":\"{noise}\"");
        format!("{line:<width$}}}\n", width = LINE_BYTES - 2).into_bytes()
    };
    range.flat_map(line).collect()
}

/// How often each sequence number arrived.
fn arrivals(collector: &Collector) -> BTreeMap<i64, usize> {
    let mut arrivals = BTreeMap::new();
    for record in collector.records() {
        let seq = record.log.attributes.iter().find(|pair| pair.key == "seq");
        let value = seq.and_then(|pair| pair.value.as_ref()?.value.clone());
        let Some(Value::IntValue(seq)) = value else {
            panic!("no seq: {record:?}");
        };
        *arrivals.entry(seq).or_default() += 1;
    }
    arrivals
}

fn each_once(count: usize) -> BTreeMap<i64, usize> {
    (0..i64::try_from(count).unwrap())
        .map(|seq| (seq, 1))
        .collect()
}

/// A config of one pipeline with two outputs; `more` stands in the second one.
fn config(bench: &Bench, well: &Collector, ill: &Collector, more: &str) {
    let what = ("SELECT * FROM logs", "4MiB");
    config_with(bench, well, ill, more, what);
}

fn config_with(
    bench: &Bench,
    well: &Collector,
    ill: &Collector,
    more: &str,
    (query, queue): (&str, &str),
) {
    let output = |name: &str, collector: &Collector, more: &str| {
        format!(
            "\n      - {{type: otlp, name: {name}, endpoint: {}, \
             retry: {{initial: 50ms, max: 200ms}}{more}}}",
            collector.endpoint()
        )
    };
    bench.config(&format!(
        "admin: {{listen: '127.0.0.1:0'}}\nshutdown: {{grace: 300ms}}\npipelines:\n  app:\n    \
         input: {{type: file, include: ['$DIR/logs/*.log'], format: auto}}\n    batch: \
         {{max_wait: 50ms, max_bytes: 256KiB}}\n    queue: {{max_bytes: {queue}}}\n    limits: \
         {{replay: 3MiB}}\n    transform: {query}\n    outputs:{}{}\n",
        output("well", well, ""),
        output("ill", ill, more)
    ));
}

fn sick() -> Collector {
    let collector = Collector::start();
    collector.always(Answer::status(503));
    collector
}

fn ledger(agent: &Agent) -> serde_json::Value {
    serde_json::from_str(&get(&agent.admin(), "/api/v1/ledger")).unwrap()
}

fn metric(agent: &Agent, start: &str) -> u64 {
    let text = get(&agent.admin(), "/metrics");
    let line = text.lines().find(|line| line.starts_with(start));
    let value = line.and_then(|line| line.rsplit(' ').next());
    value.map_or(0, |value| value.parse().unwrap())
}

/// Deleted files that the agent holds open.
fn open_deleted(agent: &Agent) -> Vec<PathBuf> {
    let open = fs::read_dir(format!("/proc/{}/fd", agent.pid())).unwrap();
    let open = open.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    open.filter(|path| path.to_string_lossy().ends_with(" (deleted)"))
        .collect()
}

/// Waits until nothing is in flight, and ends the agent: every record is acked, and the ledger balances.
fn ends_well(agent: Agent) {
    until(|| metric(&agent, DETACHED) == 0, || agent.own_log());
    until(
        || metric(&agent, "tailrace_queue_size_bytes") == 0,
        || ledger(&agent).to_string(),
    );
    let log = agent.own_log();
    assert!(!log.contains("does not balance"), "{log}");
    assert_eq!(agent.terminate().code(), Some(0));
}

/// The first output has to get everything although no new line comes that could start what was put off again.
#[test]
fn what_was_put_off_for_a_dead_output_goes_on_when_that_is_detached() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    let uncompressed = ", compression: none";
    let query = "SELECT seq, repeat(noise, 20) AS noise FROM logs";
    config_with(&bench, &well, &ill, uncompressed, (query, "16MiB"));
    append(&bench.log("a.log"), &lines(0..4_000));
    let agent = bench.start();
    well.wait_records(4_000);
    ill.always(Answer::ok());
    ill.wait_records(4_000);
    assert_eq!(arrivals(&well), each_once(4_000));
    ends_well(agent);
}

/// A batch that began before an output was detached waits for it, with more of it in flight than may be. The next batches are not
/// for that output.
#[test]
fn what_waits_for_a_detached_output_lets_later_batches_pass() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    let uncompressed = ", compression: none";
    let query = "SELECT seq, repeat(noise, 400) AS noise FROM logs";
    config_with(&bench, &well, &ill, uncompressed, (query, "16MiB"));
    append(&bench.log("a.log"), &lines(0..600));
    let agent = bench.start();
    agent.says("the output is behind the others");
    append(&bench.log("b.log"), &lines(600..610));
    let later = || arrivals(&well).range(600..).count();
    until(|| later() == 10, || format!("{} arrived", later()));
    assert_eq!(ill.records().len(), 0);
    ill.always(Answer::ok());
    ill.wait_records(610);
    well.wait_records(610);
    assert_eq!(arrivals(&well), each_once(610));
    assert_eq!(arrivals(&ill), each_once(610));
    ends_well(agent);
}

#[test]
fn a_dead_output_does_not_slow_another_and_gets_everything_when_it_is_back() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    config(&bench, &well, &ill, "");
    append(&bench.log("a.log"), &lines(0..90_000));
    let agent = bench.start();
    append(&bench.log("b.log"), &lines(90_000..100_000));
    well.wait_records(100_000);
    agent.says("the output is behind the others");
    assert_eq!(ill.records().len(), 0);
    assert_eq!(metric(&agent, DETACHED), 1);
    ill.always(Answer::ok());
    ill.wait_records(100_000);
    agent.says("takes part in the shared reading again");
    // And from then on both are served by one reading.
    append(&bench.log("a.log"), &lines(100_000..100_100));
    well.wait_records(100_100);
    ill.wait_records(100_100);
    assert_eq!(arrivals(&well), each_once(100_100));
    assert_eq!(arrivals(&ill), each_once(100_100));
    ends_well(agent);
}

#[test]
fn what_a_detached_output_misses_outlives_kill_9() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    config(&bench, &well, &ill, "");
    append(&bench.log("a.log"), &lines(0..100_000));
    let agent = bench.start();
    well.wait_records(100_000);
    agent.says("the output is behind the others");
    // The next checkpoint says that the well one has it all.
    let journal =
        || fs::metadata(bench.path("data/checkpoint.journal")).map_or(0, |meta| meta.len());
    let before = journal();
    append(&bench.log("a.log"), &lines(100_000..100_001));
    well.wait_records(100_001);
    until(|| journal() != before, || agent.own_log());
    agent.kill();
    let sent_before = well.records().len();
    ill.always(Answer::ok());
    let agent = bench.start();
    until(
        || arrivals(&ill).len() == 100_001,
        || format!("{} arrived", arrivals(&ill).len()),
    );
    // At most what `limits.replay` and a checkpoint's second allow, which here is far less than all.
    let again = well.records().len() - sent_before;
    assert!(again * LINE_BYTES < 4 << 20, "{again} records came again");
    assert_eq!(arrivals(&well).len(), 100_001);
    ends_well(agent);
}

#[test]
fn a_shutdown_leaves_what_a_detached_output_misses_for_the_next_start() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    config(&bench, &well, &ill, "");
    append(&bench.log("a.log"), &lines(0..30_000));
    let agent = bench.start();
    well.wait_records(30_000);
    agent.says("the output is behind the others");
    assert_eq!(agent.terminate().code(), Some(3));
    ill.always(Answer::ok());
    append(&bench.log("a.log"), &lines(30_000..30_010));
    let agent = bench.start();
    ill.wait_records(30_010);
    let missing = || format!("{} arrived", arrivals(&well).len());
    until(|| arrivals(&well).len() == 30_010, missing);
    // The batch in which its watermark lay may come again to the well one, and no other.
    assert_eq!(arrivals(&well).len(), 30_010);
    let again = well.records().len() - 30_010;
    assert!(
        again * LINE_BYTES <= 256 << 10,
        "{again} records came again"
    );
    assert_eq!(arrivals(&ill), each_once(30_010));
    ends_well(agent);
}

#[test]
fn a_detached_output_gets_rotated_and_deleted_files() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    config(&bench, &well, &ill, "");
    append(&bench.log("a.log"), &lines(0..50_000));
    let agent = bench.start();
    well.wait_records(50_000);
    agent.says("the output is behind the others");
    fs::rename(bench.log("a.log"), bench.log("a.old")).unwrap();
    append(&bench.log("a.log"), &lines(50_000..60_000));
    well.wait_records(60_000);
    fs::remove_file(bench.log("a.old")).unwrap();
    fs::remove_file(bench.log("a.log")).unwrap();
    append(&bench.log("a.log"), &lines(60_000..60_500));
    well.wait_records(60_500);
    // The shared reading has let go of them.
    until(
        || metric(&agent, "tailrace_input_files_open") == 1,
        || get(&agent.admin(), "/metrics"),
    );
    ill.always(Answer::ok());
    ill.wait_records(60_500);
    assert_eq!(arrivals(&well), each_once(60_500));
    assert_eq!(arrivals(&ill), each_once(60_500));
    ends_well(agent);
}

/// The file has ended when the output is detached, and is not acknowledged: it misses nothing of it.
#[test]
fn a_rotated_or_deleted_file_in_flight_does_not_keep_an_output_from_being_detached() {
    for is_renamed in [true, false] {
        let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
        config(&bench, &well, &ill, "");
        append(&bench.log("a.log"), &lines(0..10));
        let agent = bench.start();
        well.wait_records(10);
        if is_renamed {
            fs::rename(bench.log("a.log"), bench.log("a.old")).unwrap();
        } else {
            fs::remove_file(bench.log("a.log")).unwrap();
        }
        append(&bench.log("a.log"), &lines(10..20));
        well.wait_records(20);
        until(
            || metric(&agent, "tailrace_input_files_open") == 1,
            || get(&agent.admin(), "/metrics"),
        );
        append(&bench.log("a.log"), &lines(20..50_000));
        well.wait_records(50_000);
        until(|| metric(&agent, DETACHED) == 1, || agent.own_log());
        ill.always(Answer::ok());
        ill.wait_records(50_000);
        assert_eq!(arrivals(&well), each_once(50_000));
        assert_eq!(arrivals(&ill), each_once(50_000));
        ends_well(agent);
    }
}

/// What the first catch-up left unfinished must not go on in the second one, in another file.
#[test]
fn an_unfinished_record_of_one_detachment_does_not_go_on_in_the_next() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    config(&bench, &well, &ill, "");
    let line = |stream: &str, text: &str| format!("2026-01-02T03:04:05Z {stream} {text}\n");
    let write = |range: std::ops::Range<usize>| {
        let text = String::from_utf8(lines(range)).unwrap();
        let lines: String = text.lines().map(|text| line("stdout F", text)).collect();
        append(&bench.log("a.log"), lines.as_bytes());
    };
    let both = |count| {
        well.wait_records(count);
        ill.wait_records(count);
    };
    write(0..50_000);
    append(
        &bench.log("a.log"),
        line("stderr P", "{\"seq\":50000").as_bytes(),
    );
    let agent = bench.start();
    well.wait_records(50_000);
    agent.says("the output is behind the others");
    ill.always(Answer::ok());
    ill.wait_records(50_000);
    agent.says("takes part in the shared reading again");
    append(&bench.log("a.log"), line("stderr F", "}").as_bytes());
    both(50_001);
    fs::rename(bench.log("a.log"), bench.log("a.log.1")).unwrap();
    write(50_001..50_002);
    both(50_002);

    ill.always(Answer::status(503));
    write(50_002..100_000);
    append(
        &bench.log("a.log"),
        line("stderr F", "{\"seq\":100000}").as_bytes(),
    );
    well.wait_records(100_001);
    until(|| metric(&agent, DETACHED) == 1, || agent.own_log());
    ill.always(Answer::ok());
    ill.wait_records(100_001);
    assert_eq!(arrivals(&well), each_once(100_001));
    assert_eq!(arrivals(&ill), each_once(100_001));
    ends_well(agent);
}

/// Waits until records are dropped for the output that is down, and gives how many.
fn missed(agent: &Agent, reason: &str) -> usize {
    let of = "tailrace_output_dropped_records_total{pipeline=\"app\",output=\"ill\"";
    let dropped = format!("{of},reason=\"{reason}\"}}");
    until(
        || metric(agent, &dropped) > 0,
        || get(&agent.admin(), "/metrics"),
    );
    usize::try_from(metric(agent, &dropped)).unwrap()
}

/// An agent of which an output that is not required is behind in `a.log`, which is deleted.
fn behind_a_deleted_file(bench: &Bench, well: &Collector, ill: &Collector) -> Agent {
    config(bench, well, ill, ", required: false");
    append(&bench.log("a.log"), &lines(0..50_000));
    let agent = bench.start();
    well.wait_records(50_000);
    agent.says("the output is behind the others");
    fs::remove_file(bench.log("a.log")).unwrap();
    agent
}

/// The next start has nothing to miss: who is required has all of the file.
#[test]
fn a_restart_counts_nothing_as_lost_that_only_an_output_misses_which_is_not_required() {
    for is_killed in [false, true] {
        let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
        let agent = behind_a_deleted_file(&bench, &well, &ill);
        missed(&agent, "not_required");
        // Who reads has seen that it is gone.
        until(|| open_deleted(&agent).is_empty(), || agent.own_log());
        let is_acked = || ledger(&agent)["pipelines"][0]["outputs"][0]["in_flight_records"] == 0;
        until(is_acked, || ledger(&agent).to_string());
        let said = "which is not required: it goes without these";
        if is_killed {
            agent.kill();
        } else {
            let log = agent.log_path();
            assert_eq!(agent.terminate().code(), Some(0));
            let log = fs::read_to_string(log).unwrap();
            assert!(log.contains(said), "{log}");
        }
        ill.always(Answer::ok());
        append(&bench.log("b.log"), &lines(50_000..50_010));
        let agent = bench.start();
        ill.wait_records(10);
        let now = ledger(&agent)["pipelines"][0].clone();
        assert_eq!(now["lost_bytes"], serde_json::json!({}), "{now}");
        if is_killed {
            agent.says(said);
        }
        ends_well(agent);
    }
}

#[test]
fn an_output_that_is_not_required_goes_without_deleted_files() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    let agent = behind_a_deleted_file(&bench, &well, &ill);
    append(&bench.log("b.log"), &lines(50_000..50_100));
    well.wait_records(50_100);
    // Though some of it is in flight for the output that is down.
    until(|| open_deleted(&agent).is_empty(), || agent.own_log());
    let missed = missed(&agent, "not_required");
    ill.always(Answer::ok());
    ill.wait_records(50_100 - missed);
    let arrived = arrivals(&ill);
    assert_eq!(arrived.len(), 50_100 - missed);
    assert!(arrived.values().all(|&times| times == 1));
    assert!(
        (50_000..50_100).all(|seq| arrived.contains_key(&seq)),
        "the file that is there"
    );
    assert_eq!(arrivals(&well), each_once(50_100));
    ends_well(agent);
}

#[test]
fn a_dead_pipeline_does_not_slow_another() {
    let (bench, well, ill) = (Bench::new(), Collector::start(), sick());
    let pipeline = |name: &str, collector: &Collector| {
        format!(
            "\n  {name}:\n    input: {{type: file, include: ['$DIR/logs/*.log'], format: json}}\n    \
             batch: {{max_wait: 50ms}}\n    queue: {{max_bytes: 4MiB}}\n    output: {{type: otlp, \
             endpoint: {}, retry: {{initial: 50ms, max: 200ms}}}}",
            collector.endpoint()
        )
    };
    bench.config(&format!(
        "pipelines:{}{}\n",
        pipeline("well", &well),
        pipeline("ill", &ill)
    ));
    append(&bench.log("a.log"), &lines(0..100_000));
    let agent = bench.start();
    well.wait_records(100_000);
    assert_eq!(ill.records().len(), 0);
    ill.always(Answer::ok());
    ill.wait_records(100_000);
    assert_eq!(arrivals(&well), each_once(100_000));
    assert_eq!(arrivals(&ill), each_once(100_000));
    assert_eq!(agent.terminate().code(), Some(0));
}
