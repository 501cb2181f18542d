//! Options of an OTLP output from the environment variables of the OpenTelemetry specification
//! (`OTEL_EXPORTER_OTLP_LOGS_*`, then `OTEL_EXPORTER_OTLP_*`). Options that the configuration does not set are added to its
//! tree, so that they are read and checked like all others; their diagnostics name the variable. An empty variable counts
//! as unset.
//!
//! Source: opentelemetry-specification, protocol/exporter.md, "Configuration Options".

use super::config::{OtlpOutput, Protocol};
use tailrace_schema::interpolate::Environment;
use tailrace_schema::node::{Entry, Node, Scalar, Value};
use tailrace_schema::origins::Origins;
use tailrace_schema::reader::Reader;
use tailrace_schema::source::{Position, Source};

/// Returns the node of an output, completed from the environment.
pub(crate) fn complete(node: &Node, reader: &mut Reader<'_>) -> Node {
    let mut node = node.clone();
    let env = reader.env();
    if !has(&node, &["protocol"]) {
        add(&mut node, &["protocol"], variable(env, "PROTOCOL"));
    }
    if !has(&node, &["endpoint"]) && !has(&node, &["logs_endpoint"]) {
        add_endpoint(&mut node, env);
    }
    if !has(&node, &["compression"]) {
        add(&mut node, &["compression"], variable(env, "COMPRESSION"));
    }
    if !has(&node, &["timeout"]) {
        let milliseconds = variable(env, "TIMEOUT").map(|(name, value)| {
            let unit = if value.bytes().all(|byte| byte.is_ascii_digit()) {
                "ms"
            } else {
                ""
            };
            (name, format!("{value}{unit}"))
        });
        add(&mut node, &["timeout"], milliseconds);
    }
    for (name, key) in [
        ("CERTIFICATE", "ca_file"),
        ("CLIENT_CERTIFICATE", "cert_file"),
        ("CLIENT_KEY", "key_file"),
    ] {
        if !has(&node, &["tls", key]) {
            add(&mut node, &["tls", key], variable(env, name));
        }
    }
    if !has(&node, &["headers"]) {
        add_headers(&mut node, reader);
    }
    node
}

/// Removes certificates that come from the environment if the endpoint does not use TLS.
pub(crate) fn drop_tls_without_use(output: &mut OtlpOutput, node: &Node) {
    if !output.url().starts_with("http://") {
        return;
    }
    let tls = &mut output.tls;
    for (key, file) in [
        ("ca_file", &mut tls.ca_file),
        ("cert_file", &mut tls.cert_file),
        ("key_file", &mut tls.key_file),
    ] {
        if !has(node, &["tls", key]) {
            *file = None;
        }
    }
}

/// The name and value of the variable for logs, else of the general one.
fn variable(env: Environment<'_>, name: &str) -> Option<(String, String)> {
    ["OTEL_EXPORTER_OTLP_LOGS_", "OTEL_EXPORTER_OTLP_"]
        .into_iter()
        .find_map(|prefix| {
            let name = format!("{prefix}{name}");
            let value = env(&name)
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())?;
            Some((name, value))
        })
}

/// The variable for logs is taken as it is, the general one is a base.
fn add_endpoint(node: &mut Node, env: Environment<'_>) {
    let Some((name, value)) = variable(env, "ENDPOINT") else {
        return;
    };
    let grpc = matches!(&node.get("protocol").map(|node| &node.value), Some(Value::Scalar(scalar)) if scalar.text == Protocol::Grpc.name());
    let value = if grpc && !value.contains("://") {
        let insecure =
            variable(env, "INSECURE").is_some_and(|(_, value)| value.eq_ignore_ascii_case("true"));
        format!("{}://{value}", if insecure { "http" } else { "https" })
    } else {
        value
    };
    let key = if name.contains("_LOGS_") {
        "logs_endpoint"
    } else {
        "endpoint"
    };
    add(node, &[key], Some((name, value)));
}

/// `key1=value1,key2=value2`, the values percent-encoded (W3C Baggage without metadata).
fn add_headers(node: &mut Node, reader: &mut Reader<'_>) {
    let Some((name, value)) = variable(reader.env(), "HEADERS") else {
        return;
    };
    // The text of this source is a secret: positions in it show the name alone.
    let source = Source::new(format!("${name}"), String::new());
    let position = Position::new(&source, 1, 1);
    let mut entries = Vec::new();
    for pair in value.split(',').filter(|pair| !pair.trim().is_empty()) {
        let decoded = pair
            .split_once('=')
            .and_then(|(key, value)| Some((key.trim(), percent_decoded(value.trim())?)));
        match decoded {
            Some((key, value)) if !key.is_empty() => entries.push(Entry {
                key: key.to_owned(),
                key_position: position.clone(),
                value: scalar(&position, value),
            }),
            _ => {
                let message = format!("${name} is not of the form `name=value,name=value`");
                reader.report(Node::empty(&position).diagnostic(message).with_hint(
                    "values are percent-encoded; or write `headers` into the configuration file".to_owned(),
                ));
                return;
            }
        }
    }
    put(
        node,
        &["headers"],
        Node {
            position,
            length: 1,
            value: Value::Mapping(entries),
        },
    );
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let hex = std::str::from_utf8(after.get(..2)?).ok()?;
            if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(hex, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

fn has(node: &Node, path: &[&str]) -> bool {
    match path.split_first() {
        Some((key, rest)) => node.get(key).is_some_and(|node| has(node, rest)),
        None => true,
    }
}

fn add(node: &mut Node, path: &[&str], variable: Option<(String, String)>) {
    let Some((name, value)) = variable else {
        return;
    };
    let source = Source::new(format!("${name}"), value.clone());
    let position = Position::new(&source, 1, 1);
    put(node, path, scalar(&position, value));
}

/// A scalar that is never expanded: `$` is doubled.
fn scalar(position: &Position, value: String) -> Node {
    let length = value.chars().count().max(1);
    let text = value.replace('$', "$$");
    let scalar = Scalar {
        text,
        plain: !value.is_empty(),
        origins: Origins::fixed(1, 1),
    };
    Node {
        position: position.clone(),
        length,
        value: Value::Scalar(scalar),
    }
}

/// Puts a value under a path, making mappings where there are none. Where something else is in the way,
/// reading will complain about that.
fn put(node: &mut Node, path: &[&str], value: Node) {
    let Some((key, rest)) = path.split_first() else {
        return;
    };
    if node.is_null() {
        node.value = Value::Mapping(Vec::new());
    }
    let Value::Mapping(entries) = &mut node.value else {
        return;
    };
    if rest.is_empty() {
        let key_position = value.position.clone();
        entries.retain(|entry| entry.key != *key);
        entries.push(Entry {
            key: (*key).to_owned(),
            key_position,
            value,
        });
        return;
    }
    if let Some(entry) = entries.iter_mut().find(|entry| entry.key == *key) {
        put(&mut entry.value, rest, value);
        return;
    }
    let mut inner = Node::empty(&value.position);
    let key_position = value.position.clone();
    put(&mut inner, rest, value);
    entries.push(Entry {
        key: (*key).to_owned(),
        key_position,
        value: inner,
    });
}
