//! What good configurations become: the examples, the defaults, several files, variables, secrets.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tailrace_config::{ColumnType, Config, Diagnostic, Output, annotated_example, load};
use tailrace_inputs::FileInput;
use tailrace_inputs::options::{Format, StartAt};
use tailrace_outputs::otlp::{OtlpOutput, Protocol, RequestCompression};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn nothing(_: &str) -> Option<String> {
    None
}

/// Loads files by name and text, with some variables.
fn load_files(
    files: &[(&str, &str)],
    variables: &[(&str, &str)],
) -> Result<Config, Vec<Diagnostic>> {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(directory.path().join(name), text).unwrap();
    }
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    load(&[directory.path().to_owned()], &|name| {
        variables.get(name).map(|&value| value.to_owned())
    })
}

fn one(yaml: &str, variables: &[(&str, &str)]) -> Config {
    load_files(&[("t.yaml", yaml)], variables).unwrap_or_else(|diagnostics| {
        panic!(
            "{}",
            diagnostics
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        )
    })
}

fn otlp(output: &Output) -> &OtlpOutput {
    let kind: &dyn std::any::Any = &*output.kind;
    kind.downcast_ref().expect("an OTLP output")
}

fn otlp_with(options: &str, variables: &[(&str, &str)]) -> OtlpOutput {
    let yaml =
        format!("pipelines: {{a: {{input: {{type: stdin}}, output: {{type: otlp, {options}}}}}}}");
    otlp(&one(&yaml, variables).pipelines["a"].outputs[0]).clone()
}

#[test]
fn every_example_loads() {
    let variables = |name: &str| match name {
        "TAILRACE_DEMO_DIR" => Some("/tmp/demo".to_owned()),
        "TAILRACE_DEMO_ENDPOINT" => Some("http://127.0.0.1:4318".to_owned()),
        "OTEL_TOKEN" => Some("token".to_owned()),
        _ => None,
    };
    let mut loaded = 0;
    for entry in fs::read_dir(root().join("config/examples")).unwrap() {
        let path = entry.unwrap().path();
        let config = load(std::slice::from_ref(&path), &variables).unwrap_or_else(|diagnostics| {
            panic!(
                "{}",
                diagnostics
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("\n")
            )
        });
        assert!(!config.pipelines.is_empty(), "{}", path.display());
        loaded += 1;
    }
    assert!(loaded >= 5, "{loaded} examples");
}

#[test]
fn the_annotated_example_says_the_defaults() {
    let annotated = one(&annotated_example(), &[]);
    let short = "pipelines: {app: {inputs: [{type: file, include: /var/log/app/*.log}], outputs: [{type: otlp}]}}";
    let short = one(short, &[]);
    // Everything but where it is written down.
    let without_positions = |config: &Config| {
        let text = format!("{config:#?}");
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains("t.yaml:"))
            .collect();
        let end_of_origins = |line: &&&str| {
            !["start:", "line:", "column:", "fixed:"]
                .iter()
                .any(|key| line.contains(key))
        };
        lines
            .iter()
            .filter(end_of_origins)
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(without_positions(&annotated), without_positions(&short));
}

#[test]
fn the_defaults() {
    let config = one(
        "pipelines: {a: {input: {type: file, include: '*.log'}, output: {type: otlp}}}",
        &[],
    );
    assert_eq!(config.data_dir, Path::new("/var/lib/tailrace"));
    assert_eq!(config.shutdown.grace, Duration::from_secs(30));
    assert_eq!(
        (config.admin.listen, config.limits.memory, config.workers),
        (None, None, None)
    );
    let pipeline = &config.pipelines["a"];
    assert_eq!(pipeline.transform.text, "SELECT * FROM logs");
    assert_eq!(
        (pipeline.batch.max_bytes, pipeline.batch.max_wait),
        (1 << 20, Duration::from_secs(1))
    );
    assert_eq!(
        (pipeline.limits.replay, pipeline.limits.columns),
        (16 << 20, 512)
    );
    let input: &dyn std::any::Any = &*pipeline.inputs[0].kind;
    let input: &FileInput = input.downcast_ref().expect("an input of files");
    assert_eq!(
        (input.format, input.start_at, input.max_record_bytes),
        (Format::Auto, StartAt::Beginning, 1 << 20)
    );
    assert_eq!(
        (input.include.as_slice(), input.exclude.len()),
        (["*.log".to_owned()].as_slice(), 0)
    );
    assert_eq!(input.timezone.offset_s(), 0);
    assert_eq!(pipeline.outputs[0].name, "otlp");
    let otlp = otlp(&pipeline.outputs[0]);
    assert_eq!(
        (otlp.protocol, otlp.compression, otlp.timeout),
        (
            Protocol::HttpProtobuf,
            RequestCompression::Auto,
            Duration::from_secs(10)
        )
    );
    assert_eq!(otlp.url(), "http://localhost:4318/v1/logs");
    assert_eq!(otlp.max_request_bytes, 3_670_016);
    assert_eq!(
        (
            otlp.attributes.iostream,
            otlp.attributes.file_name,
            otlp.attributes.file_path
        ),
        (true, true, false)
    );
}

#[test]
fn urls_of_requests() {
    assert_eq!(
        otlp_with("endpoint: http://h:4318/", &[]).url(),
        "http://h:4318/v1/logs"
    );
    assert_eq!(
        otlp_with("endpoint: https://h/base", &[]).url(),
        "https://h/base/v1/logs"
    );
    assert_eq!(
        otlp_with("logs_endpoint: http://h/in?x=y", &[]).url(),
        "http://h/in?x=y"
    );
    assert_eq!(
        otlp_with("endpoint: http://h:4317, protocol: grpc", &[]).url(),
        "http://h:4317"
    );
    assert_eq!(
        otlp_with("protocol: grpc", &[]).url(),
        "http://localhost:4317"
    );
}

#[test]
fn options_that_nobody_wrote_come_from_the_standard_variables() {
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://base:4318"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
        ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "1500"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s%20$3,x=,"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", ""),
    ];
    let output = otlp_with("concurrency: 2", &variables);
    assert_eq!(output.url(), "https://base:4318/v1/logs");
    assert_eq!(
        (output.timeout, output.compression),
        (Duration::from_millis(1500), RequestCompression::Gzip)
    );
    assert_eq!(output.tls.ca_file.as_deref(), Some(Path::new("/ca.pem")));
    let headers: Vec<(&str, &str)> = output
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.expose()))
        .collect();
    assert_eq!(headers, [("api-key", "s $3"), ("x", "")]);

    let written = "endpoint: http://mine:1, timeout: 1s, compression: none, headers: {a: b}, protocol: http/protobuf";
    let output = otlp_with(written, &variables);
    assert_eq!(output.url(), "http://mine:1/v1/logs");
    assert_eq!(
        (output.timeout, output.compression),
        (Duration::from_secs(1), RequestCompression::None)
    );
    assert_eq!(output.headers.len(), 1);
    assert_eq!(
        output.tls.ca_file, None,
        "an endpoint without TLS needs no authority"
    );
}

#[test]
fn the_endpoint_for_logs_wins_and_grpc_may_go_without_a_scheme() {
    let logs = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs/in");
    let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://base");
    assert_eq!(
        otlp_with("concurrency: 2", &[logs, base]).url(),
        "http://logs/in"
    );
    let bare = ("OTEL_EXPORTER_OTLP_ENDPOINT", "host:4317");
    assert_eq!(
        otlp_with("protocol: grpc", &[bare]).url(),
        "https://host:4317"
    );
    assert_eq!(
        otlp_with(
            "protocol: grpc",
            &[bare, ("OTEL_EXPORTER_OTLP_INSECURE", "true")]
        )
        .url(),
        "http://host:4317"
    );
}

#[test]
fn expansions_take_the_type_of_their_place() {
    let yaml = "
data_dir: ${DIR}/state
workers: ${WORKERS}
admin: {listen: \"127.0.0.1:${PORT}\"}
resource: {a: '${EMPTY:-}', b: \"${DIR}\", c: ''}
limits: {memory: '${MEMORY:-}'}
pipelines:
  p:
    input: {type: stdin}
    output:
      type: otlp
      endpoint: ${ENDPOINT:-http://h:4318}
      concurrency: \"${WORKERS}\"
      attributes: {file_path: '${YES}'}
      headers: {authorization: 'Bearer $$x', empty: '${EMPTY:-}'}
";
    let variables = [
        ("DIR", "/d"),
        ("WORKERS", "2"),
        ("PORT", "9464"),
        ("EMPTY", ""),
        ("YES", "true"),
    ];
    let config = one(yaml, &variables);
    assert_eq!(config.data_dir, Path::new("/d/state"));
    assert_eq!(config.workers, Some(2));
    assert_eq!(config.admin.listen.unwrap().port(), Some(9464));
    assert_eq!(config.limits.memory, None);
    let resource: Vec<_> = config
        .resource
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(resource, [("b", "/d"), ("c", "")]);
    let output = otlp(&config.pipelines["p"].outputs[0]);
    assert_eq!((output.concurrency, output.attributes.file_path), (2, true));
    assert_eq!(output.headers["authorization"].expose(), "Bearer $x");
    assert_eq!(output.headers.len(), 1);
}

#[test]
fn a_secret_file_is_read_and_never_shown() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, "hunter2\r\n").unwrap();
    let reference = format!("${{file:{}}}", token.display());
    let output = otlp_with(
        &format!("headers: {{Authorization: 'Bearer {reference}'}}"),
        &[],
    );
    assert_eq!(output.headers["authorization"].expose(), "Bearer hunter2");
    assert!(!format!("{output:?}").contains("hunter2"));

    for options in [
        format!("timeout: '{reference}'"),
        format!("endpoint: '{reference}'"),
        format!("protocol: '{reference}'"),
    ] {
        let yaml = format!(
            "pipelines: {{a: {{input: {{type: stdin}}, output: {{type: otlp, {options}}}}}}}"
        );
        let diagnostics = load_files(&[("t.yaml", &yaml)], &[]).unwrap_err();
        let text = diagnostics
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        assert!(!text.contains("hunter2"), "{text}");
    }
}

/// Every option of the reference, with a secret in its place: whatever is said of it names the variable alone.
#[test]
fn a_variable_in_any_field_is_named_and_never_shown() {
    const SECRETS: [&str; 6] = [
        "h",
        "9000000000000000001",
        "hunter2",
        "[z-a]{/}",
        "ftp://hunter2",
        "trust hunter2([",
    ];
    let fields = [
        "workers: ${S}",
        "version: ${S}",
        "limits: {memory: '${S}'}",
        "limits: '${S}'",
        "shutdown: {grace: x${S}}",
        "admin: {listen: 'localhost:${S}'}",
        "admin: ['${S}']",
        "resource: '${S}'",
        "pipelines: {a: {inputs: '${S}', output: {type: discard}}}",
        "pipelines: {a: {input: {type: '${S}'}, output: {type: discard}}}",
        "pipelines: {a: {input: {type: file, include: ['[${S}']}, output: {type: discard}}}",
        "pipelines: {a: {input: {type: file, include: [/a], format: '${S}'}, output: {type: discard}}}",
        "pipelines: {a: {input: {type: file, include: [/a], multiline: {start: '(${S}'}}, output: {type: discard}}}",
        "pipelines: {a: {input: {type: file, include: [/a], timezone: '${S}'}, output: {type: discard}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp, endpoint: '${S}'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp, endpoint: 'http://${S}:x'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp, logs_endpoint: '${S}#'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp, endpoint: 'http://${S}/v1/logs'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp, protocol: 'grp${S}'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp, timeout: '${S}'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp, fields: {trace_id: ['${S}', []]}}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: discard, name: 'A${S}'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: discard, required: '${S}'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: discard}, batch: {max_bytes: '${S}'}}}",
        "pipelines: {a: {input: {type: stdin}, output: {type: discard}, transform: ['${S}']}}",
    ];
    for (field, secret) in fields
        .iter()
        .flat_map(|field| SECRETS.map(|secret| (field, secret)))
    {
        let Err(diagnostics) = load_files(&[("t.yaml", field)], &[("S", secret)]) else {
            continue;
        };
        let texts: Vec<String> = diagnostics
            .iter()
            .map(ToString::to_string)
            .filter(|text| text.contains("${S}"))
            .collect();
        assert!(!texts.is_empty(), "{field}: {diagnostics:?}");
        let plain = |secret: &str| {
            let unset = load_files(&[("t.yaml", &field.replace("${S}", secret))], &[]);
            format!("{:?}", unset.err())
        };
        for text in diagnostics.iter().map(ToString::to_string) {
            // One letter is part of many words: there the text must be that of another value.
            let shows = match secret {
                "h" => text.contains("`h`") || text.contains("did you mean"),
                secret => text.contains(secret) || text.contains("hunter2"),
            };
            assert!(
                !shows,
                "{field} shows {secret}: {text}\nas written: {}",
                plain(secret)
            );
        }
    }
}

#[test]
fn what_was_put_in_is_known_by_its_name() {
    let yaml = "data_dir: '${DIR:-/data}'\nresource: {a: '${A:-default}', b: '${B}'}\n\
                pipelines: {p: {input: {type: stdin}, output: {type: discard}, transform: \"SELECT * FROM logs WHERE a = '${B}'\"}}";
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("t.yaml"), yaml).unwrap();
    let env = |name: &str| match name {
        "DIR" => Some("/secret/place".to_owned()),
        "B" => Some("hunter2-b".to_owned()),
        _ => None,
    };
    let loaded = tailrace_config::load_with_files(&[directory.path().join("t.yaml")], &env);
    let redact = |text: &str| loaded.redactor.redact(text).into_owned();
    assert_eq!(redact("/secret/place/x"), "${DIR}/x");
    assert_eq!(redact("default is hunter2-b"), "default is ${B}");
    let config = loaded.config.unwrap();
    let transform = &config.pipelines["p"].transform;
    assert_eq!(transform.shown, "SELECT * FROM logs WHERE a = '${B}'");
    let column = transform.text.find("hunter2").unwrap() + 1;
    let inside = transform.diagnostic(
        1,
        column,
        3,
        "no column hunter2",
        Some("hunter3?".to_owned()),
    );
    assert!(!inside.to_string().contains("hunter"), "{inside}");
    let outside = transform.diagnostic(1, 1, 6, "no SELEC", Some("SELECT?".to_owned()));
    assert!(outside.to_string().contains("help: SELECT?"), "{outside}");
    let parts = transform.redact("a = HUNTER2 - b, a <> hunter2b_");
    assert_eq!(parts, "a = [redacted] - b, a <> hunter2b_");
    assert!(!format!("{:?}", loaded.redactor).contains("hunter2"));
}

#[test]
fn several_files_merge_in_any_order() {
    let files = [
        (
            "b.yml",
            "data_dir: /d\nresource: {a: x}\nshutdown: {grace: 1s}\n",
        ),
        (
            "a.yaml",
            "data_dir: /d\nresource: {b: y}\nshutdown:\nx-note: 1\npipelines: {one: {input: {type: stdin}, output: {type: discard}}}\n",
        ),
        (
            "c.yaml",
            "x-note: 2\npipelines: {two: {input: {type: file, include: [/a]}, output: {type: discard}}}\n",
        ),
        ("empty.yaml", "# nothing\n"),
        (".hidden.yaml", "nonsense"),
        ("note.txt", "nonsense"),
    ];
    let config = load_files(&files, &[]).unwrap();
    assert_eq!(config.pipelines.keys().collect::<Vec<_>>(), ["one", "two"]);
    assert_eq!(config.resource.len(), 2);
    assert_eq!(config.shutdown.grace, Duration::from_secs(1));
}

#[test]
fn anchors_and_merge_keys() {
    let yaml = "
x-out: &out {type: otlp, timeout: 3s, x-ignored: 1}
x-more: &more {concurrency: 9, timeout: 4s}
pipelines:
  p:
    x-here: too
    columns: &columns {x-status: int64}
    input: {type: stdin}
    outputs:
      - {<<: *out, name: a}
      - {name: b, <<: [*out, *more], timeout: 5s}
  q:
    columns: *columns
    input: {type: file, include: [/a]}
    output: *out
";
    let config = one(yaml, &[]);
    let outputs = &config.pipelines["p"].outputs;
    assert_eq!(
        (otlp(&outputs[0]).timeout, otlp(&outputs[0]).concurrency),
        (Duration::from_secs(3), 4)
    );
    assert_eq!(
        (otlp(&outputs[1]).timeout, otlp(&outputs[1]).concurrency),
        (Duration::from_secs(5), 9)
    );
    assert_eq!(
        otlp(&config.pipelines["q"].outputs[0]).timeout,
        Duration::from_secs(3)
    );
    let columns = &config.pipelines["q"].columns;
    assert_eq!(
        columns.get("x-status"),
        Some(&ColumnType::Int64),
        "a column may be named like that"
    );
}

#[test]
fn a_byte_order_mark_and_crlf_do_no_harm() {
    let config = one(
        "\u{feff}pipelines:\r\n  a:\r\n    input: {type: stdin}\r\n    transform: |\r\n      SELECT *\r\n      FROM logs\r\n    output: {type: discard}\r\n",
        &[],
    );
    let sql = &config.pipelines["a"].transform;
    assert_eq!(sql.text, "SELECT *\nFROM logs\n");
    let position = sql.position(2, 6);
    assert_eq!((position.line(), position.column()), (6, 12));
}

#[test]
fn paths_that_cannot_be_read() {
    let check = |path: &Path, expected: &str| {
        let diagnostics = load(&[path.to_owned()], &nothing).unwrap_err();
        let texts: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        assert_eq!(texts, [format!("{}: error: {expected}", path.display())]);
    };
    let directory = tempfile::tempdir().unwrap();
    check(
        &directory.path().join("missing.yaml"),
        "cannot be read: no such file or directory",
    );
    check(
        directory.path(),
        "there is no *.yaml or *.yml in this directory",
    );
    assert_eq!(
        load(&[], &nothing).unwrap_err()[0].message,
        "no configuration file is given"
    );
}
