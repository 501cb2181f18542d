//! The effective configuration: printed, it loads to the same one; each value has its origin; no secret is in it.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tailrace_config::{Config, ReadOnce, annotated_example, load_effective, to_yaml};

fn env(name: &str) -> Option<String> {
    match name {
        "HOST_SECRET" => Some("planted-host-value".to_owned()),
        "OTEL_EXPORTER_OTLP_TIMEOUT" => Some("7000".to_owned()),
        "OTEL_EXPORTER_OTLP_HEADERS" => Some("x-key=planted-header-value".to_owned()),
        "OTEL_TOKEN" => Some("planted-token-value".to_owned()),
        "NAME" => Some("shop".to_owned()),
        _ => None,
    }
}

/// The configuration of a text, and how it is printed.
fn printed(text: &str) -> (Config, String) {
    let once = ReadOnce::default().with("t.yaml", text.to_owned());
    let loaded = load_effective(&["t.yaml".into()], &once, &env);
    let config = loaded.config.unwrap_or_else(|wrong| {
        let wrong: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        panic!("{}\n{text}", wrong.join("\n"))
    });
    (config, to_yaml(&loaded.effective.unwrap()))
}

fn examples() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/examples");
    let entries = fs::read_dir(dir).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

const TRICKY: &str = r#"
x-common: &common {max_wait: 2s}
pipelines:
  "a-b":
    inputs:
      - {type: file, include: ['/a b/*.log', "/x/[a-z]*.log", '/$$HOME/#.log']}
      - {type: stdin}
    columns: {"key with: colon": int64, 'null': string, "é": boolean}
    transform: |
      SELECT *,

        a AS "b"
      FROM logs
    batch: {<<: *common}
    output: {type: discard}
  c:
    input: {type: file, include: /one}
    transform: "SELECT 'tab\there', '\U0001F600' AS x FROM logs"
    output: {type: http, endpoint: "http://${HOST_SECRET}:1/${NOT_SET:-logs}"}
resource: {"service.name": "${NAME}", empty: "${NOT_SET:-}", number: "017", "quoted\"key": 'a: b'}
"#;

#[test]
fn what_is_printed_loads_to_the_same_configuration() {
    let mut texts = vec![annotated_example(), TRICKY.to_owned()];
    for file in examples() {
        texts.push(fs::read_to_string(file).unwrap());
    }
    assert!(texts.len() > 5);
    for text in texts {
        // Variables that an example requires, and secrets that are not printed.
        let text = text.replace("${file:/run/secrets/token}", "${NAME}");
        let text = text
            .replace("${TAILRACE_DEMO_DIR}", "/tmp/x")
            .replace("${TAILRACE_DEMO_ENDPOINT}", "http://h:1");
        let (config, yaml) = printed(&text);
        let (again, second) = printed(&yaml);
        assert!(config == again || yaml.contains("[redacted]"), "{yaml}");
        let values = |yaml: &str| -> Vec<String> {
            yaml.lines()
                .map(|line| line.split("  # ").next().unwrap().to_owned())
                .collect()
        };
        assert_eq!(values(&yaml), values(&second), "{yaml}");
    }
}

#[test]
fn each_value_has_its_origin() {
    let (_, yaml) = printed(TRICKY);
    for line in [
        "data_dir: /var/lib/tailrace  # default",
        "      - type: file  # t.yaml:6",
        "          - \"/a b/*.log\"  # t.yaml:6",
        "      max_wait: 2s  # t.yaml:2",
        "      max_bytes: 1MiB  # default",
        "    transform: |  # t.yaml:10",
        "      tls: {}  # default",
        "  examples: false  # default",
        "  service.name: \"${NAME}\"  # t.yaml:20, from ${NAME}",
    ] {
        assert!(yaml.lines().any(|it| it == line), "{line} in\n{yaml}");
    }
    assert!(!yaml.contains("empty:"), "{yaml}");
    for line in yaml
        .lines()
        .filter(|line| line.trim_end().ends_with(|c: char| c != ':'))
    {
        let is_sql = line.starts_with("      ") && !line.contains(": ");
        assert!(line.contains("# ") || is_sql, "{line} in\n{yaml}");
    }
}

#[test]
fn variables_beside_the_files_are_comments() {
    let (config, yaml) = printed(
        "pipelines: {a: {input: {type: stdin}, output: {type: otlp}}}\nadmin: {listen: '127.0.0.1:${NOT_SET:-9464}'}",
    );
    for part in [
        "# timeout: from $OTEL_EXPORTER_OTLP_TIMEOUT",
        "# headers.x-key: from $OTEL_EXPORTER_OTLP_HEADERS",
        "listen: \"127.0.0.1:${NOT_SET:-9464}\"  # t.yaml:2, expands to `127.0.0.1:9464`",
    ] {
        assert!(yaml.contains(part), "{part} in\n{yaml}");
    }
    assert_eq!(printed(&yaml).0, config, "{yaml}");
}

#[test]
fn no_secret_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, "planted-file-value").unwrap();
    let text = format!(
        "pipelines:\n  a:\n    input: {{type: stdin}}\n    outputs:\n\
         \x20     - {{type: otlp, name: x, headers: {{authorization: Bearer planted-literal, b: '${{file:{}}}', c: \
         'planted-${{NAME}}', d: '${{NOT_SET:-planted-default}}'}}}}\n\
         \x20     - {{type: http, name: y, endpoint: 'http://h/logs?token=planted-query'}}\n\
         \x20     - {{type: http, name: z, endpoint: 'https://${{NAME}}/ingest?key=planted-beside'}}\n\
         \x20     - {{type: http, name: w, endpoint: '${{NOT_SET:-https://h/x?key=planted-within}}'}}\n\
         resource: {{host: '${{HOST_SECRET}}'}}\nadmin: {{listen: 127.0.0.1:1, token: planted-admin-token}}\n",
        token.display()
    );
    let (_, yaml) = printed(&text);
    assert!(!yaml.contains("planted-"), "{yaml}");
    for part in [
        "authorization: \"[redacted]\"",
        "b: \"${file:",
        "logs?[redacted]",
        "https://${NAME}/ingest?[redacted]",
        "${NOT_SET:-https://h/x?[redacted]}",
        "${HOST_SECRET}",
    ] {
        assert!(yaml.contains(part), "{part} in\n{yaml}");
    }
    let once = ReadOnce::default().with("t.yaml", text);
    let effective = load_effective(&["t.yaml".into()], &once, &env).effective;
    assert!(!format!("{effective:?}").contains("planted-"));
}

/// Texts with everything that means something in YAML or in `${...}`.
fn awkward() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z0-9]{1,4}",
        "[ \n]{1,3}[a-z][ \n]{0,2}",
        "[ \t\n:#'\"\\\\$,&*!|>%@`\\[\\]{}?-]{1,3}",
        Just("\r\n".to_owned()),
        Just("\u{85}\u{2028}\u{feff}".to_owned()),
        Just("null".to_owned()),
        Just("~".to_owned()),
        Just("---".to_owned()),
        Just("<<".to_owned()),
        Just("é\u{1F600}".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_text_is_printed_so_that_it_loads_again(
        pairs in prop::collection::btree_map(awkward(), awkward(), 1..5),
        query in "SELECT '[ \na-z#:]{0,20}' AS a FROM logs\n{0,3}",
    ) {
        let quoted = |text: &str| serde_json::Value::String(text.replace('$', "$$")).to_string();
        // A key is taken as it is.
        let key = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
        let pairs: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}: {}", key(name), quoted(value))).collect();
        let text = format!(
            "pipelines: {{a: {{input: {{type: stdin}}, transform: {}, output: {{type: discard}}}}}}\nresource: {{{}}}\n",
            quoted(&query),
            pairs.join(", ")
        );
        let once = ReadOnce::default().with("t.yaml", text);
        let loaded = load_effective(&["t.yaml".into()], &once, &env);
        // Some of it is refused: an empty key, a merge key.
        if let Ok(config) = loaded.config {
            let yaml = to_yaml(&loaded.effective.unwrap());
            prop_assert!(!yaml.contains(|c: char| c != '\n' && tailrace_config::is_unsafe(c)), "{yaml}");
            prop_assert!(printed(&yaml).0 == config, "{yaml}");
        }
    }
}
