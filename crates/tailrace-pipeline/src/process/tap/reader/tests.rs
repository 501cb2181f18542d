//! What a reader finds out about samples.

use tailrace_frame::Framer;

use super::super::budget::Room;
use super::*;
use crate::input::frame_config::frame_config;
use crate::process::trace::tests::plan;

const ID: PipelineId = PipelineId(1);

/// All records of a text as a worker would sample them, of a file of a pod.
fn sample(plan: &PipelinePlan, text: &str) -> Sample {
    let config = frame_config(&plan.config.inputs[0], plan.config.limits.replay);
    let mut framer = Framer::new(&config, 0, false);
    let mut frames = Frames::default();
    framer.push(text.as_bytes(), 0, 0, &mut frames);
    framer.finish(&mut frames);
    let pod = vec![(
        "k8s.pod.name".to_owned(),
        tailrace_otlp::Value::Str("web-1".to_owned()),
    )];
    let facts = trace::facts(plan, Some(Path::new("/logs/web.log")), pod);
    let framed = trace::framed(frames, Bytes::copy_from_slice(text.as_bytes()), &facts, 5);
    let room = Room {
        records: 1000,
        bytes: 1 << 20,
    };
    Sample::of((ID, 0), &framed, room, 0).unwrap()
}

fn tracer(condition: Option<&str>) -> TapTracer {
    TapTracer {
        pipelines: Pipelines::default(),
        condition: condition.map(str::to_owned),
        options: Some(TraceOptions {
            otlp: true,
            reasons: true,
            ..TraceOptions::default()
        }),
        known: HashMap::new(),
    }
}

fn tapped(plan: &PipelinePlan, condition: Option<&str>, text: &str) -> Vec<Tapped> {
    let mut tracer = tracer(condition);
    tracer.trace_of((ID, plan), &sample(plan, text)).unwrap()
}

fn texts(tapped: &[Tapped]) -> Vec<String> {
    let texts = tapped
        .iter()
        .map(|it| String::from_utf8_lossy(&it.raw).into_owned());
    texts.collect()
}

#[test]
fn samples_are_traced_as_their_records_would_be() {
    let sql = "SELECT n, \"log.file.name\" AS f FROM logs WHERE level = 'ERROR' AND \"k8s.pod.name\" = 'web-1'";
    let plan = plan("format: json", sql);
    let found = tapped(
        &plan,
        None,
        "{\"level\":\"ERROR\",\"n\":1}\n{\"level\":\"INFO\",\"n\":2}\n{\"level\":\"ERROR\",\"n\":x}\n",
    );
    let traced: Vec<&Traced> = found.iter().map(|it| it.traced.as_ref().unwrap()).collect();
    let Verdict::Kept(rows) = &traced[0].verdict else {
        panic!("{found:?}");
    };
    assert_eq!(rows[0].json, r#"{"n":1,"f":"web.log"}"#);
    let otlp = String::from_utf8_lossy(rows[0].otlp.as_ref().unwrap());
    assert!(otlp.contains("web-1"), "{otlp}");
    let Verdict::Filtered(unmet) = &traced[1].verdict else {
        panic!("{found:?}");
    };
    assert_eq!(unmet[0].condition, "level = 'ERROR'");
    assert!(traced[2].malformed.is_some(), "{found:?}");
    assert_eq!(
        (found[0].source.as_str(), found[0].observed_ns),
        ("/logs/web.log", 5)
    );
}

#[test]
fn the_condition_is_about_the_record_and_not_about_the_row() {
    let plan = plan("format: json", "SELECT n FROM logs WHERE n > 1");
    let text = "{\"n\":1,\"a\":{\"b\":\"x\"}}\n{\"n\":2,\"a\":{\"b\":\"y\"}}\n{\"n\":3,\"a\":{\"b\":\"x\"}}\nno json\n";
    let of = |condition: &str| texts(&tapped(&plan, Some(condition), text));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(of("a->>'b' = 'x'"), [lines[0], lines[2]]);
    assert_eq!(of("n >= 2 -- a comment"), [lines[1], lines[2]]);
    assert_eq!(of("\"log.file.name\" = 'other'"), [""; 0]);
    assert_eq!(of("n / 0 > 1"), [""; 0]);
    assert_eq!(of("true"), lines);
    assert_eq!(of("body LIKE 'no%'"), [lines[3]]);
}

#[test]
fn container_lines_are_sampled_whole() {
    let plan = plan(
        "format: cri",
        "SELECT body, \"log.iostream\" AS s FROM logs",
    );
    let text = "2026-01-02T03:04:05Z stderr P {\"a\":\n2026-01-02T03:04:05Z stderr F 1}\n";
    let found = tapped(&plan, Some("a = 1 AND \"log.iostream\" = 'stderr'"), text);
    assert_eq!(texts(&found), ["{\"a\":1}"]);
}

#[test]
fn a_wrong_condition_is_refused_with_its_place() {
    let plan = plan("format: json", "SELECT * FROM logs");
    let wrong = |condition: &str| {
        let error = tracer(Some(condition)).prepared(&plan).err();
        let Some(TapError::Condition { source, .. }) = error else {
            panic!("{condition}: {error:?}");
        };
        source
    };
    let unknown = wrong("a = 1 AND\n  lenght(b) > 2");
    assert_eq!((unknown.line, unknown.column), (2, 3), "{unknown:?}");
    assert!(unknown.hint.is_some_and(|hint| hint.contains("length")));
    for condition in [
        "",
        "  ",
        "a =",
        "a = 1 UNION ALL SELECT 1 AS is_wanted FROM logs",
        "a = 1; DROP TABLE logs",
        "count(a) > 1",
        ")",
        "a = 1 LIMIT 3",
    ] {
        let error = wrong(condition);
        assert!(
            error.line == 1 && error.column >= 1,
            "{condition}: {error:?}"
        );
    }
    wrong(&"x".repeat(20_000));
}

#[test]
fn only_what_is_asked_for_is_found_out() {
    let plan = plan("format: json", "SELECT * FROM logs WHERE n > 1");
    let mut tracer = tracer(Some("n < 9"));
    tracer.options = None;
    let sample = sample(&plan, "{\"n\":1}\n{\"n\":9}\n");
    let found = tracer.trace_of((ID, &plan), &sample).unwrap();
    assert_eq!(texts(&found), ["{\"n\":1}"]);
    assert_eq!(found[0].traced, None);
    // Its pipeline has ended.
    assert_eq!(tracer.trace(&sample), Ok(Vec::new()));
}
