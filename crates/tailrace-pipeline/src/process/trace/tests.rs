//! What a trace says of records: lines, rows, reasons; and that neither cuts nor sizes change it.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use tailrace_config as config;

use super::*;

const OBSERVED_NS: i64 = 1_767_323_045_000_000_000;

const ALL: TraceOptions = TraceOptions {
    otlp: true,
    reasons: true,
    rows: RowBounds::MOST,
};

/// A plan of one pipeline: with these options of its input, and this query.
pub(crate) fn plan(input: &str, sql: &str) -> PipelinePlan {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tailrace.yaml");
    let text =
        format!("pipelines: {{a: {{input: {{type: stdin, {input}}}, output: {{type: stdout}}}}}}");
    std::fs::write(&path, text).unwrap();
    let mut loaded = config::load(&[path], &|_| None).unwrap();
    let pipeline = loaded.pipelines.get_mut("a").unwrap();
    sql.clone_into(&mut pipeline.transform.text);
    sql.clone_into(&mut pipeline.transform.shown);
    PipelinePlan::prepare("a", pipeline, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn traced(plan: &PipelinePlan, text: impl AsRef<[u8]>) -> Vec<Traced> {
    let source = TraceSource::default();
    trace(plan, 0, text.as_ref(), &source, OBSERVED_NS, ALL).records
}

/// A trace in words: lines, and rows or reasons.
fn said(traced: &Traced) -> String {
    let verdict = match &traced.verdict {
        Verdict::Kept(rows) => {
            let rows: Vec<&str> = rows.iter().map(|row| row.json.as_str()).collect();
            rows.join(" ")
        }
        Verdict::Filtered(reasons) => {
            let reason = |unmet: &Unmet| {
                let value = |read: &ReadValue| {
                    let json = read.json.as_deref().unwrap_or("absent");
                    let misfit = read.misfit.map(|ty| format!(" is no {ty}"));
                    format!("{} {json}{}", read.name, misfit.unwrap_or_default())
                };
                let reads: Vec<String> = unmet.reads.iter().map(value).collect();
                let (condition, reads) = (&unmet.condition, reads.join(", "));
                format!("{condition}: {:?}: {reads}", unmet.outcome)
            };
            let reasons: Vec<String> = reasons.iter().map(reason).collect();
            reasons.join("; ")
        }
        Verdict::Crashed(reason) => reason.clone(),
    };
    format!("{}+{} {verdict}", traced.line, traced.lines)
}

fn check(plan: &PipelinePlan, text: impl AsRef<[u8]>, expect: &[&str]) {
    let found: Vec<String> = traced(plan, text).iter().map(said).collect();
    assert_eq!(found, expect);
}

#[test]
fn each_record_has_its_rows_or_its_reason() {
    let sql = "SELECT msg, status + 1 AS n FROM logs WHERE level = 'ERROR' AND (status >= 500 AND http->>'path' <> '/x')";
    let text = r#"{"level":"ERROR","status":500,"msg":"a","http":{"path":"/a"}}

{"level":"INFO","status":500}
{"level":"ERROR","status":"many","msg":"b"}
{"level":"ERROR","msg":"c"}
{"level":"ERROR","status":503,"http":{"path":"/x"}}
{"level":null}"#;
    let expect = [
        r#"1+1 {"msg":"a","n":501}"#,
        r#"3+1 level = 'ERROR': Some(False): level "INFO""#,
        r#"4+1 status >= 500: Some(Null): status "many" is no float64"#,
        "5+1 status >= 500: Some(Null): status absent",
        r#"6+1 http ->> 'path' <> '/x': Some(False): http->'path' "/x""#,
        "7+1 level = 'ERROR': Some(Null): level null",
    ];
    check(&plan("format: json", sql), text, &expect);
}

#[test]
fn each_select_has_its_reason() {
    let sql =
        "SELECT a FROM logs WHERE a > 1 UNION ALL SELECT b AS a FROM logs WHERE random() < -1.0";
    let expect = [
        r#"1+1 {"a":2}"#,
        "2+1 a > 1: Some(False): a 1; random() < -1.0: Some(False): ",
    ];
    check(
        &plan("format: json", sql),
        "{\"a\":2}\n{\"a\":1}\n",
        &expect,
    );
    let sql = "SELECT unnest(json_get_array(a)) AS v FROM logs WHERE b > 0";
    let expect = [
        r#"1+1 {"v":"1"} {"v":"2"}"#,
        "2+1 b > 0: None: b 1",
        "3+1 b > 0: Some(False): b 0",
    ];
    let text = "{\"a\":[1,2],\"b\":1}\n{\"a\":[],\"b\":1}\n{\"a\":[1],\"b\":0}\n";
    check(&plan("format: json", sql), text, &expect);
}

#[test]
fn lines_and_flags_of_what_is_joined_cut_and_broken() {
    let text = "2026-01-02T03:04:05Z stdout P one \n2026-01-02T03:04:05Z stderr F err\n\
                2026-01-02T03:04:05Z stdout F two\nno envelope\n";
    let cri = plan("format: cri", "SELECT body FROM logs");
    let expect = [
        r#"2+1 {"body":"err"}"#,
        r#"1+2 {"body":"one two"}"#,
        r#"4+1 {"body":"no envelope"}"#,
    ];
    check(&cri, text, &expect);
    let broken = &traced(&cri, text)[2];
    assert!(
        broken.malformed.as_ref().unwrap().contains("envelope"),
        "{broken:?}"
    );

    let java = plan(
        "format: raw, multiline: {preset: java}",
        "SELECT body FROM logs",
    );
    let text = "java.lang.Error: x\n\tat A.f(A.java)\n\tat B.g(B.java)\nnext";
    let found = traced(&java, text);
    let lines: Vec<_> = found.iter().map(|it| (it.line, it.lines)).collect();
    assert_eq!(lines, [(1, 3), (4, 1)]);

    let cut = plan("format: json, max_record_bytes: 1KiB", "SELECT * FROM logs");
    let text = [
        b"{\"a\":\"\xff\"}\n{\"a\":x}\n".to_vec(),
        vec![b'x'; 5000],
        b"\n{\"b\":1}\n".to_vec(),
    ]
    .concat();
    let found = traced(&cut, text);
    let flags = |it: &Traced| {
        (
            it.line,
            it.malformed.is_some(),
            it.is_truncated,
            it.is_repaired,
        )
    };
    let flags: Vec<_> = found.iter().map(flags).collect();
    let expect = [
        (1, false, false, true),
        (2, true, false, false),
        (3, true, true, false),
        (4, false, false, false),
    ];
    assert_eq!(flags, expect);
    assert_eq!(
        found[1].malformed.as_deref(),
        Some("not JSON: expected value at byte 6")
    );
}

#[test]
fn failed_expressions_are_those_of_their_record() {
    let sql = "SELECT a, 10 / a AS d, chr(b::bigint) AS c FROM logs WHERE 7 / e IS NULL OR true";
    let text: String = (-5..95)
        .map(|b| format!("{{\"a\":{},\"b\":{b},\"e\":1}}\n", b + 6))
        .collect();
    let found = traced(&plan("format: json", sql), text);
    assert_eq!(found.len(), 100);
    for (at, record) in found.iter().enumerate() {
        let columns: Vec<_> = record
            .failed
            .iter()
            .map(|it| it.column.as_deref())
            .collect();
        let expect: &[Option<&str>] = if at < 5 { &[Some("c")] } else { &[] };
        assert_eq!(columns, expect, "{record:?}");
        assert!(record.failed.iter().all(|it| !it.reason.is_empty()));
    }
}

#[test]
fn facts_are_what_the_source_is() {
    let sql = "SELECT a, \"log.file.name\" AS f FROM logs WHERE \"k8s.pod.name\" = 'web-1'";
    let plan = plan("format: json", sql);
    let source = TraceSource {
        path: Some("/logs/a.log".into()),
        pod: vec![("k8s.pod.name".to_owned(), "web-1".to_owned())],
    };
    let found = trace(&plan, 0, b"{\"a\":1}", &source, OBSERVED_NS, ALL);
    let Verdict::Kept(rows) = &found.records[0].verdict else {
        panic!("{found:?}");
    };
    assert_eq!(rows[0].json, r#"{"a":1,"f":"a.log"}"#);
    let otlp = String::from_utf8_lossy(rows[0].otlp.as_ref().unwrap());
    assert!(
        otlp.contains("log.file.name") && otlp.contains("k8s.pod.name"),
        "{otlp}"
    );
    let expect = ["1+1 \"k8s.pod.name\" = 'web-1': Some(Null): \"k8s.pod.name\" absent"];
    check(&plan, "{\"a\":1}", &expect);
}

/// More than fits one piece: it is made in several.
#[test]
fn a_query_that_makes_much_of_a_record() {
    let sql = "SELECT n, repeat(a, 20000) AS r FROM logs WHERE n >= 0";
    let text: String = (0..300)
        .map(|n| format!("{{\"n\":{n},\"a\":\"abcdefgh\"}}\n"))
        .collect();
    let found = traced(&plan("format: json", sql), text);
    for (n, record) in found.iter().enumerate() {
        let Verdict::Kept(rows) = &record.verdict else {
            panic!("{record:?}");
        };
        assert!(
            rows[0]
                .json
                .starts_with(&format!("{{\"n\":{n},\"r\":\"abcdefghabc"))
        );
        assert!(rows[0].json.len() > 160_000 && rows[0].otlp.as_ref().unwrap().len() > 160_000);
    }
    assert_eq!(found.len(), 300);
}

/// Each row repeats the record: all of them would be 125 GB.
#[test]
fn a_record_that_becomes_very_many_rows() {
    let sql = "SELECT *, unnest(string_to_array(tags, ',')) AS tag FROM logs";
    let plan = plan("format: json", sql);
    let count = 250_000;
    let text = format!("{{\"tags\":\"{}x\"}}\n", "x,".repeat(count - 1));
    let few = TraceOptions {
        rows: RowBounds::default(),
        ..ALL
    };
    let twice = format!("{text}{text}");
    for (options, bytes_max) in [(few, 4 << 20), (ALL, 80 << 20)] {
        let source = TraceSource::default();
        let found = trace(&plan, 0, twice.as_bytes(), &source, OBSERVED_NS, options).records;
        assert_eq!(found.len(), 2);
        for record in &found {
            let Verdict::Kept(rows) = &record.verdict else {
                panic!("not kept");
            };
            assert_eq!(rows.len() as u64 + record.more_rows, count as u64);
            let otlp = rows.iter().map(|row| row.otlp.as_ref().unwrap().len());
            let bytes = otlp.sum::<usize>() + rows.iter().map(|row| row.json.len()).sum::<usize>();
            assert!(bytes <= bytes_max, "{} rows, {bytes} bytes", rows.len());
        }
    }
}

/// All rows of it are kept, in their order, and each has its own LogRecord.
#[test]
fn rows_of_a_record_are_encoded_some_at_a_time() {
    let sql = "SELECT 1 / (n - n) AS f, unnest(string_to_array(tags, ',')) AS tag FROM logs \
               UNION ALL SELECT n AS f, tags AS tag FROM logs";
    let plan = plan("format: json", sql);
    let tags: Vec<String> = (0..5000).map(|n| format!("tag-{n}-")).collect();
    let all = tags.join(",");
    let text = format!("{{\"n\":7,\"tags\":\"{all}\"}}\n");
    let last = all.clone();
    let expect: Vec<&String> = tags.iter().chain([&last]).collect();
    for text in [text.clone(), text.repeat(3)] {
        for record in traced(&plan, text) {
            let Verdict::Kept(rows) = &record.verdict else {
                panic!("not kept");
            };
            assert_eq!((rows.len(), record.more_rows), (5001, 0));
            for (row, tag) in rows.iter().zip(&expect) {
                assert!(row.json.ends_with(&format!("\"tag\":\"{tag}\"}}")), "{tag}");
                let otlp = String::from_utf8_lossy(row.otlp.as_ref().unwrap());
                assert!(otlp.contains(tag.as_str()), "{tag}");
            }
        }
    }
}

const PIECES: &[&[u8]] = &[
    b"{\"a\":1,\"b\":\"x\"}\n",
    b"{\"a\":1,\"a\":2,\"c\":{\"d\":[1,null]}}\r\n",
    b"{\"a\":x}\n",
    b"plain\n",
    b"\n",
    b"\0\0\0{\"a\":3}\n",
    b"{\"b\":\"\xff\xfe\"}\n",
    b"java.lang.Error: x\n",
    b"\tat A.f(A.java)\n",
    b"2026-01-02T03:04:05Z stdout P {\"a\":\n",
    b"2026-01-02T03:04:05Z stdout F 1}\n",
    b"2026-01-02T03:04:05Z stderr F err\n",
    b"{\"a\":\"",
    b"0123456789012345678901234567890123456789",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cuts_change_nothing(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..20),
        cuts in proptest::collection::vec(1..60_usize, 1..8),
        input in proptest::sample::select(&[
            "format: auto", "format: json, max_record_bytes: 1KiB", "format: cri", "format: raw, multiline: {preset: java}",
        ][..]),
    ) {
        let plan = plan(input, "SELECT a, b, body FROM logs WHERE a = 1 OR body LIKE '%a%'");
        let text = pieces.concat();
        let whole = trace(&plan, 0, &text, &TraceSource::default(), OBSERVED_NS, ALL);
        let mut tracer = Tracer::new(&plan, 0, &TraceSource::default(), ALL);
        let mut records = Vec::new();
        let (mut rest, mut sizes) = (&text[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (next, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
            tracer.push(next, OBSERVED_NS, &mut |it| records.push(it));
            rest = after;
        }
        tracer.finish(OBSERVED_NS, &mut |it| records.push(it));
        let stats = tracer.stats();
        prop_assert_eq!(stats.records, records.len() as u64);
        prop_assert_eq!(Trace { records, stats }, whole);
    }
}
